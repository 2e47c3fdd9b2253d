// SPDX-License-Identifier: Apache-2.0

package export

import (
	"cmp"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/verdict"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/waits"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Names of the tracks that show what the report says.
const (
	answersName = "What made the ranks wait"
	worstName   = "operations that cost the most"
	shareName   = "waiting, of the ranks' time"
)

const answerCategory = "answer"

// answers draws waits beside the rows of those that waited, and what the report says of them: what made the ranks wait,
// the operations that cost the most, and how much of the time was waiting.
func (p *perfettoWriter) answers() {
	report, err := operations.Observe(p.archive, &operations.Observer{Selection: p.opts.Selection, Waited: p.wait})
	if err != nil {
		p.problems([]string{err.Error()})
		return
	}
	p.problems(report.Problems)
	root := p.root(answersName)
	p.verdict(report.Verdict, &lanes{parent: root, name: "causes", rank: 0}, report.Summary.Begin)
	p.worst(report.WaitStates, &lanes{parent: root, name: worstName, rank: 1 << 10})
	p.overTime(report.WaitStates, root)
}

func (p *perfettoWriter) wait(w *waits.Wait) {
	begin := p.at(w.Begin)
	end := begin + p.rows.clock.nanoseconds(int64(w.Waited))
	track := p.track(p.beside(p.rows.of[w.Place.Location], waitingName), begin, end)
	p.out.event(typeBegin, track)
	p.out.named("waits for "+p.rows.world[w.For].Name, waitCategory)
	p.waitFigures(w)
	p.slice(track, begin, end)
	p.count("waits")
}

// verdict draws who made the others wait, each where it cost the most.
func (p *perfettoWriter) verdict(v *verdict.Verdict, to *lanes, begin otf2.Timestamp) {
	if v == nil {
		return
	}
	if len(v.Culprits) == 0 {
		p.culprit(to, "nobody stands out", v.Text, nil, begin, begin)
	}
	for i := range v.Culprits {
		c := &v.Culprits[i]
		name := units.RankName(c.Rank) + ": " + string(c.Kind)
		if c.Rank >= 0 && c.Rank < len(p.rows.world) {
			name = p.rows.world[c.Rank].Name + ": " + string(c.Kind)
		}
		if c.Worst == nil {
			p.culprit(to, name, v.Text, c, begin, begin)
			continue
		}
		p.culprit(to, name, v.Text, c, c.Worst.At-min(otf2.Timestamp(c.Worst.Late), c.Worst.At), c.Worst.At)
	}
}

func (p *perfettoWriter) culprit(to *lanes, name, text string, c *verdict.Culprit, from, until otf2.Timestamp) {
	begin, end := p.at(from), p.at(until)
	track := p.track(to, begin, end)
	p.out.event(typeBegin, track)
	p.out.named(name, answerCategory)
	p.out.once("verdict", text)
	if c != nil {
		p.out.once("evidence", c.Evidence)
		p.out.once("pattern", c.Pattern)
		p.out.number("share", c.Share)
		p.out.number("time_share", c.TimeShare)
		p.out.number("confidence", c.Confidence)
		if c.Worst != nil {
			p.out.text("operation", c.Worst.Function)
		}
	}
	p.slice(track, begin, end)
	p.count("answers")
}

// worst draws the operations that cost the most, from their first begin to their last.
func (p *perfettoWriter) worst(s *waits.States, to *lanes) {
	all := slices.Clone(s.Worst)
	slices.SortStableFunc(all, func(a, b waits.Instance) int { return cmp.Compare(a.Since, b.Since) })
	for i := range all {
		w := &all[i]
		begin, end := p.at(w.Since), p.at(w.At)
		track := p.track(to, begin, end)
		p.out.event(typeBegin, track)
		p.out.named(w.Operation+" waits for "+w.Rank, answerCategory)
		p.out.text("communicator", w.Communicator)
		p.out.unsigned("ordinal", w.Ordinal)
		p.out.unsigned("caused_ns", w.Caused)
		p.out.unsigned("skew_ns", w.Skew)
		if w.Phase != "" {
			p.out.once("phase", w.Phase)
		}
		p.slice(track, begin, end)
		p.count("answers")
	}
}

// overTime draws which part of the ranks' time was waiting.
func (p *perfettoWriter) overTime(s *waits.States, root uint64) {
	if len(s.OverTime) == 0 {
		return
	}
	unit := "%"
	track := p.newTrack(root, shareName, "", countersPlace, &unit)
	for i := range s.OverTime {
		w := &s.OverTime[i]
		p.counter(track, p.at(w.Begin), 100*w.Share)
	}
	p.counter(track, p.at(s.OverTime[len(s.OverTime)-1].End), 0)
}
