// SPDX-License-Identifier: Apache-2.0

package otf2

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// archiveOf writes an archive with the given event files, and no more definitions than reading needs.
func archiveOf(t testing.TB, files map[LocationRef][]byte, defs map[LocationRef][]byte) string {
	t.Helper()
	dir := t.TempDir()
	testkit.Must(t, os.Mkdir(filepath.Join(dir, "a"), 0o755))
	w := testkit.Value(CreateGlobalDefWriter(filepath.Join(dir, "a.def"), 0))(t)
	testkit.Must(t, w.ClockProperties(1e9, 0, 1<<62, 0))
	var locations []LocationRef
	for loc := range files {
		locations = append(locations, loc)
	}
	slices.Sort(locations)
	for _, loc := range locations {
		testkit.Must(t, w.Location(loc, 0, LocationTypeCPUThread, 0, 0))
		testkit.Must(t, os.WriteFile(filepath.Join(dir, "a", strconv.FormatUint(uint64(loc), 10)+".evt"), files[loc],
			0o644))
	}
	for loc, b := range defs {
		testkit.Must(t, os.WriteFile(filepath.Join(dir, "a", strconv.FormatUint(uint64(loc), 10)+".def"), b, 0o644))
	}
	n := w.Count()
	testkit.Must(t, w.Close())
	path := filepath.Join(dir, "a.otf2")
	testkit.Must(t, WriteAnchor(path, &Anchor{Locations: uint64(len(files)), GlobalDefs: n, TraceID: 1}))
	return path
}

// Events of many locations come by time and location, with few open files and small windows, and a selection
// takes those it names.
func TestGlobalOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		type key struct {
			at  Timestamp
			loc LocationRef
			seq int
		}
		var want []key
		files := map[LocationRef][]byte{}
		n := rapid.IntRange(1, 40).Draw(rt, "locations")
		for i := range n {
			loc := LocationRef(i) << rapid.IntRange(0, 40).Draw(rt, "shift")
			if files[loc] != nil {
				continue
			}
			w := NewMemoryEventWriter(nil)
			at := Timestamp(0)
			for seq := range rapid.IntRange(0, 300).Draw(rt, "events") {
				at += Timestamp(rapid.IntRange(0, 3).Draw(rt, "step"))
				testkit.Must(t, w.MpiIsendComplete(at, nil, uint64(seq)))
				want = append(want, key{at, loc, seq})
			}
			testkit.Must(t, w.Close())
			files[loc] = w.Bytes()
		}
		slices.SortFunc(want, func(a, b key) int {
			for _, d := range []int{cmp.Compare(a.at, b.at), cmp.Compare(a.loc, b.loc)} {
				if d != 0 {
					return d
				}
			}
			return a.seq - b.seq
		})
		a := testkit.Value(Open(archiveOf(t, files, nil), &ReadOptions{MaxOpenFiles: 3, Memory: 1}))(t)
		collect := func(sel *Selection) (got []key) {
			for e, err := range a.Events(sel) {
				testkit.Must(t, err)
				got = append(got, key{e.Time, e.Location, int(e.Args[0])})
			}
			return got
		}
		got := collect(nil)
		testkit.Require(rt, slices.Equal(got, want), "order is wrong: %d events of %d", len(got), len(want))
		from, to := Timestamp(rapid.IntRange(0, 300).Draw(rt, "from")), Timestamp(rapid.IntRange(1, 300).Draw(rt, "to"))
		var some []LocationRef
		for _, d := range a.Defs.Locations {
			if d.Self%2 == 0 {
				some = append(some, d.Self)
			}
		}
		want = slices.DeleteFunc(want, func(k key) bool { return k.loc%2 != 0 || k.at < from || k.at > to })
		if some == nil {
			some = []LocationRef{}
		}
		got = collect(&Selection{Locations: some, From: from, To: to})
		testkit.Require(rt, slices.Equal(got, want), "selection: %d events, want %d", len(got), len(want))
		left := a.open.left.Load()
		testkit.Require(rt, left == 3, "%d of 3 files are still open", 3-left)
	})
}

