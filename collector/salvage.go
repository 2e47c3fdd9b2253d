// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"ncclotf2/config"
	"ncclotf2/plugin/shm"
	"ncclotf2/shard"
)

// Salvage saves what processes recorded into files in shared memory (setting RING=shm) when both they and their
// collectors were killed: it converts the rest, as a collector does that takes over from a dead one, and removes
// the files. It returns how many there were. Only files of this user and of processes of this machine that have ended are
// touched. An error names each file that could not be converted; the others are done all the same.
func Salvage(experiment string) (saved int, err error) {
	entries, err := shard.List(experiment)
	if err != nil {
		return 0, err
	}
	boot := bootID()
	var problems []error
	for _, e := range entries {
		p := e.Process
		if p == nil || p.Memory.Kind != memoryShm || p.Memory.Path == "" || p.BootID != boot || e.State == shard.Writing {
			continue
		}
		if start, err := shm.ProcessStart(p.PID); err == nil && start == p.PIDStart {
			continue // the plugin starts another collector, or writes a spool file
		}
		finished := slices.ContainsFunc(entries, func(o shard.Entry) bool {
			return o.Process != nil && o.Process.Finished && sameProcess(o.Process, p)
		})
		done, err := salvage(p, finished, experiment)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", p.Memory.Path, err))
		} else if done {
			saved++
		}
	}
	return saved, errors.Join(problems...)
}

func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// salvage converts the rest of one process's memory; false if there is nothing to convert. If a collector has
// finished with the process, only the file was left.
func salvage(p *shard.Process, finished bool, experiment string) (bool, error) {
	fd, err := unix.Open(p.Memory.Path, unix.O_RDWR|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil // the collector has removed it
	} else if err != nil {
		return false, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return false, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || int(st.Uid) != os.Geteuid() {
		unix.Close(fd)
		return false, errors.New("it is no file of this user")
	}
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		unix.Close(fd)
		return false, nil // the process or its collector lives, or somebody else is at it
	}
	file := inodeOf(fd)
	memory, err := shm.Map(fd)
	if err != nil {
		return false, err
	}
	defer memory.Close()
	h := memory.Header()
	if h.Boot() != p.BootID || int(h.PID) != p.PID || h.PIDStart != p.PIDStart || uint16(h.Tag) != p.Tag {
		return false, nil // of another process; its own shard says so
	}
	if finished {
		file.remove(p.Memory)
		return false, nil
	}
	r, err := newRecording(memory, config.Recorded(p.Settings), config.Launcher(p.Launcher), experiment)
	if err != nil {
		return false, err
	}
	round, err := memory.Refresh()
	if err == nil {
		r.line.add(round.Clock)
		r.takeRest()
		if r.records == 0 { // the collector was killed when only the file was left to be removed
			r.store.Remove()
			file.remove(p.Memory)
			return false, nil
		}
		err = r.finish(true)
	}
	if err != nil {
		r.store.Remove()
		return false, err
	}
	file.remove(p.Memory)
	return true, nil
}

// inode names a file for good.
type inode struct{ device, number uint64 }

func inodeOf(fd int) inode {
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil {
		return inode{}
	}
	return inode{uint64(st.Dev), st.Ino}
}

// remove removes the file that memory lies in, if the path still means that one.
func (i inode) remove(m shard.Memory) {
	var st unix.Stat_t
	if m.Kind != memoryShm || m.Path == "" || unix.Lstat(m.Path, &st) != nil || (inode{uint64(st.Dev), st.Ino}) != i {
		return
	}
	_ = os.Remove(m.Path) // what cannot be removed is found by the next `unify`
}
