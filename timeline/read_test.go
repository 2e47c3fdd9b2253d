// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ncclotf2/otf2"
	"ncclotf2/scorep"
	"ncclotf2/scorep/shardtest"
	"ncclotf2/shard"
)

const (
	t0 = shardtest.Epoch + 1_000_000
	us = 1000
)

// makeJob is a job of two hosts with two GPUs in each process, a communicator of all four ranks with a network, and
// launches of one and of several operations.
func makeJob(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for h := range 2 {
		p := shardtest.New(t, dir, fmt.Sprint("p", h)).On(fmt.Sprint("node", h), 100).Launched("slurm", h, 2)
		for g := range 2 {
			p.GPU(g, fmt.Sprint("GPU-", h, g), "")
		}
		for g := range 2 {
			rank := 2*h + g
			c := p.Comm(shard.Comm{ID: 1, Name: "world", NRanks: 4, Rank: rank, GPU: g, InitTime: t0})
			late := uint64(rank) * 10 * us
			p.AllReduce(c, t0+100*us+late, t0+200*us, 1000)
			p.AllReduce(c, t0+300*us+late, t0+400*us, 1000)
			p.Plan(c, []shardtest.Op{
				{Function: "AllGather", Kind: otf2.CollectiveOpAllgather, Begin: t0 + 500*us, End: t0 + 540*us, Sent: 1200, Received: 1200, Count: 100},
				{Function: "ReduceScatter", Kind: otf2.CollectiveOpReduceScatterBlock, Begin: t0 + 500*us, End: t0 + 540*us, Sent: 2400, Received: 2400, Count: 200},
			})
		}
		p.Call("ncclAllReduce", t0+90*us, t0+95*us)
		p.Finish()
	}
	if _, err := scorep.Unify(dir, nil); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "traces.otf2")
}

func read(t testing.TB, anchor string) *Data {
	t.Helper()
	a, err := otf2.Open(anchor, nil)
	if err != nil {
		t.Fatal(err)
	}
	d, err := Read(a)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func readJob(t *testing.T) *Data { return read(t, makeJob(t)) }

// Rows lie in hosts, processes and GPUs, with the parts of a communicator rank under it.
func TestRows(t *testing.T) {
	d := readJob(t)
	var got strings.Builder
	for i := range d.rows {
		depth := 0
		for p := d.rows[i].parent; p >= 0; p = d.rows[p].parent {
			depth++
		}
		fmt.Fprintf(&got, "%s%s: %s\n", strings.Repeat("  ", depth), d.rows[i].kind, d.rows[i].name)
	}
	want := `host: node0
  process: Rank 0
    thread: Thread 0
    device: Rank 0 GPU 0
      rank: world rank 0
    device: Rank 0 GPU 1
      rank: world rank 1
host: node1
  process: Rank 1
    thread: Thread 0
    device: Rank 1 GPU 0
      rank: world rank 2
    device: Rank 1 GPU 1
      rank: world rank 3
`
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Error(diff)
	}
}

// Parts of collectives are brought together, also those that were launched at once, and waits are those of the report.
func TestInstancesAndWaits(t *testing.T) {
	d := readJob(t)
	seen := map[string]int{}
	for i := range d.instances {
		in := &d.instances[i]
		seen[fmt.Sprintf("%s %d of %d parts", d.functions[in.function], in.ordinal, len(in.parts))]++
		for rank, p := range in.parts {
			if p.rank != int32(rank) || d.rows[p.row].name != fmt.Sprintf("world rank %d", rank) {
				t.Errorf("part %d of %d is %+v on %s", rank, i, p, d.rows[p.row].name)
			}
		}
	}
	want := map[string]int{"AllReduce 0 of 4 parts": 1, "AllReduce 1 of 4 parts": 1, "AllGather 0 of 4 parts": 1, "ReduceScatter 0 of 4 parts": 1}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Error(diff)
	}
	var first, later uint64
	for i := range d.rows {
		if d.rows[i].bars == nil {
			continue
		}
		for _, w := range d.rows[i].waits {
			if d.ranks[w.rank].name != "Rank 1 GPU 1" {
				t.Errorf("waited for %s", d.ranks[w.rank].name)
			}
			if w.first {
				first += w.length
			} else {
				later += w.length
			}
		}
	}
	// Three ranks wait 30, 20 and 10 µs for the last one, twice.
	if first != 60*us || later != 60*us || later != d.report.WaitStates.Total.Waited || first != d.report.WaitStates.StartUp.Waited {
		t.Errorf("waited %d at first and %d later; the report says %d and %d", first, later, d.report.WaitStates.StartUp.Waited, d.report.WaitStates.Total.Waited)
	}
}

// Archives of other tools give a page, too.
func TestForeignArchives(t *testing.T) {
	anchors := []string{}
	for _, pattern := range []string{"../analysis/testdata/*/*.otf2", "../otf2/testdata/*/*.otf2", "../otf2/testdata/*/*/*.otf2"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		anchors = append(anchors, found...)
	}
	if len(anchors) < 3 {
		t.Fatalf("%d archives only", len(anchors))
	}
	read := 0
	for _, anchor := range anchors {
		a, err := otf2.Open(anchor, nil)
		if err != nil {
			continue // what package otf2 does not read
		}
		read++
		d, err := Read(a)
		if err != nil {
			t.Errorf("%s: %v", anchor, err)
			continue
		}
		if err := d.WritePage(io.Discard, Options{}); err != nil {
			t.Errorf("%s: %v", anchor, err)
		}
	}
	if read < 3 {
		t.Errorf("%d of %d archives were read", read, len(anchors))
	}
}

