// SPDX-License-Identifier: Apache-2.0

package otf2_test

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// copyArchive copies the folder of an archive and returns the anchor in the copy.
func copyArchive(t testing.TB, anchor string) string {
	t.Helper()
	dir := t.TempDir()
	ok(t, os.CopyFS(dir, os.DirFS(filepath.Dir(anchor))))
	return filepath.Join(dir, filepath.Base(anchor))
}

func ok(t testing.TB, err error) {
	t.Helper()
	testkit.Must(t, err)
}

// tree reads all files of a folder.
func tree(t testing.TB, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	ok(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		files[path] = string(b)
		return err
	}))
	return files
}

func sameTree(t testing.TB, what string, got, want map[string]string) {
	t.Helper()
	for path, b := range want {
		g, there := got[path]
		testkit.Check(t, there && g == b, "%s: %s changed or is gone", what, path)
	}
	for path := range got {
		_, there := want[path]
		testkit.Check(t, there, "%s: %s is new", what, path)
	}
}

// eventsIn counts the events that the archive's reader delivers, by location, and the sum of the numbers that
// Location definitions name. Any error fails the test.
func eventsIn(t testing.TB, anchor string) map[otf2.LocationRef]uint64 {
	t.Helper()
	a, err := otf2.Open(anchor, nil)
	ok(t, err)
	defer a.Close()
	n := map[otf2.LocationRef]uint64{}
	for e, err := range a.Events(nil) {
		ok(t, err)
		n[e.Location]++
	}
	for _, l := range a.Defs.Locations {
		testkit.Check(t, l.Events == n[l.Self],
			"location %d is defined with %d events and has %d", l.Self, l.Events, n[l.Self])
	}
	testkit.Equal(t, uint64(len(a.Defs.Order)), a.Anchor.GlobalDefs,
		"definitions that there are, and that the anchor names")
	return n
}

func file(t testing.TB, res *otf2.RecoverResult, path string) *otf2.RecoveredFile {
	t.Helper()
	i := slices.IndexFunc(res.Files, func(f otf2.RecoveredFile) bool { return f.Path == path })
	if i < 0 {
		t.Fatalf("no line about %s in %v", path, lines(res))
	}
	return &res.Files[i]
}

func lines(res *otf2.RecoverResult) string {
	var b strings.Builder
	for i := range res.Files {
		b.WriteString(res.Files[i].String() + "\n")
	}
	return b.String() + "lost: " + strings.Join(res.Lost, "; ")
}

// mustRecover recovers, checks that the tree is as before where nothing was said, and that a second call changes
// nothing.
func mustRecover(t testing.TB, anchor string) *otf2.RecoverResult {
	t.Helper()
	dir := filepath.Dir(anchor)
	before := tree(t, dir)
	dry, err := otf2.Recover(anchor, &otf2.RecoverOptions{DryRun: true})
	ok(t, err)
	sameTree(t, "dry run", tree(t, dir), before)
	res, err := otf2.Recover(anchor, nil)
	ok(t, err)
	if len(dry.Files) != len(res.Files) {
		t.Fatalf("a dry run says\n%s\nthe real one\n%s", lines(dry), lines(res))
	}
	want := map[string]string{}
	after := tree(t, dir)
	for path, b := range before {
		want[path] = b
	}
	for i, f := range res.Files {
		if d := dry.Files[i]; d.String() != f.String() || d.Dropped != f.Dropped || d.Records != f.Records {
			t.Errorf("dry run: %v; then: %v", d, f)
		}
		switch f.Action {
		case otf2.RecoverCreated:
			want[f.Path] = after[f.Path]
		case otf2.RecoverRepaired:
			want[f.Original] = before[f.Path]
			want[f.Path] = after[f.Path]
		}
	}
	sameTree(t, "recovery", after, want)
	again, err := otf2.Recover(anchor, nil)
	ok(t, err)
	testkit.Check(t, !again.Changed() && again.Failed() == res.Failed(), "second recovery:\n%s", lines(again))
	sameTree(t, "second recovery", tree(t, dir), after)
	return res
}

