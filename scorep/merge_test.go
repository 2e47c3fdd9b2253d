// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/provenance"
	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/internal/need"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
	"github.com/nccl-otf2/nccl-otf2/scorep/files"
	"github.com/nccl-otf2/nccl-otf2/scorep/measurement"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

// trace is an archive of Score-P and what is known of the program behind it.
type trace struct {
	dir  string
	pids []int // by location group
	host string
	// ticksPerNs of the timer, and the CLOCK_MONOTONIC_RAW of its begin.
	ticksPerNs float64
}

var (
	mpiTSC = trace{dir: "../tests/jobtest/testdata/scorep-mpi",
		pids: []int{13575, 13576, 13577, 13578}, host: "vm", ticksPerNs: 2.5}
	mpiRaw  = trace{dir: "testdata/mpi4-clock_gettime", host: "vm", ticksPerNs: 1}
	pthread = trace{dir: "testdata/user-pthread", pids: []int{13727}, host: "vm", ticksPerNs: 2.5}
)

// processIDs reads the process ids of a trace from the first event of each process.
func (tr *trace) processIDs(t testing.TB, a *otf2.Archive) []int {
	t.Helper()
	var pids []int
	for i, g := range a.Defs.LocationGroups {
		for e, err := range a.EventsOf(otf2.LocationRef(g.Self)) {
			testkit.Must(t, err)
			pids = append(pids, int(e.Attributes[0].Bits))
			break
		}
		testkit.Require(t, tr.pids == nil || pids[i] == tr.pids[i], "process %d is %d of %d", i, pids[i], tr.pids)
	}
	return pids
}

// raw is what CLOCK_MONOTONIC_RAW shows at a tick of a trace's timer, as the tests have it.
func (tr *trace) raw(tick uint64) uint64 { return uint64(float64(tick) / tr.ticksPerNs) }

// tuples are readings of the clocks every so many nanoseconds, which are off the true line by some nanoseconds.
func (tr *trace) tuples(first, last uint64, every uint64) (all []provenance.ClockTuple) {
	for i, raw := 0, first; ; i, raw = i+1, raw+every {
		ticks := uint64(2.5*float64(raw)) + uint64(i*37%101)
		all = append(all, provenance.ClockTuple{Ticks: ticks, Raw: raw, Mono: raw - 12345,
			Real: shardtest.Epoch + raw - first + uint64(i)})
		if raw > last {
			return all
		}
	}
}

// job leaves, in a new folder, shards of the trace's processes: calls and operations all through it. change may say
// more of each process.
func (tr *trace) job(t testing.TB, change func(rank int, p *shardtest.Process)) string {
	t.Helper()
	dir := t.TempDir()
	a := open(t, filepath.Join(tr.dir, "traces.otf2"))
	c := a.Defs.Clock
	begin, end := tr.raw(c.Offset), tr.raw(c.Offset+c.Length)
	pids := tr.processIDs(t, a)
	for rank, pid := range pids {
		p := shardtest.New(t, dir, fmt.Sprintf("uuid-%d", rank)).On(tr.host, pid).Launched("openmpi", rank, len(pids))
		p.Shard.PIDStart = uint64(100 + rank)
		anchor := begin - 3_000_000 + uint64(rank)*1000
		p.Shard.Clock = provenance.Clock{Source: "tsc", AnchorRaw: anchor,
			AnchorReal: shardtest.Epoch + uint64(rank)*777, Tuples: tr.tuples(anchor, end, (end-begin)/23)}
		p.Shard.Locations[0].TID = pid
		at := func(raw uint64) uint64 { return raw - p.Shard.Clock.AnchorRaw + p.Shard.Clock.AnchorReal }
		p.GPU(0, fmt.Sprintf("GPU-%04d", rank), fmt.Sprintf("0000:%02x:00.0", rank))
		p.Comm(description.Comm{ID: 0xabcdef, Name: "world", NRanks: len(pids), Rank: rank, NNodes: 1,
			InitTime: at(begin + 1_000_000)})
		const calls = 40
		step := (end - begin - 2_000_000) / (calls + 1)
		for i := range uint64(calls) {
			t := at(begin + 1_000_001 + i*step)
			p.Call("ncclAllReduce", t, t+step/9)
			p.AllReduce(0, t+step/10, t+step/2, 1024)
		}
		if change != nil {
			change(rank, p)
		}
		p.Destroy(0, at(end-500_000))
		p.Finish()
	}
	return dir
}

func merge(t testing.TB, measurement, dir string, opts *MergeOptions) (*MergeResult, *otf2.Archive) {
	t.Helper()
	res := testkit.Value(Merge(measurement, dir, filepath.Join(t.TempDir(), "merged"), opts))(t)
	return res, open(t, res.Archive)
}

func integer(v uint64) *big.Rat {
	return new(big.Rat).SetFrac(new(big.Int).SetUint64(v), big.NewInt(1))
}

// expected is the exact time, in the measurement's clock, of a time of a process: by its readings of the clocks, and on
// by the measurement's corrections of the rank. It is computed here in another way than by transfer.
func (tr *trace) expected(p *description.Process, offsets []otf2.ClockOffset, at uint64) *big.Rat {
	rat := func(v uint64) *big.Rat { r, _ := new(big.Rat).SetString(strconv.FormatUint(v, 10)); return r }
	raw := rat(at - p.Clock.AnchorReal + p.Clock.AnchorRaw)
	ticks := raw
	if tr.ticksPerNs != 1 {
		k := slices.IndexFunc(p.Clock.Tuples, func(c provenance.ClockTuple) bool { return rat(c.Raw).Cmp(raw) >= 0 })
		if k < 0 {
			k = len(p.Clock.Tuples) - 1
		}
		a, b := p.Clock.Tuples[max(k, 1)-1], p.Clock.Tuples[max(k, 1)]
		share := new(big.Rat).Quo(new(big.Rat).Sub(raw, rat(a.Raw)), rat(b.Raw-a.Raw))
		ticks = new(big.Rat).Add(rat(a.Ticks), share.Mul(share, rat(b.Ticks-a.Ticks)))
	}
	if len(offsets) < 2 {
		return ticks
	}
	o0, o1 := offsets[0], offsets[1]
	share := new(big.Rat).Quo(new(big.Rat).Sub(ticks, rat(uint64(o0.Time))), rat(uint64(o1.Time-o0.Time)))
	share.Mul(share, new(big.Rat).SetInt64(o1.Offset-o0.Offset))
	share.Add(share, new(big.Rat).SetInt64(o0.Offset))
	return share.Add(share, ticks)
}

