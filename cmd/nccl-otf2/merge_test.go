// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/provenance"
	"github.com/nccl-otf2/nccl-otf2/internal/need"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
)

// played is a recording of a real NCCL job, played once.
func played(t *testing.T, tool, recording string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "played")
	cmd := exec.Command(tool, "replay", filepath.Join("../../testdata/nccl-callbacks", recording), "--clock",
		"recorded", "--dir", dir)
	cmd.Env = append(os.Environ(), "NCCL_OTF2_START_LIMIT=60")
	testkit.Output(t, cmd)
	return dir
}

// disguise gives the shards of a played job the hosts, process ids and clocks of the processes of a trace, whose timer
// has the given number of ticks in a nanosecond and starts at first. Of those they get readings that scatter.
func disguise(t *testing.T, dir string, pids []int, first uint64, ticks *big.Rat) []*description.Process {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "shards", "*", "shard.json"))
	testkit.Require(t, err == nil && len(files) == len(pids),
		"%v: %d shards for %d processes", err, len(files), len(pids))
	all := make([]*description.Process, len(files))
	for i, f := range files {
		all[i] = testkit.Value(experiment.Read(filepath.Dir(f)))(t)
	}
	slices.SortFunc(all, func(a, b *description.Process) int { return a.PID - b.PID })
	begin := slices.MinFunc(all, func(a, b *description.Process) int {
		return int(int64(a.FirstTime - b.FirstTime))
	}).FirstTime
	raw := new(big.Rat).Quo(new(big.Rat).SetFrac(new(big.Int).SetUint64(first), big.NewInt(1)), ticks)
	start := new(big.Int).Quo(raw.Num(), raw.Denom()).Uint64() + 1_000_000 // what CLOCK_MONOTONIC_RAW shows at begin
	for i, p := range all {
		was := p.PID
		p.Host, p.PID = "vm", pids[i]
		for k := range p.Locations {
			if l := &p.Locations[k]; l.TID == was {
				l.TID = p.PID
			} else if l.TID != 0 {
				l.TID = p.PID + 1 + l.TID - was
			}
		}
		p.Clock.Source = "tsc"
		p.Clock.AnchorRaw = start + (p.Clock.AnchorReal - begin)
		last := p.LastTime - p.Clock.AnchorReal + p.Clock.AnchorRaw
		for n, r := uint64(0), start-5_000_000; r < last+100_000_000; n, r = n+1, r+70_000_000 {
			v := new(big.Rat).Mul(new(big.Rat).SetFrac(new(big.Int).SetUint64(r), big.NewInt(1)), ticks)
			at := new(big.Int).Quo(v.Num(), v.Denom()).Uint64() + n*37%53
			p.Clock.Tuples = append(p.Clock.Tuples,
				provenance.ClockTuple{Ticks: at, Raw: r, Mono: r, Real: p.Clock.AnchorReal + r - p.Clock.AnchorRaw})
		}
		text := testkit.Value(json.Marshal(p))(t)
		testkit.Must(t, os.WriteFile(filepath.Join(dir, "shards", p.UUID, "shard.json"), text, 0o600))
	}
	return all
}

// telling is an event with the names of what it refers to, without its time.
func telling(a *otf2.Archive, e *otf2.Event) string {
	name := func(typ string, id uint64) string {
		switch typ {
		case "RegionRef":
			if r := a.Defs.Region(otf2.RegionRef(id)); r != nil {
				return a.Defs.String(r.Name)
			}
		case "CommRef":
			if c := a.Defs.Comm(otf2.CommRef(id)); c != nil {
				return a.Defs.String(c.Name)
			}
		case "StringRef":
			return a.Defs.String(otf2.StringRef(id))
		case "RmaWinRef":
			if w := a.Defs.RmaWin(otf2.RmaWinRef(id)); w != nil {
				return a.Defs.String(w.Name)
			}
		}
		return fmt.Sprint(id)
	}
	var b strings.Builder
	fmt.Fprint(&b, e.Kind)
	fields := e.Kind.Fields()
	for i, v := range e.Args {
		fmt.Fprintf(&b, " %s", name(fields[min(i, len(fields)-1)].Type, v))
	}
	for _, v := range e.Attributes {
		attribute := a.Defs.Attribute(v.ID)
		typ := map[otf2.Type]string{otf2.TypeString: "StringRef", otf2.TypeComm: "CommRef"}[v.Type]
		fmt.Fprintf(&b, " %s=%s", a.Defs.String(attribute.Name), name(typ, v.Bits))
	}
	return b.String()
}