// Archives that are whole, those of libotf2 among them, are left alone.
func TestRecoverLeavesWholeArchives(t *testing.T) {
	anchors, err := filepath.Glob("testdata/*/*.otf2")
	ok(t, err)
	testkit.Require(t, len(anchors) == 11, "%d archives, want 11", len(anchors))
	anchors = append(anchors, wholeArchive(t, t.TempDir(), 9000))
	for _, anchor := range anchors {
		path := copyArchive(t, anchor)
		res := mustRecover(t, path)
		testkit.Check(t, !res.Changed() && !res.Failed() && len(res.Lost) == 0, "%s:\n%s", anchor, lines(res))
		for _, f := range res.Files {
			testkit.Equal(t, f.Action, otf2.RecoverWhole, "%s: %v", anchor, f)
		}
	}
}

// A killed writer's archive: event files cut at any place, no anchor.
func TestRecoverCutEvents(t *testing.T) {
	whole := wholeArchive(t, t.TempDir(), 9000)
	all := eventsIn(t, whole)
	const loc = otf2.LocationRef(1 << 32)
	evt := func(anchor string) string {
		return filepath.Join(strings.TrimSuffix(anchor, ".otf2"), "4294967296.evt")
	}
	b, err := os.ReadFile(evt(whole))
	ok(t, err)
	testkit.Require(t, len(b) >= 2*otf2.DefaultEventChunkSize, "%d bytes, want more than two chunks", len(b))
	for _, cut := range []int{0, 1, 17, 18, 19, 30, 4711, otf2.DefaultEventChunkSize - 1, otf2.MinChunkSize,
		otf2.DefaultEventChunkSize + 5, otf2.MinChunkSize + 18, otf2.MinChunkSize + 27, len(b) - 3,
		len(b) - 2, len(b) - 1} {
		for _, anchorToo := range []bool{false, true} {
			anchor := copyArchive(t, whole)
			ok(t, os.Truncate(evt(anchor), int64(cut)))
			scan, err := otf2.ScanEventFile(evt(anchor), otf2.DefaultEventChunkSize)
			ok(t, err)
			if anchorToo {
				ok(t, os.Remove(anchor))
			}
			res := mustRecover(t, anchor)
			if res.Failed() || anchorToo != (len(res.Lost) > 0) {
				t.Fatalf("cut at %d:\n%s", cut, lines(res))
			}
			got := eventsIn(t, anchor)
			testkit.Check(t, got[0] == all[0] && got[loc] == scan.Events,
				"cut at %d: %d and %d events, want %d and %d", cut, got[0], got[loc], all[0], scan.Events)
			f := file(t, res, evt(anchor))
			testkit.Check(t, f.Records == scan.Events && (f.Action == otf2.RecoverWhole) == (cut == len(b)-1),
				"cut at %d: %v", cut, f)
			after, err := otf2.ScanEventFile(evt(anchor), otf2.DefaultEventChunkSize)
			if ok(t, err); !after.Complete || after.Events != scan.Events ||
				after.ValidBytes != max(18, scan.ValidBytes) {
				t.Errorf("cut at %d: %+v, was %+v", cut, after, scan)
			}
			if cut%1000 == 711 || cut == otf2.DefaultEventChunkSize+5 {
				referenceReads(t, anchor)
			}
		}
	}
}

// referenceReads has the reference tool, if it is there, read the whole archive without a warning.
func referenceReads(t *testing.T, anchor string) {
	t.Helper()
	t.Run("otf2-print", func(t *testing.T) { compareAll(t, anchor) })
}

// Malformed bytes inside an event file end it there; wrong numbers in headers are corrected.
func TestRecoverDamagedEvents(t *testing.T) {
	whole := wholeArchive(t, t.TempDir(), 9000)
	evt := func(anchor string) string { return filepath.Join(strings.TrimSuffix(anchor, ".otf2"), "0.evt") }
	edit := func(change func(b []byte)) (anchor string, res *otf2.RecoverResult) {
		anchor = copyArchive(t, whole)
		b, err := os.ReadFile(evt(anchor))
		ok(t, err)
		change(b)
		ok(t, os.WriteFile(evt(anchor), b, 0o644))
		return anchor, mustRecover(t, anchor)
	}
	total := eventsIn(t, whole)[0]

	anchor, res := edit(func(b []byte) { copy(b[50_000:], strings.Repeat("\x04", 300)) })
	if n := eventsIn(t, anchor)[0]; n == 0 || n >= total || file(t, res, evt(anchor)).Dropped == 0 {
		t.Errorf("%d of %d events\n%s", n, total, lines(res))
	}

	anchor, res = edit(func(b []byte) {
		binary.LittleEndian.PutUint64(b[10:], 7)
		binary.LittleEndian.PutUint64(b[otf2.DefaultEventChunkSize+2:], 8)
	})
	original, err := os.ReadFile(evt(whole))
	ok(t, err)
	b, err := os.ReadFile(evt(anchor))
	ok(t, err)
	if string(b) != string(original) || file(
		t, res, evt(anchor)).Detail != "event numbers corrected in 2 chunk headers" {
		t.Errorf("header numbers:\n%s", lines(res))
	}

	// A foreign file: not touched.
	anchor, res = edit(func(b []byte) { copy(b, "no chunk header") })
	f := file(t, res, evt(anchor))
	testkit.Check(t, f.Action == otf2.RecoverFailed && res.Failed(), "no header: %v", f)
	// Blocks that never reached the disk.
	anchor, res = edit(func(b []byte) { clear(b) })
	f = file(t, res, evt(anchor))
	testkit.Check(t, f.Action == otf2.RecoverRepaired && eventsIn(t, anchor)[0] == 0, "zeros: %v", f)
}

