// SPDX-License-Identifier: Apache-2.0

package otf2_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/internal/need"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/otf2/otf2print"
)

// wholeArchive writes an archive with every kind of file, most of it by an ArchiveWriter.
func wholeArchive(t testing.TB, dir string, calls int) string {
	t.Helper()
	a := testkit.Value(otf2.Create(dir, "whole", &otf2.ArchiveOptions{
		EventChunkSize: otf2.MinChunkSize, MachineName: "m", Creator: "test", Description: "whole archive",
		Properties: []otf2.Property{{Name: "SAMPLE::KIND", Value: "whole"}},
	}))(t)
	d := a.Definitions()
	testkit.Must(t, d.ClockProperties(1e9, 0, 1<<40, 1_700_000_000_000_000_000))
	for i, s := range []string{"", "machine", "node", "rank 0", "rank 1", "thread", "call", "SEQ", "ALGO", "ring",
		"world"} {
		testkit.Must(t, d.String(otf2.StringRef(i), s))
	}
	testkit.Must(t, d.Attribute(0, 7, otf2.TypeUint64, 0))
	testkit.Must(t, d.Attribute(1, 8, otf2.TypeString, 0))
	testkit.Must(t, d.SystemTreeNode(0, 1, 1, otf2.UndefinedSystemTreeNode))
	testkit.Must(t, d.SystemTreeNode(1, 2, 2, 0))
	locations := []otf2.LocationRef{0, 7, 1 << 32} // the second one has no events
	for i, loc := range locations {
		testkit.Must(t, d.LocationGroup(otf2.LocationGroupRef(i), otf2.StringRef(3+i%2), otf2.LocationGroupTypeProcess,
			1, otf2.UndefinedLocationGroup))
		testkit.Must(t, d.Location(loc, 5, otf2.LocationTypeCPUThread, 0, otf2.LocationGroupRef(i)))
	}
	testkit.Must(t, d.Region(0, 6, 6, 0, otf2.RegionRoleCollAll2All, otf2.ParadigmMPI, 0, otf2.UndefinedString, 0, 0))
	testkit.Must(t, d.Group(0, 0, otf2.GroupTypeCommLocations, otf2.ParadigmMPI, 0, []uint64{0, 1 << 32}))
	testkit.Must(t, d.Group(1, 0, otf2.GroupTypeCommGroup, otf2.ParadigmMPI, 0, []uint64{0, 1}))
	testkit.Must(t, d.Comm(0, 10, 1, otf2.UndefinedComm, 0))
	testkit.Must(t, d.MetricMember(0, 7, 0, otf2.MetricTypeOther, otf2.MetricAbsolutePoint, otf2.TypeUint64,
		otf2.BaseDecimal, 0, 0))
	testkit.Must(t, d.MetricClass(0, []otf2.MetricMemberRef{0}, otf2.MetricAsynchronous, otf2.RecorderKindAbstract))
	testkit.Must(t, d.Parameter(0, 7, otf2.ParameterTypeString))
	testkit.Must(t, d.Parameter(1, 7, otf2.ParameterTypeInt64))
	testkit.Must(t, d.Parameter(2, 7, otf2.ParameterTypeUint64))

	for _, loc := range []otf2.LocationRef{0, 1 << 32} {
		w := testkit.Value(a.Events(loc))(t)
		again, err := a.Events(loc)
		if testkit.Must(t, err); again != w {
			t.Fatal("second writer for a location")
		}
		region := otf2.RegionRef(0)
		if loc == 0 {
			region = 99
		}
		var list otf2.AttributeList
		for i := range calls {
			at := otf2.Timestamp(1000 + 100*i)
			list.Reset()
			list.Uint64(0, uint64(i))
			list.String(1, 9)
			testkit.Must(t, w.Enter(at, &list, region))
			testkit.Must(t, w.MpiCollectiveBegin(at+10, nil))
			testkit.Must(t, w.MpiCollectiveEnd(at+50, nil, otf2.CollectiveOpAllreduce, 0, otf2.CollectiveRootNone, 4096,
				4096))
			testkit.Must(t, w.Leave(at+60, nil, region))
		}
		if loc != 0 {
			testkit.Must(t, w.Close()) // closed early, as a program with many locations does
		}
	}

	testkit.Must(t, a.Close())
	err := a.Close()
	testkit.Check(t, errors.Is(err, otf2.ErrClosed), "second Close: %v", err)
	addParts(t, a.Path(), locations)
	return a.Path()
}