func streamOf(t *testing.T, a *otf2.Archive, l otf2.LocationRef) (texts []string, times []uint64) {
	t.Helper()
	for e, err := range a.EventsOf(l) {
		testkit.Must(t, err)
		texts, times = append(texts, telling(a, e)), append(times, uint64(e.Time))
	}
	return texts, times
}

// exactTime is the time of an event of a process in the trace's clock: through the process's readings, or for ticks
// that are those of CLOCK_MONOTONIC_RAW directly, and then by the trace's own corrections.
func exactTime(p *description.Process, direct bool, offsets []otf2.ClockOffset, at uint64) *big.Rat {
	rat := func(v uint64) *big.Rat { return new(big.Rat).SetFrac(new(big.Int).SetUint64(v), big.NewInt(1)) }
	line := func(x, x0, y0, x1, y1 *big.Rat) *big.Rat {
		d := new(big.Rat).Quo(new(big.Rat).Sub(x, x0), new(big.Rat).Sub(x1, x0))
		return d.Add(d.Mul(d, new(big.Rat).Sub(y1, y0)), y0)
	}
	local := rat(at - p.Clock.AnchorReal + p.Clock.AnchorRaw)
	if !direct {
		k := slices.IndexFunc(p.Clock.Tuples, func(c provenance.ClockTuple) bool { return rat(c.Raw).Cmp(local) >= 0 })
		a, b := p.Clock.Tuples[max(k, 1)-1], p.Clock.Tuples[max(k, 1)]
		local = line(local, rat(a.Raw), rat(a.Ticks), rat(b.Raw), rat(b.Ticks))
	}
	if len(offsets) < 2 {
		return local
	}
	a, b := offsets[0], offsets[len(offsets)-1]
	off := line(local, rat(uint64(a.Time)), new(big.Rat).SetInt64(a.Offset), rat(uint64(b.Time)),
		new(big.Rat).SetInt64(b.Offset))
	return off.Add(off, local)
}

