// SPDX-License-Identifier: Apache-2.0

package causes

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/lateness"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// job is a test job: what its ranks do until their next operation, and the operations. Times are in µs.
//
// In the notation of play each word is a step:
//
//	2:50        the host of rank 2 works for 50
//	2~50        its GPU works for 50 after the call
//	2?50        the same, and no call is known
//	2=50        its GPU works for 50 from the previous operation's begin, whenever that ends; the call is immediate
//	ar(0,1,2)   an AllReduce on the communicator of these ranks, which takes 10 from the last arrival on
//	sl1(0,1,2)  the same, which takes 500 longer because rank 1's sends are slow on the network
//	sg1(0,1,2)  the same, because rank 1's GPU moves data slowly, in one step
//	rd1(0,1,2)  a Reduce to rank 1: the others leave when rank 1 and those between have come, in the order of the list
//	m(0,1)      a message from the first to the second, which ends on both 10 after both have begun
//	b(0,1)      the same, and the sender does not wait
//	cross(0,1)  two AllReduces at once, of which either rank seems to have ended another one before it began the other
//	3*[ … ]     repeats the steps 3 times
type job struct {
	engine   *Engine
	now      []float64 // by rank
	host     []float64 // work before the next call
	gpu      []float64 // work after it
	beside   []float64 // work from the begin of the previous operation on; 0: none
	began    []float64
	uncalled []bool
	seq      []uint32
	ended    []otf2.Timestamp
	free     []otf2.Timestamp // when the last call had returned
	comms    map[string]otf2.CommRef
	ordinals map[string]uint64

	firstOrdinal uint64 // ordinal at which recording began
	messages     uint64

	sent    float64 // ns that ends of messages waited
	members [][]Member
	ops     []Operation
}

const transferTime = 10

func newJob(ranks int) *job {
	j := &job{
		engine: NewEngine(ranks), now: make([]float64, ranks), host: make([]float64, ranks),
		gpu: make([]float64, ranks), beside: make([]float64, ranks), began: make([]float64, ranks),
		uncalled: make([]bool, ranks),
		seq:      make([]uint32, ranks), ended: make([]otf2.Timestamp, ranks), free: make([]otf2.Timestamp, ranks),
		comms:    make(map[string]otf2.CommRef),
		ordinals: make(map[string]uint64),
	}
	for i := range j.now {
		j.now[i] = 1000
	}
	return j
}

// play performs the steps of a text.
func (j *job) play(text string) *job {
	words := strings.Fields(text)
	j.steps(words)
	return j
}

func (j *job) steps(words []string) {
	for i := 0; i < len(words); i++ {
		if n, ok := strings.CutSuffix(words[i], "*["); ok {
			end, depth := i+1, 1
			for ; depth > 0; end++ {
				switch {
				case strings.HasSuffix(words[end], "*["):
					depth++
				case words[end] == "]":
					depth--
				}
			}
			for range number(n) {
				j.steps(words[i+1 : end-1])
			}
			i = end - 1
			continue
		}
		j.step(words[i])
	}
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(err)
	}
	return n
}

func (j *job) step(word string) {
	for i, c := range word {
		switch c {
		case ':':
			j.host[number(word[:i])] += float64(number(word[i+1:]))
			return
		case '=':
			j.beside[number(word[:i])] += float64(number(word[i+1:]))
			return
		case '~', '?':
			j.gpu[number(word[:i])] += float64(number(word[i+1:]))
			j.uncalled[number(word[:i])] = c == '?'
			return
		case '(':
			var members []int
			for _, m := range strings.Split(strings.TrimSuffix(word[i+1:], ")"), ",") {
				members = append(members, number(m))
			}
			switch what := word[:i]; what {
			case "m", "b":
				j.message(members[0], members[1], what == "b")
			case "cross":
				j.cross(members)
			default:
				j.collective(what, members)
			}
			return
		}
	}
	panic("no step: " + word)
}

