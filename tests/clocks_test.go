// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
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
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/scorep"
)

// hostClock is a pretended host's clock: what it shows at a true time.
type hostClock struct {
	origin, offset, drift float64
}

func (c *hostClock) shows(t uint64) uint64 {
	if t == 0 {
		return 0
	}
	d := float64(int64(t - uint64(c.origin)))
	return uint64(int64(t) + int64(math.Round(c.offset+c.drift*d)))
}

// pretendHosts makes each process of a unified experiment directory a host of its own, whose clock shows what clocks
// says (by process).
func pretendHosts(t *testing.T, dir string, clocks []hostClock) {
	t.Helper()
	check := func(err error) {
		t.Helper()
		testkit.Must(t, err)
	}
	anchor := filepath.Join(dir, "traces.otf2")
	raw, err := otf2.Open(anchor, &otf2.ReadOptions{Raw: true})
	check(err)
	corrected, err := otf2.Open(anchor, nil)
	check(err)
	type written struct {
		location otf2.LocationRef
		events   []otf2.Event
	}
	all := make(map[int][]written)
	offsets := make(map[int]int64)
	for _, l := range raw.Defs.Locations {
		w := written{location: l.Self}
		for ev, err := range raw.EventsOf(l.Self) {
			check(err)
			w.events = append(w.events, ev.Clone())
		}
		process, i := int(uint32(l.Self)), 0
		for ev, err := range corrected.EventsOf(l.Self) {
			check(err)
			offsets[process] = int64(ev.Time - w.events[i].Time)
			w.events[i].Time = otf2.Timestamp(clocks[process].shows(uint64(ev.Time)))
			i++
		}
		all[process] = append(all[process], w)
	}
	// A process's shard is the one whose event file its location 0 is.
	shards, err := filepath.Glob(filepath.Join(dir, experiment.Folder, "*", "shard.json"))
	check(err)
	for _, file := range shards {
		folder := filepath.Dir(file)
		process := -1
		own, err := os.Stat(filepath.Join(folder, "0.evt"))
		check(err)
		for p := range all {
			if other, err := os.Stat(raw.EventFile(otf2.LocationRef(p))); err == nil && os.SameFile(own, other) {
				process = p
			}
		}
		testkit.Require(t, process >= 0, "%s is nobody's shard", folder)
		p, err := experiment.Read(folder)
		check(err)
		shift := func(times ...*uint64) {
			for _, at := range times {
				if *at != 0 {
					*at = clocks[process].shows(uint64(int64(*at) + offsets[process]))
				}
			}
		}
		p.Host, p.BootID = fmt.Sprint("host", process), fmt.Sprint("boot of ", process)
		shift(&p.FirstTime, &p.LastTime)
		for i := range p.Comms {
			shift(&p.Comms[i].InitTime, &p.Comms[i].FinalTime)
		}
		for i := range p.Markers {
			shift(&p.Markers[i].Time)
		}
		for _, w := range all[process] {
			number := uint32(w.location >> 32)
			i := slices.IndexFunc(p.Locations, func(l description.Location) bool { return l.Number == number })
			if i < 0 {
				continue // made by unify
			}
			path := filepath.Join(folder, strconv.Itoa(int(number))+".evt")
			check(os.Remove(path)) // the archive has another link to it
			out, err := otf2.CreateEventWriter(path, &otf2.EventWriterOptions{ChunkSize: p.EventChunkSize})
			check(err)
			for i := range w.events {
				var list otf2.AttributeList
				for _, v := range w.events[i].Attributes {
					list.Add(v.ID, v.Type, v.Value())
				}
				check(out.Write(w.events[i].Kind, w.events[i].Time, &list, w.events[i].Args))
			}
			check(out.Close())
			info, err := os.Stat(path)
			check(err)
			p.Locations[i].Bytes = info.Size()
		}
		b, err := json.Marshal(p)
		check(err)
		check(os.WriteFile(file, b, experiment.FileMode))
	}
}

