// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/selfreport"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/replay/descriptor"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/fakegpu"
)

// shownKernel is a kernel on the row of a CUDA stream.
type shownKernel struct {
	row, region      string
	begin, end       uint64
	correlation      int64
	launch           handle // of the ncclKernelLaunch
	plan, operation  handle
	graph, graphNode int64
}

// processOf is the id of the PROCESS location group that a location belongs to.
func (a *archive) processOf(loc uint64) uint64 {
	g := a.groups[a.locations[loc].Group]
	if g.Creator != nil {
		return *g.Creator
	}
	return g.ID
}

// kernels are those on the rows of CUDA streams, by process.
func (a *archive) kernels() (map[uint64][]*shownKernel, error) {
	out := make(map[uint64][]*shownKernel)
	for id, loc := range a.locations {
		if !strings.HasPrefix(loc.Name, "CUDA[") {
			continue
		}
		var open *shownKernel
		for _, e := range a.events[id] {
			switch {
			case e.Event == "Enter" && open == nil:
				open = &shownKernel{
					row: loc.Name, region: a.regions[e.Region], begin: e.Time, correlation: e.number("CORRELATION_ID"),
					launch: e.handle("EXTERNAL_ID"), plan: e.handle("PLAN_ID"), operation: e.handle("PARENT_ID"),
					graph: e.number("GRAPH_ID"), graphNode: e.number("GRAPH_NODE_ID"),
				}
			case e.Event == "Leave" && open != nil:
				open.end = e.Time
				out[a.processOf(id)] = append(out[a.processOf(id)], open)
				open = nil
			default:
				return nil, fmt.Errorf("%s: %s at %d", loc.Name, e.Event, e.Time)
			}
		}
	}
	return out, nil
}

// playKernelsUnified plays a recording with its kernels, and unifies what is left.
func playKernelsUnified(t *testing.T, rec *replay.Recording, changes ...change) (string, *replay.Result, *archive) {
	t.Helper()
	dir, spooled := filepath.Join(t.TempDir(), "experiment"), false
	// in real time, as the records come by it
	res := playKernels(t, rec, dir, append(changes, func(o *replay.Options) {
		o.Pace, spooled = replay.PaceRecorded, o.Spool
	})...)
	if !spooled {
		waitDone(t, dir, len(rec.Processes))
	}
	anchor := unified(t, dir)
	otf2Print(t, anchor)
	return dir, res, readArchive(t, anchor)
}

// sumCUPTI adds up the counts of all processes.
func sumCUPTI(processes map[int]*description.Process) map[string]uint64 {
	sum := make(map[string]uint64)
	for _, p := range processes {
		for name, n := range p.Counts.CUPTI {
			sum[name] += n
		}
	}
	return sum
}

// kernelSlack is how far from the truth a kernel may be drawn: what reading two clocks one after the other costs while
// other processes want the CPU.
const kernelSlack = 100 * time.Microsecond

// Every kernel that NCCL launched is on the row of its stream, linked to its launch, and to the plan whose operations
// it carried out; the application's own are linked to nothing.
func TestKernelsInTheTimeline(t *testing.T) {
	t.Parallel()
	versions := slices.Sorted(maps.Keys(kernelSizes))
	for i, rec := range kernelRecordings(t) {
		for k, version := range versions {
			if k != i%len(versions) && rec.Name != "10-graph-3p" {
				continue
			}
			t.Run(fmt.Sprint(rec.Name, "/", version), func(t *testing.T) {
				t.Parallel()
				changes := []change{env(fmt.Sprint("FAKECUPTI_VERSION=", version), "FAKECUPTI_SHUFFLE=1",
					"FAKECUPTI_CLOCK=host")}
				if i%2 == 1 {
					changes = append(changes, spool)
				}
				dir, res, got := playKernelsUnified(t, rec, changes...)
				l := linkage{t: t, rec: rec, got: got, want: expect(rec)}
				l.check(res)
				testkit.Check(t, l.linked == l.nccl && l.nccl != 0 && l.operations != 0,
					"%d of %d kernels of NCCL's launches are linked to their plans; %d operations", l.linked, l.nccl,
					l.operations)
				t.Logf("%d kernels linked, of %d operations; %d of the application's; at most %v off", l.linked,
					l.operations, l.others, l.off)
				testkit.Check(t, l.off <= kernelSlack, "a kernel is drawn %v off", l.off)
				testkit.Equal(t, sumCUPTI(shardsByProcess(t, dir))["NCCL_KERNELS_UNLINKED"], l.unannounced,
					"kernels of NCCL's that are counted as not linked")
			})
		}
	}
}

