// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"fmt"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/placement"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

func TestRolesByName(t *testing.T) {
	for name, want := range map[string]string{
		"default_pg": "world", "world": "world", "train": "", "ncclComm 0x1dd": "", "pair.1": "", "": "", "deeper": "",
		"TENSOR_MODEL_PARALLEL_GROUP": "tensor parallel", "PIPELINE_MODEL_PARALLEL_GROUP": "pipeline parallel",
		"DATA_PARALLEL_GROUP":         "data parallel",
		"DATA_PARALLEL_GROUP_WITH_CP": "context and data parallel", "MODEL_PARALLEL_GROUP": "model parallel",
		"mesh_tp": "tensor parallel", "mesh_dp": "data parallel",
		"TENSOR_AND_DATA_PARALLEL_GROUP": "tensor and data parallel", "CONTEXT_PARALLEL_GROUP": "context parallel",
		"ExpertParallel":  "expert parallel",
		"EMBEDDING_GROUP": "embedding", "tp0": "tensor parallel", "fsdp:3": "data parallel",
	} {
		testkit.Equal(t, roleByName(name), want, "%s", name)
	}
}

// grid makes the communicators of a job with several kinds of parallelism of the given sizes, from the inside.
func grid(hosts int, sizes ...int) (lists []*memberList, ranks int) {
	ranks = 1
	for _, s := range sizes {
		ranks *= s
	}
	add := func(places []int) {
		m := &memberList{row: &CommunicatorRow{Ranks: len(places)}, places: places, hosts: make(map[string]bool)}
		for _, p := range places {
			m.hosts[fmt.Sprint(p*hosts/ranks)] = true
		}
		lists = append(lists, m)
	}
	stride := 1
	for _, size := range sizes {
		for first := range ranks {
			if first/stride%size == 0 && size > 1 {
				var places []int
				for i := range size {
					places = append(places, first+i*stride)
				}
				add(places)
			}
		}
		stride *= size
	}
	return lists, ranks
}

func TestRolesByMembers(t *testing.T) {
	for _, tc := range []struct {
		name  string
		hosts int
		sizes []int
		want  map[string]int // role of communicators → number
	}{
		{"tensor, data and pipeline", 4, []int{4, 2, 4},
			map[string]int{"tensor parallel": 8, "data parallel": 16, "pipeline parallel": 8}},
		{"tensor and data", 2, []int{8, 2}, map[string]int{"tensor parallel": 2, "data parallel": 8}},
		{"all in one", 2, []int{16}, map[string]int{"world": 1}},
		{"groups over several hosts are not taken for tensor parallel", 8, []int{4, 2},
			map[string]int{"": 2, "data parallel": 4}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			lists, ranks := grid(tc.hosts, tc.sizes...)
			suggest(lists, ranks)
			got := make(map[string]int)
			for _, m := range lists {
				got[m.row.Role]++
			}
			testkit.Check(t, fmt.Sprint(got) == fmt.Sprint(tc.want), "got %v, want %v", got, tc.want)
		})
	}
	// Groups with nothing but messages are a pipeline.
	lists, ranks := grid(2, 4, 2)
	for _, m := range lists {
		m.messages = len(m.places) == 2
	}
	suggest(lists, ranks)
	testkit.Equal(t, lists[len(lists)-1].row.Role, "pipeline parallel", "messages only")
	// If one of the groups is missing, the others get no role.
	lists, ranks = grid(2, 4, 2)
	suggest(lists[1:], ranks)
	testkit.Equal(t, lists[1].row.Role, "", "incomplete")
}

func TestMembersInWords(t *testing.T) {
	for want, places := range map[string][]int{
		"": nil, "3": {3}, "0,1": {0, 1}, "0-7": {0, 1, 2, 3, 4, 5, 6, 7}, "0-28/4": {0, 4, 8, 12, 16, 20, 24, 28},
		"0,1,5": {0, 1, 5}, "2,1,0": {2, 1, 0},
	} {
		testkit.Equal(t, placement.PlacesText(places), want, "%v", places)
	}
}
