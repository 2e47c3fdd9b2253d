// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// Stamps that one late report leaves off by milliseconds give way to network traffic that was over sooner, and not to
// such that took longer.
func TestVagueStampsGiveWayToTheNetwork(t *testing.T) {
	for _, c := range []struct {
		name   string
		until  uint64 // of the traffic
		report uint64 // of the stamps
		want   string
	}{
		{"vague", 170, 30_000, "120 Enter AllReduce TIMING_SOURCE=network"},
		{"traffic is longer", 40_000, 41_000, "20527 Enter AllReduce TIMING_SOURCE=gpu"},
		{"exact", 170, 176, "130 Enter AllReduce TIMING_SOURCE=gpu"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t, 4)
			s.allReduce(100, "a")
			s.proxyOp(120, "op", "a", true, 2)
			s.stop(1, c.until, shm.EventProxyOp, "op")
			s.start(1, c.report, shm.EventKernelCh, "k", "a", shm.Record{PTimer: gpu(130)})
			s.endKernel(c.report, "k", gpu(175))
			got := s.lines(description.KindRank, AttrTimingSource)
			testkit.Check(t, got[1] == c.want, "%v, want %s", got, c.want)
		})
	}
}
