// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/causes"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// single makes the evidence of two ranks with five operations in 1 s. To one of them, at 400 ms, rank 1 was late by 90
// ms; nothing else was wrong.
func single(change func(r *causes.Rank, o *causes.Occurrence)) *Evidence {
	ev := evidence(2, 5, -1)
	ev.Duration, ev.Causes.Waited, ev.Causes.Comms[0].Calls["AllReduce"] = 1e9, 100e6, 5
	r := &ev.Causes.Ranks[1]
	r.All, r.Costs[causes.Host], r.Delays[causes.Host], r.Worked, r.Heaviest = true, 92e6, 92e6, 92e6, 90e6
	o := causes.Occurrence{Function: "AllReduce", At: 400e6, Nth: 2, Late: 90e6, Called: 89e6, Cost: 90e6, Stated: true,
		Uncertainty: 1e3}
	if change != nil {
		change(r, &o)
	}
	r.Occurrences = []causes.Occurrence{{Function: "AllReduce", At: 200e6, Nth: 1, Late: 2e6, Called: 2e6, Cost: 2e6},
		o}
	return ev
}

// A single occasion that caused most of the waiting is stated although it is no habit, but only if it is certain,
// long, and due to the rank's own work.
func TestOneTime(t *testing.T) {
	const sentence = "Nobody stands out repeatedly, but 90 % of the 100 ms of waiting was caused on one occasion, on " +
		"which Rank 1 was late. "
	for _, c := range []struct {
		name   string
		change func(r *causes.Rank, o *causes.Occurrence)
		want   string
	}{
		{"its host", nil, sentence + "It called ncclAllReduce 89 ms after the others, 1 of 5 times, at 400 ms."},
		{"its GPU", func(_ *causes.Rank, o *causes.Occurrence) { o.Kind, o.Called = causes.GPU, 0 },
			sentence +
				"Its GPU began ncclAllReduce 90 ms after the others, though it was called in time, 1 of 5 times, at " +
				"400 ms."},
		{"less than the uncertainty of times", func(_ *causes.Rank, o *causes.Occurrence) { o.Uncertainty = 80e6 }, ""},
		{"not half of the waiting, though of one occasion with others",
			func(_ *causes.Rank, o *causes.Occurrence) { o.Cost = 49e6 }, ""},
		{"a trifle of the run", func(_ *causes.Rank, o *causes.Occurrence) { o.Late = 9e6 }, ""},
		{"others worked as long", func(r *causes.Rank, _ *causes.Occurrence) { r.Worked = 0 }, ""},
	} {
		v := Judge(single(c.change))
		testkit.Check(t, (c.want != "" || !strings.Contains(v.Text, "repeatedly")) &&
			(c.want == "" || v.Text == c.want), "%s: %s", c.name, v.Text)
		testkit.Check(t, len(v.Culprits) == 0 && !v.StandsOut, "%s: one time is a habit: %+v", c.name, v.Culprits)
	}
}
