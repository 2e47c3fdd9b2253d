// SPDX-License-Identifier: Apache-2.0

package verdict

// The verdict in words.

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/units"
)

// writeText writes the verdict as one sentence; "" if shared GPUs explain the waiting and withSharing writes the text.
func (ev *Evidence) writeText(v *Verdict) string {
	if len(v.Culprits) > 0 {
		return ev.culpritText(v)
	}
	c := ev.Causes
	worst, by, waited := 0, 0.0, float64(v.Waited)
	for i := range c.Ranks {
		if cost := c.Ranks[i].Cost(); cost > by {
			worst, by = i, cost
		}
	}
	on, longer := ev.longest()
	switch {
	case ev.Hole != "":
		return notKnown + ev.Hole + "."
	case v.Waited == 0 && ev.Enqueued > 0 && ev.Compared == 0:
		return notKnown + "only the times of enqueueing are known. " + ev.untimedRemark()
	case float64(ev.OnlyLaunched) > MuchUnknown*float64(ev.Launched):
		return fmt.Sprintf(notKnown+"only the times of enqueueing are known of %d of %d calls. ", ev.OnlyLaunched,
			ev.Launched) + ev.untimedRemark()
	case v.Waited == 0 && v.StartUp > 0:
		return fmt.Sprintf(
			"Nobody stands out: ranks waited %s at the first operations of communicators, and not later.",
			units.Time(c.StartUp))
	case v.Waited == 0 && (ev.Uncompared || ev.Compared == 0):
		return notKnown + "no operation has comparable times on two ranks." + ev.missingRemark()
	case v.Waited == 0:
		return "Nobody stands out: nobody waited." + ev.missingRemark()
	case !ev.Transfers && longer >= mostShare*c.Waited && longer >= muchTime*float64(ev.Duration):
		return fmt.Sprintf(notKnown+"%.0f %% of %s, was caused by operations that took longer on %s than on others, "+
			"because of a slow link to it or for a reason of its own, and how long transfers took was not recorded. "+
			"Record with NCCL_OTF2_EVENTS=net.", 100*longer/c.Waited, ev.waitedText(c.Waited), ev.Ranks[on].Name)
	case v.sharing() >= mostShare:
		return ""
	case ev.Unrecorded != "":
		return notKnown + ev.Unrecorded + ", for which they may have waited."
	case by == 0 && c.Unknown < max(mostShare*c.Waited, muchTime*float64(ev.Duration)):
		return fmt.Sprintf("Nobody stands out: ranks waited %s in all, and none was late by itself.",
			units.Time(waited))
	}
	if once := ev.describeOneDelay(worst, waited); once != "" {
		return once
	}
	if v.Unknown >= mostShare {
		return fmt.Sprintf(notKnown+"for %.0f %% of %s, no cause is known%s.", 100*v.Unknown,
			ev.waitedText(float64(v.Waited)), ev.whyUnknown())
	}
	if by < waited/100 {
		return fmt.Sprintf(
			"Nobody stands out: ranks waited %s in all, and none caused as much as 1 %% of it by itself.",
			units.Time(waited))
	}
	return fmt.Sprintf(
		"Nobody stands out: ranks waited %s in all, and the one that caused the most, %s, caused %.0f %% of it.",
		units.Time(waited), ev.Ranks[worst].Name, 100*by/waited) + ev.unknownRemark(v)
}

// MuchUnknown is the share of the waiting from which on answers say that no cause is known for it.
const MuchUnknown = 0.2

// unknownRemark states how much of the waiting has no known cause, and mostly why; "" if that is little.
func (ev *Evidence) unknownRemark(v *Verdict) string {
	if v.Unknown < MuchUnknown {
		return ""
	}
	return fmt.Sprintf(" For %.0f %% of the waiting, no cause is known%s.", 100*v.Unknown, ev.whyUnknown())
}

// whyUnknown is a clause on what makes most of the unknown waiting unknown, "" if neither reason does.
func (ev *Evidence) whyUnknown() string {
	small, longer := ev.Causes.Small, ev.untraced()
	switch most := mostShare * (ev.Causes.Unknown + longer); {
	case small >= most:
		return ", mostly because ranks came less far apart than their times are uncertain"
	case longer >= most && !ev.Transfers:
		return ", mostly because operations took longer on some ranks, and their transfers were not recorded " +
			"(NCCL_OTF2_EVENTS=net)"
	case longer >= most:
		return ", mostly because operations took longer on some ranks for no reason that their transfers show"
	}
	return ""
}

