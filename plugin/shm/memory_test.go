// SPDX-License-Identifier: Apache-2.0

package shm_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shmtest"
)

func newJob(t *testing.T, o shmtest.Options) (*shmtest.Job, *shm.Memory) {
	t.Helper()
	j := testkit.Value(shmtest.New(o))(t)
	t.Cleanup(func() { j.Close() })
	m := testkit.Value(shm.Map(j.FD()))(t)
	t.Cleanup(func() { m.Close() })
	return j, m
}

func readAll(t *testing.T, s shm.Source) (all []shm.Record) {
	t.Helper()
	_, err := s.Refresh()
	testkit.Require(t, err == nil, "%v", err)
	for _, ring := range s.Rings() {
		var r shm.Record
		for ring.Next(&r) {
			all = append(all, r)
		}
		testkit.Must(t, ring.Err())
	}
	return all
}

func TestRingsAreReadAcrossChunks(t *testing.T) {
	j, m := newJob(t, shmtest.Options{Chunks: 16})
	th := j.Thread(5, 77, "worker")
	// Coll records do not fill a chunk evenly: the rest of each stays unused.
	const n = 3000
	for i := range uint64(n) {
		testkit.Require(t,
			th.Write(&shm.Record{Ticks: 10 + i, Kind: shm.RecordStart, Type: shm.EventColl, Seq: i, Func: "AllReduce"}),
			"no memory")
	}
	all := readAll(t, m)
	testkit.Require(t, len(all) == n+1, "%d records, want %d", len(all), n+1)
	if r := all[0]; r.Kind != shm.RecordThread || r.TID != 77 || r.ThreadName != "worker" || r.Ticks != 5 {
		t.Errorf("first record: %+v", r)
	}
	for i, r := range all[1:] {
		testkit.Require(t, r.Seq == uint64(i) && r.Func == "AllReduce", "record %d: seq %d, func %q", i, r.Seq, r.Func)
	}
	testkit.Check(t, m.Strings().Missing == 0, "strings are missing")
}

func TestChunksComeBackOnlyAfterRelease(t *testing.T) {
	j, m := newJob(t, shmtest.Options{Chunks: 8, Reserve: 1})
	th := j.Thread(1, 1, "t")
	ticks := uint64(1)
	fill := func() (written int) {
		for {
			ticks++
			if !th.Write(&shm.Record{Ticks: ticks, Kind: shm.RecordState, Type: shm.EventProxyStep, Aux: 9}) {
				return written
			}
			written++
		}
	}
	first := fill()
	free, total := m.FreeChunks()
	testkit.Require(t, free == 0 && total == 7, "%d of %d chunks free", free, total)
	got := len(readAll(t, m))
	testkit.Require(t, got == first+1, "%d records, want %d", got, first+1)
	free, _ = j.Free()
	testkit.Require(t, free == 1, "%d chunks free before the release, want the reserve only", free)
	m.Release() // without a mark it gives nothing back
	free, _ = j.Free()
	testkit.Require(t, free == 1, "%d chunks free after a release without mark", free)
	m.Mark()
	m.Release()
	if free, _ := j.Free(); free != 7 { // all but the one being written
		t.Fatalf("%d chunks free after the release, want 7", free)
	}
	// The same memory carries further records, in order.
	for range 5 {
		want := fill()
		got := readAll(t, m)
		testkit.Require(t, len(got) == want, "%d records, want %d", len(got), want)
		for i := 1; i < len(got); i++ {
			testkit.Require(t, got[i].Ticks == got[i-1].Ticks+1, "ticks %d after %d", got[i].Ticks, got[i-1].Ticks)
		}
		m.Mark()
		m.Release()
	}
	h := m.Header()
	testkit.Check(t, h.Lost[shm.LossMemory][shm.EventProxyStep] == 6, "losses: %v", h.Lost)
}

