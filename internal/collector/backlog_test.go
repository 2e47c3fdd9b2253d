// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/config"
	"github.com/nccl-otf2/nccl-otf2/internal/collector/control"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shmtest"
)

// backlogs are the sizes of those in an experiment directory.
func backlogs(t *testing.T, dir string) (sizes []int64) {
	t.Helper()
	files := testkit.Value(filepath.Glob(filepath.Join(dir, experiment.Folder, "*", experiment.BacklogFile)))(t)
	for _, file := range files {
		info := testkit.Value(os.Stat(file))(t)
		sizes = append(sizes, info.Size())
	}
	return sizes
}

// allStarts counts them in all shards of a directory. Files of those that are still written need not be whole.
func allStarts(t *testing.T, dir string) (n uint64) {
	t.Helper()
	entries := testkit.Value(experiment.List(dir))(t)
	for _, e := range entries {
		testkit.Must(t, e.Err)
		n += starts(e.Process)
	}
	return n
}

// threadNames are those of the threads with rows of their own.
func threadNames(p *description.Process) (names []string) {
	for i := range p.Locations {
		if l := &p.Locations[i]; l.Thread != "" && !slices.Contains(names, l.Thread) {
			names = append(names, l.Thread)
		}
	}
	return names
}

// lazily changes what a collector in this program goes by when it puts off.
func lazily(t *testing.T, idle time.Duration, most int64) {
	wasIdle, wasMost, wasFirst, wasLast := idleAfter, mostBacklog, firstSync, lastSync
	idleAfter, mostBacklog, firstSync, lastSync = idle, most, 20*time.Millisecond, 20*time.Millisecond
	t.Cleanup(func() { idleAfter, mostBacklog, firstSync, lastSync = wasIdle, wasMost, wasFirst, wasLast })
}

func backlogEnvironment(dir string) []string {
	return []string{"NCCL_OTF2_DIR=" + dir, "NCCL_OTF2_EVENTS=light", "NCCL_OTF2_BACKLOG=on"}
}

// While the job runs records are in the backlog, and what asks for all to be on disk is answered; when it has ended
// they are in the shard, which is as it would be without.
func TestBacklogUntilTheEnd(t *testing.T) {
	lazily(t, time.Hour, mostBacklog)
	dir := t.TempDir()
	job, process, a := newCaller(t, shmtest.Options{Clock: shm.ClockMonotonic, Chunks: 16})
	wait := startRun(t, job, Options{Lookup: environment(backlogEnvironment(dir)...)})
	n := uint64(0)
	for range 20 {
		for range 200 { // of 16 chunks, so that all are given back several times
			a.allReduce(n)
			n++
		}
		flushAll(t, job)
	}
	sizes := backlogs(t, dir)
	testkit.Check(t, len(sizes) == 1 && sizes[0] >= int64(n)*perCall*2*32, "backlogs of %v bytes", sizes)
	got := allStarts(t, dir)
	testkit.Check(t, got <= n*perCall/2, "%d starts of %d are in the shard already", got, n*perCall)
	process.end()
	testkit.Must(t, wait())
	e := onlyShard(t, dir)
	if e.State != experiment.Done || !e.Process.Finished || starts(e.Process) != n*perCall ||
		len(e.Process.Counts.Lost) > 0 {
		t.Errorf("state %v, finished %v, %d starts of %d, lost %v", e.State, e.Process.Finished, starts(e.Process),
			n*perCall, e.Process.Counts.Lost)
	}
	if names := threadNames(e.Process); !slices.Equal(
		names, []string{"app0"}) { // as it was in the first callback: the thread is gone
		t.Errorf("threads %q", names)
	}
	testkit.Equal(t, threadEvents(t, e), n*4, "events of calls")
	sizes = backlogs(t, dir)
	testkit.Check(t, sizes == nil, "left: backlogs of %v bytes", sizes)
	if n := timesPutOff(e.Process); n != 1 || e.Process.Ended {
		t.Errorf("records waited %d times, want that they did from the first to the end; still taking what waits: %v",
			n, e.Process.Ended)
	}
}