// text is an event without its location, for comparisons.
func eventText(e *otf2.Event) string {
	return fmt.Sprintf("%d %v %v %v", e.Time, e.Kind, e.Args, e.Attributes)
}

func eventsOf(t testing.TB, a *otf2.Archive, l otf2.LocationRef) (all []string) {
	t.Helper()
	for e, err := range a.EventsOf(l) {
		testkit.Must(t, err)
		all = append(all, eventText(e))
	}
	return all
}

// timesByPrint gives the times of a location's events as otf2-print shows them, timesByPython as the Python reader
// does.
func timesByPrint(t testing.TB, anchor string) map[uint64][]uint64 {
	t.Helper()
	out := testkit.Value(exec.Command(need.Reference(t, "otf2-print"), anchor).Output())(t)
	line := regexp.MustCompile(`(?m)^[A-Z_]+ +(\d+) +(\d+) `)
	all := make(map[uint64][]uint64)
	for _, m := range line.FindAllSubmatch(out, -1) {
		l, _ := strconv.ParseUint(string(m[1]), 10, 64)
		at, _ := strconv.ParseUint(string(m[2]), 10, 64)
		all[l] = append(all[l], at)
	}
	return all
}

func timesByPython(t testing.TB, anchor string) map[uint64][]uint64 {
	t.Helper()
	const script = `
import sys, otf2
with otf2.reader.open(sys.argv[1]) as trace:
    ids = {l: i for i, l in enumerate(trace.definitions.locations)}
    for l, e in trace.events:
        print(l._ref, e.time)
`
	out, err := exec.Command("/usr/bin/python3", "-c", script, anchor).Output()
	if err != nil {
		t.Fatalf("python3-otf2: %v\n%s", err, tail(out))
	}
	all := make(map[uint64][]uint64)
	for line := range strings.Lines(string(out)) {
		var l, at uint64
		_, err := fmt.Sscan(line, &l, &at)
		testkit.Require(t, err == nil, "%q: %v", line, err)
		all[l] = append(all[l], at)
	}
	return all
}

func sameFile(t testing.TB, a, b string) bool {
	t.Helper()
	x := testkit.Value(os.Stat(a))(t)
	y := testkit.Value(os.Stat(b))(t)
	return os.SameFile(x, y)
}

func TestMergeKeepsScorepAndPlacesNCCLToTheTick(t *testing.T) {
	for _, c := range []struct {
		name string
		tr   trace
	}{{"tsc", mpiTSC}, {"clock_gettime", mpiRaw}, {"pthread", pthread}} {
		t.Run(c.name, func(t *testing.T) {
			measurement := linkable(t, c.tr.dir)
			dir := c.tr.job(t, nil)
			res, merged := merge(t, measurement, dir, nil)
			accept(t, res.Archive)
			theirs := open(t, filepath.Join(measurement, "traces.otf2"))
			n := len(theirs.Defs.LocationGroups)
			testkit.Check(t, res.Paired == n && res.ScorepOnly+res.NCCLOnly == 0 && res.Copied == 0 &&
				len(res.Problems) == 0, "%+v", res)
			compareDefinitions(t, theirs.Defs, merged.Defs)
			for _, l := range theirs.Defs.Locations {
				for _, suffix := range []string{".evt", ".def"} {
					name := filepath.Join("traces", files.Name(l.Self, suffix))
					if !sameFile(t, filepath.Join(measurement, name), filepath.Join(filepath.Dir(res.Archive), name)) {
						t.Errorf("%s is not linked", name)
					}
				}
				got, want := eventsOf(t, merged, l.Self), eventsOf(t, theirs, l.Self)
				testkit.Check(t, slices.Equal(got, want), "events of location %d differ", l.Self)
			}
			c.tr.checkTimes(t, dir, theirs, merged)
		})
	}
}

// linkable copies a trace next to where tests write, so that its files can be linked.
func linkable(t testing.TB, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "scorep")
	testkit.Must(t, os.CopyFS(to, os.DirFS(dir)))
	return to
}

// compareDefinitions checks that the definitions of a trace are there as they were, and first.
func compareDefinitions(t testing.TB, theirs, merged *otf2.Definitions) {
	t.Helper()
	testkit.Check(t, slices.Equal(merged.Order[:len(theirs.Order)], theirs.Order),
		"Score-P's definitions come in another order")
	testkit.Check(t, merged.Clock == theirs.Clock, "clock: %+v, was %+v", merged.Clock, theirs.Clock)
	for _, s := range theirs.Strings {
		testkit.Check(t, merged.String(s.Self) == s.Text,
			"string %d: %q, was %q", s.Self, merged.String(s.Self), s.Text)
	}
	for i := range theirs.Groups {
		a, b := &theirs.Groups[i], &merged.Groups[i]
		testkit.Check(t, a.Self == b.Self && a.Name == b.Name && a.Type == b.Type && a.Paradigm == b.Paradigm &&
			slices.Equal(a.Members, b.Members), "group %d: %+v, was %+v", i, b, a)
	}
	for name, same := range map[string]bool{
		"regions":   slices.Equal(merged.Regions[:len(theirs.Regions)], theirs.Regions),
		"locations": slices.Equal(merged.Locations[:len(theirs.Locations)], theirs.Locations),
		"groups":    slices.Equal(merged.LocationGroups[:len(theirs.LocationGroups)], theirs.LocationGroups),
		"nodes":     slices.Equal(merged.SystemTreeNodes[:len(theirs.SystemTreeNodes)], theirs.SystemTreeNodes),
		"comms":     slices.Equal(merged.Comms[:len(theirs.Comms)], theirs.Comms),
		"callpaths": slices.Equal(merged.Callpaths, theirs.Callpaths),
	} {
		testkit.Check(t, same, "%s of Score-P differ", name)
	}
}

