// SPDX-License-Identifier: Apache-2.0

package otf2

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// However often a writer is parked, the file is the same, byte for byte.
func TestParkedWritersWriteTheSame(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 1))
		plain, parked := NewMemoryEventWriter(nil), NewMemoryEventWriter(nil)
		parks := 0
		var a AttributeList
		for i := range 40_000 {
			a.Reset()
			for k := range random.IntN(6) {
				a.Uint64(AttributeRef(k), random.Uint64()>>random.IntN(64))
			}
			testkit.Require(t, i <= 2 || parked.Leave(0, nil, 0) != nil, "an event that goes back in time was taken")
			at, region := Timestamp(i/2), RegionRef(random.Uint32())
			for _, w := range []*EventWriter{plain, parked} {
				testkit.Must(t, w.Enter(at, &a, region))
			}
			if random.IntN(1+int(seed)*20) > 0 {
				continue
			}
			for _, w := range []*EventWriter{plain, parked} {
				testkit.Must(t, w.Flush())
			}
			parked.Park()
			parks++
			n := cap(parked.buf)
			testkit.Require(t, n <= 64, "a parked writer holds %d bytes", n)
		}
		testkit.Must(t, plain.Close())
		testkit.Must(t, parked.Close())
		testkit.Check(t, bytes.Equal(plain.Bytes(), parked.Bytes()),
			"seed %d: the files differ: %d and %d bytes", seed, len(plain.Bytes()), len(parked.Bytes()))
		testkit.Check(t, parks >= 20, "seed %d: parked only %d times", seed, parks)
	}
}

// What has not been flushed, and a writer that has failed, stay as they are.
func TestOnlyFlushedWritersAreParked(t *testing.T) {
	w := NewMemoryEventWriter(nil)
	testkit.Must(t, w.Enter(1, nil, 1))
	w.Park()
	testkit.Check(t, !w.parked, "an event that is in no file was parked")
	testkit.Must(t, w.Close())
	w.Park()
	testkit.Check(t, !w.parked, "a closed writer was parked")
}
