// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/config"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/flock"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/provenance"
	"github.com/nccl-otf2/nccl-otf2/internal/regular"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// Salvage saves what processes recorded into files in shared memory (setting RING=shm) when both they and their
// collectors were killed. It converts the rest, as a collector does that takes over from a dead one, and removes the
// files. It returns the number of processes saved. It touches only files of this user whose processes ran on this
// machine and have ended. The error names each file that could not be converted; the others are converted nevertheless.
//
// A killed process releases its memory somewhat later than others see it end, and later still while somebody reads its
// files in /proc. So Salvage waits for files in use, and reports an error for those that stay in use.
func Salvage(directory string) (saved int, err error) {
	entries, err := experiment.List(directory)
	if err != nil {
		return 0, err
	}
	return SalvageOf(directory, entries)
}

// SalvageOf is Salvage for a directory whose shards have been listed.
func SalvageOf(directory string, entries []experiment.Entry) (saved int, err error) {
	boot := experiment.BootID()
	deadline := time.Now().Add(releaseLimit)
	var problems []error
	for _, e := range entries {
		p := e.Process
		if p == nil || p.Memory.Kind != memoryShm || p.Memory.Path == "" || p.BootID != boot ||
			e.State == experiment.Writing {
			continue
		}
		if e.ProcessLives() {
			continue // the plugin starts another collector, or writes a spool file
		}
		finished, writing := false, false
		for _, o := range entries {
			if o.Process != nil && sameProcess(o.Process, p) {
				finished, writing = finished || o.Process.Finished, writing || o.State == experiment.Writing
			}
		}
		if writing {
			continue // its collector removes the file
		}
		if spools(directory, p) {
			// convert handles it with the raw file: its shard may be incomplete, and may be made again
			continue
		}
		done, err := salvage(p, finished, directory, deadline)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", p.Memory.Path, err))
		} else if done {
			saved++
		}
	}
	further, more := salvageUnlisted(directory, entries, deadline)
	behind, err := saveBacklogs(directory, entries)
	return saved + further + behind, errors.Join(append(append(problems, more...), err)...)
}

// releaseLimit is the total time that Salvage waits for files in use.
var releaseLimit = 5 * time.Second

// salvage converts the rest of one process's memory. It returns false if there is nothing to convert. finished: a
// collector has finished the process's shard, so that only the file is left.
func salvage(p *description.Process, finished bool, directory string, deadline time.Time) (bool, error) {
	memory, file, err := openLeft(p, deadline)
	if memory == nil {
		return false, err
	}
	defer memory.Close()
	if finished {
		file.remove(p.Memory)
		return false, nil
	}
	r, err := newRecording(memory, config.RecordedSettings(p.Settings), config.Launcher(p.Launcher), directory,
		uuid.NewString())
	if err != nil {
		return false, err
	}
	round, err := memory.Refresh()
	if err == nil {
		r.drain.line.add(round.Clock)
		r.drainAll()
		// nothing was recorded, and no earlier collector's losses are to be described
		if r.drain.records == 0 && r.dead.last == nil {
			r.shard.store.Remove()
			file.remove(p.Memory)
			return false, nil
		}
		r.shard.end = &description.End{Called: memory.Ended()}
		err = r.finish(true)
	}
	if err != nil {
		r.shard.store.Remove()
		return false, err
	}
	file.remove(p.Memory)
	r.removeBacklogs()
	return true, nil
}

// spools reports whether a process wrote a raw file.
func spools(directory string, p *description.Process) bool {
	info, err := os.Lstat(filepath.Join(directory, experiment.Folder,
		fmt.Sprintf("%s-%d-%04x%s", regular.FileName(p.Host), p.PID, p.Tag, experiment.SpoolSuffix)))
	return err == nil && info.Size() > 0
}

// openLeft opens the file that contains a dead process's memory. memory is nil if the file is gone, or belongs to
// another process by now.
func openLeft(p *description.Process, deadline time.Time) (memory *shm.Memory, file inode, err error) {
	fd, err := unix.Open(p.Memory.Path, unix.O_RDWR|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, file, nil // the collector has removed it
	} else if err != nil {
		return nil, file, err
	}
	return takeLeft(fd, p, deadline)
}

// takeLeft does the work of openLeft on an open file. It takes over the descriptor.
func takeLeft(fd int, p *description.Process, deadline time.Time) (memory *shm.Memory, file inode, err error) {
	if file, err = lockLeft(fd, deadline); err != nil || file == (inode{}) {
		unix.Close(fd)
		return nil, file, err
	}
	if memory, err = shm.Map(fd); err != nil {
		return nil, file, err
	}
	if h := memory.Header(); h.Boot() != p.BootID || int(h.PID) != p.PID || h.PIDStart != p.PIDStart ||
		uint16(h.Tag) != p.Tag {
		return nil, file, memory.Close() // it is another process's
	}
	return memory, file, nil
}

// lockLeft waits until no process holds the file. It returns a zero inode if another process has saved the file
// meanwhile.
func lockLeft(fd int, deadline time.Time) (inode, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return inode{}, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || int(st.Uid) != os.Geteuid() {
		return inode{}, errors.New("it is not a file of this user")
	}
	if err := flock.Await(fd, deadline); err != nil {
		return inode{}, errors.New(
			"it is in use: the process, or a collector of it, lives, or somebody else saves it: unify again when " +
				"they have ended")
	}
	if err := unix.Fstat(fd, &st); err != nil || st.Nlink == 0 {
		return inode{}, err
	}
	return inode{uint64(st.Dev), st.Ino}, nil
}

// inode identifies a file independently of its path.
type inode struct{ device, number uint64 }

func inodeOf(fd int) inode {
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil {
		return inode{}
	}
	return inode{uint64(st.Dev), st.Ino}
}

// remove removes the file of the memory, unless the path now leads to another file.
func (i inode) remove(m provenance.Memory) {
	var st unix.Stat_t
	if m.Kind != memoryShm || m.Path == "" || unix.Lstat(m.Path, &st) != nil || (inode{uint64(st.Dev), st.Ino}) != i {
		return
	}
	_ = os.Remove(m.Path) // the next `unify` tries again
}