// collective makes ranks perform a collective.
func (j *job) collective(what string, members []int) {
	key := fmt.Sprint(members)
	ref, known := j.comms[key]
	if !known {
		ref = otf2.CommRef(len(j.comms))
		j.comms[key] = ref
	}
	op := Operation{Comm: ref, Members: len(members), Function: "AllReduce", Ordinal: j.firstOrdinal + j.ordinals[key]}
	j.ordinals[key]++
	root := -1
	if r, ok := strings.CutPrefix(what, "rd"); ok {
		op.Function, op.Kind, root = "Reduce", lateness.WaitEarlyReduce, slices.Index(members, number(r))
	}
	took := float64(transferTime)
	if slow, ok := strings.CutPrefix(what, "sl"); ok {
		op.Slow = []Slow{{Rank: int32(number(slow)), Kind: Link, Excess: 500_000}}
		took += 500
	}
	if slow, ok := strings.CutPrefix(what, "sg"); ok {
		op.Slow = []Slow{{Rank: int32(number(slow)), Kind: Moving, Excess: 500_000, Steps: 1}}
		took += 500
	}
	all := make([]Member, len(members))
	last := 0.0
	for i, r := range members {
		all[i] = j.begin(r, i)
		all[i].Root = i == root
		last = max(last, float64(all[i].Begin)/1000)
	}
	for i, r := range members {
		end := at(last + took)
		if root >= 0 && i != root {
			begin := all[i].Begin
			for next := (i + 1) % len(members); ; next = (next + 1) % len(members) {
				begin = max(begin, all[next].Begin)
				if next == root {
					break
				}
			}
			end = begin + transferTime*1000
		}
		all[i].End = end
		j.now[r], j.ended[r] = float64(end)/1000, end
	}
	for i := range all {
		j.engine.AddPart(&all[i].Local)
	}
	j.members, j.ops = append(j.members, all), append(j.ops, op)
	j.engine.Collective(&op, all)
}

// cross makes two ranks perform two AllReduces at once. Both ranks have ended one of them when they begin the other one,
// but not the same.
func (j *job) cross(members []int) {
	var all [2][]Member
	for i, r := range members {
		for k := range all {
			all[(i+k)%2] = append(all[(i+k)%2], j.begin(r, i))
		}
		j.now[r] += transferTime
		j.ended[r] = at(j.now[r])
	}
	ref := j.comms[fmt.Sprint(members)]
	for i, r := range members {
		for k := range all {
			m := &all[(i+k)%2][i]
			m.End = j.ended[r]
			j.engine.AddPart(&m.Local)
		}
	}
	for k := range all {
		op := Operation{Comm: ref, Members: len(members), Function: "AllReduce", Ordinal: j.ordinals[fmt.Sprint(members)]}
		j.ordinals[fmt.Sprint(members)]++
		j.members, j.ops = append(j.members, all[k]), append(j.ops, op)
		j.engine.Collective(&op, all[k])
	}
}

// begin makes a rank begin an operation.
func (j *job) begin(r, member int) Member {
	ready := j.now[r] + j.host[r]
	begin := ready + 1 + j.gpu[r]
	if beside := j.beside[r]; beside > 0 {
		ready = j.began[r]
		begin = max(j.now[r], ready+beside)
	}
	l := Local{Rank: int32(r), Before: j.seq[r], Ended: j.ended[r], Ready: at(ready), Returned: at(ready + 1),
		Called: !j.uncalled[r], Free: j.free[r]}
	j.free[r] = l.Returned
	if l.Before == 0 {
		l.Ended = at(begin)
	}
	j.seq[r]++
	l.Seq = j.seq[r]
	j.host[r], j.gpu[r], j.beside[r], j.uncalled[r], j.began[r] = 0, 0, 0, false, begin
	return Member{There: at(begin), Arrival: lateness.Arrival{Rank: member, Begin: at(begin), Source: facts.SourceGPU},
		Local: l}
}

