// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/provenance"
	"github.com/nccl-otf2/nccl-otf2/internal/hidden"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// What is known of a process decides what its library is said not to tell.
func TestPlaceOfAProcess(t *testing.T) {
	rccl := description.Process{
		Library: "RCCL", LibraryVersion: 23004, Architectures: []string{"gfx942"},
		Masks: provenance.Masks{Record: 1 << 7},
		Comms: []description.Comm{{NRanks: 16, NNodes: 2}, {NRanks: 2}}, // of the second it is not known
	}
	for _, c := range []struct {
		name     string
		change   func(p *description.Process)
		requests bool
		want     []string
	}{
		{"two nodes of 8", func(*description.Process) {}, false, []string{"dda", "rccl-network-requests", "device-api"}},
		{"requests were seen", func(*description.Process) {}, true, []string{"dda", "device-api"}},
		{"none were wanted", func(p *description.Process) { p.Masks.Record = 2 }, false, []string{"dda", "device-api"}},
		{"four nodes of 4", func(p *description.Process) { p.Comms = []description.Comm{{NRanks: 16, NNodes: 4}} }, true,
			[]string{"device-api"}},
		{"DDA off", func(p *description.Process) { p.LibrarySettings = map[string]string{"RCCL_DDA_ENABLE": "0"} }, true,
			[]string{"device-api"}},
		{"other GPUs", func(p *description.Process) { p.Architectures = []string{"gfx90a"} }, true,
			[]string{"device-api"}},
		{"older", func(p *description.Process) { p.LibraryVersion = 22707 }, true, []string{"device-api"}},
		{"NCCL", func(p *description.Process) {
			p.Library, p.LibraryVersion, p.LibrarySettings = "NCCL", 23102,
				map[string]string{"NCCL_ENQUEUE_REARCH_ENABLE": "1"}
		}, true, []string{"application-calls", "broadcast-times", "one-sided", "device-api"}},
		{"calls that do not come", func(p *description.Process) {
			p.Library, p.LibraryVersion, p.APIVersion, p.Masks.Record = "NCCL", 23102, 7, 1<<9|1<<1
			p.Counts.Starts = map[string]uint64{"Coll": 3}
		}, true, []string{"application-calls", "broadcast-times", "one-sided", "device-api"}},
		{"graphs of which nothing more is heard", func(p *description.Process) {
			p.Library, p.LibraryVersion, p.APIVersion = "NCCL", 22907, 6
			p.Counts.Oddities = map[string]uint64{"CAPTURE_ONLY_PLANS": 2}
		}, true, []string{"graph-replays", "broadcast-times", "one-sided", "device-api"}},
		{"calls that come", func(p *description.Process) {
			p.Library, p.LibraryVersion, p.APIVersion, p.Masks.Record = "NCCL", 22809, 5, 1<<9|1<<1
			p.Counts.Starts = map[string]uint64{"Coll": 3, "CollApi": 3}
		}, true, []string{"device-api"}},
	} {
		p := rccl
		c.change(&p)
		var got []string
		for _, x := range hidden.Of(placeOf(&p, c.requests)) {
			got = append(got, x.Key)
		}
		testkit.Equal(t, cmp.Diff(c.want, got), "", "%s", c.name)
	}
}
