// SPDX-License-Identifier: Apache-2.0

package otf2

import (
	"path/filepath"
	"reflect"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// Pieces of a location become one: with the ids of the whole, times that do not go back, and what is said once said
// once.
func TestJoinEvents(t *testing.T) {
	dir := t.TempDir()
	piece := func(name string, chunk uint64, write func(w *EventWriter) error) EventPiece {
		path := filepath.Join(dir, name)
		w, err := CreateEventWriter(path, &EventWriterOptions{ChunkSize: chunk})
		if err == nil {
			err = write(w)
		}
		if err == nil {
			err = w.Close()
		}
		testkit.Must(t, err)
		return EventPiece{Path: path, ChunkSize: chunk}
	}
	first := piece("1", MinChunkSize, func(w *EventWriter) error {
		_ = w.CommCreate(10, nil, 0)
		_ = w.MeasurementOnOff(11, nil, MeasurementOff)
		_ = w.MpiIsend(12, nil, 1, 0, 0, 100, 1)
		_ = w.MpiIsendComplete(13, nil, 1)
		return w.Enter(20, nil, 0)
	})
	second := piece("2", 2*MinChunkSize, func(w *EventWriter) error {
		var a AttributeList
		a.String(0, 1)
		_ = w.CommCreate(18, nil, 0)
		_ = w.MeasurementOnOff(18, nil, MeasurementOff)
		_ = w.MeasurementOnOff(19, nil, MeasurementOn)
		_ = w.Enter(19, &a, 1)
		_ = w.MpiIsend(21, nil, 1, 0, 0, 100, 1)
		_ = w.MpiIsendComplete(22, nil, 1)
		return w.Leave(30, nil, 1)
	})
	second.Maps = []*MappingTable{nil, NewDenseMapping(MappingRegion, []uint64{5, 6}),
		NewDenseMapping(MappingString, []uint64{0, 7})}
	to := filepath.Join(dir, "both")
	n := testkit.Value(JoinEvents(to, MinChunkSize, []EventPiece{first, second}))(t)
	type event struct {
		Time Timestamp
		Kind EventKind
		Args []uint64
	}
	r := newEventReader(&fileSource{path: to, budget: newOpenFiles(1), size: -1}, MinChunkSize, maxWindow)
	defer r.close()
	var got []event
	for {
		ok := testkit.Value(r.next())(t)
		if !ok {
			break
		}
		e := r.event.Clone()
		got = append(got, event{e.Time, e.Kind, e.Args})
		testkit.Check(t, e.Kind != EventEnter || e.Args[0] != 6 || len(e.Attributes) == 1 && e.Attributes[0].Bits == 7,
			"attributes %+v", e.Attributes)
	}
	off, on := uint64(MeasurementOff), uint64(MeasurementOn)
	want := []event{
		{10, EventCommCreate, []uint64{0}}, {11, EventMeasurementOnOff, []uint64{off}},
		{12, EventMpiIsend, []uint64{1, 0, 0, 100, 1}},
		{13, EventMpiIsendComplete, []uint64{1}}, {20, EventEnter, []uint64{0}}, {20, EventLeave, []uint64{0}},
		{20, EventMeasurementOnOff, []uint64{on}}, {20, EventEnter, []uint64{6}},
		{21, EventMpiIsend, []uint64{1, 0, 0, 100, 2}},
		{22, EventMpiIsendComplete, []uint64{2}}, {30, EventLeave, []uint64{6}},
	}
	testkit.Check(t, reflect.DeepEqual(want, got) && n == uint64(len(want)), "%d events\n%v, want\n%v", n, got, want)
	_, err := JoinEvents(filepath.Join(dir, "none"), MinChunkSize,
		[]EventPiece{{Path: filepath.Join(dir, "missing"), ChunkSize: MinChunkSize}})
	testkit.Check(t, err != nil, "a missing piece was joined")
}
