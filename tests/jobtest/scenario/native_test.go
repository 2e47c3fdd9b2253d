// SPDX-License-Identifier: Apache-2.0

package scenario

import "testing"

func TestNativeAPI(t *testing.T) {
	for release, want := range map[string]int{
		"2.23.4": 1, "2.24.3": 2, "2.25.1": 2, "2.26.6": 3, "2.27.7": 4, "2.28.9": 5, "2.29.7": 6, "2.30.7": 6,
		"2.31.2": 7, "2.32": 7,
	} {
		if got, err := NativeAPI(release); err != nil || got != want {
			t.Errorf("NCCL %s speaks version %d (%v), want %d", release, got, err, want)
		}
	}
	for _, release := range []string{"", "2.22.3", "3.0.0", "two", "2.29.7.1", "2.-29"} {
		if got, err := NativeAPI(release); err == nil {
			t.Errorf("NCCL %q speaks version %d", release, got)
		}
	}
}
