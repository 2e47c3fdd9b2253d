// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/attribute"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/lateness"
	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// process is a process in the making, with the tables that package regions fills in.
type process struct {
	t  *testing.T
	d  *description.Process
	to *Process
}

func newProcess(t *testing.T) *process {
	d := &description.Process{Comms: []description.Comm{{ID: 7, NRanks: 4, Rank: 1}, {ID: 8, NRanks: 1}}}
	return &process{t, d, NewProcess(d)}
}

func (p *process) writer(kind description.LocationKind, comm int) *Writer {
	n := uint32(len(p.d.Locations))
	p.d.Locations = append(p.d.Locations, description.Location{Number: n, Kind: kind, Comm: comm})
	return p.to.EventWriter(p.d.Locations[n])
}

func (p *process) region(name, group string) otf2.RegionRef {
	for i, r := range p.d.Regions {
		if r.Name == name && r.Group == group {
			return otf2.RegionRef(i)
		}
	}
	p.d.Regions = append(p.d.Regions, description.Region{Name: name, Group: group})
	return otf2.RegionRef(len(p.d.Regions) - 1)
}

func (p *process) string(s string) otf2.StringRef {
	if i := slices.Index(p.d.Strings, s); i >= 0 {
		return otf2.StringRef(i)
	}
	p.d.Strings = append(p.d.Strings, s)
	return otf2.StringRef(len(p.d.Strings) - 1)
}

func (p *process) check(err error) {
	if err != nil {
		p.t.Helper()
		p.t.Fatal(err)
	}
}

// attributes of an operation of so many floats.
func (p *process) attributes(source, algo string, count uint64) *otf2.AttributeList {
	a := new(otf2.AttributeList)
	if source != "" {
		a.String(regions.AttrTimingSource, p.string(source))
	}
	if algo != "" {
		a.String(regions.AttrAlgo, p.string(algo))
		a.String(regions.AttrProto, p.string("LL"))
	}
	a.String(regions.AttrDatatype, p.string("ncclFloat32"))
	a.Uint64(regions.AttrCount, count)
	return a
}

