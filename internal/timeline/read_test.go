// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/matrix"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/waits"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/effect"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
	"github.com/nccl-otf2/nccl-otf2/scorep"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

const (
	t0 = shardtest.Epoch + 1_000_000
	us = 1000
)

// makeJob is a job of two hosts with two GPUs in each process, a communicator of all four ranks with a network, and
// launches of one and of several operations.
func makeJob(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for h := range 2 {
		p := shardtest.New(t, dir, fmt.Sprint("p", h)).On(fmt.Sprint("node", h), 100).Launched("slurm", h, 2)
		for g := range 2 {
			p.GPU(g, fmt.Sprint("GPU-", h, g), "")
		}
		for g := range 2 {
			rank := 2*h + g
			c := p.Comm(description.Comm{ID: 1, Name: "world", NRanks: 4, Rank: rank, GPU: g, InitTime: t0})
			late := uint64(rank) * 10 * us
			p.AllReduce(c, t0+100*us+late, t0+200*us, 1000)
			p.AllReduce(c, t0+300*us+late, t0+400*us, 1000)
			p.Plan(c, []shardtest.Op{
				{Function: "AllGather", Begin: t0 + 500*us, End: t0 + 540*us, Sent: 1200, Received: 1200, Count: 100},
				{Function: "ReduceScatter", Begin: t0 + 500*us, End: t0 + 540*us, Sent: 2400, Received: 2400,
					Count: 200},
			})
		}
		p.Call("ncclAllReduce", t0+90*us, t0+95*us)
		p.Finish()
	}
	_, err := scorep.Unify(dir, nil)
	testkit.Require(t, err == nil, "%v", err)
	return filepath.Join(dir, "traces.otf2")
}

func read(t testing.TB, anchor string) *Data {
	t.Helper()
	a := testkit.Value(otf2.Open(anchor, nil))(t)
	d := testkit.Value(Read(a, nil))(t)
	return d
}

func readJob(t testing.TB) *Data { return read(t, makeJob(t)) }

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
	testkit.Same(t, want, got.String())
}

// Parts of collectives are brought together, also those that were launched at once, and waits are those of the report.
func TestInstancesAndWaits(t *testing.T) {
	d := readJob(t)
	s := show(t, d)
	rowOf := func(bar uint64) string { return d.rows[s.bars[bar][0]].name }
	seen := map[string]int{}
	for i, in := range s.instances {
		parts := in[5:]
		seen[fmt.Sprintf("%s %d of %d parts", d.functions[in[2]], in[3], len(parts)/2)]++
		for rank := range len(parts) / 2 {
			if parts[2*rank] != uint64(rank) || rowOf(parts[2*rank+1]) != fmt.Sprintf("world rank %d", rank) {
				t.Errorf("part %d of %d is of rank %d on %s", rank, i, parts[2*rank], rowOf(parts[2*rank+1]))
			}
		}
	}
	want := map[string]int{"AllReduce 0 of 4 parts": 1, "AllReduce 1 of 4 parts": 1, "AllGather 0 of 4 parts": 1,
		"ReduceScatter 0 of 4 parts": 1}
	testkit.Same(t, want, seen)
	var first, later uint64
	for _, bar := range s.bars {
		waited, wait := bar[6], bar[8+bar[7]:]
		if waited == 0 {
			continue
		}
		testkit.Equal(t, d.ranks[wait[1]].name, "Rank 1 GPU 1", "waited for")
		if wait[2] == 1 {
			first += waited
		} else {
			later += waited
		}
	}
	// Three ranks wait 30, 20 and 10 µs for the last one, twice.
	testkit.Check(t, first == 60*us && later == 60*us && later == d.report.WaitStates.Total.Waited &&
		first == d.report.WaitStates.StartUp.Waited, "waited %d at first and %d later; the report says %d and %d",
		first, later, d.report.WaitStates.StartUp.Waited, d.report.WaitStates.Total.Waited)
}

