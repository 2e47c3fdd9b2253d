// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/nccl-otf2/nccl-otf2/config"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/flock"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/rawfiles"
	"github.com/nccl-otf2/nccl-otf2/internal/regular"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// convertedSuffix is appended to the name of a complete raw file that has been converted into a shard.
const convertedSuffix = ".done"

// categoryRawFile is the category of markers, at the end of a shard, about missing parts of a raw file.
const categoryRawFile = "NCCL raw file"

// settingWhole is a key of description.Process.Settings in a shard made from a raw file: whether the raw file was
// complete.
const settingWhole = "SPOOLED_WHOLE"

// convert converts a raw file into a shard of the experiment directory. The same file always gives the same shard,
// which replaces that of an earlier conversion, even one that was killed. So no data appear twice. An empty file gives
// no shard; if its process has ended, the error is rawfiles.ErrNothingWritten. The file of a process that ended in
// order is renamed. Other files keep their names, because their processes may still be writing. If convert fails, there
// is no shard.
//
// If the process was killed and its memory is a file (setting RING=shm), convert takes the records not yet written from
// that file, then removes it. If that file is in use, it is kept for the next conversion.
//
// Raw files do not contain what the launcher states about the process.
func convert(spoolFile, directory string) (err error) {
	file, err := regular.OpenOwn(spoolFile)
	if err != nil {
		return err
	}
	defer file.Close()
	spool, bytes, written, err := openSpool(file)
	if err != nil {
		return fmt.Errorf("%s: %w", spoolFile, err)
	} else if spool == nil {
		if written {
			return nil
		}
		return fmt.Errorf("%s is %w", spoolFile, rawfiles.ErrNothingWritten)
	}
	h := spool.Header()
	name := spooledShard(&h)
	size := strconv.FormatInt(bytes, 10)
	if before := convertedBefore(directory, name, size); before != nil {
		return converted(spoolFile, before)
	}
	if err := experiment.Remove(directory, name); err != nil {
		return err
	}
	settings := statedSettings(&h)
	settings["COLLECTOR"] = "spool"
	launcher := config.Launcher{Rank: -1, Size: -1}
	r, err := newRecording(spool, config.RecordedSettings(settings), launcher, directory, name)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			r.shard.store.Remove()
			err = fmt.Errorf("%s: %w", spoolFile, err)
		}
	}()
	if err := r.drainSpool(spool); err != nil {
		return err
	}
	c := &conversion{r, spool, size}
	if written && !spool.Orderly() {
		err = c.pause(spoolFile)
	} else {
		err = c.end()
	}
	if err != nil {
		return err
	}
	return converted(spoolFile, r.shard.process)
}

// convertedBefore returns the process of a finished shard that was made from the same number of bytes; nil if there is
// none.
func convertedBefore(directory, name, size string) *description.Process {
	before := experiment.Find(directory, name)
	if before.State != experiment.Done || before.Process == nil ||
		before.Process.Settings[description.SettingSpooled] != size {
		return nil
	}
	// the earlier conversion may have been killed before it removed the memory
	if memory, left, err := openLeft(before.Process, time.Now()); err == nil && memory != nil {
		left.remove(before.Process.Memory)
		memory.Close()
	}
	return before.Process
}

// conversion converts a raw file whose records have all been read.
type conversion struct {
	*recording
	spool *shm.Spool
	size  string // size of the raw file, in bytes
}

// pause finishes the shard of a raw file that its process is still writing.
func (c *conversion) pause(spoolFile string) error {
	c.shard.process.Settings[description.SettingSpooled], c.shard.process.Settings[settingWhole] = c.size, "false"
	err := c.finish(false)
	if err == nil {
		// Sharing the raw file's lock shows that the process is still writing. If hard links are impossible, the
		// process seems to have been killed.
		_ = c.shard.store.LockLike(spoolFile)
	}
	return err
}

// end takes what an ended process left in its memory, and finishes the shard.
func (c *conversion) end() error {
	p, orderly := c.shard.process, c.spool.Orderly()
	memory, left, err := openLeft(p, time.Now().Add(releaseLimit))
	saved := err == nil
	if !saved {
		c.noteNotSaved(err)
	}
	if memory != nil {
		defer memory.Close()
		if err := c.drainMemory(memory); err != nil {
			c.noteNotSaved(err)
		}
	} else if saved && !orderly {
		c.noteBreak()
	}
	h := c.drain.source.Header()
	if called := orderly || h.Ended != 0; called || c.spool.Failed() == nil {
		c.shard.end = &description.End{Called: called}
	} // otherwise its exit may not be on the disk either
	if saved { // otherwise the next conversion repeats it, with the memory's content
		p.Settings[description.SettingSpooled] = c.size
	}
	p.Settings[settingWhole] = strconv.FormatBool(orderly && saved)
	if err := c.finish(true); err != nil {
		return err
	}
	left.remove(p.Memory)
	c.removeBacklogs()
	return nil
}

