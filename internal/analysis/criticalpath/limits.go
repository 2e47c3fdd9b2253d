// SPDX-License-Identifier: Apache-2.0

package criticalpath

import "github.com/nccl-otf2/nccl-otf2/internal/analysis/verdict"

// Limits are the limits for naming a set, beside those for naming a rank (verdict.Limits).
var Limits = []verdict.Limit{
	{Name: "LeastSetGain", Value: leastSetGain,
		Meaning: "part of the steady run by which that is shorter if a set is as fast as others"},
	{Name: "LeastSetWork", Value: leastSetWork,
		Meaning: "part of that by which each rank of the set worked longer than the median of the others"},
	{Name: "LeastSetRank", Value: leastSetRank,
		Meaning: "part of that, of one rank alone, with which it is no set"},
	{Name: "TimesNextSet", Value: timesNextSet,
		Meaning: "times what sets of other ranks would gain"},
}
