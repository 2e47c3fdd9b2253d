// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nccl-otf2/nccl-otf2/config"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/profile"
	"github.com/nccl-otf2/nccl-otf2/internal/replay/record"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// allAtOnce is recording.atOnce where a round takes all that there is.
const allAtOnce = math.MaxUint64

const severityHigh = regions.SeverityHigh

// Categories of markers where recording stopped, or where what is recorded changed.
const (
	categoryStopped = regions.CategoryRecording + " stopped"
	categoryChanged = regions.CategoryRecording + " changed"
)

// The window (ns) is how long a record may take from reading the clock to being published without
// becoming late. A writer that is preempted in between takes as long as the scheduler wants, so the window
// grows with the latest ones. With the host's clock the ticks are a program's own, whose threads may
// differ more.
const (
	firstWindow = 1e6
	mostWindow  = 50e6
)

// withheldWhy are the shard's words for why NCCL was not asked for all that was wanted.
var withheldWhy = map[shm.WithheldWhy]string{shm.WithheldLate: experiment.WithheldLate,
	shm.WithheldRoom: experiment.WithheldRoom}

// Keys of experiment.Process.Settings that are not settings: what a collector that takes over from a dead
// one needs to know of it.
const settingTaken = "TAKEN" // what was in the shard, or pending, at its last flush, see taken

// recording is one process's records on their way from a source into a shard.
type recording struct {
	source    shm.Source
	line      *timeline
	merge     merge
	model     *regions.Model
	script    *record.Transcript // record mode: takes the records instead of the model
	profile   *profile.Process   // profile mode: takes the events instead of files
	process   *experiment.Process
	store     *experiment.Store
	files     []*otf2.EventWriter // by location
	locations int                 // made so far

	announced int // communicator entries below are known to the model
	comms     map[int]bool
	skip      taken  // these are in another shard
	given     uint64 // time of the last record, or of the last advance
	stepped   uint64 // time of the last advance
	window    uint64 // ns
	before    uint64 // ticks when the rings were read last but one
	records   uint64
	atOnce    uint64 // records that a round takes at most
	taken     taken  // what is on disk, or pending, once the flush at hand is over
	defined   int    // definitions in shard.json

	descriptions uint64 // how often shard.json has been written

	cap            uint64 // bytes on disk, see checkCap; 0: no limit
	inherited      uint64 // bytes on disk of earlier collectors of this process
	capped         string // why nothing new is recorded; "" until the cap has been reached
	refuse         func() // tells the plugin to record nothing new
	failed         error  // nothing is written any more
	disk           disk
	lost           [shm.TypeCount]uint64
	uncounted      []string // see experiment.Counts.Uncounted
	markers        []experiment.Marker
	activities     map[uint32]uint64 // records of CUPTI's taken, by kind
	scorepThreads  []experiment.ScorepThread
	pending        []experiment.Pending // at the end of the process; nil before
	service        *timeWatch           // nil: the machine's time service is not asked
	sensorFailures uint64               // readings of GPUs' sensors that failed
	sensorLosses   uint64               // values that found no room
	resume         *experiment.Process  // what a dead collector left; nil: there was none
	died           map[string]uint64    // operations that it had in memory, by function
	brokenComms    uint64               // communicators whose size or rank cannot be
	diedCalls      uint64               // calls whose groups were open: their regions are missing
	securing       securing
	scarcity       scarcity
	backlog        backlog
	leaving        bool            // what is not decoded is left to others
	adopted        []*adopted      // backlogs of dead collectors of this process
	summed         []byte          // profile mode: the profile as it was last written
	end            *experiment.End // of the process; nil: it is still there, or nobody knows
}

// chunkSize is that of all event files. It is the same in all processes, as an archive has one. Score-P writes chunks
// of scorepChunkSize, so where it is in the process ours are as large: then the two can be merged without rewriting.
const (
	chunkSize       = 256 << 10
	scorepChunkSize = 1 << 20
)

