// SPDX-License-Identifier: Apache-2.0

package shm_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shmtest"
)

// faulty is a file of which calls fail while it says so, with half of what was to be written there.
type faulty struct {
	*os.File
	write, read bool
}

var errFaulty = errors.New("the disk is at fault")

func (f *faulty) WriteAt(b []byte, at int64) (int, error) {
	if f.write {
		n, _ := f.File.WriteAt(b[:len(b)/2], at)
		return n, errFaulty
	}
	return f.File.WriteAt(b, at)
}

func (f *faulty) ReadAt(b []byte, at int64) (int, error) {
	if f.read {
		return 0, errFaulty
	}
	return f.File.ReadAt(b, at)
}

func newBacklog(t *testing.T) (*faulty, *shm.Backlog) {
	t.Helper()
	file := testkit.Value(os.Create(filepath.Join(t.TempDir(), "backlog.spool")))(t)
	t.Cleanup(func() { file.Close() })
	f := &faulty{File: file}
	return f, shm.NewBacklog(f, 1<<40)
}

// writer has two threads write numbered records.
type writer struct {
	t       *testing.T
	job     *shmtest.Job
	threads []*shmtest.Thread
	n       uint64
}

func newWriter(t *testing.T, job *shmtest.Job) *writer {
	return &writer{t: t, job: job, threads: []*shmtest.Thread{job.Thread(1, 100, "a"), job.Thread(2, 101, "b")}}
}

func (w *writer) write(n int) {
	w.t.Helper()
	for range n {
		w.n++
		for _, th := range w.threads {
			if !th.Write(&shm.Record{Ticks: 10 + w.n, Kind: shm.RecordStart, Type: shm.EventColl, Seq: w.n,
				Func: "AllReduce"}) {
				w.t.Fatal("no memory")
			}
		}
	}
}

// read takes up to n records of each ring, and returns how many each gave; they must be those behind the ones of
// before.
type reader struct {
	t    *testing.T
	next []uint64
	ends []uint64 // positions
}

func (r *reader) read(s shm.Source, n int) (got int) {
	r.t.Helper()
	testkit.Value(s.Refresh())(r.t)
	for i, ring := range s.Rings() {
		for len(r.next) <= i {
			r.next, r.ends = append(r.next, 0), append(r.ends, 0)
		}
		var rec shm.Record
		for range n {
			if _, ok := ring.Peek(); !ok {
				break
			}
			if at := ring.Position(); at < r.ends[i] {
				r.t.Fatalf("ring %d: a record at %#x after one that ends at %#x", i, at, r.ends[i])
			}
			if !ring.Next(&rec) {
				break
			}
			r.ends[i] = ring.Position()
			if rec.Kind == shm.RecordThread {
				continue
			}
			if r.next[i]++; rec.Seq != r.next[i] || rec.Func != "AllReduce" {
				r.t.Fatalf("ring %d: record %d of %q, want %d", i, rec.Seq, rec.Func, r.next[i])
			}
			got++
		}
		testkit.Must(r.t, ring.Err())
	}
	return got
}

func putOff(t *testing.T, m *shm.Memory, b *shm.Backlog) uint64 {
	t.Helper()
	round := testkit.Value(m.Refresh())(t)
	n := testkit.Value(m.PutOff(b, round.Clock))(t)
	m.Mark()
	m.Release()
	return n
}

// What is put off comes in its order, behind what was read before and before what is published later, and its memory is
// free at once.
func TestPutOff(t *testing.T) {
	job, m := newJob(t, shmtest.Options{Chunks: 8})
	_, b := newBacklog(t)
	w, r := newWriter(t, job), &reader{t: t}
	w.write(100)
	r.read(m, 30) // with more of the chunk in hand
	for range 40 {
		w.write(900) // more than a chunk each, and of all chunks in the end
		testkit.Require(t, putOff(t, m, b) != 0, "nothing was put off")
	}
	w.write(50)
	free, _ := m.FreeChunks()
	testkit.Check(t, free >= 4, "%d chunks are free, of which all but two have been put off", free)
	r.read(m, 1000) // some of it
	w.write(900)
	putOff(t, m, b)
	testkit.Check(t, m.Stored(), "nothing is stored")
	r.read(m, 1<<20)
	got := r.next[0]
	testkit.Check(t, got == w.n && !m.Stored(), "%d records were given of %d; more is stored: %v", got, w.n, m.Stored())
	w.write(10)
	testkit.Equal(t, r.read(m, 1<<20), 0, "records that came and have not been put off")
	m.TakeLive()
	testkit.Equal(t, r.read(m, 1<<20), 20, "records that came")
	testkit.Must(t, b.Reset())
	testkit.Check(t, b.Size() == 0, "%d bytes are left", b.Size())
	w.write(100)
	putOff(t, m, b)
	testkit.Equal(t, r.read(m, 1<<20), 200, "records that came after the file was emptied")
}

