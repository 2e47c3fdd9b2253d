// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"encoding/json"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

func TestRankIsBounded(t *testing.T) {
	for rank, fine := range map[int32]bool{0: true, description.MaxRanks - 1: true, description.MaxRanks: false,
		1_000_000: false} {
		l := line{RecordType: "event", Type: "ncclProfileColl", Rank: &rank}
		at := []byte(`{"start":{"ts":1},"stop":{"ts":2}}`)
		testkit.Must(t, json.Unmarshal(at, &l))
		_, err := l.kind()
		testkit.Check(t, fine == (err == nil), "rank %d: %v", rank, err)
		ranks := int(rank)
		l.Rank, l.Details = nil, &details{Ranks: &ranks}
		_, err = l.kind()
		testkit.Check(t, (ranks <= description.MaxRanks) == (err == nil), "%d ranks: %v", ranks, err)
	}
}