// checkTimes compares our events, by three readers, with the exact times.
func (tr *trace) checkTimes(t testing.TB, dir string, theirs, merged *otf2.Archive) {
	t.Helper()
	byPrint, byPython := timesByPrint(t, merged.Path()), timesByPython(t, merged.Path())
	half := big.NewRat(1, 2)
	worst, checked, nearest := new(big.Rat), 0, 0
	for rank := range theirs.Defs.LocationGroups {
		shardDir := filepath.Join(dir, "shards", fmt.Sprintf("uuid-%d", rank))
		p := testkit.Value(experiment.Read(shardDir))(t)
		_, offsets, err := theirs.LocalDefs(otf2.LocationRef(rank))
		testkit.Must(t, err)
		for _, l := range p.Locations {
			self := rowOf(t, merged, rank, len(theirs.Defs.Locations), int(l.Number))
			name := filepath.Join(strings.TrimSuffix(merged.Path(), ".otf2"), files.Name(self, ".evt"))
			testkit.Check(t, sameFile(t, filepath.Join(shardDir, fmt.Sprintf("%d.evt", l.Number)), name),
				"%s is not linked", name)
			mapped, raw := eventsWithTimes(t, merged, self, false), eventsWithTimes(t, merged, self, true)
			testkit.Require(t, uint64(len(mapped)) == l.Events && len(byPrint[uint64(self)]) == len(mapped) &&
				len(byPython[uint64(self)]) == len(mapped),
				"%s: %d events, otf2-print has %d, python3-otf2 %d, there were %d", l.Name, len(mapped),
				len(byPrint[uint64(self)]), len(byPython[uint64(self)]), l.Events)
			for i, got := range mapped {
				if byPrint[uint64(self)][i] != got || byPython[uint64(self)][i] != got {
					t.Fatalf("%s event %d: %d here, %d by otf2-print, %d by python3-otf2", l.Name, i, got,
						byPrint[uint64(self)][i], byPython[uint64(self)][i])
				}
				off := new(big.Rat).Sub(integer(got), tr.expected(p, offsets, raw[i]))
				off.Abs(off)
				if off.Cmp(worst) > 0 {
					worst = off
				}
				checked++
				if off.Cmp(half) <= 0 {
					nearest++
				}
			}
		}
	}
	testkit.Check(t, checked != 0 && worst.Cmp(big.NewRat(1, 1)) < 0,
		"the worst of %d events is %s ticks off", checked, worst.FloatString(3))
	t.Logf("%d events, the worst %s ticks off the exact time, %d have the nearest tick", checked, worst.FloatString(3),
		nearest)
}

// rowOf is the location of a process's n-th row in a merged archive.
func rowOf(t testing.TB, a *otf2.Archive, rank, theirs, n int) otf2.LocationRef {
	t.Helper()
	for _, l := range a.Defs.Locations[theirs:] {
		if int(uint32(l.Self)) == rank {
			if n == 0 {
				return l.Self
			}
			n--
		}
	}
	t.Fatalf("process %d lacks a row", rank)
	return 0
}

func eventsWithTimes(t testing.TB, a *otf2.Archive, l otf2.LocationRef, raw bool) (times []uint64) {
	t.Helper()
	a = testkit.Value(otf2.Open(a.Path(), &otf2.ReadOptions{Raw: raw}))(t)
	for e, err := range a.EventsOf(l) {
		testkit.Must(t, err)
		times = append(times, uint64(e.Time))
	}
	return times
}

// A row that is not needed is left out, one that has more than Score-P is marked, and both stay on request.
func TestMergeShowsForwardedCallsOnce(t *testing.T) {
	measurement, filtered := withForwarded(t, mpiTSC.dir, "ncclAllReduce"), linkable(t, mpiTSC.dir)
	forwarded := func(more func(rank int, p *shardtest.Process)) func(int, *shardtest.Process) {
		return func(rank int, p *shardtest.Process) {
			p.Shard.Scorep = &provenance.Scorep{State: "on", Model: "none"}
			p.Shard.Counts.Scorep = map[string]uint64{"FORWARDED": 40}
			if more != nil {
				more(rank, p)
			}
		}
	}
	group := func(p *shardtest.Process) {
		at := uint64(p.Writer(0).LastTime())
		p.Call("ncclGroup", at+10, at+20)
	}
	var said strings.Builder
	for _, c := range []struct {
		name   string
		change func(rank int, p *shardtest.Process)
		keep   bool
	}{
		{"all forwarded", forwarded(nil), false},
		{"kept", forwarded(nil), true},
		{"groups, too", forwarded(func(_ int, p *shardtest.Process) { group(p) }), false},
		{"groups, kept", forwarded(func(_ int, p *shardtest.Process) { group(p) }), true},
		{"not all forwarded", forwarded(func(rank int, p *shardtest.Process) {
			if rank == 0 {
				p.Shard.Counts.Scorep["PAUSED"] = 1
			}
		}), false},
		{"some by other threads", forwarded(func(rank int, p *shardtest.Process) {
			p.Shard.Counts.Scorep["OTHER_THREADS"] = 3
		}), false},
		{"from another thread", forwarded(func(rank int, p *shardtest.Process) {
			if rank == 0 {
				p.Shard.Locations[0].TID++
			}
		}), false},
		{"from another thread that the substrate plugin names", forwarded(func(rank int, p *shardtest.Process) {
			p.Shard.Locations[0].TID++
			p.Shard.Scorep.Substrate = &provenance.ScorepSubstrate{Rank: rank,
				Threads: []provenance.ScorepThread{{TID: p.Shard.Locations[0].TID}}}
		}), true},
		{"without durations in Score-P", forwarded(
			func(rank int, p *shardtest.Process) { p.Shard.Scorep.Points = true }), false},
		{"Score-P lacks the region", forwarded(func(rank int, p *shardtest.Process) {
			at := uint64(p.Writer(0).LastTime())
			p.Call("ncclReduce", at+10, at+20)
		}), false},
		{"filtered by Score-P", forwarded(nil), false},
		{"nothing forwarded", nil, false},
	} {
		from := measurement
		if c.name == "filtered by Score-P" {
			from = filtered
		}
		res, merged := merge(t, from, mpiTSC.job(t, c.change), &MergeOptions{KeepForwarded: c.keep})
		accept(t, res.Archive)
		fmt.Fprintf(&said, "%s: %d left out, %d marked, problems %q\n", c.name, res.ThreadsLeftOut, res.ThreadsMarked,
			res.Problems)
		for _, l := range merged.Defs.Locations[4:] {
			if uint32(l.Self) != 0 { // not of MPI Rank 0
				continue
			}
			entered := make(map[string]bool)
			for e, err := range merged.EventsOf(l.Self) {
				testkit.Must(t, err)
				if e.Kind == otf2.EventEnter {
					entered[merged.Defs.String(merged.Defs.Region(otf2.RegionRef(e.Args[0])).Name)] = true
				}
			}
			fmt.Fprintf(&said, "  %s: %q\n", merged.Defs.String(l.Name), slices.Sorted(maps.Keys(entered)))
		}
	}
	golden.Text(t, "testdata/forwarded.txt", said.String())
}