// newRecording makes a shard of that name, which must not be there yet, in the experiment directory and describes the
// process in it.
func newRecording(source shm.Source, settings *config.Settings, launcher config.Launcher, directory, name string) (
	*recording, error) {
	h := source.Header()
	r := &recording{
		source: source, line: newTimeline(&h), window: firstWindow,
		comms:      make(map[int]bool),
		activities: make(map[uint32]uint64),
		cap:        settings.Disk, refuse: func() {}, atOnce: allAtOnce,
	}
	r.process = &experiment.Process{
		Version: experiment.Version, UUID: name,
		Host: h.Host(), BootID: h.Boot(), PID: int(h.PID), PIDStart: h.PIDStart, Tag: uint16(h.Tag),
		Executable:     h.Exe(),
		APIVersion:     int(h.APIVersion),
		Library:        h.Library.String(),
		LibraryVersion: int(h.LibraryVersion),
		LibraryPath:    h.CallerPath(),
		Memory:         memoryOf(&h),
		Launcher:       experiment.Launcher{Name: launcher.Name, Rank: launcher.Rank, Size: launcher.Size},
		Clock: experiment.Clock{Source: h.ClockSource.String(), AnchorRaw: h.Created.Raw,
			AnchorReal: h.Created.Real},
		Settings:       settings.Texts(),
		EventChunkSize: chunkSize,
		Masks:          experiment.Masks{NetSums: settings.NetSums && !settings.Profile},
		Markers:        []experiment.Marker{},
	}
	if r.line.host {
		r.window = mostWindow
	}
	if h.CollectorPID != 0 {
		if err := r.takeOver(directory); err != nil {
			return nil, err
		}
	}
	options := regions.Options{
		RecordMask: chosenEvents(settings, launcher, &h) &^ h.Withheld, Channels: settings.Channels, Raw: settings.Raw,
		Metrics: settings.Metrics, NetSums: settings.NetSums,
		Paradigm: regions.PlatformOf(r.process.Library).Paradigm, Resume: r.resume, Source: r,
	}
	if settings.Profile {
		// Sums are what a profile is made of in any case, and of single phases it knows the longest, too.
		options.Channels, options.Raw, options.Metrics, options.NetSums, options.Lasting = false, false, false, false,
			true
		r.profile = profile.NewProcess(r.process)
	}
	r.model = regions.New(r, r.process, &options)
	var err error
	if r.store, err = experiment.Create(directory, r.process.UUID); err != nil {
		return nil, err
	}
	r.store.BeforeEvents(r.define)
	if settings.Record {
		r.script, err = record.Create(directory, r.process, r.source, &h)
	}
	if err == nil {
		err = r.describe()
	}
	if err != nil {
		r.store.Remove()
		if r.script != nil {
			r.script.Remove()
		}
		return nil, err
	}
	return r, nil
}

func memoryOf(h *shm.Header) experiment.Memory {
	if h.MemoryKind == shm.MemoryShm {
		return experiment.Memory{Kind: memoryShm, Path: h.File()}
	}
	return experiment.Memory{Kind: "memfd"}
}

// memoryShm is experiment.Memory.Kind of memory that is a file.
const memoryShm = "shm"

