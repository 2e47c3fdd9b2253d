// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/google/uuid"

	"ncclotf2/config"
	"ncclotf2/otf2"
	"ncclotf2/plugin/shm"
	"ncclotf2/regions"
	"ncclotf2/shard"
)

const severityHigh = regions.SeverityHigh

// The window (ns) is how long a record may take from reading the clock to being published without
// becoming late. A writer that is preempted in between takes as long as the scheduler wants, so the window
// grows with the latest ones. With the host's clock the ticks are a program's own, whose threads may
// differ more.
const (
	firstWindow = 1e6
	mostWindow  = 50e6
)

// Keys of shard.Process.Settings that are not settings: what a collector that takes over from a dead
// one needs to know of it.
const (
	settingContinues = "CONTINUES"   // uuid of the dead one's shard
	settingTaken     = "TAKEN_TICKS" // records up to this were in the shard, or pending, at its last flush
)

// reasonDisk is the key of Counts.Lost for what was taken out of the rings and could not be written.
const reasonDisk = "disk"

// recording is one process's records on their way from a source into a shard.
type recording struct {
	source  shm.Source
	line    *timeline
	merge   merge
	model   *regions.Model
	process *shard.Process
	store   *shard.Store
	files   map[uint32]*otf2.EventWriter

	announced int // communicator entries below are known to the model
	comms     map[int]bool
	skip      uint64 // records up to these ticks are in another shard
	given     uint64 // time of the last record, or of the last advance
	window    uint64 // ns
	before    uint64 // ticks when the rings were read last but one
	records   uint64
	taken     uint64 // ticks up to which records are on disk, or pending, once the flush at hand is over
	defined   int    // definitions in shard.json

	failed  error // of the disk; nothing is written any more
	lost    [shm.TypeCount]uint64
	markers []shard.Marker
	pending []shard.Pending // at the end of the process; nil before
}

// chunkSize is that of all event files. It is the same in all processes, as an archive has one.
const chunkSize = 256 << 10

// newRecording makes a shard in the experiment directory and describes the process in it.
func newRecording(source shm.Source, settings *config.Settings, launcher config.Launcher, experiment string) (*recording, error) {
	h := source.Header()
	r := &recording{
		source: source, line: newTimeline(&h), window: firstWindow,
		files: make(map[uint32]*otf2.EventWriter), comms: make(map[int]bool),
	}
	r.process = &shard.Process{
		Version: shard.Version, UUID: uuid.NewString(),
		Host: h.Host(), BootID: h.Boot(), PID: int(h.PID), PIDStart: h.PIDStart, Tag: uint16(h.Tag), Executable: h.Exe(),
		APIVersion:     int(h.APIVersion),
		Launcher:       shard.Launcher{Name: launcher.Name, Rank: launcher.Rank, Size: launcher.Size},
		Clock:          shard.Clock{Source: h.ClockSource.String(), AnchorRaw: h.Created.Raw, AnchorReal: h.Created.Real},
		Settings:       settings.Texts(),
		EventChunkSize: chunkSize,
		Markers:        []shard.Marker{},
	}
	if r.line.host {
		r.window = mostWindow
	}
	if h.CollectorPID != 0 {
		if err := r.takeOver(experiment); err != nil {
			return nil, err
		}
	}
	r.model = regions.New(r, r.process, &regions.Options{RecordMask: recordMask(settings, launcher, &h)})
	var err error
	if r.store, err = shard.Create(experiment, r.process.UUID); err != nil {
		return nil, err
	}
	if err := r.describe(); err != nil {
		r.store.Remove()
		return nil, err
	}
	return r, nil
}

// recordMask is what is recorded in this process: what was asked for, of what the API version has.
func recordMask(s *config.Settings, l config.Launcher, h *shm.Header) uint32 {
	if len(s.Ranks) > 0 && l.Rank >= 0 && !s.Ranks.Has(l.Rank) {
		return 0
	}
	return s.Events & shm.KnownTypes(int(h.APIVersion))
}