// withForwarded copies a trace and gives it regions as the plugin has Score-P define them.
func withForwarded(t testing.TB, dir string, names ...string) string {
	t.Helper()
	return withDefinitions(t, dir, func(w *otf2.GlobalDefWriter, defs *otf2.Definitions) {
		text, region := otf2.StringRef(len(defs.Strings)), otf2.RegionRef(len(defs.Regions))
		_ = w.String(text, measurement.ForwardedFile)
		for i, name := range names {
			s := text + 1 + otf2.StringRef(i)
			_ = w.String(s, name)
			_ = w.Region(region+otf2.RegionRef(i), s, s, 0, otf2.RegionRoleFunction, otf2.ParadigmUser, 0, text, 0, 0)
		}
	})
}

// withDefinitions copies a trace and adds definitions to it.
func withDefinitions(t testing.TB, dir string, add func(w *otf2.GlobalDefWriter, defs *otf2.Definitions)) string {
	t.Helper()
	to := linkable(t, dir)
	a := open(t, filepath.Join(to, "traces.otf2"))
	path := filepath.Join(to, "traces.def")
	w := testkit.Value(otf2.CreateGlobalDefWriter(path, a.Anchor.DefChunkSize))(t)
	testkit.Must(t, w.Copy(path, a.Anchor.DefChunkSize))
	add(w, a.Defs)
	a.Anchor.GlobalDefs = w.Count()
	testkit.Must(t, w.Close())
	testkit.Must(t, otf2.WriteAnchor(filepath.Join(to, "traces.otf2"), a.Anchor))
	return to
}

// Processes that one side lacks stay, behind those of Score-P; ours go by the clock of one on the same machine, or by
// real time.
func TestMergeKeepsProcessesOfOneSide(t *testing.T) {
	dir := mpiTSC.job(t, func(rank int, p *shardtest.Process) {
		switch rank {
		case 1: // on the same machine, of another pid
			p.Shard.PID = 4711
		case 2: // on another machine
			p.On("elsewhere", 13577)
		}
	})
	measurement := linkable(t, mpiTSC.dir)
	res, merged := merge(t, measurement, dir, nil)
	accept(t, res.Archive)
	testkit.Check(t, res.Paired == 2 && res.ScorepOnly == 2 && res.NCCLOnly == 2, "%+v", res)
	var groups []string
	for _, g := range merged.Defs.LocationGroups {
		node := merged.Defs.SystemTreeNode(g.SystemTreeParent)
		groups = append(groups, fmt.Sprintf("%d %s on %s", g.Self, merged.Defs.String(g.Name),
			merged.Defs.String(node.Name)))
	}
	want := []string{
		"0 MPI Rank 0 on vm", "1 MPI Rank 1 on vm", "2 MPI Rank 2 on vm", "3 MPI Rank 3 on vm", "4 Rank 1 on vm",
		"5 Rank 2 on elsewhere",
		"6 MPI Rank 0 GPU 0 on CUDA Device 0", "7 Rank 1 GPU 0 on CUDA Device 0", "8 Rank 2 GPU 0 on CUDA Device 0",
		"9 MPI Rank 3 GPU 0 on CUDA Device 0",
	}
	for i := range groups { // their nodes' names have the PCI address
		groups[i], _, _ = strings.Cut(groups[i], " (")
	}
	testkit.Check(t, slices.Equal(groups, want), "groups %q", groups)
	// Rank 1 shares the clock of rank 0, which has no corrections; so its times differ from the exact ones of rank 0's
	// clock by rounding only. Its own readings do not count.
	theirs := open(t, filepath.Join(measurement, "traces.otf2"))
	_, offsets, err := theirs.LocalDefs(0)
	testkit.Must(t, err)
	zero := testkit.Value(experiment.Read(filepath.Join(dir, "shards", "uuid-0")))(t)
	one := testkit.Value(experiment.Read(filepath.Join(dir, "shards", "uuid-1")))(t)
	self := rowOf(t, merged, 4, 4, 0)
	mapped, raw := eventsWithTimes(t, merged, self, false), eventsWithTimes(t, merged, self, true)
	for i := range raw {
		at := raw[i] - one.Clock.AnchorReal + one.Clock.AnchorRaw - zero.Clock.AnchorRaw + zero.Clock.AnchorReal
		off := new(big.Rat).Sub(integer(mapped[i]), mpiTSC.expected(zero, offsets, at))
		if off.Abs(off).Cmp(big.NewRat(1, 1)) >= 0 {
			t.Fatalf("event %d is %s ticks off", i, off.FloatString(3))
		}
	}
}

