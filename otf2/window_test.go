// SPDX-License-Identifier: Apache-2.0

package otf2

import (
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// Iterations that run beside each other share the room for windows, and do not have it each.
func TestIterationsShareMemory(t *testing.T) {
	a := testkit.Value(Open("testdata/mapping/mapping.otf2", &ReadOptions{Memory: 64 << 10}))(t)
	for among, want := range map[int]int{0: 64 << 10, 8: 8 << 10, 1 << 20: smallWindow} {
		got := a.window(among)
		testkit.Check(t, got == want, "%d locations: windows of %d bytes, want %d", among, got, want)
	}
}
