// SPDX-License-Identifier: Apache-2.0

package export

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/membership"
	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// Formats that are played again have what each rank called, in order, with the work in between. They contain only
// operations that all members have ended, because the members that have would wait for the others forever.

// playStep is what a rank called at one time: an operation, or those of a group.
type playStep struct {
	called     otf2.Timestamp // when the application made the first of its calls; 0: unknown
	begin, end otf2.Timestamp
	number     int  // among the rank's steps, in the order in which their first operations ended
	before     int  // index of the last step that had ended when this one began; −1: none
	startUp    bool // NCCL made connections before it began
	operations []stepOperation
}

// stepOperation is a rank's part in an operation.
type stepOperation struct {
	comm               *comm
	function, datatype string // datatype "": unknown
	rank, root, peer   int    // in comm; −1: none
	count, size, share uint64 // see operations.Part; count 0: unknown
	begin, end         otf2.Timestamp
	stream             uint64 // handle of CUDA's stream; 0: unknown
}

// input returns the bytes that the rank puts into the operation, or the length of a message.
func (o *stepOperation) input() uint64 {
	if o.function == "AllGather" || o.function == "Gather" {
		return o.share
	}
	return o.size
}

// stepReader finds the steps of all ranks, process by process. Memory holds the operations of one process.
type stepReader struct {
	*exporter
	comms   map[otf2.CommRef]*membership.Communicator
	numbers map[otf2.CommRef]int          // of communicators with operations in the result, from 1
	ended   map[stepSequence]stretch      // what all sides recorded
	between bool                          // the format has messages between different ranks only
	calls   analysis.CallTable[stepCall]  // of the current process
	steps   map[int]map[stepKey]*playStep // of the current process, by rank of the world
}

// stepSequence identifies the operations that an ordinal counts: those of a function, or the messages between two
// ranks.
type stepSequence struct {
	comm otf2.CommRef
	name string
}

// stepSide is one of those that recorded a sequence: a member, or an end of messages.
type stepSide struct {
	location otf2.LocationRef
	function string
}

// stretch is the part of a sequence that a side recorded.
type stretch struct{ first, last, count uint64 }

// stepCall is a call of NCCL's API.
type stepCall struct {
	at            otf2.Timestamp
	group, stream uint64
}

// stepKey identifies a step of a rank: by the group of its calls, otherwise by its launch.
type stepKey struct{ group, location, launch uint64 }

// newStepReader reads which operations all members have ended. The error says that there are none.
func newStepReader(e *exporter) (*stepReader, error) {
	r := &stepReader{exporter: e, comms: membership.Communicators(e.archive.Defs), numbers: make(map[otf2.CommRef]int),
		ended: make(map[stepSequence]stretch)}
	sequences := make(map[stepSequence]map[stepSide]*stretch)
	problems, err := operations.EachPart(e.archive, e.opts.Selection, analysis.Slice{}, func(p *operations.Part) error {
		if r.reasonWithout(p) == "" {
			side := stepSide{p.Location, p.Function}
			s := keyed.EntryMade(keyed.Map(sequences, sequenceOf(p)), side,
				func() *stretch { return &stretch{first: p.Ordinal} })
			s.first, s.last, s.count = min(s.first, p.Ordinal), max(s.last, p.Ordinal), s.count+1
		}
		return nil
	})
	e.addProblems(problems)
	if err != nil {
		return nil, err
	}
	for key, sides := range sequences {
		if all, ok := r.recordedByAll(key, sides); ok {
			r.ended[key], r.numbers[key.comm] = all, 0
		}
	}
	for i, ref := range slices.Sorted(maps.Keys(r.numbers)) {
		r.numbers[ref] = i + 1
	}
	if len(r.numbers) == 0 {
		nothing := fmt.Sprintf("%s has no operation of NCCL that all its members ended, with a size and with known "+
			"ranks: there is nothing to play", e.archive.Path())
		return nil, errors.New(strings.Join(append([]string{nothing}, e.result.Problems...), "; "))
	}
	return r, nil
}

func sequenceOf(p *operations.Part) stepSequence {
	switch p.Function {
	case "Send":
		return stepSequence{p.Comm, facts.PairName(p.Rank, p.Peer)}
	case "Recv":
		return stepSequence{p.Comm, facts.PairName(p.Peer, p.Rank)}
	}
	return stepSequence{p.Comm, p.Function}
}

// reasonWithout says why an operation cannot be played, from what one member recorded; "" if it can.
func (r *stepReader) reasonWithout(p *operations.Part) string {
	c := r.rows.comms[p.Comm]
	switch {
	case c == nil || r.comms[p.Comm].Calls || !p.Message() && regions.CollectiveNamed(p.Function) == nil:
		return "operations that are not NCCL's"
	case !p.Consistent:
		return "operations that ranks recorded differently"
	case p.Unfinished:
		return "operations that were open when the data ended"
	case p.Size == 0:
		return "operations without a size"
	case slices.Contains(c.World, -1) || p.Message() && p.Peer >= len(c.World):
		return "operations of unknown ranks"
	case r.between && p.Message() && p.Peer == p.Rank:
		return "messages of a rank to itself"
	}
	return ""
}

