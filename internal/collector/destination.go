// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"github.com/nccl-otf2/nccl-otf2/config"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/profile"
	"github.com/nccl-otf2/nccl-otf2/internal/replay/record"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// destination is what the records of a process become (setting MODE): a trace, a profile, or a transcript.
type destination interface {
	// addRecord adds a record of a ring, at a time of the time line. Its errors end the recording or are held.
	addRecord(ring int, t uint64, rec *shm.Record)
	// wantsSkipped reports whether a record is needed although it is in the shard of a dead collector.
	wantsSkipped(rec *shm.Record) bool

	regions.Sink // takes the events of locations
	// widenChunks takes larger chunks for events where Score-P is in the process. The description must be written
	// before further events are.
	widenChunks(h *shm.Header)

	// writeAll brings what has been added and shard.json to disk, in the order in which each speaks of the other.
	writeAll() error
	// checkpoint follows writeAll. It says for a later collector what is on disk.
	checkpoint() error
	// describe adds the destination's own part to the description of the process.
	describe(p *description.Process)
	// close closes the files. All that was added is in them, or what is not is lost.
	close()
	// remove removes what is not in the shard's folder.
	remove()

	// rewindable reports whether the shard as a whole can be brought back to a checkpoint.
	rewindable() bool
	// startsTaken counts the starts that have been added, by type. whole says that the description counts what is on
	// disk whatever has failed, so that no checkpoint is needed to know it.
	startsTaken() (starts map[string]uint64, whole bool)
	// cutBack brings the event files to what a description says of them. Where that fails `unify` finds the difference.
	cutBack(p *description.Process)

	// size is how many bytes are on disk outside the shard's folder.
	size() uint64
	// toSync is what must come to the disk with a checkpoint: the profile as written last, and other files.
	toSync() (profile []byte, files []string)
}

// newDestination is the destination that the settings ask for. remove works on it even if there is an error.
func newDestination(r *recording, settings *config.Settings, directory string, h *shm.Header) (destination, error) {
	s := &r.shard
	trace := traceWriter{r: r}
	switch {
	case settings.Record:
		transcript, err := record.Create(directory, s.process, r.drain.source, h)
		return &transcriptWriter{trace, transcript}, err
	case settings.Profile:
		return &profileWriter{traceWriter: trace, profile: profile.NewProcess(s.process)}, nil
	}
	return &trace, nil
}
