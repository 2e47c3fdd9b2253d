// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"fmt"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/causes"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
)

// describeOneDelay describes the one occasion that caused most of the waiting (waited, ns): it is not a habit and may
// be chance, but it is what the job waited for. It returns "" if there is no such occasion, if its lateness is too
// small a part of the run or within the uncertainty of times, or if the rank did not work longer than others.
func (ev *Evidence) describeOneDelay(rank int, waited float64) string {
	c, r := ev.Causes, ev.Causes.Ranks[rank]
	if len(r.Occurrences) == 0 {
		return ""
	}
	worst := r.Occurrences[0]
	for _, o := range r.Occurrences {
		if o.Cost > worst.Cost {
			worst = o
		}
	}
	work := newWork(c, rank, nil)
	r.Worked += r.Rarely
	if worst.Cost < mostShare*waited || worst.Late < muchTime*float64(ev.Duration) ||
		work.cost(&r) < mostShare*worst.Cost {
		return ""
	}
	kind := KindOf(worst.Kind)
	r.Occurrences, r.All = []causes.Occurrence{worst}, true
	h := habitOf(ev, &r, rank, kind)
	if h.certainty < 1 {
		return ""
	}
	return fmt.Sprintf(
		"Nobody stands out repeatedly, but %.0f %% of the %s of waiting was caused on one occasion, on which %s was "+
			"late. %s",
		100*worst.Cost/waited, units.Time(waited), ev.Ranks[rank].Name,
		strings.Replace(h.sentence, ", once, ", ", ", 1))
}
