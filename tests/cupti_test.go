// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/tests/fakegpu"
)

// playKernels plays a recording with its kernels on the fake CUPTI.
func playKernels(t *testing.T, rec *replay.Recording, dir string, changes ...change) *replay.Result {
	t.Helper()
	res := runQuietly(t, rec, usual(t, dir, append(changes, kernels)...))
	for i := range res.Processes {
		if gpu := fakegpu.Ran(t, &res.Processes[i]); gpu == nil || len(gpu.Kernels) == 0 {
			t.Fatalf("process %d ran no kernels: %+v", i, gpu)
		}
	}
	return res
}

// activities are the records of CUPTI's in one spool file, by kind, and the names they point to.
type activities struct {
	header  shm.Header
	kinds   map[uint32][][]byte
	names   map[string]string // of kernels, by the record's bytes
	clocks  int
	version map[uint64]bool
}

func readSpool(t *testing.T, path string) *activities {
	t.Helper()
	file := testkit.Value(os.Open(path))(t)
	defer file.Close()
	info := testkit.Value(file.Stat())(t)
	spool := testkit.Value(shm.OpenSpool(file, info.Size()))(t)
	got := &activities{kinds: map[uint32][][]byte{}, names: map[string]string{}, version: map[uint64]bool{}}
	for ended := false; !ended; {
		round := testkit.Value(spool.Refresh())(t)
		ended = round.Ended
		for _, ring := range spool.Rings() {
			for rec := new(shm.Record); ring.Next(rec); {
				switch rec.Kind {
				case shm.RecordCuptiClock:
					got.clocks++
					if ahead := int64(rec.Handle - rec.Real); ahead < -1e9 || ahead > 1e9 {
						t.Errorf("CUPTI's clock is %d ns from the real-time clock", ahead)
					}
				case shm.RecordCupti:
					kind := binary.NativeEndian.Uint32(rec.Activity)
					bytes := slices.Clone(rec.Activity)
					got.kinds[kind] = append(got.kinds[kind], bytes)
					got.names[string(bytes)] = rec.ActivityName
					got.version[rec.Arg] = true
				}
			}
		}
	}
	got.header = spool.Header()
	return got
}

func u32(b []byte, at int) uint32 { return binary.NativeEndian.Uint32(b[at:]) }
func u64(b []byte, at int) uint64 { return binary.NativeEndian.Uint64(b[at:]) }

// kernelSizes are the sizes of kernel records by CUPTI's version.
var kernelSizes = map[uint32]int{18: 200, 22: 208, 26: 208, 130000: 216, 130400: 248}

// spoolOf is the spool file of a process.
func spoolOf(t *testing.T, dir string, pid int) string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "shards", fmt.Sprintf("*-%d-*.spool", pid)))
	if err != nil || len(paths) != 1 {
		t.Fatalf("spool files of process %d: %v, %v", pid, paths, err)
	}
	return paths[0]
}