// Archives of other tools give a page, too, which shows what is in them.
func TestForeignArchives(t *testing.T) {
	anchors := []string{}
	for _, pattern := range []string{"../../tests/jobtest/testdata/*/*.otf2", "../../otf2/testdata/*/*.otf2",
		"../../otf2/testdata/*/*/*.otf2"} {
		found := testkit.Value(filepath.Glob(pattern))(t)
		anchors = append(anchors, found...)
	}
	testkit.Require(t, len(anchors) >= 3, "%d archives only", len(anchors))
	read := 0
	for _, anchor := range anchors {
		a, err := otf2.Open(anchor, nil)
		if err != nil {
			continue // what package otf2 does not read
		}
		read++
		d, err := Read(a, nil)
		if err != nil {
			t.Errorf("%s: %v", anchor, err)
			continue
		}
		err = d.WritePage(io.Discard, Options{})
		testkit.Check(t, err == nil, "%s: %v", anchor, err)
		got, want := show(t, d), expect(t, a, d)
		t.Run(anchor, func(t *testing.T) { got.compare(t, &want) })
		d.Close()
		a.Close()
	}
	testkit.Check(t, read >= 3, "%d of %d archives were read", read, len(anchors))
}

// Damage is told, and what is whole is shown.
func TestDamagedArchive(t *testing.T) {
	anchor := makeJob(t)
	files, _ := filepath.Glob(filepath.Join(filepath.Dir(anchor), "traces", "*.evt"))
	for i, f := range files {
		b := testkit.Read(t, f)
		if err := os.Remove(f); err != nil { // it may be a link
			t.Fatal(err)
		}
		testkit.Must(t, os.WriteFile(f, b[:len(b)*(i+3)/(len(files)+4)], 0o600))
	}
	d := read(t, anchor)
	testkit.Check(t, len(d.problems) != 0, "nothing is said of the damage")
	var page bytes.Buffer
	testkit.Must(t, d.WritePage(&page, Options{}))
}

