// SPDX-License-Identifier: Apache-2.0

package units

import (
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

func TestHumanNumbers(t *testing.T) {
	for n, want := range map[uint64]string{0: "0 B", 1023: "1023 B", 1024: "1 KiB", 1536: "1.50 KiB", 4 << 20: "4 MiB",
		10_000_000: "9.54 MiB", 1 << 40: "1 TiB"} {
		testkit.Equal(t, Bytes(n), want, "%d", n)
	}
	for n, want := range map[float64]string{0: "0 ns", 999: "999 ns", 1000: "1 µs", 12_345: "12.3 µs", 1.5e9: "1.50 s",
		1e12: "1000 s", 99_960: "100 µs", 99_940: "99.9 µs", 9_996: "10.0 µs", 9_994: "9.99 µs"} {
		testkit.Equal(t, Time(n), want, "%g", n)
	}
}

// A time that the standard library has no room for is not a negative one.
func TestDuration(t *testing.T) {
	for ns, want := range map[uint64]string{0: "0s", 1_500: "1.5µs", 2_526_844_999: "2.526844999s",
		1<<63 - 1: "2562047h47m16.854775807s", 1 << 63: "9223372037 s", 1<<64 - 7: "18446744074 s"} {
		testkit.Equal(t, Duration(ns, 1), want, "%d", ns)
	}
}
