// SPDX-License-Identifier: Apache-2.0

package efficiency

import (
	"fmt"

	"github.com/nccl-otf2/nccl-otf2/internal/units"
)

// Result is the efficiencies of a run.
type Result struct {
	Ranks *Factors       `json:"ranks"` // null: not known, see NotKnown
	GPUs  *DeviceFactors `json:"gpus"`  // null: the application's kernels were not recorded
	// NotKnown says what is not known of the above, why, and what to record; "" if everything is.
	NotKnown string `json:"not_known"`
	ByRank   []Row  `json:"by_rank"`

	// Untimed says of how many launches it is not known how long they ran where these are too many to say anything;
	// else "".
	Untimed string `json:"-"`
}

// Row is the time of a rank, from the end of its first operation to that of its last one. Times are ns.
type Row struct {
	Rank     string `json:"rank"`
	Host     string `json:"host"`
	Observed uint64 `json:"observed_ns"` // without StartUp
	// StartUp is the time in first launches on communicators that came later than the rank's first one.
	StartUp    uint64 `json:"start_up_ns"`
	Useful     uint64 `json:"useful_ns"`     // outside of operations
	Operations uint64 `json:"operations_ns"` // the rest
	// of Observed, if operations took no longer than their members need to come; null: not known
	Ideal     *uint64 `json:"ideal_ns"`
	Computing *uint64 `json:"computing_ns"` // in which at least one of its kernels ran; null: none was recorded
	Active    *uint64 `json:"active_ns"`    // in which one of them or an operation ran; null: none was recorded
}

// Run is what a result is made of besides a counter's times.
type Run struct {
	Names []Name // of the ranks of the world
	// ns by which each rank would have been earlier, if operations took no longer than their members need to come
	Saved []float64
	// Compared is how many operations Saved is known of, NotCompared of how many it is not.
	Compared, NotCompared uint64
	Untimed               string // why operations have no times, if they have none: a clause
}

// Name is where a rank is.
type Name struct{ Rank, Host string }

// mostUnknown is the part of the operations whose times, or whose members' arrivals, need not be known.
const mostUnknown = 0.1

// Result gives the efficiencies.
func (c *Counter) Result(run *Run) *Result {
	res := &Result{ByRank: []Row{}}
	ideal := run.Saved != nil && run.Compared > 0 &&
		float64(run.NotCompared) <= mostUnknown*float64(run.Compared+run.NotCompared)
	var shares []Share
	var gpus []deviceShare
	var operations, untimed uint64
	for at, name := range run.Names {
		r := c.ranks[at]
		if r == nil || !r.begun {
			continue
		}
		t := &r.kept
		operations += t.operations
		untimed += t.untimed
		one := Row{Rank: name.Rank, Host: name.Host, Observed: t.useful + t.inOperations, StartUp: t.startUp,
			Useful: t.useful, Operations: t.inOperations}
		share := Share{Observed: float64(one.Observed), Useful: float64(one.Useful)}
		if ideal {
			saved := uint64(min(max(run.Saved[at], 0), float64(t.inOperations)))
			rest := one.Observed - saved
			one.Ideal, share.Ideal = &rest, float64(rest)
		}
		shares = append(shares, share)
		if t.kernels > 0 {
			one.Computing, one.Active = &t.computing, &t.active
			gpus = append(gpus, deviceShare{float64(one.Observed), float64(t.computing), float64(t.active)})
		}
		res.ByRank = append(res.ByRank, one)
	}
	switch {
	case operations == 0 && untimed == 0:
		res.NotKnown =
			"there are no operations of NCCL, or those of start-up only; --tally and timeline show what is there"
	case float64(untimed) > mostUnknown*float64(operations+untimed):
		res.Untimed = untimedText(untimed, operations, run.Untimed)
		res.NotKnown, res.ByRank = res.Untimed, []Row{} // what ranks did outside of operations is not known either
		return res
	default:
		res.Ranks = factorsOf(shares, ideal)
		if !ideal && res.Ranks != nil {
			res.NotKnown =
				"serialization and transfer: too few operations have comparable times of their members; record all " +
					"ranks with NCCL_OTF2_EVENTS=gpu"
		}
	}
	res.GPUs = ofDevices(gpus)
	return res
}

// OfPhase gives the efficiencies of a phase from what each rank spent in it and in operations that were called in it;
// nil if they are not known. Serialization and transfer are not known of phases.
func OfPhase(ranks []Share, timed, untimed uint64) *Factors {
	if timed == 0 || float64(untimed) > mostUnknown*float64(timed+untimed) {
		return nil
	}
	for _, r := range ranks {
		if r.Useful < 0 { // operations of several communicators at one time, or that ran after the phase
			return nil
		}
	}
	return factorsOf(ranks, false)
}

// untimedText says of how many launches it is not known how long they ran, and why where it is not known of any.
func untimedText(untimed, timed uint64, why string) string {
	if timed == 0 {
		return fmt.Sprintf("the duration of %s was not recorded: %s", units.Count(int(untimed), "launch", "launches"),
			why)
	}
	return fmt.Sprintf("the duration of %d of %s was not recorded", untimed,
		units.Count(int(untimed+timed), "launch", "launches"))
}
