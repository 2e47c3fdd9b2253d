// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/replay/record"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// transcriptWriter is the destination of record mode: a transcript of NCCL's calls (package record), outside the
// shard's folder. It grows only at its end, so it needs no checkpoints: its description says how much of it counts.
type transcriptWriter struct {
	traceWriter // without files
	transcript  *record.Transcript
}

func (w *transcriptWriter) addRecord(ring int, t uint64, rec *shm.Record) {
	_ = w.r.holdDiskError(w.transcript.Take(ring, t, rec))
}

// wantsSkipped wants the owners of rings: a transcript that cannot be continued begins anew and needs them.
func (w *transcriptWriter) wantsSkipped(rec *shm.Record) bool { return rec.Kind == shm.RecordThread }

// writeAll writes the transcript before the description that says how long it is.
func (w *transcriptWriter) writeAll() error {
	if err := w.transcript.Flush(); err != nil {
		return err
	}
	w.r.noteTaken()
	if err := w.r.describe(); err != nil {
		return err
	}
	if c, err := w.r.shard.store.Describe(w.r.shard.process); err == nil {
		w.r.syncer.sync(w.r, c)
	}
	return nil
}

func (w *transcriptWriter) checkpoint() error { return nil }

func (w *transcriptWriter) describe(p *description.Process) { w.transcript.Describe(p) }

func (w *transcriptWriter) close() {
	if err := w.transcript.Close(); err != nil {
		w.r.noteCloseError(err)
	}
	w.traceWriter.close()
}

func (w *transcriptWriter) remove() {
	if w.transcript != nil { // else it could not be created
		w.transcript.Remove()
	}
}

func (w *transcriptWriter) rewindable() bool { return false }

// startsTaken is whole: the counts of the description are those of the file.
func (w *transcriptWriter) startsTaken() (starts map[string]uint64, whole bool) {
	return shm.ByName(w.transcript.Starts()), true
}

func (w *transcriptWriter) cutBack(*description.Process) {}

func (w *transcriptWriter) size() uint64 { return w.transcript.Size() }

func (w *transcriptWriter) toSync() (profile []byte, files []string) {
	return nil, []string{w.transcript.Path()}
}
