// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nccl-otf2/nccl-otf2/experiment"
	"github.com/nccl-otf2/nccl-otf2/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
	"github.com/nccl-otf2/nccl-otf2/scorep/jobtest"
	"github.com/nccl-otf2/nccl-otf2/scorep/shardtest"
)

// waitJob leaves a job of three ranks on two hosts with waits of every kind, whose lengths stand beside them.
func waitJob(t testing.TB) string {
	t.Helper()
	at := func(us uint64) uint64 { return t0 + us*1000 }
	return jobtest.Make(t, 3, 2, func(r int, p *shardtest.Process) {
		world := p.World()
		p.Network(world)
		rooted := func(function string, kind otf2.CollectiveOp, root uint32, begin, end uint64, sent, received uint64) {
			p.Collective(world, shardtest.Op{
				Function: function, Kind: kind, Begin: begin, End: end, Rooted: true, Root: root, Sent: sent, Received: received, Count: 100,
			})
		}
		onRoot := func(root int, yes, no uint64) uint64 {
			if r == root {
				return yes
			}
			return no
		}
		p.AllReduce(world, at(100+7*uint64(r)), at(150), 100) // starting up: 14 + 7
		p.AllReduce(world, at(200+10*uint64(r)), at(260), 100)
		rooted("Broadcast", otf2.CollectiveOpBcast, 1, at([]uint64{300, 330, 320}[r]), at(360), onRoot(1, 1200, 0), 400) // 30, –, 10
		rooted("Broadcast", otf2.CollectiveOpBcast, 0, at([]uint64{400, 410, 405}[r]), at(460), onRoot(0, 1200, 0), 400) // nobody: the root is first
		rooted("Reduce", otf2.CollectiveOpReduce, 0, at([]uint64{500, 520, 510}[r]), at(560), 400, onRoot(0, 1200, 0))   // 20 on the root
		rooted("Reduce", otf2.CollectiveOpReduce, 1, at([]uint64{570, 590, 580}[r]), at(595), 400, onRoot(1, 1200, 0))   // nobody: the root is last
		switch r {
		case 0:
			p.Send(world, 1, at(640), at(660), 64)
			p.Send(world, 2, at(700), at(740), 64) // late receiver, 15
			p.Send(world, 2, at(800), at(805), 64) // late receiver, as long as it ran: 5
		case 1:
			p.Recv(world, 0, at(600), at(660), 64) // late sender, 40
		case 2:
			p.Recv(world, 0, at(715), at(740), 64)
			p.Recv(world, 0, at(820), at(830), 64)
		}
		// A shift around the ring, in a group: rank 1 is last, 0 waits 30 for it, 2 waits 20.
		w, next, previous := p.Writer(p.Shard.Comms[world].Location), uint32(r+1)%3, uint32(r+2)%3
		begin, end := otf2.Timestamp(at([]uint64{900, 930, 910}[r])), otf2.Timestamp(at(960))
		var a otf2.AttributeList
		a.String(regions.AttrTimingSource, p.String("gpu"))
		group := p.Region("Group (2 ops)", regions.GroupPointToPoint, otf2.RegionRolePoint2Point)
		phase := func(w *otf2.EventWriter, name string, peer uint32, begin, end uint64) {
			var a otf2.AttributeList
			a.Uint32(regions.AttrPeer, peer)
			region := p.Region(name, regions.GroupNetwork, otf2.RegionRoleDataTransfer)
			try(t, w.Enter(otf2.Timestamp(begin), &a, region))
			try(t, w.Leave(otf2.Timestamp(end), nil, region))
		}
		try(t, w.Enter(begin, &a, group))
		try(t, w.MpiIsend(begin, nil, next, 0, 0, 64, 1001))
		try(t, w.MpiIrecvRequest(begin, nil, 1002))
		try(t, w.MpiIsendComplete(end, nil, 1001))
		try(t, w.MpiIrecv(end, nil, previous, 0, 0, 64, 1002))
		try(t, w.Leave(end, nil, group))
		// Phases of transfers, each rank's longer than those of the one before it.
		for i, l := range p.Shard.Locations {
			w, k := p.Writer(i), uint64(r+1)
			switch l.Kind {
			case experiment.KindNetSend:
				phase(w, "Send GPU wait", next, at(900), at(900+k))
				phase(w, "Send peer wait", next, at(910), at(910+2*k))
				phase(w, "Send network", next, at(920), at(920+3*k))
				phase(w, "Send peer wait", previous, at(930), at(930+k))
			case experiment.KindNetRecv:
				phase(w, "Recv network", previous, at(900), at(900+4*k))
				phase(w, "Recv flush", previous, at(920), at(920+5*k))
				phase(w, "Recv GPU wait", previous, at(940), at(940+6*k))
			}
		}
		p.Destroy(world, at(1000))
	})
}