// Score-P's microseconds are met by the readings of the real-time clock.
func TestMergeByRealTime(t *testing.T) {
	measurement := withDefinitions(t, mpiTSC.dir, func(*otf2.GlobalDefWriter, *otf2.Definitions) {})
	testkit.Must(t, os.WriteFile(filepath.Join(measurement, "scorep.cfg"),
		[]byte("SCOREP_VERBOSE=false\nSCOREP_TIMER='gettimeofday'\n"), 0o600))
	// The trace says 2.5 GHz, so what it shows as ticks are taken for microseconds of a real-time clock that far on.
	begin := open(t, filepath.Join(measurement, "traces.otf2")).Defs.Clock.Offset
	real := func(t uint64) uint64 { return (begin+t)*1000 + 300_000 }
	dir := mpiTSC.job(t, func(rank int, p *shardtest.Process) {
		for i := range p.Shard.Clock.Tuples {
			p.Shard.Clock.Tuples[i].Real = real(uint64(i) * 31_000_000)
		}
	})
	mergeByReadings(t, measurement, dir, "gettimeofday",
		func(c *provenance.ClockTuple) float64 { return float64(c.Real) / 1000 })
}

// From release 9 on, Score-P's "clock_gettime" is the clock that the machine's time service steers.
func TestMergeBySteeredClock(t *testing.T) {
	measurement := linkable(t, mpiRaw.dir)
	a := open(t, filepath.Join(measurement, "traces.otf2"))
	a.Anchor.Creator = "Score-P 9.0"
	testkit.Must(t, otf2.WriteAnchor(a.Path(), a.Anchor))
	dir := mpiRaw.job(t, func(rank int, p *shardtest.Process) {
		for i := range p.Shard.Clock.Tuples {
			c := &p.Shard.Clock.Tuples[i]
			c.Mono = c.Raw + 700_000 + uint64(i)*3_000
		}
	})
	mergeByReadings(t, measurement, dir, "clock_gettime",
		func(c *provenance.ClockTuple) float64 { return float64(c.Mono) })
}

// mergeByReadings merges four processes, and compares the first one's times with the lines through its readings of a
// clock.
func mergeByReadings(t *testing.T, measurement, dir, timer string, clock func(c *provenance.ClockTuple) float64) {
	t.Helper()
	res, merged := merge(t, measurement, dir, nil)
	accept(t, res.Archive)
	testkit.Check(t, res.Timer == timer && res.Paired == 4, "%+v", res)
	p := testkit.Value(experiment.Read(filepath.Join(dir, "shards", "uuid-0")))(t)
	self := rowOf(t, merged, 0, 4, 0)
	mapped, raw := eventsWithTimes(t, merged, self, false), eventsWithTimes(t, merged, self, true)
	testkit.Require(t, len(raw) != 0, "no events")
	a, b := &p.Clock.Tuples[0], &p.Clock.Tuples[1]
	k := 0
	for i := range raw {
		r := raw[i] - p.Clock.AnchorReal + p.Clock.AnchorRaw
		for r > b.Raw {
			k++
			a, b = &p.Clock.Tuples[k], &p.Clock.Tuples[k+1]
		}
		want := clock(a) + float64(r-a.Raw)*(clock(b)-clock(a))/float64(b.Raw-a.Raw)
		off := float64(mapped[i]) - want
		testkit.Require(t, off >= -1.01 && off <= 1.01, "event %d: %d, want %.3f", i, mapped[i], want)
	}
}

// Event files of several chunks of another size are rewritten, counted, and say the same.
func TestMergeRewritesChunksOfAnotherSize(t *testing.T) {
	const more = 40_000
	dir := mpiTSC.job(t, func(rank int, p *shardtest.Process) {
		if rank != 2 {
			return
		}
		at := uint64(p.Writer(0).LastTime())
		for i := range uint64(more) {
			p.Call("ncclAllReduce", at+i*10, at+i*10+5)
		}
	})
	measurement := linkable(t, mpiTSC.dir)
	res, merged := merge(t, measurement, dir, nil)
	accept(t, res.Archive)
	testkit.Check(t, res.Rewritten == 1 && res.Copied == 1 && res.Linked == 4+7, "%+v", res)
	mpiTSC.checkRow(t, dir, merged, 2, 0, 2*(40+more))
}

// checkRow compares the number of events of a row.
func (tr *trace) checkRow(t testing.TB, dir string, merged *otf2.Archive, rank, row, events int) {
	t.Helper()
	self := rowOf(t, merged, rank, 4, row)
	raw := eventsWithTimes(t, merged, self, true)
	a := testkit.Value(otf2.ReadAnchor(merged.Path()))(t)
	scan, err := otf2.ScanEventFile(merged.EventFile(self), a.EventChunkSize)
	testkit.Check(t, err == nil && scan.Complete && len(raw) == events && scan.Events == uint64(events),
		"%d events, want %d: %+v, %v", len(raw), events, scan, err)
	l := merged.Defs.Location(self)
	testkit.Check(t, l.Events == uint64(events), "the definition says %d events", l.Events)
}

// Where our events lie outside of Score-P's measurement, it is made longer, and Score-P's events stay where they are.
func TestMergeExtends(t *testing.T) {
	dir := mpiTSC.job(t, func(rank int, p *shardtest.Process) {
		if rank == 0 {
			at := uint64(p.Writer(0).LastTime())
			p.Call("ncclAllReduce", at+2_000_000_000, at+2_000_000_500)
		}
	})
	measurement := linkable(t, mpiTSC.dir)
	res, merged := merge(t, measurement, dir, nil)
	accept(t, res.Archive)
	theirs := open(t, filepath.Join(measurement, "traces.otf2"))
	if c, was := merged.Defs.Clock, theirs.Defs.Clock; !res.Extended || c.Offset != was.Offset ||
		c.Length <= was.Length ||
		c.Resolution != was.Resolution || c.Realtime != was.Realtime {
		t.Errorf("extended %v: %+v, was %+v", res.Extended, c, was)
	}
	for _, l := range theirs.Defs.Locations {
		testkit.Check(t, slices.Equal(eventsOf(t, merged, l.Self), eventsOf(t, theirs, l.Self)),
			"events of location %d differ", l.Self)
	}
	last := uint64(0)
	for e, err := range merged.Events(nil) {
		testkit.Must(t, err)
		last = max(last, uint64(e.Time))
	}
	end := merged.Defs.Clock.Offset + merged.Defs.Clock.Length
	testkit.Check(t, last <= end && end <= last+3_000_000_000, "the last event is at %d, the end at %d", last, end)
}