// timesPutOff is how often records waited, as the shard says.
func timesPutOff(p *description.Process) (n uint64) {
	for _, c := range p.Costs {
		if c.Type == "PutOff" {
			n += c.Samples
		}
	}
	return n
}

// While a collector takes what an ended process had put off, its shard says that, and how much is left: those who wait
// for it know that it works.
func TestRestIsReported(t *testing.T) {
	lazily(t, time.Hour, mostBacklog)
	was := reportPeriod
	reportPeriod = time.Hour // it is told once, when some has been taken
	t.Cleanup(func() { reportPeriod = was })
	dir := t.TempDir()
	job, process, a := newCaller(t, shmtest.Options{Clock: shm.ClockMonotonic, Chunks: 512})
	r := collect(t, job, dir)
	c := newLive(r)
	c.listener.begin(c)
	c.backlog.when = "on"
	const calls = 3 * catchUp / (2 * perCall)
	for i := range uint64(calls) {
		a.allReduce(i)
	}
	testkit.Value(c.round())(t)
	whole := c.memory.StoredBytes()
	process.end()
	c.life.ended = true
	c.describeBeforeStored()
	if p := onlyShard(t, dir).Process; whole == 0 || !p.Ended {
		t.Errorf("%d bytes wait, the shard says that the process has ended: %v", whole, p.Ended)
	}
	left := func() uint64 {
		s, err := control.ReadStatus(c.shard.store.Path())
		testkit.Require(t, err == nil && s != nil, "status %v, %v", s, err)
		return s.Backlog
	}
	c.backlog.drainStored(c)
	n := left()
	testkit.Check(t, n != 0 && n < whole, "%d bytes of %d were told to be left", n, whole)
	c.drainEnded()
	testkit.Equal(t, left(), 0, "bytes are said to be left in the end")
	testkit.Must(t, c.finish(true))
	if p := onlyShard(t, dir).Process; p.Ended || starts(p) != calls*perCall {
		t.Errorf("%d starts of %d, still taking what waits: %v", starts(p), calls*perCall, p.Ended)
	}
}

// When the job idles, all that was put off comes to the shard, and the backlog is emptied.
func TestBacklogWhenTheJobIdles(t *testing.T) {
	lazily(t, 50*time.Millisecond, mostBacklog)
	dir := t.TempDir()
	job, process, a := newCaller(t, shmtest.Options{Clock: shm.ClockMonotonic, Chunks: 64})
	wait := startRun(t, job, Options{Lookup: environment(backlogEnvironment(dir)...)})
	n := uint64(0)
	for range 3 {
		for range 500 {
			a.allReduce(n)
			n++
		}
		flushAll(t, job)
		if !shmtest.Await(func() bool {
			sizes := backlogs(t, dir)
			return allStarts(t, dir) == n*perCall && len(sizes) == 1 && sizes[0] == 0
		}) {
			t.Fatalf("%d starts of %d are in the shard, backlogs of %v bytes", allStarts(t, dir), n*perCall,
				backlogs(t, dir))
		}
	}
	process.end()
	testkit.Must(t, wait())
	waited := timesPutOff(onlyShard(t, dir).Process)
	testkit.Check(t, waited >= 3, "records waited %d times, want 3", waited)
}