// A copy of the header has all that the plugin writes there.
func TestHeaderIsCopiedWhole(t *testing.T) {
	j, m := newJob(t, shmtest.Options{Chunks: 8, Reserve: 2})
	h := reflect.ValueOf(j.Header()).Elem()
	first, last := h.FieldByName("RingUsed").Addr().Pointer(), h.FieldByName("CollectorState").Addr().Pointer()
	plugins := func(i int) bool {
		at := h.Field(i).Addr().Pointer()
		return h.Type().Field(i).Name != "_" && first <= at && at < last
	}
	number := uint64(0)
	var fill func(v reflect.Value)
	fill = func(v reflect.Value) {
		number++
		switch v.Kind() {
		case reflect.Array:
			for i := range v.Len() {
				fill(v.Index(i))
			}
		case reflect.Struct:
			for i := range v.NumField() {
				fill(v.Field(i))
			}
		case reflect.Int32:
			v.SetInt(int64(number))
		default:
			v.SetUint(number)
		}
	}
	for i := range h.NumField() {
		if plugins(i) {
			fill(h.Field(i))
		}
	}
	copied := m.Header()
	for i := range h.NumField() {
		got := reflect.ValueOf(copied).Field(i)
		testkit.Check(t, !plugins(i) || reflect.DeepEqual(got.Interface(), h.Field(i).Interface()),
			"%s is %v, want %v", h.Type().Field(i).Name, got, h.Field(i))
	}
	for reason := range shm.LossReason(shm.LossReasons) {
		for e := range shm.EventType(shm.TypeCount) {
			if got, want := m.Lost(reason, e), copied.Lost[reason][e]; got != want || got == 0 {
				t.Errorf("%d of type %d are lost for reason %v, want %d", got, e, reason, want)
			}
		}
	}
}

func TestSparesArePreparedAndUsed(t *testing.T) {
	j, m := newJob(t, shmtest.Options{Chunks: 8, Reserve: 2})
	n, _ := m.KeepSpares(2)
	testkit.Require(t, n == 2, "%d spares", n)
	_, spare := j.Free()
	testkit.Require(t, spare == 2, "%d chunks are spare", spare)
	th := j.Thread(1, 1, "t")
	_ = th
	testkit.Check(t, m.Header().FaultedChunks == 0, "the thread's first chunk was none of the spares")
	_, spare = j.Free()
	testkit.Require(t, spare == 1, "%d chunks are spare after one was taken", spare)
	if n, added := m.KeepSpares(shm.SpareMax); n != 5 || added != 4 { // 8 − 2 in reserve − 1 used
		t.Fatalf("%d spares, want all that starts may take", n)
	}
	// A chunk that was given back with its pages in place is the next spare.
	for range 30000 {
		th.Write(&shm.Record{Ticks: 1, Kind: shm.RecordState, Type: shm.EventProxyStep})
	}
	readAll(t, m)
	m.Mark()
	m.Release()
	n, _ = m.KeepSpares(2)
	testkit.Require(t, n == 2, "%d spares after the release", n)
}

// What has not been used for a while goes back to the system, but for a file in /dev/shm, whose room was set aside for
// good.
func TestIdleMemoryIsReturned(t *testing.T) {
	for kind, returned := range map[shm.MemoryKind]bool{shm.MemoryMemfd: true, shm.MemoryShm: false} {
		j, m := newJob(t, shmtest.Options{Chunks: 256, Reserve: 2})
		j.Header().MemoryKind = kind
		th := j.Thread(1, 1, "t")
		for range 300_000 {
			th.Write(&shm.Record{Ticks: 1, Kind: shm.RecordState, Type: shm.EventProxyStep})
		}
		readAll(t, m)
		m.Mark()
		m.Release()
		size := func() int64 {
			var st unix.Stat_t
			testkit.Must(t, unix.Fstat(j.FD(), &st))
			return st.Blocks
		}
		before := size()
		for range 30 {
			m.Release()
		}
		less := size() < before
		testkit.Check(t, less == returned, "kind %d: %d blocks, and %d after a while", kind, before, size())
	}
}

