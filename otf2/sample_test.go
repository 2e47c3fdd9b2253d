// SPDX-License-Identifier: Apache-2.0

package otf2_test

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// sampleArchive writes a small archive with every kind of file that the writers make: two processes, host
// threads with collectives and attributes, local ids, drifting clocks, markers. It returns the anchor's path.
func sampleArchive(t testing.TB, dir string, calls int) string {
	t.Helper()
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	base := filepath.Join(dir, "traces")
	ok(os.MkdirAll(base, 0o755))
	locations := []otf2.LocationRef{0, 1 << 32}
	events := map[otf2.LocationRef]uint64{}
	for rank, loc := range locations {
		w, err := otf2.CreateEventWriter(filepath.Join(base, strconv.FormatUint(uint64(loc), 10)+".evt"),
			&otf2.EventWriterOptions{CheckNesting: true})
		ok(err)
		var a otf2.AttributeList
		for i := range calls {
			at := otf2.Timestamp(1000 + 100*i + rank)
			a.Reset()
			a.Uint64(0, uint64(i))
			a.String(1, 4) // local id
			ok(w.Enter(at, &a, 0))
			ok(w.MpiCollectiveBegin(at+10, nil))
			ok(w.MpiCollectiveEnd(at+50, nil, otf2.CollectiveOpAllreduce, 0, otf2.CollectiveRootNone, 4096, 4096))
			ok(w.Leave(at+60, nil, 0))
		}
		ok(w.Close())
		events[loc] = w.Events()
		ok(otf2.WriteLocalDefs(filepath.Join(base, strconv.FormatUint(uint64(loc), 10)+".def"),
			[]*otf2.MappingTable{otf2.OptimalMapping(otf2.MappingString, []uint64{0, 1, 2, 3, 9})},
			[]otf2.ClockOffset{{Time: 1000, Offset: 100 * int64(rank), StdDev: 1},
				{Time: 2000, Offset: 110 * int64(rank), StdDev: 1}}, 0))
	}
	w, err := otf2.CreateGlobalDefWriter(filepath.Join(dir, "traces.def"), 0)
	ok(err)
	ok(w.ClockProperties(1_000_000_000, 0, 1<<40, 1_700_000_000_000_000_000))
	for i, s := range []string{"", "machine", "node", "rank 0", "rank 1", "thread", "ncclAllReduce", "SEQ", "ALGO",
		"ring", "world", "GPU::UUID", "NCCL API"} {
		ok(w.String(otf2.StringRef(i), s))
	}
	ok(w.Attribute(0, 7, otf2.TypeUint64, 0))
	ok(w.Attribute(1, 8, otf2.TypeString, 0))
	ok(w.SystemTreeNode(0, 1, 1, otf2.UndefinedSystemTreeNode))
	ok(w.SystemTreeNode(1, 2, 2, 0))
	ok(w.SystemTreeNodeDomain(1, otf2.SystemTreeDomainSharedMemory))
	ok(w.SystemTreeNodeProperty(1, 11, otf2.TypeString, 9))
	for rank, loc := range locations {
		ok(w.LocationGroup(otf2.LocationGroupRef(rank), otf2.StringRef(3+rank), otf2.LocationGroupTypeProcess, 1,
			otf2.UndefinedLocationGroup))
		ok(w.Location(loc, 5, otf2.LocationTypeCPUThread, events[loc], otf2.LocationGroupRef(rank)))
	}
	ok(w.Region(0, 6, 6, 0, otf2.RegionRoleCollAll2All, otf2.ParadigmCUDA, 0, otf2.UndefinedString, 0, 0))
	ok(w.Group(0, 12, otf2.GroupTypeRegions, otf2.ParadigmUnknown, 0, []uint64{0}))
	ok(w.Group(1, 0, otf2.GroupTypeCommLocations, otf2.ParadigmMPI, 0, []uint64{0, 1 << 32}))
	ok(w.Group(2, 0, otf2.GroupTypeCommGroup, otf2.ParadigmMPI, 0, []uint64{0, 1}))
	ok(w.Comm(0, 10, 2, otf2.UndefinedComm, 0))
	count := w.Count()
	ok(w.Close())
	m, err := otf2.CreateMarkerWriter(filepath.Join(dir, "traces.marker"), 0)
	ok(err)
	ok(m.DefMarker(0, "NCCL", "loss", otf2.MarkerSeverityHigh))
	ok(m.Marker(1500, 10, 0, otf2.MarkerScopeGlobal, 1<<64-1, "3 events lost"))
	ok(m.Close())
	anchor := filepath.Join(dir, "traces.otf2")
	ok(otf2.WriteAnchor(anchor, &otf2.Anchor{
		Locations: 2, GlobalDefs: count, MachineName: "m", Creator: "test", Description: "sample", TraceID: 1,
		Properties: []otf2.Property{{Name: "NCCL_OTF2::VERSION", Value: "1"}},
	}))
	return anchor
}