// A backlog of which all is in event files stays until these are on the disk, however long that takes. Where job and
// collector die before that, nothing is made of it a second time.
func TestBacklogStaysUntilAllIsOnTheDisk(t *testing.T) {
	lazily(t, time.Nanosecond, mostBacklog)
	lastSync = time.Hour
	firstSync = time.Hour
	dir := t.TempDir()
	job, process, a := newCaller(t, shmtest.Options{Clock: shm.ClockMonotonic, Chunks: 64})
	r := collect(t, job, dir)
	c := newPatient(r, "on")
	const calls = 200
	for i := range uint64(calls) {
		a.allReduce(i)
	}
	// of the flush that comes before anything is put off
	for allStarts(t, dir) < calls*perCall || c.syncer.over == 0 {
		testkit.Value(c.round())(t)
		if c.flushes.due(c) {
			c.flush()
		}
		c.syncer.noteResult(r)
	}
	for range 3 {
		testkit.Value(c.round())(t)
	}
	if sizes := backlogs(t, dir); len(sizes) != 1 || sizes[0] == 0 || c.backlog.bytesWaiting() != 0 {
		t.Errorf("backlogs of %v bytes, of which %d wait", sizes, c.backlog.bytesWaiting())
	}
	testkit.Must(t, c.finish(false))
	process.end()
	testkit.Value(Salvage(dir))(t)
	if e := onlyShard(t, dir); starts(e.Process) != calls*perCall || backlogs(t, dir) != nil {
		t.Errorf("%d starts of %d, backlogs of %v bytes", starts(e.Process), calls*perCall, backlogs(t, dir))
	}
}

// A backlog does not grow for ever: it is taken and begun anew.
func TestBacklogIsBounded(t *testing.T) {
	lazily(t, time.Hour, 256<<10)
	dir := t.TempDir()
	job, process, a := newCaller(t, shmtest.Options{Clock: shm.ClockMonotonic, Chunks: 64})
	wait := startRun(t, job, Options{Lookup: environment(backlogEnvironment(dir)...)})
	n, most, emptied, last := uint64(0), int64(0), 0, int64(0)
	if !shmtest.Await(func() bool {
		for range 100 {
			a.allReduce(n)
			n++
		}
		for _, size := range backlogs(t, dir) {
			if most = max(most, size); size < last {
				emptied++
			}
			last = size
		}
		return emptied >= 3
	}) {
		t.Errorf("emptied %d times, %d bytes at most", emptied, most)
	}
	process.end()
	testkit.Must(t, wait())
	e := onlyShard(t, dir)
	lost := uint64(0)
	for _, by := range e.Process.Counts.Lost {
		for _, k := range by {
			lost += k
		}
	}
	got := starts(e.Process)
	testkit.Check(t, got == n*perCall || lost != 0, "%d starts, want %d", got, n*perCall)
}

// TestKillsAtAnyMoment with records put off.
func TestKillsAtAnyMomentWithBacklogs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := killedAgain(t, 6, 800, 1024, backlogEnvironment(dir)...)
	total := allStarts(t, dir)
	testkit.Check(t, total == n*perCall, "%d starts, want %d", total, n*perCall)
	sizes := backlogs(t, dir)
	testkit.Check(t, sizes == nil, "left: backlogs of %v bytes", sizes)
}

// When all that there was of a process is dead, what its collectors had put off is saved, one after the other's, once.
func TestBacklogsOfTheDeadAreSaved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	job, process, a := newCaller(t, shmtest.Options{Clock: shm.ClockMonotonic, Chunks: 512})
	n := uint64(0)
	for range 3 {
		c := startCollector(t, job, "collector", backlogEnvironment(dir)...)
		for range 2 {
			for range 300 {
				a.allReduce(n)
				n++
			}
			flushAll(t, job)
		}
		c.Process.Kill()
		c.Wait()
	}
	process.end()
	testkit.Require(t, len(backlogs(t, dir)) != 0, "nothing was put off")
	for range 2 {
		_, err := Salvage(dir)
		testkit.Require(t, err == nil, "%v", err)
		total := allStarts(t, dir)
		testkit.Check(t, total == n*perCall, "%d starts, want %d", total, n*perCall)
		sizes := backlogs(t, dir)
		testkit.Check(t, sizes == nil, "left: backlogs of %v bytes", sizes)
	}
	for _, e := range shards(t, dir) {
		k := e.Process.Counts.Oddities["MISSING_BYTES"]
		testkit.Check(t, k <= 0 && !e.Process.Finished, "%d bytes are missing, finished %v", k, e.Process.Finished)
	}
	unify(t, dir)
}