// Where a thread of the plugin fills the slots, the collector leaves them alone; else it fills them, and takes back
// what is too much.
func TestSparesHaveOneKeeper(t *testing.T) {
	j, m := newJob(t, shmtest.Options{Chunks: 64, Reserve: 2})
	h := j.Header()
	h.Preparer = 1
	if filled, added := m.KeepSpares(3); filled != 0 || added != 0 || h.Spare[0] != 0 {
		t.Fatalf("beside the thread: %d spares, %d of them new, slot %d", filled, added, h.Spare[0])
	}
	h.Preparer = 0
	if filled, added := m.KeepSpares(3); filled != 3 || added != 3 || h.Spare[2] != 3 {
		t.Fatalf("%d spares, %d of them new: %v", filled, added, h.Spare[:4])
	}
	if filled, added := m.KeepSpares(1); filled != 1 || added != 0 || h.Spare[1] != 0 || h.Spare[2] != 0 {
		t.Errorf("%d spares, %d of them new: %v", filled, added, h.Spare[:4])
	}
	if filled, added := m.KeepSpares(2); filled != 2 || added != 1 || h.Spare[1] != 3 {
		t.Errorf("%d spares, %d of them new: %v; want the chunk that was put back last", filled, added, h.Spare[:4])
	}
}

func TestCommunicators(t *testing.T) {
	j, m := newJob(t, shmtest.Options{})
	uuid := [16]byte{0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0, 1, 2, 3, 4, 5, 6, 7, 8}
	want := shm.Comm{APIVersion: 6, ID: 0xfeedfacecafe, NRanks: 8, Rank: 3, NNodes: 2, Device: 1, InitTicks: 99,
		InitTID: 12,
		Name:    "tp", PCI: "00000000:3b:00"}
	i := j.Comm(want, &uuid)
	testkit.Require(t, i == 0, "%v", i)
	j.Comm(shm.Comm{ID: 2, Device: -1}, nil)
	j.FinishComm(0, 1234)
	want.UUID, want.FinalTicks = "GPU-12345678-9abc-def0-0102-030405060708", 1234
	got, ok := m.Comm(0)
	d := cmp.Diff(want, got)
	testkit.Check(t, d == "" && ok, "%v", d)
	got, ok = m.Comm(1)
	testkit.Check(t, ok && got.UUID == "" && got.Device == -1 && got.Name == "", "%+v", got)
	_, ok = m.Comm(2)
	testkit.Check(t, !ok && m.Comms() == 2, "a third communicator")
}

func TestRequestsAndMessages(t *testing.T) {
	j, m := newJob(t, shmtest.Options{})
	m.SetMasks(7, 3)
	m.SetState(shm.CollectorReady)
	if e, r := j.Masks(); e != 7 || r != 3 || j.State() != shm.CollectorReady {
		t.Error(e, r, j.State())
	}
	n := j.Request()
	r, a := m.Requested()
	testkit.Check(t, r == n && a == 0, "%v %v", r, a)
	m.AwaitRequest(n-1, time.Minute) // returns at once: the number has changed
	m.Answer(n)
	testkit.Check(t, j.Answered(n), "not answered")
	m.Post("two\nlines " + strings.Repeat("é", 600))
	text, number := m.Message()
	testkit.Check(t, strings.HasPrefix(text, "two lines é") && len(text) <= 511 && strings.HasSuffix(text, "é") &&
		number == 1, "%d: %q", number, text)
	m.Post("short")
	text, number = m.Message()
	testkit.Check(t, text == "short" && number == 2, "%d: %q", number, text)
}

// A waiter wakes when the number changes while it sleeps.
func TestRequestWakes(t *testing.T) {
	j, m := newJob(t, shmtest.Options{})
	woken := make(chan struct{})
	go func() { m.AwaitRequest(0, time.Hour); close(woken) }()
	if !shmtest.Await(func() bool {
		j.Request() // again and again: the waiter may not sleep yet
		select {
		case <-woken:
			return true
		default:
			return false
		}
	}) {
		t.Fatal("still asleep")
	}
}

