// SPDX-License-Identifier: Apache-2.0

package sequence

import (
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

func TestPairsAreFoundByTheKeysOfBothEnds(t *testing.T) {
	p := Pair{3, 11}
	for rank, key := range map[int]string{3: p.SendKey(), 11: p.RecvKey()} {
		got, ok := PairOf(key, rank)
		testkit.Check(t, ok && got == p, "%s on rank %d: %v, %t", key, rank, got, ok)
	}
	testkit.Check(t, p.SendKey() == "Send>11" && p.RecvKey() == "Recv<3" && p.Name() == "Send 3>11",
		"%v %v %v", p.SendKey(), p.RecvKey(), p.Name())
	for _, key := range []string{"AllReduce", "Send", "Recv", "Send>", "Recv<-1", "Recv<1x", "Send<1", "Put>1"} {
		got, ok := PairOf(key, 0)
		testkit.Check(t, !ok, "%s: %v", key, got)
	}
}
