// SPDX-License-Identifier: Apache-2.0

package verdict

// What it takes to be named. docs/causes.md shows these with their values (Limits).
const (
	// LeastShare is the part of all waiting that must go back to a rank.
	LeastShare = 0.08
	// TimesUsual is how many times that must be of what goes back to the middle one of the other ranks.
	TimesUsual = 3
	// TimesNext is how many times as much as any rank that is not named it must have caused, or have worked longer.
	TimesNext = 1.5
	// LeastTime is the part of the run by which it would have been shorter.
	LeastTime = 0.005
	// LeastTimes is on how many occasions it must have been late.
	LeastTimes = 5
	// LeastConfidence is one less the probability that a rank is named by chance, of all ranks together.
	LeastConfidence = 0.99
	// EnoughConfidence is the same of one that made most of the waiting (MostShare) and cost much of the run
	// (MuchTime).
	EnoughConfidence = 0.95
	// MostShare is the part of all waiting that is most of it.
	MostShare = 0.5
	// MuchTime is the part of the run that is much.
	MuchTime = 0.01
	// LeastWork is the part of a cost that the rank's own work must account for. If it was longer between its
	// operations than the middle one of the others, each of them waited for that no longer than so long, in each
	// operation in which it waited at once. Where it was not, the order of the operations itself makes ranks wait, as
	// in a pipeline of equal stages.
	LeastWork = 0.25
	// HostPart is the part of what goes back to a rank, as far as it worked longer, for which it must be its host that
	// did, for the host to be late and not the GPU. Of three operations that a late host makes late before the others
	// have waited for it, two begin late as the GPU is late.
	HostPart = 0.25
	// MainPart is the part of the middle cost, below which a time that a rank was late is not looked at. The middle one
	// is that at which half of all cost is reached.
	MainPart = 0.25
)

// Limit is a limit as docs/causes.md shows it.
type Limit struct {
	Name    string
	Value   float64
	Meaning string
}

// Limits are all of them.
var Limits = []Limit{
	{"LeastShare", LeastShare, "part of all waiting that goes back to it"},
	{"TimesUsual", TimesUsual, "times the median of what goes back to the other ranks"},
	{"TimesNext", TimesNext, "times what any rank that is not named caused, or worked longer"},
	{"LeastTime", LeastTime, "part of the run by which operations would have begun earlier"},
	{"LeastTimes", LeastTimes, "occasions on which it was late"},
	{"LeastConfidence", LeastConfidence, "one less the probability of being named by chance"},
	{"EnoughConfidence", EnoughConfidence, "the same, if the next two are reached"},
	{"MostShare", MostShare, "part of all waiting for which that is enough"},
	{"MuchTime", MuchTime, "part of the run for which that is enough"},
	{"LeastWork", LeastWork, "part of what goes back to it for which it worked longer than the median of the others"},
	{"HostPart", HostPart,
		"part of what goes back to it for which its host worked longer, for its host to be the cause"},
	{"MainPart", MainPart, "part of the median cost of an occasion, for the occasion to be evidence"},
}
