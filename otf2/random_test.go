// SPDX-License-Identifier: Apache-2.0

package otf2_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/nccl-otf2/nccl-otf2/internal/need"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// randomRuns is the number of random archives of a test; OTF2_RANDOM_RUNS asks for more.
func randomRuns(t *testing.T, usual int) string {
	t.Helper()
	s := os.Getenv("OTF2_RANDOM_RUNS")
	if s == "" {
		return strconv.Itoa(usual)
	}
	_, err := strconv.ParseUint(s, 10, 31)
	testkit.Require(t, err == nil, "OTF2_RANDOM_RUNS=%q is no number", s)
	return s
}

// checkRandom runs a property on a bounded number of random archives.
func checkRandom(t *testing.T, usual int, property func(t *rapid.T)) {
	t.Helper()
	old := flag.Lookup("rapid.checks").Value.String()
	ok(t, flag.Set("rapid.checks", randomRuns(t, usual)))
	defer func() { ok(t, flag.Set("rapid.checks", old)) }()
	rapid.Check(t, property)
}

// anyShape draws what an archive is like: mostly few locations, at times 200, at times files of several chunks.
func anyShape(t *rapid.T) shape {
	s := shape{
		Seed:            rapid.Uint64().Draw(t, "seed"),
		Locations:       rapid.IntRange(1, 6).Draw(t, "locations"),
		Events:          rapid.IntRange(0, 800).Draw(t, "events"),
		EventChunk:      rapid.Uint64Range(otf2.MinChunkSize, 2*otf2.MinChunkSize).Draw(t, "eventChunk"),
		DefChunk:        rapid.SampledFrom([]uint64{otf2.MinChunkSize, 300_001, otf2.MaxChunkSize}).Draw(t, "defChunk"),
		SparseLocations: rapid.Bool().Draw(t, "sparse"),
		Mapped:          rapid.Bool().Draw(t, "mapped"),
		Clocks:          rapid.Bool().Draw(t, "clocks"),
		InterComms:      rapid.Bool().Draw(t, "interComms"),
		Snapshots:       max(0, rapid.IntRange(-3, 4).Draw(t, "snapshots")),
	}
	switch rapid.SampledFrom([]string{"small", "small", "many locations", "long"}).Draw(t, "size") {
	case "many locations":
		s.Locations = rapid.IntRange(30, 200).Draw(t, "manyLocations")
		s.Events /= 10
	case "long":
		s.Long = rapid.IntRange(20_000, 40_000).Draw(t, "long")
	}
	return s
}

// write makes the archive in a folder of its own, which is removed when the property has been checked.
func writeShape(t *testing.T, rt *rapid.T, s shape) string {
	dir, err := os.MkdirTemp(t.TempDir(), "random")
	ok(t, err)
	rt.Cleanup(func() { os.RemoveAll(dir) })
	rt.Logf("%+v in %s", s, dir)
	return s.write(t, dir)
}

// A random archive is printed as the reference prints it, in all forms that both have, and the reference has no
// warning for it.
func TestRandomArchivesReadTheSame(t *testing.T) {
	need.Reference(t, "otf2-print")
	kinds := map[string]bool{}
	checkRandom(t, 6, func(rt *rapid.T) {
		anchor := writeShape(t, rt, anyShape(rt))
		compareAll(t, anchor)
		a, err := otf2.Open(anchor, nil)
		ok(t, err)
		for _, k := range a.Defs.Order {
			kinds[k.String()] = true
		}
		for e, err := range a.Events(nil) {
			ok(t, err)
			kinds["event "+e.Kind.String()] = true
		}
	})
	for id := range 256 {
		k := otf2.EventKind(id)
		testkit.Check(t, !k.Known() || k.Since() > 0x0300 || kinds["event "+k.String()], "no event %v was tried", k)
		if k := otf2.DefKind(id); k.Known() && k != otf2.DefInterComm && k != otf2.DefIoPreCreatedHandleState &&
			!kinds[k.String()] {
			t.Errorf("no definition %v was tried", k)
		}
	}
}

// The Python bindings, which refuse what is not defined or of another type than defined, read random archives to
// the end. Communicators between groups are left out: version 3.0 of the bindings fails on any.
func TestRandomArchivesInPython(t *testing.T) {
	checkRandom(t, 2, func(rt *rapid.T) {
		s := anyShape(rt)
		s.InterComms, s.Long = false, min(s.Long, 5000) // the bindings read some ten thousand events a second
		anchor := writeShape(t, rt, s)
		a, err := otf2.Open(anchor, nil)
		ok(t, err)
		events, attributes := 0, 0
		for e, err := range a.Events(nil) {
			ok(t, err)
			events++
			attributes += len(e.Attributes)
		}
		got := readByPython(t, anchor)
		want := fmt.Sprintf("%d %d %d %d ", events, attributes, len(a.Defs.Locations), len(a.Defs.Regions))
		testkit.Require(t, strings.HasPrefix(got, want), "%+v: read %s, want %s", s, got, want)
	})
}

// Cut anywhere, and without its anchor, a random archive is recovered, and what is left is read in the same way by the
// reference.
func TestRandomArchivesRecovered(t *testing.T) {
	need.Reference(t, "otf2-print")
	checkRandom(t, 4, func(rt *rapid.T) {
		s := anyShape(rt)
		anchor := writeShape(t, rt, s)
		files, err := filepath.Glob(strings.TrimSuffix(anchor, ".otf2") + "/*.evt")
		ok(t, err)
		want := map[string]uint64{}
		for i, path := range files {
			info, err := os.Stat(path)
			ok(t, err)
			if i < 20 && rapid.Bool().Draw(rt, "cut") {
				ok(t, os.Truncate(path, int64(rapid.IntRange(0, int(info.Size())).Draw(rt, "at"))))
			}
			scan, err := otf2.ScanEventFile(path, s.EventChunk)
			ok(t, err)
			want[path] = scan.Events
		}
		if s.Long > 0 && rapid.Bool().Draw(rt, "anchor") && want[files[0]] > 0 {
			ok(t, os.Remove(anchor))
		}
		res := mustRecover(t, anchor)
		if res.Failed() {
			t.Fatal(lines(res))
		}
		got := eventsIn(t, anchor)
		for path, n := range want {
			loc, err := strconv.ParseUint(strings.TrimSuffix(filepath.Base(path), ".evt"), 10, 64)
			ok(t, err)
			if got[otf2.LocationRef(loc)] != n {
				t.Fatalf("%s: %d events, want %d\n%s", path, got[otf2.LocationRef(loc)], n, lines(res))
			}
		}
		if !regexp.MustCompile(`(?m)^lost: $`).MatchString(lines(res)) &&
			!strings.Contains(lines(res), "lost: anchor: ") {
			t.Fatal(lines(res))
		}
		compareAll(t, anchor)
	})
}
