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

// Names of the tracks that show the results of the report.
const (
	answersName = "What made the ranks wait"
	worstName   = "operations that cost the most"
	shareName   = "waiting, of the ranks' time"
)

const answerCategory = "answer"

// writeAnswers writes waits below the rows of the waiting ranks, and the results of the report: the culprits, the most
// expensive operations, and the part of the time that was waiting.
func (p *perfettoWriter) writeAnswers() {
	report, err := operations.Observe(p.archive, &operations.Observer{Selection: p.opts.Selection, Waited: p.writeWait})
	if err != nil {
		p.addProblems([]string{err.Error()})
		return
	}
	p.addProblems(report.Problems)
	root := p.newRootTrack(answersName)
	p.writeVerdict(report.Verdict, &lanes{parent: root, name: "causes", rank: 0}, report.Summary.Begin)
	p.writeWorst(report.WaitStates, &lanes{parent: root, name: worstName, rank: 1 << 10})
	p.writeOverTime(report.WaitStates, root)
}

func (p *perfettoWriter) writeWait(w *waits.Wait) {
	begin := p.sinceBegin(w.Begin)
	end := begin + p.rows.clock.nanoseconds(int64(w.Waited))
	track := p.findTrack(p.tracksBelow(p.rows.of[w.Place.Location], waitingName), begin, end)
	p.out.beginEvent(typeBegin, track)
	p.out.setName("waits for "+p.rows.world[w.For].Name, waitCategory)
	p.annotateWait(w)
	p.writeSlice(track, begin, end)
	p.countRecord("waits")
}

// writeVerdict writes each culprit at the operation where it cost the most, and a set at the begin of the run.
func (p *perfettoWriter) writeVerdict(v *verdict.Verdict, to *lanes, begin otf2.Timestamp) {
	if v == nil {
		return
	}
	switch {
	case v.Set != nil:
		p.writeCulprit(to, v.Set.Name+": together", v.Text, nil, begin, begin)
	case !v.StandsOut:
		p.writeCulprit(to, "nobody stands out", v.Text, nil, begin, begin)
	}
	for i := range v.Culprits {
		c := &v.Culprits[i]
		name := units.RankName(c.Rank) + ": " + string(c.Kind)
		if c.Rank >= 0 && c.Rank < len(p.rows.world) {
			name = p.rows.world[c.Rank].Name + ": " + string(c.Kind)
		}
		if c.Worst == nil {
			p.writeCulprit(to, name, v.Text, c, begin, begin)
			continue
		}
		p.writeCulprit(to, name, v.Text, c, c.Worst.At-min(otf2.Timestamp(c.Worst.Late), c.Worst.At), c.Worst.At)
	}
}

func (p *perfettoWriter) writeCulprit(to *lanes, name, text string, c *verdict.Culprit, from, until otf2.Timestamp) {
	begin, end := p.sinceBegin(from), p.sinceBegin(until)
	track := p.findTrack(to, begin, end)
	p.out.beginEvent(typeBegin, track)
	p.out.setName(name, answerCategory)
	p.out.inlineText("verdict", text)
	if c != nil {
		p.out.inlineText("evidence", c.Evidence)
		p.out.inlineText("pattern", c.Pattern)
		p.out.number("share", c.Share)
		p.out.number("caused", c.Caused)
		p.out.number("time_share", c.TimeShare)
		p.out.number("confidence", c.Confidence)
		if c.Worst != nil {
			p.out.text("operation", c.Worst.Function)
		}
	}
	p.writeSlice(track, begin, end)
	p.countRecord("answers")
}

// writeWorst writes the most expensive operations, from the first begin to the last.
func (p *perfettoWriter) writeWorst(s *waits.States, to *lanes) {
	all := slices.Clone(s.Worst)
	slices.SortStableFunc(all, func(a, b waits.Instance) int { return cmp.Compare(a.Since, b.Since) })
	for i := range all {
		w := &all[i]
		begin, end := p.sinceBegin(w.Since), p.sinceBegin(w.At)
		track := p.findTrack(to, begin, end)
		p.out.beginEvent(typeBegin, track)
		p.out.setName(w.Operation+" waits for "+w.Rank, answerCategory)
		p.out.text("communicator", w.Communicator)
		p.out.unsigned("ordinal", w.Ordinal)
		p.out.unsigned("caused_ns", w.Caused)
		p.out.unsigned("skew_ns", w.Skew)
		if w.Phase != "" {
			p.out.inlineText("phase", w.Phase)
		}
		p.writeSlice(track, begin, end)
		p.countRecord("answers")
	}
}

// writeOverTime writes which part of the ranks' time was waiting.
func (p *perfettoWriter) writeOverTime(s *waits.States, root uint64) {
	if len(s.OverTime) == 0 {
		return
	}
	unit := "%"
	track := p.newTrack(root, shareName, "", countersPlace, &unit)
	for i := range s.OverTime {
		w := &s.OverTime[i]
		p.writeCounter(track, p.sinceBegin(w.Begin), 100*w.Share)
	}
	p.writeCounter(track, p.sinceBegin(s.OverTime[len(s.OverTime)-1].End), 0)
}