// takeOver looks for the shard of an earlier collector of this process that died. What it has taken
// must not be taken again; what it had not written yet is lost, and marked.
func (r *recording) takeOver(experiment string) error {
	entries, err := shard.List(experiment)
	if err != nil {
		return err
	}
	for _, e := range entries {
		p := e.Process
		if p == nil || p.Finished || e.State == shard.Writing ||
			p.Host != r.process.Host || p.BootID != r.process.BootID || p.PID != r.process.PID ||
			p.PIDStart != r.process.PIDStart || p.Tag != r.process.Tag {
			continue
		}
		taken, err := strconv.ParseUint(p.Settings[settingTaken], 10, 64)
		if err != nil || taken < r.skip {
			continue
		}
		r.skip = taken
		r.process.Settings[settingContinues] = p.UUID
		r.process.Settings[settingTaken] = strconv.FormatUint(taken, 10)
		r.markers = append(r.markers[:0], shard.Marker{
			Time: p.LastTime, Severity: severityHigh, Category: "NCCL collector", Location: -1,
			Text: fmt.Sprintf("the collector died here and another took over; up to %d operations under way are incomplete", len(p.Pending)),
		})
	}
	return nil
}

// EventWriter implements regions.Sink.
func (r *recording) EventWriter(loc shard.Location) (*otf2.EventWriter, error) {
	w, err := otf2.CreateEventWriter(r.store.EventFile(loc.Number), &otf2.EventWriterOptions{ChunkSize: chunkSize})
	if err != nil {
		return nil, err
	}
	r.files[loc.Number] = w
	return w, nil
}

// advanceTo takes the records of a round, less the window, and advances the model to that time. The round's
// clock was read before its rings.
func (r *recording) advanceTo(clock shm.ClockTuple) int {
	r.line.add(clock)
	horizon := r.line.before(clock.Ticks, r.window)
	n := r.take(horizon)
	r.before = clock.Ticks
	if t := r.line.time(horizon); r.failed == nil && t > r.given {
		r.given = t
		r.fail(r.model.Advance(t))
	}
	return n
}

// takeRest takes all records that there are.
func (r *recording) takeRest() { r.take(math.MaxUint64) }

// take gives all records up to the horizon (ticks) to the model.
func (r *recording) take(horizon uint64) int {
	r.announce()
	return r.merge.drain(r.source.Rings(), horizon, func(ring int, rec *shm.Record, late bool) bool {
		r.record(ring, rec, late)
		return true
	})
}

func (r *recording) record(ring int, rec *shm.Record, late bool) {
	// A dead collector has had these. The rings' owners are still of interest.
	if rec.Ticks <= r.skip && rec.Kind != shm.RecordThread {
		return
	}
	r.records++
	if late {
		r.model.Late()
		if r.before > rec.Ticks {
			r.window = max(r.window, min(2*r.line.nanoseconds(r.before-rec.Ticks), mostWindow))
		}
	}
	switch rec.Kind {
	case shm.RecordStart, shm.RecordInit, shm.RecordFinalize:
		if rec.Aux != shm.None && !r.comms[int(rec.Aux)] {
			r.announceOne(int(rec.Aux))
		}
	}
	if r.failed != nil {
		if rec.Kind == shm.RecordStart {
			r.lost[rec.Type]++
		}
		return
	}
	t := r.line.time(rec.Ticks)
	r.given = max(r.given, t)
	r.fail(r.model.Record(ring, t, rec))
	// A chunk goes to disk when it is full, whether it is time to flush or not: what it refers to must
	// be there before.
	if r.failed == nil && r.definitions() != r.defined {
		r.fail(r.describe())
	}
}

// definitions is how many there are that events refer to.
func (r *recording) definitions() int {
	p := r.process
	return len(p.Strings) + len(p.Regions) + len(p.Comms) + len(r.files)
}

// settle writes what is complete without waiting for more.
func (r *recording) settle() {
	if r.failed == nil {
		r.fail(r.model.Settle(r.given))
	}
}

// announce tells the model of communicators whose init is past.
func (r *recording) announce() {
	for n := r.source.Comms(); r.announced < n && r.announceOne(r.announced); r.announced++ {
	}
}

// announceOne tells the model of an entry, once, if it is ready.
func (r *recording) announceOne(i int) bool {
	if r.comms[i] {
		return true
	}
	c, ok := r.source.Comm(i)
	if !ok {
		return false
	}
	r.comms[i] = true
	r.model.Comm(i, shard.Comm{
		ID: c.ID, Name: c.Name, NRanks: c.NRanks, Rank: c.Rank, NNodes: c.NNodes, InitTime: r.line.time(c.InitTicks),
	}, shard.GPU{Device: c.Device, UUID: c.UUID, PCI: c.PCI})
	return true
}

