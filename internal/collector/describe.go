// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"github.com/nccl-otf2/nccl-otf2/config"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/loss"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/provenance"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// Markers of the collector in one description are bounded, as a process may go on for ever. The model bounds its own.
const maxMarkers = 4096

// memoryShm is provenance.Memory.Kind of memory that is a file.
const memoryShm = "shm"

// settingTaken is the key of description.Process.Settings that says which records were in the shard, or pending, at its
// last flush (see positions). It is no setting: a collector that takes over from a dead one needs it.
const settingTaken = "TAKEN"

// allTypes are the bits of a record mask that are event types.
const allTypes = 1<<shm.TypeCount - 1

// withheldWhy are the shard's words for why NCCL was not asked for all that was wanted.
var withheldWhy = map[shm.WithheldWhy]string{shm.WithheldLate: provenance.WithheldLate,
	shm.WithheldRoom: provenance.WithheldRoom}

// newProcess describes a process by what its header and the settings say.
func newProcess(h *shm.Header, s *config.Settings, launcher config.Launcher, name string) *description.Process {
	p := &description.Process{
		Version: description.Version, UUID: name,
		Host: h.Host(), BootID: h.Boot(), PID: int(h.PID), PIDStart: h.PIDStart, Tag: uint16(h.Tag),
		Executable: h.Exe(), APIVersion: int(h.APIVersion),
		Library: h.Library.String(), LibraryVersion: int(h.LibraryVersion), LibraryPath: h.CallerPath(),
		Memory:   provenance.Memory{Kind: "memfd"},
		Launcher: provenance.Launcher(launcher),
		Clock: provenance.Clock{Source: h.ClockSource.String(), AnchorRaw: h.Created.Raw,
			AnchorReal: h.Created.Real},
		Settings: s.Texts(), EventChunkSize: chunkSize, Masks: provenance.Masks{NetSums: s.NetSums && !s.Profile},
		Markers: []description.Marker{},
	}
	if h.MemoryKind == shm.MemoryShm {
		p.Memory = provenance.Memory{Kind: memoryShm, Path: h.File()}
	}
	return p
}

// sameProcess reports whether two shards are of one job process.
func sameProcess(a, b *description.Process) bool {
	return a.Host == b.Host && a.BootID == b.BootID && a.PID == b.PID && a.PIDStart == b.PIDStart && a.Tag == b.Tag
}

// otherRecorders are CUPTI and Score-P in the process, as far as their records tell.
type otherRecorders struct {
	activities map[uint32]uint64 // CUPTI's records, by kind
	threads    []provenance.ScorepThread
}

// countRecord counts a record of theirs.
func (o *otherRecorders) countRecord(rec *shm.Record) {
	switch rec.Kind {
	case shm.RecordCupti:
		if len(rec.Activity) >= 4 {
			o.activities[binary.NativeEndian.Uint32(rec.Activity)]++
		}
	case shm.RecordScorepThread:
		o.threads = append(o.threads, provenance.ScorepThread{TID: int(rec.Aux), Location: uint32(rec.Arg)})
	}
}

// describe states what became of them.
func (o *otherRecorders) describe(p *description.Process, h *shm.Header) {
	if h.CuptiKinds != 0 || h.CuptiState != shm.CuptiOff {
		p.Cupti = &provenance.Cupti{State: h.CuptiState.String(), Version: h.CuptiVersion, Error: h.CuptiError,
			Why: h.CuptiReason(), Kinds: h.CuptiKinds, Records: o.activities}
	}
	if h.ScorepState != shm.ScorepOff {
		p.Scorep = &provenance.Scorep{State: h.ScorepState.String(), Model: h.ScorepModel.String(),
			Why: h.ScorepReason(), Points: h.ScorepPoints != 0}
	}
	if h.ScorepMeasured != 0 {
		if p.Scorep == nil {
			p.Scorep = &provenance.Scorep{State: h.ScorepState.String(), Model: h.ScorepModel.String()}
		}
		p.Scorep.Substrate = &provenance.ScorepSubstrate{Rank: int(h.ScorepRank), Threads: o.threads}
	}
}

// describe writes shard.json as of now.
func (r *recording) describe() error {
	h := r.drain.source.Header()
	r.output.widenChunks(&h)
	r.snapshot()
	return r.shard.write()
}

// snapshot brings the description of the process up to date: the model's part, and what only the collector knows.
func (r *recording) snapshot() {
	p, s := r.shard.process, &r.shard
	r.feed.model.Snapshot()
	if s.pending != nil {
		p.Pending = s.pending
	}
	if p.Pending == nil {
		p.Pending = []description.Pending{} // an empty list, not null
	}
	r.drain.describeFinalized(p.Comms)
	if !r.drain.line.host {
		p.Clock.Tuples = r.drain.line.kept.tuples()
		p.Clock.Readings = r.service.taken()
	}
	if len(p.Markers) < maxMarkers {
		p.Markers = append(p.Markers, s.markers...)
		p.Markers = append(p.Markers, r.drain.line.jumps...)
	}
	s.markers, r.drain.line.jumps = nil, nil
	p.Settings[settingTaken] = s.taken.String()
	p.End = s.end

	h := r.drain.source.Header()
	p.Masks = provenance.Masks{Event: h.EventMask &^ h.Withheld, Record: h.RecordMask & allTypes,
		Withheld: h.Withheld & h.EventMask, NetSums: p.Masks.NetSums}
	if p.Masks.Withheld != 0 {
		p.Masks.WithheldWhy = withheldWhy[h.WithheldWhy]
	}
	r.others.describe(p, &h)
	p.Costs = append(append(r.drain.line.costs(&h), r.scarcity.costs()...), r.backlog.costs()...)
	p.Waited = time.Duration(h.Waited)
	p.Counts.Network, p.Counts.Scorep, p.Counts.NullHandles = r.feed.model.Network(), h.ScorepCalls(), h.NullHandles
	p.Counts.Filtered, p.Counts.Paused = shm.ByName(&h.Filtered), shm.ByName(&h.Paused)
	for i := range p.Comms {
		if n := p.Comms[i].Unreported; n > 0 {
			p.Counts.Paused["OperationsByRAS"] += n
		}
	}
	r.losses.describe(&p.Counts, &h, r.dead.operations)
	r.output.describe(p)
	r.describeOddities(&h)
}