// What the plugin writes when collectors have died comes behind what they had put off, as often as it is converted.
func TestBacklogsPrecedeRawFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	job, process, a := newCaller(t, shmtest.Options{Clock: shm.ClockMonotonic, Chunks: 512})
	n := uint64(0)
	for range 2 {
		c := startCollector(t, job, "collector", backlogEnvironment(dir)...)
		for range 300 {
			a.allReduce(n)
			n++
		}
		flushAll(t, job)
		c.Process.Kill()
		c.Wait()
	}
	for range 300 {
		a.allReduce(n)
		n++
	}
	var out bytes.Buffer
	testkit.Must(t, job.SpoolRest(&out, shm.ReadClock(shm.ClockMonotonic)))
	file := writeSpoolIn(t, dir, out.Bytes())
	process.end()
	for range 2 {
		testkit.Must(t, convert(file, dir))
		total := allStarts(t, dir)
		testkit.Check(t, total == n*perCall, "%d starts, want %d", total, n*perCall)
	}
}

// The disk takes no backlog: records are taken as they come, and nothing is lost.
func TestBacklogCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	job, process, a := newCaller(t, shmtest.Options{Clock: shm.ClockMonotonic, Chunks: 512})
	c := startCollector(t, job, "collector with small files", backlogEnvironment(dir)...)
	n := uint64(0)
	for range 4 {
		for range 150 {
			a.allReduce(n)
			n++
		}
		flushAll(t, job)
	}
	process.end()
	err := c.Wait()
	testkit.Require(t, err == nil, "%v: %s", err, c.Stderr)
	e := onlyShard(t, dir)
	if got := starts(e.Process); got != n*perCall || e.Process.Counts.Oddities[oddDiskErrors] == 0 {
		t.Errorf("%d starts, want %d; oddities %v", got, n*perCall, e.Process.Counts.Oddities)
	}
}

// Where processors are scarce records are put off, until they are not, with nothing lost at either change.
func TestBacklogWhereProcessorsAreScarce(t *testing.T) {
	lazily(t, time.Hour, mostBacklog)
	now := time.Now()
	b := &backlog{when: "auto"}
	testkit.Check(t, !b.wanted(false, now) && b.wanted(true, now),
		"wanted: %v where there are processors, %v where there are none", b.wanted(false, now), b.wanted(true, now))
	if b.asked = now; b.wanted(true, now) || !b.wanted(true, now.Add(lookedFor)) {
		t.Errorf("wanted while somebody looks: %v; after that: %v", b.wanted(true, now),
			b.wanted(true, now.Add(lookedFor)))
	}
	dir := t.TempDir()
	job := testkit.Value(shmtest.New(shmtest.Options{Clock: shm.ClockMonotonic, Chunks: 16}))(t)
	t.Cleanup(func() { job.Close() })
	a := newApplication(job, 0, monotonic)
	r := collect(t, job, dir)
	c := newPatient(r, "auto")
	n := uint64(0)
	for i := range 12 {
		c.scarcity.scarce = i/3%2 == 1
		for range 200 {
			a.allReduce(n)
			n++
		}
		testkit.Value(c.round())(t)
		testkit.Equal(t, c.memory.PutsOff(), c.scarcity.scarce, "round %d: puts off", i)
		if c.flushes.due(c) {
			c.flush()
		}
	}
	c.drainEnded()
	testkit.Must(t, c.finish(true))
	total := allStarts(t, dir)
	testkit.Check(t, total == n*perCall, "%d starts, want %d", total, n*perCall)
}