// unifyWithTool runs the tool that was built and returns what it says of the clocks.
func unifyWithTool(t *testing.T, dir string, args ...string) *scorep.RunResult {
	t.Helper()
	cmd := exec.Command(builtFile(t, "nccl-otf2"), append([]string{"unify", dir, "--format", "json"}, args...)...)
	out := testkit.Output(t, cmd)
	var res scorep.Result
	testkit.Must(t, json.Unmarshal(out, &res))
	return &res.Runs[0]
}

// clockBounds is how far off each process's clock can be, with all drifts known, without any operation of the archive
// ending before it can: from the true times. It also tells when the operations were that bind each process and the
// first one most: away from them, what is not known of the drifts adds to the bound.
func clockBounds(t *testing.T, a *archive, processes int) (most []float64, when [][2]uint64) {
	t.Helper()
	room := make([][]float64, processes) // room[a][b]: by how much b may be late against a
	at := make([][]uint64, processes)
	for i := range room {
		room[i], at[i] = make([]float64, processes), make([]uint64, processes)
		for j := range room[i] {
			room[i][j] = math.Inf(1)
		}
		room[i][i] = 0
	}
	bind := func(end, begin int, by uint64, from uint64) {
		if r := float64(int64(by - from)); r < room[end][begin] {
			room[end][begin], at[end][begin] = r, from
		}
	}
	for _, c := range a.comms {
		if isNetwork(c) {
			continue
		}
		ops := make([]map[string][]*operation, len(c.Members))
		for rank, l := range c.Members {
			ops[rank] = testkit.Value(a.operations(l))(t)
		}
		process := func(rank int) int { return int(uint32(c.Members[rank])) }
		for r := range ops {
			for key, mine := range ops[r] {
				for i, x := range mine {
					if x.Sent+x.Received == 0 {
						continue
					}
					for s := range ops {
						other := key
						if x.Name == "Send" || x.Name == "Recv" {
							if x.Name == "Recv" || int(x.Root) != s {
								continue
							}
							other = fmt.Sprintf("Recv %d", r)
						}
						testkit.Require(t, i < len(ops[s][other]), "%s %d has no counterpart at rank %d", key, i, s)
						y := ops[s][other][i] // does y's end wait for x's begin?
						net := x.Name == "AllReduce" || x.Name == "Send"
						waits := x.Root < 0 || x.Name == "Send" ||
							(x.Name == "Broadcast" || x.Name == "Scatter") && int(x.Root) == r ||
							(x.Name == "Reduce" || x.Name == "Gather") && int(x.Root) == s
						if waits && y.source != "enqueue" && (net || x.source != "network" && y.source != "network") {
							bind(process(s), process(r), y.end, x.begin)
						}
					}
				}
			}
		}
	}
	for k := range room {
		for i := range room {
			for j := range room {
				room[i][j] = min(room[i][j], room[i][k]+room[k][j])
			}
		}
	}
	for p := range room {
		most = append(most, max(room[0][p], room[p][0]))
		when = append(when, [2]uint64{at[0][p], at[p][0]})
	}
	return most, when
}

