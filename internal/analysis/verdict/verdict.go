// SPDX-License-Identifier: Apache-2.0

// Package verdict decides which rank made the others wait, in what way, and with what confidence.
//
// It does not examine times itself: package causes computes how long each rank made the others wait, and package hang
// finds why a job did not end. This package brings both into one form, which the report, its JSON, the timeline's page
// and the other products show.
package verdict

import (
	"cmp"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/causes"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Kind is the way in which a culprit held the others up.
type Kind string

// Kinds of causes, as docs/report.md defines them.
const (
	HostLate     Kind = "host_late"     // it called NCCL late
	GPULate      Kind = "gpu_late"      // it called in time, its GPU began late or worked slowly
	Late         Kind = "late"          // it began late; when it called is not known
	SlowTransfer Kind = "slow_transfer" // the operation itself took longer on one link or rank
	Missing      Kind = "missing"       // it never came
	Order        Kind = "order"         // it called operations in another order than the others
	Mismatch     Kind = "mismatch"      // it called with other arguments than the others
)

// KindOf returns in what way a rank was late by itself, as shown to users.
func KindOf(k causes.Kind) Kind {
	switch k {
	case causes.Host, causes.Call:
		return HostLate
	case causes.Own:
		return Late
	}
	return GPULate
}

// Verdict is the answer to "what made us wait?". Times are ns, shares are 0 to 1.
type Verdict struct {
	StandsOut bool      `json:"stands_out"` // there is a culprit, or a set
	Culprits  []Culprit `json:"culprits"`   // the worst first; empty, never nil, if nobody stands out
	// Text is the answer in one sentence; it may state that nobody stands out, or what to record if too little is
	// known.
	Text string `json:"text"`

	StartUp uint64 `json:"start_up_ns"` // waiting that began before the ranks' first common operation
	Waited  uint64 `json:"waited_ns"`   // by all ranks, start-up left out
	// Unknown is the share of Waited whose cause is not known.
	Unknown float64 `json:"unknown_share"`
	// Set has ranks that made the others wait together, without one of them standing out from the rest; nil: none.
	Set *Set `json:"set,omitempty"`
	// SharedGPUs are those on which several ranks work at the same time; none: no GPU is known to be shared.
	SharedGPUs []SharedGPU `json:"shared_gpus,omitempty"`
}

// Culprit is a rank, or a link between two ranks, that delayed the others by more than chance explains.
type Culprit struct {
	Rank int    `json:"rank"` // in the world
	Host string `json:"host"`
	GPU  string `json:"gpu"` // as the archive names it, "" if it is not known
	Kind Kind   `json:"kind"`
	Peer *int   `json:"peer"` // rank in the world at the other end of a slow link or a stuck transfer, else nil

	Share      float64 `json:"share"`      // of Waited; for a late rank, only for work that the others did not have
	Caused     float64 `json:"caused"`     // of Waited: all that goes back to it; Share is a part of it
	TimeShare  float64 `json:"time_share"` // of the run: the gain; if that is not known, an upper bound
	Confidence float64 `json:"confidence"` // that neither chance nor the uncertainty of the times explains it
	// Margin is a sentence on what speaks for the name where a rule decides, or that nothing decides between several.
	Margin string `json:"margin,omitempty"`
	// Pattern is "always", "every third call", "since 12.4 s" or "once"; "" if there is none.
	Pattern  string `json:"pattern"`
	Evidence string `json:"evidence"`        // one sentence
	Worst    *Worst `json:"worst,omitempty"` // where it cost the most; nil: not one time
	// Stopped reports whether the job stopped because of it; a transfer is then stuck.
	Stopped bool `json:"stopped,omitempty"`
}

// Worst is the operation at which the culprit's lateness cost the most.
type Worst struct {
	At       otf2.Timestamp `json:"at"`      // when it came
	Late     uint64         `json:"late_ns"` // compared with an early member
	Function string         `json:"operation"`
	Comm     otf2.CommRef   `json:"comm"`
	// Phase is the application's phase of the call; "" if there is none or it is not known.
	Phase string `json:"phase,omitempty"`
}

// Late returns the culprits that came late to operations by themselves.
func (v *Verdict) Late() (all []*Culprit) {
	for i := range v.Culprits {
		if c := &v.Culprits[i]; c.Worst != nil && !c.Stops() {
			all = append(all, c)
		}
	}
	return all
}

// worstOf returns the most expensive of a rank's occurrences.
func worstOf(all []causes.Occurrence) (w *Worst) {
	most := 0.0
	for i := range all {
		if o := &all[i]; o.Cost > most {
			most = o.Cost
			w = &Worst{At: o.At, Late: uint64(max(o.Late, 0)), Function: o.Function, Comm: o.Comm}
			if o.During != nil {
				w.Phase = o.During.Path()
			}
		}
	}
	return w
}

// Compare orders culprits: those that stopped the job first, then by share, then by rank.
func (c *Culprit) Compare(o *Culprit) int {
	return cmp.Or(cmp.Compare(c.delays(), o.delays()), cmp.Compare(o.Share, c.Share), cmp.Compare(c.Rank, o.Rank))
}

// Stops reports whether the culprit stopped the job or damaged its results.
func (c *Culprit) Stops() bool { return c.delays() == 0 }

// delays returns 0 for culprits that stopped a job or damaged its results, and 1 for those that only cost time.
func (c *Culprit) delays() int {
	switch {
	case c.Stopped, c.Kind == Missing, c.Kind == Order, c.Kind == Mismatch:
		return 0
	}
	return 1
}