// takeOver looks for the shards of earlier collectors of this process that died, and goes on from the last of them.
// What they have taken must not be taken again; what the last one had not written yet is lost, counted and marked.
func (r *recording) takeOver(directory string) error {
	entries, err := experiment.List(directory)
	if err != nil {
		return err
	}
	dead := make(map[string]*experiment.Process) // by uuid
	var backlogs []string
	for _, e := range entries {
		p := e.Process
		if p == nil || p.Finished || e.State == experiment.Writing || !sameProcess(p, r.process) {
			continue
		}
		if file := filepath.Join(e.Path, experiment.BacklogFile); !isOf(r.source, file) {
			backlogs = append(backlogs, file)
		}
		if p, err = resumable(e, directory); err != nil {
			return err
		} else if p == nil {
			continue
		}
		for i := range p.Locations {
			r.inherited += uint64(p.Locations[i].Bytes)
		}
		dead[p.UUID] = p
		r.securing.before = append(r.securing.before, e.Path)
	}
	if err := r.adopt(backlogs); err != nil {
		return err
	}
	generation := func(p *experiment.Process) (n int) {
		for ; p != nil && n <= len(dead); n++ {
			p = dead[p.Settings[experiment.SettingContinues]]
		}
		return n
	}
	var last *experiment.Process
	for _, p := range dead {
		t, err := parseTaken(p.Settings[settingTaken])
		if err != nil || last != nil && (t.last < r.skip.last || t.last == r.skip.last &&
			generation(p) < generation(last)) {
			continue
		}
		last, r.skip = p, t
	}
	if last == nil {
		return nil
	}
	r.process.Settings[experiment.SettingContinues] = last.UUID
	r.taken, r.merge.taken = r.skip, r.skip.clone()
	if size, ok := last.Settings[record.SettingBytes]; ok {
		r.process.Settings[record.SettingBytes] = size
	}
	r.resume, r.died = last, make(map[string]uint64)
	total := uint64(0)
	for i := range last.Comms {
		for key, n := range last.Unwritten(i) {
			r.died[experiment.FunctionOf(key)] += n
			total += n
		}
	}
	for _, c := range last.Resume.Calls {
		if c.Open && c.Group != 0 { // else its end is still to come, and with that its region
			r.diedCalls++
		}
	}
	text := fmt.Sprintf(
		"the collector died here and another took over; operations that it had in memory are missing: %d", total)
	r.markers = append(r.markers, experiment.Marker{
		Time: last.LastTime, Severity: severityHigh, Category: "NCCL collector", Location: -1, Text: text,
	})
	return nil
}

