// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/config"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/flock"
	"github.com/nccl-otf2/nccl-otf2/internal/regular"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// errUnread ends a recording that leaves part of its backlog undecoded, because that cannot be read or because there
// was no time for it. The shard and the backlog stay for `unify`.
var errUnread = errors.New(
	"not all that was recorded has been decoded: unify makes events of the rest, which is in the backlog")

// deadBacklog is a dead collector's backlog, of which this collector takes what is in no shard.
type deadBacklog struct {
	path string
	file *os.File
}

// leftBacklog is the backlog of a process that is gone, with its memory.
type leftBacklog struct {
	*shm.Spool
	path string
}

// isOf reports whether a source reads this file.
func isOf(source shm.Source, path string) bool {
	left, ok := source.(leftBacklog)
	return ok && left.path == path
}

// hasBacklog reports whether there is something in a shard's backlog.
func hasBacklog(shard string) bool {
	info, err := os.Lstat(filepath.Join(shard, experiment.BacklogFile))
	return err == nil && info.Size() > 0
}

// adoptBacklogs has the source give the records in the backlogs of dead collectors before its own. In the end all these
// files are removed, even empty ones. A backlog that somebody else has taken meanwhile is left out.
func (d *predecessors) adoptBacklogs(source shm.Source, paths []string) error {
	changed := make(map[string]time.Time)
	for _, path := range paths {
		if info, err := os.Lstat(path); err == nil {
			changed[path] = info.ModTime()
		}
	}
	paths = slices.DeleteFunc(paths, func(path string) bool { return changed[path].IsZero() })
	// one after the other wrote them
	slices.SortFunc(paths, func(a, b string) int { return changed[a].Compare(changed[b]) })
	for _, path := range paths {
		file, size, err := openBacklog(path)
		if err != nil {
			return err
		}
		if file == nil {
			continue
		}
		e, err := shm.Index(file, size)
		if err != nil {
			file.Close()
			return fmt.Errorf("%s: %w", path, err)
		}
		source.Precede(e)
		d.backlogs = append(d.backlogs, deadBacklog{path, file})
	}
	return nil
}

// openBacklog opens and locks a dead collector's backlog; nil if somebody else has taken it.
func openBacklog(path string) (*os.File, int64, error) {
	file, err := regular.OpenOwn(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	} else if err != nil {
		return nil, 0, err
	}
	var info os.FileInfo
	if err = flock.Await(int(file.Fd()), time.Now().Add(releaseLimit)); err == nil {
		info, err = file.Stat()
	}
	if err != nil {
		file.Close()
		return nil, 0, fmt.Errorf("%s: %w", path, err)
	}
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		file.Close()
		return nil, 0, nil
	}
	return file, info.Size(), nil
}

// removeBacklogs removes the backlogs of dead collectors, whose records are all in this shard.
func (d *predecessors) removeBacklogs() {
	for _, b := range d.backlogs {
		_ = os.Remove(b.path) // else the next `unify` does
		_ = b.file.Close()
	}
	d.backlogs = nil
}

// unlockBacklogs lets another attempt adopt the backlogs. They stay open: the source reads their records through these
// files, and takes no record of them twice.
func (d *predecessors) unlockBacklogs() {
	for _, b := range d.backlogs {
		_ = unix.Flock(int(b.file.Fd()), unix.LOCK_UN)
	}
}

// closeBacklogs closes them after the last record.
func (d *predecessors) closeBacklogs() {
	for _, b := range d.backlogs {
		_ = b.file.Close()
	}
}

// removeBacklogs removes all backlogs of a process whose shard is finished.
func (r *recording) removeBacklogs() {
	r.dead.removeBacklogs()
	if r.backlog.path != "" {
		_ = os.Remove(r.backlog.path)
	}
}

