// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/sequence"
	"github.com/nccl-otf2/nccl-otf2/internal/profile"
	"github.com/nccl-otf2/nccl-otf2/internal/replay/record"
)

// predecessors are the collectors of the process that died before this one.
type predecessors struct {
	last       *description.Process // what the last of them left; nil: there was none
	bytes      uint64               // that their shards have on disk
	operations map[string]uint64    // that the last had in memory, by function: they are lost
	calls      uint64               // of the last whose groups were open: their regions are missing
	backlogs   []deadBacklog        // theirs, from which records are still taken
}

// takeOver looks for the shards of earlier collectors of this process that died, and continues the last of them. What
// they have taken is not taken again. What the last one had not written is lost, counted and marked.
func (d *predecessors) takeOver(r *recording, directory string) error {
	entries, err := experiment.List(directory)
	if err != nil {
		return err
	}
	process := r.shard.process
	dead := make(map[string]*description.Process) // by uuid
	var backlogs []string
	for _, e := range entries {
		p := e.Process
		if p == nil || p.Finished || e.State == experiment.Writing || !sameProcess(p, process) {
			continue
		}
		if file := filepath.Join(e.Path, experiment.BacklogFile); !isOf(r.drain.source, file) {
			backlogs = append(backlogs, file)
		}
		if p, err = resumable(e, directory); err != nil {
			return err
		} else if p == nil {
			continue
		}
		for i := range p.Locations {
			d.bytes += uint64(p.Locations[i].Bytes)
		}
		dead[p.UUID] = p
		r.syncer.before = append(r.syncer.before, e.Path)
	}
	if err := d.adoptBacklogs(r.drain.source, backlogs); err != nil {
		return err
	}
	last, taken := lastOf(dead)
	if last == nil {
		return nil
	}
	process.Settings[description.SettingContinues] = last.UUID
	r.drain.skip, r.shard.taken, r.drain.merge.taken = taken, taken, taken.clone()
	if size, ok := last.Settings[record.SettingBytes]; ok {
		process.Settings[record.SettingBytes] = size
	}
	r.shard.markHigh(last.LastTime, "NCCL collector", fmt.Sprintf(
		"the collector died here and another took over; operations that it had in memory are missing: %d",
		d.resume(last)))
	return nil
}

// lastOf is the one of several dead collectors of a process that had taken most, and what it had taken. Of those that
// had taken equally much it is the one that had continued most others. It is nil if there is none.
func lastOf(dead map[string]*description.Process) (last *description.Process, taken positions) {
	generation := func(p *description.Process) (n int) {
		for ; p != nil && n <= len(dead); n++ {
			p = dead[p.Settings[description.SettingContinues]]
		}
		return n
	}
	for _, p := range dead {
		t, err := parsePositions(p.Settings[settingTaken])
		if err != nil || last != nil && (t.last < taken.last || t.last == taken.last &&
			generation(p) < generation(last)) {
			continue
		}
		last, taken = p, t
	}
	return last, taken
}

// resume continues what a dead collector left, and returns how many operations it had in memory.
func (d *predecessors) resume(last *description.Process) (lost uint64) {
	d.last, d.operations = last, make(map[string]uint64)
	for i := range last.Comms {
		for key, n := range last.Unwritten(i) {
			d.operations[sequence.FunctionOf(key)] += n
			lost += n
		}
	}
	for _, c := range last.Resume.Calls {
		if c.Open && c.Group != 0 { // else its end is still to come, and with that its region
			d.calls++
		}
	}
	return lost
}

// resumable is what a dead collector's shard has for good. Where that is nothing it is nil, and the shard is removed:
// all records of it are still in the process's memory.
func resumable(e experiment.Entry, directory string) (*description.Process, error) {
	p := e.Process
	if record.IsRecording(p) {
		if p.Settings[record.SettingBytes] != "0" {
			return p, nil
		}
		if err := os.Remove(record.Path(directory, p.UUID)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		return nil, os.RemoveAll(e.Path)
	}
	resume := rewind
	if p.IsProfile() {
		resume = rewindProfile
	}
	back, err := resume(e.Path)
	if err != nil {
		return p, nil // what was written since the checkpoint is there twice, but nothing is lost
	}
	if back == nil && !hasBacklog(e.Path) {
		return nil, os.RemoveAll(e.Path)
	} else if back == nil {
		return p, nil // as a power cut left it
	}
	return back, nil
}

// rewindProfile brings the shard of a dead collector back to its last checkpoint; nil if there never was one. The
// profile says itself up to which records it goes. If that is further than the checkpoint, the collector died in a
// flush, between writing the two. Then shard.json, which is written before both, says what was under way at that time.
func rewindProfile(path string) (*description.Process, error) {
	now, unread := experiment.Read(path)
	p, err := rewind(path)
	if p == nil || err != nil {
		return p, err
	}
	a, _, err := profile.OpenShard(path)
	if err != nil {
		return p, nil // without a profile that can be read, what its description says is lost
	}
	if a.Taken == "" || a.Taken == p.Settings[settingTaken] {
		return p, nil
	}
	if unread == nil && now.Serial > p.Serial {
		p = now
	}
	p.Settings[settingTaken] = a.Taken
	return p, experiment.Rewind(path, p)
}