// compareKernels holds what reached the plugin's records against what the GPU truly ran.
func compareKernels(t *testing.T, version uint32, truth *fakegpu.Truth, got *activities) {
	t.Helper()
	if got.header.CuptiState != shm.CuptiEnded || got.header.CuptiVersion != version || got.header.CuptiError != 0 {
		t.Errorf("CUPTI: %v, version %d, error %d", got.header.CuptiState, got.header.CuptiVersion,
			got.header.CuptiError)
	}
	testkit.Equal(t, truth.Outstanding, 0, "buffers were never given back")
	if got.clocks == 0 {
		t.Error("nothing says what CUPTI's clock was")
	}
	if len(got.version) != 1 || !got.version[uint64(version)] {
		t.Errorf("versions %v, want %d", got.version, version)
	}
	external := map[uint32]uint64{}
	for _, b := range got.kinds[39] {
		if _, twice := external[u32(b, 16)]; twice {
			t.Errorf("correlation id %d has two external ids", u32(b, 16))
		}
		external[u32(b, 16)] = u64(b, 8)
	}
	type key struct {
		correlation, stream, graph uint32
		start, end, node           uint64
		name                       string
	}
	left := map[key]int{}
	for _, b := range got.kinds[10] {
		if len(b) != kernelSizes[version] {
			t.Errorf("a kernel's record has %d bytes", len(b))
		}
		k := key{correlation: u32(b, 92), stream: u32(b, 48), graph: u32(b, 156), start: u64(b, 16), end: u64(b, 24),
			node: u64(b, 144), name: got.names[string(b)]}
		left[k]++
	}
	for _, k := range truth.Kernels {
		switch {
		case k.Fate != "delivered":
			t.Errorf("a kernel is %s", k.Fate)
			continue
		// The plugin has told CUPTI whose launch it is, of NCCL's launches and of no others.
		case k.Graph == 0 && k.External != k.Handle, k.Graph != 0 && (k.External != 0 || k.Captured != k.Handle):
			t.Errorf("kernel %s of event %d (%#x) was launched under the ids %#x, %#x", k.Name, k.Event, k.Handle,
				k.External, k.Captured)
		case uint64(k.External) != external[k.Correlation]:
			t.Errorf("correlation id %d has the external id %#x, want %#x", k.Correlation, external[k.Correlation],
				k.External)
		}
		at := key{correlation: k.Correlation, stream: k.Stream, graph: k.Graph, start: k.Start, end: k.End,
			node: k.Node, name: k.Name}
		if left[at]--; left[at] < 0 {
			t.Errorf("no record of kernel %+v", k)
		}
	}
	for k, n := range left {
		if n > 0 {
			t.Errorf("%d records of no kernel: %+v", n, k)
		}
	}
}

// Kernels of all recordings, under every layout of records, reach the records exactly once, and each launch of NCCL's
// has told CUPTI its handle.
func TestKernelsReachTheRecords(t *testing.T) {
	for _, rec := range kernelRecordings(t) {
		for version := range kernelSizes {
			t.Run(fmt.Sprint(rec.Name, "/", version), func(t *testing.T) {
				t.Parallel()
				dir := filepath.Join(t.TempDir(), "experiment")
				res := playKernels(t, rec, dir, spool, env(fmt.Sprint("FAKECUPTI_VERSION=", version)))
				launches := map[int]int{}
				for i := range res.Processes {
					p := &res.Processes[i]
					gpu := fakegpu.Ran(t, p)
					compareKernels(t, version, gpu, readSpool(t, spoolOf(t, dir, p.PID)))
					for _, k := range gpu.Kernels {
						if k.Event != 0 && k.Graph == 0 {
							launches[i]++
						}
						if k.Event != 0 && k.Handle == 0 {
							t.Errorf("event %d has no handle", k.Event)
						}
					}
					captured := 0
					for _, e := range rec.Processes[i].Events {
						if e.Type == replay.TypeKernelLaunch && e.Root() != nil &&
							bool(e.Root().Descr.(*replay.GroupApi).GraphCaptured) {
							captured++
						}
					}
					if want := p.Report.Delivered.Starts["KernelLaunch"]; launches[i]+captured != want {
						t.Errorf("process %d: %d kernels launched and %d captured by %d launches", i, launches[i],
							captured, want)
					}
				}
			})
		}
	}
}

