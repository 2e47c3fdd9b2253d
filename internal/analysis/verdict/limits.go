// SPDX-License-Identifier: Apache-2.0

package verdict

import "github.com/nccl-otf2/nccl-otf2/internal/analysis/causes"

// Limits for naming a rank, with causes.LeastTimes. docs/causes.md shows them with their values (Limits).
const (
	// leastShare is the part of all waiting that a rank must have caused.
	leastShare = 0.08
	// timesUsual is the least ratio of the waiting it caused to the median over the other ranks.
	timesUsual = 3
	// timesNext is the least ratio of the waiting it caused, or of how much longer it worked, to that of any rank that
	// is not named.
	timesNext = 1.5
	// timesNamed is the ratio of the waiting that it caused to that of another named rank from which on it must also
	// have worked longer than that one.
	timesNamed = 3
	// leastTime is the part of the run by which the run must have been shorter without its lateness.
	leastTime = 0.005
	// leastConfidence is 1 minus the probability, over all ranks together, that a rank is named by chance.
	leastConfidence = 0.99
	// enoughConfidence is used instead for a rank that caused most of the waiting (mostShare) and cost much of the run
	// (muchTime).
	enoughConfidence = 0.95
	// mostShare is the part of all waiting that counts as most of it.
	mostShare = 0.5
	// muchTime is the part of the run that counts as much.
	muchTime = 0.01
	// leastWork is the part of a cost that the rank's own work must explain. Between its operations it must have
	// worked longer than the median of the others; each of them waited for that no longer than this difference, in
	// each operation in which it waited at once. If a rank did not work longer, the order of the operations itself
	// makes ranks wait, as in a pipeline of equal stages.
	leastWork = 0.25
	// hostPart is the part of the waiting explained by longer work that must come from the rank's host for the host,
	// and not the GPU, to be called late. Of three operations that a late host delays before the others have waited
	// for it, two begin late because the GPU is late.
	hostPart = 0.25
	// mainPart is the part of the median cost below which an occasion is ignored. The median occasion is the one at
	// which half of all cost is reached.
	mainPart = 0.25
)

// Limit is a limit as shown in docs/causes.md.
type Limit struct {
	Name    string
	Value   float64
	Meaning string
}

// Limits are all of them.
var Limits = []Limit{
	{"LeastShare", leastShare, "part of all waiting that it caused"},
	{"TimesUsual", timesUsual, "times the median of what the other ranks caused"},
	{"TimesNext", timesNext, "times what any rank that is not named caused, or worked longer"},
	{"TimesNamed", timesNamed, "times what another named rank caused, from where on it must have worked longer, too"},
	{"LeastTime", leastTime, "part of the run by which operations would have begun earlier"},
	{"LeastTimes", causes.LeastTimes, "occasions on which it was late"},
	{"LeastConfidence", leastConfidence, "one less the probability of being named by chance"},
	{"EnoughConfidence", enoughConfidence, "the same, if the next two are reached"},
	{"MostShare", mostShare, "part of all waiting for which that is enough"},
	{"MuchTime", muchTime, "part of the run for which that is enough"},
	{"LeastWork", leastWork, "part of what it caused for which it worked longer than the median of the others"},
	{"HostPart", hostPart,
		"part of what it caused for which its host worked longer, for its host to be the cause"},
	{"MainPart", mainPart, "part of the median cost of an occasion, for the occasion to be evidence"},
}
