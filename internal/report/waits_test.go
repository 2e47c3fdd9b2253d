// SPDX-License-Identifier: Apache-2.0

package report

import (
	"slices"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/waits"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// Whole numbers of nanoseconds are written as such in CSV, however large they are.
func TestWholeTimesStayWhole(t *testing.T) {
	groups := []waits.Group{{Collectives: 1, SkewMax: 24_339_023}}
	s := sheetOf("operations", "", groups, waitGroupColumns("operation", true))
	testkit.Equal(t, s.values[0][slices.Index(s.fields, "skew_max_ns")], "24339023", "skew_max_ns")
}
