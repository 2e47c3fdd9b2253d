// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// HasCounter reports whether this build can read the counter of a clock source.
func HasCounter(source ClockSource) bool {
	return source == counterSource || source == ClockMonotonic || source == ClockHost
}

// brackets is how often each pair of clocks is read at most; the tightest reading counts. A reading takes some 100 ns,
// on many machines a system call each, and one that is not interrupted is enough.
const brackets = 5

// bracket reads a pair of clocks until a reading is about as tight as the tightest so far.
type bracket struct{ tightest atomic.Uint64 }

// Of the counter, of CLOCK_MONOTONIC and of CLOCK_REALTIME, each with CLOCK_MONOTONIC_RAW.
var ofCounter, ofMonotonic, ofReal bracket

// read calls once several times, which returns the distance of the readings around a reading, and its values, and
// returns the values with the least distance.
func (b *bracket) read(once func() (distance, x, y uint64)) (x, y uint64) {
	tightest := b.tightest.Load()
	best := ^uint64(0)
	for range brackets {
		distance, u, v := once()
		if distance < best {
			best, x, y = distance, u, v
		}
		if best <= tightest+tightest/4 {
			break
		}
	}
	if tightest == 0 || best < tightest {
		b.tightest.Store(best)
	} else {
		b.tightest.Store(tightest + (best-tightest+255)/256) // machines change
	}
	return x, y
}

// ReadClock reads all clocks at one instant. The counter lies between two readings whose distance
// bounds the error (some 100 ns). With ClockHost, or a counter that this processor does not have,
// Ticks is 0.
func ReadClock(source ClockSource) ClockTuple {
	var t ClockTuple
	if source == counterSource {
		t.Ticks, t.Raw = ofCounter.read(func() (distance, ticks, raw uint64) {
			a := counter()
			raw = clock(unix.CLOCK_MONOTONIC_RAW)
			b := counter()
			return b - a, a + (b-a)/2, raw
		})
	} else {
		t.Raw = clock(unix.CLOCK_MONOTONIC_RAW)
	}
	t.Mono = t.Raw + offset(&ofMonotonic, unix.CLOCK_MONOTONIC)
	t.Real = t.Raw + offset(&ofReal, unix.CLOCK_REALTIME)
	if source == ClockMonotonic {
		t.Ticks = t.Mono
	}
	return t
}

// offset is a clock minus CLOCK_MONOTONIC_RAW, modulo 2⁶⁴.
func offset(pair *bracket, id int32) uint64 {
	diff, _ := pair.read(func() (distance, diff, _ uint64) {
		a := clock(unix.CLOCK_MONOTONIC_RAW)
		v := clock(id)
		b := clock(unix.CLOCK_MONOTONIC_RAW)
		return b - a, v - (a + (b-a)/2), 0
	})
	return diff
}

func clock(id int32) uint64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(id, &ts) // cannot fail for these clocks
	return uint64(ts.Nano())
}