// message makes a rank send to another one, on the communicator of all.
func (j *job) message(from, to int, buffered bool) {
	ends := [2]End{{Member: j.begin(from, from), Function: "Send"}, {Member: j.begin(to, to), Function: "Recv"}}
	done := max(ends[0].Begin, ends[1].Begin) + transferTime*1000
	for i, r := range [2]int{from, to} {
		end := &ends[i]
		end.Ordinal = j.firstOrdinal + j.messages
		end.Comm, end.Members, end.Last, end.Paired, end.End = 1<<20, len(j.now), true, true, done
		if buffered && i == 0 {
			end.End = end.Begin + transferTime*1000
		}
		j.now[r], j.ended[r] = float64(end.End)/1000, end.End
		if other := &ends[1-i]; other.Begin > end.Begin && other.Begin <= end.End {
			j.sent += float64(other.Begin - end.Begin)
		}
		j.engine.AddPart(&end.Local)
		j.engine.Message(end)
	}
	j.messages++
	j.engine.AddMessagePair(&ends[0].Local, &ends[1].Local, true)
}

func at(us float64) otf2.Timestamp { return otf2.Timestamp(math.Round(us * 1000)) }

// shares returns the parts of all waiting by rank, in percent.
func shares(r *Result) (all []int) {
	for i := range r.Ranks {
		all = append(all, int(math.Round(100*r.Ranks[i].Cost()/max(r.Waited, 1))))
	}
	return all
}

// The additional time of an operation due to slow transfers is passed on to ranks that wait for its members elsewhere.
func TestSlowTransfersArePassedOn(t *testing.T) {
	for _, c := range []struct {
		name, play string
		ranks      int
		waited     float64 // us, for rank 1's link
	}{
		{"none waits elsewhere", "ar(0,1) 5*[ sl1(0,1) ]", 2, 0},
		{"others wait for both members", "ar(0,1) ar(0,2) ar(1,3) 5*[ sl1(0,1) ar(0,2) ar(1,3) ]", 4, 5 * 2 * 500},
		{"and others for these", "ar(0,1) ar(1,2) ar(2,3) 5*[ sl1(0,1) ar(1,2) ar(2,3) ]", 4, 5 * 2 * 500},
	} {
		r := newJob(c.ranks).play(c.play).engine.Result()
		if got := r.Ranks[1].Costs[Link] / 1000; math.Abs(got-c.waited) > 0.05*c.waited {
			t.Errorf("%s: %.0f us go back to the link, want %.0f: %+v", c.name, got, c.waited, r.Ranks)
		}
		testkit.Check(t, r.Ranks[0].Cost()+r.Ranks[1].Cost() <= 0.05*r.Waited,
			"%s: ranks 0 and 1 are held to be late by themselves: %+v", c.name, r.Ranks)
	}
}

// Where the order of the last operations is not certain, what they waited has no known cause.
func TestUncertainOrderAtTheEnd(t *testing.T) {
	const waits, last = "40*[ 1:50 ar(0,1) ]", " 1:50 ar(0,1)"
	whole := newJob(2).play("ar(0,1) " + waits + last).engine.Result()
	r := newJob(2).play("ar(0,1) " + waits + " cross(0,1)" + last).engine.Result()
	testkit.Check(t, r.Waited == whole.Waited && r.Unknown == 50_000 && whole.Unknown == 0, "%g ns waited, %g unknown; "+
		"with a certain order, %g", r.Waited, r.Unknown, whole.Waited)
}

