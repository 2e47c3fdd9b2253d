// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/config"
	"github.com/nccl-otf2/nccl-otf2/internal/collector/control"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm/shmtest"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// launchesIn counts the launches in an event file, as who watches reads it.
func launchesIn(t *testing.T, path string) (n int) {
	t.Helper()
	tail, err := otf2.NewEventTail(path, 1, experiment.AheadChunkSize)
	testkit.Must(t, err)
	for ev, err := range tail.Events() {
		testkit.Must(t, err)
		if ev.Kind == otf2.EventLeave {
			n++
		}
	}
	return n
}

// stops counts the ends of events that have been taken.
func stops(p *experiment.Process) (n uint64) {
	for _, k := range p.Counts.Stops {
		n += k
	}
	return n
}

// generations are those of the files that a shard has ahead of time.
func generations(shard string) (all []uint64) {
	for _, f := range experiment.AheadFiles(shard) {
		all = append(all, f.Generation)
	}
	return all
}

// As long as somebody watches, operations are in a file of their own long before the next flush; in the event files is
// what is there else. When nobody does any more, nothing is left of it.
func TestAheadForWhoWatches(t *testing.T) {
	wasMost := mostAhead
	t.Cleanup(func() { mostAhead = wasMost })
	dir := t.TempDir()
	job, process := newJob(t, shmtest.Options{Clock: shm.ClockMonotonic, Chunks: 64})
	a := newApplication(job, 0, monotonic)
	r := collectBy(t, config.Recorded(map[string]string{"EVENTS": "light"}), job, dir)
	c := &live{recording: r, memory: r.source.(*shm.Memory), settings: &config.Settings{}}
	now, calls := time.Now(), 0
	call := func(n int) {
		t.Helper()
		for range n {
			a.allReduce(uint64(calls))
			calls++
		}
		for taken := uint64(0); taken < uint64(calls)*perCall; taken = stops(c.process) {
			_, err := c.round()
			testkit.Must(t, err)
			c.model.Snapshot()
		}
		testkit.Must(t, c.model.Advance(c.given+1))
	}
	look := func(after time.Duration) {
		now = now.Add(after)
		c.lookAhead(now)
	}
	call(10)
	testkit.Must(t, c.recording.flush())
	if look(0); len(generations(r.store.Path())) > 0 {
		t.Error("nobody has asked")
	}
	c.ahead.asked = now
	look(0)
	call(100)
	look(aheadFlush / 2)
	call(100)
	look(aheadFlush / 2)
	files := experiment.AheadFiles(r.store.Path())
	if len(files) != 1 || launchesIn(t, files[0].Path) != 200 {
		t.Fatalf("%v, %d launches of 200", files, launchesIn(t, files[0].Path))
	}
	if n := launchesIn(t, experiment.EventFile(r.store.Path(), files[0].Number)); n != 10 {
		t.Errorf("%d launches are in the event file, 10 have been flushed", n)
	}
	// A generation that has become large is followed by the next, and goes with the one after that.
	mostAhead = 1
	for _, want := range [][]uint64{{1, 2}, {2, 3}} {
		look(aheadFlush)
		call(10)
		mostAhead = wasMost
		look(aheadFlush)
		if got := generations(r.store.Path()); !slices.Equal(got, want) {
			t.Errorf("generations %v, want %v", got, want)
		}
		mostAhead = 1
	}
	files = experiment.AheadFiles(r.store.Path())
	if n := launchesIn(t, files[len(files)-1].Path); n != 10 {
		t.Errorf("%d launches of 10", n)
	}
	mostAhead = wasMost
	if look(lookedFor); len(generations(r.store.Path())) > 0 {
		t.Errorf("nobody asks any more: %v", generations(r.store.Path()))
	}
	// Somebody watches when the job ends.
	c.ahead.asked = now
	look(0)
	call(10)
	look(aheadFlush)
	if n := generations(r.store.Path()); !slices.Equal(n, []uint64{4}) {
		t.Errorf("generations %v", n)
	}
	c.endAhead()
	testkit.Must(t, c.finish(true))
	process.end()
	if len(generations(r.store.Path())) > 0 || starts(onlyShard(t, dir).Process) != uint64(calls)*perCall {
		t.Errorf("%v, %d starts of %d", generations(r.store.Path()), starts(onlyShard(t, dir).Process), calls*perCall)
	}
}

// What is in the way of seeing an operation within a second of its end, each at its longest.
func TestAheadIsSoonEnough(t *testing.T) {
	const refit = 50 * time.Millisecond // of the GPU's clock
	sum := regions.AheadHold*time.Nanosecond + refit + stepNs*time.Nanosecond + mostWindow*time.Nanosecond +
		max(longSleep, calmSleep, scarceSleep) + aheadFlush
	// and once more, as a flush may be due just after a round
	if sum += max(longSleep, calmSleep, scarceSleep); sum > time.Second {
		t.Errorf("%v", sum)
	}
}

// Who watches is heard by a running collector, and others' questions do not begin it.
func TestAheadIsAskedFor(t *testing.T) {
	dir := t.TempDir()
	job, process := newJob(t, shmtest.Options{Clock: shm.ClockMonotonic, Chunks: 64})
	a := newApplication(job, 0, monotonic)
	wait := startRun(t, job, Options{Lookup: environment("NCCL_OTF2_DIR="+dir, "NCCL_OTF2_EVENTS=light")})
	n := uint64(0)
	call := func() {
		a.allReduce(n)
		n++
	}
	call()
	flushAll(t, job)
	shard := onlyShard(t, dir).Path
	controller := &control.Controller{Dir: dir, Timeout: time.Minute}
	if _, _, _, err := controller.Status(context.Background()); err != nil {
		t.Fatal(err)
	}
	call()
	flushAll(t, job)
	if g := generations(shard); len(g) > 0 {
		t.Errorf("asked for a status: %v", g)
	}
	testkit.Must(t, controller.Follow())
	if !shmtest.Await(func() bool { call(); return len(generations(shard)) > 0 }) {
		t.Error("nothing is written ahead of time")
	}
	process.end()
	testkit.Must(t, wait())
	if g := generations(shard); len(g) > 0 {
		t.Errorf("left: %v", g)
	}
	if err := controller.Follow(); err == nil {
		t.Error("there is a job to follow")
	}
	if _, err := os.Stat(shard); err != nil {
		t.Error(err)
	}
}
