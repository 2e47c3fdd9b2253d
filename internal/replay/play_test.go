// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/replay/descriptor"
	"github.com/nccl-otf2/nccl-otf2/internal/replay/replaytest"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

func TestEachRecordingPlaysAsRecorded(t *testing.T) {
	for _, name := range names {
		for _, clock := range []Clock{ClockLive, ClockRecorded} {
			t.Run(name+"/"+string(clock), func(t *testing.T) {
				t.Parallel()
				rec := load(t, name)
				res, out := mustPlay(t, rec, Options{Clock: clock})
				sum := res.Total()
				testkit.Check(t, maps.Equal(sum.Delivered.Starts, rec.Run.Starts),
					"starts %v, recorded %v", sum.Delivered.Starts, rec.Run.Starts)
				testkit.Check(t, maps.Equal(sum.Delivered.States, rec.Run.States),
					"states %v, recorded %v", sum.Delivered.States, rec.Run.States)
				stops := sum.NullHandles
				for _, n := range sum.Delivered.Stops {
					stops += n
				}
				testkit.Check(t, stops == rec.Run.Calls["stop"] && sum.Inits == rec.Run.Calls["init"] &&
					sum.Finalizes == rec.Run.Calls["finalize"] && sum.Loads == rec.Run.Calls["open"],
					"%d stops, %d inits, %d finalizes, %d loads; recorded %v", stops, sum.Inits, sum.Finalizes,
					sum.Loads, rec.Run.Calls)
				if len(sum.Delivered.Declined)+len(sum.Suppressed.Starts)+len(sum.Suppressed.Stops)+len(
					sum.Suppressed.States) != 0 {
					t.Errorf("held back: %+v", sum)
				}
				testkit.Equal(t, sum.Plugin, fmt.Sprintf("v%d", rec.Run.API), "interface")
				for k, p := range rec.Processes {
					c := compare(t, p, res.Processes[k].PID, hear(t, out, k))
					c.causal()
					if clock == ClockRecorded {
						c.inOrder()
					}
					c.inits(rec)
				}
			})
		}
	}
}

// inits checks the mask and device that a plugin sees at initialization.
func (c *comparison) inits(rec *Recording) {
	for _, x := range c.p.Contexts {
		h := c.of[x.Init]
		device := rec.Device(c.p, x)
		if h.Cuda != 0 || h.Device != device || h.PCI != fmt.Sprintf("00000000:%02X:00.0", device) ||
			h.UUID != fmt.Sprintf("4e43434c2d4f5446322d46414b452d%02x", device) {
			c.t.Errorf("process %d, rank %d: device %d (%d) %s %s, want %d", c.p.Index, x.Rank, h.Device, h.Cuda,
				h.UUID, h.PCI, device)
		}
	}
	// Concurrent inits may or may not see each other's mask; sequential ones see the recorded mask. Record mode, which
	// made the recordings on GPUs, does not record it.
	if len(c.p.Threads) > 0 && rec.Run.RanksPerProcess == 1 && !onGPU(rec.Name) {
		for _, x := range c.p.Contexts {
			h := c.of[x.Init]
			testkit.Check(c.t, h.MaskBefore == x.MaskBefore,
				"process %d: mask %d before init of %s, recorded %d", c.p.Index, h.MaskBefore, x.Name(), x.MaskBefore)
		}
	}
}