func TestMapRefuses(t *testing.T) {
	for _, tc := range []struct {
		name  string
		spoil func(*shmtest.Job)
		want  string
	}{
		{"magic", func(j *shmtest.Job) { j.Header().Magic++ }, "magic"},
		{"version", func(j *shmtest.Job) { j.Header().Version = 99 }, "layout version 99"},
		{"size", func(j *shmtest.Job) { j.Header().TotalSize *= 2 }, "the header says"},
		{"rings outside", func(j *shmtest.Job) { j.Header().RingOffset = j.Header().TotalSize - 4096 }, "rings at"},
		{"overflow", func(j *shmtest.Job) { j.Header().CommOffset = 1<<64 - 4096 }, "communicators at"},
		{"misaligned", func(j *shmtest.Job) { j.Header().StringOffset++ }, "strings at"},
		{"no chunks", func(j *shmtest.Job) { j.Header().ChunkCount = 0 }, "chunk"},
		{"all in reserve", func(j *shmtest.Job) { j.Header().ChunkReserve = 64 }, "in reserve"},
	} {
		j := testkit.Value(shmtest.New(shmtest.Options{}))(t)
		tc.spoil(j)
		m, err := shm.Map(j.FD())
		if err == nil {
			m.Close()
		}
		testkit.Check(t, errors.Is(err, shm.ErrCorrupt) && strings.Contains(err.Error(), tc.want),
			"%s: %v", tc.name, err)
		j.Close()
	}
	fd := testkit.Value(unix.MemfdCreate("empty", 0))(t)
	_, err := shm.Map(fd)
	testkit.Check(t, errors.Is(err, shm.ErrCorrupt), "%v", err)
}

// A wild write into the rings ends those rings, with a reason, and nothing else.
func TestBrokenRingsEnd(t *testing.T) {
	for _, tc := range []struct {
		name  string
		spoil func(*shmtest.Job, *shm.Header)
	}{
		{"first chunk out of range", func(j *shmtest.Job, h *shm.Header) { j.Corrupt(h.RingOffset+4, 0xff, 0xff) }},
		{"committed too large", func(j *shmtest.Job, h *shm.Header) { j.Corrupt(h.ChunkOffset+16, 0xff, 0xff, 0xff) }},
		{"committed no multiple", func(j *shmtest.Job, h *shm.Header) { j.Corrupt(h.ChunkOffset+16, 33, 0) }},
		{"chunk follows itself", func(j *shmtest.Job, h *shm.Header) { j.Corrupt(h.ChunkOffset+4, 1, 0) }},
		{"chunk of another ring", func(j *shmtest.Job, h *shm.Header) { j.Corrupt(h.ChunkOffset, 9) }},
		{"free chunk", func(j *shmtest.Job, h *shm.Header) { j.Corrupt(h.ChunkStateOffset, 0) }},
		{"record of no kind", func(j *shmtest.Job, h *shm.Header) { j.Corrupt(h.ChunkOffset+64+8, 99) }},
		{"record of no length", func(j *shmtest.Job, h *shm.Header) { j.Corrupt(h.ChunkOffset+64+10, 0) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			j, m := newJob(t, shmtest.Options{})
			th := j.Thread(1, 1, "broken")
			for range 3000 {
				th.Write(&shm.Record{Ticks: 2, Kind: shm.RecordStop, Type: shm.EventColl})
			}
			j.Thread(1, 2, "good")
			h := m.Header()
			tc.spoil(j, &h)
			m.Refresh()
			var r shm.Record
			for m.Rings()[0].Next(&r) {
			}
			err := m.Rings()[0].Err()
			testkit.Check(t, err != nil && strings.HasPrefix(err.Error(), "ring 0: "), "broken ring: %v", err)
			testkit.Check(t, m.Rings()[1].Next(&r) && r.ThreadName == "good" && m.Rings()[1].Err() == nil,
				"good ring: %+v, %v", r, m.Rings()[1].Err())
		})
	}
}

