// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"fmt"
	"strings"
)

// Set is several ranks that belong together, such as those of a host or of a stage, and that made the others wait
// together.
type Set struct {
	Ranks []int   `json:"ranks"` // of the world
	Name  string  `json:"name"`  // "Ranks 4-7"
	Host  string  `json:"host"`  // that all are on; "" for ranks with the same role, and for a replica
	Share float64 `json:"share"` // of Waited: all that goes back to them, as Culprit.Caused
	// Gain is by how much the run would be shorter, in ns, if they were as fast as the others; Least is the part of it
	// that exceeds the uncertainty of times and chance.
	Gain  uint64 `json:"gain_ns"`
	Least uint64 `json:"least_ns"`
	// Scaled reports whether no other ranks do the same work, as of a stage, so that the set is compared with what
	// ranks of other stages work.
	Scaled bool `json:"scaled,omitempty"`
	// Replica reports whether communicators join the ranks, and the same communicators join others, such as those of
	// the replicas of a model.
	Replica bool `json:"replica,omitempty"`
}

// NameSet adds a set to a verdict whose culprits, if any, are all in it. ranks is the number of ranks of the world.
func (v *Verdict) NameSet(s *Set, ranks int) {
	name, together, caused := s.Name, ", which do the same work, together", "they"
	switch {
	case len(s.Ranks) == 1:
		together, caused = "", "it"
	case s.Host != "":
		together = " together"
	case s.Replica:
		together = ", which work with each other, together"
	}
	if s.Host != "" {
		name += " on " + s.Host
	}
	text := fmt.Sprintf("%s%s made the others wait: %s caused %.0f %% of %s.", name, together, caused, 100*s.Share,
		waitedText(float64(v.Waited), ranks))
	if s.Scaled {
		text += " No others do this work; whether they are slow or have more to do is not known."
	}
	if v.Set, v.StandsOut = s, true; len(v.Culprits) == 0 {
		if len(s.Ranks) > 1 {
			text += " None of them stands out from the rest."
		}
		if nobody, rest, found := strings.Cut(v.Text, ". "); found && strings.HasPrefix(nobody, "Nobody") {
			text += " " + rest
		}
		v.Text = text
		return
	}
	v.Text = text + " " + v.Text
}
