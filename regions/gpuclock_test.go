// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// A GPU clock with an offset of hours, drift and a granularity of 32 ns is found again: a stamp is mapped
// to no time before it was taken, and later by no more than the delay of any report, plus what the
// clocks can drift apart on the way to it.
func TestGPUClockFindsTheLowerEnvelope(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		offset := rapid.Int64Range(-1e14, 1e14).Draw(t, "offset")
		drift := rapid.Float64Range(-25e-6, 25e-6).Draw(t, "drift")
		quick := rapid.Uint64Range(200, 5_000).Draw(t, "quickest delay")
		n := rapid.IntRange(50, 2000).Draw(t, "reports")
		seed := rapid.Uint64().Draw(t, "seed")
		next := func() uint64 { // xorshift: delays need not shrink
			seed ^= seed<<13 | 1
			seed ^= seed >> 7
			seed ^= seed << 17
			return seed
		}
		const hostStart = uint64(1_795_000_000_000_000_000)
		gpu := func(host uint64) uint64 {
			dx := float64(host - hostStart)
			return (host + uint64(offset) + uint64(int64(math.Round(drift*dx)))) &^ 31
		}
		k := &gpuClock{}
		type report struct{ host, delay uint64 }
		var reports []report
		host := hostStart
		for range n {
			host += 1_000_000 + next()%9_000_000
			delay := quick + next()%quick
			if next()%3 != 0 {
				delay += next() % 3_000_000
			}
			k.add(gpu(host), host+delay)
			reports = append(reports, report{host, delay})
		}
		k.fit(true)
		first := k.envelope[0].g
		for h := hostStart + 1_000_000; h < host; h += (host - hostStart) / 50 {
			if gpu(h) < first {
				continue // forgotten
			}
			got, _ := k.host(gpu(h))
			late, limit := int64(got-h), int64(math.MaxInt64)
			for _, r := range reports {
				limit = min(limit, int64(r.delay)+int64(2*maxDrift*math.Abs(float64(int64(h-r.host)))))
			}
			limit += int64(math.Ceil(2*maxDrift*bucketNs)) + 64 // of a bucket only the quickest report is kept
			if late < -32 || late > limit {
				t.Fatalf("%d ns late at %d ms, at most %d are explained", late, (h-hostStart)/1e6, limit)
			}
		}
	})
}

func TestGPUClockForgetsOldReports(t *testing.T) {
	k := &gpuClock{}
	for i := uint64(0); i < 5*windowNs/bucketNs; i++ {
		k.add(i*bucketNs, i*bucketNs+1000)
	}
	k.fit(true)
	if got, limit := len(k.points), pruneAtSize; got > limit {
		t.Errorf("%d points kept, want at most %d", got, limit)
	}
}
