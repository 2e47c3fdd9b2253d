// SPDX-License-Identifier: Apache-2.0

package otf2

import (
	"errors"
	"os"
	"path/filepath"
	"runtime/metrics"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// seeds adds the archives' files with an extension, those that are small. Seeds that were made by hand, or that
// once failed, stand in testdata/fuzz under names that say what is odd about them.
func seeds(f *testing.F, pattern string) {
	f.Helper()
	paths, err := filepath.Glob(pattern)
	testkit.Require(f, err == nil && len(paths) != 0, "no seeds %s: %v", pattern, err)
	for _, path := range paths {
		if b := testkit.Read(f, path); len(b) < 8<<10 {
			f.Add(b)
		}
	}
	f.Add([]byte{})
	f.Add(plainBig.file(0))
}

// expected are the errors that reading a broken file may give.
func expected(t *testing.T, err error) {
	t.Helper()
	var fe *FormatError
	testkit.Check(t, err == nil || errors.As(err, &fe) &&
		(errors.Is(err, ErrTruncated) || errors.Is(err, ErrCorrupt) || errors.Is(err, ErrNotSupported)),
		"unexpected error %v", err)
}

// bounded fails if read allocates more than a file of size bytes gives reason for: whatever counts and lengths the
// file claims, memory follows the bytes that are there. A definition takes up to a hundred times its bytes on disk,
// a name of one letter for instance, and lists grow by doubling.
func bounded(t *testing.T, size int, read func()) {
	t.Helper()
	const fixed, perByte = 4 << 20, 400
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	before := sample[0].Value.Uint64()
	read()
	metrics.Read(sample)
	used := sample[0].Value.Uint64() - before
	testkit.Check(t, used <= fixed+perByte*uint64(size), "%d bytes allocated for a file of %d", used, size)
}

// wholeRecords counts the records of a file with the walker of Recover, which shares no code with the readers but
// the primitives: readers must deliver exactly these.
func wholeRecords(t *testing.T, path string, table *recordTable, stamped bool, chunk int64) uint64 {
	t.Helper()
	walk := frames{table: table, stamped: stamped, chunk: chunk}
	s := testkit.Value(walk.walk(path, false))(t)
	return s.records
}

// Event readers end, on any bytes, with what is whole; written again it is read the same; a repaired file is whole.
func FuzzEvents(f *testing.F) {
	seeds(f, "testdata/*/*/*.evt")
	path := filepath.Join(f.TempDir(), "0.evt")
	f.Fuzz(func(t *testing.T, b []byte) {
		testkit.Must(t, os.WriteFile(path, b, 0o644))
		bounded(t, len(b), func() {
			s, err := ScanEventFile(path, DefaultEventChunkSize)
			expected(t, err)
			n := wholeRecords(t, path, &eventTable, true, DefaultEventChunkSize)
			testkit.Check(t, s.Events == n || misnumbered(err, s.Events, n), "%d events, the file has %d", s.Events, n)
		})
		events, err := drain(inMemory(b), DefaultEventChunkSize)
		expected(t, err)
		w := NewMemoryEventWriter(nil)
		var written []Event
		for _, e := range events {
			a := attributeList(e.Attributes)
			if !e.Kind.Known() || a.Err() != nil || e.Time < w.LastTime() {
				continue
			}
			err := w.Write(e.Kind, e.Time, a, e.Args)
			testkit.Require(t, err == nil, "event %v read cannot be written: %v", e, err)
			written = append(written, e)
		}
		testkit.Must(t, w.Close())
		again := testkit.Value(drain(inMemory(w.Bytes()), DefaultEventChunkSize))(t)
		testkit.Require(t, len(again) == len(written), "%d events written, %d read", len(written), len(again))
		for i, e := range written {
			testkit.Require(t, string(words(again[i].Args)) == string(words(e.Args)) && again[i].Kind == e.Kind &&
				again[i].Time == e.Time, "event %v read again as %v", e, again[i])
		}
		s, err := ScanEventFile(path, DefaultEventChunkSize)
		expected(t, err)
		n := uint64(len(events))
		testkit.Require(t, s.Events == n || misnumbered(err, s.Events, n), "scanned as %+v, want %d events", s, n)
	})
}

// misnumbered says that a scan has ended before the last whole event for the one reason that readers of events do not
// have: a chunk that begins with another event than the one that is due.
func misnumbered(err error, scanned, there uint64) bool {
	return err != nil && strings.Contains(err.Error(), "a chunk begins with event") && scanned < there
}

// archiveAt is an archive for reading single files in dir.
func archiveAt(dir string) *Archive {
	return &Archive{
		Anchor: &Anchor{EventChunkSize: DefaultEventChunkSize, DefChunkSize: DefaultDefChunkSize},
		path:   filepath.Join(dir, "a.otf2"), open: newOpenFiles(1),
	}
}

// fuzzFile has a file of an archive read, whatever is in it: with as many records as the walker finds that count.
func fuzzFile(f *testing.F, pattern, name string, walk frames, counts func(raw []byte) bool,
	read func(t *testing.T, dir string) int) {
	f.Helper()
	seeds(f, pattern)
	dir := f.TempDir()
	path := filepath.Join(dir, name)
	testkit.Must(f, os.MkdirAll(filepath.Dir(path), 0o755))
	f.Fuzz(func(t *testing.T, b []byte) {
		testkit.Write(t, path, b)
		n, want, w := 0, 0, walk
		bounded(t, len(b), func() { n = read(t, dir) })
		w.record = func(_ bool, raw []byte, _ int) {
			if counts(raw) {
				want++
			}
		}
		testkit.Value(w.walk(path, false))(t)
		testkit.Check(t, n == want, "%d records, the file has %d", n, want)
	})
}

// hasName says that a record is one of a table's.
func hasName(table *recordTable) func(raw []byte) bool {
	return func(raw []byte) bool { return table[raw[0]].Name != "" }
}

func FuzzSnapshots(f *testing.F) {
	walk := frames{table: &snapshotTable, stamped: true, chunk: DefaultEventChunkSize}
	fuzzFile(f, "testdata/*/*/*.snap", "a/0.snap", walk, func([]byte) bool { return true },
		func(t *testing.T, dir string) (n int) {
			for s, err := range archiveAt(dir).SnapshotsOf(0) {
				expected(t, err)
				if err == nil {
					n++
					_ = s.Kind.UpperName()
				}
			}
			return n
		})
}

func FuzzGlobalDefs(f *testing.F) {
	walk := frames{table: &globalDefTable, chunk: DefaultDefChunkSize}
	fuzzFile(f, "testdata/*/*.def", "a.def", walk, func([]byte) bool { return true },
		func(t *testing.T, dir string) int {
			defs, err := ReadGlobalDefs(filepath.Join(dir, "a.def"), 0)
			expected(t, err)
			for i := range defs.Regions {
				self := defs.Regions[i].Self
				testkit.Require(t, defs.Region(self) != nil, "region %d is not found", self)
			}
			for i := range defs.Locations {
				self := defs.Locations[i].Self
				testkit.Require(t, defs.Location(self) != nil, "location %d is not found", self)
			}
			return len(defs.Order)
		})
}

func FuzzMarkers(f *testing.F) {
	walk := frames{table: &markerTable, chunk: DefaultDefChunkSize}
	fuzzFile(f, "testdata/*/*.marker", "a.marker", walk, hasName(&markerTable), func(t *testing.T, dir string) int {
		defs, markers, err := archiveAt(dir).Markers()
		expected(t, err)
		return len(defs) + len(markers)
	})
}

func FuzzThumbnails(f *testing.F) {
	const sample = 11
	walk := frames{table: &thumbnailTable, chunk: ThumbnailChunkSize}
	fuzzFile(f, "testdata/*/*.thumb", "a.0.thumb", walk, func(raw []byte) bool { return raw[0] == sample },
		func(t *testing.T, dir string) int {
			thumbnail, err := archiveAt(dir).Thumbnail(0)
			expected(t, err)
			return len(thumbnail.Samples)
		})
}

// Whatever an archive's files hold: recovered, it is read without an error, and a second recovery changes nothing.
func FuzzRecover(f *testing.F) {
	anchor := testkit.Read(f, "testdata/mapping/mapping.otf2")
	defs := testkit.Read(f, "testdata/mapping/mapping.def")
	events := testkit.Read(f, "testdata/mapping/mapping/0.evt")
	local := testkit.Read(f, "testdata/mapping/mapping/4294967296.def")
	f.Add(anchor, defs, events, local)
	f.Add([]byte{}, defs[:len(defs)-20], events[:len(events)-5], local[:60])
	f.Add(anchor[:50], defs, plainBig.file(0), []byte{})
	f.Add(anchor, defs[:300], make([]byte, 100), local)
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, anchor, defs, events, local []byte) {
		testkit.Must(t, os.RemoveAll(dir))
		testkit.Must(t, os.MkdirAll(filepath.Join(dir, "a"), 0o755))
		path := filepath.Join(dir, "a.otf2")
		for name, b := range map[string][]byte{"a.otf2": anchor, "a.def": defs, "a/0.evt": events, "a/0.def": local} {
			testkit.Must(t, os.WriteFile(filepath.Join(dir, name), b, 0o644))
		}
		res, err := Recover(path, nil)
		if err != nil {
			testkit.Check(t, errors.Is(err, ErrNotSupported), "unexpected error %v", err)
			return
		}
		again := testkit.Value(Recover(dir, nil))(t)
		testkit.Check(t, !again.Changed() && again.Failed() == res.Failed(),
			"recovered again:\n%v\nafter\n%v", again, res)
		if res.Failed() {
			return
		}
		a := testkit.Value(Open(path, nil))(t)
		n := uint64(len(a.Defs.Order))
		testkit.Check(t, a.Anchor.GlobalDefs == n && a.Anchor.Locations <= n, "anchor %+v, %d definitions", a.Anchor, n)
		for i := range a.Defs.Locations {
			l := &a.Defs.Locations[i]
			n, contradiction := uint64(0), false
			for _, err := range a.EventsOf(l.Self) {
				var fe *FormatError
				switch {
				case err == nil:
					n++
				case errors.As(err, &fe) && filepath.Ext(fe.File) == ".def" && errors.Is(err, ErrCorrupt):
					contradiction = true // tables that are whole may contradict each other: then no event is read
				default:
					t.Error(err)
				}
			}
			testkit.Check(t, n == l.Events || contradiction,
				"location %d is defined with %d events and has %d", l.Self, l.Events, n)
		}
	})
}