// Damage is told, and what is whole is shown.
func TestDamagedArchive(t *testing.T) {
	anchor := makeJob(t)
	files, _ := filepath.Glob(filepath.Join(filepath.Dir(anchor), "traces", "*.evt"))
	for i, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(f); err != nil { // it may be a link
			t.Fatal(err)
		}
		if err := os.WriteFile(f, b[:len(b)*(i+3)/(len(files)+4)], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d := read(t, anchor)
	if len(d.problems) == 0 {
		t.Error("nothing is said of the damage")
	}
	var page bytes.Buffer
	if err := d.WritePage(&page, Options{}); err != nil {
		t.Fatal(err)
	}
}

// Regions of a lane follow each other, parents and children are the same relation, and every number of a bar is
// given once, whatever was entered and left.
func TestLayoutOfRandomRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := &Data{regions: []region{{"r", 0}}, categories: []string{"c"}}
		for range rapid.IntRange(0, 4).Draw(t, "rows") {
			b := newBars()
			time := uint64(0)
			for range rapid.IntRange(0, 60).Draw(t, "events") {
				time += rapid.Uint64Range(0, 9).Draw(t, "step")
				b.last = time
				if rapid.Bool().Draw(t, "enter") {
					parent := nowhere
					if n := len(b.open); n > 0 {
						parent = place{uint32(len(d.rows)), uint32(b.open[n-1])}
					}
					b.enter(time, 0, parent, nil)
				} else {
					b.leave(time, nil)
				}
			}
			b.end()
			d.rows = append(d.rows, row{bars: b})
		}
		l := newLayout(d)
		d.layout = l
		seen := make(map[uint32]bool)
		for at := range l.lanes {
			lane := &l.lanes[at]
			b := d.rows[lane.row].bars
			depth := at - l.lanesOf[lane.row][0]
			for i := range lane.count {
				n := lane.of(i)
				if i > 0 && depth < maxDepth {
					if before := lane.of(i - 1); b.start[before]+b.length[before] > b.start[n] {
						t.Fatalf("lane %d: bars %d and %d overlap", at, before, n)
					}
				}
				bar := l.bar(d, place{uint32(lane.row), uint32(n)})
				if bar != lane.first+uint32(i) || seen[bar] {
					t.Fatalf("bar %d is at %d of lane %d", bar, i, at)
				}
				seen[bar] = true
				if p := b.parent[n]; p != nowhere {
					parent := l.bar(d, p)
					kids := l.kids[l.firstKid[parent]:l.firstKid[parent+1]]
					if !slices.Contains(kids, bar) {
						t.Fatalf("bar %d is not among the children %v of %d", bar, kids, parent)
					}
				}
			}
			var count uint64
			all, sums := l.nodes(d, lane)
			for _, s := range sums {
				count += s.count
			}
			if len(all) != (lane.count+l.leaf-1)/l.leaf || count != uint64(lane.count) {
				t.Fatalf("%d nodes and %d bars of %d", len(all), count, lane.count)
			}
		}
		if len(seen) != int(l.total) {
			t.Fatalf("%d of %d bars", len(seen), l.total)
		}
	})
}

// Transfers that are under way when later ones begin are found from both ends.
func TestNodesOfTransfers(t *testing.T) {
	b := newBars()
	for i := range uint64(40) {
		long := uint64(5)
		if i == 3 {
			long = 1000
		}
		b.transfers = append(b.transfers, transfer{start: 10 * i, length: long, ended: true})
	}
	l := &layout{leaf: minLeaf}
	var got []uint64
	for _, n := range l.transferNodes(b) {
		got = append(got, n.start, n.end)
	}
	if diff := cmp.Diff([]uint64{0, 1030, 160, 1030, 320, 1030}, got); diff != "" {
		t.Error(diff)
	}
}

// Attributes come out of notes as they went in.
func TestNotes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var n notes
		var offsets []uint32
		lists := rapid.SliceOf(rapid.SliceOfN(rapid.Custom(func(t *rapid.T) otf2.AttributeValue {
			return otf2.AttributeValue{ID: otf2.AttributeRef(rapid.Uint32().Draw(t, "id")), Bits: rapid.Uint64().Draw(t, "bits")}
		}), 0, 5)).Draw(t, "lists")
		for _, l := range lists {
			offsets = append(offsets, n.add(l))
		}
		for i, l := range lists {
			got := n.at(offsets[i], nil)
			if len(got) != len(l) {
				t.Fatalf("%d of %d", len(got), len(l))
			}
			for j := range l {
				if got[j] != (note{uint32(l[j].ID), l[j].Bits}) {
					t.Fatalf("%v, want %v", got[j], l[j])
				}
			}
		}
	})
}