func try(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// waited is a WaitSums without uncertainties.
func waited(parts, time, waits, sum uint64) WaitSums {
	return WaitSums{Parts: parts, Time: time * us, Waits: waits, Waited: sum * us, Unstated: waits}
}

func TestWaitsOfEveryKind(t *testing.T) {
	w := operationsOfArchive(t, waitJob(t)).WaitStates
	kinds := map[string]WaitSums{}
	for _, k := range w.Kinds {
		kinds[k.Name] = k.WaitSums
	}
	// Times by hand: the collectives' are 60+50+40; 60+30+40 and 60+50+55; 60+40+50 and 25+5+15.
	if diff := cmp.Diff(map[string]WaitSums{
		"collective":               waited(3, 150, 2, 30),
		"late broadcast":           waited(6, 295, 2, 40),
		"early reduce":             waited(6, 195, 1, 20),
		"late sender":              waited(2, 110, 2, 60), // one of them in the ring: 2 receives from 1
		"late receiver":            waited(3, 105, 3, 50), // 0 sends to 1 in the ring
		"messages without waiting": waited(4, 85, 0, 0),
	}, kinds); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]WaitRow{
		{Name: "Rank 0", Host: "node0", WaitSums: waited(9, 390, 6, 120), Blame: Blame{Caused: 40 * us, Last: 1, MaxCaused: 40 * us, WorstAt: t0 + 640*us}},
		{Name: "Rank 1", Host: "node0", WaitSums: waited(7, 265, 2, 50), Blame: Blame{Caused: 110 * us, Last: 4, MaxCaused: 40 * us, WorstAt: t0 + 330*us}},
		{Name: "Rank 2", Host: "node1", WaitSums: waited(8, 285, 2, 30), Blame: Blame{Caused: 50 * us, Last: 3, MaxCaused: 30 * us, WorstAt: t0 + 220*us}},
	}, w.Ranks); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]WaitRow{
		{Name: "node0", Host: "node0", WaitSums: waited(16, 655, 8, 170), Blame: Blame{Caused: 150 * us, Last: 5, MaxCaused: 40 * us, WorstAt: t0 + 640*us}},
		{Name: "node1", Host: "node1", WaitSums: waited(8, 285, 2, 30), Blame: Blame{Caused: 50 * us, Last: 3, MaxCaused: 30 * us, WorstAt: t0 + 220*us}},
	}, w.HostRows); diff != "" {
		t.Error(diff)
	}
	if len(w.GPUs) != 3 || w.GPUs[2].Host != "node1" || w.GPUs[2].Caused != 50*us {
		t.Errorf("GPUs: %+v", w.GPUs)
	}
	if w.Collectives != 5 || w.Messages != 6 || w.Total != waited(24, 940, 10, 200) || w.NotCompared != (NotCompared{}) || w.Culprit() != 1 {
		t.Errorf("%+v", w)
	}
	if diff := cmp.Diff(StartUp{Collectives: 1, Waited: 21 * us, Rank: "Rank 2", Host: "node1", Caused: 21 * us}, w.StartUp); diff != "" {
		t.Error(diff)
	}
	// Skews 20, 30, 10, 20, 20; after the last begin 40, 30, 50, 40, 5.
	c := w.Communicators[0]
	if c.Collectives != 5 || c.SkewAvg != 20*us || c.SkewMax != 30*us || c.TransferAvg != 33*us {
		t.Errorf("%+v", c)
	}
	if diff := cmp.Diff([]string{"AllReduce 30000", "Broadcast 40000", "Recv 40000", "Reduce 20000", "Send 20000", "Send and Recv 50000"}, names(w.Operations)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(WaitInstance{
		Communicator: "world", Operation: "Broadcast", At: t0 + 330*us, Rank: "Rank 1", Host: "node0", Caused: 40 * us, Skew: 30 * us, Transfer: 30 * us,
	}, w.Worst[0]); diff != "" {
		t.Error(diff)
	}
	var network []NetworkWait
	for k := uint64(1); k <= 3; k++ {
		// What the others waited for rank r: the one before it 2k, the one behind it k of their own.
		before, behind := (k+1)%3+1, k%3+1
		network = append(network, NetworkWait{
			Communicator: "world", Comm: w.Network[0].Comm, CommRank: int(k - 1), Rank: fmt.Sprint("Rank ", k-1), Host: []string{"node0", "node0", "node1"}[k-1],
			SendGPU: k * us, SendPeer: 3 * k * us, SendNetwork: 3 * k * us, RecvNetwork: 4 * k * us, RecvFlush: 5 * k * us, RecvGPU: 6 * k * us,
			Phases: 7, AwaitedBy: (2*before + behind) * us,
		})
	}
	if diff := cmp.Diff(network, w.Network); diff != "" {
		t.Error(diff)
	}
}

