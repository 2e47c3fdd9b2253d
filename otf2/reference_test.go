// SPDX-License-Identifier: Apache-2.0

package otf2_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/internal/need"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/otf2/otf2print"
)

// output runs a reference tool, bounded in time because it may loop on broken files, and returns its output.
func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "TZ=UTC")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil || stderr.Len() > 0 {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, stderr.Bytes())
	}
	return string(out)
}

func text(t *testing.T, write func(*bytes.Buffer) error) string {
	t.Helper()
	var b bytes.Buffer
	b.WriteString(otf2print.Title)
	testkit.Must(t, write(&b))
	return b.String()
}

// compareAll compares all that both tools print of an archive, and the reference must not warn.
func compareAll(t *testing.T, anchor string) {
	t.Helper()
	need.Reference(t, "otf2-print")
	a := testkit.Value(otf2.Open(anchor, nil))(t)
	for _, c := range []struct {
		args   []string
		opts   otf2print.Options
		events bool
	}{
		{nil, otf2print.Options{}, true},
		{[]string{"--timestamps=offset", "--unwind-calling-context"}, otf2print.Options{Relative: true, Unwind: true},
			true},
		{[]string{"-G"}, otf2print.Options{}, false},
		{[]string{"-I"}, otf2print.Options{}, false},
		{[]string{"-M", "-C"}, otf2print.Options{}, false},
	} {
		c.opts.Zone = time.UTC
		got := text(t, func(b *bytes.Buffer) error {
			switch {
			case c.events && a.Anchor.Snapshots > 0:
				return errors.Join(otf2print.Events(b, a, &c.opts), otf2print.Snapshots(b, a, &c.opts))
			case c.events:
				return otf2print.Events(b, a, &c.opts)
			case c.args[0] == "-G":
				return otf2print.Definitions(b, a, &c.opts)
			case c.args[0] == "-I":
				return otf2print.Anchor(b, a, nil)
			}
			return otf2print.LocalDefs(b, a, &c.opts)
		})
		golden.SameLines(t, strings.Join(c.args, " "), got,
			output(t, "otf2-print", append(append([]string{"-Werror"}, c.args...), anchor)...))
	}
}

// An archive that we write is read by otf2-print without a warning, and both print the same of it; otf2-marker reads
// its markers.
func TestReferenceToolReadsOurArchive(t *testing.T) {
	anchor := sampleArchive(t, t.TempDir(), 12_000) // several chunks
	compareAll(t, anchor)
	a := testkit.Value(otf2.Open(anchor, nil))(t)
	var b bytes.Buffer
	testkit.Must(t, otf2print.Markers(&b, a, nil))
	golden.SameLines(t, "markers", b.String(), output(t, need.Reference(t, "otf2-marker"), anchor))
}

// readByPython lets the reference bindings read an archive to its end, definitions included, and gives what they met.
func readByPython(t *testing.T, anchor string) string {
	t.Helper()
	return output(t, need.Python(t), "-c", pythonReader, anchor)
}

const pythonReader = `
import sys, otf2
with otf2.reader.open(sys.argv[1]) as trace:
    n, attributes, kinds = 0, 0, {}
    for location, event in trace.events:
        n += 1
        kinds[type(event).__name__] = kinds.get(type(event).__name__, 0) + 1
        if event.attributes:
            attributes += len(event.attributes)
    print(n, attributes, len(trace.definitions.locations), len(trace.definitions.regions), sorted(kinds.items()))
`

// The Python bindings, which are strict about references, read it to the end.
func TestPythonReadsOurArchive(t *testing.T) {
	const calls = 3000
	got := readByPython(t, sampleArchive(t, t.TempDir(), calls))
	want := fmt.Sprintf(
		"%d %d 2 1 [('Enter', %d), ('Leave', %[3]d), ('MpiCollectiveBegin', %[3]d), ('MpiCollectiveEnd', %[3]d)]\n",
		8*calls, 4*calls, 2*calls)
	testkit.Equal(t, got, want, "read")
}