// Local definitions.
func FuzzLocalDefs(f *testing.F) {
	seeds(f, "testdata/*/*/*.def")
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(dir, "l.def")
		testkit.Must(t, os.WriteFile(path, b, 0o644))
		var maps []MappingTable
		var clocks []ClockOffset
		bounded(t, len(b), func() {
			var err error
			maps, clocks, err = ReadLocalDefs(path, 0, 0)
			expected(t, err)
		})
		var list []*MappingTable
		for i := range maps {
			list = append(list, &maps[i])
		}
		testkit.Must(t, WriteLocalDefs(path, list, clocks, 0))
		l := newLocalMaps(maps, clocks, 0)
		maps, clocks, err := ReadLocalDefs(path, 0, 0)
		testkit.Must(t, err)
		again := newLocalMaps(maps, clocks, 0)
		testkit.Require(t, len(maps) == len(list) && (l.equal(again) || hasNaN(l.clocks)),
			"%v, %v read again as %v, %v", l.maps, l.clocks, maps, clocks)
	})
}

func hasNaN(clocks []ClockOffset) bool {
	for _, c := range clocks {
		if c.StdDev != c.StdDev {
			return true
		}
	}
	return false
}

// Anchors: what is read can be written and read again.
func FuzzAnchor(f *testing.F) {
	seeds(f, "testdata/*/*.otf2")
	path := filepath.Join(f.TempDir(), "a.otf2")
	f.Fuzz(func(t *testing.T, b []byte) {
		testkit.Must(t, os.WriteFile(path, b, 0o644))
		var a *Anchor
		var err error
		bounded(t, len(b), func() { a, err = ReadAnchor(path) })
		expected(t, err)
		if err != nil {
			return
		}
		if err := WriteAnchor(path, a); err != nil {
			testkit.Require(t, errors.Is(err, ErrInvalid) || errors.Is(err, ErrTooLarge), "%v", err)
			return // property names are not checked when read
		}
		_, err = ReadAnchor(path)
		testkit.Require(t, err == nil, "anchor %+v written again: %v", a, err)
	})
}
