// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"testing"
)

func TestPairsAreFoundByTheKeysOfBothEnds(t *testing.T) {
	p := Pair{3, 11}
	for rank, key := range map[int]string{3: p.SendKey(), 11: p.RecvKey()} {
		if got, ok := PairOf(key, rank); !ok || got != p {
			t.Errorf("%s on rank %d: %v, %t", key, rank, got, ok)
		}
	}
	if p.SendKey() != "Send>11" || p.RecvKey() != "Recv<3" || p.Name() != "Send 3>11" {
		t.Errorf("%v %v %v", p.SendKey(), p.RecvKey(), p.Name())
	}
	for _, key := range []string{"AllReduce", "Send", "Recv", "Send>", "Recv<-1", "Recv<1x", "Send<1", "Put>1"} {
		if got, ok := PairOf(key, 0); ok {
			t.Errorf("%s: %v", key, got)
		}
	}
}
