// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/overtime"
	"github.com/nccl-otf2/nccl-otf2/internal/report"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

// lateJob is a job of four ranks on two hosts with a long start-up, in which rank 2 comes late to the 3rd and the 6th
// of eight AllReduces.
func lateJob(t *testing.T) *otf2.Archive {
	t.Helper()
	return jobtest.Open(t, jobtest.Make(t, 4, 2, func(rank int, p *shardtest.Process) {
		world, at := p.World(), uint64(t0)
		for i := range uint64(9) {
			late, length := uint64(0), uint64(100*us)
			if rank == 2 && (i == 3 || i == 6) {
				late = 5000 * us
			}
			if i == 0 { // start-up
				length = 900_000 * us
			}
			end := at + 5000*us + length
			p.AllReduce(world, at+late, end, 1<<20)
			at = end + 1000*us
		}
	}))
}

// The page has what the report says, and each place is one of the page's time and ranks.
func TestAnswer(t *testing.T) {
	a := lateJob(t)
	d := testkit.Value(Read(a, nil))(t)
	defer d.Close()
	p := testkit.Value(d.write(new(collector), nil))(t)
	h := d.head(p, new(Options))
	got := h.Answer
	path, s := d.report.CriticalPath, d.report.WaitStates
	testkit.Require(t, path != nil && path.Steady != 0 && got.To-got.From == path.Steady,
		"the page begins at %d to %d; the path: %+v", got.From, got.To, path)
	testkit.Check(t, got.From >= 900_000*us && got.To <= d.duration,
		"the steady part is %d to %d of %d", got.From, got.To, d.duration)
	said := report.LinesBelowVerdict(d.report)
	testkit.Require(t, len(got.Lines) == len(said), "%d lines, the report has %d", len(got.Lines), len(said))
	var text strings.Builder
	testkit.Must(t, report.WriteStyled(d.report, &text, report.Style{}))
	for i, l := range got.Lines {
		testkit.Check(t, l.Line == said[i] && strings.Contains(text.String(), l.Text),
			"%q is not what the report says", l.Text)
		testkit.Check(t, l.To <= 0 || l.From < l.To && l.To <= d.duration, "%q is of %d to %d", l.Name, l.From, l.To)
	}
	most := overtime.Worst(s.OverTime)
	waited, found := uint64(0), false
	for i, w := range got.Windows {
		waited += w.Waited
		if w.From == d.since(most.Begin) {
			found = w.Rank == 2 && w.Share == most.Share
		}
		before := got.Windows[max(i, 1)-1]
		testkit.Check(t, i == 0 || w.From == before.To, "window %d begins at %d, the one before ends at %d", i, w.From,
			before.To)
	}
	testkit.Check(t, waited == s.Total.Waited && found,
		"%d ns in the windows, want %d; %+v", waited, s.Total.Waited, got.Windows)
	testkit.Require(t, len(got.Worst) == len(s.Worst) && len(got.Worst) >= 2,
		"%d operations cost the most, want %d", len(got.Worst), len(s.Worst))
	for _, w := range got.Worst[:2] {
		testkit.Check(t, w.Rank == 2 && w.At-w.Since >= 4900*us && w.Caused >= 3*4900*us && w.Comm == "world", "%+v", w)
	}
}
