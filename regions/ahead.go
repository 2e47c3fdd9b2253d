// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"fmt"

	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions/gpuclock"
)

// AheadHold (ns) is how long a complete operation is kept before it is written ahead of time, see [Model.Ahead]:
// without any later report the GPU's clock is known too badly.
const AheadHold = 1 << 28 // 0.27 s

// ahead writes the operations of communicator ranks a second time, for somebody who watches the job and cannot wait for
// the GPU's clock to be known well: each as soon as it is complete, with times as far as they are known by then. What
// is written for good, and all that is counted, stays as it is. On a row it is the same operations in the same order,
// with the same numbers.
type ahead struct {
	*planWriter // on a board of its own, whose counts nobody reads
	open        func(number uint32) (EventWriter, error)
	watch       uint32 // which one it is, from 1
	rows        map[uint32]*location
	next        map[sequenceOf]uint64
}

// sequenceOf is a sequence of a communicator rank.
type sequenceOf struct {
	comm int
	key  string
}

// Ahead has the operations of communicator ranks written ahead of time from now on, to the rows that open gives; nil:
// no longer. Times there are provisional: those in the event files, up to two seconds later, may differ by what the
// GPU's clock is known better. An error of open, or of what it gave, ends it: see AheadError.
func (m *Model) Ahead(open func(number uint32) (EventWriter, error)) {
	pw := m.ops.writer
	if open == nil {
		pw.ahead = nil
		return
	}
	m.watches++
	own := &board{ledger: newLedger(m.setup), defs: m.defs, attributes: &otf2.AttributeList{}}
	a := &ahead{open: open, watch: m.watches, rows: make(map[uint32]*location), next: make(map[sequenceOf]uint64)}
	a.planWriter = newPlanWriter(own, m.ranks, m.cuda, pw.timing, nil)
	a.number = a.ordinal
	pw.ahead = a
}

// AheadError is why nothing is written ahead of time any more although it was asked for.
func (m *Model) AheadError() error {
	if a := m.ops.writer.ahead; a != nil {
		return a.err
	}
	return nil
}

// ordinal is what the operation's number will be.
func (a *ahead) ordinal(c *commRank, op *operation) uint64 {
	of := sequenceOf{c.index, op.sequenceKey()}
	n := a.coming(c, of)
	a.next[of] = n + 1
	return n
}

// coming is the number of the next operation of a sequence.
func (a *ahead) coming(c *commRank, of sequenceOf) uint64 {
	n := a.next[of]
	if s := c.sequences[of.key]; s != nil {
		n = max(n, s.Count)
	}
	return n
}

// numbered reports whether the numbers of a plan's operations are known: none is missing before them that NCCL has
// counted.
func (a *ahead) numbered(c *commRank, p *plan) bool {
	for i, op := range p.ops {
		of := sequenceOf{c.index, op.sequenceKey()}
		s := c.sequences[of.key]
		if s == nil || s.reported == 0 || !op.task || op.p2p || op.copied {
			continue
		}
		before := a.coming(c, of) - s.Count
		for _, earlier := range p.ops[:i] {
			if !earlier.p2p && earlier.name == op.name {
				before++
			}
		}
		if op.seq > s.reported+before {
			return false
		}
	}
	return true
}

// advance writes what is complete at a time, and has been for a moment.
func (a *ahead) advance(t uint64) {
	for _, c := range a.ranks.live {
		if c.loc == nil || c.final || !c.announced {
			continue // its row begins with what is written for good
		}
		for _, p := range c.queue {
			if p.ahead == a.watch || p.captureOnly || len(p.ops) == 0 {
				continue
			}
			if p.measurement != 0 || p.gone != nil || p.completeAt == 0 || t < p.completeAt+a.opts.aheadHold ||
				!a.numbered(c, p) {
				break
			}
			when, source, ok := a.times(c, p)
			if !ok {
				break
			}
			a.write(c, p, when, source, "")
		}
	}
}

// times are those of a plan as far as they are known; false where later reports decide.
func (a *ahead) times(c *commRank, p *plan) (when gpuclock.Interval, source string, ok bool) {
	switch {
	case a.cuda.Active() || p.imported() != nil:
		return when, "", false
	case len(p.stamps.Kernels) > 0:
		when, ok = c.stamps.Ahead(&p.stamps, a.timing.bounds(p))
		return when, TimingGPU, ok && !p.vague(when)
	}
	if when, ok = a.timing.networkInterval(c, p, 0); ok {
		return when, TimingNetwork, true
	}
	when, _ = a.timing.enqueueInterval(c, p, p.stop)
	return when, TimingEnqueue, true
}

// take takes a plan that is being written for good, with its times, if it has not been written ahead.
func (a *ahead) take(c *commRank, p *plan, when gpuclock.Interval, source, gpuSource string) {
	if p.ahead != a.watch && a.numbered(c, p) {
		a.write(c, p, when, source, gpuSource)
	}
}

func (a *ahead) write(c *commRank, p *plan, when gpuclock.Interval, source, gpuSource string) {
	loc := a.row(c.loc)
	if loc == nil {
		return
	}
	p.ahead = a.watch
	enter := loc.at(when.Begin)
	leave := max(enter, otf2.Timestamp(when.End))
	region, _ := a.planRegion(c, p)
	a.fail(loc.w.Enter(enter, a.planAttributes(c, p, when, source, gpuSource), region))
	ends := a.beginOperations(c, loc, p, enter)
	for i := range ends {
		a.fail(ends[i].write(loc.w, leave, otf2.CommRef(c.index), &ends[i]))
	}
	a.fail(loc.w.Leave(leave, nil, region))
}

// row is what is written ahead of a row; nil after an error.
func (a *ahead) row(of *location) *location {
	if a.err != nil || of.over {
		return nil
	}
	loc := a.rows[of.Number]
	if loc == nil {
		w, err := a.open(of.Number)
		if err != nil {
			a.err = fmt.Errorf("operations of location %q ahead of time: %w", of.Name, err)
			return nil
		}
		loc = &location{Location: of.Location, w: w}
		a.rows[of.Number] = loc
	}
	return loc
}