// Where processors are not scarce, much that came before a request is put off until that is answered, and taken after
// it; a little is taken at once.
func TestMuchIsPutOffForARequest(t *testing.T) {
	lazily(t, time.Hour, mostBacklog)
	dir := t.TempDir()
	job, process, a := newCaller(t, shmtest.Options{Clock: shm.ClockMonotonic, Chunks: 128})
	r := collect(t, job, dir)
	c := newPatient(r, "auto")
	n := uint64(0)
	round := func(pending, putsOff bool) {
		t.Helper()
		c.backlog.expectRequest(c.memory, pending)
		testkit.Value(c.round())(t)
		if c.memory.PutsOff() != putsOff || pending && c.backlog.appendAll(c) != putsOff {
			t.Errorf("puts off: %v, all of it: %v, want %v", c.memory.PutsOff(), c.backlog.appendAll(c), putsOff)
		}
	}
	much := func() {
		for used := 0; used < mostAtRequest; n++ {
			a.allReduce(n)
			free, total := c.memory.FreeChunks()
			used = (total - free) * shm.ChunkSize
		}
	}
	a.allReduce(n)
	n++
	round(true, false)
	much()
	round(true, true)
	testkit.Check(t, c.memory.StoredBytes() != 0, "nothing of it waits")
	for c.memory.PutsOff() {
		c.backlog.expectRequest(c.memory, false)
		testkit.Value(c.round())(t)
	}
	much()
	round(false, false)
	process.end()
	c.drainEnded()
	testkit.Must(t, c.finish(true))
	testkit.Equal(t, allStarts(t, dir), n*perCall, "starts")
}

// Who looks at a running job has collectors take what they have put off, and sees all of it.
func TestBacklogIsTakenForWhoLooks(t *testing.T) {
	lazily(t, time.Hour, mostBacklog)
	dir := t.TempDir()
	job, process, a := newCaller(t, shmtest.Options{Clock: shm.ClockMonotonic, Chunks: 64})
	wait := startRun(t, job, Options{Lookup: environment(backlogEnvironment(dir)...)})
	n := uint64(0)
	for range 500 {
		a.allReduce(n)
		n++
	}
	flushAll(t, job)
	got := allStarts(t, dir)
	testkit.Check(t, got <= 0, "%d starts are in the shard before anybody looked", got)
	behind, err := (&control.Controller{Dir: dir, Timeout: time.Minute}).Watch(context.Background(), 5*time.Minute)
	if got := allStarts(t, dir); err != nil || behind != 0 || got != n*perCall {
		t.Errorf("%d starts of %d are in the shard, %d bytes behind, %v", got, n*perCall, behind, err)
	}
	process.end()
	testkit.Must(t, wait())
	behind, err = (&control.Controller{Dir: dir}).Watch(context.Background(), 0)
	testkit.Check(t, behind == 0 && err == nil, "after the end: %d bytes behind, %v", behind, err)
}

// The disk takes what is put off, and fails when events are to be made of it at the end, for good: `unify` finds all in
// the backlog, and what had been counted as lost is not.
func TestBacklogOutlastsADiskThatFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	job, process, a := newCaller(t, shmtest.Options{Clock: shm.ClockMonotonic, Chunks: 512})
	c := startCollector(t, job, "collector", backlogEnvironment(dir)...)
	n := uint64(0)
	for range 1000 {
		a.allReduce(n)
		n++
	}
	flushAll(t, job)
	const enough = 32 << 10 // for descriptions, and not for events
	testkit.Must(t, unix.Prlimit(c.Process.Pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: enough, Max: enough}, nil))
	process.end()
	testkit.Check(t, c.Wait() != nil, "the collector does not say that the disk failed")
	e := onlyShard(t, dir)
	if got := starts(e.Process); got == n*perCall || len(backlogs(t, dir)) != 1 {
		t.Fatalf("%d starts of %d are in the shard, backlogs of %v bytes", got, n*perCall, backlogs(t, dir))
	}
	_, err := Salvage(dir)
	testkit.Require(t, err == nil, "%v", err)
	if total := allStarts(t, dir); total != n*perCall || backlogs(t, dir) != nil {
		t.Errorf("%d starts, want %d; backlogs of %v bytes", total, n*perCall, backlogs(t, dir))
	}
	for _, e := range shards(t, dir) {
		testkit.Check(t, len(e.Process.Counts.Lost) == 0, "%s: lost %v", e.Path, e.Process.Counts.Lost)
	}
	unify(t, dir)
}