// Whatever CUPTI does, no kernel is linked to what it is not of, each that it told of is drawn or counted, and so is
// each of NCCL's that is not linked.
func TestKernelsOfBadRecords(t *testing.T) {
	t.Parallel()
	faults := []string{"zero:3", "reversed:5", "early:7", "drop:4", "unknown:1", "truncated:1", "late:50",
		"zero:2,drop:3,unknown:2", "clock:2", "late:600000", "foreign,slower:20,clock:100"}
	for _, rec := range recordings(t) {
		for i, list := range faults {
			if rec.Name != "10-graph-3p" && (rec.Name != "02-allcoll-4p-net" || i%3 > 0) {
				continue
			}
			t.Run(fmt.Sprint(rec.Name, "/", list), func(t *testing.T) {
				t.Parallel()
				dir, res, got := playKernelsUnified(t, rec, env("FAKECUPTI_VERSION=130000", "FAKECUPTI_SHUFFLE=1",
					"FAKECUPTI_FAULTS="+list))
				l := linkage{t: t, rec: rec, got: got, want: expect(rec), faulty: true}
				l.check(res)
				processes := shardsByProcess(t, dir)
				counts := sumCUPTI(processes)
				reported, untaken, out := uint64(0), uint64(0), uint64(0)
				for i := range res.Processes {
					gpu, p := fakegpu.Ran(t, &res.Processes[i]), processes[res.Processes[i].PID]
					reported += gpu.Delivered[10]
					// A buffer that comes when the plugin waits no more is counted, and what is in it is not.
					n := p.Counts.Oddities["CUPTI_BUFFERS_OUT"]
					out += n
					checkCupti(t, list, p, gpu)
					switch {
					case n < gpu.Outstanding || n > 0 && !strings.HasPrefix(list, "late"):
						t.Errorf("process %d: %d buffers are counted as not given back, want %d", i, n, gpu.Outstanding)
					case n > gpu.Outstanding:
						untaken += gpu.Delivered[10] - p.Counts.CUPTI["KERNELS"]
					}
				}
				reported -= untaken
				checkBuffersOut(t, dir, out)
				outcomes := uint64(0)
				for name, n := range counts {
					if strings.HasPrefix(name, "KERNELS_") {
						outcomes += n
					}
				}
				testkit.Check(t, counts["KERNELS"] == reported && outcomes == reported,
					"%d kernels are counted, in %d outcomes, want %d", counts["KERNELS"], outcomes, reported)
				if undrawn := counts["WITHOUT_TIMES"] + counts["WITHOUT_CLOCK"]; l.drawn+undrawn != reported {
					t.Errorf("%d kernels are drawn and %d counted as not, want %d", l.drawn, undrawn, reported)
				}
				// What is not drawn is linked if no graph launched it; if the clock is known, and what launched it.
				most := l.unlinked + l.hiddenReplays + l.unannounced
				least := most - min(most, untaken)
				if strings.Contains(list, "clock") || strings.Contains(list, "unknown") ||
					strings.Contains(list, "truncated") {
					most += l.hidden
				}
				if n := counts["NCCL_KERNELS_UNLINKED"]; n < least || n > most {
					t.Errorf("%d kernels of NCCL's are counted as not linked, want %d … %d", n, least, most)
				}
				t.Logf("%d kernels told, %d drawn; of NCCL's %d drawn and linked, %d drawn and not linked", reported,
					l.drawn, l.linked, l.unlinked)
			})
		}
	}
}