func names(groups []WaitGroup) (all []string) {
	for _, g := range groups {
		all = append(all, fmt.Sprint(g.Name, " ", g.Waited))
	}
	return all
}

// uncertain states by how much the operations of each of the sample's ranks may be off.
func uncertain(s *sample, ns func(rank int) uint64) {
	for r := range 3 {
		events := s.events[stream(r)]
		for i := range events {
			if events[i].Kind == otf2.EventEnter {
				events[i].Attributes = append(events[i].Attributes, otf2.AttributeValue{ID: regions.AttrUncertainty, Type: otf2.TypeUint64, Bits: ns(r)})
			}
		}
	}
}

func TestUncertaintyOfWaits(t *testing.T) {
	s := load(t, waitJob(t))
	uncertain(s, func(rank int) uint64 { return []uint64{1, 2, 9}[rank] * us })
	w := operationsOfArchive(t, s.write()).WaitStates
	// Waits with the sum of both ranks' uncertainties: AllReduce 20±10, 10±11; Broadcast 30±3, 10±11; Reduce 20±3;
	// messages 40±3, 15±10, 5±10, ring 30±3, 20±11.
	want := WaitSums{Parts: 24, Time: 940 * us, Waits: 10, Waited: 200 * us, Uncertainty: (10 + 11 + 3 + 11 + 3 + 3 + 10 + 10 + 3 + 11) * us, Below: 3, BelowTime: 25 * us}
	if diff := cmp.Diff(want, w.Total); diff != "" {
		t.Error(diff)
	}
	if u := w.Worst[0].Uncertainty; u == nil || *u != 14*us {
		t.Errorf("%+v", w.Worst[0])
	}
	var b bytes.Buffer
	try(t, w.Document().WriteText(&b))
	if want := "waited 200 µs of 940 µs, 21.3 %, ± 75 µs; 25 µs of it in 3 waits not longer than what they may be off by\n"; !bytes.Contains(b.Bytes(), []byte(want)) {
		t.Errorf("%s\nwant: %s", b.String(), want)
	}
}