// The processes of recordings, made hosts whose clocks are up to 50 ms and 50 ppm off, are brought together as
// well as their operations allow, and the uncertainty that is stated covers what is left.
func TestClocksOfPretendedHosts(t *testing.T) {
	const most = 50e-6 // drift
	for i, rec := range recordings(t) {
		if len(rec.Processes) < 2 {
			continue
		}
		t.Run(rec.Name, func(t *testing.T) {
			t.Parallel()
			played, _ := play(t, rec)
			truth := readArchive(t, filepath.Join(played, "traces.otf2"))
			bound, tightest := clockBounds(t, truth, len(rec.Processes))
			first := firstDone(t, truth)
			seed := uint64(i % 3)
			dir := filepath.Join(t.TempDir(), "experiment")
			if out, err := exec.Command("cp", "-a", played, dir).CombinedOutput(); err != nil { // with its links
				t.Fatalf("%v: %s", err, out)
			}
			anchor := filepath.Join(dir, "traces.otf2")
			random := rand.New(rand.NewPCG(seed, 7))
			clocks := make([]hostClock, len(rec.Processes))
			for p := range clocks {
				clocks[p].origin = float64(truth.clockOffset)
				if p > 0 {
					clocks[p].offset = (2*random.Float64() - 1) * 50e6
					clocks[p].drift = (2*random.Float64() - 1) * most
				}
			}
			pretendHosts(t, dir, clocks)
			run := unifyWithTool(t, dir)
			testkit.Require(t, run.ClockSync != nil && len(run.ClockSync.Hosts) == len(clocks),
				"clocks: %+v", run.ClockSync)
			otf2Print(t, anchor)
			got := readArchive(t, anchor)
			a := testkit.Value(otf2.Open(anchor, nil))(t)
			worst, late, covered, total := make([]float64, len(clocks)), make([]float64, len(clocks)), 0, 0
			far := make([]float64, len(clocks)) // from the operations that bind the most, ns
			for l, events := range truth.events {
				process := int(uint32(l))
				testkit.Require(t, len(events) == len(got.events[l]),
					"location %d has %d events, had %d", l, len(got.events[l]), len(events))
				_, knots, err := a.LocalDefs(otf2.LocationRef(l))
				testkit.Must(t, err)
				sameTimes(t, a, otf2.LocationRef(l), got.events[l])
				for i, e := range events {
					off := math.Abs(float64(int64(got.events[l][i].Time - e.Time)))
					worst[process] = max(worst[process], off)
					if e.Time >= first {
						late[process] = max(late[process], off)
						for _, tight := range tightest[process] {
							far[process] = max(far[process], math.Abs(float64(int64(e.Time-tight))))
						}
					}
					if process == 0 {
						continue
					}
					total++
					if off <= stated(knots, clocks[process].shows(e.Time))+1 {
						covered++
					}
				}
			}
			for p := 1; p < len(clocks); p++ {
				h := run.ClockSync.Hosts[p]
				allowed := bound[p] + most*far[p]
				t.Logf("host %d: error %.1f µs, before the first operation was done %.1f µs, bound %.1f µs "+
					"and %.1f µs with the drift, uncertainty %.1f µs; %s",
					p, late[p]/1e3, worst[p]/1e3, bound[p]/1e3, allowed/1e3, *h.UncertaintyMost/1e3, h.String())
				testkit.Check(t, late[p] <= min(allowed, 100e3),
					"host %d is off by %.1f µs; operations bind it to %.1f µs, 100 µs are wanted", p, late[p]/1e3,
					allowed/1e3)
			}
			t.Logf("the uncertainty covers %.2f %% of %d events; %d of %d exchanges are not kept",
				100*float64(covered)/float64(total), total, run.ClockSync.Broken, run.ClockSync.Exchanges)
			testkit.Check(t, run.ClockSync.Broken == 0,
				"%d operations end before they can on corrected clocks", run.ClockSync.Broken)
			testkit.Check(t, float64(covered) >= 0.95*float64(total),
				"the uncertainty covers %d of %d events", covered, total)
		})
	}
}

// firstDone is when all members had done the first operation of any: before, nothing binds their clocks, and what their
// drift makes of that time (some seconds in the recordings, for starting up) cannot be known.
func firstDone(t *testing.T, a *archive) uint64 {
	t.Helper()
	first := uint64(math.MaxUint64)
	for _, c := range a.comms {
		if isNetwork(c) {
			continue
		}
		done := uint64(0)
		for _, l := range c.Members {
			ops := testkit.Value(a.operations(l))(t)
			end := uint64(math.MaxUint64)
			for _, list := range ops {
				for _, o := range list {
					if o.source != "enqueue" {
						end = min(end, o.end)
					}
				}
			}
			done = max(done, end)
		}
		first = min(first, done)
	}
	return first
}

// stated is the uncertainty that the records of a location state at a time of its clock.
func stated(knots []otf2.ClockOffset, t uint64) float64 {
	if len(knots) < 2 {
		return 0
	}
	i := 0
	for i < len(knots)-2 && t > uint64(knots[i+1].Time) {
		i++
	}
	a, b := knots[i], knots[i+1]
	part := float64(int64(t-uint64(a.Time))) / float64(b.Time-a.Time)
	return a.StdDev + min(max(part, 0), 1)*(b.StdDev-a.StdDev)
}

