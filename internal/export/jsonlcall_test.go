// SPDX-License-Identifier: Apache-2.0

package export

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

// Calls that no operation names, as those that hang, say themselves on which communicator, rank and device they are.
func TestCallsWithoutOperationsHaveTheirCommunicator(t *testing.T) {
	dir := t.TempDir()
	for rank := range 2 {
		p := shardtest.New(t, dir, string(rune('a'+rank))).Launched("slurm", rank, 2)
		comm := p.Comm(description.Comm{ID: 77, Name: "world", NRanks: 2, Rank: rank, InitTime: shardtest.Epoch})
		p.AllReduce(comm, shardtest.Epoch+1000, shardtest.Epoch+2000, 1000)
		region := p.Region("ncclBroadcast", regions.GroupAPI, otf2.RegionRoleCollOne2All)
		a := &otf2.AttributeList{}
		a.Uint64(regions.AttrCount, 1)
		a.Uint64(regions.AttrEventID, uint64(500+rank))
		a.Uint32(regions.AttrDevice, uint32(3+rank))
		a.Comm(regions.AttrComm, otf2.CommRef(comm))
		a.Uint32(regions.AttrRank, uint32(rank))
		a.Uint32(regions.AttrRoot, 1)
		testkit.Must(t, p.Writer(0).Enter(otf2.Timestamp(shardtest.Epoch+3000), a, region))
		testkit.Must(t, p.Writer(0).Leave(otf2.Timestamp(shardtest.Epoch+4000), nil, region))
		p.Finish()
	}
	res := testkit.Value(JSONL(jobtest.Open(t, jobtest.Unify(t, dir)), filepath.Join(dir, "jsonl"), nil))(t)
	ranks := make(map[any]any)
	for _, path := range res.Files {
		for _, r := range recordsIn(t, path) {
			if r["type"] != "ncclProfileCollApi" {
				continue
			}
			d := r["details"].(map[string]any)
			ranks[r["rank"]] = d["cudaDevice"]
			testkit.Check(t, r["commId"] == 77.0 && d["root"] == 1.0, "%v", r)
		}
	}
	testkit.Check(t, len(ranks) == 2 && ranks[0.0] == 3.0 && ranks[1.0] == 4.0, "devices by rank: %v", ranks)
	for what := range res.LeftOut {
		testkit.Check(t, !strings.Contains(what, "communicators of calls"), "left out: %v", res.LeftOut)
	}
}