// A selection of late times begins in a late chunk, also behind a clock correction, and misses nothing.
func TestSeek(t *testing.T) {
	w := NewMemoryEventWriter(nil)
	for i := range uint64(150_000) {
		testkit.Must(t, w.MpiIsendComplete(Timestamp(1000+i/7), nil, i))
	}
	testkit.Must(t, w.Close())
	dir := t.TempDir()
	local := filepath.Join(dir, "l.def")
	testkit.Must(t, WriteLocalDefs(local, nil, []ClockOffset{{Time: 1000, Offset: 5000}, {Time: 3000, Offset: 9000}},
		0))
	files := map[LocationRef][]byte{1: w.Bytes()}
	for _, defs := range []map[LocationRef][]byte{nil, {1: testkit.Read(t, local)}} {
		a := testkit.Value(Open(archiveOf(t, files, defs), nil))(t)
		var times []Timestamp
		for e, err := range a.EventsOf(1) {
			testkit.Must(t, err)
			times = append(times, e.Time)
		}
		for _, from := range []Timestamp{1, times[0], times[1] + 1, times[70_000], times[70_001], times[len(times)-1],
			times[len(times)-1] + 1} {
			n := 0
			for e, err := range a.Events(&Selection{From: from}) {
				testkit.Must(t, err)
				testkit.Require(t, e.Time >= from, "event at %d, wanted from %d", e.Time, from)
				n++
			}
			want := 0
			for _, at := range times {
				if at >= from {
					want++
				}
			}
			testkit.Equal(t, n, want, "from %d: events", from)
		}
		r := a.eventReader(1, maxWindow)
		testkit.Must(t, r.seek(times[len(times)-1]))
		last := int64(len(w.Bytes())-1) / DefaultEventChunkSize * DefaultEventChunkSize
		testkit.Check(t, r.win.chunkEnd == last+DefaultEventChunkSize && last != 0,
			"sought to the chunk that ends at %d, want the last one, at %d", r.win.chunkEnd, last)
		r.close()
	}
}

// One archive is read by several goroutines.
func TestConcurrentReading(t *testing.T) {
	a := testkit.Value(Open("testdata/mapping/mapping.otf2", &ReadOptions{MaxOpenFiles: 2}))(t)
	counts := make(chan int)
	for range 4 {
		go func() {
			n := 0
			for _, err := range a.Events(nil) {
				testkit.Check(t, err == nil, "%v", err)
				n++
			}
			counts <- n
		}()
	}
	for range 4 {
		testkit.Equal(t, <-counts, 208, "events")
	}
}

// Leaving the loop early closes the files.
func TestBreakClosesFiles(t *testing.T) {
	a := testkit.Value(Open("testdata/many-locations/many.otf2", nil))(t)
	for _, err := range a.Events(nil) {
		testkit.Must(t, err)
		break
	}
	for range a.EventsOf(3) {
		break
	}
	left := a.open.left.Load()
	testkit.Check(t, left == int64(a.opts.MaxOpenFiles), "%d files are still open", int64(a.opts.MaxOpenFiles)-left)
}

