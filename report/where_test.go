// SPDX-License-Identifier: Apache-2.0

package report

import (
	"testing"

	"github.com/nccl-otf2/nccl-otf2/analysis/verdict"
	"github.com/nccl-otf2/nccl-otf2/analysis/waits"
)

// A verdict of less waiting than the tables have, or of more, says so.
func TestOtherSums(t *testing.T) {
	for _, c := range []struct {
		waited, judged uint64
		want, slow     string
	}{
		{5_000_000, 5_000_000, "", ""},
		{5_000_000, 4_990_000, "", ""}, // little
		{5_000_000, 3_000_000, "2 ms of it goes back to the first operations of communicators; the answer above is of the other 3 ms", ""},
		{5_000_000, 5_010_000, "", ""},
		{5_000_000, 7_000_000, "", "the answer above is of 7 ms: what operations took longer by slow links and GPUs counts, too, for each of their ranks"},
	} {
		s := &waits.States{Verdict: &verdict.Verdict{Waited: c.judged}}
		s.Total.Waited = c.waited
		if got := startUpLater(s); got != c.want {
			t.Errorf("waited %d, judged %d: %q", c.waited, c.judged, got)
		}
		if got := slowToo(s); got != c.slow {
			t.Errorf("waited %d, judged %d: %q", c.waited, c.judged, got)
		}
	}
	if got := startUpLater(new(waits.States)); got != "" {
		t.Errorf("without a verdict: %q", got)
	}
}