// noteBreak records why a raw file lacks its end. The number of missing records is unknown unless the process could
// still count them.
func (c *conversion) noteBreak() {
	spool := c.spool
	h, text := spool.Header(), "the raw file ends early"
	if cut := spool.Cut(); cut != "" {
		text += ": " + cut
	}
	if err := spool.Failed(); err != nil {
		text += fmt.Sprintf(": the rest could not be written (%v)", err)
	}
	c.mark(categoryRawFile, text)
	if spool.Failed() == nil || h.Ended == 0 {
		c.losses.uncounted = append(c.losses.uncounted, text+"; what the process recorded after that is lost")
	}
}

// openSpool opens a raw file up to its present end, and reports whether its process may still write to it; nil if it is
// empty. If the process has ended, the file is opened up to its very end: what a process wrote just before it was
// killed is nowhere else.
func openSpool(file *os.File) (spool *shm.Spool, bytes int64, written bool, err error) {
	for {
		before, err := file.Stat()
		if err != nil || before.Size() == 0 {
			return nil, 0, err == nil && flock.IsLocked(file), err
		}
		if _, err := file.Seek(0, io.SeekStart); err != nil {
			return nil, 0, false, err
		}
		if spool, err = shm.OpenSpool(file, before.Size()); err != nil {
			return nil, 0, false, err
		}
		h := spool.Header()
		written = flock.IsLocked(file) || lives(h.Boot(), int(h.PID), h.PIDStart)
		after, err := file.Stat()
		if err != nil || written || after.Size() == before.Size() {
			return spool, before.Size(), written, err
		}
	}
}

// lives is a variable so that tests can end a process at a given moment.
var lives = experiment.Lives

// ConvertAll converts all raw files of an experiment directory, see convert, and returns the result for each.
func ConvertAll(hold *experiment.Hold) []rawfiles.File {
	var files []rawfiles.File
	for _, path := range rawfiles.Find(hold.Dir) {
		files = append(files, rawfiles.File{Path: path, Err: convert(path, hold.Dir)})
	}
	return files
}

// converted renames a complete raw file to show that it has been converted.
func converted(spoolFile string, p *description.Process) error {
	if p.Settings[settingWhole] != "true" {
		return nil
	}
	return os.Rename(spoolFile, spoolFile+convertedSuffix)
}

// drainSpool takes all records of a raw file.
func (r *recording) drainSpool(spool *shm.Spool) error {
	for {
		round, err := spool.Refresh()
		if err != nil {
			return err
		}
		if round.Ended {
			r.drain.line.add(round.Clock)
			r.drainAll()
			return nil
		}
		// The program's clock does not limit what other threads may still record: drain everything at the end.
		if !r.drain.line.host {
			r.drainRound(round.Clock)
		}
		if r.disk.failed != nil {
			return r.disk.failed
		}
	}
}

// continued is the raw file of a killed process, continued by what is left in its memory.
type continued struct {
	*shm.Memory
	spool *shm.Spool
}

// noteNotSaved records that the rest of a process's data is lost, in an unknown amount.
func (c *conversion) noteNotSaved(err error) {
	text := "what the process had in memory is not saved: " + err.Error()
	c.mark(categoryRawFile, text)
	c.losses.uncounted = append(c.losses.uncounted, text)
}

// drainMemory takes the records that follow the raw file's in the process's memory.
func (c *conversion) drainMemory(memory *shm.Memory) error {
	for _, ring := range c.spool.Rings() {
		if err := ring.Err(); err != nil {
			return err
		}
	}
	round, err := memory.Refresh()
	if err != nil {
		return err
	}
	c.drain.source, c.drain.skip = continued{memory, c.spool}, c.drain.merge.taken.clone()
	c.drain.line.add(round.Clock)
	c.drainAll()
	return c.disk.failed
}

// spooledShard returns the name of the shard for a process's raw file.
func spooledShard(h *shm.Header) string {
	return uuid.NewSHA1(uuid.Nil, fmt.Appendf(
		nil, "%s %s %d %d %x %d", h.Host(), h.Boot(), h.PID, h.PIDStart, h.Tag, h.Created.Real)).String()
}
