// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/fakegpu"
)

// loops are processes that do nothing but keep the machine busy. What need not be starved is not to run beside them:
// other tests are slowed down as much.
type loops []*exec.Cmd

// burnCPU starts loops, which end with the test.
func burnCPU(t *testing.T, processes int) (all loops) {
	t.Helper()
	for range processes {
		c := exec.Command("sh", "-c", "while :; do :; done")
		testkit.Must(t, c.Start())
		t.Cleanup(func() {
			_ = c.Process.Kill()
			_ = c.Wait()
		})
		all = append(all, c)
	}
	return all
}

func (l loops) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	for _, c := range l {
		testkit.Must(t, c.Process.Signal(s))
	}
}

func (l loops) pause(t *testing.T) { t.Helper(); l.signal(t, syscall.SIGSTOP) }
func (l loops) goOn(t *testing.T)  { t.Helper(); l.signal(t, syscall.SIGCONT) }

// Of jobs that are over before the plugin's thread has had the CPU, every kernel is drawn, and every one of NCCL's
// launches is linked.
func TestKernelsOfShortJobsOnALoadedMachine(t *testing.T) {
	busy := burnCPU(t, 6)
	for _, rec := range recordings(t, "01-allreduce-2p", "04-threads-4r", "07-twocomms-streams") {
		t.Run(rec.Name, func(t *testing.T) {
			for range 4 {
				dir := filepath.Join(t.TempDir(), "experiment")
				busy.goOn(t)
				res := playKernels(t, rec, dir, clock(replay.ClockLive))
				busy.pause(t)
				waitDone(t, dir, len(rec.Processes))
				var kernels, launched, unannounced uint64
				for i := range res.Processes {
					for _, k := range fakegpu.Ran(t, &res.Processes[i]).Kernels {
						kernels++
						switch {
						case k.Event != 0:
							launched++
						case strings.Contains(k.Name, "nccl"):
							unannounced++
						}
					}
				}
				counts := sumCUPTI(shardsByProcess(t, dir))
				testkit.Check(t, launched != 0 && counts["KERNELS"] == kernels &&
					counts["KERNELS_LINKED"] == launched && counts["NCCL_KERNELS_UNLINKED"] == unannounced,
					"%d kernels ran, %d of them by NCCL's launches, %d by others of its: %v", kernels, launched,
					unannounced, counts)
				for _, missed := range []string{"WITHOUT_TIMES", "WITHOUT_CLOCK", "WITHOUT_ROW", "UNDRAWN"} {
					testkit.Equal(t, counts[missed], 0, "%s: kernels are not drawn", missed)
				}
			}
		})
	}
}