// addParts adds the kinds of files to an archive that an ArchiveWriter does not write.
func addParts(t testing.TB, anchor string, locations []otf2.LocationRef) {
	t.Helper()
	base := strings.TrimSuffix(anchor, ".otf2")
	testkit.Must(t, otf2.WriteLocalDefs(filepath.Join(base, "0.def"),
		[]*otf2.MappingTable{otf2.NewSparseMapping(otf2.MappingRegion, map[uint64]uint64{99: 0})},
		[]otf2.ClockOffset{{Time: 1000, Offset: 5}, {Time: 2000, Offset: 6}}, 0))

	for _, loc := range locations[1:] {
		empty := testkit.Value(otf2.CreateSnapshotWriter(filepath.Join(base, fmt.Sprintf("%d.snap", loc)),
			otf2.MinChunkSize))(t)
		testkit.Must(t, empty.Close())
	}
	s := testkit.Value(otf2.CreateSnapshotWriter(filepath.Join(base, "0.snap"), otf2.MinChunkSize))(t)
	at := otf2.Timestamp(5000)
	var list otf2.AttributeList
	list.Uint64(0, 3)
	testkit.Must(t, s.SnapshotStart(at, nil, 18))
	testkit.Must(t, s.MeasurementOnOff(at, nil, 10, otf2.MeasurementOff))
	testkit.Must(t, s.Enter(at, &list, 20, 0))
	testkit.Must(t, s.MpiSend(at, nil, 30, 1, 0, 7, 1<<20))
	testkit.Must(t, s.MpiIsend(at, nil, 40, 1, 0, 8, 1<<20, 55))
	testkit.Must(t, s.MpiIsendComplete(at, nil, 50, 55))
	testkit.Must(t, s.MpiRecv(at, nil, 60, 1, 0, 7, 1<<20))
	testkit.Must(t, s.MpiIrecvRequest(at, nil, 70, 56))
	testkit.Must(t, s.MpiIrecv(at, nil, 80, 1, 0, 8, 1<<20, 56))
	testkit.Must(t, s.MpiCollectiveBegin(at, nil, 90))
	testkit.Must(t, s.MpiCollectiveEnd(at, nil, 100, otf2.CollectiveOpBcast, 0, 1, 8, 9))
	testkit.Must(t, s.OmpFork(at, nil, 110, 4))
	testkit.Must(t, s.OmpAcquireLock(at, nil, 120, 1, 2))
	testkit.Must(t, s.OmpTaskCreate(at, nil, 130, 5))
	testkit.Must(t, s.OmpTaskSwitch(at, nil, 140, 5))
	testkit.Must(t, s.Metric(at, nil, 150, 0, []otf2.Type{otf2.TypeUint64}, []uint64{77}))
	testkit.Must(t, s.ParameterString(at, nil, 160, 0, 9))
	testkit.Must(t, s.ParameterInt(at, nil, 170, 1, -5))
	testkit.Must(t, s.ParameterUnsignedInt(at, nil, 180, 2, 1<<40))
	testkit.Must(t, s.SnapshotEnd(at, nil, 3))

	testkit.Must(t, s.Close())

	m := testkit.Value(otf2.CreateMarkerWriter(base+".marker", 0))(t)
	testkit.Must(t, m.DefMarker(0, "NCCL", "loss", otf2.MarkerSeverityHigh))
	testkit.Must(t, m.Marker(1500, 10, 0, otf2.MarkerScopeGlobal, 1<<64-1, "3 events lost"))
	testkit.Must(t, m.Close())
	testkit.Must(t, otf2.WriteThumbnail(base+".0.thumb", &otf2.Thumbnail{Name: "calls", Description: "per region",
		Type: otf2.ThumbnailTypeRegion, Refs: []uint64{0},
		Samples: []otf2.ThumbnailSample{{Baseline: 1, Values: []uint64{5}}, {Baseline: 2, Values: []uint64{1 << 33}}}}))

	head := testkit.Value(otf2.ReadAnchor(anchor))(t)
	head.Snapshots, head.Thumbnails = 1, 1
	testkit.Must(t, otf2.WriteAnchor(anchor, head))
}

