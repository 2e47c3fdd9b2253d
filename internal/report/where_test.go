// SPDX-License-Identifier: Apache-2.0

package report

import (
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/verdict"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/waits"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// A verdict of less waiting than the tables have, or of more, says so.
func TestOtherSums(t *testing.T) {
	for _, c := range []struct {
		waited, judged uint64
		held           float64 // by slow links and GPUs
		want, slow     string
	}{
		{5_000_000, 5_000_000, 0, "", ""},
		{5_000_000, 4_990_000, 0, "", ""}, // little
		{5_000_000, 3_000_000, 0,
			"2 ms of it was caused by the first operations of communicators; the answer above covers the other 3 ms",
			""},
		{5_000_000, 5_010_000, 10_000, "", ""},
		{5_000_000, 7_000_000, 2e6, "",
			"the answer above covers 7 ms: 5 ms of waiting for others, and 2 ms for which slow links and GPUs held " +
				"ranks up in operations"},
		{5_000_000, 6_000_000, 2e6, "1 ms of it was caused by the first operations of communicators",
			"the answer above covers 6 ms: 4 ms of waiting for others, and 2 ms for which slow links and GPUs held " +
				"ranks up in operations"},
	} {
		s := &waits.States{Verdict: &verdict.Verdict{Waited: c.judged}, Slow: waits.Slow{Cost: c.held}}
		s.Total.Waited = c.waited
		testkit.Equal(t, startUpShare(s), c.want, "waited %d, judged %d", c.waited, c.judged)
		testkit.Equal(t, slowRemark(s), c.slow, "waited %d, judged %d", c.waited, c.judged)
	}
	testkit.Equal(t, startUpShare(new(waits.States)), "", "without a verdict")
}
