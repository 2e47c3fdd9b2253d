// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"time"

	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// ahead is what is written ahead of time, for somebody who watches the job: operations as soon as they are complete,
// into files of their own (experiment.AheadFiles). Event files, checkpoints and all that is counted are what they are
// without; where nobody watches there is nothing of it. An error of the disk ends it until the next question: whoever
// watches sees the event files then, some seconds later.
type ahead struct {
	asked      time.Time           // when somebody who watches said so last
	generation uint64              // of the files; 0: there have been none
	files      []*otf2.EventWriter // nil: nobody watches
	writing    bool
	flushed    time.Time
}

// aheadFlush is how often what has been written ahead of time comes to its files. With regions' hold, the model's
// steps, the longest sleep between rounds and the window it makes less than a second (TestAheadIsSoonEnough).
const aheadFlush = 200 * time.Millisecond

// mostAhead is how many bytes a generation has before the next one begins. Variable for the tests.
var mostAhead int64 = 32 << 20

// lookAhead does what is due.
func (c *live) lookAhead(now time.Time) {
	a := &c.ahead
	wanted := now.Sub(a.asked) < lookedFor && c.script == nil && c.profile == nil && c.writes()
	switch {
	case wanted && !a.writing:
		c.beginAhead(now)
	case !wanted && a.writing:
		c.endAhead()
	case wanted && now.Sub(a.flushed) >= aheadFlush:
		c.flushAhead(now)
	}
}

// beginAhead begins the next generation, from what is not in the event files yet on.
func (c *live) beginAhead(now time.Time) {
	a := &c.ahead
	a.generation++
	c.store.RemoveAhead(max(a.generation, 1) - 1)
	a.writing, a.flushed = true, now
	generation := a.generation
	c.model.Ahead(func(number uint32) (regions.EventWriter, error) {
		w, err := c.store.Ahead(generation, number)
		if err != nil {
			return nil, err
		}
		a.files = append(a.files, w)
		return w, nil
	})
}

// flushAhead brings what has been written ahead to its files.
func (c *live) flushAhead(now time.Time) {
	a := &c.ahead
	a.flushed = now
	err := c.model.AheadError()
	size := int64(0)
	for _, w := range a.files {
		if err == nil {
			err = w.Flush()
		}
		size += w.Size()
	}
	switch {
	case err != nil:
		c.say("ahead of time: %v", err)
		c.endAhead()
		a.asked = time.Time{}
	case size >= mostAhead:
		c.closeAhead()
		c.beginAhead(now)
	}
}

// closeAhead ends a generation.
func (c *live) closeAhead() {
	c.model.Ahead(nil)
	for _, w := range c.ahead.files {
		if err := w.Close(); err != nil {
			c.say("ahead of time: %v", err)
		}
	}
	c.ahead.files = nil
}

// endAhead removes all that was written ahead of time.
func (c *live) endAhead() {
	if !c.ahead.writing {
		return
	}
	c.closeAhead()
	c.ahead.writing = false
	c.store.RemoveAhead(c.ahead.generation + 1)
}