// What is compared depends on the kind of times: here those of one rank, and of two, are worth less.
func TestOnlyTimesOfOneKindAreCompared(t *testing.T) {
	sourceOfRank := func(rank int, name string) func(*sample) {
		return func(s *sample) {
			var ref otf2.StringRef
			for _, d := range s.defs.Strings {
				if d.Text == name {
					ref = d.Self
				}
			}
			if ref == 0 {
				ref = otf2.StringRef(100_001 + rank)
				s.defs.Strings = append(s.defs.Strings, otf2.String{Self: ref, Text: name})
			}
			told := facts.FindAttributes(s.defs)
			for i := range s.events[stream(rank)] {
				for k := range s.events[stream(rank)][i].Attributes {
					if a := &s.events[stream(rank)][i].Attributes[k]; isSource(told, a.ID) {
						a.Bits = uint64(ref)
					}
				}
			}
		}
	}
	all := func(changes ...func(*sample)) *WaitStates {
		s := load(t, waitJob(t))
		for _, c := range changes {
			c(s)
		}
		return operationsOfArchive(t, s.write()).WaitStates
	}
	t.Run("one rank enqueue", func(t *testing.T) {
		w := all(sourceOfRank(2, "enqueue"))
		// AllReduce: 10 on rank 0; Broadcast 30 on 0; Reduce 20 on 0; message 40 on 1; ring: 30 on 0.
		if w.Total.Waited != (10+30+20+40+30)*us || w.NotCompared.Members != 6 || w.NotCompared.Messages != 4 || w.Enqueue.Collectives != 0 {
			t.Errorf("%+v", w)
		}
		if diff := cmp.Diff(map[string]uint64{"gpu": 5 + 2}, w.Times); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("two ranks network", func(t *testing.T) {
		w := all(sourceOfRank(1, "network"), sourceOfRank(2, "network"))
		// AllReduce: 10 on 1; Broadcast from 1: 10 on 2; from 0: its root is of another kind; Reduce to 0 the same,
		// to 1: nobody; ring: 20 on 2.
		if w.Total.Waited != (10+10+20)*us || w.NotCompared.NoTimes != 2 || w.Times["network"] != 3+1 {
			t.Errorf("%+v", w)
		}
	})
	t.Run("light", func(t *testing.T) {
		w := all(sourceOfRank(0, "enqueue"), sourceOfRank(1, "enqueue"), sourceOfRank(2, "enqueue"))
		if w.Total != (WaitSums{}) || w.Collectives != 0 || w.NotCompared.NoTimes != 6 || w.NotCompared.Messages != 6 {
			t.Errorf("%+v", w)
		}
		// The start-up is one of them: skews 14, 20, 30, 10, 20, 20.
		e := w.Enqueue
		if e.Collectives != 6 || e.SkewAvg != 19*us || e.SkewMax != 30*us || e.Ranks[1].Last != 4 || e.Ranks[2].Last != 2 || e.Ranks[1].Behind != (7+10+30+10+20+20)*us {
			t.Errorf("%+v", e)
		}
		for _, format := range []func(*Document, *bytes.Buffer) error{
			func(d *Document, b *bytes.Buffer) error { return d.WriteText(b) },
			func(d *Document, b *bytes.Buffer) error { return d.WriteMarkdown(b) },
		} {
			var b bytes.Buffer
			try(t, format(w.Document(), &b))
			if !bytes.Contains(b.Bytes(), []byte("Enqueue arrival")) || bytes.Contains(b.Bytes(), []byte("By rank")) {
				t.Error(b.String())
			}
		}
	})
}

// Waits count into the phases of the application in which the operations were called.
func TestWaitsByPhase(t *testing.T) {
	s := load(t, waitJob(t))
	// All calls are made on the thread in a phase "step 7"; the operations name them as their parents.
	text := func(ref otf2.StringRef, name string) {
		s.defs.Strings = append(s.defs.Strings, otf2.String{Self: ref, Text: name})
	}
	text(50_000, "step 7")
	text(50_001, "ncclAnything")
	text(50_002, "Application")
	text(50_003, "NCCL API")
	s.defs.Regions = append(s.defs.Regions,
		otf2.Region{Self: 900, Name: 50_000, CanonicalName: 50_000, Role: otf2.RegionRoleCode, Paradigm: otf2.ParadigmUser, SourceFile: otf2.UndefinedString},
		otf2.Region{Self: 901, Name: 50_001, CanonicalName: 50_001, Role: otf2.RegionRoleFunction, Paradigm: otf2.ParadigmCUDA, SourceFile: otf2.UndefinedString})
	s.defs.Groups = append(s.defs.Groups,
		otf2.Group{Self: 900, Name: 50_002, Type: otf2.GroupTypeRegions, Paradigm: otf2.ParadigmUser, Members: []uint64{900}},
		otf2.Group{Self: 901, Name: 50_003, Type: otf2.GroupTypeRegions, Paradigm: otf2.ParadigmCUDA, Members: []uint64{901}})
	for r := range 3 {
		var calls []otf2.Event
		next, time := uint64(1), otf2.Timestamp(t0+190*us)
		event := func(kind otf2.EventKind, region uint64, attributes ...otf2.AttributeValue) {
			calls = append(calls, otf2.Event{Location: thread(r), Time: time, Kind: kind, Args: []uint64{region}, Attributes: attributes})
		}
		event(otf2.EventEnter, 900)
		for i := range s.events[stream(r)] {
			ev := &s.events[stream(r)][i]
			if ev.Kind != otf2.EventEnter || ev.Time < t0+190*us || ev.Time > t0+500*us {
				continue
			}
			event(otf2.EventEnter, 901, otf2.AttributeValue{ID: regions.AttrEventID, Type: otf2.TypeUint64, Bits: next},
				otf2.AttributeValue{ID: regions.AttrCount, Type: otf2.TypeUint64, Bits: 1})
			event(otf2.EventLeave, 901)
			ev.Attributes = append(ev.Attributes, otf2.AttributeValue{ID: regions.AttrParentID, Type: otf2.TypeUint64, Bits: next})
			next++
		}
		event(otf2.EventLeave, 900)
		s.events[thread(r)] = append(s.events[thread(r)], calls...)
		slices.SortStableFunc(s.events[thread(r)], func(a, b otf2.Event) int { return int(int64(a.Time) - int64(b.Time)) })
	}
	s.recount()
	w := operationsOfArchive(t, s.write()).WaitStates
	// The AllReduce and both Broadcasts, and on rank 0 the Reduce.
	if len(w.Phases) != 1 || w.Phases[0].Name != "step 7" || w.Phases[0].Waited != (30+40+20)*us || w.Phases[0].Parts != 10 {
		t.Errorf("%+v", w.Phases)
	}
}

func TestWaitsInAllFormats(t *testing.T) {
	s := load(t, waitJob(t))
	uncertain(s, func(rank int) uint64 { return uint64(rank+1) * 4 * us })
	w := operationsOfArchive(t, s.write()).WaitStates
	var text, values, markdown bytes.Buffer
	try(t, w.Document().WriteText(&text))
	try(t, w.Document().WriteCSV(&values))
	try(t, w.Document().WriteMarkdown(&markdown))
	golden.Text(t, "testdata/waits.txt", text.String())
	golden.Text(t, "testdata/waits.csv", values.String())
	golden.Text(t, "testdata/waits.md", markdown.String())
	b, err := json.MarshalIndent(w, "", "  ")
	try(t, err)
	golden.Text(t, "testdata/waits.json", string(b)+"\n")
}

// Messages whose other end is not in the archive, or comes very late, are counted once the data has ended.
func TestMessagesWithoutTheOtherEnd(t *testing.T) {
	s := load(t, waitJob(t))
	// Without the ring's and all other receives of rank 2.
	s.events[stream(2)] = slices.DeleteFunc(s.events[stream(2)], func(ev otf2.Event) bool { return ev.Kind == otf2.EventMpiIrecv })
	w := operationsOfArchive(t, s.write()).WaitStates
	if w.NotCompared.Unmatched != 3 || w.Messages != 3 {
		t.Errorf("%+v", w)
	}
	// Rank 2 waited for nobody: what it sent in the ring was awaited.
	if got := w.Ranks[2].Waited; got != 10*us {
		t.Errorf("rank 2 waited %d", got)
	}
}

func isSource(told *facts.Attributes, id otf2.AttributeRef) bool {
	ref, ok := told.Of(id)
	return ok && ref == regions.AttrTimingSource
}