// randomArchive writes events as they can come, and as they should not: names of what asked for something that come
// late, twice, in another process or never; regions that lie very deep, are not defined or never end.
func randomArchive(t *rapid.T, dir string) *otf2.Archive {
	w, err := otf2.Create(dir, "traces", nil)
	testkit.Must(t, err)
	defer w.Abort()
	must := func(errs ...error) {
		for _, err := range errs {
			testkit.Must(t, err)
		}
	}
	defs := w.Definitions()
	texts := uint32(0)
	text := func(s string) otf2.StringRef {
		must(defs.String(otf2.StringRef(texts), s))
		texts++
		return otf2.StringRef(texts - 1)
	}
	must(defs.ClockProperties(1e9, 1000, 1e6, 0))
	for _, a := range regions.Attributes {
		must(defs.Attribute(a.Ref, text(a.Name), a.Type, 0))
	}
	must(defs.SystemTreeNode(0, text("one"), text("node"), otf2.UndefinedSystemTreeNode),
		defs.SystemTreeNode(1, text("two"), text("node"), otf2.UndefinedSystemTreeNode))
	const processes, threads = 3, 2
	var members, ranks []uint64
	for p := range uint64(processes) {
		must(defs.LocationGroup(otf2.LocationGroupRef(p), text(fmt.Sprint("Rank ", p)), otf2.LocationGroupTypeProcess,
			otf2.SystemTreeNodeRef(p/2), otf2.UndefinedLocationGroup))
		for i := range uint64(threads) {
			must(defs.Location(otf2.LocationRef(p*threads+i), text(fmt.Sprint("Thread ", i)),
				otf2.LocationTypeCPUThread, 1, otf2.LocationGroupRef(p)))
		}
		members, ranks = append(members, p*threads), append(ranks, p)
	}
	must(defs.Region(0, text("outer"), 0, 0, otf2.RegionRoleFunction, otf2.ParadigmUser, 0, otf2.UndefinedString, 0, 0),
		defs.Region(1, text("barrier"), 0, 0, otf2.RegionRoleBarrier, otf2.ParadigmMPI, 0, otf2.UndefinedString, 0, 0),
		defs.Group(0, 0, otf2.GroupTypeCommLocations, otf2.ParadigmMPI, 0, members),
		defs.Group(1, 0, otf2.GroupTypeCommGroup, otf2.ParadigmMPI, 0, ranks),
		defs.Comm(0, text("world"), 1, otf2.UndefinedComm, 0),
		defs.RmaWin(0, text("window"), 0, 0))
	var writers [processes * threads]*otf2.EventWriter
	for l := range writers {
		writers[l] = testkit.Value(w.Events(otf2.LocationRef(l)))(t)
	}
	deep := rapid.IntRange(0, maxDepth+3).Draw(t, "depth")
	var open [len(writers)][]otf2.RegionRef
	time := otf2.Timestamp(1000)
	put := uint64(0)
	for range rapid.IntRange(0, 200).Draw(t, "events") {
		time += otf2.Timestamp(rapid.IntRange(1, 9).Draw(t, "step"))
		l := rapid.IntRange(0, len(writers)-1).Draw(t, "location")
		var list otf2.AttributeList
		for _, attribute := range []otf2.AttributeRef{regions.AttrEventID, regions.AttrParentID, regions.AttrSeq} {
			if v := rapid.Uint64Range(0, 12).Draw(t, "value"); v%2 == 1 {
				list.Uint64(attribute, v)
			}
		}
		if rapid.Bool().Draw(t, "text") {
			list.String(regions.AttrDatatype, otf2.StringRef(rapid.Uint32Range(0, texts-1).Draw(t, "of")))
		}
		switch what := rapid.IntRange(0, 9).Draw(t, "what"); {
		case what == 0:
			must(writers[l].NonBlockingCollectiveRequest(time, &list, 1))
		case what == 1:
			put++
			must(writers[l].RmaPut(time, &list, 0, rapid.Uint32Range(0, processes).Draw(t, "remote"), put, put))
		case what == 2 && put > 0:
			must(writers[l].RmaOpCompleteNonBlocking(time, nil, 0, rapid.Uint64Range(1, put).Draw(t, "matching")))
		case what == 3 && l%threads == 0 && len(open[l]) > 0:
			must(writers[l].MpiCollectiveBegin(time, nil))
			time++
			must(writers[l].MpiCollectiveEnd(time, nil, otf2.CollectiveOpBarrier, 0, otf2.CollectiveRootNone, put,
				2*put))
		case len(open[l]) < deep && (what < 7 || len(open[l]) == 0):
			region := otf2.RegionRef(rapid.IntRange(0, 2).Draw(t, "region"))
			must(writers[l].Enter(time, &list, region))
			open[l] = append(open[l], region)
		case len(open[l]) > 0: // mostly the innermost one, some that overlap, and one that is not open
			at := len(open[l]) - 1
			if what == 9 {
				at = rapid.IntRange(-1, at).Draw(t, "left")
			}
			if at < 0 {
				must(writers[l].Leave(time, &list, 3))
				break
			}
			region := open[l][at]
			must(writers[l].Leave(time, &list, region))
			at = effect.NewestOpen(open[l], region, func(r *otf2.RegionRef) otf2.RegionRef { return *r })
			open[l] = slices.Delete(open[l], at, at+1)
		}
	}
	must(w.Close())
	a, err := otf2.Open(w.Path(), nil)
	must(err)
	return a
}

// Whatever an archive has in it, the page says the same as a model that holds all of it in memory, also where
// everything goes through files.
func TestPagesOfRandomArchives(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		a := randomArchive(t, filepath.Join(os.Getenv("TMPDIR"), fmt.Sprint(n)))
		defer a.Close()
		d := testkit.Value(readKeeping(a, nil, rapid.SampledFrom([]int{1, 200, keptBytes}).Draw(t, "kept"), nil))(t)
		defer d.Close()
		want := expect(t, a, d)
		for range 2 { // it can be written again
			got := show(t, d)
			got.compare(t, &want)
		}
	})
}