// After an error of the disk nothing has been put off, and the file ends with whole frames.
func TestPutOffFails(t *testing.T) {
	job, m := newJob(t, shmtest.Options{Chunks: 64})
	file, b := newBacklog(t)
	w, r := newWriter(t, job), &reader{t: t}
	w.write(100)
	putOff(t, m, b)
	size := b.Size()
	w.write(3000)
	file.write = true
	round := testkit.Value(m.Refresh())(t)
	_, err := m.PutOff(b, round.Clock)
	testkit.Require(t, errors.Is(err, errFaulty), "%v", err)
	info, err := file.Stat()
	testkit.Check(t, err == nil && info.Size() == size && b.Size() == size,
		"the file has %d bytes, the backlog says %d, want %d: %v", info.Size(), b.Size(), size, err)
	m.TakeLive()
	r.read(m, 500)
	file.write = false
	putOff(t, m, b)
	m.TakeLive()
	r.read(m, 1<<20)
	testkit.Check(t, r.next[0] == w.n && r.next[1] == w.n, "%v records were given of %d", r.next, w.n)
}

// A file that cannot be read keeps what it has until it can be.
func TestBacklogCannotBeRead(t *testing.T) {
	job, m := newJob(t, shmtest.Options{})
	file, b := newBacklog(t)
	w, r := newWriter(t, job), &reader{t: t}
	w.write(100)
	putOff(t, m, b)
	file.read = true
	if got := r.read(m, 1<<20); got != 0 || !errors.Is(m.Rings()[0].Stalled(), errFaulty) {
		t.Errorf("%d records, %v", got, m.Rings()[0].Stalled())
	}
	file.read = false
	got := r.read(m, 1<<20)
	testkit.Check(t, got == 200 && m.Rings()[0].Stalled() == nil, "%d records, %v", got, m.Rings()[0].Stalled())
}

// Another reader of the memory goes on with the files of those before it, however far they had come, and is given
// nothing twice; the last file may end in the midst of a frame.
func TestBacklogsPrecedeTheMemory(t *testing.T) {
	job, first := newJob(t, shmtest.Options{})
	w, r := newWriter(t, job), &reader{t: t}
	files := make([]*faulty, 2)
	w.write(100)
	for i := range files {
		m := first
		if i > 0 {
			m = testkit.Value(shm.Map(job.FD()))(t)
			t.Cleanup(func() { m.Close() })
		}
		var b *shm.Backlog
		files[i], b = newBacklog(t)
		w.write(2000)
		round, err := m.Refresh()
		testkit.Must(t, err)
		_, err = m.PutOff(b, round.Clock) // and dies before it gives the memory back
		testkit.Must(t, err)
		testkit.Value(files[i].WriteAt([]byte{1, 2, 3, 4, 5}, b.Size()))(t)
	}
	w.write(10)
	last := testkit.Value(shm.Map(job.FD()))(t)
	t.Cleanup(func() { last.Close() })
	for _, file := range files {
		info := testkit.Value(file.Stat())(t)
		e := testkit.Value(shm.Index(file, info.Size()))(t)
		last.Precede(e)
	}
	r.read(last, 1<<20)
	testkit.Check(t, r.next[0] == w.n && r.next[1] == w.n, "%v records were given of %d", r.next, w.n)
}

// The file says what the memory did, to whom has nothing else, from wherever a collector began in it.
func TestBacklogIsASpoolFile(t *testing.T) {
	job, m := newJob(t, shmtest.Options{Host: "far"})
	file, b := newBacklog(t)
	w, r := newWriter(t, job), &reader{t: t}
	comm := shm.Comm{APIVersion: 6, ID: 99, NRanks: 4, Rank: 2, NNodes: 1, Device: 3, InitTicks: 5, InitTID: 4712,
		Name: "world", PCI: "00000000:07:00"}
	w.write(40)
	r.read(m, 20)
	for i := range 5 {
		w.write(1000)
		if i == 2 {
			job.Comm(comm, nil)
		}
		if i == 3 {
			job.FinishComm(0, 77)
		}
		putOff(t, m, b)
	}
	spool := testkit.Value(shm.OpenSpool(file, b.Size()))(t)
	spool.Within()
	for ended := false; !ended; {
		round := testkit.Value(spool.Refresh())(t)
		ended = round.Ended
	}
	r.read(spool, 1<<20)
	testkit.Check(t, r.next[0] == w.n && r.next[1] == w.n && spool.Lacking() == 0 && spool.Cut() == "",
		"%v records were given of %d, %d bytes are lacking, cut %q", r.next, w.n, spool.Lacking(), spool.Cut())
	h := spool.Header()
	testkit.Check(t, h.Host() == "far" && h.PID == job.Header().PID, "host %q, process %d", h.Host(), h.PID)
	comm.FinalTicks = 77
	got, ok := spool.Comm(0)
	if got.Window = comm.Window; !ok || !cmp.Equal(got, comm) {
		t.Errorf("communicator: %s", cmp.Diff(comm, got))
	}
}