// resumable is what a dead collector's shard has for good; nil if that is nothing, and the shard is gone: all of it
// is in the process's memory yet.
func resumable(e experiment.Entry, directory string) (*experiment.Process, error) {
	p := e.Process
	if record.IsRecording(p) {
		if p.Settings[record.SettingBytes] != "0" {
			return p, nil
		}
		if err := os.Remove(record.Path(directory, p.UUID)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		return nil, os.RemoveAll(e.Path)
	}
	resume := rewind
	if p.IsProfile() {
		resume = resumeProfile
	}
	back, err := resume(e.Path)
	if err != nil {
		return p, nil // what was written since the checkpoint is there twice, but nothing is lost
	}
	if back == nil && !hasBacklog(e.Path) {
		return nil, os.RemoveAll(e.Path)
	} else if back == nil {
		return p, nil // as a power cut left it
	}
	return back, nil
}

// sameProcess reports whether two shards are of one job process.
func sameProcess(a, b *experiment.Process) bool {
	return a.Host == b.Host && a.BootID == b.BootID && a.PID == b.PID && a.PIDStart == b.PIDStart && a.Tag == b.Tag
}

// EventWriter implements regions.Sink.
func (r *recording) EventWriter(loc experiment.Location) (regions.EventWriter, error) {
	if r.profile != nil {
		r.locations++
		return r.profile.EventWriter(loc), nil
	}
	options := &otf2.EventWriterOptions{ChunkSize: r.process.EventChunkSize}
	if r.disk.patient {
		options.Patient = func(err error) { _ = r.hold(err) }
	}
	w, err := r.store.EventWriter(loc.Number, options)
	if err != nil {
		return nil, err
	}
	r.files = append(r.files, w) // numbers are 0, 1, 2, …
	r.locations++
	return w, nil
}

// Finished implements regions.Sink.
func (r *recording) Finished(number uint32) {
	if r.profile != nil {
		r.profile.Retire(otf2.LocationRef(number))
	}
}

// advanceTo takes the records of a round, less the window, and advances the model to that time. The round's
// clock was read before its rings.
func (r *recording) advanceTo(clock shm.ClockTuple) int {
	r.line.add(clock)
	return r.advance(clock, r.window)
}

// advance takes the records of a round, whose clock is on the line, but for those of the last window (ns).
func (r *recording) advance(clock shm.ClockTuple, window uint64) int {
	horizon := r.line.before(clock.Ticks, window)
	n := r.take(horizon)
	if uint64(n) >= r.atOnce {
		return n // there is more before the horizon
	}
	r.before = clock.Ticks
	if t := r.line.time(horizon); r.writes() && t > r.given {
		r.given = t
		r.step(t)
	}
	return n
}

// The model is advanced at steps of time that records alone tell, whenever rounds are: what it writes, and with what
// knowledge of the GPU's clock, depends on the records and not on when they were looked at.
const (
	stepNs  = 1 << 26 // 67 ms
	mostGap = 1 << 36 // of steps, 69 s: in longer gaps the last of them are enough
)

// step advances the model up to a time before which all records have been given.
func (r *recording) step(t uint64) {
	if r.stepped == 0 || t > r.stepped+mostGap {
		r.stepped = max(r.stepped, t-min(t, mostGap))
		if r.records == 0 {
			return
		}
	}
	for next := r.stepped - r.stepped%stepNs + stepNs; next <= t && r.failed == nil; next += stepNs {
		r.stepped = next
		r.fail(r.model.Advance(next))
	}
}

// takeRest takes all records that there are.
func (r *recording) takeRest() { r.take(math.MaxUint64) }

// take gives all records up to the horizon (ticks) to the model.
func (r *recording) take(horizon uint64) int {
	r.announce()
	left := r.atOnce
	n := r.merge.drain(r.source.Rings(), horizon, func(ring int, at uint64, rec *shm.Record, late bool) bool {
		r.record(ring, at, rec, late)
		left--
		return left > 0 && (r.disk.err == nil || r.failed != nil)
	})
	_ = r.hold(r.merge.stalled)
	return n
}

func (r *recording) record(ring int, at uint64, rec *shm.Record, late bool) {
	// A dead collector has had these. A transcript that cannot be gone on with needs the rings' owners; the model has
	// been told.
	another := r.skip.has(ring, at)
	if another && (r.script == nil || rec.Kind != shm.RecordThread) {
		return
	}
	if !another {
		r.records++
	}
	if r.records%capPeriod == 0 {
		r.checkCap()
	}
	if late && !another {
		r.model.Late()
		if r.before > rec.Ticks {
			r.window = max(r.window, min(2*r.line.nanoseconds(r.before-rec.Ticks), mostWindow))
		}
	}
	switch rec.Kind {
	case shm.RecordCupti:
		if len(rec.Activity) >= 4 {
			r.activities[binary.NativeEndian.Uint32(rec.Activity)]++
		}
	case shm.RecordScorepThread:
		r.scorepThreads = append(r.scorepThreads, experiment.ScorepThread{TID: int(rec.Aux), Location: uint32(rec.Arg)})
	case shm.RecordStart, shm.RecordInit, shm.RecordFinalize, shm.RecordEdge:
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
	if r.script != nil {
		_ = r.hold(r.script.Take(ring, t, rec))
		return
	}
	r.step(t)
	r.fail(r.model.Record(ring, t, rec))
}

// define brings definitions to disk that are not there yet. A chunk of events goes there when it is full, whether it is
// time to flush or not: what it refers to must be there before. All else stays as it was told last.
func (r *recording) define() error {
	if r.definitions() == r.defined {
		return nil
	}
	return r.write()
}

// write replaces shard.json.
func (r *recording) write() error {
	r.descriptions++
	defined := r.definitions()
	err := r.store.Write(r.process)
	if err == nil {
		r.defined = defined
	}
	return err
}

// definitions is how many there are that events refer to.
func (r *recording) definitions() int {
	p := r.process
	return len(p.Strings) + len(p.Regions) + len(p.Comms) + len(p.Metrics) + r.locations
}

// settle writes what is complete without waiting for more.
func (r *recording) settle() {
	if r.writes() {
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
	if c.NRanks < 0 || c.NRanks > experiment.MaxRanks || c.Rank >= experiment.MaxRanks || c.NRanks > 0 &&
		(c.Rank < 0 || c.Rank >= c.NRanks) {
		c.NRanks, c.Rank = 0, -1 // as if NCCL had told neither
		r.brokenComms++
	}
	r.model.Comm(i, experiment.Comm{
		ID: c.ID, Name: c.Name, NRanks: c.NRanks, Rank: c.Rank, NNodes: c.NNodes, InitTime: r.line.time(c.InitTicks),
	}, experiment.GPU{Device: c.Device, UUID: c.UUID, PCI: c.PCI})
	return true
}

// fail ends the recording for good. From here on what NCCL reports costs no more than being counted.
func (r *recording) fail(err error) {
	if err != nil && r.failed == nil {
		r.failed = err
		r.refuse()
		r.markers = append(r.markers, experiment.Marker{
			Time: r.given, Severity: severityHigh, Category: categoryStopped,
			Text: "nothing is recorded from here on: " + err.Error(), Location: -1,
		})
	}
}

// flush brings everything to disk: definitions, then events, then what says so. The error is that of the disk: it is
// held, and the next flush tries all of it again.
func (r *recording) flush() error {
	if r.failed != nil {
		return r.failed
	}
	err := r.data()
	if err == nil && r.script == nil {
		err = r.checkpoint()
	}
	if err == nil {
		r.disk.err = nil
	}
	return r.hold(err)
}

// data brings all that has been taken to disk.
func (r *recording) data() error {
	if r.script != nil {
		// First what was taken, then what says that it was.
		if err := r.script.Flush(); err != nil {
			return err
		}
		r.taken = r.merge.taken.clone()
		err := r.describe()
		if err == nil {
			r.secureDescribed()
		}
		return err
	}
	if err := r.describe(); err != nil {
		return err
	}
	if r.profile != nil {
		return r.writeProfile()
	}
	for _, w := range r.files {
		size := w.Size()
		if err := w.Flush(); err != nil {
			return err
		}
		if w.Size() == size { // nothing has come since the last flush
			w.Park()
		}
	}
	return nil
}

// widen takes larger chunks for all files, unless one of them has several already. It is known that Score-P is in the
// process when its first communicator has been made, which may be after the first event was written.
//
// The description must be written before further events are.
func (r *recording) widen() {
	h := r.source.Header()
	inside := h.ScorepState != shm.ScorepOff || h.ScorepMeasured != 0
	if !inside || r.process.EventChunkSize == scorepChunkSize {
		return
	}
	for _, w := range r.files {
		if w.Size() > chunkSize {
			return
		}
	}
	for _, w := range r.files {
		w.Widen(scorepChunkSize)
	}
	r.process.EventChunkSize = scorepChunkSize
}

// describe writes shard.json as of now.
func (r *recording) describe() error {
	r.widen()
	r.snapshot()
	return r.write()
}

// ThreadName is what the system calls a thread of the process, while that is there.
func (r *recording) ThreadName(tid int) string {
	if start, err := shm.ProcessStart(r.process.PID); err != nil || start != r.process.PIDStart {
		return ""
	}
	name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/comm", r.process.PID, tid))
	return strings.TrimSuffix(string(name), "\n")
}

// LostCollectives reports whether the plugin, or a collector before this one, has lost any so far.
func (r *recording) LostCollectives() bool {
	for reason := range shm.LossReason(shm.LossReasons) {
		if reason != shm.LossStopMemory && r.source.Lost(reason, shm.EventColl) > 0 {
			return true
		}
	}
	return r.lost[shm.EventColl] > 0
}

// parts are what kernels are counted by.
var parts = []shm.EventType{shm.EventGroup, shm.EventColl, shm.EventP2p, shm.EventKernelCh, shm.EventCollApi,
	shm.EventKernelLaunch}

// LostParts reports whether anything was lost that kernels are counted by. It is asked for each operation.
func (r *recording) LostParts() bool {
	for _, t := range parts {
		for reason := range shm.LossReason(shm.LossReasons) {
			if r.source.Lost(reason, t) > 0 {
				return true
			}
		}
		if r.lost[t] > 0 {
			return true
		}
	}
	return false
}

// maxMarkers bounds what is kept of them in a process that goes on for ever; the model bounds its own.
const maxMarkers = 4096

// snapshot brings r.process up to date: the model's part, and what only the collector knows.
func (r *recording) snapshot() {
	p := r.process
	r.model.Snapshot()
	if r.pending != nil {
		p.Pending = r.pending
	}
	if p.Pending == nil {
		p.Pending = []experiment.Pending{} // an empty list, not null
	}
	r.describeFinalized()
	if !r.line.host {
		p.Clock.Tuples = r.line.kept.tuples()
		p.Clock.Readings = r.service.taken()
	}
	if len(p.Markers) < maxMarkers {
		p.Markers = append(p.Markers, r.markers...)
		p.Markers = append(p.Markers, r.line.jumps...)
	}
	r.markers, r.line.jumps = nil, nil
	p.Settings[settingTaken] = r.taken.String()
	p.End = r.end

	h := r.source.Header()
	p.Masks = experiment.Masks{Event: h.EventMask &^ h.Withheld, Record: h.RecordMask & allTypes,
		Withheld: h.Withheld & h.EventMask, NetSums: p.Masks.NetSums}
	if p.Masks.Withheld != 0 {
		p.Masks.WithheldWhy = withheldWhy[h.WithheldWhy]
	}
	r.describeSources(&h)
	p.Costs = append(append(r.costs(&h), r.scarcity.costs()...), r.backlog.costs()...)
	p.Waited = time.Duration(h.Waited)
	r.describeCounts(&h)
	r.describeLosses(&h)
	if r.script != nil {
		r.script.Describe(p)
	}
	r.describeOddities(&h)
}

// describeFinalized states when communicators ended whose FINALIZE record may have found no room.
func (r *recording) describeFinalized() {
	for i := range r.process.Comms {
		if c := &r.process.Comms[i]; c.NRanks > 0 && c.FinalTime == 0 {
			if e, ok := r.source.Comm(i); ok && e.FinalTicks != 0 && e.FinalTicks <= r.merge.taken.last {
				c.FinalTime = r.line.time(e.FinalTicks)
			}
		}
	}
}

// describeSources states what became of CUPTI and Score-P.
func (r *recording) describeSources(h *shm.Header) {
	p := r.process
	if h.CuptiKinds != 0 || h.CuptiState != shm.CuptiOff {
		p.Cupti = &experiment.Cupti{State: h.CuptiState.String(), Version: h.CuptiVersion, Error: h.CuptiError,
			Why:   h.CuptiReason(),
			Kinds: h.CuptiKinds, Records: r.activities}
	}
	if h.ScorepState != shm.ScorepOff {
		p.Scorep = &experiment.Scorep{State: h.ScorepState.String(), Model: h.ScorepModel.String(),
			Why: h.ScorepReason(), Points: h.ScorepPoints != 0}
	}
	if h.ScorepMeasured != 0 {
		if p.Scorep == nil {
			p.Scorep = &experiment.Scorep{State: h.ScorepState.String(), Model: h.ScorepModel.String()}
		}
		p.Scorep.Substrate = &experiment.ScorepSubstrate{Rank: int(h.ScorepRank), Threads: r.scorepThreads}
	}
}

// describeCounts states what was done and what the user asked not to be recorded.
func (r *recording) describeCounts(h *shm.Header) {
	p := r.process
	p.Counts.Scorep = h.ScorepCalls()
	p.Counts.NullHandles = h.NullHandles
	p.Counts.Network = r.model.Network()
	p.Counts.Paused = shm.ByName(&h.Paused)
	for i := range p.Comms {
		if n := p.Comms[i].Unreported; n > 0 {
			p.Counts.Paused["OperationsByRAS"] += n
		}
	}
	p.Counts.Filtered = shm.ByName(&h.Filtered)
}

// describeLosses states what was lost, by reason, beside what the model could not draw.
func (r *recording) describeLosses(h *shm.Header) {
	lost := maps.Clone(r.process.Counts.Lost)
	if lost == nil {
		lost = make(map[string]map[string]uint64)
	}
	for reason := range h.Lost {
		if n := shm.ByName(&h.Lost[reason]); len(n) > 0 {
			lost[shm.LossReason(reason).String()] = n
		}
	}
	taken := r.lost
	for t, n := range h.Lost[shm.LossDisk] {
		taken[t] += n
	}
	if n := shm.ByName(&taken); len(n) > 0 {
		lost[shm.LossDisk.String()] = n
	}
	if len(r.died) > 0 {
		lost[experiment.LostWithCollector] = r.died
	}
	r.process.Counts.Lost, r.process.Counts.Uncounted = lost, r.uncounted
}

// describeOddities states what of the collector's own and the plugin's counts contradicts the rules.
func (r *recording) describeOddities(h *shm.Header) {
	for name, n := range map[string]uint64{
		oddDiskErrors:             r.disk.errors,
		experiment.LostMarks:      h.LostMarks,
		experiment.ForeignHandles: h.Foreign,
		experiment.UnknownStrings: r.source.Strings().Missing,
		experiment.BrokenRings:    r.brokenRings(),
		"SENSOR_FAILURES":         r.sensorFailures,
		"DISK_SYNC_FAILURES":      r.securing.failures,
		"SENSOR_LOSSES":           r.sensorLosses,
		"DIED_CALLS":              r.diedCalls,
		"BACKLOG_FULL":            r.backlog.filled,
		experiment.Unanswered:     uint64(h.Unanswered),
		"BROKEN_COMMS":            r.brokenComms,
		experiment.MissingBytes:   missingBytes(r.source),
		experiment.CuptiLost:      h.CuptiLost,
		experiment.CuptiDropped:   h.CuptiDropped,
		experiment.CuptiUnknown:   h.CuptiUnknown,

		experiment.CuptiBuffersOut:         h.CuptiBuffersOut,
		experiment.CuptiBuffersStrange:     h.CuptiBuffersStrange,
		experiment.CuptiBuffersOverwritten: h.CuptiBuffersOverwritten,
	} {
		if n > 0 {
			r.process.Counts.Oddities[name] = n
		}
	}
}

// allTypes are the bits of a record mask that are event types.
const allTypes = 1<<shm.TypeCount - 1

// costs converts what the plugin has measured of itself.
func (r *recording) costs(h *shm.Header) []experiment.Cost {
	rate := r.line.rate
	if r.line.host || rate == 0 {
		rate = 1
	}
	var out []experiment.Cost
	for c := range h.Cost {
		for t, cost := range h.Cost[c] {
			if cost.Samples > 0 {
				out = append(out, experiment.Cost{
					Callback: shm.Callback(c).String(), Type: shm.EventType(t).String(), Samples: cost.Samples,
					MeanNs: float64(cost.Ticks) / float64(cost.Samples) * rate, MostNs: float64(cost.Most) * rate,
				})
			}
		}
	}
	return out
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
	switch s := s.(type) {
	case *shm.Spool:
		return s.Lacking()
	case continued:
		return s.spool.Lacking()
	case leftBacklog:
		return s.Lacking()
	}
	return 0
}

// finish ends the time line and closes the files. finished says that all the process left has been
// taken; then the shard gets its done marker.
func (r *recording) finish(finished bool) error {
	defer r.store.Close()
	defer r.closeBacklogs()
	for _, ring := range r.source.Rings() {
		if err := ring.Err(); err != nil {
			r.markers = append(r.markers, experiment.Marker{
				Time: r.given, Severity: severityHigh, Category: "NCCL records damaged", Text: err.Error(),
				Location: -1,
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
	if r.leaving || r.unread() { // the next reader goes on from the last checkpoint
		r.fail(errUnread)
		r.close()
		return r.failed
	}
	r.taken = r.merge.taken
	if r.failed == nil {
		r.fail(r.insist(r.data))
	}
	r.close()
	r.process.Finished = finished && r.failed == nil
	describe := r.describe
	if r.failed != nil && r.disk.patient {
		describe = r.describeLost
	}
	if err := r.insist(describe); err != nil {
		return errors.Join(r.failed, err)
	}
	// A kill finds all that the process left, a power cut what was secured before.
	var err error
	if r.failed == nil {
		err = r.secureEnd()
	}
	if finished {
		err = errors.Join(err, r.insist(r.store.Finish))
	}
	return errors.Join(r.failed, err)
}

// close closes the files. All is in them, or what is not is lost.
func (r *recording) close() {
	if r.script != nil {
		if err := r.script.Close(); err != nil {
			r.closing(err)
		}
	}
	for _, w := range r.files {
		end := w.Close
		if r.failed != nil { // what is in memory may need definitions that are not on disk
			end = w.Abandon
		}
		if err := end(); err != nil {
			r.closing(err)
		}
	}
}