func TestDumpSaysWhatIsPlayed(t *testing.T) {
	host := filepath.Join(replaytest.Build(t, ""), HostFile)
	for _, name := range names {
		rec := load(t, name)
		calls, starts, states := map[string]int{}, map[string]int{}, map[string]int{}
		for k, p := range rec.Processes {
			program := testkit.Value(Compile(rec, k))(t)
			out := testkit.Value(exec.Command(host, "--dump", programFile(t, program)).Output())(t)
			lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
			testkit.Require(t, len(lines) == len(p.Calls)+1,
				"%s: %d lines for %d calls", name, len(lines), len(p.Calls))
			for i, call := range p.Calls {
				var line struct {
					Call   int
					F      string
					T      uint64
					Thread int
					Type   string
					State  string
				}
				if err := json.Unmarshal(lines[i], &line); err != nil {
					t.Fatalf("%s: %v in %s", name, err, lines[i])
				}
				if line.Call != i || line.F != call.Kind.String() || line.T != call.T ||
					line.Thread != call.Thread.Index ||
					call.Kind == CallStart && line.Type != call.Event.Type.String() || call.Kind == CallState &&
					line.State != call.State.String() {
					t.Fatalf("%s: call %d is dumped as %s", name, i, lines[i])
				}
			}
			var sum struct{ Calls, Starts, States map[string]int }
			testkit.Must(t, json.Unmarshal(lines[len(p.Calls)], &sum))
			for to, from := range map[*map[string]int]map[string]int{&calls: sum.Calls, &starts: sum.Starts,
				&states: sum.States} {
				for key, n := range from {
					(*to)[key] += n
				}
			}
		}
		want := maps.Clone(rec.Run.Calls)
		delete(want, "open")
		delete(want, "thread")
		testkit.Check(t, maps.Equal(calls, want) && maps.Equal(starts, rec.Run.Starts) &&
			maps.Equal(states, rec.Run.States), "%s: dumped %v %v %v, run.json says %v %v %v", name, calls, starts,
			states, want, rec.Run.Starts, rec.Run.States)
	}
}

func programFile(t testing.TB, program []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	testkit.Must(t, os.WriteFile(path, program, 0o600))
	return path
}

// only returns the numbers of a recording's starts for these types.
func only(all map[string]int, types ...descriptor.Type) map[string]int {
	part := map[string]int{}
	for _, t := range types {
		if n := all[t.String()]; n > 0 {
			part[t.String()] = n
		}
	}
	return part
}

func TestTheMaskDecidesWhatIsStarted(t *testing.T) {
	rec := load(t, "02-allcoll-4p-net")
	null := 0 // stops that NCCL made with NULL
	for _, p := range rec.Processes {
		for _, c := range p.Calls {
			if c.Kind == CallStop && c.Event == nil {
				null++
			}
		}
	}
	net := rec.Run.Starts["NetPlugin"]
	api := []descriptor.Type{descriptor.TypeGroupApi, descriptor.TypeCollApi, descriptor.TypeP2pApi}
	tasks := append([]descriptor.Type{descriptor.TypeGroup, descriptor.TypeColl, descriptor.TypeP2p}, api...)
	for _, test := range []struct {
		mask uint64
		want []descriptor.Type
		null int
	}{
		{0, nil, null + net},
		{descriptor.TypeProxyCtrl.Bit(), []descriptor.Type{descriptor.TypeProxyCtrl}, null + net},
		{descriptor.TypeGroupApi.Bit(), []descriptor.Type{descriptor.TypeGroupApi}, null + net},
		{descriptor.TypeKernelLaunch.Bit(), []descriptor.Type{descriptor.TypeGroupApi, descriptor.TypeKernelLaunch}, null + net},
		{descriptor.TypeP2pApi.Bit(), []descriptor.Type{descriptor.TypeGroupApi, descriptor.TypeP2pApi}, null + net},
		{descriptor.TypeP2p.Bit(), []descriptor.Type{descriptor.TypeGroupApi, descriptor.TypeP2pApi, descriptor.TypeGroup, descriptor.TypeP2p}, null + net},
		{descriptor.TypeColl.Bit(), []descriptor.Type{descriptor.TypeGroupApi, descriptor.TypeCollApi, descriptor.TypeGroup, descriptor.TypeColl}, null + net},
		{descriptor.TypeGroup.Bit(), []descriptor.Type{descriptor.TypeGroupApi, descriptor.TypeGroup}, null + net},
		{descriptor.TypeKernelCh.Bit(), append([]descriptor.Type{descriptor.TypeKernelCh}, tasks...), null + net},
		{descriptor.TypeProxyOp.Bit(), append([]descriptor.Type{descriptor.TypeProxyOp}, tasks...), null + net},
		{descriptor.TypeProxyStep.Bit(), append([]descriptor.Type{descriptor.TypeProxyOp, descriptor.TypeProxyStep}, tasks...), null + net},
		{descriptor.TypeNetPlugin.Bit(), append([]descriptor.Type{descriptor.TypeProxyOp, descriptor.TypeProxyStep, descriptor.TypeNetPlugin}, tasks...), null},
		{descriptor.TypeCeColl.Bit(), []descriptor.Type{descriptor.TypeGroupApi, descriptor.TypeCollApi}, null + net},
	} {
		t.Run(fmt.Sprintf("%#x", test.mask), func(t *testing.T) {
			res, _ := mustPlay(t, rec, Options{Env: []string{fmt.Sprintf("RECORDER_MASK=%d", test.mask)}})
			sum := res.Total()
			want := only(rec.Run.Starts, test.want...)
			testkit.Check(t, maps.Equal(sum.Delivered.Starts, want) && maps.Equal(sum.Delivered.Stops, want),
				"starts %v, stops %v, want %v", sum.Delivered.Starts, sum.Delivered.Stops, want)
			testkit.Check(t, sum.NullHandles == test.null, "%d calls with NULL, want %d", sum.NullHandles, test.null)
			testkit.Check(t, sum.Mask == int(test.mask), "mask %d at the end", sum.Mask)
			for name, n := range rec.Run.Starts {
				got := sum.Delivered.Starts[name] + sum.Suppressed.Starts[name]
				testkit.Check(t, got == n, "%s: %d delivered or suppressed of %d", name, got, n)
			}
		})
	}
}

