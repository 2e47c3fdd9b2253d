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
	"github.com/nccl-otf2/nccl-otf2/internal/regular"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// Salvage saves what processes recorded into files in shared memory (setting RING=shm) when both they and their
// collectors were killed: it converts the rest, as a collector does that takes over from a dead one, and removes the
// files. It returns how many there were. Only files of this user and of processes of this machine that have ended are
// touched. An error names each file that could not be converted; the others are done all the same.
//
// A process that was killed releases its memory a little later than others see it end, and later still while somebody
// reads its files in /proc. So Salvage waits for a file in use, and names it if it stays in use.
func Salvage(directory string) (saved int, err error) {
	entries, err := experiment.List(directory)
	if err != nil {
		return 0, err
	}
	return SalvageOf(directory, entries)
}

// SalvageOf is Salvage of a directory whose shards have been looked at.
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
			// goes with the raw file, see Convert: whose shard can say that all is in it, and still be made anew
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

// releaseLimit is how long Salvage waits, in all, for files that are in use.
var releaseLimit = 5 * time.Second

// salvage converts the rest of one process's memory; false if there is nothing to convert. If a collector has
// finished with the process, only the file was left.
func salvage(p *experiment.Process, finished bool, directory string, deadline time.Time) (bool, error) {
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
		// nothing was recorded; of what a dead collector had taken, it is known what is lost
		if r.drain.records == 0 && r.dead.last == nil {
			r.shard.store.Remove()
			file.remove(p.Memory)
			return false, nil
		}
		r.shard.end = &experiment.End{Called: memory.Ended()}
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
func spools(directory string, p *experiment.Process) bool {
	info, err := os.Lstat(filepath.Join(directory, experiment.Folder,
		fmt.Sprintf("%s-%d-%04x%s", regular.FileName(p.Host), p.PID, p.Tag, experiment.SpoolSuffix)))
	return err == nil && info.Size() > 0
}

// openLeft opens the file that a dead process's memory lies in; nil if it is not there any more, or is another
// process's by now.
func openLeft(p *experiment.Process, deadline time.Time) (memory *shm.Memory, file inode, err error) {
	fd, err := unix.Open(p.Memory.Path, unix.O_RDWR|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, file, nil // the collector has removed it
	} else if err != nil {
		return nil, file, err
	}
	return takeLeft(fd, p, deadline)
}

// takeLeft does so when the file is open. It takes over the descriptor.
func takeLeft(fd int, p *experiment.Process, deadline time.Time) (memory *shm.Memory, file inode, err error) {
	if file, err = lockLeft(fd, deadline); err != nil || file == (inode{}) {
		unix.Close(fd)
		return nil, file, err
	}
	if memory, err = shm.Map(fd); err != nil {
		return nil, file, err
	}
	if h := memory.Header(); h.Boot() != p.BootID || int(h.PID) != p.PID || h.PIDStart != p.PIDStart ||
		uint16(h.Tag) != p.Tag {
		return nil, file, memory.Close() // its own shard says so
	}
	return memory, file, nil
}

// lockLeft waits until nobody holds the file any more; no inode if somebody else has saved it meanwhile.
func lockLeft(fd int, deadline time.Time) (inode, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return inode{}, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || int(st.Uid) != os.Geteuid() {
		return inode{}, errors.New("it is not a file of this user")
	}
	if err := experiment.AwaitLock(fd, deadline); err != nil {
		return inode{},
			errors.New(
				"it is in use: the process, or a collector of it, lives, or somebody else saves it: unify again when " +
					"they have ended")
	}
	if err := unix.Fstat(fd, &st); err != nil || st.Nlink == 0 {
		return inode{}, err
	}
	return inode{uint64(st.Dev), st.Ino}, nil
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
func (i inode) remove(m experiment.Memory) {
	var st unix.Stat_t
	if m.Kind != memoryShm || m.Path == "" || unix.Lstat(m.Path, &st) != nil || (inode{uint64(st.Dev), st.Ino}) != i {
		return
	}
	_ = os.Remove(m.Path) // what cannot be removed is found by the next `unify`
}
