// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"errors"
	"math"

	"github.com/nccl-otf2/nccl-otf2/config"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// Categories of markers where recording stopped, or where what is recorded changed.
const (
	categoryStopped = regions.CategoryRecording + " stopped"
	categoryChanged = regions.CategoryRecording + " changed"
)

// recording brings the records of one process from their source into a shard.
type recording struct {
	drain   drain
	feed    modelFeed
	shard   shard
	output  destination
	plugin  pluginMasks
	disk    disk
	diskCap diskCap
	syncer  diskSyncer
	dead    predecessors
	losses  losses

	// What only the description of a shard needs.
	others   otherRecorders
	sensors  sensorCounts
	service  *timeWatch // nil: the machine's time service is not asked
	scarcity scarcity
	backlog  backlog
}

// newRecording makes a shard of that name, which must not exist yet, in the experiment directory and describes the
// process in it. If it fails it leaves no shard behind, and another attempt may follow for the same source.
func newRecording(source shm.Source, settings *config.Settings, launcher config.Launcher, directory, name string) (
	_ *recording, err error) {
	h := source.Header()
	r := &recording{
		drain: newDrain(source, &h), feed: modelFeed{comms: make(map[int]bool)},
		shard: shard{process: newProcess(&h, settings, launcher, name)}, diskCap: diskCap{most: settings.Disk},
		others: otherRecorders{activities: make(map[uint32]uint64)},
	}
	r.losses.drain = &r.drain
	process := r.shard.process
	defer func() {
		if err != nil {
			r.dead.unlockBacklogs()
		}
	}()
	if h.CollectorPID != 0 {
		if err := r.dead.takeOver(r, directory); err != nil {
			return nil, err
		}
	}
	options := regions.Options{
		RecordMask: chosenEvents(settings, launcher, &h) &^ h.Withheld, Channels: settings.Channels, Raw: settings.Raw,
		Metrics: settings.Metrics, NetSums: settings.NetSums, Paradigm: regions.PlatformOf(process.Library).Paradigm,
		Resume: r.dead.last, Source: r,
	}
	if settings.Profile {
		// A profile consists of sums in any case, and of single phases it keeps the longest, too.
		options.Channels, options.Raw, options.Metrics, options.NetSums, options.Lasting = false, false, false, false,
			true
	}
	if r.shard.store, err = experiment.Create(directory, name); err != nil {
		return nil, err
	}
	r.shard.store.BeforeEvents(r.shard.writeDefinitions)
	if r.output, err = newDestination(r, settings, directory, &h); err == nil {
		r.feed.model = regions.New(r.output, process, &options)
		err = r.describe()
	}
	if err != nil {
		r.shard.store.Remove()
		r.output.remove()
		return nil, err
	}
	return r, nil
}

// LostCollectives, LostParts and ThreadName implement regions.Source.
func (r *recording) LostCollectives() bool { return r.losses.collectives() }

func (r *recording) LostParts() bool { return r.losses.kernelParts() }

func (r *recording) ThreadName(tid int) string { return r.shard.threadName(tid) }

// drainRound takes the records of a round, without those of the window, and advances the model to that time. The
// round's clock was read before its rings.
func (r *recording) drainRound(clock shm.ClockTuple) int {
	r.drain.line.add(clock)
	return r.drainBefore(clock, r.drain.window)
}

// drainBefore takes the records that are older than a window (ns) before a clock, which is on the line already.
func (r *recording) drainBefore(clock shm.ClockTuple, window uint64) int {
	horizon := r.drain.line.ticksBefore(clock.Ticks, window)
	n := r.drainRings(horizon)
	if uint64(n) >= r.drain.limit {
		return n // there is more before the horizon
	}
	r.drain.previous = clock.Ticks
	if t := r.drain.line.time(horizon); r.writes() && t > r.feed.latest {
		r.feed.latest = t
		r.failForGood(r.feed.advance(t, r.drain.records))
	}
	return n
}

// drainRings takes the records of all rings up to a horizon (ticks), drain.limit at most. It ends early when the disk
// is at fault. It returns how many records it has taken.
func (r *recording) drainRings(horizon uint64) int {
	r.feed.announceComms(&r.drain)
	left := r.drain.limit
	n := r.drain.merge.drain(r.drain.source.Rings(), horizon,
		func(ring int, at uint64, rec *shm.Record, late bool) bool {
			r.addRecord(ring, at, rec, late)
			left--
			return left > 0 && (r.disk.err == nil || r.disk.failed != nil)
		},
	)
	_ = r.holdDiskError(r.drain.merge.stalled)
	return n
}