func TestChildrenOfDeclinedEventsHaveNoParent(t *testing.T) {
	rec := load(t, "02-allcoll-4p-net")
	res, out := mustPlay(t, rec, Options{Env: []string{fmt.Sprintf(
		"RECORDER_DECLINE=%d", descriptor.TypeColl.Bit()|descriptor.TypeNetPlugin.Bit()|descriptor.TypeGroup.Bit())}})
	sum := res.Total()
	declined := only(rec.Run.Starts, descriptor.TypeColl, descriptor.TypeNetPlugin, descriptor.TypeGroup)
	testkit.Check(t, maps.Equal(sum.Delivered.Declined, declined),
		"declined %v, want %v", sum.Delivered.Declined, declined)
	if want := only(rec.Run.Starts, descriptor.TypeColl, descriptor.TypeGroup); !maps.Equal(sum.Suppressed.Stops, want) {
		t.Errorf("stops held back %v, want %v", sum.Suppressed.Stops, want)
	}
	if want :=
		rec.Run.Calls["stop"]; sum.NullHandles != want-sum.stops()-sum.Suppressed.Stops["Coll"]-sum.Suppressed.Stops["Group"] || sum.NullHandles < declined["NetPlugin"] {
		t.Errorf("%d stops with NULL", sum.NullHandles)
	}
	orphans := 0
	for k := range rec.Processes {
		for _, h := range hear(t, out, k) {
			switch h.TypeName {
			case "Coll", "P2p":
				testkit.Require(t, h.D["parentGroup"] == nil,
					"%s has a parentGroup though there is no Group", h.TypeName)
			case "KernelCh":
				if h.ParentObj == 0 {
					orphans++
				}
			}
		}
	}
	want := 0
	for _, p := range rec.Processes {
		for _, e := range p.Events {
			if e.Type == descriptor.TypeKernelCh && e.Parent.Type == descriptor.TypeColl {
				want++
			}
		}
	}
	testkit.Check(t, orphans == want && want != 0, "%d KernelCh without parent, want %d", orphans, want)
}

func (r *Report) stops() int {
	n := 0
	for _, k := range r.Delivered.Stops {
		n += k
	}
	return n
}

