// SPDX-License-Identifier: Apache-2.0

package otf2

import "testing"

// Iterations that run beside each other share the room for windows, and do not have it each.
func TestIterationsShareMemory(t *testing.T) {
	a, err := Open("testdata/mapping/mapping.otf2", &ReadOptions{Memory: 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	for among, want := range map[int]int{0: 64 << 10, 8: 8 << 10, 1 << 20: smallWindow} {
		if got := a.window(among); got != want {
			t.Errorf("%d locations: windows of %d bytes, want %d", among, got, want)
		}
	}
}