// sameTimes compares the times of a location's events, as its clock offsets correct them, with those that the reference
// reader gave.
func sameTimes(t *testing.T, a *otf2.Archive, l otf2.LocationRef, want []*event) {
	t.Helper()
	i := 0
	for ev, err := range a.EventsOf(l) {
		testkit.Must(t, err)
		if i < len(want) && uint64(ev.Time) != want[i].Time {
			t.Fatalf("event %d of location %d: %d, the reference reader has %d", i, l, ev.Time, want[i].Time)
		}
		i++
	}
	testkit.Require(t, i == len(want), "location %d has %d events, the reference reader has %d", l, i, len(want))
}

// correctClocks gives the locations of each process clock offsets in place of those that they have.
func correctClocks(t *testing.T, anchor string, by [][]otf2.ClockOffset) {
	t.Helper()
	a := openArchive(t, anchor)
	for _, l := range a.Defs.Locations {
		maps, _, err := a.LocalDefs(l.Self)
		testkit.Must(t, err)
		tables := make([]*otf2.MappingTable, len(maps))
		for i := range maps {
			tables[i] = &maps[i]
		}
		path := filepath.Join(strings.TrimSuffix(anchor, ".otf2"), fmt.Sprint(uint64(l.Self), ".def"))
		if err := os.Remove(path); err != nil { // locations of one process share it
			t.Fatal(err)
		}
		testkit.Must(t, otf2.WriteLocalDefs(path, tables, by[uint32(l.Self)], a.Anchor.DefChunkSize))
	}
}

// Records with several knots and large slopes are applied by the reference readers as by ours: linear between knots,
// and beyond them.
func TestClockOffsetsAreAppliedTheSame(t *testing.T) {
	rec := recording(t, "05-p2p-3p")
	dir, _ := play(t, rec)
	pretendHosts(t, dir, make([]hostClock, len(rec.Processes)))
	before := readArchive(t, filepath.Join(dir, "traces.otf2"))
	first, last := uint64(math.MaxUint64), uint64(0)
	for _, events := range before.events {
		for _, e := range events {
			first, last = min(first, e.Time), max(last, e.Time)
		}
	}
	const n = 7
	knots := make([][]otf2.ClockOffset, len(rec.Processes))
	random := rand.New(rand.NewPCG(1, 2))
	for h := 1; h < len(knots); h++ {
		for k := range uint64(n) { // the first and last tenth lie beyond
			at := first + (last-first)*(2*k+1)/(2*n)
			knots[h] = append(knots[h], otf2.ClockOffset{Time: otf2.Timestamp(at), Offset: random.Int64N(1e6) - 5e5,
				StdDev: 1})
		}
	}
	anchor := filepath.Join(dir, "traces.otf2")
	correctClocks(t, anchor, knots)
	otf2Print(t, anchor)
	after := readArchive(t, anchor)
	a := testkit.Value(otf2.Open(anchor, nil))(t)
	moved := 0
	for l, events := range after.events {
		sameTimes(t, a, otf2.LocationRef(l), events)
		host := int(uint32(l))
		for i, e := range events {
			raw := before.events[l][i].Time
			want := float64(0)
			if ks := knots[host]; ks != nil {
				k := 0
				for k < n-2 && raw > uint64(ks[k+1].Time) {
					k++
				}
				part := float64(int64(raw-uint64(ks[k].Time))) / float64(ks[k+1].Time-ks[k].Time)
				want = float64(ks[k].Offset) + part*float64(ks[k+1].Offset-ks[k].Offset)
				moved++
			}
			if got := float64(int64(e.Time - raw)); math.Abs(got-want) > 1 {
				t.Fatalf("event %d of location %d moved by %.0f ns, want %.1f", i, l, got, want)
			}
		}
	}
	testkit.Check(t, moved != 0, "nothing was moved")
}