func TestCollApiIsStoppedAgainWhenTheMaskIsTakenAway(t *testing.T) {
	// NCCL keeps the CollApi handle after its stop; if the mask excludes the next start, NCCL stops the old event
	// again.
	rec := load(t, "01-allreduce-2p")
	res, out := mustPlay(t, rec, Options{Clock: ClockRecorded, Env: []string{"RECORDER_SWITCH=3:0"}})
	for k, p := range rec.Processes {
		r := res.Processes[k].Report
		// The third group still uses the mask that was read before its start.
		got := r.Delivered.Starts["GroupApi"]
		testkit.Check(t, got == 3, "process %d: %d groups started", k, got)
		groups := 0
		for _, e := range p.Events {
			if e.Type == descriptor.TypeGroupApi {
				groups++
			}
		}
		testkit.Check(t, r.StaleStops == groups-3, "process %d: %d stale stops of %d groups", k, r.StaleStops, groups)
		stops := map[descriptor.Pointer]int{}
		var last descriptor.Pointer
		for _, h := range hear(t, out, k) {
			if h.F == "start" && h.TypeName == "CollApi" {
				last = h.H
			}
			if h.F == "stop" {
				stops[h.H]++
			}
		}
		testkit.Check(t, stops[last] == 1+groups-3, "process %d: the last CollApi was stopped %d times", k, stops[last])
	}
}

func TestAHandleThatThePluginDoesNotWriteIsReported(t *testing.T) {
	rec := load(t, "01-allreduce-2p")
	res, _ := play(t, rec, Options{Clock: ClockRecorded,
		Env: []string{fmt.Sprintf("RECORDER_UNWRITTEN=%d", descriptor.TypeProxyCtrl.Bit())}})
	want := 0
	for _, p := range rec.Processes {
		for _, e := range p.Events {
			if e.Type == descriptor.TypeProxyCtrl && e.Before != 0 && e.BeforeEvent == nil {
				want++
			}
		}
	}
	if got := res.Total().Unwritten; got < want || want == 0 {
		t.Errorf("%d handles unwritten, want at least the %d with garbage before", got, want)
	}
}

func TestWaysToEnd(t *testing.T) {
	rec := load(t, "07-twocomms-streams")
	total := len(rec.Processes[0].Calls)
	finalizes := len(rec.Processes[0].Contexts)
	for _, test := range []struct {
		name     string
		opt      Options
		signal   syscall.Signal
		calls    int
		unloaded int // lines of the plugin's destructor
	}{
		{"to the end", Options{}, 0, total, 2},
		{"without finalize", Options{NoFinalize: true}, 0, total - finalizes, 1},
		{"by _exit", Options{NoFinalize: true, quickExit: true}, 0, total - finalizes, 0},
		{"killed after the last call", Options{Die: DieAfterLast}, syscall.SIGKILL, total - finalizes, 0},
		{"killed after 100 calls", Options{Die: "100", Clock: ClockRecorded}, syscall.SIGKILL, 100, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			res, out := mustPlay(t, rec, test.opt)
			p := res.Processes[0]
			testkit.Check(t, p.Signal == test.signal && (test.signal != 0 || p.ExitCode == 0),
				"status %d, signal %v", p.ExitCode, p.Signal)
			calls, unloaded := 0, 0
			for _, h := range hear(t, out, 0) {
				if h.F == "unload" {
					unloaded++
				} else {
					calls++
				}
			}
			testkit.Check(t, calls == test.calls && unloaded == test.unloaded,
				"%d calls, %d unloads; want %d, %d", calls, unloaded, test.calls, test.unloaded)
			r := p.Report
			made := r.Inits + r.Finalizes + r.NullHandles + r.stops()
			for _, m := range []map[string]int{r.Delivered.Starts, r.Delivered.States} {
				for _, n := range m {
					made += n
				}
			}
			testkit.Check(t, made == test.calls, "the report counts %d calls, the plugin %d", made, test.calls)
		})
	}
}

