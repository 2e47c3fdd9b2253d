// SPDX-License-Identifier: Apache-2.0

package cubex

import (
	"slices"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/cube"
	"github.com/nccl-otf2/nccl-otf2/internal/profile"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Communicators of one name are numbered by which may be there at one time; who comes when another is gone takes its
// place.
func TestCommunicatorsOfOneName(t *testing.T) {
	rows := make(map[otf2.LocationRef]*rowSum)
	var slots slotTable
	for i, c := range []struct {
		first, last uint64
		ended       bool
		want        string
	}{
		{10, 20, true, "dp 0-7"},
		{30, 90, false, "dp 0-7"},
		{40, 50, true, "dp 0-7 #2"},
		{45, 60, true, "dp 0-7 #3"},
		{55, 58, true, "dp 0-7 #2"},
		{70, 80, false, "dp 0-7 #2"},
		{100, 110, true, "dp 0-7 #3"},
	} {
		l := otf2.LocationRef(i)
		rows[l] = &rowSum{Row: profile.Row{First: c.first, Last: c.last, Ended: c.ended}}
		testkit.Equal(t, slots.assignName("dp 0-7", 0, rows, []otf2.LocationRef{l, 99}), c.want,
			"communicator %d from %d to %d", i, c.first, c.last)
	}
}

func TestNamesAreEqualInAllRuns(t *testing.T) {
	for name, want := range map[string]string{"": "comm", "ncclComm 0x1f2e3d": "comm", "ncclComm 0x1f2e3d #2": "comm",
		"default_pg #3": "default_pg", "tp\x01": "tp "} {
		testkit.Equal(t, userName(name), want, "%q becomes", name)
	}
	names := []string{"CUDA[0:13]", "CUDA[0:7]", "Thread 10", "Thread 2", "comm 0-7 rank 1"}
	if slices.SortFunc(names, compareNames); !slices.Equal(
		names, []string{"CUDA[0:7]", "CUDA[0:13]", "Thread 2", "Thread 10", "comm 0-7 rank 1"}) {
		t.Errorf("order %q", names)
	}
}

// Operations on AMD's GPUs have Score-P's words for HIP.
func TestHIP(t *testing.T) {
	for _, paradigm := range []otf2.Paradigm{otf2.ParadigmCUDA, otf2.ParadigmHIP} {
		d, aggregate := synthetic(t, 1)
		d.Regions = []otf2.Region{{Paradigm: paradigm}}
		b := newBuilder(d)
		b.add(aggregate(0), func(n uint64) (otf2.LocationRef, bool) { return otf2.LocationRef(n << 32), true })
		want := map[string]string{cube.ParadigmCUDA: cube.ModuleKernel}
		if paradigm == otf2.ParadigmHIP {
			want = map[string]string{"hip": "HIP_KERNEL"}
		}
		found := 0
		for _, r := range b.build().definitions().Regions {
			if r.Paradigm != cube.ParadigmCUDA && r.Paradigm != "hip" {
				continue
			}
			module, ok := want[r.Paradigm]
			testkit.Check(t, ok && (r.Role == cube.RoleArtificial || r.Module == module), "%v: region %+v", paradigm, r)
			found++
		}
		testkit.Check(t, found != 0, "%v: no operations", paradigm)
	}
}
