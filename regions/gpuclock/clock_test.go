// SPDX-License-Identifier: Apache-2.0

package gpuclock

import (
	"math"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// Reports of a communicator rank whose counters have parted do not bend the clock of its GPU, which others share.
func TestDoubtfulStampsDoNotBendTheClock(t *testing.T) {
	const offset, beat = 5_000_000, 60_000
	var k Clock
	for i := range uint64(50_000) {
		now := 1e12 + i*beat
		k.addStamp(now, now+offset+beat, i > 1000)
		if i <= 1000 || i%5000 == 0 { // another communicator
			k.addStamp(now+7, now+7+offset+1000+i%7*100, false)
		}
	}
	k.FitLine(true)
	for i := range uint64(50_000) {
		now := 1e12 + i*beat
		at, off, ok := k.HostTime(now, now+offset+beat)
		e := math.Abs(float64(int64(at - now - offset)))
		testkit.Require(t, ok && e <= off.usual+slackNs, "stamp %d is %.0f ns off, uncertainty %.0f", i, e, off.usual)
	}
	testkit.Check(t, k.JumpCount() <= 0, "%d jumps", k.JumpCount())
}