func TestThePluginIsFoundAsNCCLFindsIt(t *testing.T) {
	built := replaytest.Build(t, "")
	rec := load(t, "01-allreduce-2p")
	path := t.TempDir()
	for link, to := range map[string]string{
		"libnccl-profiler-rec.so": "librecorder.so",
		"libnccl-profiler.so":     "librecorder.so",
		"libnccl-profiler-s5.so":  "librecorder-v5.so",
		"libown.so":               "librecorder.so",
	} {
		testkit.Must(t, os.Symlink(filepath.Join(built, to), filepath.Join(path, link)))
	}
	for _, test := range []struct {
		name, value, plugin string
		fails               string // part of the line with the reason
	}{
		{"a path", filepath.Join(built, "librecorder.so"), "v6", ""},
		{"a file on the loader's path", "libown.so", "v6", ""},
		{"a short name", "rec", "v6", ""},
		{"nothing", "", "v6", ""},
		{"an older plugin", "s5", "v5", ""},
		{"an unknown name", "nosuch", "", "libnccl-profiler-nosuch.so"},
		{"an unknown file", "libnosuch.so", "", "libnosuch.so"},
		{"an unknown path", "/nosuch/plugin", "", "/nosuch/plugin"},
		{"no plugin", "NONE", "none", ""},
		{"the program itself", "Static", "", "none of ncclProfiler_v1 to ncclProfiler_v6"},
		{"a much older plugin", filepath.Join(built, "librecorder-v1.so"), "v1", ""},
		{"a version that the release does not know", filepath.Join(built, "librecorder-v7.so"), "",
			"none of ncclProfiler_v1 to ncclProfiler_v6"},
	} {
		t.Run(test.name, func(t *testing.T) {
			res, _ := play(t, rec, Options{Env: []string{"NCCL_PROFILER_PLUGIN=" + test.value,
				"LD_LIBRARY_PATH=" + path}})
			for _, p := range res.Processes {
				if test.fails != "" {
					testkit.Check(t, p.ExitCode == 1 && p.Report == nil && strings.Count(p.Stderr, "\n") == 1 &&
						strings.Contains(p.Stderr, test.fails), "status %d, %q; want status 1 and a line with %q",
						p.ExitCode, p.Stderr, test.fails)
					continue
				}
				testkit.Require(t, p.Err() == nil && p.Report.Plugin == test.plugin, "%v; %+v", p.Err(), p.Report)
				testkit.Check(t, test.plugin != "none" || p.Report.Inits == 0 && len(p.Report.Delivered.Starts) == 0,
					"calls without a plugin: %+v", p.Report)
			}
		})
	}
}

func TestAnOlderPluginIsAdaptedAsNCCLDoes(t *testing.T) {
	rec := load(t, "01-allreduce-2p") // NCCL 2.29.7 speaks version 6
	res, out := mustPlay(t, rec, Options{Plugin: filepath.Join(replaytest.Build(t, ""), "librecorder-v5.so")})
	testkit.Equal(t, res.Total().Mask, 36863, "mask")
	for _, h := range hear(t, out, 0) {
		testkit.Require(t, h.F != "state" || h.StateName != "GroupStartApiStop" || h.Args != nil,
			"GroupApi states have arguments when a plugin is adapted")
	}
}

func TestPacedCallsKeepTheirDistances(t *testing.T) {
	rec := load(t, "01-allreduce-2p")
	first, last := rec.beginning(rec.Processes[0]), uint64(0)
	for _, p := range rec.Processes {
		last = max(last, p.Calls[len(p.Calls)-1].T)
	}
	for _, clock := range []Clock{ClockLive, ClockRecorded} {
		t.Run(string(clock), func(t *testing.T) {
			t.Parallel()
			begin := time.Now()
			res, out := mustPlay(t, rec, Options{Clock: clock, Pace: PaceRecorded})
			// A replay is never faster than recorded; how much slower it is depends on the machine.
			if took := time.Since(begin); took < time.Duration(last-first) {
				t.Errorf("played in %v what took %v", took, time.Duration(last-first))
			}
			for k, p := range rec.Processes {
				c := compare(t, p, res.Processes[k].PID, hear(t, out, k))
				c.causal()
				if clock == ClockRecorded {
					c.inOrder()
				}
			}
		})
	}
}

