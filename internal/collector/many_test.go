// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/check"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/regions"
	"github.com/nccl-otf2/nccl-otf2/scorep"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shmtest"
)

// crowd is a process of which many parts come and go while it is recorded, flushed every so often.
type crowd struct {
	*application
	t       *testing.T
	dir     string
	r       *recording
	ticks   uint64
	calls   uint64
	flushes int
	open    int // event files at a time, most
}

const callsPerFlush = 500

func newCrowd(t *testing.T) *crowd {
	job, memory := newMemory(t, 0)
	c := &crowd{t: t, dir: t.TempDir(), ticks: job.Header().Created.Ticks}
	c.application = newApplication(job, 0, func() uint64 { c.ticks += pause; return c.ticks })
	_ = memory.Close()
	c.r = collect(t, job, c.dir)
	return c
}

// call makes a call, and takes and flushes what has come every now and then.
func (c *crowd) call() {
	c.allReduce(c.calls)
	if c.calls++; c.calls%callsPerFlush == 0 {
		c.flush()
	}
}

func (c *crowd) flush() {
	c.t.Helper()
	memory := c.r.drain.source.(*shm.Memory)
	testkit.Value(memory.Refresh())(c.t)
	c.r.drain.line.add(shm.ClockTuple{Ticks: c.ticks, Raw: c.ticks, Mono: c.ticks, Real: c.ticks})
	c.r.drainAll()
	c.r.settleModel()
	memory.Mark()
	testkit.Must(c.t, c.r.flush())
	memory.Release()
	c.flushes++
	links, _ := filepath.Glob("/proc/self/fd/*")
	n := 0
	for _, l := range links {
		if to, err := os.Readlink(
			l,
		); err == nil && filepath.Dir(to) == c.r.shard.store.Path() &&
			filepath.Ext(to) == ".evt" {
			n++
		}
	}
	c.open = max(c.open, n)
}

// end finishes the shard and counts what it took. rows is how many locations there may be.
func (c *crowd) end(rows int) *description.Process {
	c.t.Helper()
	c.flush()
	testkit.Must(c.t, c.r.finish(true))
	p := onlyShard(c.t, c.dir).Process
	n := p.Counts.Starts["CollApi"]
	testkit.Check(c.t, n == c.calls, "%d calls in the shard, want %d", n, c.calls)
	events := uint64(0)
	for _, l := range p.Locations {
		if l.Kind == description.KindThread {
			events += l.Events
		}
	}
	// A call is a region with a launch in it, and one with the enqueueing of its plan.
	least := 4 * c.calls
	testkit.Check(c.t, events >= least, "%d events on rows of threads, want at least %d", events, least)
	if len(p.Counts.Lost) > 0 {
		c.t.Errorf("losses: %v", p.Counts.Lost)
	}
	if n := len(p.Locations); n > rows {
		c.t.Errorf("%d rows, want at most %d", n, rows)
	}
	// Two to begin and to end with, and one where a chunk is full.
	most := uint64(c.flushes + 4 + int(c.r.shard.store.EventBytes()/chunkSize))
	testkit.Check(c.t, c.r.shard.descriptions <= most,
		"shard.json was written %d times in %d flushes, want at most %d", c.r.shard.descriptions, c.flushes, most)
	const syncing = 32 // beside them, by threads that bring files to the disk
	if most := c.r.shard.store.FilesOpenAtOnce() + syncing; c.open > most {
		c.t.Errorf("%d event files were open at one time, want at most %d", c.open, most)
	}
	n, most = c.r.shard.store.FilesOpened(), uint64(rows*(2+c.flushes))
	testkit.Check(c.t, n <= most, "event files were opened %d times, want at most %d", n, most)
	return p
}

// Communicators that are there together have a row each, and few of them have a file open.
func TestManyCommunicatorsAtOneTime(t *testing.T) {
	const comms = 1000
	c := newCrowd(t)
	var all []uint32
	for i := range comms {
		all = append(all, uint32(c.job.Comm(shm.Comm{APIVersion: 6, ID: 0xdead0000 + uint64(i), NRanks: 2, Rank: i % 2,
			NNodes: 1, InitTicks: c.now()}, nil)))
		c.comm = all[i]
		c.write(shm.Record{Kind: shm.RecordInit, Aux: c.comm})
		c.call()
	}
	for _, c.comm = range all {
		c.call()
	}
	p := c.end(comms + 2)
	n := len(p.Locations)
	testkit.Check(t, n >= comms, "%d rows for %d communicators", n, comms)
}

