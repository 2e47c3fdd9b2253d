// SPDX-License-Identifier: Apache-2.0

package hidden

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

func env(values map[string]string) func(string) string {
	return func(name string) string { return values[name] }
}

func TestOf(t *testing.T) {
	for _, c := range []struct {
		name  string
		place Place
		want  []string
	}{
		{"nothing known", Place{}, []string{"device-api"}},
		{"NCCL 2.28", Place{Library: "NCCL", Version: 22809}, []string{"device-api"}},
		{"NCCL 2.29", Place{Library: "NCCL", Version: 22907}, []string{"broadcast-times", "one-sided", "device-api"}},
		{"without AllGatherV", Place{Library: "NCCL", Version: 22907,
			Getenv: env(map[string]string{"NCCL_ALLGATHERV_ENABLE": "0"})}, []string{"one-sided", "device-api"}},
		{"the new enqueueing", Place{Library: "NCCL", Version: 23102,
			Getenv: env(map[string]string{"NCCL_ENQUEUE_REARCH_ENABLE": "1"})},
			[]string{"application-calls", "broadcast-times", "one-sided", "device-api"}},
		{"off", Place{Library: "NCCL", Version: 23102,
			Getenv: env(map[string]string{"NCCL_ENQUEUE_REARCH_ENABLE": "0"})},
			[]string{"broadcast-times", "one-sided", "device-api"}},
		{"of some release", Place{Getenv: env(map[string]string{"NCCL_ENQUEUE_REARCH_ENABLE": "1"})},
			[]string{"application-calls", "device-api"}},
		{"by a file of NCCL's", Place{Library: "NCCL", Version: 23102, Calls: true},
			[]string{"application-calls", "broadcast-times", "one-sided", "device-api"}},
		{"before there was one", Place{Library: "NCCL", Version: 23007,
			Getenv: env(map[string]string{"NCCL_ENQUEUE_REARCH_ENABLE": "1"})},
			[]string{"broadcast-times", "one-sided", "device-api"}},
		{"graphs", Place{Library: "NCCL", Version: 23007, Graphs: true},
			[]string{"graph-replays", "broadcast-times", "one-sided", "device-api"}},
		{"network requests wanted", Place{Library: "NCCL", Version: 22809, Network: true},
			[]string{"network-requests", "device-api"}},
		{"RCCL before DDA", Place{Library: "RCCL", Version: 22707}, []string{"device-api"}},
		{"RCCL", Place{Library: "RCCL", Version: 23004}, []string{"dda", "device-api"}},
		{"RCCL, DDA off", Place{Library: "RCCL", Version: 23007,
			Getenv: env(map[string]string{"RCCL_DDA_ENABLE": "0"})}, []string{"device-api"}},
		{"RCCL, 8 a node", Place{Library: "RCCL", Version: 23007, NodeRanks: []int{2, 8}},
			[]string{"dda", "device-api"}},
		{"RCCL, 4 a node", Place{Library: "RCCL", Version: 23007, NodeRanks: []int{4}}, []string{"device-api"}},
		{"RCCL, MI300X", Place{Library: "RCCL", Version: 23007, GPUs: []string{"gfx942"}},
			[]string{"dda", "device-api"}},
		{"RCCL, MI250X", Place{Library: "RCCL", Version: 23007, NodeRanks: []int{8}, GPUs: []string{"gfx90a"}},
			[]string{"device-api"}},
		{"RCCL, network requests wanted", Place{Library: "RCCL", Version: 22707, Network: true},
			[]string{"rccl-network-requests", "device-api"}},
	} {
		var got []string
		for _, x := range Of(c.place) {
			got = append(got, x.Key)
		}
		testkit.Equal(t, cmp.Diff(c.want, got), "", "%s", c.name)
	}
}

func TestRows(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range table {
		testkit.Check(t, !seen[r.Key] && r.Key != "" && r.What != "" && r.Why != "",
			"%q: named twice, or not described", r.Key)
		testkit.Same(t, r.Traffic, Keyed(r.Key))
		seen[r.Key] = true
	}
	testkit.Equal(t, Keyed("of tomorrow").What, "of tomorrow", "Keyed")
	testkit.Same(t, []string{"NCCL_ENQUEUE_REARCH_ENABLE", "RCCL_DDA_ENABLE", "NCCL_ALLGATHERV_ENABLE"}, Variables())
	got := Set(env(map[string]string{"NCCL_ENQUEUE_REARCH_ENABLE": "1", "RCCL_DDA_ENABLE": "1"}))
	testkit.Check(t, len(got) == 1 && got[0].Key == "application-calls", "%v", got)
}
