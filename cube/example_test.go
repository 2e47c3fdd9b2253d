// SPDX-License-Identifier: Apache-2.0

package cube_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/nccl-otf2/nccl-otf2/cube"
)

// A profile of two processes that call main, which calls work.
func Example() {
	dir, err := os.MkdirTemp("", "cube")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "profile.cubex")

	d := new(cube.Definitions)
	visits := d.AddMetric(cube.Metric{Parent: cube.None, UniqueName: "visits", Type: cube.Uint64, Unit: "occ",
		Kind: cube.Exclusive})
	time := d.AddMetric(cube.Metric{Parent: cube.None, UniqueName: "time", Type: cube.Double, Unit: "sec",
		Kind: cube.Inclusive})
	program := d.AddCnode(cube.Cnode{Parent: cube.None, Callee: d.AddRegion(cube.Region{Name: "main"})})
	work := d.AddCnode(cube.Cnode{Parent: program, Callee: d.AddRegion(cube.Region{Name: "work"})})
	machine := d.AddNode(cube.SystemTreeNode{Parent: cube.None, Name: "machine m", Class: cube.ClassMachine})
	node := d.AddNode(cube.SystemTreeNode{Parent: machine, Name: "node n", Class: cube.ClassNode})
	for rank := range 2 {
		process := d.AddGroup(cube.LocationGroup{Node: node, Name: fmt.Sprint("Rank ", rank), Rank: rank})
		d.AddLocation(cube.Location{Group: process, Name: "Master thread"})
	}

	w, err := cube.Create(path, d, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer w.Abandon()
	if err := w.WriteMetric(visits, func(_ cube.CnodeID, row *cube.Row) error {
		row.SetUint64(0, 1)
		row.SetUint64(1, 1)
		return nil
	}); err != nil {
		log.Fatal(err)
	}
	seconds := map[cube.CnodeID][]float64{program: {2, 2.5}, work: {1.5, 0.25}}
	if err := w.WriteMetric(time, func(c cube.CnodeID, row *cube.Row) error {
		for l, s := range seconds[c] {
			row.SetFloat64(cube.LocationID(l), s)
		}
		return nil
	}); err != nil {
		log.Fatal(err)
	}
	if err := w.Close(); err != nil {
		log.Fatal(err)
	}

	p, err := cube.Open(path)
	if err != nil {
		log.Fatal(err)
	}
	defer p.Close()
	var row cube.Row
	p.Walk(func(c cube.CnodeID, depth int) {
		if _, err := p.Row(time, c, &row); err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%*s%s: %v s, %v s\n", 2*depth, "", p.Regions[p.Cnodes[c].Callee].Name, row.At(0), row.At(1))
	})
	// Output:
	// main: 2 s, 2.5 s
	//   work: 1.5 s, 0.25 s
}