// A collector dies while most rows have had several owners, and another goes on: what was alive is one row in the
// archive, and every call and operation is there once.
func TestSharedRowsOutliveACollector(t *testing.T) {
	const some = 3 * regions.OwnRows
	c := newCrowd(t)
	first := c.comm
	come := func(from int) {
		for i := range some {
			c.comm = uint32(c.job.Comm(shm.Comm{APIVersion: 6, ID: 0xdead0000 + uint64(from+i), NRanks: 2, Rank: 0,
				NNodes: 1, InitTicks: c.now()}, nil))
			c.thread.Own(c.now(), 5000+from+i, "short")
			c.write(shm.Record{Kind: shm.RecordInit, Aux: c.comm})
			c.call()
			if i == some-1 {
				break // it lives on
			}
			c.job.FinishComm(int(c.comm), c.now())
			c.write(shm.Record{Kind: shm.RecordFinalize, Aux: c.comm})
		}
	}
	come(0)
	survivor := c.comm
	c.flush()
	bury(t, c.r)
	c.r = collect(t, c.job, c.dir)
	c.call() // by the thread, and on the communicator, that were there
	c.job.FinishComm(int(survivor), c.now())
	c.write(shm.Record{Kind: shm.RecordFinalize, Aux: survivor})
	come(some)
	c.comm = first
	c.call()
	c.flush()
	testkit.Must(t, c.r.finish(true))

	unified := testkit.Value(scorep.Unify(c.dir, nil))(t)
	a := testkit.Value(otf2.Open(filepath.Join(c.dir, "traces.otf2"), nil))(t)
	defer a.Close()
	calls, operations := uint64(0), uint64(0)
	for ev, err := range a.Events(nil) {
		testkit.Must(t, err)
		switch ev.Kind {
		case otf2.EventEnter:
			if a.Defs.String(a.Defs.Region(ev.Enter().Region).Name) == "ncclAllReduce" {
				calls++
			}
		case otf2.EventMpiCollectiveEnd:
			operations++
		}
	}
	// The operation under way goes with the collector, and is counted.
	if lost := unified.Runs[0].LostWith; calls != c.calls || operations+lost != c.calls || lost > 1 {
		t.Errorf("%d calls and %d operations are in the archive, %d were lost, want %d of each", calls, operations,
			lost, c.calls)
	}
	n, most := len(a.Defs.Locations), 4*regions.OwnRows+8
	testkit.Check(t, n <= most, "%d rows, want at most %d", n, most)
	checked := testkit.Value(check.Archive(filepath.Join(c.dir, "traces.otf2"), nil))(t)
	for _, f := range checked.Findings {
		testkit.Check(t, f.Severity == check.Note, "check: %v", f)
	}
}

// A process that makes and ends communicators one after the other, each of which is the last one for now, is not
// described anew with each once there are many: that would be quadratic. At its exit all is on disk before it goes on.
func TestRequestsOfALargeProcess(t *testing.T) {
	const comms, requests = 1000, 60
	dir := t.TempDir()
	job, process, a := newCaller(t, shmtest.Options{Clock: shm.ClockMonotonic, Chunks: 64})
	wait := startRun(t, job, Options{Lookup: environment("NCCL_OTF2_DIR="+dir, "NCCL_OTF2_EVENTS=light")})
	for i := range comms {
		c := job.Comm(shm.Comm{APIVersion: 6, ID: 0xdead0000 + uint64(i), NRanks: 2, Rank: i % 2, NNodes: 1,
			InitTicks: monotonic()}, nil)
		a.write(shm.Record{Kind: shm.RecordInit, Aux: uint32(c)})
	}
	flushAll(t, job)
	before := onlyShard(t, dir).Process.Serial
	calls := uint64(0)
	for range requests {
		a.allReduce(calls)
		calls++
		flushAll(t, job)
	}
	n := onlyShard(t, dir).Process.Serial - before
	testkit.Check(t, n <= requests/2, "%d descriptions for %d requests", n, requests)
	job.End()
	flushAll(t, job)
	testkit.Equal(t, starts(onlyShard(t, dir).Process), calls*perCall,
		"starts on disk when the process goes on to its exit")
	process.end()
	testkit.Must(t, wait())
	testkit.Equal(t, starts(onlyShard(t, dir).Process), calls*perCall, "starts on disk")
}