// An archive of an ArchiveWriter has all its parts with right counts, and the reference tools read it without a
// warning, snapshots included.
func TestWholeArchive(t *testing.T) {
	const calls = 9000 // several chunks
	anchor := wholeArchive(t, t.TempDir(), calls)
	a := testkit.Value(otf2.Open(anchor, nil))(t)
	for i, want := range []uint64{4 * calls, 0, 4 * calls} {
		testkit.Equal(t, a.Defs.Locations[i].Events, want, "location %d is defined with", a.Defs.Locations[i].Self)
	}
	h := a.Anchor
	testkit.Check(t, h.Locations == 3 && h.GlobalDefs == uint64(len(a.Defs.Order)) && h.Snapshots == 1 &&
		h.Thumbnails == 1 && h.TraceID != 0, "anchor %+v", h)
	events := 0
	for e, err := range a.Events(nil) {
		testkit.Must(t, err)
		if e.Kind == otf2.EventEnter && e.Enter().Region != 0 {
			t.Fatalf("region %d, want 0 after mapping", e.Enter().Region)
		}
		events++
	}
	testkit.Equal(t, events, 8*calls, "events")
	thumbnail := testkit.Value(a.Thumbnail(0))(t)
	testkit.Check(t, len(thumbnail.Samples) == 2 && thumbnail.Declared == 2 &&
		thumbnail.Samples[1].Values[0] == 1<<33 && thumbnail.Name == "calls", "thumbnail %+v", thumbnail)
	kinds := map[otf2.SnapshotKind]bool{}
	for s, err := range a.SnapshotsOf(0) {
		testkit.Must(t, err)
		kinds[s.Kind] = true
	}
	testkit.Check(t, len(kinds) == 20, "%d kinds of snapshot records, want all 20", len(kinds))

	compareAll(t, anchor)
	var b bytes.Buffer
	testkit.Must(t, otf2print.Markers(&b, a, nil))
	golden.SameLines(t, "markers", b.String(), output(t, need.Reference(t, "otf2-marker"), anchor))
}

// The Python bindings, which are strict about references, read it to the end.
func TestPythonReadsWholeArchive(t *testing.T) {
	got := readByPython(t, wholeArchive(t, t.TempDir(), 10))
	want := "80 40 3 1 [('Enter', 20), ('Leave', 20), ('MpiCollectiveBegin', 20), ('MpiCollectiveEnd', 20)]\n"
	testkit.Equal(t, got, want, "read")
}

// Archives that cannot be begun or completed.
func TestRefusedArchiveWriters(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		name string
		opts otf2.ArchiveOptions
		want error
	}{
		{"a", otf2.ArchiveOptions{EventChunkSize: otf2.MinChunkSize - 1}, otf2.ErrInvalid},
		{"a", otf2.ArchiveOptions{DefChunkSize: otf2.MaxChunkSize + 1}, otf2.ErrInvalid},
		{"a", otf2.ArchiveOptions{Properties: []otf2.Property{{Name: "one"}}}, otf2.ErrInvalid},
		{"a/b", otf2.ArchiveOptions{}, otf2.ErrInvalid},
		{"", otf2.ArchiveOptions{}, otf2.ErrInvalid},
		{".", otf2.ArchiveOptions{}, fs.ErrExist},
	} {
		a, err := otf2.Create(dir, c.name, &c.opts)
		testkit.Check(t, a == nil && errors.Is(err, c.want), "%q %+v: %v, want %v", c.name, c.opts, err, c.want)
	}
	var size *otf2.ChunkSizeError
	_, err := otf2.Create(dir, "a", &otf2.ArchiveOptions{EventChunkSize: 5})
	testkit.Check(t, errors.As(err, &size) && size.Size == 5, "chunk size 5: %v", err)
	left, _ := os.ReadDir(dir)
	testkit.Check(t, len(left) == 0, "left behind: %v", left)
	a, err := otf2.Create(dir, "a", nil)
	testkit.Must(t, err)
	if _, err := otf2.Create(dir, "a", nil); !errors.Is(err, fs.ErrExist) {
		t.Errorf("second archive of a name: %v", err)
	}
	w := testkit.Value(a.Events(3))(t)
	testkit.Must(t, w.Enter(1, nil, 0))
	if _, err := a.Events(otf2.UndefinedLocation); !errors.Is(err, otf2.ErrInvalid) {
		t.Errorf("events of the undefined location: %v", err)
	}
	err = a.Close()
	testkit.Check(t, errors.Is(err, otf2.ErrInvalid) &&
		strings.Contains(err.Error(), "location 3 has files but no definition"),
		"Close without definition: %v", err)
	_, err = os.Stat(a.Path())
	testkit.Check(t, errors.Is(err, fs.ErrNotExist), "anchor of an archive that is not complete: %v", err)
	_, err = a.Events(0)
	testkit.Check(t, errors.Is(err, otf2.ErrClosed), "Events after Close: %v", err)

	// A region left open does not cost the archive.
	b := testkit.Value(otf2.Create(dir, "b", nil))(t)
	testkit.Must(t, b.Definitions().Location(0, 0, 0, 0, 0))
	err = b.Definitions().Location(0, 0, 0, 0, 0)
	testkit.Check(t, errors.Is(err, otf2.ErrInvalid), "location defined twice: %v", err)
	w = testkit.Value(b.Events(0))(t)
	testkit.Must(t, w.Enter(1, nil, 0))
	testkit.Must(t, b.Close())
	_, err = otf2.Open(b.Path(), nil)
	testkit.Check(t, err == nil, "archive with an open region: %v", err)

	c := testkit.Value(otf2.Create(dir, "c", nil))(t)
	c.Abort()
	_, err = os.Stat(filepath.Join(dir, "c.def"))
	testkit.Check(t, errors.Is(err, fs.ErrNotExist), "definitions of an aborted archive: %v", err)
}