// paths prints the values of all locations together: call path, visits, own time, longest visit, bytes.
func paths(a *Aggregate) string {
	cells := make(map[int32]*Cell)
	for i := range a.Rows {
		for _, c := range a.Rows[i].Cells {
			if cells[c.Node] == nil {
				cells[c.Node] = new(Cell)
			}
			cells[c.Node].Add(&c.Cell)
		}
	}
	var lines []string
	for i, n := range a.Nodes {
		c := cells[int32(i)]
		if c == nil {
			continue
		}
		name := n.Name
		for up := n.Parent; up != None; up = a.Nodes[up].Parent {
			if a.Nodes[up].Parent == None {
				name = string(a.Nodes[up].Kind) + "/" + name
			} else {
				name = a.Nodes[up].Name + "/" + name
			}
		}
		if n.Parent == None {
			name = string(n.Kind)
		}
		text := fmt.Sprintf("%s: %d in %d ns, at most %d", name, c.Visits, c.Time, c.Max)
		if c.Unfinished > 0 {
			text += fmt.Sprintf(", %d unfinished", c.Unfinished)
		}
		if c.Sent+c.Received+c.Put > 0 {
			text += fmt.Sprintf(", bytes %d %d %d", c.Sent, c.Received, c.Put)
		}
		if alg, bus := c.Speeds.Sums(); alg.Time > 0 {
			text += fmt.Sprintf(", %g and %g bytes in %g ns", alg.Bytes, bus.Bytes, alg.Time)
		}
		lines = append(lines, text)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// keeps compares the values of all locations with what is kept under the test's name.
func (p *process) keeps() {
	p.t.Helper()
	golden.Text(p.t, filepath.Join("testdata", p.t.Name()+".txt"), paths(p.to.Aggregate())+"\n")
}

// Regions of a thread: phases of one name but for their numbers are one, calls are told apart by the sizes they ask
// for, and what is open counts up to the last event.
func TestThreads(t *testing.T) {
	p := newProcess(t)
	w := p.writer(description.KindThread, -1)
	call, launch := p.region("ncclAllReduce", regions.GroupAPI), p.region("ncclKernelLaunch", regions.GroupEnqueue)
	for i, count := range []uint64{10, 10000} {
		phase, t0 := p.region(fmt.Sprint("step ", i), regions.GroupApplication), otf2.Timestamp(1000+1000*i)
		p.check(w.Enter(t0, nil, phase))
		p.check(w.Enter(t0+100, p.attributes("", "", count), call))
		p.check(w.Enter(t0+120, nil, launch))
		p.check(w.Leave(t0+130, nil, launch))
		p.check(w.Leave(t0+200, nil, call))
		p.check(w.Leave(t0+300, nil, phase))
	}
	open := p.region("epoch", regions.GroupApplication)
	p.check(w.Enter(5000, nil, open))
	p.check(w.Enter(5100, nil, launch)) // its end is missing
	cut := new(otf2.AttributeList)
	cut.Uint8(regions.AttrUnfinished, 1)
	p.check(w.Enter(5200, nil, call))
	p.check(w.Leave(5250, cut, call))
	p.keeps()
	p.check(w.Leave(6000, nil, open)) // a snapshot changes nothing
	text := paths(p.to.Aggregate())
	testkit.Check(t, strings.Contains(text, "host/epoch: 1 in 100 ns, at most 1000"), "got\n%s", text)
	testkit.Check(t, w.Enter(10, nil, call) != nil, "an event went back in time")
}

// Operations stand in the tree of the kind of their times. Those of one launch have its time together, and no
// bandwidth.
func TestOperations(t *testing.T) {
	p := newProcess(t)
	w, alone := p.writer(description.KindRank, 0), p.writer(description.KindRank, 1)
	reduce, group := p.region("AllReduce", regions.GroupCollectives),
		p.region("Group (2 ops)", regions.GroupCollectives)
	single := func(w *Writer, t0 otf2.Timestamp, source string) {
		p.check(w.Enter(t0, p.attributes(source, "RING", 100), reduce))
		if w == alone {
			p.check(w.Leave(t0+40, nil, reduce))
			return
		}
		p.check(w.MpiCollectiveBegin(t0, nil))
		p.check(w.MpiCollectiveEnd(t0+40, nil, otf2.CollectiveOpAllreduce, 0, otf2.CollectiveRootNone, 1600, 1600))
		p.check(w.Leave(t0+40, nil, reduce))
	}
	p.check(w.CommCreate(1, nil, 0))
	single(w, 100, regions.TimingGPU)
	single(w, 200, regions.TimingGPU)
	single(w, 300, regions.TimingNetwork)
	single(w, 400, regions.TimingEnqueue)
	single(w, 450, regions.TimingDuration)
	single(alone, 100, regions.TimingGPU)
	a := new(otf2.AttributeList)
	a.String(regions.AttrTimingSource, p.string(regions.TimingGPU))
	p.check(w.Enter(500, a, group))
	p.check(w.NonBlockingCollectiveRequest(500, p.attributes("", "TREE", 100), 1))
	p.check(w.MpiIsend(500, p.attributes("", "", 500), 2, 0, 0, 2000, 2))
	p.check(w.NonBlockingCollectiveComplete(570, nil, otf2.CollectiveOpAllreduce, 0, otf2.CollectiveRootNone, 1600,
		1600, 1))
	p.check(w.MpiIsendComplete(570, nil, 2))
	p.check(w.Leave(570, nil, group))
	p.check(w.CommDestroy(600, nil, 0))
	got := p.to.Aggregate()
	p.keeps()
	r := got.Rows[0]
	testkit.Check(t, r.Ended && r.Ranks == 4 && r.Rank == 1 && len(r.Stats) == 7, "row %+v", r)
	var text bytes.Buffer
	p.check(got.Write(&text))
	back, err := Read(&text)
	p.check(err)
	testkit.Same(t, paths(back), paths(got))
	for _, damage := range []string{`{"version":1}`, `{"version":2,"nodes":[{"parent":0}]}`,
		`{"version":2,"rows":[{"cells":[{"node":0}]}]}`, `{`} {
		_, err := Read(strings.NewReader(damage))
		testkit.Check(t, err != nil, "%s was read", damage)
	}
}

// NCCL's own kernels are in its operations already; channels show them once more.
func TestGPUTimeCountsOnce(t *testing.T) {
	p := newProcess(t)
	stream, channel := p.writer(description.KindStream, -1), p.writer(description.KindChannel, 0)
	linked := new(otf2.AttributeList)
	linked.Uint64(regions.AttrPlanID, 5)
	at := otf2.Timestamp(100)
	for _, k := range []struct {
		name string
		a    *otf2.AttributeList
	}{{"gemm", nil}, {"ncclDevKernel_AllReduce_Sum_f32_RING_LL", nil}, {"wrapped", linked}} {
		r := p.region(k.name, regions.GroupCUDAKernels)
		p.check(stream.Enter(at, k.a, r))
		p.check(stream.Leave(at+10, nil, r))
		at += 10
	}
	r := p.region("AllReduce", regions.GroupCollectives)
	p.check(channel.Enter(100, nil, r))
	p.check(channel.Leave(200, nil, r))
	p.keeps()
}

func TestNetwork(t *testing.T) {
	p := newProcess(t)
	w := p.writer(description.KindNetSend, 0)
	wait, append := p.region("Send GPU wait", regions.GroupNetwork), p.region("Proxy append", regions.GroupProxy)
	p.check(w.Enter(100, nil, wait))
	p.check(w.Enter(110, nil, append))
	p.check(w.Leave(120, nil, append))
	p.check(w.RmaPut(130, nil, 0, 1, 4096, 1))
	p.check(w.RmaOpCompleteNonBlocking(140, nil, 0, 1))
	p.check(w.Leave(200, nil, wait))
	p.keeps()
}

// What has been summed up does not grow with events, names, threads that end, or communicators that come and go.
func TestMemoryIsBounded(t *testing.T) {
	size := func(rounds int) (int, *Aggregate) {
		p := newProcess(t)
		thread := p.writer(description.KindThread, -1)
		call := p.region("ncclAllReduce", regions.GroupAPI)
		reduce := p.region("AllReduce", regions.GroupCollectives)
		at := otf2.Timestamp(1)
		for i := range rounds {
			phase := p.region(fmt.Sprintf("phase %d of many", i%3000), regions.GroupApplication)
			p.check(thread.Enter(at, nil, phase))
			p.check(thread.Enter(at+1, p.attributes("", "", uint64(i%5000)), call))
			p.check(thread.Leave(at+2, nil, call))
			p.check(thread.Leave(at+3, nil, phase))
			rank := p.writer(description.KindRank, 0)
			for k := range 3 {
				a := p.attributes(regions.TimingGPU, "RING", uint64(i))
				a.Uint64(regions.AttrOrdinal, uint64(k))
				begin := at + otf2.Timestamp(2*k)
				p.check(rank.Enter(begin, a, reduce))
				p.check(rank.MpiCollectiveEnd(begin+1, nil, otf2.CollectiveOpAllreduce, 0, otf2.CollectiveRootNone, 8,
					8))
				p.check(rank.Leave(begin+1, nil, reduce))
			}
			p.check(rank.CommDestroy(at+6, nil, 0))
			p.to.Retire(otf2.LocationRef(len(p.d.Locations) - 1))
			at += 10
		}
		a := p.to.Aggregate()
		var text bytes.Buffer
		p.check(a.Write(&text))
		return text.Len(), a
	}
	once, _ := size(12000)
	again, a := size(48000)
	testkit.Check(t, float64(again) <= 1.05*float64(once), "%d bytes, four times as much makes %d", once, again)
	others, visits := uint64(0), uint64(0)
	for i := range a.Rows {
		others += a.Rows[i].Others
		for _, c := range a.Rows[i].Cells {
			if a.Nodes[c.Node].Kind == Size && strings.HasPrefix(a.Nodes[c.Node].Name, "AllReduce RING") {
				visits += c.Visits
			}
		}
	}
	testkit.Check(t, others == 48000-maxRetired && visits == 3*48000 && a.Folded != 0 && len(a.Rows) == maxRetired+2,
		"%d rows, %d further ones, %d operations, %d names folded", len(a.Rows), others, visits, a.Folded)
}

// Members of a communicator choose the same collectives, whatever else they do.
func TestMembersSampleTheSame(t *testing.T) {
	choose := func(seed int) []Sample {
		p := newProcess(t)
		w := p.writer(description.KindRank, 0)
		r := p.region("AllReduce", regions.GroupCollectives)
		for i := range uint64(5000) {
			a := p.attributes(regions.TimingGPU, "RING", 10)
			a.Uint64(regions.AttrOrdinal, i)
			at := otf2.Timestamp(1000*i + uint64(seed)*(i%7))
			p.check(w.Enter(at, a, r))
			p.check(w.MpiCollectiveEnd(at+500, nil, otf2.CollectiveOpAllreduce, 0, otf2.CollectiveRootNone, 160, 160))
			p.check(w.Leave(at+500, nil, r))
		}
		row := p.to.Aggregate().Rows[0]
		testkit.Require(t, len(row.Strata) == 1 && row.Strata[0].Count == 5000 && row.FirstSample != nil &&
			row.FirstSample.Ordinal == 0, "strata %+v", row.Strata)
		return row.Strata[0].Samples
	}
	a, b := choose(1), choose(40)
	testkit.Require(t, len(a) == sampleSize && len(b) == sampleSize, "%d and %d samples", len(a), len(b))
	halves := [2]int{}
	for i := range a {
		testkit.Require(t, a[i].Ordinal == b[i].Ordinal,
			"sample %d is of ordinal %d and %d", i, a[i].Ordinal, b[i].Ordinal)
		halves[a[i].Ordinal/2500]++
	}
	testkit.Check(t, halves[0] >= 15 && halves[1] >= 15, "samples are not of all times: %v", halves)
}

// Estimated waits stay within the time in which was waited.
func TestWaitsAreWithinTime(t *testing.T) {
	c := Cell{Time: 100, Waits: WaitsByKind{lateness.WaitCollective: 150, WaitStartUp: 50}}
	if c.LimitWaits(); c.Waits != (WaitsByKind{lateness.WaitCollective: 75, WaitStartUp: 25}) {
		t.Errorf("waits %v", c.Waits)
	}
	if c.LimitWaits(); c.Waits.Total() != 100 {
		t.Errorf("waits %v", c.Waits)
	}
}

// Regions that overlap on a row of another tool's archive keep their times, beside each other. What is around them has
// its own time once.
func TestRegionsThatOverlap(t *testing.T) {
	p := newProcess(t)
	// of an archive of another tool
	p.to.Aggregator = NewAggregator(p.to.names, attribute.Find(new(otf2.Definitions)))
	a, b, around := p.region("a", "other"), p.region("b", "other"), p.region("around", "other")
	for _, outer := range []bool{false, true} {
		w := p.writer(description.KindThread, -1)
		if outer {
			p.check(w.Enter(900, nil, around))
		}
		for i := range otf2.Timestamp(20) {
			t0 := 1000 + 1000*i
			p.check(w.Enter(t0, nil, a))
			p.check(w.Enter(t0+10, nil, b))
			p.check(w.Leave(t0+230, nil, a))
			p.check(w.Leave(t0+330, nil, b))
		}
		if outer {
			p.check(w.Leave(22900, nil, around))
		}
	}
	p.keeps()
}