// A damaged location delivers what is whole and an error; the others go on.
func TestDamagedLocation(t *testing.T) {
	good, bad := NewMemoryEventWriter(nil), NewMemoryEventWriter(nil)
	for i := range Timestamp(100) {
		testkit.Must(t, good.Enter(i, nil, 1))
		testkit.Must(t, bad.Enter(i, nil, 2))
	}
	testkit.Must(t, good.Close())
	testkit.Must(t, bad.Close())
	corrupt := slices.Clone(bad.Bytes())
	corrupt[headerSize+10*12] = 4 // a record id that does not exist, behind 10 events
	header := slices.Clone(bad.Bytes())
	header[1] = 'x'
	long := slices.Clone(plainLittle.file(1, plainLittle.stamp(1),
		[]byte{14, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}))
	for _, c := range []struct {
		name   string
		file   []byte
		events int
		cause  error
	}{
		{"cut in a record", bad.Bytes()[:headerSize+10*12-1], 9, ErrTruncated},
		{"cut behind a record", bad.Bytes()[:headerSize+10*12], 10, ErrTruncated},
		{"no header", nil, 0, ErrTruncated},
		{"corrupt", corrupt, 10, ErrCorrupt},
		{"byte order", header, 0, ErrCorrupt},
		{"length", long, 0, ErrCorrupt},
		{"chunk too long", append(slices.Clone(bad.Bytes()[:len(bad.Bytes())-2]),
			make([]byte, DefaultEventChunkSize)...), 100, ErrCorrupt},
	} {
		a := testkit.Value(Open(archiveOf(t, map[LocationRef][]byte{1: good.Bytes(), 2: c.file}, nil), nil))(t)
		var events [3]int
		var errs []error
		for e, err := range a.Events(nil) {
			if err != nil {
				errs = append(errs, err)
				continue
			}
			events[e.Location]++
		}
		var fe *FormatError
		testkit.Check(t, len(errs) == 1 && errors.Is(errs[0], c.cause) && errors.As(errs[0], &fe) && fe.Location == 2 &&
			fe.File == a.EventFile(2), "%s: errors %v, want %v at location 2", c.name, errs, c.cause)
		testkit.Check(t, events[1] == 100 && events[2] == c.events,
			"%s: %v events, want 100 and %d", c.name, events[1:], c.events)
	}
	a := testkit.Value(Open(archiveOf(t, map[LocationRef][]byte{1: good.Bytes(), 77: good.Bytes()}, nil), nil))(t)
	testkit.Must(t, os.Remove(a.EventFile(77)))
	testkit.Must(t, os.Rename(a.EventFile(1), a.EventFile(78)))
	// without file, without definition
	for loc, cause := range map[LocationRef]error{77: os.ErrNotExist, 78: ErrCorrupt} {
		n := 0
		for _, err := range a.EventsOf(loc) {
			if n++; !errors.Is(err, cause) || !strings.Contains(err.Error(), a.EventFile(loc)) {
				t.Errorf("location %d: %v", loc, err)
			}
		}
		testkit.Equal(t, n, 1, "location %d: errors", loc)
	}
}

// Unknown records are skipped or delivered without fields; longer records of the future are read as far as known.
func TestFutureRecords(t *testing.T) {
	b := plainLittle.file(4, plainLittle.stamp(5),
		plainLittle.framed(200, []byte{1, 2, 3}, false),
		plainLittle.framed(201, make([]byte, 300), true),
		plainLittle.framed(byte(EventCommCreate), []byte{1, 9, 0xaa, 0xbb}, true),
		plainLittle.event(EventEnter, []uint64{3}))
	events := testkit.Value(readEvents(tempFile(t, b), DefaultEventChunkSize))(t)
	testkit.Check(t, len(events) == 4 && events[0].Kind == 200 && len(events[0].Args) == 0 && events[2].Args[0] == 9 &&
		events[3].Args[0] == 3, "read %v", events)
	if k := EventMpiIrecvRequest; k.UpperName() != "MPI_IRECV_REQUEST" || EventMpiProbe.Since() != 0x0302 ||
		DefClockProperties.Since() != 0x0100 {
		t.Errorf("%s of %s, %s, %s", k.UpperName(), k.Since(), EventMpiProbe.Since(), DefClockProperties.Since())
	}
	k := EventKind(200)
	testkit.Check(t, !k.Known() && k.String() == "Unknown(200)" && k.UpperName() == "UNKNOWN", "kind 200: %v", k)
	short := plainLittle.file(1, plainLittle.stamp(5), plainLittle.framed(byte(EventMpiSend), []byte{1, 9}, false))
	_, err := readEvents(tempFile(t, short), DefaultEventChunkSize)
	testkit.Check(t, errors.Is(err, ErrCorrupt), "record shorter than its fields: %v", err)
}

