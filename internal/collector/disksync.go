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

// begin begins to sync a checkpoint and what belongs to it outside the shard's files.
func (s *diskSyncer) begin(c *experiment.Checkpoint, profile []byte, files []string) {
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

// end notes the result of a sync that is over. It returns its error if it is the first one.
func (s *diskSyncer) end(result syncResult) (first error) {
	s.busy, s.over = nil, result.number
	// Syncs are rare enough to cost little on a slow file system, too.
	if next := time.Now().Add(20 * result.took); next.After(s.next) {
		s.next = next
	}
	if result.err == nil {
		s.sizes = result.sizes
		return nil
	}
	if s.failures++; s.failures == 1 {
		return result.err
	}
	return nil
}

// syncCheckpoint begins to sync a checkpoint if that is due and the one before is on the disk.
func (r *recording) syncCheckpoint(c *experiment.Checkpoint) {
	r.endSync()
	if r.syncer.due(time.Now()) {
		r.beginSync(c)
	}
}

// endSync notes the result of a sync if it is over.
func (r *recording) endSync() {
	select {
	case result := <-r.syncer.busy:
		r.noteSync(result)
	default:
	}
}

// syncDescription syncs the description in record mode, which has no checkpoints.
func (r *recording) syncDescription() {
	if c, err := r.shard.store.Describe(r.shard.process); err == nil {
		r.syncCheckpoint(c)
	}
}

func (r *recording) beginSync(c *experiment.Checkpoint) {
	profile, files := r.output.toSync()
	if path := r.backlog.waits(); path != "" {
		files = append(files, path)
	}
	r.syncer.begin(c, profile, files)
}

func (r *recording) noteSync(result syncResult) {
	if err := r.syncer.end(result); err != nil {
		r.mark(regions.CategoryRecording, "what was recorded may not survive a power cut: "+err.Error())
	}
}

// syncEnd syncs the description as it is now and all that it speaks of, and waits for that.
func (r *recording) syncEnd() error {
	s := &r.syncer
	if s.busy != nil {
		r.noteSync(<-s.busy)
	}
	c, err := r.shard.store.Describe(r.shard.process)
	if err != nil {
		return err
	}
	r.beginSync(c)
	result := <-s.busy
	s.busy = nil
	return result.err
}