// What a trace defines of kinds that are not known here, and its markers, stay.
func TestMergeKeepsWhatItDoesNotKnow(t *testing.T) {
	measurement := linkable(t, mpiTSC.dir)
	addUnknown(t, measurement)
	w := testkit.Value(otf2.CreateMarkerWriter(filepath.Join(measurement, "traces.marker"), 256<<10))(t)
	_ = w.DefMarker(3, "theirs", "Remark", otf2.MarkerSeverityMedium)
	_ = w.Marker(9_326_436_571_318, 5, 3, otf2.MarkerScopeGlobal, 1<<64-1, "of Score-P")
	testkit.Must(t, w.Close())
	dir := mpiTSC.job(t, func(rank int, p *shardtest.Process) {
		p.Shard.Markers = append(p.Shard.Markers,
			description.Marker{Time: p.Shard.Clock.AnchorReal + 200_000_000, Duration: 1_000_000,
				Severity: otf2.MarkerSeverityLow, Category: "Remark", Text: "of NCCL", Location: 0})
	})
	res, merged := merge(t, measurement, dir, nil)
	testkit.Check(t, len(merged.Defs.Other) == 1 && slices.Equal(merged.Defs.Other[0].Args, []uint64{1, 2, 3}),
		"of unknown kinds: %+v", merged.Defs.Other)
	defs, markers, err := merged.Markers()
	testkit.Check(t, err == nil && len(defs) == 2 && len(markers) == 5 && markers[0].Text == "of Score-P" &&
		markers[0].Marker == 3 && markers[1].Marker == 4, "%v: %+v %+v", err, defs, markers)
	m := markers[1]
	testkit.Check(t, m.Duration >= 2_499_000 && m.Duration <= 2_501_000, "a millisecond is %d ticks", m.Duration)
	testkit.Check(t, exec.Command(need.Reference(t, "otf2-print"), "-A", res.Archive).Run() == nil,
		"otf2-print does not read it")
}

// addUnknown puts a definition of a kind of some later version into a trace.
func addUnknown(t testing.TB, dir string) {
	t.Helper()
	path := filepath.Join(dir, "traces.def")
	b := testkit.Read(t, path)
	b = append(b[:len(b)-2], 200, 3, 1, 2, 3, 2, 1)
	testkit.Must(t, os.WriteFile(path, b, 0o600))
	anchor := testkit.Value(otf2.ReadAnchor(filepath.Join(dir, "traces.otf2")))(t)
	anchor.GlobalDefs++
	testkit.Must(t, otf2.WriteAnchor(filepath.Join(dir, "traces.otf2"), anchor))
}

// A second collector's shard of a process goes into the same group, and processes without data behind all.
func TestMergeOfContinuedAndMissingProcesses(t *testing.T) {
	dir := mpiTSC.job(t, func(rank int, p *shardtest.Process) { p.Shard.Comms[0].NRanks, p.Shard.Launcher.Size = 5, 5 })
	zero := testkit.Value(experiment.Read(filepath.Join(dir, "shards", "uuid-0")))(t)
	p := shardtest.New(t, dir, "uuid-9").On("vm", 13575).Launched("openmpi", 0, 5)
	p.Shard.PIDStart, p.Shard.Clock, p.Shard.Tag = zero.PIDStart, zero.Clock, zero.Tag
	p.Shard.BootID = zero.BootID
	p.Shard.Settings = map[string]string{description.SettingContinues: "uuid-0"}
	p.Shard.Locations[0].TID = 13575
	p.GPU(0, "GPU-0000", "0000:00:00.0")
	at := zero.Clock.AnchorReal + 600_000_000
	p.Comm(description.Comm{ID: 0xabcdef, Name: "world", NRanks: 5, Rank: 0, NNodes: 1, InitTime: at})
	p.Call("ncclAllReduce", at+1, at+2)
	p.Finish()

	res, merged := merge(t, linkable(t, mpiTSC.dir), dir, nil)
	accept(t, res.Archive)
	testkit.Check(t, res.Paired == 4 && res.NCCLOnly == 0, "%+v", res)
	last := merged.Defs.LocationGroups[4]
	if name := merged.Defs.String(last.Name); last.Type != otf2.LocationGroupTypeProcess || name != "Rank 4 (no data)" {
		t.Errorf("group %d is %q", last.Self, name)
	}
	rows := 0
	for _, l := range merged.Defs.Locations[4:] {
		if l.Type == otf2.LocationTypeCPUThread && l.Group == 0 {
			rows++
		}
	}
	testkit.Check(t, rows == 1, "%d rows of our own in group 0", rows)
}

