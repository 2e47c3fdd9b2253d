// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/analysis/verdict"
	"github.com/nccl-otf2/nccl-otf2/analysis/waits"
)

// A verdict of other waiting than the tables' says of which.
func TestJudgedRemark(t *testing.T) {
	for _, c := range []struct {
		waited, judged uint64
		want           string
	}{
		{5_000_000, 5_000_000, ""},
		{5_000_000, 5_000_999, ""}, // the same in three digits
		{5_000_000, 3_000_000, "are of 3 ms: what goes back to start-up does not count"},
		{5_000_000, 7_000_000, "are of 7 ms: what slow links and GPUs held up counts, too"},
	} {
		s := &waits.States{Verdict: &verdict.Verdict{Waited: c.judged}}
		s.Total.Waited = c.waited
		if got := judgedRemark(s); got != c.want && (c.want == "" || !strings.HasSuffix(got, c.want)) {
			t.Errorf("waited %d, judged %d: %q", c.waited, c.judged, got)
		}
	}
	if got := judgedRemark(new(waits.States)); got != "" {
		t.Errorf("without a verdict: %q", got)
	}
}
