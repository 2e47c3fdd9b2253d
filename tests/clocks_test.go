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
	"slices"
	"strconv"
	"strings"
	"testing"

	"ncclotf2/otf2"
	"ncclotf2/replay"
	"ncclotf2/scorep"
	"ncclotf2/shard"
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
		if err != nil {
			t.Fatal(err)
		}
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
	shards, err := filepath.Glob(filepath.Join(dir, shard.Folder, "*", "shard.json"))
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
		if process < 0 {
			t.Fatalf("%s is nobody's shard", folder)
		}
		p, err := shard.Read(folder)
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
			i := slices.IndexFunc(p.Locations, func(l shard.Location) bool { return l.Number == number })
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
		check(os.WriteFile(file, b, shard.FileMode))
	}
}

// unifyWithTool runs the tool that was built and returns what it says of the clocks.
func unifyWithTool(t *testing.T, dir string, args ...string) *scorep.RunResult {
	t.Helper()
	cmd := exec.Command(builtFile(t, "nccl-otf2"), append([]string{"unify", dir, "--format", "json"}, args...)...)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("unify %s: %v\n%s", dir, err, out)
	}
	var res scorep.Result
	if err := json.Unmarshal(out, &res); err != nil {
		t.Fatal(err)
	}
	return &res.Runs[0]
}

// clockBounds is how far off each process's clock can be, with all drifts known, without any operation of the archive
// ending before it can: from the true times.
func clockBounds(t *testing.T, a *archive, processes int) (most []float64) {
	t.Helper()
	room := make([][]float64, processes) // room[a][b]: by how much b may be late against a
	for i := range room {
		room[i] = make([]float64, processes)
		for j := range room[i] {
			room[i][j] = math.Inf(1)
		}
		room[i][i] = 0
	}
	bind := func(end, begin int, by uint64, from uint64) {
		room[end][begin] = min(room[end][begin], float64(int64(by-from)))
	}
	for _, c := range a.comms {
		if isNetwork(c) {
			continue
		}
		ops := make([]map[string][]*operation, len(c.Members))
		for rank, l := range c.Members {
			var err error
			if ops[rank], err = a.operations(l); err != nil {
				t.Fatal(err)
			}
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
						if i >= len(ops[s][other]) {
							t.Fatalf("%s %d has no counterpart at rank %d", key, i, s)
						}
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
	}
	return most
}

// The processes of recordings, made hosts whose clocks are up to 50 ms and 50 ppm off, are brought together as
// well as their operations allow, and the uncertainty that is stated covers what is left.
func TestClocksOfPretendedHosts(t *testing.T) {
	for _, rec := range recordings(t) {
		if !slices.Contains([]string{"01", "02", "05", "06", "09"}, rec.Name[:2]) {
			continue
		}
		for seed := range uint64(3) {
			t.Run(fmt.Sprint(rec.Name, "/", seed), func(t *testing.T) {
				dir, _ := play(t, rec, way{clock: replay.ClockRecorded, pace: replay.PaceFast, set: func(*replay.Options) {}})
				anchor := filepath.Join(dir, "traces.otf2")
				truth := readArchive(t, anchor)
				random := rand.New(rand.NewPCG(seed, 7))
				clocks := make([]hostClock, len(rec.Processes))
				for p := range clocks {
					clocks[p].origin = float64(truth.clockOffset)
					if p > 0 {
						clocks[p].offset = (2*random.Float64() - 1) * 50e6
						clocks[p].drift = (2*random.Float64() - 1) * 50e-6
					}
				}
				bound := clockBounds(t, truth, len(clocks))
				pretendHosts(t, dir, clocks)
				run := unifyWithTool(t, dir)
				if run.ClockSync == nil || len(run.ClockSync.Hosts) != len(clocks) {
					t.Fatalf("clocks: %+v", run.ClockSync)
				}
				otf2Print(t, anchor)
				got := readArchive(t, anchor)
				a, err := otf2.Open(anchor, nil)
				if err != nil {
					t.Fatal(err)
				}
				worst, late, covered, total := make([]float64, len(clocks)), make([]float64, len(clocks)), 0, 0
				first := firstDone(t, truth)
				for l, events := range truth.events {
					process := int(uint32(l))
					if len(events) != len(got.events[l]) {
						t.Fatalf("location %d has %d events, had %d", l, len(got.events[l]), len(events))
					}
					_, knots, err := a.LocalDefs(otf2.LocationRef(l))
					if err != nil {
						t.Fatal(err)
					}
					for i, e := range events {
						off := math.Abs(float64(int64(got.events[l][i].Time - e.Time)))
						worst[process] = max(worst[process], off)
						if e.Time >= first {
							late[process] = max(late[process], off)
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
					t.Logf("host %d: error %.1f µs, before the first operation was done %.1f µs, bound %.1f µs, uncertainty %.1f µs; %s", p, late[p]/1e3, worst[p]/1e3, bound[p]/1e3, *h.UncertaintyMost/1e3, h.String())
					if late[p] > 100e3 || late[p] > bound[p] {
						t.Errorf("host %d is off by %.1f µs; operations bind it to %.1f µs", p, late[p]/1e3, bound[p]/1e3)
					}
				}
				t.Logf("the uncertainty covers %.2f %% of %d events", 100*float64(covered)/float64(total), total)
				if float64(covered) < 0.95*float64(total) {
					t.Errorf("the uncertainty covers %d of %d events", covered, total)
				}
			})
		}
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
			ops, err := a.operations(l)
			if err != nil {
				t.Fatal(err)
			}
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

// Without --sync the archive is, byte by byte, what it was before clocks were ever compared.
func TestClocksAreLeftAloneOnRequest(t *testing.T) {
	rec := recordings(t)[5]
	dir, _ := play(t, rec, way{clock: replay.ClockRecorded, pace: replay.PaceFast, set: func(*replay.Options) {}})
	pretendHosts(t, dir, []hostClock{{}, {offset: 7e6}})
	files := func() map[string]string {
		all := make(map[string]string)
		for _, pattern := range []string{"traces.*", "traces/*.def", "traces/*.evt"} {
			names, err := filepath.Glob(filepath.Join(dir, pattern))
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range names {
				b, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
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
	if run := unifyWithTool(t, dir, "--no-sync"); run.ClockSync != nil {
		t.Errorf("clocks: %+v", run.ClockSync)
	}
	never := files()
	if run := unifyWithTool(t, dir, "--sync"); run.ClockSync == nil || run.ClockSync.Hosts[1].State != scorep.SyncCorrected {
		t.Errorf("clocks: %+v", run.ClockSync)
	}
	synced := files()
	if same(never, synced, ".def") {
		t.Error("the correction is in no definition")
	}
	if !same(never, synced, ".evt") {
		t.Error("event files were rewritten")
	}
	unifyWithTool(t, dir, "--no-sync")
	if !same(never, files(), "") {
		t.Error("the archive is not what it was before")
	}
}
