// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

func TestCallsWithoutOperationsAreForgotten(t *testing.T) {
	var table CallTable[*int]
	n := new(int)
	for i := range uint64(3 * maxYoungCalls) {
		table.Put(CallKey{Event: i}, n)
		testkit.Require(t, len(table.young)+len(table.old) <= 2*maxYoungCalls, "grows without bound")
	}
	newest := CallKey{Event: 3*maxYoungCalls - 1}
	testkit.Check(t, table.Take(CallKey{Event: 0}) == nil && table.Take(newest) == n && table.Take(newest) == nil,
		"the oldest are forgotten, the newest known once")
}
