// SPDX-License-Identifier: Apache-2.0

package control

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

func TestFirstDifference(t *testing.T) {
	small := rapid.Custom(func(t *rapid.T) shm.Window {
		return shm.Window{First: rapid.Uint64Range(0, 12).Draw(t, "first"),
			Last: rapid.Uint64Range(0, 12).Draw(t, "last")}
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := small.Draw(t, "a"), small.Draw(t, "b")
		at, differ := FirstDifference(a, b)
		for x := range uint64(14) {
			if inside(a, x) != inside(b, x) {
				testkit.Require(t, differ && at == x, "%v and %v: %d, %v; want %d", a, b, at, differ, x)
				return
			}
		}
		testkit.Require(t, !differ, "%v and %v: %d, and they hold the same", a, b, at)
	})
}