// Random events of all kinds that libotf2 3.0 knows, with attributes of all types and sparse and dense tables, are
// printed in the same way: every number, name and correction is read as the reference reads it.
func TestReferenceToolReadsRandomEvents(t *testing.T) {
	need.Reference(t, "otf2-print")
	const seed = 4
	r := rand.New(rand.NewPCG(seed, seed))
	dir := t.TempDir()
	base := filepath.Join(dir, "events")
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ok(os.Mkdir(base, 0o755))
	defs, err := os.ReadFile("testdata/all-events/events.def")
	ok(err)
	ok(os.WriteFile(base+".def", defs, 0o644))
	old, err := otf2.ReadAnchor("testdata/all-events/events.otf2")
	ok(err)
	ok(otf2.WriteAnchor(base+".otf2", &otf2.Anchor{Locations: old.Locations, GlobalDefs: old.GlobalDefs, TraceID: 7}))
	number := func() uint64 {
		if r.IntN(3) > 0 {
			return r.Uint64N(3)
		}
		return r.Uint64() >> r.IntN(64)
	}
	for loc := range 2 {
		path := filepath.Join(base, fmt.Sprint(loc))
		w, err := otf2.CreateEventWriter(path+".evt", nil)
		ok(err)
		at := otf2.Timestamp(r.IntN(5))
		for range 20_000 {
			kind := otf2.EventKind(10 + r.IntN(79))
			var args []uint64
			for _, f := range kind.Fields() {
				if f.Repeated {
					break
				}
				v := number()
				switch f.Encoding {
				case otf2.EncodingU8:
					v = uint64(uint8(v))
					if f.Type == "Paradigm" && otf2.Paradigm(v) == otf2.ParadigmOpenMPTarget {
						v = 0 // 3.0 does not know this one
					}
				case otf2.EncodingC32:
					v = uint64(uint32(v))
				}
				args = append(args, v)
			}
			at += otf2.Timestamp(r.IntN(7))
			switch kind {
			case otf2.EventBufferFlush:
				// libotf2 corrects what follows by the interval of the last time it saw, this one included; a stop
				// time in a later interval than the events behind it shifts those there, and not here.
				args[0] = uint64(at)
			case otf2.EventMetric:
				args[1] = uint64(r.IntN(60))
				for range args[1] {
					v := r.Uint64()
					typ := []otf2.Type{otf2.TypeUint64, otf2.TypeInt64, otf2.TypeDouble, otf2.TypeNone}[r.IntN(4)]
					args = append(args, uint64(typ), v)
				}
			case otf2.EventProgramBegin:
				args[1] = uint64(r.IntN(80))
				for range args[1] {
					args = append(args, r.Uint64N(4))
				}
			}
			var a otf2.AttributeList
			if r.IntN(4) == 0 {
				for id := range r.IntN(25) {
					typ := otf2.Type(id)
					v := number()
					switch typ {
					case otf2.TypeUint8:
						v = uint64(uint8(v))
					case otf2.TypeUint16:
						v = uint64(uint16(v))
					case otf2.TypeInt8:
						v = uint64(int8(v))
					case otf2.TypeInt16:
						v = uint64(int16(v))
					case otf2.TypeInt32:
						v = uint64(int32(v))
					case otf2.TypeNone, otf2.TypeUint64, otf2.TypeInt64, otf2.TypeDouble, otf2.TypeLocation:
					default:
						v = uint64(uint32(v))
					}
					a.Add(otf2.AttributeRef(id), typ, otf2.Value(v))
				}
			}
			ok(w.Write(kind, at, &a, args))
			if r.IntN(500) == 0 {
				ok(w.Flush())
			}
		}
		ok(w.Close())
		var maps []*otf2.MappingTable
		for space := otf2.MappingString; loc == 1 && space <= otf2.MappingLocationGroup; space++ {
			ids := []uint64{1, 0, 2}
			if space%3 == 0 {
				ids = []uint64{0, 1, 2, 3, 1, 5, 6, 7}
			}
			maps = append(maps, otf2.OptimalMapping(space, ids))
		}
		ok(otf2.WriteLocalDefs(path+".def", maps, []otf2.ClockOffset{
			{Time: 100, Offset: 1000, StdDev: 1e-3}, {Time: 5000, Offset: 1100 + int64(loc), StdDev: 0.25},
			{Time: 20_000, Offset: -500, StdDev: 1e9},
		}[:3-loc], 0))
	}
	compareAll(t, base+".otf2")
}