func TestCauses(t *testing.T) {
	for _, c := range []struct {
		name  string
		ranks int
		play  string
		want  []int // shares in per cent, by rank
		kind  Kind  // of all of it
	}{
		{"nobody is late", 3, "4*[ ar(0,1,2) ]", []int{0, 0, 0}, Host},
		{"only start-up", 3, "2:5000 ar(0,1,2) 3*[ ar(0,1,2) ]", []int{0, 0, 0}, Host},
		{"one host is late", 3, "ar(0,1,2) 5*[ 1:100 ar(0,1,2) ]", []int{0, 100, 0}, Host},
		{"one GPU is late", 3, "ar(0,1,2) 5*[ 1~100 ar(0,1,2) ]", []int{0, 100, 0}, GPU},
		{"no call is known", 3, "ar(0,1,2) 5*[ 1?100 ar(0,1,2) ]", []int{0, 100, 0}, Own},
		{"half are late alike", 4, "ar(0,1,2,3) 5*[ 1:100 3:100 ar(0,1,2,3) ]", []int{0, 50, 0, 50}, Host},
		{"one is late by much and one by little", 4, "ar(0,1,2,3) 5*[ 1:500 3:5 ar(0,1,2,3) ]", []int{0, 100, 0, 0},
			Host},
		{"in turn, two to one", 5, "ar(0,1,2,3,4) 5*[ 1:60 ar(0,1,2,3,4) 3:30 ar(0,1,2,3,4) ]", []int{0, 67, 0, 33, 0},
			Host},
		{
			"passed on from a row to columns", 6,
			"ar(0,1,2) ar(3,4,5) ar(0,3) ar(1,4) ar(2,5) 6*[ 4:50 ar(0,1,2) ar(3,4,5) ar(0,3) ar(1,4) ar(2,5) ]",
			[]int{0, 0, 0, 0, 100, 0}, Host,
		},
		{"passed on twice", 4, "ar(0,1) ar(1,2) ar(2,3) 6*[ 0:9000 ar(0,1) ar(1,2) ar(2,3) ]", []int{100, 0, 0, 0},
			Host},
		{"a communicator that starts late passes on start-up", 3,
			"ar(0,1) 2:90000 ar(1,2) ar(0,1) 3*[ 0:1000 ar(0,1) ]", []int{100, 0, 0}, Host},
		{
			"tensor and data parallel, passed on through both", 8,
			"ar(0,1) ar(2,3) ar(4,5) ar(6,7) ar(0,2,4,6) ar(1,3,5,7) 5*[ 3*[ 5:9000 ar(0,1) ar(2,3) ar(4,5) ar(6,7) " +
				"] ar(0,2,4,6) ar(1,3,5,7) ]",
			[]int{0, 0, 0, 0, 0, 100, 0, 0}, Host,
		},
		{"an order that is not certain", 2, "ar(0,1) cross(0,1) 9*[ 1:50 ar(0,1) ]", []int{0, 100}, Host},
		{"a late sender", 2, "m(0,1) 6*[ 0:100 m(0,1) ]", []int{100, 0}, Host},
		{"a late receiver", 2, "m(0,1) 6*[ 1~100 m(0,1) ]", []int{0, 100}, GPU},
		{"a pipeline whose third stage works longer", 4,
			"m(0,1) m(1,2) m(2,3) 20*[ 0:9 m(0,1) 1:9 m(1,2) 2:900 m(2,3) 3:9 ]", []int{0, 0, 99, 0}, Host},
		{"who sends into a buffer does not wait", 2, "b(0,1) 6*[ 1:100 b(0,1) ]", []int{0, 0}, Host},
		{"messages pass on what a collective made wait", 4, "ar(0,1) m(1,2) m(2,3) 6*[ 0:9000 ar(0,1) m(1,2) m(2,3) ]",
			[]int{100, 0, 0, 0}, Host},
		{"a Reduce that a member of its chain holds up", 4, "ar(0,1,2,3) 5*[ 1:100 rd3(0,1,2,3) ar(0,1,2,3) ]",
			[]int{0, 100, 0, 0}, Host},
	} {
		r := newJob(c.ranks).play(c.play).engine.Result()
		got := shares(r)
		testkit.Check(t, slices.Equal(got, c.want), "%s: shares %v, want %v: %+v", c.name, got, c.want, r)
		for i, want := range c.want {
			if costs := r.Ranks[i].Costs; want > 0 && costs[c.kind] < 0.99*r.Ranks[i].Cost() {
				t.Errorf("%s: rank %d has costs %v", c.name, i, costs)
			}
		}
	}
}
