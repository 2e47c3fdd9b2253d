// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"errors"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// What is given to the system survives the death of job and collector. To survive that of the machine it must be on the
// disk, which can take seconds: so now and then a checkpoint is brought there in a goroutine, beside the loop that
// drains the rings, and nobody waits for it but the end. The first one is that of the first flush; the time to the next
// doubles.
//
// Variables for the tests.
var (
	firstSecure = time.Second
	lastSecure  = 10 * time.Second
)

// securing is how far a recording is on the disk.
type securing struct {
	sizes    map[uint32]int64 // of event files
	before   []string         // shards of collectors that died, which are not there yet
	next     time.Time
	interval time.Duration
	busy     chan secured // gives what came of the one under way; nil: none is
	began    uint64       // how many checkpoints have been tried so far
	over     uint64       // of those
	failures uint64
}

type secured struct {
	number uint64
	sizes  map[uint32]int64
	took   time.Duration
	err    error
}

// secure brings a checkpoint to the disk if it is time to and the one before is there.
func (r *recording) secure(c *experiment.Checkpoint) {
	r.takeSecured()
	if r.securing.due(time.Now()) {
		r.beginSecuring(c)
	}
}

// due reports whether another one may begin.
func (s *securing) due(now time.Time) bool { return s.busy == nil && !now.Before(s.next) }

// takeSecured takes note of one that is over.
func (r *recording) takeSecured() {
	select {
	case done := <-r.securing.busy:
		r.secured(done)
	default:
	}
}

// secureDescribed does so in record mode, which has no checkpoints.
func (r *recording) secureDescribed() {
	if c, err := r.store.Describe(r.process); err == nil {
		r.secure(c)
	}
}

func (r *recording) beginSecuring(c *experiment.Checkpoint) {
	s := &r.securing
	busy, since, before, profile := make(chan secured, 1), s.sizes, s.before, r.summed
	var others []string
	if r.script != nil {
		others = []string{r.script.Path()}
	}
	if path := r.backlog.waits(); path != "" {
		others = append(others, path)
	}
	s.busy, s.before = busy, nil
	s.began++
	number, began := s.began, time.Now()
	s.interval = min(max(2*s.interval, firstSecure), lastSecure)
	s.next = began.Add(s.interval)
	go func() {
		var errs []error
		for _, path := range before {
			errs = append(errs, experiment.Sync(path))
		}
		errs = append(errs, c.Secure(since, profile, others...))
		busy <- secured{number, c.Sizes, time.Since(began), errors.Join(errs...)}
	}()
}

// secured takes note of what came of one.
func (r *recording) secured(done secured) {
	s := &r.securing
	s.busy, s.over = nil, done.number
	// Seldom enough to cost little on a slow file system, too.
	if next := time.Now().Add(20 * done.took); next.After(s.next) {
		s.next = next
	}
	if done.err == nil {
		s.sizes = done.sizes
		return
	}
	if s.failures++; s.failures == 1 {
		r.markers = append(r.markers, experiment.Marker{
			Time: r.given, Severity: severityHigh, Category: regions.CategoryRecording, Location: -1,
			Text: "what was recorded may not survive a power cut: " + done.err.Error(),
		})
	}
}

// secureEnd brings the description as it is now, and all that it speaks of, to the disk, and waits for it.
func (r *recording) secureEnd() error {
	s := &r.securing
	if s.busy != nil {
		r.secured(<-s.busy)
	}
	c, err := r.store.Describe(r.process)
	if err != nil {
		return err
	}
	r.beginSecuring(c)
	done := <-s.busy
	s.busy = nil
	return done.err
}