// notKnown begins the sentence if the recording does not show who made the others wait.
const notKnown = "Not known who made the others wait: "

// untimedRemark states what the calls of operations without times show, why these have none, and what is missing.
func (ev *Evidence) untimedRemark() (text string) {
	if l := ev.LastCaller; l != nil {
		text = fmt.Sprintf("%s called its part last, by %s on average, %d of %d times: if hosts wait for their GPUs "+
			"before they go on, the others waited for it. ", ev.Ranks[l.Rank].Name, units.Time(l.Behind), l.Times, l.Of)
	}
	return text + toSentence(ev.Untimed) + ev.missingRemark()
}

// missingRemark states how many events are missing, for verdicts that name nobody; "" if none are.
func (ev *Evidence) missingRemark() string {
	if ev.Lost == 0 {
		return ""
	}
	return fmt.Sprintf(" It rests on what was recorded: %s missing.",
		units.Count(int(min(ev.Lost, math.MaxInt32)), "event is", "events are"))
}

// culpritText names the culprits, the first one with its evidence.
func (ev *Evidence) culpritText(v *Verdict) string {
	first := &v.Culprits[0]
	if first.Stops() {
		return toSentence(first.Evidence) + " " + cmp.Or(first.Margin, Sureness(first.Confidence))
	}
	name := func(c *Culprit) string {
		p := ev.Ranks[c.Rank]
		if p.Host == "" {
			return p.Name
		}
		return p.Name + " on " + p.Host
	}
	text := fmt.Sprintf("%s made the others wait: %.0f %% of %s%s. %s", name(first), 100*first.Share,
		ev.waitedText(float64(v.Waited)), first.limited(), first.Evidence)
	text += " " + Sureness(first.Confidence)
	var more []string
	for i := range v.Culprits[1:] {
		c := &v.Culprits[i+1]
		more = append(more, fmt.Sprintf("%s (%.0f %%)", name(c), 100*c.Share))
	}
	switch {
	case len(more) == 1:
		second := &v.Culprits[1]
		text += fmt.Sprintf(" So did %s. %s %s", more[0], second.Evidence, Sureness(second.Confidence))
	case len(more) > mostNamed:
		text += fmt.Sprintf(" So did %s and %d others.", strings.Join(more[:mostNamed], ", "), len(more)-mostNamed)
	case len(more) > 0:
		text += fmt.Sprintf(" So did %s.", strings.Join(more, ", "))
	}
	return text + ev.unknownRemark(v)
}

// limited states how much waiting a culprit caused if its longer work explains only a part of that; otherwise it is "".
func (c *Culprit) limited() string {
	if !c.Limited() {
		return ""
	}
	return fmt.Sprintf("; it caused %.0f %%, and its longer work explains %.0f %%", 100*c.Caused, 100*c.Share)
}

// Limited reports whether a culprit's longer work explains visibly less than all that goes back to it.
func (c *Culprit) Limited() bool { return math.Round(100*c.Share) < math.Round(100*c.Caused) }

// waitedText states how long all ranks waited together.
func (ev *Evidence) waitedText(ns float64) string { return waitedText(ns, len(ev.Ranks)) }

func waitedText(ns float64, ranks int) string {
	return fmt.Sprintf("%s waited, summed over %d ranks", units.Time(ns), ranks)
}

// toSentence turns a clause into a sentence.
func toSentence(clause string) string {
	n := min(1, len(clause))
	return strings.ToUpper(clause[:n]) + clause[n:] + "."
}

// Sureness states a confidence as a sentence. It never states 100 %.
func Sureness(confidence float64) string {
	if confidence > 0.999 {
		return "Confidence: over 99.9 %."
	}
	return fmt.Sprintf("Confidence: %.1f %%.", math.Floor(1000*confidence)/10)
}

// mostNamed is the number of further culprits that the sentence names.
const mostNamed = 3