// fail keeps the first error of the disk and tells of it.
func (r *recording) fail(err error) {
	if err != nil && r.failed == nil {
		r.failed = err
		r.markers = append(r.markers, shard.Marker{
			Time: r.given, Severity: severityHigh, Category: "NCCL recording stopped",
			Text: "nothing is recorded from here on: " + err.Error(), Location: -1,
		})
	}
}

// flush brings everything to disk: definitions, then events. The error is that of the disk, the same
// one at each call once there was one.
func (r *recording) flush() error {
	if r.failed != nil {
		return r.failed
	}
	r.taken = r.merge.last
	if err := r.describe(); err != nil {
		r.fail(err)
		return r.failed
	}
	for _, w := range r.files {
		if err := w.Flush(); err != nil {
			r.fail(err)
		}
	}
	return r.failed
}

// describe writes shard.json as of now.
func (r *recording) describe() error {
	r.snapshot()
	r.defined = r.definitions()
	return r.store.Write(r.process)
}

// snapshot brings r.process up to date: the model's part, and what only the collector knows.
func (r *recording) snapshot() {
	p := r.process
	r.model.Snapshot()
	if r.pending != nil {
		p.Pending = r.pending
	}
	if p.Pending == nil {
		p.Pending = []shard.Pending{} // an empty list, not null
	}
	for i := range p.Comms {
		// The FINALIZE record may have found no room.
		if c := &p.Comms[i]; c.NRanks > 0 && c.FinalTime == 0 {
			if e, ok := r.source.Comm(i); ok && e.FinalTicks != 0 && e.FinalTicks <= r.merge.last {
				c.FinalTime = r.line.time(e.FinalTicks)
			}
		}
	}
	p.Markers = append(p.Markers, r.markers...)
	p.Markers = append(p.Markers, r.line.jumps...)
	r.markers, r.line.jumps = nil, nil
	p.Settings[settingTaken] = strconv.FormatUint(max(r.taken, r.skip), 10)

	h := r.source.Header()
	p.Counts.Filtered = shm.ByName(&h.Filtered)
	p.Counts.Lost = make(map[string]map[string]uint64)
	for reason := range h.Lost {
		if n := shm.ByName(&h.Lost[reason]); len(n) > 0 {
			p.Counts.Lost[shm.LossReason(reason).String()] = n
		}
	}
	if n := shm.ByName(&r.lost); len(n) > 0 {
		p.Counts.Lost[reasonDisk] = n
	}
	for name, n := range map[string]uint64{
		"FOREIGN_HANDLES": h.Foreign,
		"UNKNOWN_STRINGS": r.source.Strings().Missing,
		"BROKEN_RINGS":    r.brokenRings(),
		"MISSING_BYTES":   missingBytes(r.source),
	} {
		if n > 0 {
			p.Counts.Oddities[name] = n
		}
	}
}

func (r *recording) brokenRings() (n uint64) {
	for _, ring := range r.source.Rings() {
		if ring.Err() != nil {
			n++
		}
	}
	return n
}

func missingBytes(s shm.Source) uint64 {
	if spool, ok := s.(*shm.Spool); ok {
		return spool.Lacking()
	}
	return 0
}

// finish ends the time line and closes the files. finished says that all the process left has been
// taken; then the shard gets its done marker.
func (r *recording) finish(finished bool) error {
	defer r.store.Close()
	for _, ring := range r.source.Rings() {
		if err := ring.Err(); err != nil {
			r.markers = append(r.markers, shard.Marker{
				Time: r.given, Severity: severityHigh, Category: "NCCL records damaged", Text: err.Error(), Location: -1,
			})
		}
	}
	// What was under way when the process ended: Finish closes it, and readers of a hang want to know.
	r.settle()
	r.model.Snapshot()
	r.pending = r.process.Pending
	if r.failed == nil {
		r.fail(r.model.Finish())
	}
	r.taken = r.merge.last
	if r.failed == nil {
		if err := r.describe(); err != nil { // before the events that use its definitions
			r.fail(err)
		}
	}
	for _, w := range r.files {
		end := w.Close
		if r.failed != nil { // what is in memory may need definitions that are not on disk
			end = w.Abandon
		}
		if err := end(); err != nil {
			r.fail(err)
		}
	}
	r.process.Finished = finished && r.failed == nil
	if err := r.describe(); err != nil {
		return errors.Join(r.failed, err)
	}
	if finished {
		if err := r.store.Finish(); err != nil {
			return errors.Join(r.failed, err)
		}
	}
	return r.failed
}