// Without --sync the archive is, byte by byte, what it was before clocks were ever compared. Reports say what was done.
func TestClocksAreLeftAloneOnRequest(t *testing.T) {
	rec := recording(t, "06-twohosts-2x2")
	dir, _ := play(t, rec)
	pretendHosts(t, dir, []hostClock{{}, {offset: 7e6}})
	files := func() map[string]string {
		all := make(map[string]string)
		for _, pattern := range []string{"traces.*", "traces/*.def", "traces/*.evt"} {
			names := testkit.Value(filepath.Glob(filepath.Join(dir, pattern)))(t)
			for _, name := range names {
				b := testkit.Read(t, name)
				all[strings.TrimPrefix(name, dir)] = string(b)
			}
		}
		return all
	}
	same := func(a, b map[string]string, only string) bool {
		equal := len(a) == len(b)
		for name := range a {
			if strings.HasSuffix(name, only) && a[name] != b[name] {
				equal = false
			}
		}
		return equal
	}
	says := func(want string) {
		t.Helper()
		for _, of := range [][]string{{"report", dir}, {"report", dir, "--waits"}} {
			testkit.Contains(t, runTool(t, builtFile(t, "nccl-otf2"), of...), want)
		}
	}
	run := unifyWithTool(t, dir, "--no-sync")
	testkit.Check(t, run.ClockSync == nil, "clocks: %+v", run.ClockSync)
	says("Times of 2 hosts are compared as recorded; ")
	never := files()
	run = unifyWithTool(t, dir, "--sync")
	testkit.Check(t, run.ClockSync != nil && run.ClockSync.Hosts[1].State == scorep.SyncCorrected, "clocks: %+v",
		run.ClockSync)
	says("Times of 2 hosts are compared on corrected clocks, which may be off by ")
	synced := files()
	testkit.Check(t, !same(never, synced, ".def"), "the correction is in no definition")
	testkit.Check(t, same(never, synced, ".evt"), "event files were rewritten")
	unifyWithTool(t, dir, "--no-sync")
	testkit.Check(t, same(never, files(), ""), "the archive is not what it was before")
}

// Hosts whose clocks are further apart than the job lasts are one job, what the report says is what it says of clocks
// that agree, and the distance is stated.
func TestClocksThatDifferByMoreThanTheJobLasts(t *testing.T) {
	rec := recording(t, "09-straggler-4p")
	played, _ := play(t, rec)
	truth := readArchive(t, filepath.Join(played, "traces.otf2"))
	verdict := regexp.MustCompile(`(?m)^Rank 2 on .* made the others wait: [^\n]*`)
	anybody := regexp.MustCompile(`(?m)^Ranks? .* made the others wait`)
	want := ""
	for _, seconds := range []float64{0, 30, 3600, -3600} {
		dir := filepath.Join(t.TempDir(), "experiment")
		testkit.Output(t, exec.Command("cp", "-a", played, dir)) // with its links
		clocks := make([]hostClock, len(rec.Processes))
		for p := range clocks {
			clocks[p].origin = float64(truth.clockOffset)
			if p >= 2 {
				clocks[p].offset = seconds * 1e9
			}
		}
		pretendHosts(t, dir, clocks)
		run := unifyWithTool(t, dir)
		if run.Processes() != len(clocks) || run.ClockSync == nil || run.ClockSync.Broken > 0 {
			t.Errorf("%v s: %d processes, clocks %+v", seconds, run.Processes(), run.ClockSync)
			continue
		}
		for p, h := range run.ClockSync.Hosts {
			off := math.Abs(float64(h.OffsetStart) + clocks[p].offset - clocks[h.Reference].offset)
			testkit.Check(t, off <= 100e3, "%v s: host %d is off by %.1f µs: %s", seconds, p, off/1e3, h.String())
		}
		said, _ := toolSays(t, "report", dir)
		got := verdict.FindString(said)
		if want == "" {
			want = got
		}
		testkit.Check(t, got != "" && got == want, "%v s: the verdict is %q, want %q:\n%s", seconds, got, want, said)
		// Where clocks that contradict the operations stay as they are, nobody is named.
		unifyWithTool(t, dir, "--no-sync")
		said, _ = toolSays(t, "report", dir)
		waited, _ := toolSays(t, "report", "--waits", dir)
		left := strings.Contains(waited, "no collectives and no messages compared") &&
			strings.Contains(waited, "24 collectives without comparable times of two members")
		if seconds != 0 && (!left || anybody.MatchString(said)) || seconds == 0 && verdict.FindString(said) == "" {
			t.Errorf("%v s, clocks as recorded:\n%s\n%s", seconds, waited, said)
		}
	}
}
