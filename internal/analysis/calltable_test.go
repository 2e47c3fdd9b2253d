// SPDX-License-Identifier: Apache-2.0

package analysis

import "testing"

func TestCallsWithoutOperationsAreForgotten(t *testing.T) {
	var table CallTable[*int]
	n := new(int)
	for i := range uint64(3 * maxYoungCalls) {
		table.Put(CallKey{Event: i}, n)
		if len(table.young)+len(table.old) > 2*maxYoungCalls {
			t.Fatal("grows without bound")
		}
	}
	newest := CallKey{Event: 3*maxYoungCalls - 1}
	if table.Take(CallKey{Event: 0}) != nil || table.Take(newest) != n || table.Take(newest) != nil {
		t.Error("the oldest are forgotten, the newest known once")
	}
}
