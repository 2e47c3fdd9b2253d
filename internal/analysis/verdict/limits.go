// SPDX-License-Identifier: Apache-2.0

package verdict

// What it takes to be named. docs/causes.md shows these with their values (Limits).
const (
	// leastShare is the part of all waiting that must go back to a rank.
	leastShare = 0.08
	// timesUsual is how many times that must be of what goes back to the middle one of the other ranks.
	timesUsual = 3
	// timesNext is how many times as much as any rank that is not named it must have caused, or have worked longer.
	timesNext = 1.5
	// leastTime is the part of the run by which it would have been shorter.
	leastTime = 0.005
	// leastTimes is on how many occasions it must have been late.
	leastTimes = 5
	// leastConfidence is one less the probability that a rank is named by chance, of all ranks together.
	leastConfidence = 0.99
	// enoughConfidence is the same of one that made most of the waiting (mostShare) and cost much of the run
	// (muchTime).
	enoughConfidence = 0.95
	// mostShare is the part of all waiting that is most of it.
	mostShare = 0.5
	// muchTime is the part of the run that is much.
	muchTime = 0.01
	// leastWork is the part of a cost that the rank's own work must account for. If it was longer between its
	// operations than the middle one of the others, each of them waited for that no longer than so long, in each
	// operation in which it waited at once. Where it was not, the order of the operations itself makes ranks wait, as
	// in a pipeline of equal stages.
	leastWork = 0.25
	// hostPart is the part of what goes back to a rank, as far as it worked longer, for which it must be its host that
	// did, for the host to be late and not the GPU. Of three operations that a late host makes late before the others
	// have waited for it, two begin late as the GPU is late.
	hostPart = 0.25
	// mainPart is the part of the middle cost, below which a time that a rank was late is not looked at. The middle one
	// is that at which half of all cost is reached.
	mainPart = 0.25
)

// Limit is a limit as docs/causes.md shows it.
type Limit struct {
	Name    string
	Value   float64
	Meaning string
}

// limits are all of them.
var limits = []Limit{
	{"LeastShare", leastShare, "part of all waiting that goes back to it"},
	{"TimesUsual", timesUsual, "times the median of what goes back to the other ranks"},
	{"TimesNext", timesNext, "times what any rank that is not named caused, or worked longer"},
	{"LeastTime", leastTime, "part of the run by which operations would have begun earlier"},
	{"LeastTimes", leastTimes, "occasions on which it was late"},
	{"LeastConfidence", leastConfidence, "one less the probability of being named by chance"},
	{"EnoughConfidence", enoughConfidence, "the same, if the next two are reached"},
	{"MostShare", mostShare, "part of all waiting for which that is enough"},
	{"MuchTime", muchTime, "part of the run for which that is enough"},
	{"LeastWork", leastWork, "part of what goes back to it for which it worked longer than the median of the others"},
	{"HostPart", hostPart,
		"part of what goes back to it for which its host worked longer, for its host to be the cause"},
	{"MainPart", mainPart, "part of the median cost of an occasion, for the occasion to be evidence"},
}