func TestClocksAgree(t *testing.T) {
	for _, source := range []shm.ClockSource{shm.ClockMonotonic, shm.ClockTSC, shm.ClockCNTVCT} {
		if !shm.HasCounter(source) {
			continue
		}
		a := shm.ReadClock(source)
		b := shm.ReadClock(source)
		testkit.Check(t, b.Ticks > a.Ticks && b.Raw > a.Raw && b.Mono > a.Mono && a.Real >= 1e18,
			"%s: %+v then %+v", source, a, b)
	}
	testkit.Check(t, !shm.HasCounter(shm.ClockTSC) || !shm.HasCounter(shm.ClockCNTVCT),
		"this processor has both counters")
}

func TestProcessStart(t *testing.T) {
	s, err := shm.ProcessStart(os.Getpid())
	testkit.Check(t, err == nil && s != 0, "%v %v", s, err)
	_, err = shm.ProcessStart(1 << 30)
	testkit.Check(t, err != nil, "a process with pid 2³⁰")
	zombie := exec.Command("true")
	testkit.Must(t, zombie.Start())
	if !shmtest.Await(func() bool {
		_, err := shm.ProcessStart(zombie.Process.Pid)
		return errors.Is(err, os.ErrProcessDone)
	}) {
		t.Error("an ended process that was not waited for still runs")
	}
	zombie.Wait()
}

// spoolFile makes a file of three rounds and returns the records in it.
func spoolFile(t *testing.T) (file []byte, want []shm.Record) {
	t.Helper()
	j := testkit.Value(shmtest.New(shmtest.Options{Created: shm.ClockTuple{Ticks: 1, Raw: 1}}))(t)
	defer j.Close()
	j.Comm(shm.Comm{ID: 1, NRanks: 2, Name: "dp"}, nil)
	th := j.Thread(1, 1, "t")
	th.KeepForSpool()
	want = []shm.Record{{Ticks: 1, Kind: shm.RecordThread, Aux: 1, TID: 1, ThreadName: "t"}}
	var out bytes.Buffer
	for round := range uint64(3) {
		for i := range uint64(10) {
			r := shm.Record{Ticks: 100*round + i, Kind: shm.RecordStart, Type: shm.EventCollApi, Count: i,
				Func: "AllReduce", Datatype: "ncclFloat32"}
			th.Write(&r)
			want = append(want, r)
		}
		testkit.Must(t, j.Spool(&out, shm.ClockTuple{Ticks: 100*round + 50, Raw: 100*round + 50}))
	}
	testkit.Must(t, shmtest.SpoolEnd(&out))
	return out.Bytes(), want
}

func readSpool(s *shm.Spool) (got []shm.Record, rounds []shm.Round, err error) {
	for {
		round, err := s.Refresh()
		if err != nil {
			return got, rounds, err
		}
		rounds = append(rounds, round)
		for _, ring := range s.Rings() {
			var r shm.Record
			for ring.Next(&r) {
				got = append(got, r)
			}
			if err := ring.Err(); err != nil {
				return got, rounds, err
			}
		}
		if round.Ended {
			return got, rounds, nil
		}
	}
}

func TestSpoolFile(t *testing.T) {
	file, want := spoolFile(t)
	s := testkit.Value(shm.OpenSpool(bytes.NewReader(file), int64(len(file))))(t)
	got, rounds, err := readSpool(s)
	testkit.Must(t, err)
	testkit.Same(t, want, got)
	// The first round has what lies before the first clock frame: nothing but the header.
	testkit.Check(t, len(rounds) == 4 && rounds[1].Clock.Ticks == 1 && rounds[2].Clock.Ticks == 50 &&
		rounds[3].Clock.Ticks == 250 && rounds[3].Ended, "rounds: %+v", rounds)
	testkit.Check(t, s.Orderly() && s.Cut() == "" && s.Lacking() == 0 && s.Strings().Missing == 0,
		"orderly %v, cut %q, lacking %d, missing %d", s.Orderly(), s.Cut(), s.Lacking(), s.Strings().Missing)
	c, ok := s.Comm(0)
	testkit.Check(t, ok && c.Name == "dp" && c.NRanks == 2, "communicator: %+v", c)
	h := s.Header()
	testkit.Check(t, h.Host() == "testhost", "host %q", h.Host())
}

