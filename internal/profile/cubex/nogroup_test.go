// SPDX-License-Identifier: Apache-2.0

package cubex

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/cube"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
)

// Locations whose group is not defined, and accelerators of no process, have groups of their own: nothing of them is
// counted to a process, and nothing of a region that is not defined to another one.
func TestLocationsOfNoGroup(t *testing.T) {
	archive := testkit.Value(otf2.Create(t.TempDir(), "traces", nil))(t)
	defs := archive.Definitions()
	testkit.Must(t, defs.ClockProperties(1e9, 1000, 5000, 0))
	for id, text := range []string{"", "machine", "node", "work", "device"} {
		testkit.Must(t, defs.String(otf2.StringRef(id), text))
	}
	testkit.Must(t, defs.SystemTreeNode(0, 2, 2, otf2.UndefinedSystemTreeNode))
	testkit.Must(t, defs.LocationGroup(0, 1, otf2.LocationGroupTypeProcess, 0, otf2.UndefinedLocationGroup))
	testkit.Must(t, defs.LocationGroup(1, 4, otf2.LocationGroupTypeAccelerator, 9, 55))
	testkit.Must(t, defs.Region(0, 3, 3, 0, otf2.RegionRoleFunction, otf2.ParadigmUser, 0, otf2.UndefinedString, 0, 0))
	groups := []otf2.LocationGroupRef{0, 77, 1, otf2.UndefinedLocationGroup}
	for l, g := range groups {
		testkit.Must(t, defs.Location(otf2.LocationRef(l), 3, otf2.LocationTypeCPUThread, 0, g))
		events := testkit.Value(archive.Events(otf2.LocationRef(l)))(t)
		for i, region := range []otf2.RegionRef{0, 7} {
			testkit.Must(t, events.Enter(otf2.Timestamp(1000+1000*i), nil, region))
			testkit.Must(t, events.Leave(otf2.Timestamp(1010+1000*i+l), nil, region))
		}
	}
	testkit.Must(t, archive.Close())

	p, _, err := FromArchive(jobtest.Open(t, archive.Path()))
	testkit.Must(t, err)
	file := filepath.Join(t.TempDir(), "p.cubex")
	testkit.Must(t, p.Write(file, false))
	read := testkit.Value(cube.Open(file))(t)
	defer read.Close()
	var names []string
	for _, l := range read.Locations {
		names = append(names, read.Groups[l.Group].Name)
	}
	want := []string{"Process 0", `location group 1 of no process, "device"`, "undefined location group 77",
		"no location group"}
	testkit.Check(t, slices.Equal(names, want), "groups %q, want %q", names, want)
	if !slices.ContainsFunc(read.Regions, func(r cube.Region) bool { return r.Name == "undefined region 7" }) {
		t.Errorf("regions %+v", read.Regions)
	}
}