// Recordings of real NCCL jobs and traces of real Score-P, as if they were of the same programs: every event of both is
// in the merged archive, in its order, with the same content, at its time to the tick, and in the files that were
// there.
func TestMergeOfRecordings(t *testing.T) {
	tool := toolWithParts(t)
	four, one := played(t, tool, "02-allcoll-4p-net"), played(t, tool, "04-threads-4r")
	for _, c := range []struct {
		name, trace, job string
		pids             []int
		ticks            *big.Rat
		direct           bool
		row              string // of the first process's thread
	}{
		{"tsc", "../../tests/jobtest/testdata/scorep-mpi", four, []int{13575, 13576, 13577, 13578},
			big.NewRat(2500037534, 1e9), false, "Master thread NCCL"},
		{"clock_gettime", "../../scorep/testdata/mpi4-clock_gettime", four, nil, big.NewRat(1, 1), true,
			"Master thread NCCL"},
		{"pthread", "../../scorep/testdata/user-pthread", one, []int{13727}, big.NewRat(2501787807, 1e9), false,
			"Thread 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			base := t.TempDir()
			trace, dir, out := filepath.Join(base, "scorep"), filepath.Join(base, "nccl"), filepath.Join(base, "merged")
			for from, to := range map[string]string{c.trace: trace,
				filepath.Join(c.job, "shards"): filepath.Join(dir, "shards")} {
				testkit.Must(t, os.CopyFS(to, os.DirFS(from)))
			}
			theirs := jobtest.Open(t, filepath.Join(trace, "traces.otf2"))
			pids := c.pids
			if pids == nil {
				for i := range theirs.Defs.LocationGroups {
					for e := range theirs.EventsOf(otf2.LocationRef(i)) {
						pids = append(pids, int(e.Attributes[0].Bits))
						break
					}
				}
			}
			processes := disguise(t, dir, pids, theirs.Defs.Clock.Offset, c.ticks)
			unified := filepath.Join(dir, "traces.otf2")
			got, err := exec.Command(tool, "unify", "--no-ends", dir).CombinedOutput()
			testkit.Require(t, err == nil, "%v\n%s", err, got)
			var res struct {
				Paired, Linked, Copied, Locations int
				Problems                          []string
			}
			got, err = exec.Command(tool, "merge", trace, dir, "-o", out, "--format", "json").Output()
			if err := json.Unmarshal(got, &res); err != nil || res.Paired != len(pids) || res.Copied != 0 ||
				len(res.Problems) > 0 {
				t.Fatalf("%v: %s", err, got)
			}
			testkit.Must(t, err)
			merged := jobtest.Open(t, filepath.Join(out, "traces.otf2"))
			readByReference(t, merged)
			// Score-P's reductions in place look like nothing that check knows, whoever reads them.
			found := func(anchor string) string {
				out, _ := exec.Command(tool, "check", anchor).Output()
				lines := slices.DeleteFunc(strings.Split(string(out), "\n"),
					func(l string) bool { return !strings.HasPrefix(l, "error") })
				return strings.Join(lines, "\n")
			}
			if got, want := found(merged.Path()), found(theirs.Path()); got != want {
				t.Errorf("check finds\n%s\n, in Score-P's trace\n%s", got, want)
			}
			for _, l := range theirs.Defs.Locations {
				wantTexts, wantTimes := streamOf(t, theirs, l.Self)
				gotTexts, gotTimes := streamOf(t, merged, l.Self)
				testkit.Check(t, slices.Equal(gotTexts, wantTexts) && slices.Equal(gotTimes, wantTimes),
					"Score-P's location %d differs", l.Self)
				linked(t, theirs.EventFile(l.Self), merged.EventFile(l.Self))
			}
			alone := jobtest.Open(t, unified)
			rows := merged.Defs.Locations[len(theirs.Defs.Locations):]
			testkit.Require(t, len(rows) == len(alone.Defs.Locations),
				"%d rows, there are %d", len(rows), len(alone.Defs.Locations))
			half, checked, nearest := big.NewRat(1, 2), 0, 0
			for i, l := range alone.Defs.Locations { // both are in the order of their ids
				self := rows[i].Self
				rank := int(uint32(l.Self))
				wantTexts, _ := streamOf(t, alone, l.Self)
				gotTexts, gotTimes := streamOf(t, merged, self)
				testkit.Check(t, slices.Equal(gotTexts, wantTexts), "row %q differs", merged.Defs.String(rows[i].Name))
				linked(t, alone.EventFile(l.Self), merged.EventFile(self))
				raw := testkit.Value(otf2.Open(merged.Path(), &otf2.ReadOptions{Raw: true}))(t)
				_, rawTimes := streamOf(t, raw, self)
				_, offsets, err := theirs.LocalDefs(otf2.LocationRef(rank))
				testkit.Must(t, err)
				for k, at := range rawTimes {
					off := new(big.Rat).Sub(new(big.Rat).SetFrac(new(big.Int).SetUint64(gotTimes[k]), big.NewInt(1)),
						exactTime(processes[rank], c.direct, offsets, at))
					if off.Abs(off).Cmp(big.NewRat(1, 1)) >= 0 {
						t.Fatalf("row %q, event %d is %s ticks off", merged.Defs.String(rows[i].Name), k,
							off.FloatString(3))
					}
					checked++
					if off.Cmp(half) <= 0 {
						nearest++
					}
				}
			}
			if name := merged.Defs.String(rows[0].Name); name != c.row || checked < 300 || nearest*10 < checked*9 {
				t.Errorf("the first row is %q; of %d events %d have the nearest tick", name, checked, nearest)
			}
		})
	}
}

func linked(t *testing.T, a, b string) {
	t.Helper()
	x := testkit.Value(os.Stat(a))(t)
	y := testkit.Value(os.Stat(b))(t)
	testkit.Check(t, os.SameFile(x, y), "%s is not %s", b, a)
}

// readByReference lets both reference readers read an archive, warnings being errors, and counts its events.
func readByReference(t *testing.T, a *otf2.Archive) {
	t.Helper()
	need.Reference(t, "otf2-print")
	for _, what := range []string{"-G", "-A"} {
		cmd := exec.Command("otf2-print", "-Werror", what, a.Path())
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		_, err := cmd.Output()
		testkit.Require(t, err == nil && stderr.Len() == 0, "otf2-print %s: %v\n%s", what, err, stderr.String())
	}
	const script = "import sys, otf2\nwith otf2.reader.open(sys.argv[1]) as trace:\n print(sum(1 for _ in " +
		"trace.events))\n"
	out, err := exec.Command(need.Python(t), "-c", script, a.Path()).Output()
	events := uint64(0)
	for _, l := range a.Defs.Locations {
		events += l.Events
	}
	testkit.Require(t, err == nil && strings.TrimSpace(string(out)) == fmt.Sprint(events),
		"python3-otf2: %v: %s events, the definitions say %d", err, out, events)
}