// describeFinalized states when communicators ended whose FINALIZE record may have found no room.
func (d *drain) describeFinalized(comms []description.Comm) {
	for i := range comms {
		if c := &comms[i]; c.NRanks > 0 && c.FinalTime == 0 {
			if e, ok := d.source.Comm(i); ok && e.FinalTicks != 0 && e.FinalTicks <= d.merge.taken.last {
				c.FinalTime = d.line.time(e.FinalTicks)
			}
		}
	}
}

// describeOddities states which counts of the collector and the plugin contradict the rules.
func (r *recording) describeOddities(h *shm.Header) {
	for name, n := range map[string]uint64{
		oddDiskErrors:        r.disk.errors,
		loss.LostMarks:       h.LostMarks,
		loss.ForeignHandles:  h.Foreign,
		loss.UnknownStrings:  r.drain.source.Strings().Missing,
		loss.BrokenRings:     r.drain.brokenRings(),
		"SENSOR_FAILURES":    r.sensors.failures,
		"DISK_SYNC_FAILURES": r.syncer.failures,
		"SENSOR_LOSSES":      r.sensors.losses,
		"DIED_CALLS":         r.dead.calls,
		"BACKLOG_FULL":       r.backlog.filled,
		loss.Unanswered:      uint64(h.Unanswered),
		"BROKEN_COMMS":       r.feed.brokenComms,
		loss.MissingBytes:    r.drain.missingBytes(),
		loss.CuptiLost:       h.CuptiLost,
		loss.CuptiDropped:    h.CuptiDropped,
		loss.CuptiUnknown:    h.CuptiUnknown,

		loss.CuptiBuffersOut:         h.CuptiBuffersOut,
		loss.CuptiBuffersStrange:     h.CuptiBuffersStrange,
		loss.CuptiBuffersOverwritten: h.CuptiBuffersOverwritten,
	} {
		if n > 0 {
			r.shard.process.Counts.Oddities[name] = n
		}
	}
}

// costs are the plugin's measurements of itself in nanoseconds.
func (t *timeline) costs(h *shm.Header) []provenance.Cost {
	rate := t.rate
	if t.host || rate == 0 {
		rate = 1
	}
	var out []provenance.Cost
	for c := range h.Cost {
		for typ, cost := range h.Cost[c] {
			if cost.Samples > 0 {
				out = append(out, provenance.Cost{
					Callback: shm.Callback(c).String(), Type: shm.EventType(typ).String(), Samples: cost.Samples,
					MeanNs: float64(cost.Ticks) / float64(cost.Samples) * rate, MostNs: float64(cost.Most) * rate,
				})
			}
		}
	}
	return out
}

// losses are the events that the plugin could not record or the collector could not write.
type losses struct {
	drain     *drain
	unwritten [shm.TypeCount]uint64 // records taken after writing had ended for good
	uncounted []string              // see description.Counts.Uncounted
}

// collectives reports whether any collective has been lost so far.
func (l *losses) collectives() bool {
	return l.drain.lost(shm.EventColl, shm.LossStopMemory) || l.unwritten[shm.EventColl] > 0
}

// kernelParts are the types of events by which kernels are counted.
var kernelParts = []shm.EventType{shm.EventGroup, shm.EventColl, shm.EventP2p, shm.EventKernelCh, shm.EventCollApi,
	shm.EventKernelLaunch}

// kernelParts reports whether any event has been lost by which kernels are counted. The model asks for each operation.
func (l *losses) kernelParts() bool {
	return slices.ContainsFunc(kernelParts, func(t shm.EventType) bool { return l.drain.lost(t) || l.unwritten[t] > 0 })
}

// describe states what was lost, by reason, beside what the model could not draw.
func (l *losses) describe(counts *description.Counts, h *shm.Header, withCollector map[string]uint64) {
	lost := maps.Clone(counts.Lost)
	if lost == nil {
		lost = make(map[string]map[string]uint64)
	}
	for reason := range h.Lost {
		if n := shm.ByName(&h.Lost[reason]); len(n) > 0 {
			lost[shm.LossReason(reason).String()] = n
		}
	}
	disk := l.unwritten
	for t, n := range h.Lost[shm.LossDisk] {
		disk[t] += n
	}
	if n := shm.ByName(&disk); len(n) > 0 {
		lost[shm.LossDisk.String()] = n
	}
	if len(withCollector) > 0 {
		lost[loss.WithCollector] = withCollector
	}
	counts.Lost, counts.Uncounted = lost, l.uncounted
}
