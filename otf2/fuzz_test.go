// SPDX-License-Identifier: Apache-2.0

package otf2

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// seeds adds the archives' files with an extension, those that are small.
func seeds(f *testing.F, pattern string) {
	f.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		f.Fatalf("no seeds %s: %v", pattern, err)
	}
	for _, path := range paths {
		if b := readFile(f, path); len(b) < 8<<10 {
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
	if err != nil && (!errors.As(err, &fe) || !errors.Is(err, ErrTruncated) && !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrNotSupported)) {
		t.Errorf("unexpected error %v", err)
	}
}

// Event readers end, on any bytes, with what is whole; written again it is read the same; a repaired file is whole.
func FuzzEvents(f *testing.F) {
	seeds(f, "testdata/*/*/*.evt")
	path := filepath.Join(f.TempDir(), "0.evt")
	f.Fuzz(func(t *testing.T, b []byte) {
		events, err := drain(inMemory(b), DefaultEventChunkSize)
		expected(t, err)
		w := NewMemoryEventWriter(nil)
		var written []Event
		for _, e := range events {
			a := attributeList(e.Attributes)
			if !e.Kind.Known() || a.Err() != nil || e.Time < w.LastTime() {
				continue
			}
			if err := w.Write(e.Kind, e.Time, a, e.Args); err != nil {
				t.Fatalf("event %v read cannot be written: %v", e, err)
			}
			written = append(written, e)
		}
		check(t, w.Close())
		again, err := drain(inMemory(w.Bytes()), DefaultEventChunkSize)
		check(t, err)
		if len(again) != len(written) {
			t.Fatalf("%d events written, %d read", len(written), len(again))
		}
		for i, e := range written {
			if string(words(again[i].Args)) != string(words(e.Args)) || again[i].Kind != e.Kind || again[i].Time != e.Time {
				t.Fatalf("event %v read again as %v", e, again[i])
			}
		}
		check(t, os.WriteFile(path, b, 0o644))
		s, err := RepairEventFile(path, DefaultEventChunkSize)
		expected(t, err)
		if err != nil {
			return
		}
		if n := uint64(len(events)); s.Events != n || !s.Complete {
			t.Fatalf("repaired to %+v, want %d events", s, n)
		}
		if after, err := ScanEventFile(path, DefaultEventChunkSize); err != nil || after.Events != s.Events || !after.Complete {
			t.Fatalf("repaired file: %+v, %v", after, err)
		}
	})
}

// Snapshot files.
func FuzzSnapshots(f *testing.F) {
	seeds(f, "testdata/*/*/*.snap")
	dir := f.TempDir()
	check(f, os.Mkdir(filepath.Join(dir, "a"), 0o755))
	f.Fuzz(func(t *testing.T, b []byte) {
		check(t, os.WriteFile(filepath.Join(dir, "a", "0.snap"), b, 0o644))
		a := &Archive{Anchor: &Anchor{EventChunkSize: DefaultEventChunkSize}, path: filepath.Join(dir, "a.otf2"), open: newOpenFiles(1)}
		for _, err := range a.SnapshotsOf(0) {
			expected(t, err)
		}
	})
}

// Global definitions, markers and thumbnails.
func FuzzDefinitions(f *testing.F) {
	seeds(f, "testdata/*/*.def")
	seeds(f, "testdata/*/*.marker")
	seeds(f, "testdata/*/*.thumb")
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, ext := range []string{".def", ".marker", ".0.thumb"} {
			check(t, os.WriteFile(filepath.Join(dir, "a"+ext), b, 0o644))
		}
		defs, err := ReadGlobalDefs(filepath.Join(dir, "a.def"), 0)
		expected(t, err)
		for i := range defs.Regions {
			if defs.Region(defs.Regions[i].Self) == nil {
				t.Fatalf("region %d is not found", defs.Regions[i].Self)
			}
		}
		a := &Archive{Anchor: &Anchor{DefChunkSize: DefaultDefChunkSize}, path: filepath.Join(dir, "a.otf2"), open: newOpenFiles(1)}
		_, _, err = a.Markers()
		expected(t, err)
		_, err = a.Thumbnail(0)
		expected(t, err)
	})
}

// Local definitions.
func FuzzLocalDefs(f *testing.F) {
	seeds(f, "testdata/*/*/*.def")
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(dir, "l.def")
		check(t, os.WriteFile(path, b, 0o644))
		maps, clocks, err := ReadLocalDefs(path, 0, 0)
		expected(t, err)
		var list []*MappingTable
		for i := range maps {
			list = append(list, &maps[i])
		}
		check(t, WriteLocalDefs(path, list, clocks, 0))
		l := newLocalMaps(maps, clocks)
		maps, clocks, err = ReadLocalDefs(path, 0, 0)
		check(t, err)
		again := newLocalMaps(maps, clocks)
		if len(maps) != len(list) || !l.equal(again) && !hasNaN(l.clocks) {
			t.Fatalf("%v, %v read again as %v, %v", l.maps, l.clocks, maps, clocks)
		}
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
		check(t, os.WriteFile(path, b, 0o644))
		a, err := ReadAnchor(path)
		expected(t, err)
		if err != nil {
			return
		}
		if err := WriteAnchor(path, a); err != nil {
			if !errors.Is(err, ErrInvalid) && !errors.Is(err, ErrTooLarge) {
				t.Fatal(err)
			}
			return // property names are not checked when read
		}
		if _, err := ReadAnchor(path); err != nil {
			t.Fatalf("anchor %+v written again: %v", a, err)
		}
	})
}