func TestCancelKillsTheHosts(t *testing.T) {
	rec := load(t, "09-straggler-4p")
	dir := replaytest.Build(t, "")
	ctx, cancel := context.WithCancel(context.Background())
	out := t.TempDir()
	go func() {
		// The first host is playing. The recording takes seconds at its own pace.
		for {
			if _, err := os.Stat(filepath.Join(out, "p0.jsonl")); err == nil || ctx.Err() != nil {
				cancel()
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	defer cancel()
	res, err := Run(ctx, rec, Options{
		Host: filepath.Join(dir, HostFile), Plugin: filepath.Join(dir, "librecorder.so"), Pace: PaceRecorded,
		Env: []string{"RECORDER_DIR=" + out},
	})
	testkit.Require(t, errors.Is(err, context.Canceled), "error %v", err)
	testkit.Check(t, len(res.Processes) != 0, "nothing is said of the host that played")
	wantKilled(t, res)
}

// wantKilled checks that every host that was started has been killed and is gone.
func wantKilled(t *testing.T, res *Result) {
	t.Helper()
	for _, p := range res.Processes {
		testkit.Check(t, p.Signal == syscall.SIGKILL && p.Err() != nil,
			"process %d: status %d, signal %v", p.Rank, p.ExitCode, p.Signal)
		err := syscall.Kill(p.PID, 0)
		testkit.Check(t, errors.Is(err, syscall.ESRCH), "process %d is still there: %v", p.Rank, err)
	}
}

// Canceling works however many hosts have been started by then.
func TestCancelWhileHostsAreStarted(t *testing.T) {
	rec := load(t, "09-straggler-4p")
	dir := replaytest.Build(t, "")
	for after := time.Duration(0); after < 8*time.Millisecond; after += 500 * time.Microsecond {
		ctx, cancel := context.WithTimeout(context.Background(), after)
		res, err := Run(ctx, rec, Options{
			Host: filepath.Join(dir, HostFile), Plugin: filepath.Join(dir, "librecorder.so"), Pace: PaceRecorded,
			Env: []string{"RECORDER_DIR=" + t.TempDir()},
		})
		cancel()
		testkit.Require(t, errors.Is(err, context.DeadlineExceeded), "after %s: error %v", after, err)
		testkit.Require(t, res != nil, "after %s: no result", after)
		wantKilled(t, res)
	}
}

func TestAHostThatCannotBeStarted(t *testing.T) {
	rec := load(t, "09-straggler-4p")
	res, err := Run(context.Background(), rec, Options{Host: filepath.Join(t.TempDir(), "none")})
	testkit.Check(t, errors.Is(err, os.ErrNotExist) && res != nil && len(res.Processes) == 0,
		"result %v, error %v", res, err)
}

func TestThePluginsWordsReachTheUser(t *testing.T) {
	rec := load(t, "01-allreduce-2p")
	for _, verbose := range []bool{false, true} {
		var stderr bytes.Buffer
		res, out := mustPlay(t, rec, Options{verbose: verbose, noCUDA: true, Stderr: &stderr})
		for k := range rec.Processes {
			line := fmt.Sprintf("recorder: rank %d of 2", k)
			if got := strings.Count(stderr.String(), line); got != map[bool]int{false: 0, true: 1}[verbose] {
				t.Errorf("verbose %t: %q is %d times in %q", verbose, line, got, stderr.String())
			}
			r := res.Processes[k].Report
			testkit.Check(t, r.Infos == 1 && r.Warnings == 0, "%d INFO lines, %d warnings", r.Infos, r.Warnings)
			if h := hear(t, out, k)[0]; h.Cuda != 3 || h.Device != -1 {
				t.Errorf("without CUDA the driver answers %d, device %d", h.Cuda, h.Device)
			}
		}
	}
}

func TestHostsHaveTheEnvironmentOfALauncher(t *testing.T) {
	t.Setenv("SLURM_PROCID", "7")
	t.Setenv("RANK", "9")
	t.Setenv("MV2_COMM_WORLD_RANK", "7")
	t.Setenv("TORCHELASTIC_RUN_ID", "another")
	t.Setenv("FLUX_JOB_SIZE", "8")
	env := map[string]string{}
	for _, kv := range environment(&Options{Plugin: "x", Spool: true, Clock: ClockRecorded,
		Env: []string{"WORLD_SIZE=5"}}, 1, 3) {
		key, value, _ := strings.Cut(kv, "=")
		env[key] = value
	}
	for key, want := range map[string]string{
		"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "5", "LOCAL_WORLD_SIZE": "3", "NCCL_PROFILER_PLUGIN": "x",
		"NCCL_OTF2_CLOCK": "host", "NCCL_OTF2_COLLECTOR": "spool", "SLURM_PROCID": "", "MV2_COMM_WORLD_RANK": "",
		"TORCHELASTIC_RUN_ID": "", "FLUX_JOB_SIZE": "",
	} {
		testkit.Equal(t, env[key], want, "%s", key)
	}
}

func TestABrokenProgramIsRefused(t *testing.T) {
	host := filepath.Join(replaytest.Build(t, ""), HostFile)
	rec := load(t, "05-p2p-3p")
	good := testkit.Value(Compile(rec, 0))(t)
	refused := func(what string, program []byte) {
		t.Helper()
		cmd := exec.Command(host, programFile(t, program))
		// There is no such plugin: an attempt to play would report that.
		cmd.Env = append(os.Environ(), "NCCL_PROFILER_PLUGIN=/nosuch/plugin")
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		var exit *exec.ExitError
		testkit.Check(t, errors.As(err, &exit) && exit.ExitCode() == 1 && len(out) == 0 &&
			bytes.Count(stderr.Bytes(), []byte("\n")) == 1 && !strings.Contains(stderr.String(), "no plugin"),
			"%s: %v, %q, %q", what, err, out, stderr.String())
	}
	for _, n := range []int{0, 1, 18, len(good) / 3, len(good) / 2, len(good) - 30, len(good) - 2, len(good) - 1} {
		refused(fmt.Sprintf("cut off after %d of %d bytes", n, len(good)), good[:n])
	}
	for _, n := range []int{0, 30, len(good) / 2, len(good) - 40} {
		bad := bytes.Clone(good)
		bad[n] ^= 1
		refused(fmt.Sprintf("byte %d changed", n), bad)
	}
	// With a correct checksum, but nonsensical content.
	for _, edit := range []struct{ what, from, to string }{
		{"an unknown call", "\nstop ", "\nstep "},
		{"an unknown thread", "\ninit 0 ", "\ninit 77 "},
		{"a call before the context", "\ninit 0 ", "\nfinalize 0 "},
		{"an unknown version", "replay-program 2", "replay-program 1"},
		{"too few calls", "\nstop ", "\n"},
	} {
		refused(edit.what, sealed(bytes.Replace(good, []byte(edit.from), []byte(edit.to), 1)))
	}
}

// sealed returns a changed program with a correct checksum.
func sealed(program []byte) []byte {
	body := program[:bytes.LastIndex(program, []byte("\nend "))+1]
	return seal(bytes.Clone(body))
}

func TestMissingFilesAreErrors(t *testing.T) {
	rec := load(t, "01-allreduce-2p")
	_, err := Run(context.Background(), rec, Options{Host: "/nosuch/host"})
	testkit.Check(t, err != nil && strings.Contains(err.Error(), "/nosuch/host"), "error %v", err)
	_, err = Compile(rec, 2)
	testkit.Check(t, err != nil, "process 2 of two was compiled")
}