func TestMergeRefusals(t *testing.T) {
	dir := mpiTSC.job(t, nil)
	profile, empty := t.TempDir(), t.TempDir()
	testkit.Must(t, os.WriteFile(filepath.Join(profile, "profile.cubex"), nil, 0o600))
	measurement := linkable(t, mpiTSC.dir)
	changed := func(change func(rank int, p *shardtest.Process)) string { return mpiTSC.job(t, change) }
	for _, c := range []struct {
		name, measurement, dir, want string
	}{
		{"no trace", empty, dir, `is not a Score-P experiment directory with a trace: there is no traces.otf2$`},
		{"profile only", profile, dir, `holds a profile and no trace: measure with SCOREP_ENABLE_TRACING=true$`},
		{"nothing pairs", measurement, changed(func(rank int, p *shardtest.Process) { p.Shard.PID = 5 + rank }),
			`^nothing pairs: Score-P measured MPI Rank 0 \(vm:13575\), .*; NCCL was recorded in vm:5, vm:6, vm:7, vm:8$`},
		{"other hosts", measurement, changed(func(rank int, p *shardtest.Process) { p.On("node7", p.Shard.PID) }),
			`^nothing pairs: .* NCCL was recorded in node7:13575, `},
		{"at another time", measurement, changed(func(rank int, p *shardtest.Process) {
			for i := range p.Shard.Clock.Tuples {
				p.Shard.Clock.Tuples[i].Ticks += 1e13
			}
		}), `^nothing pairs: .*; vm:13575: alive from 3999\.\d+ to 4000\.\d+ s of the measurement, by its timer \(tsc\); it took 0\.715 s`},
		{"by another clock", measurement, changed(
			func(rank int, p *shardtest.Process) { p.Shard.Clock.Source = "monotonic" }),
			`^nothing pairs: .*Score-P's times are the processor's counter, NCCL's are of monotonic: measure with SCOREP_TIMER=clock_gettime`},
		{"no readings", measurement, changed(func(rank int, p *shardtest.Process) { p.Shard.Clock.Tuples = nil }),
			`^nothing pairs: .*; vm:13575, vm:13576, vm:13577, vm:13578: 0 readings of the clocks, two are needed to relate them to Score-P's timer tsc$`},
		{"played", measurement, changed(func(rank int, p *shardtest.Process) { p.Shard.Clock.Source = "host" }),
			`^nothing pairs: .*times that are not of the machine's clocks`},
		{"nothing recorded", measurement, empty, `is not an experiment directory`},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "merged")
			_, err := Merge(c.measurement, c.dir, out, nil)
			testkit.Check(t, err != nil && regexp.MustCompile(c.want).MatchString(err.Error()) &&
				!strings.Contains(err.Error(), "\n"), "%v, want %q", err, c.want)
			_, err = os.Stat(out)
			testkit.Check(t, err != nil, "a folder was made")
		})
	}
	for _, out := range []string{measurement, dir} {
		if _, err := Merge(measurement, dir, out, nil); err == nil ||
			!strings.Contains(err.Error(), "exists and is not a merged archive: give a new folder") {
			t.Errorf("into %s: %v", out, err)
		}
	}
	// An earlier one is replaced, and is nothing to merge with.
	out := filepath.Join(t.TempDir(), "merged")
	for range 2 {
		testkit.Value(Merge(measurement, dir, out, nil))(t)
	}
	_, err := Merge(out, dir, filepath.Join(t.TempDir(), "again"), nil)
	testkit.Check(t, err != nil && strings.Contains(err.Error(), "holds an archive of nccl-otf2, not one of Score-P"),
		"merged twice: %v", err)
}

// Other jobs in the directory are left out; what fits twice goes by itself.
func TestMergeOfSeveralJobsAndDoubles(t *testing.T) {
	dir := mpiTSC.job(t, nil)
	other := shardtest.New(t, dir, "uuid-other").On("vm", 99)
	other.Comm(description.Comm{ID: 7, NRanks: 1, InitTime: shardtest.Epoch + 1e15})
	other.Finish()
	twin := shardtest.New(t, dir, "uuid-twin").On("vm", 13578).Launched("openmpi", 3, 4)
	three := testkit.Value(experiment.Read(filepath.Join(dir, "shards", "uuid-3")))(t)
	twin.Shard.Clock, twin.Shard.PIDStart = three.Clock, 4711
	twin.Comm(description.Comm{ID: 8, NRanks: 1, InitTime: three.FirstTime})
	twin.Finish()
	res, _ := merge(t, linkable(t, mpiTSC.dir), dir, nil)
	accept(t, res.Archive)
	testkit.Check(t, res.Paired == 3 && res.ScorepOnly == 1, "%+v", res)
	text := strings.Join(res.Problems, "\n")
	for _, want := range []string{"MPI Rank 3 (vm:13578) fits 2 processes, so they go by themselves",
		"of other jobs in the directory left out"} {
		testkit.Check(t, strings.Contains(text, want), "no %q in %q", want, res.Problems)
	}
}

// What seems to be two jobs here is one in the measurement; a process that only we have goes by the clock of one of the
// other "job" on its machine.
func TestMergeJoinsJobsOfOneMeasurement(t *testing.T) {
	dir := mpiTSC.job(t, func(rank int, p *shardtest.Process) {
		p.Launched("", -1, -1)
		p.Shard.Comms[0].ID, p.Shard.Comms[0].NRanks, p.Shard.Comms[0].Rank = uint64(rank/2+1), 2, rank%2
		if rank == 3 {
			p.Shard.PID = 4711
		}
	})
	res, merged := merge(t, linkable(t, mpiTSC.dir), dir, nil)
	accept(t, res.Archive)
	testkit.Check(t, res.Paired == 3 && res.NCCLOnly == 1 && res.Communicators == 2 && len(res.Problems) == 0,
		"%+v", res)
	zero := testkit.Value(experiment.Read(filepath.Join(dir, "shards", "uuid-0")))(t)
	three := testkit.Value(experiment.Read(filepath.Join(dir, "shards", "uuid-3")))(t)
	self := rowOf(t, merged, 4, 4, 0)
	mapped, raw := eventsWithTimes(t, merged, self, false), eventsWithTimes(t, merged, self, true)
	for i := range raw {
		at := raw[i] - three.Clock.AnchorReal + three.Clock.AnchorRaw - zero.Clock.AnchorRaw + zero.Clock.AnchorReal
		off := new(big.Rat).Sub(integer(mapped[i]), mpiTSC.expected(zero, nil, at)) // rank 0 has no corrections
		if off.Abs(off).Cmp(big.NewRat(1, 1)) >= 0 {
			t.Fatalf("event %d is %s ticks off", i, off.FloatString(3))
		}
	}
}

