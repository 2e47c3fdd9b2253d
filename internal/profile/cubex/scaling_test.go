// SPDX-License-Identifier: Apache-2.0

package cubex

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/profile"
	"github.com/nccl-otf2/nccl-otf2/internal/profile/cubex/cubextest"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// synthetic are the definitions of a job of so many ranks with one communicator, and what each has summed up.
func synthetic(t testing.TB, ranks int) (*otf2.Definitions, func(rank int) *profile.Aggregate) {
	d := new(otf2.Definitions)
	text := func(s string) otf2.StringRef {
		d.Strings = append(d.Strings, otf2.String{Self: otf2.StringRef(len(d.Strings)), Text: s})
		return otf2.StringRef(len(d.Strings) - 1)
	}
	d.SystemTreeNodes = []otf2.SystemTreeNode{{Name: text("Linux"), Class: text("machine"),
		Parent: otf2.UndefinedSystemTreeNode}}
	var locations, members []uint64
	for r := range ranks {
		if r%8 == 0 {
			d.SystemTreeNodes = append(d.SystemTreeNodes,
				otf2.SystemTreeNode{Self: otf2.SystemTreeNodeRef(1 + r/8), Name: text(fmt.Sprint("n", r/8)),
					Class: text("node")})
		}
		d.LocationGroups = append(d.LocationGroups,
			otf2.LocationGroup{Self: otf2.LocationGroupRef(r), Name: text(fmt.Sprint("Rank ", r)),
				Type: otf2.LocationGroupTypeProcess, SystemTreeParent: otf2.SystemTreeNodeRef(1 + r/8),
				Creator: otf2.UndefinedLocationGroup})
		locations, members = append(locations, 1<<32|uint64(r)), append(members, uint64(r))
	}
	for r := range ranks {
		g := otf2.LocationGroupRef(ranks + r)
		d.LocationGroups = append(d.LocationGroups,
			otf2.LocationGroup{Self: g, Name: text(fmt.Sprintf("Rank %d GPU 0", r)),
				Type: otf2.LocationGroupTypeAccelerator, SystemTreeParent: otf2.SystemTreeNodeRef(1 + r/8),
				Creator: otf2.LocationGroupRef(r)})
		d.Locations = append(d.Locations,
			otf2.Location{Self: otf2.LocationRef(r), Name: text("Thread 0"), Type: otf2.LocationTypeCPUThread,
				Group: otf2.LocationGroupRef(r)},
			otf2.Location{Self: otf2.LocationRef(locations[r]), Name: text(fmt.Sprintf("world rank %d", r)),
				Type: otf2.LocationTypeAcceleratorStream, Group: g})
	}
	d.Groups = []otf2.Group{{Self: 0, Name: text(""), Type: otf2.GroupTypeCommLocations, Paradigm: otf2.ParadigmMPI,
		Members: locations},
		{Self: 1, Name: text("world"), Type: otf2.GroupTypeCommGroup, Paradigm: otf2.ParadigmMPI, Members: members}}
	d.Comms = []otf2.Comm{{Self: 0, Name: text("world"), Group: 1, Parent: otf2.UndefinedComm}}
	d.Reindex()
	return d, func(rank int) *profile.Aggregate { return sums(t, ranks, rank, 100, nil) }
}

// sums is what a rank has summed up of calls and AllReduces of all classes of sizes, rounds of them. begin, if set,
// says when each begins and ends.
func sums(t testing.TB, ranks, rank, rounds int, begin func(i uint64) (b, e uint64)) *profile.Aggregate {
	p := &description.Process{Comms: []description.Comm{{ID: 1, NRanks: ranks, Rank: rank}},
		Strings: []string{"gpu", "RING", "LL", "ncclInt8"},
		Regions: []description.Region{{Name: "ncclAllReduce", Group: regions.GroupAPI},
			{Name: "AllReduce", Group: regions.GroupCollectives}}}
	g := profile.NewProcess(p)
	thread := g.EventWriter(description.Location{Number: 0, Kind: description.KindThread, Comm: -1})
	gpu := g.EventWriter(description.Location{Number: 1, Kind: description.KindRank, Comm: 0})
	for i := range uint64(rounds) {
		at := otf2.Timestamp(1e9 + 1000*i)
		b, e := uint64(at)+10, uint64(at)+20+i%7
		if begin != nil {
			b, e = begin(i)
		}
		a := new(otf2.AttributeList)
		a.Uint64(regions.AttrOrdinal, i)
		a.String(regions.AttrDatatype, 3)
		a.Uint64(regions.AttrCount, 1<<(5*(i%7)))
		testkit.Must(t, thread.Enter(at, a, 0))
		testkit.Must(t, thread.Leave(at+5, nil, 0))
		a.String(regions.AttrAlgo, 1)
		a.String(regions.AttrProto, 2)
		a.String(regions.AttrTimingSource, 0)
		testkit.Must(t, gpu.Enter(otf2.Timestamp(b), a, 1))
		testkit.Must(t, gpu.MpiCollectiveBegin(otf2.Timestamp(b), nil))
		testkit.Must(t, gpu.MpiCollectiveEnd(otf2.Timestamp(e), nil, otf2.CollectiveOpAllreduce, 0,
			otf2.CollectiveRootNone, 8, 8))
		testkit.Must(t, gpu.Leave(otf2.Timestamp(e), nil, 1))
	}
	return g.Aggregate()
}

// memory is what is in use after all garbage is gone.
func memory() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Memory and file grow with ranks × call paths, and with nothing else.
func TestMemoryIsLinearInRanks(t *testing.T) {
	const paths = 7 + 7 + 1 // that a rank has values at: sizes of calls and operations, the program
	perRank := make(map[int]float64)
	for _, ranks := range []int{2, 20, 200, 2000} {
		before := memory()
		d, aggregate := synthetic(t, ranks)
		b := newBuilder(d)
		for r := range ranks {
			b.add(aggregate(r), func(n uint64) (otf2.LocationRef, bool) {
				return otf2.LocationRef(n<<32 | uint64(r)), true
			})
		}
		p := b.build()
		used := float64(memory()-before) / float64(ranks)
		perRank[ranks] = used
		file := filepath.Join(t.TempDir(), "p.cubex")
		testkit.Must(t, p.Write(file, false))
		written := memory() - before
		info := testkit.Value(os.Stat(file))(t)
		cells := ranks * paths
		t.Logf("%4d ranks: %.0f bytes of memory per rank and call path, after writing %.0f; %.0f bytes of file", ranks,
			used/paths,
			float64(written)/float64(cells), float64(info.Size())/float64(cells))
		m := cubextest.Load(t, file)
		testkit.Require(t, len(m.Locations) == 2*ranks, "%d locations", len(m.Locations))
		got := m.Sum("visits", func(int) bool { return true })
		testkit.Check(t, got == float64(ranks*(100+100+1)), "%d ranks: %g visits", ranks, got)
		runtime.KeepAlive(p)
	}
	testkit.Check(t, perRank[2000] <= 1.3*perRank[200],
		"%.0f bytes per rank of 200, %.0f of 2000", perRank[200], perRank[2000])
	testkit.Check(t, perRank[2000]/paths <= 2000, "%.0f bytes per rank and call path", perRank[2000]/paths)
}