// Cut off anywhere, a spool file gives a prefix of its records, and says that it was cut unless the
// cut lies between two frames.
func TestSpoolFileCutAnywhere(t *testing.T) {
	file, want := spoolFile(t)
	last := 0
	for size := 0; size < len(file); size += 24 {
		s, err := shm.OpenSpool(bytes.NewReader(file[:size]), int64(size))
		if size < shm.HeaderSize+32 {
			testkit.Require(t, errors.Is(err, shm.ErrCorrupt), "%d bytes: %v", size, err)
			continue
		}
		testkit.Require(t, err == nil, "%d bytes: %v", size, err)
		got, _, err := readSpool(s)
		testkit.Require(t, err == nil, "%d bytes: %v", size, err)
		testkit.Require(t, len(got) >= last && (len(got) == 0 || cmp.Diff(want[:len(got)], got) == ""),
			"%d bytes: %d records after %d", size, len(got), last)
		last = len(got)
		testkit.Require(t, !s.Orderly(), "%d bytes: orderly", size)
	}
	testkit.Check(t, last == len(want), "%d of %d records", last, len(want))
}

func FuzzSpool(f *testing.F) {
	j := testkit.Value(shmtest.New(shmtest.Options{}))(f)
	th := j.Thread(1, 1, "t")
	th.KeepForSpool()
	th.Write(&shm.Record{Ticks: 1, Kind: shm.RecordStart, Type: shm.EventCollApi, Func: "AllReduce"})
	var out bytes.Buffer
	j.Spool(&out, shm.ClockTuple{Ticks: 9})
	j.Close()
	f.Add(out.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := shm.OpenSpool(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		got, _, _ := readSpool(s)
		testkit.Check(t, len(got) <= len(b)/shm.Unit, "%d records from %d bytes", len(got), len(b))
	})
}

// A position names a record for whoever reads the ring, whatever the record's ticks: in shared memory as in a spool
// file, which begins with the first chunk that was not given back.
func TestPositions(t *testing.T) {
	j := testkit.Value(shmtest.New(shmtest.Options{Created: shm.ClockTuple{Ticks: 1, Raw: 1}}))(t)
	defer j.Close()
	th := j.Thread(1, 1, "t")
	const records = 3000
	for i := range uint64(records) {
		th.Write(&shm.Record{Ticks: 7, Kind: shm.RecordStart, Type: shm.EventCollApi, Count: i, Func: "AllReduce"})
	}
	m := testkit.Value(shm.Map(j.FD()))(t)
	defer m.Close()
	at := make(map[uint64]uint64) // record by position
	read := func(ring *shm.Ring, n int, known bool) (got int) {
		for ; got < n; got++ {
			if _, ok := ring.Peek(); !ok {
				break
			}
			p := ring.Position()
			var r shm.Record
			if !ring.Next(&r) {
				t.Fatal(ring.Err())
			}
			if r.Kind != shm.RecordStart {
				continue
			}
			if other, twice := at[p]; twice != known || known && other != r.Count {
				t.Fatalf("position %#x: record %d, there %v was %d", p, r.Count, twice, other)
			}
			at[p] = r.Count
		}
		return got
	}
	testkit.Value(m.Refresh())(t)
	read(m.Rings()[0], 2000, false)
	m.Mark()
	m.Release() // some chunks
	read(m.Rings()[0], records, false)
	testkit.Require(t, len(at) == records, "%d records at %d positions", records, len(at))
	var out bytes.Buffer
	testkit.Must(t, errors.Join(j.SpoolRest(&out, shm.ClockTuple{Ticks: 8, Raw: 8}), shmtest.SpoolEnd(&out)))
	s := testkit.Value(shm.OpenSpool(&out, int64(out.Len())))(t)
	n := 0
	for ended := false; !ended; {
		round := testkit.Value(s.Refresh())(t)
		for _, ring := range s.Rings() {
			n += read(ring, records, true)
		}
		ended = round.Ended
	}
	testkit.Check(t, n >= records-2000 && n != records && s.Lacking() == 0,
		"%d records in the spool file, %d bytes lack", n, s.Lacking())
}
