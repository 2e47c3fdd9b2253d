// SPDX-License-Identifier: Apache-2.0

package units

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

func TestRanksAreWrittenAsRanges(t *testing.T) {
	for want, ranks := range map[string][]int{"": nil, "3": {3}, "0-2": {0, 1, 2}, "0,2-3,9": {0, 2, 3, 9}} {
		testkit.Equal(t, Ranks(ranks), want, "%v", ranks)
	}
	var odd []int
	for i := range 1000 {
		odd = append(odd, 2*i)
	}
	if got := RankWords(odd); !strings.HasPrefix(got, "1000 ranks (0,2,4,") || len(got) > 150 || RankNames(odd) != got {
		t.Errorf("%q", got)
	}
	got := RankWords([]int{3}) + ", " + RankWords([]int{0, 1, 5}) + ", " + RankNames([]int{3}) + ", " +
		RankNames([]int{0, 1})
	testkit.Check(t, got == "rank 3, ranks 0-1,5, Rank 3, Ranks 0-1", "%v", got)
}

func TestRanksHaveNames(t *testing.T) {
	for name, want := range map[string]int{"Rank 0": 0, "Rank 17": 17, "Rank 03": -1, "Rank -1": -1,
		"Rank 3 (no data)": -1, "Rank 3 GPU 1": -1, "17": -1, "": -1} {
		rank, ok := RankOf(name)
		testkit.Check(t, ok == (want >= 0) && (!ok || rank == want), "%q: %d, %t", name, rank, ok)
	}
}

// Long lists say how many there are.
func TestNamesAreListed(t *testing.T) {
	for want, names := range map[string][]string{
		"":                    nil,
		"Rank 2":              {"Rank 2"},
		"Ranks 0-1,4":         {"Rank 4", "Rank 0", "Rank 1"},
		"Rank 0, comm rank 1": {"Rank 0", "comm rank 1"},
		"Rank 0 GPU 1":        {"Rank 0 GPU 1"},
	} {
		testkit.Equal(t, NameList(names), want, "%v", names)
	}
	var many []string
	for i := range 20 {
		many = append(many, fmt.Sprint("comm rank ", i))
	}
	got := NameList(many)
	testkit.Check(t, strings.HasSuffix(got, "comm rank 15 and 4 more"), "%v", got)
}
