// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"fmt"
	"os/exec"
	"syscall"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/provenance"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// part is a shard to be found: the launcher's rank, its communicators as id, ranks, rank; and how
// far it is.
type part struct {
	rank      int
	comms     [][3]int
	state     experiment.State
	locations int
}

func TestLastOfTheJob(t *testing.T) {
	pair := func(rank int) [][3]int { return [][3]int{{1, 2, rank}} }
	for _, tc := range []struct {
		name  string
		size  int
		parts []part
		want  bool
	}{
		{"one of one", 1, []part{{0, nil, experiment.Done, 1}}, true},
		{"one of two", 2, []part{{0, pair(0), experiment.Done, 1}}, false},
		{"two of two", 2, []part{{0, pair(0), experiment.Done, 1}, {1, pair(1), experiment.Done, 1}}, true},
		{"the same rank twice", 2, []part{{0, pair(0), experiment.Dead, 1}, {0, pair(0), experiment.Done, 1}}, false},
		{"the other one still writes", 2, []part{{0, pair(0), experiment.Done, 1}, {1, pair(1), experiment.Writing, 1}},
			false},
		{"another has just begun", 2, []part{{0, pair(0), experiment.Done, 1}, {1, pair(1), experiment.Starting, 1}},
			false},
		{"the other one died", 2, []part{{0, pair(0), experiment.Done, 1}, {1, pair(1), experiment.Dead, 1}}, true},
		{"no launcher, one rank missing", -1, []part{{-1, pair(0), experiment.Done, 1}}, false},
		{"no launcher, all there", -1, []part{{-1, pair(0), experiment.Done, 1}, {-1, pair(1), experiment.Done, 1}},
			true},
		{"no launcher, second communicator lacks one", -1, []part{
			{-1, [][3]int{{1, 2, 0}, {2, 3, 0}}, experiment.Done, 1},
			{-1, [][3]int{{1, 2, 1}, {2, 3, 1}}, experiment.Done, 1}}, false},
		{"no launcher, all ranks in one process", -1, []part{{-1, [][3]int{{1, 2, 0}, {1, 2, 1}}, experiment.Done, 1}},
			true},
		{"too many locations", 1, []part{{0, nil, experiment.Done, 2001}}, false},
		{"as many as may be", 1, []part{{0, nil, experiment.Done, 2000}}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			for i, p := range tc.parts {
				s := testkit.Value(experiment.Create(dir, fmt.Sprint(i)))(t)
				defer s.Close()
				if p.state == experiment.Starting {
					continue
				}
				d := &description.Process{Version: description.Version,
					Launcher:  provenance.Launcher{Rank: p.rank, Size: tc.size},
					Locations: make([]description.Location, p.locations)}
				for _, c := range p.comms {
					d.Comms = append(d.Comms, description.Comm{ID: uint64(c[0]), NRanks: c[1], Rank: c[2]})
				}
				testkit.Must(t, s.Write(d))
				if p.state == experiment.Done {
					testkit.Must(t, s.Finish())
				}
				if p.state != experiment.Writing {
					s.Close()
				}
			}
			got, err := isLast(dir)
			testkit.Check(t, err == nil && got == tc.want, "%v, %v; want %v", got, err, tc.want)
		})
	}
}

func TestProcessWatch(t *testing.T) {
	p := startProcess(t)
	pid := p.cmd.Process.Pid
	other, err := watchProcess(pid, 1)
	testkit.Check(t, err == nil && other.hasEnded(), "a later process of the same number: %v, %v", other, err)
	other.close()
	start := testkit.Value(shm.ProcessStart(pid))(t)
	w, err := watchProcess(pid, start)
	testkit.Require(t, err == nil && !w.hasEnded(), "a living process: %v, %v", w, err)
	defer w.close()
	old, err := watchDescriptor(-1, pid, start) // as on kernels without pidfd
	testkit.Check(t, err == nil && !old.hasEnded(), "a living process, without pidfd: %v", err)
	defer old.close()
	p.end()
	<-w.over
	<-old.over
	testkit.Check(t, w.hasEnded() && old.hasEnded(), "an ended process")
	w, err = watchProcess(1<<30, 1)
	testkit.Check(t, err == nil && w.hasEnded(), "no process: %v, %v", w, err)
}

// How a process ended is known whether its parent has fetched the status (which Linux tells others of since 6.15) or
// not yet, and when it did.
func TestProcessWatchTellsHowItEnded(t *testing.T) {
	for _, signal := range []syscall.Signal{0, syscall.SIGKILL, syscall.SIGTERM, syscall.SIGSEGV, syscall.SIGABRT} {
		for _, fetched := range []bool{false, true} {
			if fetched && !tellsExits() {
				continue
			}
			t.Run(fmt.Sprintf("%d-%v", signal, fetched), func(t *testing.T) {
				// A signal to a Go program is the runtime's; to a shell it is the system's.
				cmd := exec.Command("/bin/sh", "-c", "read line; exit 3")
				stdin := testkit.Value(cmd.StdinPipe())(t)
				testkit.Must(t, cmd.Start())
				defer cmd.Wait()
				start := testkit.Value(shm.ProcessStart(cmd.Process.Pid))(t)
				w := testkit.Value(watchProcess(cmd.Process.Pid, start))(t)
				defer w.close()
				before := shm.ReadClock(shm.ClockMonotonic).Raw
				want := uint32(signal)
				if signal == 0 {
					stdin.Close()
					want = 3 << 8
				} else {
					testkit.Must(t, cmd.Process.Signal(signal))
				}
				if fetched {
					cmd.Wait()
				}
				<-w.over
				testkit.Check(t, w.hasEnded() && w.end.status != nil && *w.end.status&^0x80 == want,
					"gone %v, %+v; want status %#x", w.hasEnded(), w.end, want)
				if now := shm.ReadClock(shm.ClockMonotonic).Raw; w.end.raw < before || w.end.raw > now {
					t.Errorf("ended at %d, not between %d and %d", w.end.raw, before, now)
				}
			})
		}
	}
}