// checkCupti holds what a shard says of CUPTI against what CUPTI did.
func checkCupti(t *testing.T, faults string, p *description.Process, gpu *fakegpu.Truth) {
	t.Helper()
	testkit.Check(t, strings.Contains(faults, "drop") == (gpu.Dropped > 0) &&
		strings.Contains(faults, "unknown") == (gpu.Unreadable > 0), "the faults %q came out as %+v", faults, gpu)
	n := p.Counts.Oddities["CUPTI_BUFFERS_STRANGE"]
	testkit.Check(t, strings.HasPrefix(faults, "foreign") == (n > 0), "%d strange buffers", n)
	for name, want := range map[string]uint64{"CUPTI_DROPPED": gpu.Dropped, "CUPTI_UNKNOWN": gpu.Unreadable,
		"CUPTI_LOST": 0, "CUPTI_BUFFERS_OVERWRITTEN": 0} {
		testkit.Equal(t, p.Counts.Oddities[name], want, "%s", name)
	}
	if strings.HasPrefix(faults, "late") {
		return // a buffer may come when the plugin waits no more
	}
	c := p.Cupti
	testkit.Check(t, c.State == "ended" && c.Version == 130000 && c.Kinds == 1<<10|1<<4|1<<39 &&
		maps.Equal(c.Records, gpu.Delivered), "%+v, delivered %v", c, gpu.Delivered)
}

// checkBuffersOut holds what an archive says of the buffers that CUPTI has not given back.
func checkBuffersOut(t *testing.T, dir string, want uint64) {
	t.Helper()
	a := openArchive(t, filepath.Join(dir, "traces.otf2"))
	self := selfreport.Read(a)
	i := slices.IndexFunc(self.Counts, func(c selfreport.Count) bool {
		return c.Kind == "ODDITIES" && c.Name == "CUPTI_BUFFERS_OUT"
	})
	testkit.Check(t, (i >= 0 || want <= 0) && (i < 0 || self.Counts[i].Count == want),
		"the archive says %+v, want %d buffers that CUPTI has not given back", self.Counts, want)
}

// linkage holds kernels of an archive against those that truly ran.
type linkage struct {
	t    *testing.T
	rec  *replay.Recording
	got  *archive
	want *expected

	faulty bool // CUPTI does not tell all

	drawn         uint64
	unlinked      uint64 // of NCCL's launches, drawn and not linked
	hidden        uint64 // of NCCL's launches, told without times, and not drawn
	hiddenReplays uint64 // the same of graphs

	nccl        int    // kernels of NCCL's launches that ran
	linked      int    // of them, linked to the right plan and shown as its
	unannounced uint64 // NCCL's that no KernelLaunch belongs to
	others      int
	operations  int
	off         time.Duration
}

