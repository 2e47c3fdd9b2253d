// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ncclotf2/otf2"
	"ncclotf2/scorep/shardtest"
	"ncclotf2/shard"
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
	mpiTSC  = trace{dir: "../analysis/testdata/scorep-mpi", pids: []int{13575, 13576, 13577, 13578}, host: "vm", ticksPerNs: 2.5}
	mpiRaw  = trace{dir: "testdata/mpi4-clock_gettime", host: "vm", ticksPerNs: 1}
	pthread = trace{dir: "testdata/user-pthread", pids: []int{13727}, host: "vm", ticksPerNs: 2.5}
)

// processIDs reads the process ids of a trace from the first event of each process.
func (tr *trace) processIDs(t testing.TB, a *otf2.Archive) []int {
	t.Helper()
	var pids []int
	for i, g := range a.Defs.LocationGroups {
		for e, err := range a.EventsOf(otf2.LocationRef(g.Self)) {
			if err != nil {
				t.Fatal(err)
			}
			pids = append(pids, int(e.Attributes[0].Bits))
			break
		}
		if tr.pids != nil && pids[i] != tr.pids[i] {
			t.Fatalf("process %d is %d, not %d", i, pids[i], tr.pids[i])
		}
	}
	return pids
}

// raw is what CLOCK_MONOTONIC_RAW shows at a tick of a trace's timer, as the tests have it.
func (tr *trace) raw(tick uint64) uint64 { return uint64(float64(tick) / tr.ticksPerNs) }

// tuples are readings of the clocks every so many nanoseconds, which are off the true line by some nanoseconds.
func (tr *trace) tuples(first, last uint64, every uint64) (all []shard.ClockTuple) {
	for i, raw := 0, first; ; i, raw = i+1, raw+every {
		ticks := uint64(2.5*float64(raw)) + uint64(i*37%101)
		all = append(all, shard.ClockTuple{Ticks: ticks, Raw: raw, Mono: raw - 12345, Real: shardtest.Epoch + raw - first + uint64(i)})
		if raw > last {
			return all
		}
	}
}

// job leaves, in a new folder, shards of the trace's processes: calls and operations all through it. change may say more
// of each process.
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
		p.Shard.Clock = shard.Clock{Source: "tsc", AnchorRaw: anchor, AnchorReal: shardtest.Epoch + uint64(rank)*777, Tuples: tr.tuples(anchor, end, (end-begin)/23)}
		p.Shard.Locations[0].TID = pid
		at := func(raw uint64) uint64 { return raw - p.Shard.Clock.AnchorRaw + p.Shard.Clock.AnchorReal }
		p.GPU(0, fmt.Sprintf("GPU-%04d", rank), fmt.Sprintf("0000:%02x:00.0", rank))
		p.Comm(shard.Comm{ID: 0xabcdef, Name: "world", NRanks: len(pids), Rank: rank, NNodes: 1, InitTime: at(begin + 1_000_000)})
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
	res, err := Merge(measurement, dir, filepath.Join(t.TempDir(), "merged"), opts)
	if err != nil {
		t.Fatal(err)
	}
	return res, open(t, res.Archive)
}

// expected is the exact time, in the measurement's clock, of a time of a process: by its readings of the clocks, and on by
// the measurement's corrections of the rank. It is computed here in another way than by transfer.
func (tr *trace) expected(p *shard.Process, offsets []otf2.ClockOffset, at uint64) *big.Rat {
	rat := func(v uint64) *big.Rat { r, _ := new(big.Rat).SetString(strconv.FormatUint(v, 10)); return r }
	raw := rat(at - p.Clock.AnchorReal + p.Clock.AnchorRaw)
	ticks := raw
	if tr.ticksPerNs != 1 {
		k := slices.IndexFunc(p.Clock.Tuples, func(c shard.ClockTuple) bool { return rat(c.Raw).Cmp(raw) >= 0 })
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
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, eventText(e))
	}
	return all
}

// timesByPrint gives the times of a location's events as otf2-print shows them, timesByPython as the Python reader does.
func timesByPrint(t testing.TB, anchor string) map[uint64][]uint64 {
	t.Helper()
	out, err := exec.Command(referenceTool(t, "otf2-print"), anchor).Output()
	if err != nil {
		t.Fatal(err)
	}
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
		if _, err := fmt.Sscan(line, &l, &at); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		all[l] = append(all[l], at)
	}
	return all
}