// The time grows with definitions only: of event files as large as here, hardly anything is read and nothing written.
func TestMergeDoesNotReadEvents(t *testing.T) {
	const large = 1 << 30
	dir := mpiTSC.job(t, func(rank int, p *shardtest.Process) { p.Shard.EventChunkSize = 1 << 20 })
	measurement := linkable(t, mpiTSC.dir)
	files, err := filepath.Glob(filepath.Join(measurement, "traces", "*.evt"))
	testkit.Require(t, err == nil && len(files) == 4, "%v %v", files, err)
	for rank := range 4 {
		path := filepath.Join(dir, "shards", fmt.Sprintf("uuid-%d", rank))
		p := testkit.Value(experiment.Read(path))(t)
		for i := range p.Locations {
			p.Locations[i].Bytes = large
			files = append(files, filepath.Join(path, fmt.Sprintf("%d.evt", p.Locations[i].Number)))
		}
		text := testkit.Value(json.Marshal(p))(t)
		testkit.Must(t, os.WriteFile(filepath.Join(path, "shard.json"), text, 0o600))
	}
	for _, f := range files { // what follows the events takes no room
		testkit.Must(t, os.Truncate(f, large))
	}
	read, written := ioBytes(t)
	res := testkit.Value(Merge(measurement, dir, filepath.Join(t.TempDir(), "merged"), nil))(t)
	readAfter, writtenAfter := ioBytes(t)
	testkit.Check(t, res.Linked == len(files) && res.Copied == 0, "%d event files: %+v", len(files), res)
	r, w := readAfter-read, writtenAfter-written
	testkit.Check(t, r <= 1<<20 && w <= 1<<20, "%d bytes read and %d written, of %d GiB of events", r, w, len(files))
}

// ioBytes is what this process has read and written so far.
func ioBytes(t testing.TB) (read, written uint64) {
	t.Helper()
	b, err := os.ReadFile("/proc/self/io")
	if err == nil {
		_, err = fmt.Sscanf(string(b), "rchar: %d\nwchar: %d\n", &read, &written)
	}
	need.NoError(t, "a kernel that counts what a process reads", err)
	return read, written
}

// Traces that are damaged give an error in one line, or an archive without what is damaged; never a crash.
func TestMergeOfDamagedTraces(t *testing.T) {
	dir := mpiTSC.job(t, nil)
	for _, name := range []string{"traces.otf2", "traces.def", "traces/0.def", "traces/0.evt"} {
		whole := testkit.Read(t, filepath.Join(mpiTSC.dir, name))
		for _, at := range []int{0, 1, 2, 18, 19, 25, 40, len(whole) / 2, len(whole) - 2} {
			for _, damage := range []func(b []byte) []byte{
				func(b []byte) []byte { return b[:min(at, len(b))] },
				func(b []byte) []byte { b[min(at, len(b)-1)] ^= 0xff; return b },
			} {
				measurement := linkable(t, mpiTSC.dir)
				testkit.Must(t, os.WriteFile(filepath.Join(measurement, name), damage(slices.Clone(whole)), 0o600))
				_, err := Merge(measurement, dir, filepath.Join(t.TempDir(), "merged"), nil)
				testkit.Check(t, err == nil || !strings.Contains(err.Error(), "\n"), "%s at %d: %v", name, at, err)
			}
		}
	}
	for _, name := range []string{"2.evt", "2.def"} {
		measurement := linkable(t, mpiTSC.dir)
		testkit.Must(t, os.Remove(filepath.Join(measurement, "traces", name)))
		_, err := Merge(measurement, dir, filepath.Join(t.TempDir(), "merged"), nil)
		testkit.Check(t, err != nil && strings.Contains(err.Error(), name+": "), "without %s: %v", name, err)
	}
}

// In a merged archive NCCL's regions, the application's phases, and the calls that Score-P has are in one group each,
// MPI's and the program's in none of these: Score-P tells them by their paradigms.
func TestMergeKeepsPhasesMPIAndNCCLSeparate(t *testing.T) {
	dir := mpiTSC.job(t, func(_ int, p *shardtest.Process) {
		at := uint64(p.Writer(0).LastTime())
		phase := p.Region("step 1", regions.GroupApplication, otf2.RegionRoleCode)
		testkit.Must(t, p.Writer(0).Enter(otf2.Timestamp(at+10), nil, phase))
		p.Call("ncclBroadcast", at+20, at+30)
		testkit.Must(t, p.Writer(0).Leave(otf2.Timestamp(at+40), nil, phase))
	})
	measurement := withForwarded(t, mpiTSC.dir, "ncclAllReduce")
	theirs := open(t, filepath.Join(measurement, "traces.otf2"))
	res, merged := merge(t, measurement, dir, nil)
	accept(t, res.Archive)
	groups := make(map[otf2.RegionRef][]string)
	for _, g := range merged.Defs.Groups {
		if g.Type == otf2.GroupTypeRegions {
			for _, m := range g.Members {
				groups[otf2.RegionRef(m)] = append(groups[otf2.RegionRef(m)], merged.Defs.String(g.Name))
			}
		}
	}
	found := make(map[string]bool)
	for i, r := range merged.Defs.Regions {
		name, in := merged.Defs.String(r.Name), groups[r.Self]
		want := ""
		switch {
		case i < len(theirs.Defs.Regions) && name == "ncclAllReduce":
			want = groupForwarded
		case i < len(theirs.Defs.Regions):
			testkit.Check(t, strings.HasPrefix(name, "MPI_") == (r.Paradigm == otf2.ParadigmMPI),
				"%s of Score-P is of paradigm %v", name, r.Paradigm)
		case name == "step 1":
			want = regions.GroupApplication
		case name == "ncclBroadcast" || name == "ncclAllReduce":
			want = regions.GroupAPI
		default:
			if want = strings.Join(in, ", "); !strings.HasPrefix(want, "NCCL ") { // whichever
				t.Errorf("%s is in %q", name, want)
			}
		}
		found[want] = true
		testkit.Check(t, (want != "" || len(in) == 0) && (want == "" || slices.Equal(in, []string{want})),
			"%s is in %q, want %q", name, in, want)
	}
	for _, want := range []string{"", groupForwarded, regions.GroupApplication, regions.GroupAPI,
		regions.GroupCollectives} {
		testkit.Check(t, found[want], "no region is in %q", want)
	}
}