// Definitions that are cut off keep what is whole, and what is lost is said.
func TestRecoverCutDefinitions(t *testing.T) {
	whole := wholeArchive(t, t.TempDir(), 100)
	def := func(anchor string) string { return strings.TrimSuffix(anchor, ".otf2") + ".def" }
	b, err := os.ReadFile(def(whole))
	ok(t, err)
	a, err := otf2.Open(whole, nil)
	ok(t, err)
	seen := map[uint64]bool{}
	for cut := 0; cut < len(b); cut++ {
		anchor := copyArchive(t, whole)
		ok(t, os.Truncate(def(anchor), int64(cut)))
		var res *otf2.RecoverResult
		if cut%16 == 0 {
			res = mustRecover(t, anchor)
		} else {
			var err error
			res, err = otf2.Recover(anchor, nil)
			ok(t, err)
		}
		f := file(t, res, def(anchor))
		if f.Records == 0 {
			testkit.Require(t, f.Action == otf2.RecoverFailed, "cut at %d: %v", cut, f)
			continue
		}
		if cut == len(b)-1 {
			testkit.Check(t, !res.Changed(), "end mark without its second byte:\n%s", lines(res))
			continue
		}
		seen[f.Records] = true
		got, err := otf2.Open(anchor, nil)
		ok(t, err)
		n := uint64(len(got.Defs.Order))
		testkit.Require(t, n == f.Records && got.Anchor.GlobalDefs == n &&
			got.Anchor.Locations == uint64(len(got.Defs.Locations)) && slices.Equal(got.Defs.Order, a.Defs.Order[:n]),
			"cut at %d: %d definitions, anchor %+v", cut, n, got.Anchor)
		if lost := a.Anchor.GlobalDefs - f.Records; lost > 0 && !strings.Contains(lines(res), "global definitions") {
			t.Errorf("cut at %d: %d are lost\n%s", cut, lost, lines(res))
		}
		for _, err := range got.Events(nil) {
			ok(t, err)
		}
	}
	testkit.Check(t, len(seen) == int(a.Anchor.GlobalDefs),
		"%d different numbers of definitions, want %d", len(seen), a.Anchor.GlobalDefs)
}

// Without its definitions an archive is not made to look whole.
func TestRecoverWithoutDefinitions(t *testing.T) {
	anchor := wholeArchive(t, t.TempDir(), 100)
	ok(t, os.Remove(strings.TrimSuffix(anchor, ".otf2")+".def"))
	if res := mustRecover(t, anchor); !res.Failed() || !slices.Contains(res.Lost, "all global definitions") {
		t.Error(lines(res))
	}
	ok(t, os.Remove(anchor))
	if res := mustRecover(t, anchor); !res.Failed() || res.Changed() {
		t.Error(lines(res))
	}
	_, err := os.Stat(anchor)
	testkit.Check(t, errors.Is(err, fs.ErrNotExist), "anchor: %v", err)
}