func sameFile(t testing.TB, a, b string) bool {
	t.Helper()
	x, err := os.Stat(a)
	if err != nil {
		t.Fatal(err)
	}
	y, err := os.Stat(b)
	if err != nil {
		t.Fatal(err)
	}
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
			if res.Paired != n || res.ScorepOnly+res.NCCLOnly != 0 || res.Copied != 0 || len(res.Problems) != 0 {
				t.Errorf("%+v", res)
			}
			compareDefinitions(t, theirs.Defs, merged.Defs)
			for _, l := range theirs.Defs.Locations {
				for _, suffix := range []string{".evt", ".def"} {
					name := filepath.Join("traces", fileName(l.Self, suffix))
					if !sameFile(t, filepath.Join(measurement, name), filepath.Join(filepath.Dir(res.Archive), name)) {
						t.Errorf("%s is not linked", name)
					}
				}
				if got, want := eventsOf(t, merged, l.Self), eventsOf(t, theirs, l.Self); !slices.Equal(got, want) {
					t.Errorf("events of location %d differ", l.Self)
				}
			}
			c.tr.checkTimes(t, dir, theirs, merged)
		})
	}
}

// linkable copies a trace next to where tests write, so that its files can be linked.
func linkable(t testing.TB, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "scorep")
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

// compareDefinitions checks that the definitions of a trace are there as they were, and first.
func compareDefinitions(t testing.TB, theirs, merged *otf2.Definitions) {
	t.Helper()
	if !slices.Equal(merged.Order[:len(theirs.Order)], theirs.Order) {
		t.Error("Score-P's definitions come in another order")
	}
	if merged.Clock != theirs.Clock {
		t.Errorf("clock: %+v, was %+v", merged.Clock, theirs.Clock)
	}
	for _, s := range theirs.Strings {
		if merged.String(s.Self) != s.Text {
			t.Errorf("string %d: %q, was %q", s.Self, merged.String(s.Self), s.Text)
		}
	}
	for i := range theirs.Groups {
		a, b := &theirs.Groups[i], &merged.Groups[i]
		if a.Self != b.Self || a.Name != b.Name || a.Type != b.Type || a.Paradigm != b.Paradigm || !slices.Equal(a.Members, b.Members) {
			t.Errorf("group %d: %+v, was %+v", i, b, a)
		}
	}
	for name, same := range map[string]bool{
		"regions":   slices.Equal(merged.Regions[:len(theirs.Regions)], theirs.Regions),
		"locations": slices.Equal(merged.Locations[:len(theirs.Locations)], theirs.Locations),
		"groups":    slices.Equal(merged.LocationGroups[:len(theirs.LocationGroups)], theirs.LocationGroups),
		"nodes":     slices.Equal(merged.SystemTreeNodes[:len(theirs.SystemTreeNodes)], theirs.SystemTreeNodes),
		"comms":     slices.Equal(merged.Comms[:len(theirs.Comms)], theirs.Comms),
		"callpaths": slices.Equal(merged.Callpaths, theirs.Callpaths),
	} {
		if !same {
			t.Errorf("%s of Score-P differ", name)
		}
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
		p, err := shard.Read(shardDir)
		if err != nil {
			t.Fatal(err)
		}
		_, offsets, err := theirs.LocalDefs(otf2.LocationRef(rank))
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range p.Locations {
			self := rowOf(t, merged, rank, len(theirs.Defs.Locations), int(l.Number))
			name := filepath.Join(strings.TrimSuffix(merged.Path(), ".otf2"), fileName(self, ".evt"))
			if !sameFile(t, filepath.Join(shardDir, fmt.Sprintf("%d.evt", l.Number)), name) {
				t.Errorf("%s is not linked", name)
			}
			mapped, raw := eventsWithTimes(t, merged, self, false), eventsWithTimes(t, merged, self, true)
			if uint64(len(mapped)) != l.Events || len(byPrint[uint64(self)]) != len(mapped) || len(byPython[uint64(self)]) != len(mapped) {
				t.Fatalf("%s: %d events, otf2-print has %d, python3-otf2 %d, there were %d", l.Name, len(mapped),
					len(byPrint[uint64(self)]), len(byPython[uint64(self)]), l.Events)
			}
			for i, got := range mapped {
				if byPrint[uint64(self)][i] != got || byPython[uint64(self)][i] != got {
					t.Fatalf("%s event %d: %d here, %d by otf2-print, %d by python3-otf2", l.Name, i, got, byPrint[uint64(self)][i], byPython[uint64(self)][i])
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
	if checked == 0 || worst.Cmp(big.NewRat(1, 1)) >= 0 {
		t.Errorf("the worst of %d events is %s ticks off", checked, worst.FloatString(3))
	}
	t.Logf("%d events, the worst %s ticks off the exact time, %d have the nearest tick", checked, worst.FloatString(3), nearest)
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
	a, err := otf2.Open(a.Path(), &otf2.ReadOptions{Raw: raw})
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range a.EventsOf(l) {
		if err != nil {
			t.Fatal(err)
		}
		times = append(times, uint64(e.Time))
	}
	return times
}
