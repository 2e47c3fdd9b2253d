// SPDX-License-Identifier: Apache-2.0

package otf2

import (
	"maps"
	"math"
	"math/big"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// Mapping: optimal tables map as the list they were made from, whatever their form.
func TestMappings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 50).Draw(t, "n")
		global := make([]uint64, n)
		moved := 0
		for i := range global {
			global[i] = uint64(i)
			if rapid.IntRange(0, 3).Draw(t, "move") == 0 {
				global[i] = anyUint64().Draw(t, "id")
			}
			if global[i] != uint64(i) {
				moved++
			}
		}
		m := OptimalMapping(MappingRegion, global)
		for i, want := range global {
			got := m.Map(uint64(i))
			testkit.Require(t, got == want, "%v maps %d to %d, want %d", m, i, got, want)
		}
		for _, id := range []uint64{uint64(n), uint64(n) + 1, 1 << 40} {
			got := m.Map(id)
			testkit.Require(t, got == id, "%v maps %d, which it lacks, to %d", m, id, got)
		}
		switch {
		case m == nil && moved > 0, m != nil && moved == 0:
			t.Fatalf("%d ids move, table %v", moved, m)
		case m != nil && (m.Local != nil) != (2*moved < n):
			t.Fatalf("%d of %d ids move, table is %v", moved, n, m)
		case m == nil:
			return
		}
		d := fieldDecoder{buf: m.append([]byte{byte(m.Type)})}
		back, err := readMapping(&d)
		testkit.Require(t, err == nil && slices.Equal(back.Global, m.Global) && slices.Equal(back.Local, m.Local),
			"table %v read back as %v, %v", m, back, err)
	})
	unsorted := &MappingTable{Type: MappingComm, Local: []uint64{5, 1, 3}, Global: []uint64{50, 10, 30}}
	d := fieldDecoder{buf: unsorted.append([]byte{byte(MappingComm)})}
	m := testkit.Value(readMapping(&d))(t)
	testkit.Check(t, m.Map(1) == 10 && m.Map(3) == 30 && m.Map(5) == 50 && m.Map(2) == 2,
		"unsorted table read as %v", m)
}

// Clock correction against exact arithmetic: the rounded interpolation differs by less than the precision of the
// product, and offsets hold exactly at their times.
func TestClockCorrection(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 6).Draw(t, "offsets")
		var offsets []ClockOffset
		at := rapid.Uint64Range(1<<20, 1<<60).Draw(t, "start")
		for range n {
			offsets = append(offsets, ClockOffset{Time: Timestamp(at),
				Offset: rapid.Int64Range(-1<<19, 1<<30).Draw(t, "offset")})
			at += rapid.Uint64Range(1<<20, 1<<40).Draw(t, "gap")
		}
		c := newClockCorrection(offsets, 0)
		for i, o := range offsets {
			k := c.locate(uint64(o.Time), 0)
			testkit.Require(t, (i <= 0 || k == i-1) && (i != 0 || k == 0), "offset %d lies in interval %d", i, k)
			if i == 0 {
				got := c.intervals[k].apply(uint64(o.Time))
				testkit.Require(t, got == uint64(o.Time)+uint64(o.Offset), "at the first offset %v: %d", o, got)
			}
		}
		x := rapid.Uint64Range(uint64(offsets[0].Time)-1<<20, at+1<<30).Draw(t, "time")
		k := c.locate(x, 0)
		testkit.Require(t, (x <= uint64(offsets[k+1].Time) || k >= n-2) && (k <= 0 || x > uint64(offsets[k].Time)),
			"%d lies in interval %d of %v", x, k, offsets)
		a, b := offsets[k], offsets[k+1]
		slope := new(big.Rat).SetFrac(big.NewInt(b.Offset-a.Offset), big.NewInt(int64(b.Time-a.Time)))
		exact, _ := slope.Mul(slope, new(big.Rat).SetInt64(int64(x-uint64(a.Time)))).Float64()
		got := int64(c.intervals[k].apply(x) - x - uint64(a.Offset))
		testkit.Require(t, math.Abs(float64(got)-exact) <= 0.5+math.Abs(exact)*0x1p-50,
			"%d in %v: %d, want %g", x, offsets, got, exact)
	})
	testkit.Check(t, newClockCorrection([]ClockOffset{{Time: 1, Offset: 5}}, 0) == nil, "a single offset has an effect")
}

