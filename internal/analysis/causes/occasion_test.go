// SPDX-License-Identifier: Apache-2.0

package causes

import (
	"fmt"
	"math"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/lateness"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// struck returns on how many occasions a rank was late by itself.
func struck(r *Result, rank int) (times float64) {
	for i := range r.Comms {
		for member, of := range r.Comms[i].Ranks {
			for level := range Levels {
				if int(of) == rank {
					times += float64(r.Comms[i].Struck[member][level])
				}
			}
		}
	}
	return times
}

// carried makes a job of AllReduces of three ranks whose hosts do not wait for their GPUs and call every 500 µs. From
// one operation on, the host of rank 1 is behind by a number of µs.
func carried(operations int, behind float64, from int) *Result {
	e := NewEngine(3)
	var ended, called [3]otf2.Timestamp
	for k := range operations {
		var all []Member
		last := otf2.Timestamp(0)
		for r := range 3 {
			ready := 1000 + 500*float64(k)
			if r == 1 && k >= from {
				ready += behind
			}
			l := Local{Rank: int32(r), Seq: uint32(k + 1), Before: uint32(k), Ended: ended[r], Ready: at(ready),
				Returned: at(ready + 1), Called: true, Free: called[r]}
			begin := max(at(ready+1), ended[r])
			if k == 0 {
				l.Ended = begin
			}
			called[r] = l.Returned
			all = append(all, Member{There: begin,
				Arrival: lateness.Arrival{Rank: r, Begin: begin, Source: facts.SourceGPU}, Local: l})
			last = max(last, begin)
		}
		for r := range all {
			all[r].End = last + transferTime*1000
			ended[r] = all[r].End
			e.AddPart(&all[r].Local)
		}
		e.Collective(&Operation{Comm: 1, Members: 3, Function: "AllReduce", Ordinal: uint64(k)}, all)
	}
	return e.Result()
}

// byMore makes AllReduces of three ranks, of which one is late by ever more.
func byMore(times, rank int) (text string) {
	for k := range times {
		text += fmt.Sprintf("0:50 1:50 2:50 %d:%d ar(0,1,2) ", rank, 100+2*k)
	}
	return text
}

// inTwo makes two ranks meet, and then both of them a third one; one of the two is delayed once.
func inTwo(rounds, delayed int) (text string) {
	for k := range rounds {
		late := 0
		if k == delayed {
			late = 900
		}
		text += fmt.Sprintf("0:50 1:%d 2:%d ar(0,1) 0:5 1:5 ar(0,1,2) ", 50+late, 66+k*k%17)
	}
	return text
}

// Lateness carried along from a single delay is one occasion; if it arises anew, each operation is one.
func TestOccasions(t *testing.T) {
	played := func(ranks int, text string) *Result { return newJob(ranks).play(text).engine.Result() }
	for _, c := range []struct {
		name        string
		result      *Result
		least, most float64
	}{
		{"once", played(3, "5*[ 0:50 1:50 2:50 ar(0,1,2) ] 1:300 ar(0,1,2) 5*[ ar(0,1,2) ]"), 1, 1},
		{"late anew for a while", played(3, "9*[ 0:50 1:50 2:50 ar(0,1,2) ] 20*[ 0:50 1:150 2:50 ar(0,1,2) ]"), 18, 20},
		{"late anew until another one is", played(3, "9*[ 1:150 0:50 2:50 ar(0,1,2) ] 20*[ 0:50 1:151 2:50 "+
			"ar(0,1,2) ] 29*[ 0:50 1:50 2:150 ar(0,1,2) ]"), 27, 29},
		{"late anew, by ever more, until another one is", played(3, "9*[ 0:50 1:50 2:50 ar(0,1,2) ] "+byMore(20, 1)+
			byMore(20, 2)), 18, 20},
		{"once before two communicators", played(3, inTwo(30, 20)), 1, 1.2},
		{"every second time", played(3, "9*[ ar(0,1,2) 1:100 ar(0,1,2) ]"), 9, 9},
		{"carried along by a host that does not wait", carried(60, 200, 20), 1, 2},
		{"a sender that always takes as long, late from where the other one has caught up", played(2,
			"b(0,1) 1:1000 24*[ 0:100 b(0,1) 1:20 ]"), 11, 13},
		{"a sender, late anew", played(2, "9*[ m(0,1) ] 9*[ 0:100 m(0,1) ]"), 8, 9},
	} {
		r := c.result
		late := 0
		for i := range r.Ranks {
			if r.Ranks[i].Cost() > r.Ranks[late].Cost() {
				late = i
			}
		}
		if times := struck(r, late); times < c.least || times > c.most {
			t.Errorf("%s: %.2f occasions, want %g to %g", c.name, times, c.least, c.most)
		}
		if of := &r.Ranks[late]; of.Heaviest > of.Cost()*1.001 || of.Heaviest < of.Cost()/(c.most+1) {
			t.Errorf("%s: one occasion cost %.0f ns of %.0f", c.name, of.Heaviest, of.Cost())
		}
	}
}

// A rank that is late to nearly all operations has no others to compare with: its lateness arose anew if it varies
// about a mean.
func TestRows(t *testing.T) {
	for _, c := range []struct {
		name        string
		late        func(k int) float64
		least, most float64
	}{
		{"about a mean", func(k int) float64 { return 100 + 5*math.Sin(float64(7*k*k)) }, 0.7, 1},
		{"about a mean, with one that was held up", func(k int) float64 {
			return 100 + 0.5*math.Sin(float64(7*k*k)) + map[int]float64{20: 40, 21: 12}[k]
		}, 0.5, 1},
		{"always the same", func(int) float64 { return 100 }, 1, 1},
		{"adrift", func(k int) float64 { return 100 + float64(k) }, 0, 0.05},
	} {
		var r row
		var s steadiness
		for k := range 40 {
			r.add(c.late(k), &s)
		}
		r.end(&s)
		got := s.newShare()
		testkit.Check(t, got >= c.least && got <= c.most, "%s: %.3f anew, want %g to %g", c.name, got, c.least, c.most)
	}
}

// A rank that carries along lateness caused by others is not late by itself.
func TestLatenessThatIsGiven(t *testing.T) {
	n := causesOf(2)
	l := newLedger(n)
	comm := newCommLedger(2)
	link := n.of(1, Link)
	for round := range uint32(10) {
		seq := 3*round + 1
		l.addInheritedLateness(&lateOccasion{local: &Local{Seq: seq, Before: seq - 1}, late: 100}, amounts{{link, 1}})
		for range 2 {
			seq++
			s := lateOccasion{local: &Local{Seq: seq, Before: seq - 1}, late: 100, cost: 70, ledger: &comm, waiter: -1}
			s.kinds[Host] = 70
			l.addLateOccasion(&s)
		}
	}
	l.endBurst(0)
	moved, given := l.burstsOf[0].moved, l.burstsOf[0].given
	testkit.Check(t, moved[Host] == -1400 && given[link] == 1400, "moved %v, to others %v", moved, given)
	for _, c := range []struct{ anew, times float64 }{{0, 0}, {1, 20}} {
		var o occasions
		comm.struck[0].into(&o, c.anew)
		times := 0.0
		for level := range o.times {
			times += float64(o.times[level])
		}
		testkit.Check(t, times == c.times,
			"of lateness of which %g arose anew there were %g occasions, want %g", c.anew, times, c.times)
	}
}

// In a burst whose lateness arose anew each time, no occasion costs more than the most expensive operation.
func TestHeaviestOccasion(t *testing.T) {
	l, comm := newLedger(causesOf(1)), newCommLedger(2)
	for k, cost := range []float64{20, 6} {
		seq := uint32(k + 1)
		l.addLateOccasion(&lateOccasion{local: &Local{Seq: seq, Before: seq - 1}, late: 10, cost: cost, ledger: &comm, waiter: -1})
	}
	l.endBurst(0)
	for anew, want := range map[float64]float64{0: 26, 1: 20} {
		testkit.Equal(t, l.burstsOf[0].heaviest(anew), want,
			"of lateness of which %g arose anew the heaviest occasion cost", anew)
	}
}

// Steps of bursts in which a rank was hardly late may take longer for other reasons: they do not show what it carries
// along when it is late by much.
func TestPaces(t *testing.T) {
	for _, c := range []struct {
		name        string
		took        float64 // ns, if it is late by 600
		least, most float64 // part that arose anew
	}{
		{"carried along", 1000, 0, 0.05},
		{"late anew", 1600, 0.95, 1},
	} {
		var p pace
		s := p.step(series{comm: 1}, series{comm: 1})
		for range 20 {
			s.out.add(1000, 1)
		}
		for range 60 {
			s.addInBurst(1100, 10)
		}
		for range 6 {
			s.addInBurst(c.took, 600)
		}
		if part, ok := p.newShare(); !ok || part < c.least || part > c.most {
			t.Errorf("%s: %.2f, %v, want %g to %g", c.name, part, ok, c.least, c.most)
		}
	}
}

// A rank that catches up after it was late anew is late anew: it then takes less time because it does not wait, which
// shows nothing else.
func TestPacesOfThoseWhoCatchUp(t *testing.T) {
	var p pace
	to, back := p.step(series{comm: 1}, series{comm: 2}), p.step(series{comm: 2}, series{comm: 1})
	for range 8 {
		to.out.add(2000, 1)
		back.out.add(3000, 1)
	}
	for range 16 {
		to.addInBurst(1000, 600)
		back.addInBurst(3600, 600)
	}
	if part, ok := p.newShare(); !ok || part < 0.45 || part > 0.55 {
		t.Errorf("%.2f, %v, want half: late anew to every second operation", part, ok)
	}
}

// If a rank waits for others as long as it is late itself, where its lateness arises, other steps do not show its pace.
func TestPacesOfMovingCauses(t *testing.T) {
	for _, c := range []struct {
		name      string
		waited    float64 // in each step to the send outside of bursts
		recv      float64 // lateness at the receive, where nothing arises
		part      float64
		undecided bool
	}{
		{"it waits for nobody", 0, 100, 0.5, false},
		{"it waits for others", 100, 100, 0, true},
		{"where it is hardly late", 100, 1000, 0, false},
	} {
		var p pace
		send, recv := p.step(series{function: "Recv"}, series{function: "Send"}), p.step(series{function: "Send"},
			series{function: "Recv"})
		for range 10 {
			send.addInBurst(400, 100)
			recv.addInBurst(50, c.recv)
			send.addOutsideBursts(300-c.waited, c.waited)
			recv.addOutsideBursts(50, 0)
		}
		part, ok := p.newShare()
		testkit.Check(t, abs(part-c.part) < 0.1 && ok != c.undecided, "%s: a part of %.2f arose anew, known: %v", c.name,
			part, ok)
	}
}

// What operations took longer on a rank goes to the link that was the reason.
func TestAscribe(t *testing.T) {
	r := &Result{Ranks: make([]Rank, 2)}
	r.Ranks[1].Costs[Transfer], r.Ranks[1].Delays[Transfer], r.Ranks[0].Costs[Link] = 100, 40, 5
	r.Ascribe(1, 0, 0.75)
	testkit.Check(t, r.Ranks[1].Costs[Transfer] == 25 && r.Ranks[0].Costs[Link] == 80, "%+v", r.Ranks)
	testkit.Check(t, r.Ranks[1].Delays[Transfer] == 10 && r.Ranks[0].Delays[Link] == 30, "%+v", r.Ranks)
}
