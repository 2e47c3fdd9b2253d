// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"errors"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// What has been written to a file survives the death of the job and the collector. To survive a power cut it must be
// synced to the disk, which can take seconds. So a goroutine syncs a checkpoint now and then, beside the loop that
// drains the rings, and nothing but the end of the recording waits for it. The first checkpoint is synced at once; the
// time to the next doubles.
//
// Variables for the tests.
var (
	firstSync = time.Second
	lastSync  = 10 * time.Second
)

// diskSyncer syncs checkpoints to the disk, one at a time.
type diskSyncer struct {
	sizes    map[uint32]int64 // of event files, as last synced
	before   []string         // shards of collectors that died, which have not been synced
	next     time.Time
	interval time.Duration
	busy     chan syncResult // gives the result of the sync under way; nil: there is none
	began    uint64          // how many checkpoints have been begun so far
	over     uint64          // how many of those are over
	failures uint64
}

type syncResult struct {
	number uint64
	sizes  map[uint32]int64
	took   time.Duration
	err    error
}

// due reports whether another checkpoint may be synced.
func (s *diskSyncer) due(now time.Time) bool { return s.busy == nil && !now.Before(s.next) }

// sync begins to sync a checkpoint if that is due and the one before is on the disk.
func (s *diskSyncer) sync(r *recording, c *experiment.Checkpoint) {
	s.noteResult(r)
	if s.due(time.Now()) {
		s.begin(r, c)
	}
}

// begin begins to sync a checkpoint and what belongs to it outside the shard's files.
func (s *diskSyncer) begin(r *recording, c *experiment.Checkpoint) {
	profile, files := r.output.toSync()
	if path := r.backlog.waits(); path != "" {
		files = append(files, path)
	}
	busy, since, before := make(chan syncResult, 1), s.sizes, s.before
	s.busy, s.before = busy, nil
	s.began++
	number, began := s.began, time.Now()
	s.interval = min(max(2*s.interval, firstSync), lastSync)
	s.next = began.Add(s.interval)
	go func() {
		var errs []error
		for _, path := range before {
			errs = append(errs, experiment.Sync(path))
		}
		errs = append(errs, c.Secure(since, profile, files...))
		busy <- syncResult{number, c.Sizes, time.Since(began), errors.Join(errs...)}
	}()
}

// noteResult notes the result of a sync if one is over.
func (s *diskSyncer) noteResult(r *recording) {
	select {
	case result := <-s.busy:
		s.end(r, result)
	default:
	}
}

// end notes the result of a sync. The first failure is marked.
func (s *diskSyncer) end(r *recording, result syncResult) {
	s.busy, s.over = nil, result.number
	// Syncs are rare enough to cost little on a slow file system, too.
	if next := time.Now().Add(20 * result.took); next.After(s.next) {
		s.next = next
	}
	if result.err == nil {
		s.sizes = result.sizes
		return
	}
	if s.failures++; s.failures == 1 {
		r.mark(regions.CategoryRecording, "what was recorded may not survive a power cut: "+result.err.Error())
	}
}

// finish syncs the description as it is now and all that it speaks of, and waits for that.
func (s *diskSyncer) finish(r *recording) error {
	if s.busy != nil {
		s.end(r, <-s.busy)
	}
	c, err := r.shard.store.Describe(r.shard.process)
	if err != nil {
		return err
	}
	s.begin(r, c)
	result := <-s.busy
	s.busy = nil
	return result.err
}
