// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"os"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// An archive has one chunk size for all event files, so it is the same in all processes. Score-P writes chunks of
// scorepChunkSize. Where it is in the process ours have the same size, and the two can be merged without rewriting.
const (
	chunkSize       = 256 << 10
	scorepChunkSize = 1 << 20
)

// traceWriter is the destination of a trace: the event files of a shard.
type traceWriter struct {
	r     *recording
	files []*otf2.EventWriter // by location
}

func (w *traceWriter) addRecord(ring int, t uint64, rec *shm.Record) {
	w.r.failForGood(w.r.feed.advance(t, w.r.drain.records))
	w.r.failForGood(w.r.feed.model.Record(ring, t, rec))
}

// wantsSkipped is false: the model has been told of them as part of what it resumes.
func (w *traceWriter) wantsSkipped(*shm.Record) bool { return false }

// EventWriter implements regions.Sink.
func (w *traceWriter) EventWriter(loc description.Location) (regions.EventWriter, error) {
	options := &otf2.EventWriterOptions{ChunkSize: w.r.shard.process.EventChunkSize}
	if w.r.disk.patient {
		options.Patient = func(err error) { _ = w.r.holdDiskError(err) }
	}
	file, err := w.r.shard.store.EventWriter(loc.Number, options)
	if err != nil {
		return nil, err
	}
	w.files = append(w.files, file) // numbers are 0, 1, 2, …
	w.r.shard.locations++
	return file, nil
}

// Finished implements regions.Sink.
func (w *traceWriter) Finished(uint32) {}

// widenChunks does nothing if a file has several chunks already. Score-P is known to be in the process when its first
// communicator has been made, which may be after the first event was written.
func (w *traceWriter) widenChunks(h *shm.Header) {
	inside := h.ScorepState != shm.ScorepOff || h.ScorepMeasured != 0
	if !inside || w.r.shard.process.EventChunkSize == scorepChunkSize {
		return
	}
	for _, file := range w.files {
		if file.Size() > chunkSize {
			return
		}
	}
	for _, file := range w.files {
		file.Widen(scorepChunkSize)
	}
	w.r.shard.process.EventChunkSize = scorepChunkSize
}

// writeAll writes the description before the events that refer to it.
func (w *traceWriter) writeAll() error {
	if err := w.r.describe(); err != nil {
		return err
	}
	for _, file := range w.files {
		size := file.Size()
		if err := file.Flush(); err != nil {
			return err
		}
		if file.Size() == size { // nothing has come since the last flush
			file.Park()
		}
	}
	return nil
}

func (w *traceWriter) checkpoint() error { return w.r.checkpoint() }

func (w *traceWriter) describe(*description.Process) {}

func (w *traceWriter) close() {
	for _, file := range w.files {
		end := file.Close
		if w.r.disk.failed != nil { // what is in memory may need definitions that are not on disk
			end = file.Abandon
		}
		if err := end(); err != nil {
			w.r.noteCloseError(err)
		}
	}
}

func (w *traceWriter) remove() {}

func (w *traceWriter) rewindable() bool { return true }

func (w *traceWriter) startsTaken() (starts map[string]uint64, whole bool) {
	return w.r.shard.process.Counts.Starts, false
}

func (w *traceWriter) cutBack(p *description.Process) {
	known := make(map[uint32]bool)
	for i := range p.Locations {
		l := &p.Locations[i]
		known[l.Number] = true
		path := w.r.shard.store.EventFile(l.Number)
		if info, err := os.Lstat(path); err == nil && info.Size() != l.Bytes {
			_ = cutEvents(path, int64(p.EventChunkSize), l.Bytes, l.Events)
		}
	}
	for number := range w.files {
		if n := uint32(number); !known[n] {
			_ = os.Remove(w.r.shard.store.EventFile(n))
		}
	}
}

func (w *traceWriter) size() uint64 { return 0 }

func (w *traceWriter) toSync() (profile []byte, files []string) { return nil, nil }