// recordedByAll returns the part of a sequence that all its sides recorded; false if there is none, or if some recorded
// it with gaps.
func (r *stepReader) recordedByAll(key stepSequence, sides map[stepSide]*stretch) (all stretch, ok bool) {
	expected := 2
	if regions.CollectiveNamed(key.name) != nil {
		expected = len(r.rows.comms[key.comm].World)
	}
	all.last = ^uint64(0)
	for _, s := range sides {
		if s.count != s.last-s.first+1 {
			return all, false
		}
		all.first, all.last = max(all.first, s.first), min(all.last, s.last)
	}
	return all, len(sides) == expected && all.first <= all.last
}

// eachRank passes the steps of each rank that has some to f, in the order in which they began.
func (r *stepReader) eachRank(f func(rank int, steps []*playStep) error) error {
	for _, p := range r.rows.processes {
		r.calls, r.steps = analysis.CallTable[stepCall]{}, make(map[int]map[stepKey]*playStep)
		locations := make([]otf2.LocationRef, 0, len(p.rows))
		for _, l := range p.rows {
			locations = append(locations, l.location)
		}
		parts := operations.NewPartReader(r.archive, true, r.addPart)
		parts.Selection = r.opts.Selection
		parts.Reader().Enter = r.addCall
		for ev, err := range r.archive.Events(&otf2.Selection{Locations: locations}) {
			if err != nil {
				r.addProblems([]string{err.Error()})
				continue
			}
			parts.Event(ev)
		}
		for _, rank := range slices.Sorted(maps.Keys(r.steps)) {
			steps := slices.SortedFunc(maps.Values(r.steps[rank]), func(a, b *playStep) int {
				return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.end, b.end), cmp.Compare(a.number, b.number))
			})
			findBefore(steps)
			r.countRecord("ranks")
			if err := f(rank, steps); err != nil {
				return err
			}
		}
	}
	if without := uint64(len(r.rows.world)) - r.result.Records["ranks"]; without > 0 {
		r.result.LeftOut["ranks without operations that can be played"] = without
	}
	return nil
}

// addCall takes the regions of threads that have ids, which are calls.
func (r *stepReader) addCall(region *facts.Region) {
	if row := r.rows.of[region.Location]; region.Event != 0 && row != nil && row.gpu == "" {
		r.calls.Put(analysis.CallKey{Event: region.Event}, stepCall{at: region.Begin, group: region.Parent,
			stream: r.streamIn(region.Attributes)})
	}
}

// streamIn returns the stream that attributes state, 0 if they state none.
func (r *stepReader) streamIn(attributes []otf2.AttributeValue) (stream uint64) {
	for i := range attributes {
		if ref, ok := r.rows.attributes.Resolve(attributes[i].ID); ok && ref == regions.AttrStream {
			stream = attributes[i].Bits
		}
	}
	return stream
}

func (r *stepReader) addPart(p *operations.Part) {
	why := r.reasonWithout(p)
	if why == "" {
		if all, ok := r.ended[sequenceOf(p)]; !ok || p.Ordinal < all.first || p.Ordinal > all.last {
			why = "operations that not all members ended"
		}
	}
	if why != "" {
		r.countLeftOut(why)
		return
	}
	c := r.rows.comms[p.Comm]
	o := stepOperation{comm: c, function: p.Function, datatype: p.Datatype, rank: p.Rank, root: p.Root, peer: p.Peer,
		count: p.Count, size: p.Size, share: p.Share, begin: p.Begin, end: p.End, stream: r.streamIn(p.Attributes)}
	key := stepKey{location: uint64(p.Location), launch: p.Plan}
	var call stepCall
	if !p.Graph { // replays of a graph name the call that was captured
		call = r.calls.Peek(analysis.CallKey{Event: p.Parent})
	}
	if call.group != 0 {
		key = stepKey{group: call.group}
	} else if p.Plan == 0 {
		key.launch = ^p.Enter
	}
	o.stream = cmp.Or(call.stream, o.stream)
	steps := keyed.Map(r.steps, c.World[p.Rank])
	s := keyed.EntryMade(steps, key, func() *playStep {
		return &playStep{called: call.at, begin: p.Begin, end: p.End, number: len(steps)}
	})
	s.called, s.begin, s.end = min(s.called, call.at), min(s.begin, p.Begin), max(s.end, p.End)
	s.startUp = s.startUp || p.StartUp
	s.operations = append(s.operations, o)
}

// findBefore finds for each step the last one that had ended when it began.
func findBefore(steps []*playStep) {
	ended := make([]int, 0, len(steps)) // indices of steps, by their ends
	upTo := func(t otf2.Timestamp) int {
		at, _ := slices.BinarySearchFunc(ended, t, func(i int, t otf2.Timestamp) int {
			return cmp.Or(cmp.Compare(steps[i].end, t), -1)
		})
		return at
	}
	for i, s := range steps {
		s.before = -1
		if n := upTo(s.begin); n > 0 {
			s.before = ended[n-1]
		}
		ended = slices.Insert(ended, upTo(s.end), i)
	}
}
