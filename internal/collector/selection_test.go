// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"math"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/config"
	"github.com/nccl-otf2/nccl-otf2/internal/collector/control"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shmtest"
)

func TestSelection(t *testing.T) {
	const kernels = 1<<10 | 1<<4 | 1<<39
	for _, tc := range []struct {
		vars          string
		api           uint32
		event, record uint32
		window        shm.Window
		cupti         uint64
	}{
		{"", 6, 0x0f47, 0x0f47, control.Everything, 0},
		{"NCCL_OTF2_EVENTS=all", 7, 0xffff, 0xffff, control.Everything, 0},
		{"NCCL_OTF2_EVENTS=all", 6, 0x7fff, 0x7fff, control.Everything, 0},
		{"NCCL_OTF2_EVENTS=all", 4, 0xff, 0xff, control.Everything, 0},
		{"NCCL_OTF2_EVENTS=gpu", 2, 0x7, 0x7, control.Everything, 0},
		{"NCCL_OTF2_START=paused", 6, 0x0f47, 0x0f47 | shm.RecordInWindow, control.Nothing, 0},
		{"NCCL_OTF2_WINDOW=ops:100-200", 6, 0x0f47, 0x0f47 | shm.RecordInWindow, shm.Window{First: 100, Last: 200}, 0},
		{"NCCL_OTF2_WINDOW=ops:100-", 6, 0x0f47, 0x0f47 | shm.RecordInWindow,
			shm.Window{First: 100, Last: math.MaxUint64}, 0},
		{"NCCL_OTF2_MODE=record", 6, 0x7fff, 0x7fff | shm.RecordRaw, control.Everything, 0},
		{"NCCL_OTF2_MODE=record NCCL_OTF2_EVENTS=light NCCL_OTF2_START=paused", 7, 0xffff,
			0xffff | shm.RecordRaw | shm.RecordInWindow, control.Nothing, 0},
		{"NCCL_OTF2_MODE=record NCCL_OTF2_RANKS=1 RANK=0", 6, 0, shm.RecordRaw, control.Everything, 0},
		{"NCCL_OTF2_CUPTI=on", 6, 0x0f47, 0x0f47, control.Everything, kernels},
		{"NCCL_OTF2_CUPTI=memset", 6, 0x0f47, 0x0f47, control.Everything, kernels | 1<<2},
		{"NCCL_OTF2_CUPTI=on NCCL_OTF2_RANKS=1 RANK=0", 6, 0, 0, control.Everything, 0},
		{"NCCL_OTF2_CUPTI=on NCCL_OTF2_MODE=record", 6, 0x7fff, 0x7fff | shm.RecordRaw, control.Everything, 0},
	} {
		lookup := environment(strings.Fields(tc.vars)...)
		s := testkit.Value(config.Load(lookup))(t)
		got := selectBy(s, config.FindLauncher(lookup), &shm.Header{APIVersion: tc.api})
		want := (selection{tc.event, tc.record, tc.window, tc.cupti})
		testkit.Check(t, got == want, "%s, API v%d: %#x, want %#x", tc.vars, tc.api, got, want)
	}
}

// The plugin finds windows and masks in place when the collector says that it is ready, also for the
// communicator whose init started it.
func TestWindowIsInPlaceBeforeReady(t *testing.T) {
	job, process := newJob(t, shmtest.Options{})
	comm := job.Comm(shm.Comm{APIVersion: 6, ID: 1, NRanks: 2, InitTicks: 1e9}, nil)
	wait := startRun(t, job, Options{Lookup: environment("NCCL_OTF2_DIR="+t.TempDir(), "NCCL_OTF2_WINDOW=ops:5-9")})
	memory := mapped(t, job)
	h := memory.Header()
	c, _ := memory.Comm(comm)
	testkit.Check(t, c.Window == (shm.Window{First: 5, Last: 9}) && h.WindowFirst == 5 && h.WindowLast == 9,
		"window %v of the communicator, %d to %d of new ones", c.Window, h.WindowFirst, h.WindowLast)
	testkit.Check(t, h.RecordMask&shm.RecordInWindow != 0 && h.EventMask&shm.RecordInWindow == 0,
		"masks %#x, %#x", h.EventMask, h.RecordMask)
	process.end()
	err := wait()
	testkit.Check(t, err == nil, "%v", err)
}

// mapped looks at a job's memory as a collector does.
func mapped(t *testing.T, job *shmtest.Job) *shm.Memory {
	t.Helper()
	m := testkit.Value(shm.Map(job.FD()))(t)
	t.Cleanup(func() { m.Close() })
	return m
}
