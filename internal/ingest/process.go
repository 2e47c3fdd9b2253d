// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"

	"github.com/google/uuid"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/provenance"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/sequence"
	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// processWriter makes the shard of one process: records pass through the timeline model into event files.
type processWriter struct {
	process *description.Process
	store   *experiment.Store
	model   *regions.Model
	writers []*otf2.EventWriter
	comms   []description.Comm // to be announced to the model
	gpus    []description.GPU  // by communicator
	known   int                // communicators announced to the model

	rings    map[int32]int // by thread id
	number   uint64        // of the last handle
	last     uint64        // time of the last record
	advanced uint64
	counts   map[string]uint64

	noPhases bool                  // transfers have no phases
	stated   *details              // what the archive counted that an export is of; nil: no export of ours
	pending  []description.Pending // what had not ended
	called   []calledUntil         // of a snapshot, by communicator
}

// calledUntil is up to which number a rank has called the collectives of a communicator, whose functions share numbers.
type calledUntil struct {
	number    uint64
	functions map[string]bool
}

// noThread stands for an unknown thread, as negative ids do.
const noThread = int32(0)

// chunkSize is the chunk size of event files, as in collectors.
const chunkSize = 256 << 10

// advanceNs is the interval at which the model writes what is complete.
const advanceNs = 50_000_000

// newProcessWriter begins a shard. identity determines its uuid, so that the same input gives the same file names.
func newProcessWriter(dir, identity, host, boot string, pid int, from string, missing []string, mask uint32) (
	*processWriter, error) {
	h := fnv.New32a()
	h.Write([]byte(identity))
	p := &processWriter{
		rings: make(map[int32]int), counts: make(map[string]uint64),
		process: &description.Process{
			Version: description.Version, UUID: uuid.NewSHA1(
				uuid.NameSpaceURL, []byte("nccl-otf2 import "+identity)).String(),
			Host: host, BootID: boot, PID: pid, Tag: uint16(h.Sum32()%0xfffe) + 1,
			Launcher: provenance.Launcher{Rank: -1, Size: -1},
			Clock:    provenance.Clock{Source: "imported"}, Memory: provenance.Memory{Kind: "none"},
			Masks:          provenance.Masks{Event: mask, Record: mask},
			Settings:       map[string]string{},
			EventChunkSize: chunkSize, Markers: []description.Marker{}, Pending: []description.Pending{},
			Import: &description.Import{From: from, Missing: missing},
		},
	}
	var err error
	if p.store, err = experiment.Create(dir, p.process.UUID); err != nil {
		return nil, err
	}
	return p, nil
}

// startModel creates the model; records may follow. mask holds the event types (bits) that operations wait for.
func (p *processWriter) startModel(mask uint32, apiVersion int) {
	p.process.APIVersion = apiVersion
	p.model = regions.New(p, p.process, &regions.Options{RecordMask: mask, NoPhases: p.noPhases})
}

// EventWriter implements regions.Sink.
func (p *processWriter) EventWriter(loc description.Location) (regions.EventWriter, error) {
	w, err := p.store.EventWriter(loc.Number, &otf2.EventWriterOptions{ChunkSize: chunkSize})
	if err == nil {
		p.writers = append(p.writers, w)
	}
	return w, err
}

// Finished implements regions.Sink. Files stay open until the end, when definitions are written.
func (p *processWriter) Finished(uint32) {}

func (p *processWriter) count(what string, n uint64) {
	if n > 0 {
		p.counts[what] += n
	}
}

// countLost counts operations that the input lacks, by reason and type of event.
func (p *processWriter) countLost(reason, typ string, n uint64) {
	if n == 0 {
		return
	}
	lost := p.process.Counts.Lost
	if lost == nil {
		lost = make(map[string]map[string]uint64)
		p.process.Counts.Lost = lost
	}
	keyed.Map(lost, reason)[typ] += n
}

// newHandle returns the next handle of an event type.
func (p *processWriter) newHandle(t shm.EventType) uint64 {
	p.number++
	return uint64(p.process.Tag)<<shm.TagShift | uint64(t)<<shm.TypeShift | p.number&(shm.CapturedBit-1)
}

// passRecord passes a record of a thread to the model. Records must come in order of time.
func (p *processWriter) passRecord(tid int32, t uint64, r *shm.Record) error {
	ring, ok := p.rings[tid]
	if !ok {
		ring = len(p.rings)
		p.rings[tid] = ring
		if tid > noThread {
			if err := p.model.Record(ring, t, &shm.Record{Kind: shm.RecordThread, TID: tid}); err != nil {
				return err
			}
		}
	}
	if (r.Kind == shm.RecordStart || r.Kind == shm.RecordInit) && r.Aux != shm.None {
		p.announceComms(int(r.Aux))
	}
	p.last = max(p.last, t)
	if err := p.model.Record(ring, t, r); err != nil {
		return err
	}
	if t < p.advanced+advanceNs {
		return nil
	}
	p.advanced = t
	return p.model.Advance(t)
}

// announceComms announces the communicators up to comm to the model.
func (p *processWriter) announceComms(comm int) {
	for ; p.known <= comm && p.known < len(p.comms); p.known++ {
		gpu := description.GPU{Device: -1}
		if p.known < len(p.gpus) {
			gpu = p.gpus[p.known]
		}
		p.model.Comm(p.known, p.comms[p.known], gpu)
	}
}

// finish writes the rest. partial reports that operations may be missing.
func (p *processWriter) finish(partial bool) error {
	defer p.store.Close()
	p.announceComms(len(p.comms) - 1)
	err := p.model.Settle(p.last)
	if p.stated != nil { // it tells what was under way, which Finish ends
		p.model.Snapshot()
		p.pending = p.process.Pending
	}
	err = errors.Join(err, p.model.Finish())
	p.process.Import.Partial = partial
	p.process.Finished = true
	p.describe()
	err = errors.Join(err, p.store.Write(p.process)) // definitions before the events that use them
	for _, w := range p.writers {
		err = errors.Join(err, w.Close())
	}
	if err != nil {
		return err
	}
	p.describe() // updates the sizes of the files
	if err := p.store.Write(p.process); err != nil {
		return fmt.Errorf("%s: %w", p.store.Path(), err)
	}
	return p.store.Finish()
}

// describe updates the description of the process.
func (p *processWriter) describe() {
	p.model.Snapshot()
	p.process.Pending = append([]description.Pending{}, append(p.process.Pending, p.pending...)...)
	p.process.Counts.Import, p.process.Counts.Network = p.counts, p.model.Network()
	if p.stated != nil { // instead of what came of it again
		maps.Copy(p.process.Counts.Oddities, p.stated.Oddities)
		maps.Copy(p.process.Counts.Network, p.stated.Network)
	}
	for comm, called := range p.called {
		for function := range called.functions {
			all := p.process.Comms[comm].Sequences
			if s := all[function]; s.Count < called.number {
				s.Holes = append(slices.Clip(s.Holes), sequence.Hole{From: s.Count, To: called.number})
				s.Numbered, s.Count, s.Last, s.Recent = true, called.number, 0, nil
				all[function] = s
			}
		}
	}
}
