// SPDX-License-Identifier: Apache-2.0

package otf2

import (
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// ofOurOrder lists the archives that our writers, which are little-endian, can make again byte by byte.
func ofOurOrder(t testing.TB) []string {
	t.Helper()
	return slices.DeleteFunc(fixtures(t), func(anchor string) bool { return strings.Contains(anchor, "big-endian") })
}

// Every event file of libotf2, read and written again, has the same bytes: lengths, chunk borders, stamps and
// event numbers included.
func TestEventFilesRoundTrip(t *testing.T) {
	files := 0
	for _, anchorPath := range ofOurOrder(t) {
		anchor := testkit.Value(ReadAnchor(anchorPath))(t)
		paths, _ := filepath.Glob(strings.TrimSuffix(anchorPath, ".otf2") + "/*.evt")
		for _, path := range paths {
			files++
			events := testkit.Value(readEvents(path, anchor.EventChunkSize))(t)
			w := NewMemoryEventWriter(&EventWriterOptions{ChunkSize: anchor.EventChunkSize})
			for _, e := range events {
				testkit.Must(t, w.Write(e.Kind, e.Time, attributeList(e.Attributes), e.Args))
			}
			testkit.Must(t, w.Close())
			equalBytes(t, path, w.Bytes(), testkit.Read(t, path))
			testkit.Check(t, w.Events() == uint64(len(events)) && w.Size() == int64(len(w.Bytes())),
				"%s: counts %d events in %d bytes", path, w.Events(), w.Size())
		}
	}
	testkit.Check(t, files >= 60, "only %d event files", files)
}

// Every definition file of libotf2, read in generic form and written again, has the same bytes.
func TestDefinitionFilesRoundTrip(t *testing.T) {
	for _, anchorPath := range ofOurOrder(t) {
		anchor := testkit.Value(ReadAnchor(anchorPath))(t)
		path := strings.TrimSuffix(anchorPath, ".otf2") + ".def"
		out := filepath.Join(t.TempDir(), "g.def")
		w := testkit.Value(CreateGlobalDefWriter(out, anchor.DefChunkSize))(t)
		for _, r := range recordsOf(t, path, anchor.DefChunkSize, &globalDefTable) {
			testkit.Must(t, w.Write(&r))
		}
		testkit.Check(t, w.Count() == anchor.GlobalDefs,
			"%s: %d records, the anchor says %d", path, w.Count(), anchor.GlobalDefs)
		testkit.Must(t, w.Close())
		equalBytes(t, path, testkit.Read(t, out), testkit.Read(t, path))
	}
}

// The same through the typed definitions and the methods of the writer: what the types hold is all there is, and
// superseded fields are derived as libotf2 does.
func TestTypedDefinitionsRoundTrip(t *testing.T) {
	for _, anchorPath := range ofOurOrder(t) {
		a := testkit.Value(Open(anchorPath, nil))(t)
		path := a.archiveFile(".def")
		out := filepath.Join(t.TempDir(), "g.def")
		w := testkit.Value(CreateGlobalDefWriter(out, a.Anchor.DefChunkSize))(t)
		writeTyped(t, w, a.Defs)
		testkit.Must(t, w.Close())
		equalBytes(t, path, testkit.Read(t, out), testkit.Read(t, path))
	}
}

// writeTyped writes typed definitions with the writer's methods, found by name; parameters are the struct's
// fields in their order.
func writeTyped(t testing.TB, w *GlobalDefWriter, defs *Definitions) {
	t.Helper()
	all := reflect.ValueOf(defs).Elem()
	var index [256]int
	for _, kind := range defs.Order {
		var v reflect.Value
		if kind == DefClockProperties {
			v = reflect.ValueOf(defs.Clock)
		} else {
			v = all.FieldByName(pluralOf(kind.String())).Index(index[kind])
		}
		index[kind]++
		args := make([]reflect.Value, v.NumField())
		for i := range args {
			args[i] = v.Field(i)
		}
		method := reflect.ValueOf(w).MethodByName(kind.String())
		err, _ := method.Call(args)[0].Interface().(error)
		testkit.Require(t, err == nil, "%v: %v", kind, err)
	}
}

func pluralOf(name string) string {
	switch {
	case strings.HasSuffix(name, "y"):
		return strings.TrimSuffix(name, "y") + "ies"
	case strings.HasSuffix(name, "ss"):
		return name + "es"
	}
	return name + "s"
}

// Local definition files, mapping tables and clock offsets by the writer, all other records in generic form.
func TestLocalDefinitionFilesRoundTrip(t *testing.T) {
	tables := 0
	for _, anchorPath := range ofOurOrder(t) {
		a := testkit.Value(Open(anchorPath, nil))(t)
		for _, loc := range a.Defs.Locations {
			path := a.locationFile(loc.Self, ".def")
			out := filepath.Join(t.TempDir(), "l.def")
			if strings.Contains(anchorPath, "all-defs") {
				w := testkit.Value(createRecordFile(out, a.Anchor.DefChunkSize, 0))(t)
				for _, r := range recordsOf(t, path, a.Anchor.DefChunkSize, &localDefTable) {
					testkit.Must(t, w.writeRecord(&localDefTable[r.ID], &r))
				}
				testkit.Must(t, w.finish())
				equalBytes(t, path, testkit.Read(t, out), testkit.Read(t, path))
				continue
			}
			maps, clocks, err := a.LocalDefs(loc.Self)
			testkit.Must(t, err)
			var list []*MappingTable
			for i := range maps {
				list = append(list, &maps[i])
			}
			tables += len(list)
			testkit.Must(t, WriteLocalDefs(out, list, clocks, a.Anchor.DefChunkSize))
			equalBytes(t, path, testkit.Read(t, out), testkit.Read(t, path))
		}
	}
	testkit.Check(t, tables >= 50, "only %d mapping tables", tables)
}

// Anchors and markers.
func TestAnchorsAndMarkersRoundTrip(t *testing.T) {
	for _, anchorPath := range ofOurOrder(t) {
		a := testkit.Value(ReadAnchor(anchorPath))(t)
		out := filepath.Join(t.TempDir(), "a.otf2")
		testkit.Must(t, WriteAnchor(out, a))
		equalBytes(t, anchorPath, testkit.Read(t, out), testkit.Read(t, anchorPath))
	}
	path := "testdata/aux-files/aux.marker"
	out := filepath.Join(t.TempDir(), "a.marker")
	w := testkit.Value(CreateMarkerWriter(out, 0))(t)
	records := recordsOf(t, path, DefaultDefChunkSize, &markerTable)
	for _, r := range records {
		switch r.ID {
		case markerDef:
			testkit.Must(t, w.DefMarker(MarkerRef(r.Args[0]), r.Texts[0], r.Texts[1], MarkerSeverity(r.Args[1])))
		case markerMarker:
			testkit.Must(t, w.Marker(Timestamp(r.Args[0]), r.Args[1], MarkerRef(r.Args[2]), MarkerScope(r.Args[3]),
				r.Args[4], r.Texts[0]))
		}
	}
	testkit.Must(t, w.Close())
	testkit.Equal(t, len(records), 10, "marker records")
	equalBytes(t, path, testkit.Read(t, out), testkit.Read(t, path))
}

// The big-endian archive reads as the little-endian one of the same content.
func TestBigEndian(t *testing.T) {
	big := testkit.Value(Open("testdata/big-endian/attrs.otf2", nil))(t)
	little := testkit.Value(Open("testdata/attributes/attrs.otf2", nil))(t)
	testkit.Check(t, reflect.DeepEqual(big.Defs, little.Defs), "definitions differ")
	collect := func(a *Archive) (list []Event) {
		for e, err := range a.Events(nil) {
			testkit.Must(t, err)
			list = append(list, e.Clone())
		}
		return list
	}
	a, b := collect(big), collect(little)
	testkit.Check(t, reflect.DeepEqual(a, b) && len(a) == 10, "events differ, or are not 10: %d and %d", len(a), len(b))
}

// Snapshot and thumbnail files of libotf2, read and written again, have the same bytes.
func TestSnapshotsAndThumbnailsRoundTrip(t *testing.T) {
	a := testkit.Value(Open("testdata/aux-files/aux.otf2", nil))(t)
	for _, loc := range []LocationRef{0, 1} {
		out := filepath.Join(t.TempDir(), "0.snap")
		w := testkit.Value(CreateSnapshotWriter(out, a.Anchor.EventChunkSize))(t)
		for s, err := range a.SnapshotsOf(loc) {
			testkit.Must(t, err)
			// Not by Write, because their starts announce other numbers of records than there are.
			testkit.Must(t, w.file.write(&snapshotTable[s.Kind], uint8(s.Kind), s.Time, attributeList(s.Attributes),
				s.Args))
		}
		testkit.Must(t, w.Close())
		path := a.locationFile(loc, ".snap")
		equalBytes(t, path, testkit.Read(t, out), testkit.Read(t, path))
	}
	for i := range a.Anchor.Thumbnails {
		thumbnail := testkit.Value(a.Thumbnail(i))(t)
		out := filepath.Join(t.TempDir(), "0.thumb")
		testkit.Must(t, WriteThumbnail(out, thumbnail))
		path := a.archiveFile("." + strconv.Itoa(int(i)) + ".thumb")
		equalBytes(t, path, testkit.Read(t, out), testkit.Read(t, path))
	}
	testkit.Equal(t, a.Anchor.Thumbnails, 3, "thumbnails")
}
