// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"math"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// noLimit is drain.limit where a call takes all records that there are.
const noLimit = math.MaxUint64

// The window (ns) is how long a writer may take from reading the clock to publishing its record before that record
// counts as late. A writer that is preempted in between takes as long as the scheduler wants, so the window grows with
// the latest records. With the host's clock the ticks are a program's own, whose threads may differ more.
const (
	firstWindow = 1e6
	mostWindow  = 50e6
)

// drain takes the records of a process out of its rings, oldest first.
type drain struct {
	source shm.Source
	line   *timeline
	merge  merge

	skip     positions // records that are in the shards of earlier collectors
	records  uint64    // taken so far, without those to skip
	limit    uint64    // how many records one call of drainRings takes at most
	window   uint64    // ns
	previous uint64    // ticks when the rings were read last but one
}

func newDrain(source shm.Source, h *shm.Header) drain {
	d := drain{source: source, line: newTimeline(h), window: firstWindow, limit: noLimit}
	if d.line.host {
		d.window = mostWindow
	}
	return d
}

// widenWindow makes the window long enough for a record that came late.
func (d *drain) widenWindow(rec *shm.Record) {
	if d.previous > rec.Ticks {
		d.window = max(d.window, min(2*d.line.nanoseconds(d.previous-rec.Ticks), mostWindow))
	}
}

// hasStored reports whether records that were put off have not been taken.
func (d *drain) hasStored() bool { return slices.ContainsFunc(d.source.Rings(), (*shm.Ring).Stored) }

// lost reports whether the plugin has lost events of a type.
func (d *drain) lost(t shm.EventType, but ...shm.LossReason) bool {
	for reason := range shm.LossReason(shm.LossReasons) {
		if !slices.Contains(but, reason) && d.source.Lost(reason, t) > 0 {
			return true
		}
	}
	return false
}

// brokenRings counts the rings whose records cannot be read to the end.
func (d *drain) brokenRings() (n uint64) {
	for _, ring := range d.source.Rings() {
		if ring.Err() != nil {
			n++
		}
	}
	return n
}

// missingBytes is how many bytes a file lacks in its middle.
func (d *drain) missingBytes() uint64 {
	switch s := d.source.(type) {
	case *shm.Spool:
		return s.Lacking()
	case continued:
		return s.spool.Lacking()
	case leftBacklog:
		return s.Lacking()
	}
	return 0
}
