// SPDX-License-Identifier: Apache-2.0

package causes

import (
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// If recording began later there is no start-up: the cause of the first waits is unknown.
func TestFirstWaitsOfALaterRecordingAreNoStartUp(t *testing.T) {
	for _, tc := range []struct {
		name, play       string
		ordinal          uint64
		startUp, unknown float64
	}{
		{"from the beginning", "0:10 1:50 ar(0,1)", 0, 40_000, 0},
		{"later", "0:10 1:50 ar(0,1)", 7, 0, 40_000},
		{"messages from the beginning", "0:10 1:50 m(0,1)", 0, 40_000, 0},
		{"messages later", "0:10 1:50 m(0,1)", 7, 0, 40_000},
	} {
		t.Run(tc.name, func(t *testing.T) {
			j := newJob(2)
			j.firstOrdinal = tc.ordinal
			r := j.play(tc.play).engine.Result()
			testkit.Check(t, r.StartUp == tc.startUp && r.Unknown == tc.unknown && r.Waited == tc.unknown,
				"%g ns of start-up, %g not known, %g waited", r.StartUp, r.Unknown, r.Waited)
		})
	}
}