// The archive of a killed ArchiveWriter: no anchor, definitions under a temporary name, and as far as they were
// written.
func TestRecoverKilledArchiveWriter(t *testing.T) {
	dir := t.TempDir()
	w, err := otf2.Create(dir, "killed", nil)
	ok(t, err)
	d := w.Definitions()
	ok(t, d.ClockProperties(1e9, 0, 1<<40, 0))
	ok(t, d.String(0, "thread"))
	ok(t, d.LocationGroup(0, 0, otf2.LocationGroupTypeProcess, otf2.UndefinedSystemTreeNode,
		otf2.UndefinedLocationGroup))
	for loc := range otf2.LocationRef(3) {
		ok(t, d.Location(loc, 0, otf2.LocationTypeCPUThread, 0, 0))
		e, err := w.Events(loc)
		ok(t, err)
		for i := range 1000 {
			ok(t, e.Enter(otf2.Timestamp(i), nil, 0))
		}
		ok(t, e.Flush())
	}
	for i := range 40_000 { // enough to be written behind
		ok(t, d.String(otf2.StringRef(1+i), "a region's name"))
	}
	res := mustRecover(t, dir)
	for loc, n := range eventsIn(t, filepath.Join(dir, "killed.otf2")) {
		testkit.Check(t, n == 1000, "location %d has %d events, want 1000", loc, n)
	}
	if f := file(t, res, filepath.Join(dir, "killed.def")); res.Failed() || f.Action != otf2.RecoverCreated ||
		f.Records < 10_000 || !strings.Contains(f.Detail, "had not finished") {
		t.Errorf("%d definitions\n%s", f.Records, lines(res))
	}
	w.Abort()
}

// An anchor is made anew from the files, with the chunk sizes that they have.
func TestRecoverAnchor(t *testing.T) {
	anchors, err := filepath.Glob("testdata/*/*.otf2")
	ok(t, err)
	for _, path := range anchors {
		want, err := otf2.ReadAnchor(path)
		ok(t, err)
		b, err := os.ReadFile(path)
		ok(t, err)
		for _, keep := range []int{-1, 0, 40, 46, len(b) - 4} {
			anchor := copyArchive(t, path)
			if keep < 0 {
				ok(t, os.Remove(anchor))
			} else {
				ok(t, os.Truncate(anchor, int64(keep)))
			}
			all := eventsIn(t, path)
			res := mustRecover(t, filepath.Dir(anchor))
			if res.Failed() {
				t.Fatalf("%s, %d bytes: %s", path, keep, lines(res))
			}
			got, err := otf2.ReadAnchor(anchor)
			ok(t, err)
			testkit.Check(t, got.Locations == want.Locations && got.GlobalDefs == want.GlobalDefs &&
				got.Thumbnails == want.Thumbnails && (got.Snapshots == 0) == (want.Snapshots == 0),
				"%s, %d bytes: %+v, want %+v", path, keep, got, want)
			testkit.Check(t, !strings.Contains(path, "multi-chunk") || got.EventChunkSize == want.EventChunkSize &&
				got.DefChunkSize == want.DefChunkSize, "%s: chunks of %d and %d bytes, want %d and %d", path,
				got.EventChunkSize, got.DefChunkSize, want.EventChunkSize, want.DefChunkSize)
			testkit.Check(t, keep != len(b)-4 || got.Creator == want.Creator && got.Description == want.Description &&
				len(got.Properties) == len(want.Properties) && got.EventChunkSize == want.EventChunkSize,
				"%s, %d bytes: %+v, want %+v", path, keep, got, want)
			after := eventsIn(t, anchor)
			for loc, n := range all {
				testkit.Check(t, after[loc] == n,
					"%s, %d bytes: location %d has %d events, want %d", path, keep, loc, after[loc], n)
			}
		}
	}
}

// Chunk sizes are taken from the files, also odd ones, and files that do not fit are not destroyed.
func TestRecoverChunkSizes(t *testing.T) {
	dir := t.TempDir()
	base := filepath.Join(dir, "t")
	ok(t, os.Mkdir(base, 0o755))
	const size = 262157
	write := func(path string, size uint64) {
		w, err := otf2.CreateEventWriter(path, &otf2.EventWriterOptions{ChunkSize: size})
		ok(t, err)
		for i := range 60_000 {
			ok(t, w.Enter(otf2.Timestamp(i), nil, 0))
		}
		ok(t, w.Close())
	}
	write(base+"/0.evt", size)
	write(base+"/1.evt", size)
	write(base+"/2.evt", 300_001)
	g, err := otf2.CreateGlobalDefWriter(base+".def", 0)
	ok(t, err)
	ok(t, g.ClockProperties(1, 0, 1<<20, 0))
	for i := range 3 {
		ok(t, g.Location(otf2.LocationRef(i), otf2.UndefinedString, otf2.LocationTypeCPUThread, 60_000, 0))
	}
	ok(t, g.Close())
	ok(t, os.Truncate(base+"/1.evt", size+1000))
	res := mustRecover(t, dir)
	a, err := otf2.ReadAnchor(base + ".otf2")
	ok(t, err)
	if a.EventChunkSize != size || file(t, res, base+"/0.evt").Action != otf2.RecoverWhole ||
		file(t, res, base+"/1.evt").Action != otf2.RecoverRepaired {
		t.Errorf("chunks of %d bytes\n%s", a.EventChunkSize, lines(res))
	}
	if f := file(t, res, base+"/2.evt"); f.Action != otf2.RecoverFailed || !strings.Contains(f.Detail, "300001") {
		t.Errorf("file with other chunks: %v", f)
	}
}

