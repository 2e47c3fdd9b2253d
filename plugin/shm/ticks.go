// SPDX-License-Identifier: Apache-2.0

package shm

import "golang.org/x/sys/unix"

// HasCounter says whether this build can read the counter of a clock source.
func HasCounter(source ClockSource) bool {
	return source == counterSource || source == ClockMonotonic || source == ClockHost
}

// brackets is how often each pair of clocks is read; the tightest reading counts. A reading takes
// some 100 ns, and one that is not interrupted is enough.
const brackets = 5

// ReadClock reads all clocks at one instant. The counter lies between two readings whose distance
// bounds the error (some 100 ns). With ClockHost, or a counter that this processor does not have,
// Ticks is 0.
func ReadClock(source ClockSource) ClockTuple {
	var t ClockTuple
	if source == counterSource {
		best := ^uint64(0)
		for range brackets {
			a := counter()
			raw := clock(unix.CLOCK_MONOTONIC_RAW)
			b := counter()
			if b-a < best {
				best, t.Ticks, t.Raw = b-a, a+(b-a)/2, raw
			}
		}
	} else {
		t.Raw = clock(unix.CLOCK_MONOTONIC_RAW)
	}
	t.Mono = t.Raw + offset(unix.CLOCK_MONOTONIC)
	t.Real = t.Raw + offset(unix.CLOCK_REALTIME)
	if source == ClockMonotonic {
		t.Ticks = t.Mono
	}
	return t
}

// offset is a clock minus CLOCK_MONOTONIC_RAW, modulo 2⁶⁴.
func offset(id int32) uint64 {
	best, diff := ^uint64(0), uint64(0)
	for range brackets {
		a := clock(unix.CLOCK_MONOTONIC_RAW)
		v := clock(id)
		b := clock(unix.CLOCK_MONOTONIC_RAW)
		if b-a < best {
			best, diff = b-a, v-(a+(b-a)/2)
		}
	}
	return diff
}

func clock(id int32) uint64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(id, &ts) // cannot fail for these clocks
	return uint64(ts.Nano())
}