func (l *linkage) check(res *replay.Result) {
	shown := testkit.Value(l.got.kernels())(l.t)
	anchor := l.rec.Processes[0].Opens[0]
	raw := func(t uint64) int64 { return int64(t - anchor.Real + anchor.T) }
	comms := communicatorsByKey(l.t, l.want, l.got)
	for i, p := range l.rec.Processes {
		// The operations that each kernel carried out, by when it began.
		type planOf struct {
			plan, operation handle
			several         bool
			name            string
		}
		plans := make(map[uint64]*planOf)
		process, known := uint64(0), false
		for _, ctx := range p.Contexts {
			c := comms[commKey(ctx)]
			if c == nil {
				continue
			}
			process, known = l.got.processOf(c.Members[ctx.Rank]), true
			operations := testkit.Value(l.got.operations(c.Members[ctx.Rank]))(l.t)
			byOrder, ordered := planTruth(l.t, p, ctx)
			for key, list := range l.want.operations[member{commKey(ctx), ctx.Rank}] {
				for n, w := range list {
					if n >= len(operations[key]) {
						l.t.Fatalf("%s rank %d: %s %d is missing", c.Name, ctx.Rank, key, n)
					}
					group := w.event.Group
					if w.event.Type != descriptor.TypeColl && w.event.Type != descriptor.TypeP2p {
						continue // NCCL reports no plan, nor a launch
					}
					truth, ok := byOrder[group]
					if !ordered {
						truth, ok = stampTruth(p, group)
					}
					if !ok {
						l.t.Fatalf("%s rank %d: nobody knows when %s %d ran", c.Name, ctx.Rank, key, n)
					}
					o := operations[key][n]
					if at := plans[truth.begin]; at == nil {
						plans[truth.begin] = &planOf{plan: o.plan, operation: o.id,
							name: fmt.Sprintf("%s rank %d: %s %d", c.Name, ctx.Rank, key, n)}
					} else {
						if at.several = true; at.plan != o.plan {
							l.t.Errorf("%s and %s %d ran in one kernel and are not of one plan: %v, %v", at.name, key,
								n, at.plan, o.plan)
						}
					}
					l.operations++
				}
			}
		}
		if !known {
			continue
		}
		left := make(map[int64][]*shownKernel)
		for _, k := range shown[process] {
			left[k.correlation] = append(left[k.correlation], k)
		}
		open := p.Opens[0]
		for _, k := range fakegpu.Ran(l.t, &res.Processes[i]).Kernels {
			began := k.Start - open.Real + open.T // as recorded
			at := slices.IndexFunc(left[int64(k.Correlation)], func(s *shownKernel) bool {
				return s.graph == -1 && k.Graph == 0 || s.graph == int64(k.Graph) && s.graphNode == int64(k.Node)
			})
			if at < 0 {
				if !l.faulty {
					l.t.Errorf("process %d: kernel %+v is not shown", i, k)
				}
				switch reported := k.Fate == "delivered" || k.Fate == "zeroed"; {
				case !reported || !strings.Contains(k.Name, "nccl"):
				case k.Event == 0:
					l.unannounced++
				case k.Graph != 0:
					l.hiddenReplays++
				default:
					l.hidden++
				}
				continue
			}
			l.drawn++
			s := left[int64(k.Correlation)][at]
			left[int64(k.Correlation)] = slices.Delete(left[int64(k.Correlation)], at, at+1)
			if want := fmt.Sprintf("CUDA[%d:%d]", k.Device, k.Stream); s.row != want &&
				!strings.HasPrefix(s.row, strings.TrimSuffix(want, "]")) {
				l.t.Errorf("process %d: kernel %+v is on %s", i, k, s.row)
			}
			if l.faulty && k.Fate != "delivered" {
				l.t.Errorf("process %d: kernel %+v is shown", i, k)
			}
			l.off = max(l.off, time.Duration(raw(s.begin)-int64(began)).Abs(),
				time.Duration(raw(s.end)-int64(began+k.End-k.Start)).Abs())
			if k.Event == 0 {
				l.others++
				if strings.Contains(k.Name, "nccl") {
					l.unannounced++
				}
				if s.launch != 0 || s.plan != 0 || s.operation != 0 {
					l.t.Errorf("process %d: kernel %+v belongs to no launch, and is linked: %+v", i, k, s)
				}
				continue
			}
			l.nccl++
			want := plans[began]
			switch {
			case l.faulty && s.launch == 0 && s.plan == 0 && s.operation == 0:
				l.unlinked++
			case want == nil:
				l.t.Errorf("process %d: kernel %+v carried out no operation", i, k)
			case k.Graph == 0 && s.launch != handle(k.Handle):
				l.t.Errorf("process %d: %s: kernel %+v is linked to launch %v, want %v", i, want.name, k, s.launch,
					handle(k.Handle))
			case want.plan == 0 || s.plan != want.plan:
				l.t.Errorf("process %d: %s: kernel %+v is linked to plan %v, want %v", i, want.name, k, s.plan,
					want.plan)
			case want.several && s.operation != 0, !want.several && s.operation != want.operation:
				l.t.Errorf("process %d: %s: kernel %+v is linked to operation %v, want %v; several: %v", i, want.name,
					k, s.operation, want.operation, want.several)
			default:
				l.linked++
			}
		}
		for _, list := range left {
			for _, s := range list {
				l.t.Errorf("process %d: a kernel is shown that did not run: %+v", i, s)
			}
		}
	}
}