// drainAll takes all records that there are.
func (r *recording) drainAll() { r.drainRings(math.MaxUint64) }

// addRecord hands a record on, which begins at a position of its ring. It is late if later ones came before it.
func (r *recording) addRecord(ring int, at uint64, rec *shm.Record, late bool) {
	skipped := r.drain.skip.hasTaken(ring, at)
	if skipped && !r.output.wantsSkipped(rec) {
		return
	}
	if !skipped {
		r.drain.records++
	}
	if r.drain.records%capPeriod == 0 {
		r.diskCap.check(r)
	}
	if late && !skipped {
		r.feed.model.Late()
		r.drain.widenWindow(rec)
	}
	r.others.countRecord(rec)
	if i, ok := commOf(rec); ok {
		r.feed.announceComm(&r.drain, i)
	}
	if r.disk.failed != nil {
		if rec.Kind == shm.RecordStart {
			r.losses.unwritten[rec.Type]++
		}
		return
	}
	t := r.drain.line.time(rec.Ticks)
	r.feed.latest = max(r.feed.latest, t)
	r.output.addRecord(ring, t, rec)
}

// settleModel has the model write what is complete without waiting for more.
func (r *recording) settleModel() {
	if r.writes() {
		r.failForGood(r.feed.model.Settle(r.feed.latest))
	}
}

// mark adds a marker at the time of the last record.
func (r *recording) mark(category, text string) { r.shard.markHigh(r.feed.latest, category, text) }

// flush brings everything taken so far to disk: definitions, then events, then the checkpoint that speaks of them. An
// error of the disk is held, and the next flush tries all of it again.
func (r *recording) flush() error {
	if r.disk.failed != nil {
		return r.disk.failed
	}
	err := r.output.writeAll()
	if err == nil {
		err = r.output.checkpoint()
	}
	if err == nil {
		r.disk.err = nil
	}
	return r.holdDiskError(err)
}

// noteTaken notes that the flush at hand brings to disk, or describes, all records taken so far.
func (r *recording) noteTaken() { r.shard.taken = r.drain.merge.taken.clone() }

// checkpoint describes the process as of a moment when everything taken so far is in its files. Records after it are
// still in the process's memory, so a collector that takes over from a dead one brings the shard back to the checkpoint
// and goes on from there: no event is lost, and none is in both shards.
func (r *recording) checkpoint() error {
	r.noteTaken()
	r.snapshot()
	c, err := r.shard.store.Checkpoint(r.shard.process)
	if err == nil {
		r.disk.safe = copyOf(r.shard.process)
		r.syncer.sync(r, c)
	}
	return err
}

// finish closes the time line and all files. If everything that the process left has been taken (finished) the shard
// gets its done marker.
func (r *recording) finish(finished bool) error {
	defer r.shard.store.Close()
	defer r.dead.closeBacklogs()
	if r.backlog.handle != nil {
		defer r.backlog.handle.Close()
	}
	for _, ring := range r.drain.source.Rings() {
		if err := ring.Err(); err != nil {
			r.mark("NCCL records damaged", err.Error())
		}
	}
	// Readers of a hang want to know what was under way when the process ended. Finish closes it.
	r.settleModel()
	r.feed.model.Snapshot()
	r.shard.pending = r.shard.process.Pending
	if r.disk.failed == nil {
		r.failForGood(r.feed.model.Finish())
	}
	if r.backlog.left || r.drain.hasStored() { // the next reader goes on from the last checkpoint
		r.failForGood(errUnread)
		r.output.close()
		return r.disk.failed
	}
	r.shard.taken = r.drain.merge.taken
	if r.disk.failed == nil {
		r.failForGood(r.disk.retryWrite(r, r.output.writeAll))
	}
	r.output.close()
	r.shard.process.Finished = finished && r.disk.failed == nil
	describe := r.describe
	if r.disk.failed != nil && r.disk.patient {
		describe = r.describeLost
	}
	if err := r.disk.retryWrite(r, describe); err != nil {
		return errors.Join(r.disk.failed, err)
	}
	// After a kill everything that the process left is there, after a power cut what has been synced before.
	var err error
	if r.disk.failed == nil {
		err = r.syncer.finish(r)
	}
	if finished {
		err = errors.Join(err, r.disk.retryWrite(r, r.shard.store.Finish))
	}
	return errors.Join(r.disk.failed, err)
}