// saveBacklogs makes shards of the backlogs of processes of which nothing else is left, neither the collector nor the
// memory. It returns how many processes these are. If another shard of a process is finished, everything is in it, and
// the backlogs are removed. Empty backlogs are removed, too.
func saveBacklogs(directory string, entries []experiment.Entry) (saved int, err error) {
	var problems []error
	for i, e := range entries {
		path := filepath.Join(e.Path, experiment.BacklogFile)
		if _, err := os.Lstat(path); e.Process == nil || err != nil {
			continue
		}
		finished, gone, last := false, true, true
		for k, o := range entries {
			if o.Process == nil || !sameProcess(o.Process, e.Process) {
				continue
			}
			finished = finished || o.Process.Finished
			gone = gone && o.State != experiment.Writing && !o.ProcessLives()
			last = last && (k == i || !hasBacklog(o.Path) || !laterBacklog(o.Path, e.Path))
		}
		switch {
		case finished || gone && !hasBacklog(e.Path):
			_ = os.Remove(path)
		case !gone || !last || spools(directory, e.Process) || memoryIsLeft(e.Process):
			// goes with what goes on behind it
		default:
			if err := saveBacklog(e.Process, path, directory); err != nil {
				problems = append(problems, fmt.Errorf("%s: %w", path, err))
			} else {
				saved++
			}
		}
	}
	return saved, errors.Join(problems...)
}

// laterBacklog reports whether the first of two shards' backlogs was written after that of the other.
func laterBacklog(a, b string) bool {
	of := func(shard string) time.Time {
		info, err := os.Lstat(filepath.Join(shard, experiment.BacklogFile))
		if err != nil {
			return time.Time{}
		}
		return info.ModTime()
	}
	return of(a).After(of(b)) || of(a).Equal(of(b)) && a > b
}

// memoryIsLeft reports whether a process's memory is a file, which is there.
func memoryIsLeft(p *description.Process) bool {
	if p.Memory.Kind != memoryShm {
		return false
	}
	_, err := os.Lstat(p.Memory.Path)
	return err == nil
}

// saveBacklog makes a shard of the last backlog of a process and of those before it. What the process recorded later is
// gone with its memory, so the shard is not marked as finished.
func saveBacklog(p *description.Process, path, directory string) error {
	file, size, err := openBacklog(path)
	if err != nil || file == nil {
		return err
	}
	defer file.Close()
	spool, err := shm.OpenSpool(file, size)
	if errors.Is(err, shm.ErrCorrupt) && size <= shm.HeaderSize { // its collector was killed in its first write
		return os.Remove(path)
	} else if err != nil {
		return err
	}
	spool.Within()
	r, err := newRecording(leftBacklog{spool, path}, config.RecordedSettings(p.Settings), config.Launcher(p.Launcher),
		directory, uuid.NewString())
	if err != nil {
		return err
	}
	if err = r.drainSpool(spool); err == nil && r.drain.records > 0 {
		err = r.finish(false)
	}
	if err != nil {
		r.shard.store.Remove()
		return err
	}
	if r.drain.records == 0 { // all of it was in event files: the file was just going to be emptied
		r.shard.store.Remove()
	}
	if err := keepLosses(filepath.Dir(path), &p.Counts, r.shard.process.Counts.Starts); err != nil {
		return err
	}
	r.dead.removeBacklogs()
	return os.Remove(path)
}

// keepLosses keeps in a dead collector's shard what that had counted as lost, without what has been saved from its
// backlog since: the backlog has everything that the disk had not taken otherwise.
func keepLosses(shard string, before *description.Counts, saved map[string]uint64) error {
	if len(before.Lost) == 0 {
		return nil
	}
	p, err := experiment.Read(shard)
	if err != nil {
		return err
	}
	p.Counts.Lost = make(map[string]map[string]uint64)
	for reason, by := range before.Lost {
		by = maps.Clone(by)
		if reason == shm.LossDisk.String() {
			maps.DeleteFunc(by, func(name string, n uint64) bool { return n <= saved[name] })
			for name := range by {
				by[name] -= saved[name]
			}
		}
		if len(by) > 0 {
			p.Counts.Lost[reason] = by
		}
	}
	return experiment.Rewind(shard, p)
}