// Whatever CUPTI does, what came back of it is in the shard or is counted.
func TestKernelsReachTheShards(t *testing.T) {
	faults := []string{"", "zero:3,reversed:5,early:7", "drop:4", "unknown:1", "truncated:1",
		"foreign,slower:20,clock:100"}
	for _, rec := range recordings(t, "02-allcoll-4p-net", "04-threads-4r", "07-twocomms-streams", "10-graph-3p") {
		for _, list := range faults {
			for _, c := range []replay.Clock{replay.ClockRecorded, replay.ClockLive} {
				t.Run(fmt.Sprint(rec.Name, "/", c, "/", list), func(t *testing.T) {
					t.Parallel()
					dir := filepath.Join(t.TempDir(), "experiment")
					res := playKernels(t, rec, dir, clock(c),
						env("FAKECUPTI_VERSION=130000", "FAKECUPTI_SHUFFLE=1", "FAKECUPTI_FAULTS="+list))
					waitDone(t, dir, len(rec.Processes))
					byPID := shardsByProcess(t, dir)
					for i := range res.Processes {
						p := byPID[res.Processes[i].PID]
						if p == nil || p.Cupti == nil {
							t.Fatalf("process %d says nothing of CUPTI", i)
						}
						gpu := fakegpu.Ran(t, &res.Processes[i])
						if strings.HasPrefix(list, "drop") != (gpu.Dropped > 0) ||
							strings.HasPrefix(list, "unknown") != (gpu.Unreadable > 0) {
							t.Errorf("the faults %q came out as %+v", list, gpu)
						}
						if p.Cupti.State != "ended" || p.Cupti.Version != 130000 || p.Cupti.Kinds != 1<<10|1<<4|1<<39 {
							t.Errorf("%+v", p.Cupti)
						}
						if !maps.Equal(p.Cupti.Records, gpu.Delivered) {
							t.Errorf("records %v, want %v", p.Cupti.Records, gpu.Delivered)
						}
						if n := p.Counts.Oddities["CUPTI_BUFFERS_STRANGE"]; strings.HasPrefix(list, "foreign") != (n > 0) {
							t.Errorf("%d strange buffers", n)
						}
						for name, want := range map[string]uint64{"CUPTI_DROPPED": gpu.Dropped,
							"CUPTI_UNKNOWN": gpu.Unreadable, "CUPTI_LOST": 0,
							"CUPTI_BUFFERS_OUT": 0, "CUPTI_BUFFERS_OVERWRITTEN": 0} {
							testkit.Equal(t, p.Counts.Oddities[name], want, "%s", name)
						}
					}
				})
			}
		}
	}
}

// Where CUPTI cannot be had the rest is as ever, one line says why, and so does the shard.
func TestWithoutCupti(t *testing.T) {
	rec := recording(t, "01-allreduce-2p")
	for _, tc := range []struct{ env, state, line string }{
		{"FAKECUPTI_BUSY=1", "busy", "another profiler"},
		{"FAKECUPTI_NO_DRIVER=1", "failed", "NOT_INITIALIZED"},
		{"SCOREP_CUDA_ENABLE=yes", "busy", "SCOREP_CUDA_ENABLE"},
		{"FAKECUPTI_FAULTS=enable:10", "failed", "INSUFFICIENT_PRIVILEGES"},
	} {
		t.Run(tc.env, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "experiment")
			res := run(t, rec, usual(t, dir, kernels, env("NCCL_OTF2_EVENTS=gpu", tc.env)))
			waitDone(t, dir, len(rec.Processes))
			byPID := shardsByProcess(t, dir)
			for i := range res.Processes {
				p := &res.Processes[i]
				if strings.Count(p.Stderr, "\n") != 1 || !strings.Contains(p.Stderr, tc.line) {
					t.Errorf("the plugin says %q", p.Stderr)
				}
				if c := byPID[p.PID].Cupti; c == nil || c.State != tc.state || !strings.Contains(c.Why, tc.line) ||
					len(c.Records) > 0 {
					t.Errorf("CUPTI: %+v", c)
				}
				if got, want := byPID[p.PID].Counts.Starts["KernelLaunch"],
					uint64(p.Report.Delivered.Starts["KernelLaunch"]); got != want || want == 0 {
					t.Errorf("%d launches, want %d", got, want)
				}
			}
			a := openArchive(t, unified(t, dir))
			said := slices.ContainsFunc(analysis.SelfReport(a).Recording, func(v analysis.SelfValue) bool {
				return v.Name == "CUPTI_STATE" && v.Processes == "all" && strings.HasPrefix(v.Value, tc.state+": ") &&
					strings.Contains(v.Value, tc.line)
			})
			if !said {
				t.Errorf("the archive does not say why there are no kernels: %+v", analysis.SelfReport(a).Recording)
			}
		})
	}
}
