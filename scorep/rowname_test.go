// SPDX-License-Identifier: Apache-2.0

package scorep_test

import (
	"slices"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/membership"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/naming"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

// Rows beside those of communicator ranks are named after the rank where a process has several of one communicator, and
// only there.
func TestRowsOfSeveralRanksHaveNamesOfTheirOwn(t *testing.T) {
	dir := t.TempDir()
	p := shardtest.New(t, dir, "a").Launched("slurm", 0, 1)
	for rank := range 2 {
		p.Network(p.Comm(description.Comm{ID: 1, Name: "world", NRanks: 2, Rank: rank, InitTime: shardtest.Epoch,
			GPU: p.GPU(rank, "", "")}))
		p.Location(description.KindEnqueue, otf2.LocationTypeCPUThread, "NCCL enqueue world", rank)
	}
	p.Network(p.Comm(description.Comm{ID: 2, Name: "half", NRanks: 2, InitTime: shardtest.Epoch}))
	p.Finish()
	a := jobtest.Open(t, jobtest.Unify(t, dir))
	var names []string
	kinds := naming.RowsOf(a.Defs, membership.Communicators(a.Defs))
	for _, l := range a.Defs.Locations {
		if kind := kinds.Kind(l.Self); kind == description.KindNetSend || kind == description.KindNetRecv ||
			kind == description.KindEnqueue {
			names = append(names, a.Defs.String(l.Name))
		}
	}
	slices.Sort(names)
	want := []string{"NCCL enqueue world r0", "NCCL enqueue world r1", "half net recv", "half net send",
		"world r0 net recv", "world r0 net send", "world r1 net recv", "world r1 net send"}
	testkit.Check(t, slices.Equal(names, want), "rows %q, want %q", names, want)
	for name, want := range map[string][2]string{"world r1 net send": {"world", "1"}, "half net recv": {"half", ""},
		"world rank 12":         {"world", "12"},
		"NCCL enqueue world r0": {"world", "0"}, "world ch 03": {"world", ""}, "Thread 0": {"Thread 0", ""}} {
		label, rank := naming.Label(name)
		testkit.Check(t, label == want[0] && rank == want[1], "%q is of %q, rank %q", name, label, rank)
	}
}
