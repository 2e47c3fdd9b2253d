// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"fmt"
	"slices"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/cupti"
	"github.com/nccl-otf2/nccl-otf2/cupti/cuptitest"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/regions/gpuclock"
)

// paper is a timeline that notes what is drawn.
type paper struct{ lines []string }

type paperRow struct {
	p    *paper
	name string
	last uint64
}

func (p *paper) GPUOfDevice(ordinal int) int { return ordinal }

func (p *paper) NewRow(s Stream, n, gpu int, _ bool) Row {
	return &paperRow{p: p, name: fmt.Sprintf("%d:%d+%d", gpu, s.Stream, n)}
}

func (r *paperRow) DrawActivity(a *Activity, begin uint64) uint64 {
	begin = max(begin, r.last)
	r.last = max(begin, a.End())
	launch, plan, operation := a.LinkedTo()
	r.p.lines = append(r.p.lines, fmt.Sprintf(
		"%s %s %d %d launch=%d plan=%d operation=%d", r.name, a.Name, begin, r.last, launch, plan, operation))
	return r.last
}

// madePlan is a plan of one AllReduce.
type madePlan struct {
	id, since, captured uint64
	rank                *Rank
	links               Links
}

func (p *madePlan) ID() uint64                        { return p.id }
func (p *madePlan) CommRank() *Rank                   { return p.rank }
func (p *madePlan) ReportedAt() uint64                { return p.since }
func (p *madePlan) CapturedCall() uint64              { return p.captured }
func (p *madePlan) OnlyOperation() uint64             { return p.id + 1 }
func (p *madePlan) ChannelCount() uint32              { return 1 }
func (p *madePlan) RunsFunction(function string) bool { return function == "AllReduce" }
func (p *madePlan) KernelLinks() *Links               { return &p.links }

const (
	shift   = 5_000_000 // of CUPTI's clock against the line
	version = 22        // CUPTI's, of CUDA 12.4
)

type job struct {
	*Recorder
	paper paper
}

func newJob() *job {
	j := &job{}
	j.Recorder = New(&j.paper, Options{Hold: 4e9, Functions: []string{"AllReduce", "Broadcast"}})
	return j
}

func (j *job) reading(t uint64) { j.AddClockReading(t, t+shift, t+shift, 2*t, 100) }

func (j *job) kernel(t, begin, end uint64, stream, correlation, graph uint32, node uint64, name string) {
	j.AddRecord(t, cuptitest.Record(cupti.KindConcurrentKernel, 248, map[int]any{
		16: begin + shift, 24: end + shift, 40: uint32(0), 44: uint32(1), 48: stream, 52: uint32(1), 56: uint32(1),
		60: uint32(1), 64: uint32(1), 68: uint32(1), 72: uint32(1),
		92: correlation, 144: node, 156: graph,
	}), version, name)
}

// kept is the number of activities that the recorder still has.
func (j *job) kept() int {
	n := j.streams.held + len(j.times.waiting)
	for _, r := range j.streams.order {
		n += len(r.queue)
	}
	for _, k := range j.replays.kernels {
		n += len(k)
	}
	return n
}

func (j *job) expect(t *testing.T, want ...string) {
	t.Helper()
	j.LinkRest()
	j.Finish()
	testkit.Check(t, slices.Equal(j.paper.lines, want), "drawn: %q, want %q", j.paper.lines, want)
	n := j.kept()
	testkit.Check(t, n == 0, "%d activities are kept at the end", n)
}

const allReduce = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"

// The call that launched a kernel lies within a KernelLaunch, on its thread: the kernel is that launch's, and its
// plan's.
func TestKernelOfALaunch(t *testing.T) {
	j := newJob()
	rank := &Rank{GPU: 3, Known: true, Missed: 2}
	l := &Launch{Handle: 7, Rank: rank, Thread: 100, Start: 1_000_000, Stop: 1_010_000, Stopped: true}
	p := &madePlan{id: 20, since: 1_011_000, rank: rank}
	j.KeepLaunch(l)
	l.SetPlan(p)
	j.reading(1)
	j.kernel(1_100_000, 1_020_000, 1_050_000, 9, 5, 0, 0, allReduce)
	j.AddRecord(1_100_000, cuptitest.Record(cupti.KindExternal, 24,
		map[int]any{4: uint32(cupti.ExternalCustom2), 8: uint64(7), 16: uint32(5)}), version, "")
	j.AddRecord(1_100_000, cuptitest.Record(cupti.KindDriver, 40, map[int]any{
		4: uint32(652), 8: uint64(1_004_000 + shift), 16: uint64(1_006_000 + shift), 24: uint32(1), 28: uint32(100),
		32: uint32(5),
	}), version, "")
	_, ok := p.links.KernelInterval()
	testkit.Check(t, !ok, "an interval before the clock covers it")
	j.reading(500_000_000)
	j.Advance(500_000_000)
	when, ok := p.links.KernelInterval()
	testkit.Check(t, ok && timeDistance(when.Begin, 1_020_000) <= when.Uncertainty &&
		timeDistance(when.End, 1_050_000) <= when.Uncertainty && rank.Missed == 0, "interval %+v, %v; rank %+v", when,
		ok, rank)
	ns := SourceDifference(gpuclock.Interval{Begin: 1_021_000, End: 1_049_000}, when)
	testkit.Check(t, ns == 0, "the sources are %d ns apart", ns)
	ns = SourceDifference(gpuclock.Interval{Begin: 1_021_000, End: 1_149_000}, when)
	testkit.Check(t, ns >= 90_000, "the sources are %d ns apart", ns)
	ReleaseWrittenPlan(p, l)
	testkit.Check(t, !p.links.hasKernels(), "a written plan has links")
	j.expect(t, "3:9+0 "+allReduce+" 1020000 1050000 launch=7 plan=20 operation=21")
	c := j.Counts()
	testkit.Check(t, c["KERNELS_LINKED"] == 1 && c["KERNELS"] == 1 && c["KERNELS_UNDECIDED"] == 0, "counts %v", c)
}

// A replayed plan's kernel is the only one of NCCL's that ran when it did.
func TestKernelOfAReplay(t *testing.T) {
	j := newJob()
	p := &madePlan{id: 30, since: 1_010_000, captured: 2, rank: &Rank{GPU: 0, Known: true}}
	j.reading(1)
	j.AddReplayedPlan(p)
	j.kernel(1_100_000, 1_020_000, 1_050_000, 9, 5, 4, 3, allReduce)
	j.kernel(1_100_000, 1_030_000, 1_040_000, 9, 6, 4, 8, "axpy") // beside it
	j.reading(500_000_000)
	j.LinkReplay(p, gpuclock.Interval{Begin: 1_021_000, End: 1_049_000}, true)
	j.expect(t, "0:9+0 "+allReduce+" 1020000 1050000 launch=0 plan=30 operation=31",
		"0:9+1 axpy 1030000 1040000 launch=0 plan=0 operation=0")
	c := j.Counts()
	testkit.Check(t, c["KERNELS_GRAPH_LINKED"] == 1 && c["KERNELS_GRAPH_OTHER"] == 1 && c["REPLAYS_UNLINKED"] == 0 &&
		c["OVERLAPS"] == 1, "counts %v", c)
}
