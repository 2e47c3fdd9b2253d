// SPDX-License-Identifier: Apache-2.0

package criticalpath

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/transfers"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/verdict"
)

// Slow adds the saving if a slow link or GPU were as fast as others: how much longer it made those operations that are
// on the path.
func (r *Result) Slow(f *transfers.Finding, name func(rank int) (name, host string)) {
	w := WhatIf{Change: FasterGPU, Rank: f.Rank, Gain: uint64(max(0, f.Delay)), Operations: f.Slow}
	if f.Kind == transfers.Link {
		w.Change = FasterLink
	}
	if peer := f.Peer; peer != transfers.Nobody {
		w.Peer = &peer
		w.PeerName, _ = name(peer)
	}
	w.Name, w.Host = name(f.Rank)
	for _, a := range r.Activities {
		if a.Activity == Operation.String() {
			w.Gain = min(w.Gain, a.Time)
		}
	}
	if w.Gain == 0 {
		return
	}
	r.WhatIf = append(r.WhatIf, w)
	r.sort()
}

// AddConfidence copies the confidence of each culprit that the verdict names to the change that concerns it, and the
// gain of that change to the culprit.
func (r *Result) AddConfidence(v *verdict.Verdict) {
	r.noteUnknownGains(v)
	if r.GainsNotKnown == "" {
		for _, c := range v.Late() {
			c.TimeShare = 0
		}
	}
	for i := range r.WhatIf {
		w := &r.WhatIf[i]
		for k := range v.Culprits {
			if c := &v.Culprits[k]; w.concerns(c) {
				confidence := c.Confidence
				w.Confidence = &confidence
				if w.Change == FasterRank {
					c.TimeShare = float64(w.Gain) / float64(r.Length)
				}
				break
			}
		}
	}
}

// noteUnknownGains says that gains are not known if the run would be no shorter without late ranks that the verdict
// names, while no cause is known for much of the waiting: what they cost can be there.
func (r *Result) noteUnknownGains(v *verdict.Verdict) {
	ofNamed := func(w WhatIf) bool {
		return w.Change == FasterSet ||
			slices.ContainsFunc(v.Culprits, func(c verdict.Culprit) bool { return w.concerns(&c) })
	}
	if v.Unknown >= verdict.MuchUnknown && len(v.Late()) > 0 && !slices.ContainsFunc(r.WhatIf, ofNamed) {
		r.GainsNotKnown = fmt.Sprintf("for %.0f %% of the waiting, no cause is known", 100*v.Unknown)
	}
}

// concerns reports whether a change concerns a culprit.
func (w *WhatIf) concerns(c *verdict.Culprit) bool {
	if w.Rank != c.Rank {
		return false
	}
	switch w.Change {
	case FasterRank:
		return c.Kind == verdict.HostLate || c.Kind == verdict.GPULate
	case FasterGPU:
		return c.Kind == verdict.GPULate
	case FasterLink:
		return c.Kind == verdict.SlowTransfer && (c.Peer == nil) == (w.Peer == nil) &&
			(c.Peer == nil || *c.Peer == *w.Peer)
	}
	return false
}

func (r *Result) sort() {
	slices.SortFunc(r.WhatIf, func(a, b WhatIf) int {
		return cmp.Or(cmp.Compare(b.Gain, a.Gain), cmp.Compare(a.Change, b.Change), cmp.Compare(a.Rank, b.Rank))
	})
}
