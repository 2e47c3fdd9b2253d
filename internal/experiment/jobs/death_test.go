// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"slices"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

func TestDeathWords(t *testing.T) {
	const ms = 1_000_000
	for name, tc := range map[string]struct {
		of   []Death
		want []string
	}{
		"none": {},
		"one":  {[]Death{{"Rank 2", "killed by SIGSEGV", "a", 5 * ms, false}}, []string{"Rank 2 killed by SIGSEGV"}},
		"the first": {[]Death{{"Rank 2", "killed by SIGSEGV", "a", 5 * ms, false},
			{"Rank 0", "killed by SIGTERM", "a", 36 * ms, false}, {"Rank 1", "killed by SIGTERM", "a", 36 * ms, false}},
			[]string{"Rank 2 was the first to end, 31 ms before the next: killed by SIGSEGV",
				"Ranks 0-1 killed by SIGTERM"}},
		"the first of many": {[]Death{{"Rank 2", "killed by SIGKILL", "a", 5 * ms, false},
			{"Rank 0", "killed by SIGKILL", "a", 7 * ms, false}},
			[]string{"Rank 2 was the first to end, 2 ms before the next: killed by SIGKILL",
				"Rank 0 killed by SIGKILL"}},
		"together": {[]Death{{"Rank 1", "killed by SIGKILL", "a", 5 * ms, false},
			{"Rank 0", "killed by SIGKILL", "a", 5*ms + 1, false}}, []string{"Ranks 0-1 killed by SIGKILL"}},
		"on two hosts": {[]Death{{"Rank 1", "killed by SIGKILL", "a", 5 * ms, false},
			{"Rank 0", "exited with code 1", "b", 36 * ms, false}},
			[]string{"Rank 1 killed by SIGKILL", "Rank 0 exited with code 1"}},
		"far apart on two hosts": {[]Death{{"Rank 1", "killed by SIGKILL", "a", 5 * ms, false},
			{"Rank 0", "exited with code 1", "b", 3600 * ms, false}},
			[]string{"Rank 1 was the first to end, 3.60 s before the next: killed by SIGKILL",
				"Rank 0 exited with code 1"}},
		"on hosts whose clocks differ": {[]Death{{"Rank 1", "killed by SIGKILL", "a", 5 * ms, false},
			{"Rank 0", "exited with code 1", "b", 3600 * ms, true}},
			[]string{"Rank 1 killed by SIGKILL", "Rank 0 exited with code 1"}},
		"nobody knows": {[]Death{{"Rank 1", "killed by SIGKILL", "a", 5 * ms, false},
			{"Process h:2", "exited with code 1", "a", 0, false}},
			[]string{"Rank 1 killed by SIGKILL", "Process h:2 exited with code 1"}},
		"several in order": {[]Death{{"Ranks 0-1", "killed by SIGKILL", "a", 1, false},
			{"Rank 7", "killed by SIGKILL", "a", 2, false}}, []string{"Ranks 0-1, Rank 7 killed by SIGKILL"}},
	} {
		got := DeathWords(tc.of)
		testkit.Check(t, slices.Equal(got, tc.want), "%s: %q, want %q", name, got, tc.want)
	}
}