// A collector can be killed in the first write to its backlog: then all is in the memory still, or gone with it.
func TestBacklogThatWasJustBegun(t *testing.T) {
	dir := t.TempDir()
	job, process, a := newCaller(t, shmtest.Options{Clock: shm.ClockMonotonic})
	c := startCollector(t, job, "collector", backlogEnvironment(dir)...)
	a.allReduce(0)
	flushAll(t, job)
	c.Process.Kill()
	c.Wait()
	process.end()
	file := filepath.Join(onlyShard(t, dir).Path, experiment.BacklogFile)
	testkit.Must(t, os.WriteFile(file, testkit.Read(t, file)[:5000], 0o600))
	if saved, err := Salvage(dir); err != nil || backlogs(t, dir) != nil {
		t.Errorf("%d saved, %v; backlogs of %v bytes", saved, err, backlogs(t, dir))
	}
}

// A collector that takes over may fail once, and try again. The backlog that its first attempt adopted is not in its
// way then, and every record is taken once.
func TestBacklogIsAdoptedAgainAfterAnError(t *testing.T) {
	dir := t.TempDir()
	job, process, a := newCaller(t, shmtest.Options{Clock: shm.ClockMonotonic})
	c := startCollector(t, job, "collector", backlogEnvironment(dir)...)
	const calls = 50
	for i := range uint64(calls) {
		a.allReduce(i)
	}
	flushAll(t, job)
	c.Process.Kill()
	c.Wait()
	sizes := backlogs(t, dir)
	testkit.Require(t, len(sizes) == 1 && sizes[0] != 0, "backlogs of %v bytes", sizes)

	memory := testkit.Value(shm.Map(job.FD()))(t)
	t.Cleanup(func() { memory.Close() })
	memory.SetMasks(1<<shm.TypeCount-1, 1<<shm.TypeCount-1)
	settings := config.RecordedSettings(map[string]string{"EVENTS": "light"})
	launcher := config.Launcher{Rank: -1, Size: -1}
	taken := filepath.Base(onlyShard(t, dir).Path)
	_, err := newRecording(memory, settings, launcher, dir, taken)
	testkit.Require(t, err != nil, "a shard of the dead collector's name was made")
	r := testkit.Value(newRecording(memory, settings, launcher, dir, uuid.NewString()))(t)
	testkit.Value(memory.Refresh())(t)
	process.end()
	r.drainAll()
	testkit.Must(t, r.finish(true))
	n := allStarts(t, dir)
	testkit.Check(t, n == calls*perCall, "%d starts, want %d", n, calls*perCall)
}

// At the bound of a backlog nothing is appended any more, however much comes: it is decoded as it comes, what finds no
// room in the memory is counted by the plugin, and the file is emptied. So all that happened is in the shard or
// counted.
func TestFullBacklogs(t *testing.T) {
	const most = 256 << 10
	lazily(t, time.Hour, most)
	dir := t.TempDir()
	job, process, a := newCaller(t, shmtest.Options{Clock: shm.ClockMonotonic, Chunks: 64})
	r := collect(t, job, dir)
	c := newPatient(r, "on")
	n, counted := uint64(0), uint64(0)
	for round, emptied := 1, 0; emptied < 3; round++ {
		calls := 100
		if round%8 == 0 {
			calls = 10_000 // more than ten times what a backlog has room for, and more than the memory has
		}
		for range calls {
			a.allReduce(n)
			n++
		}
		before := c.backlog.size()
		testkit.Value(c.round())(t)
		for _, size := range backlogs(t, dir) {
			testkit.Require(t, size <= most, "a backlog of %d bytes", size)
		}
		if c.flush(); c.backlog.size() < before {
			emptied++
		}
	}
	process.end()
	c.drainEnded()
	testkit.Must(t, c.finish(true))
	p := onlyShard(t, dir).Process
	for _, by := range p.Counts.Lost {
		for _, m := range by {
			counted += m
		}
	}
	if starts(p)+a.refused != n*perCall || a.refused == 0 || counted < a.refused || // ends find no room, too
		p.Counts.Oddities["BACKLOG_FULL"] == 0 {
		t.Errorf("%d starts and %d refused, %d counted, of %d; full %d times", starts(p), a.refused, counted, n*perCall,
			p.Counts.Oddities["BACKLOG_FULL"])
	}
}