// discard takes blocks and looks once at what memory is used then.
type discard struct {
	at, blocks int
	used       uint64
}

func (s *discard) block([]byte) error {
	if s.blocks++; s.blocks == s.at {
		s.used = liveHeap()
	}
	return nil
}

// An archive of many blocks is shown as it is, and what is used of memory does not grow with it.
func TestLargeArchive(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	measure := func(regions uint64) (a *otf2.Archive, d *Data, used [2]int64) {
		size := jobtest.NewLarge(regions*16/5, 2)
		size.Jitter = true
		anchor := testkit.Value(size.Write(t.TempDir()))(t)
		before := liveHeap()
		a = testkit.Value(otf2.Open(anchor, nil))(t)
		d = testkit.Value(readKeeping(a, nil, 64<<10, nil))(t)
		testkit.Require(t, d.layout.total == uint32(size.Regions()),
			"%d regions, want %d", d.layout.total, size.Regions())
		used[0] = int64(liveHeap() - before)
		half := &discard{at: d.blocks() / 2}
		testkit.Value(d.write(half, nil))(t)
		used[1] = int64(half.used - before)
		return a, d, used
	}
	a, d, few := measure(50_000)
	small := d.layout.total
	d.Close()
	a.Close()
	a, d, many := measure(200_000)
	defer d.Close()
	defer a.Close()
	for i, c := range []struct {
		when   string
		chance int64 // bytes: how many blocks are being packed just then
	}{{"read", 1 << 19}, {"half written", 4 << 20}} {
		if each := float64(many[i]-few[i]-c.chance) / float64(d.layout.total-small); each > 3 {
			t.Errorf("%s: %d KiB of memory for %d regions, and %d KiB for %d: %.1f bytes for each more", c.when,
				few[i]>>10, small, many[i]>>10, d.layout.total, each)
		}
	}
	n, lanes := d.blocks(), len(d.layout.lanes)
	testkit.Check(t, n >= 6*lanes, "%d blocks only, of %d lanes", n, lanes)
	got, want := show(t, d), expect(t, a, d)
	got.compare(t, &want)
}

func liveHeap() uint64 {
	runtime.GC()
	runtime.GC() // pools keep what they have for one collection
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Transfers that are under way when later ones begin are found from both ends.
func TestNodesOfTransfers(t *testing.T) {
	d := &Data{defs: new(otf2.Definitions), rows: []row{{parent: -1}, {bars: new(bars), parent: 0}},
		store: newStore(keptBytes), report: new(operations.Report), matrix: new(matrix.Report)}
	d.report.WaitStates = new(waits.States)
	r := newReader(d)
	take := r.newLane()
	event := func(kind otf2.EventKind, time uint64, args ...uint64) {
		take(&otf2.Event{Kind: kind, Time: otf2.Timestamp(time), Args: args})
	}
	for i := range uint64(40) {
		event(otf2.EventRmaPut, 10*i, 0, 0, 8, i)
		if i != 3 {
			event(otf2.EventRmaOpCompleteNonBlocking, 10*i+5, 0, i)
		}
	}
	event(otf2.EventRmaOpCompleteNonBlocking, 1030, 0, 3)
	r.finishReading()
	d.layout = newLayout(d)
	s := show(t, d)
	var got []uint64
	for _, n := range s.nodes {
		got = append(got, n[0], n[1])
	}
	testkit.Same(t, []uint64{0, 1030, 160, 1030, 320, 1030}, got)
	testkit.Check(t, s.transfers[3][2] == 1001 && s.transfers[4][2] == 6, "transfers took %d and %d, less 1",
		s.transfers[3][2], s.transfers[4][2])
}