// Snapshots are refused if what frames them is wrong; every typed method writes the fields it is given.
func TestSnapshotWriter(t *testing.T) {
	dir := t.TempDir()
	testkit.Must(t, os.Mkdir(filepath.Join(dir, "a"), 0o755))
	s := testkit.Value(otf2.CreateSnapshotWriter(filepath.Join(dir, "a", "0.snap"), 0))(t)
	refuse := func(what string, err error) {
		t.Helper()
		testkit.Check(t, errors.Is(err, otf2.ErrInvalid), "%s: %v, want ErrInvalid", what, err)
	}
	refuse("record outside", s.Enter(1, nil, 0, 0))
	refuse("end outside", s.SnapshotEnd(1, nil, 1))
	testkit.Must(t, s.SnapshotStart(5, nil, 2))
	refuse("start within", s.SnapshotStart(5, nil, 0))
	testkit.Must(t, s.Enter(5, nil, 1, 2))
	refuse("early end", s.SnapshotEnd(5, nil, 1))
	refuse("going back in time", s.Enter(4, nil, 1, 2))
	testkit.Must(t, s.Enter(5, nil, 1, 3))
	refuse("record too many", s.Enter(5, nil, 1, 4))
	refuse("unknown kind", s.Write(99, 5, nil, nil))
	testkit.Must(t, s.SnapshotEnd(5, nil, 1))

	var want [][]uint64
	kinds := []otf2.SnapshotKind{}
	for k := otf2.SnapshotMeasurementOnOff; k.Known(); k++ {
		kinds = append(kinds, k)
	}
	testkit.Must(t, s.SnapshotStart(6, nil, uint64(len(kinds))))
	for _, k := range kinds {
		method := reflect.ValueOf(s).MethodByName(k.String())
		in := []reflect.Value{reflect.ValueOf(otf2.Timestamp(6)), reflect.Zero(method.Type().In(1))}
		var args []uint64
		for i := 2; i < method.Type().NumIn(); i++ {
			typ := method.Type().In(i)
			if typ.Kind() == reflect.Slice {
				args = append(args, 1, 4, 99) // Metric: one member
				in = append(in, reflect.ValueOf([]otf2.Type{4}), reflect.ValueOf([]uint64{99}))
				break
			}
			args = append(args, uint64(10*i+1))
			in = append(in, reflect.ValueOf(10*i+1).Convert(typ))
		}
		want = append(want, args)
		err := method.Call(in)[0].Interface()
		testkit.Check(t, err == nil, "%v: %v", k, err)
	}
	testkit.Must(t, s.SnapshotEnd(6, nil, 9))
	testkit.Must(t, s.Close())
	testkit.Equal(t, s.Snapshots(), 2, "snapshots")
	d := testkit.Value(otf2.CreateGlobalDefWriter(filepath.Join(dir, "a.def"), 0))(t)
	testkit.Must(t, d.Close())
	testkit.Must(t, otf2.WriteAnchor(filepath.Join(dir, "a.otf2"), &otf2.Anchor{Snapshots: 2}))
	a := testkit.Value(otf2.Open(filepath.Join(dir, "a.otf2"), nil))(t)
	n := 0
	for r, err := range a.SnapshotsOf(0) {
		testkit.Must(t, err)
		if r.Time != 6 || r.Kind == otf2.SnapshotStart || r.Kind == otf2.SnapshotEnd {
			continue
		}
		testkit.Check(t, r.Kind == kinds[n] && reflect.DeepEqual(append([]uint64(nil), r.Args...), want[n]),
			"%v %v, want %v %v", r.Kind, r.Args, kinds[n], want[n])
		n++
	}
	testkit.Equal(t, n, 18, "records")
}
