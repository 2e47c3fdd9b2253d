// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// Where operations may be missing they are the last ones of their communicator rank; those in the midst of it a
// collector had that died, and they are counted.
func TestOnlyTheLastAreMissing(t *testing.T) {
	a, b := new(replay.Context), new(replay.Context)
	want := []operation{
		{1, "AllReduce", "COLL", a, 1}, {2, "AllReduce", "COLL", b, 2}, {3, "Broadcast", "COLL", a, 3},
		{4, "AllReduce", "COLL", a, 4}, {5, "AllReduce", "COLL", b, 5},
	}
	for _, tc := range []struct {
		name  string
		there []uint64
		lost  map[string]int
		hole  bool
	}{
		{"all", []uint64{1, 2, 3, 4, 5}, nil, false},
		{"the last", []uint64{1, 2, 3}, nil, false},
		{"all of one", []uint64{2, 5}, nil, false},
		{"none", nil, nil, false},
		{"one in the midst", []uint64{1, 2, 4, 5}, nil, true},
		{"one in the midst, counted", []uint64{1, 2, 4, 5}, map[string]int{"COLLECTOR_DIED::BROADCAST": 1}, false},
		{"one in the midst, another counted", []uint64{1, 2, 4, 5},
			map[string]int{"COLLECTOR_DIED::ALL_REDUCE": 1, "MEMORY::COLL": 9}, true},
		{"two in the midst, one counted", []uint64{3, 4, 5}, map[string]int{"COLLECTOR_DIED::ALL_REDUCE": 1}, true},
		{"two in the midst, both counted", []uint64{3, 4, 5}, map[string]int{"COLLECTOR_DIED::ALL_REDUCE": 2}, false},
		{"one counted, the last are missing, too", []uint64{2, 3}, map[string]int{"COLLECTOR_DIED::ALL_REDUCE": 1},
			false},
	} {
		got := make(map[uint64]int)
		for _, h := range tc.there {
			got[h] = 1
		}
		hole := onlyTheLast(want, got, tc.lost)
		testkit.Check(t, (hole != "") == tc.hole, "%s: %q", tc.name, hole)
	}
}