// Definitions from before fields were appended get the defaults.
func TestOldDefinitions(t *testing.T) {
	c := plainLittle.c32
	fields := func(vs ...uint32) (b []byte) {
		for _, v := range vs {
			b = c(b, v)
		}
		return b
	}
	file := plainLittle.file(0,
		plainLittle.framed(byte(DefClockProperties), plainLittle.c64(plainLittle.c64(plainLittle.c64(nil, 1000), 5), 6),
			false),
		plainLittle.framed(byte(DefAttribute), append(fields(0, 1), byte(TypeUint8)), false),
		plainLittle.framed(byte(DefRegion), append(append(fields(0, 7, 8), 25), fields(9, 1, 2)...), false),
		plainLittle.framed(byte(DefRegion), append(append(fields(1, 7, 8), 29), fields(9, 1, 2)...), false),
		plainLittle.framed(byte(DefGroup), append(
			append(append(fields(0, 7), 4), fields(1)...), plainLittle.c64(nil, 3)...), false),
		plainLittle.framed(byte(DefComm), fields(0, 1, 0, 1<<32-1), false),
		plainLittle.framed(byte(DefRmaWin), fields(0, 1, 0), false),
		plainLittle.framed(byte(DefLocationGroup), append(append(fields(0, 1), 1), fields(4)...), false),
		plainLittle.framed(byte(DefSystemTreeNodeProperty), fields(0, 1, 6), false),
		plainLittle.framed(99, []byte{1, 2}, false),
	)
	defs := testkit.Value(ReadGlobalDefs(tempFile(t, file), 0))(t)
	testkit.Equal(t, defs.Clock, (ClockProperties{1000, 5, 6, 1<<64 - 1}), "clock")
	v := defs.Attribute(0)
	testkit.Check(t, v.Description == UndefinedString, "attribute %+v", v)
	if v := defs.Region(0); v.CanonicalName != 7 || v.Role != RegionRoleCollAll2All || v.Paradigm != ParadigmMPI ||
		v.Flags != 0 {
		t.Errorf("region %+v", v)
	}
	if v := defs.Region(1); v.Role != RegionRoleCode || v.Paradigm != ParadigmUser ||
		v.Flags != RegionFlagDynamic|RegionFlagPhase {
		t.Errorf("region %+v", v)
	}
	if v := defs.Group(0); v.Type != GroupTypeCommGroup || v.Paradigm != ParadigmMPI || len(v.Members) != 1 {
		t.Errorf("group %+v", v)
	}
	if v := defs.Comm(0); v.Flags != 0 || v.Parent != UndefinedComm {
		t.Errorf("comm %+v", v)
	}
	if v := defs.RmaWin(0); v.Flags != RmaWinFlagCreateDestroyEvents {
		t.Errorf("window %+v", v)
	}
	if v := defs.LocationGroup(0); v.Creator != UndefinedLocationGroup {
		t.Errorf("location group %+v", v)
	}
	if v := defs.SystemTreeNodeProperties[0]; v.Type != TypeString || v.Value != 6 {
		t.Errorf("property %+v", v)
	}
	testkit.Check(t, len(defs.Other) == 1 && defs.Other[0].ID == 99 && len(defs.Order) == 10,
		"other %v, %d records", defs.Other, len(defs.Order))
}

// Archives that cannot be read say so.
func TestRefusedArchives(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.otf2")
	for _, a := range []*Anchor{{Compression: CompressionZlib}, {Substrate: SubstrateSION}} {
		testkit.Must(t, WriteAnchor(path, a))
		_, err := Open(path, nil)
		testkit.Check(t, errors.Is(err, ErrNotSupported), "%+v: %v", a, err)
		_, err = ReadAnchor(path)
		testkit.Check(t, err == nil, "%+v: its anchor: %v", a, err)
	}
	testkit.Must(t, WriteAnchor(path, &Anchor{}))
	b := testkit.Read(t, path)
	for name, change := range map[string]func(b []byte) []byte{
		"no header":    func(b []byte) []byte { b[0] = 0; return b },
		"byte order":   func(b []byte) []byte { b[1] = 0; return b },
		"magic":        func(b []byte) []byte { b[2] = 'X'; return b },
		"format 0":     func(b []byte) []byte { b[7] = 0; return b },
		"trace format": func(b []byte) []byte { b[8] = 3; return b },
		"chunk size":   func(b []byte) []byte { b[14] = 0; return b },
		"cut":          func(b []byte) []byte { return b[:len(b)-4] },
		"empty":        func([]byte) []byte { return nil },
	} {
		testkit.Must(t, os.WriteFile(path, change(slices.Clone(b)), 0o644))
		var fe *FormatError
		_, err := Open(path, nil)
		testkit.Check(t, errors.As(err, &fe), "%s: %v", name, err)
	}
	_, err := Open(filepath.Join(dir, "none.otf2"), nil)
	testkit.Check(t, errors.Is(err, os.ErrNotExist), "no anchor: %v", err)
}
