// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bytes"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/profile"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// profileWriter is the destination of profile mode: the timeline's events are summed up, and each flush replaces the
// profile as a whole.
type profileWriter struct {
	traceWriter // without files
	profile     *profile.Process
	written     []byte // the profile as it was last written
}

// EventWriter implements regions.Sink.
func (w *profileWriter) EventWriter(loc description.Location) (regions.EventWriter, error) {
	w.r.shard.locations++
	return w.profile.EventWriter(loc), nil
}

// Finished implements regions.Sink.
func (w *profileWriter) Finished(number uint32) { w.profile.Retire(otf2.LocationRef(number)) }

// writeAll writes the description before the profile. The profile says itself up to which records it goes, so that this
// is true whatever else has been written.
func (w *profileWriter) writeAll() error {
	if err := w.r.describe(); err != nil {
		return err
	}
	w.r.noteTaken()
	a := w.profile.Aggregate()
	a.Taken = w.r.shard.taken.String()
	var text bytes.Buffer
	if err := a.Write(&text); err != nil {
		return err
	}
	w.written = text.Bytes()
	return w.r.shard.store.WriteProfile(w.written)
}

func (w *profileWriter) rewindable() bool { return false }

func (w *profileWriter) toSync() (profile []byte, files []string) { return w.written, nil }