// Numbers of events in the definitions, in both byte orders, a missing event file, and local definitions.
func TestRecoverNumbersAndMissingFiles(t *testing.T) {
	for _, name := range []string{"attributes/attrs", "big-endian/attrs"} {
		anchor := copyArchive(t, "testdata/"+name+".otf2")
		base := strings.TrimSuffix(anchor, ".otf2")
		a, err := otf2.Open(anchor, nil)
		ok(t, err)
		loc := a.Defs.Locations[0]
		path := a.EventFile(loc.Self)
		info, err := os.Stat(path)
		ok(t, err)
		ok(t, os.Truncate(path, info.Size()-9))
		if res := mustRecover(t, anchor); res.Failed() || file(t, res, base+".def").Action != otf2.RecoverRepaired {
			t.Errorf("%s:\n%s", name, lines(res))
		}
		testkit.Equal(t, eventsIn(t, anchor)[loc.Self], loc.Events-1, "%s: events", name)
		ok(t, os.Remove(path))
		res := mustRecover(t, anchor)
		testkit.Check(t, !res.Failed() && file(t, res, path).Action == otf2.RecoverCreated, "%s:\n%s", name, lines(res))
		eventsIn(t, anchor)
		referenceReads(t, anchor)
	}
	anchor := copyArchive(t, "testdata/mapping/mapping.otf2")
	a, err := otf2.Open(anchor, nil)
	ok(t, err)
	path := strings.TrimSuffix(a.EventFile(0), ".evt") + ".def"
	before, _, err := a.LocalDefs(0)
	ok(t, err)
	ok(t, os.Truncate(path, 100))
	res := mustRecover(t, anchor)
	after, _, err := a.LocalDefs(4294967296)
	ok(t, err)
	testkit.Check(t, !res.Failed() && len(res.Lost) == 1 && len(after) != 0,
		"%d tables, then %d\n%s", len(before), len(after), lines(res))
}

// Where the originals are not wanted they go.
func TestRecoverWithoutOriginals(t *testing.T) {
	anchor := wholeArchive(t, t.TempDir(), 10)
	ok(t, os.Truncate(strings.TrimSuffix(anchor, ".otf2")+"/0.evt", 200))
	res, err := otf2.Recover(anchor, &otf2.RecoverOptions{DropOriginals: true})
	ok(t, err)
	if !res.Changed() || res.Failed() {
		t.Error(lines(res))
	}
	for path := range tree(t, filepath.Dir(anchor)) {
		testkit.Check(t, !strings.Contains(path, ".orig") && !strings.Contains(path, ".tmp"), "%s is left", path)
	}
	eventsIn(t, anchor)
}

// What cannot be recovered at all is said as an error.
func TestRecoverErrors(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text.txt")
	ok(t, os.WriteFile(text, nil, 0o644))
	for path, want := range map[string]error{
		filepath.Join(dir, "none"): fs.ErrNotExist, filepath.Join(dir, "none.otf2"): fs.ErrNotExist,
		dir: fs.ErrNotExist, text: otf2.ErrInvalid,
	} {
		_, err := otf2.Recover(path, nil)
		testkit.Check(t, errors.Is(err, want), "%s: %v, want %v", path, err, want)
	}
	anchor := wholeArchive(t, dir, 1)
	b, err := os.ReadFile(anchor)
	ok(t, err)
	b[29] = 2
	ok(t, os.WriteFile(anchor, b, 0o644))
	_, err = otf2.Recover(anchor, nil)
	testkit.Check(t, errors.Is(err, otf2.ErrNotSupported), "zlib: %v", err)
	wholeArchive(t, t.TempDir(), 1)
	ok(t, os.WriteFile(filepath.Join(dir, "second.otf2"), b, 0o644))
	_, err = otf2.Recover(dir, nil)
	testkit.Check(t, errors.Is(err, otf2.ErrInvalid), "two archives: %v", err)
}