// Ids of every space, attribute ids and values, and times change when read, unless Raw.
func TestRaw(t *testing.T) {
	w := NewMemoryEventWriter(nil)
	var a AttributeList
	a.String(0, 1)
	a.Location(1, 2)
	a.Uint32(2, 1)
	testkit.Must(t, w.MpiCollectiveEnd(100, &a, 0, 1, 1, 1, 1))
	testkit.Must(t, w.BufferFlush(150, nil, 200))
	testkit.Must(t, w.Close())
	dir := t.TempDir()
	path := filepath.Join(dir, "l.def")
	testkit.Must(t, WriteLocalDefs(path, []*MappingTable{
		NewDenseMapping(MappingComm, []uint64{0, 1<<64 - 1}), NewDenseMapping(MappingString, []uint64{0, 7}),
		NewDenseMapping(MappingAttribute, []uint64{10, 11, 12}),
		NewSparseMapping(MappingLocation, map[uint64]uint64{2: 1 << 40}),
	}, []ClockOffset{{Time: 100, Offset: 1000}, {Time: 200, Offset: 1100}}, 0))
	anchor := archiveOf(t, map[LocationRef][]byte{4: w.Bytes()}, map[LocationRef][]byte{4: testkit.Read(t, path)})
	for _, raw := range []bool{false, true} {
		arc := testkit.Value(Open(anchor, &ReadOptions{Raw: raw}))(t)
		var got []Event
		for e, err := range arc.EventsOf(4) {
			testkit.Must(t, err)
			got = append(got, e.Clone())
		}
		times := []Timestamp{1100, 1200, 1300}
		comm, ids, values := uint64(UndefinedComm), []AttributeRef{10, 11, 12}, []uint64{7, 1 << 40, 1}
		if raw {
			times, comm, ids, values = []Timestamp{100, 150, 200}, 1, []AttributeRef{0, 1, 2}, []uint64{1, 2, 1}
		}
		testkit.Check(t, len(got) == 2 && got[0].Time == times[0] && got[1].Time == times[1] &&
			Timestamp(got[1].Args[0]) == times[2], "raw %v: events %+v, want times %v", raw, got, times)
		testkit.Check(t, got[0].Args[1] == comm && got[0].Args[2] == 1, "raw %v: arguments %v", raw, got[0].Args)
		for i, v := range got[0].Attributes {
			testkit.Check(t, v.ID == ids[i] && v.Bits == values[i], "raw %v: attribute %d is %+v, want %d: %d", raw, i,
				v, ids[i], values[i])
		}
	}
}

// Ticks become nanoseconds everywhere: of events with and without corrections, of the fields that are times, of
// markers, and of what the archive says of its clock.
func TestNanoseconds(t *testing.T) {
	dir := t.TempDir()
	w := testkit.Value(Create(dir, "traces", nil))(t)
	_ = w.Definitions().ClockProperties(2_500_000_000, 10_000, 30_001, 77)
	_ = w.Definitions().String(0, "")
	_ = w.Definitions().SystemTreeNode(0, 0, 0, UndefinedSystemTreeNode)
	_ = w.Definitions().LocationGroup(0, 0, LocationGroupTypeProcess, 0, UndefinedLocationGroup)
	offsets := []ClockOffset{{Time: 10_000, Offset: 0}, {Time: 20_000, Offset: 10_000}}
	for l := range LocationRef(2) {
		_ = w.Definitions().Location(l, 0, LocationTypeCPUThread, 3, 0)
		e := testkit.Value(w.Events(l))(t)
		testkit.Must(t, e.Enter(10_000, nil, 0))
		testkit.Must(t, e.BufferFlush(15_001, nil, 17_503))
		testkit.Must(t, e.Leave(20_000, nil, 0))
	}
	testkit.Must(t, w.Close())
	base := filepath.Join(dir, "traces")
	testkit.Must(t, WriteLocalDefs(filepath.Join(base, "1.def"), nil, offsets, 0))
	m := testkit.Value(CreateMarkerWriter(base+".marker", 0))(t)
	_ = m.DefMarker(0, "g", "c", MarkerSeverityLow)
	_ = m.Marker(12_502, 2_500, 0, MarkerScopeGlobal, 1<<64-1, "")
	testkit.Must(t, m.Close())
	for _, raw := range []bool{false, true} {
		a := testkit.Value(Open(filepath.Join(dir, "traces.otf2"), &ReadOptions{Nanoseconds: true, Raw: raw}))(t)
		want := [][]uint64{{4000, 6000, 7001, 8000}, {4000, 8000, 10002, 12000}}
		clock := ClockProperties{Resolution: 1e9, Offset: 4000, Length: 12000, Realtime: 77}
		if raw {
			want = [][]uint64{{10_000, 15_001, 17_503, 20_000}, {10_000, 15_001, 17_503, 20_000}}
			clock = ClockProperties{Resolution: 2_500_000_000, Offset: 10_000, Length: 30_001, Realtime: 77}
		}
		for l := range want {
			var got []uint64
			for e, err := range a.EventsOf(LocationRef(l)) {
				testkit.Must(t, err)
				got = append(got, uint64(e.Time))
				if e.Kind == EventBufferFlush {
					got = append(got, e.Args[0])
				}
			}
			testkit.Check(t, slices.Equal(got, want[l]), "location %d, raw %v: %v, want %v", l, raw, got, want[l])
		}
		testkit.Equal(t, a.Defs.Clock, clock, "raw %v", raw)
		_, markers, err := a.Markers()
		testkit.Check(t, err == nil && (raw || markers[0].Time == 5000 && markers[0].Duration == 1000), "%+v, %v",
			markers, err)
	}
	testkit.Equal(t, nanoseconds(1<<63, 3), 1<<64-1, "beyond all times")
}

// NewSparseMapping returns a table of the given pairs.
func NewSparseMapping(t MappingType, pairs map[uint64]uint64) *MappingTable {
	m := &MappingTable{Type: t, Local: slices.Sorted(maps.Keys(pairs)), Global: make([]uint64, 0, len(pairs))}
	for _, local := range m.Local {
		m.Global = append(m.Global, pairs[local])
	}
	return m
}
