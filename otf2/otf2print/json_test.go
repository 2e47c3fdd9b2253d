// SPDX-License-Identifier: Apache-2.0

package otf2print_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/otf2/otf2print"
)

func allJSON(t *testing.T, a *otf2.Archive, opts *otf2print.Options) string {
	t.Helper()
	var b bytes.Buffer
	j := otf2print.NewJSON(&b, a, opts)
	testkit.Must(t, errors.Join(j.Anchor(), j.Thumbnails(), j.Definitions(), j.LocalDefs(), j.Events(), j.Snapshots(),
		j.Markers()))
	return b.String()
}

// The form is kept: what scripts rely on does not change unnoticed.
func TestJSONForm(t *testing.T) {
	for _, name := range []string{"collectives/nccl", "aux-files/aux", "v32-events/ev32"} {
		a, err := otf2.Open("../testdata/"+name+".otf2", nil)
		testkit.Must(t, err)
		got := allJSON(t, a, nil)
		golden.Text(t, filepath.Join("testdata", filepath.Base(name)+".jsonl"), got)
	}
}

// Every line is JSON; there is one for each record, with all its fields, and numbers and names are those of the
// records.
func TestJSONHasEverything(t *testing.T) {
	anchors, err := filepath.Glob("../testdata/*/*.otf2")
	testkit.Must(t, err)
	for _, path := range anchors {
		a, err := otf2.Open(path, nil)
		testkit.Must(t, err)
		var events []otf2.Event
		for e, err := range a.Events(nil) {
			testkit.Must(t, err)
			events = append(events, e.Clone())
		}
		definitions, next := 0, 0
		for line := range strings.Lines(allJSON(t, a, nil)) {
			var v struct {
				Record, Kind string
				Location     struct{ ID *uint64 }
				Time         uint64
				Fields       map[string]json.RawMessage
				Attributes   []struct {
					ID    uint64
					Type  string
					Value json.RawMessage
				}
			}
			if err := json.Unmarshal([]byte(line), &v); err != nil {
				t.Fatalf("%s: %v in %s", path, err, line)
			}
			switch v.Record {
			case "definition":
				if k := a.Defs.Order[definitions]; v.Kind != k.String() || len(v.Fields) < 2 {
					t.Fatalf("%s: definition %d is %v: %s", path, definitions, k, line)
				}
				definitions++
			case "event":
				e := &events[next]
				next++
				if *v.Location.ID != uint64(e.Location) || v.Time != uint64(e.Time) || v.Kind != e.Kind.String() ||
					len(v.Attributes) != len(e.Attributes) {
					t.Fatalf("%s: %v is %s", path, e, line)
				}
				for i, a := range v.Attributes {
					if a.ID != uint64(e.Attributes[i].ID) || a.Type != e.Attributes[i].Type.String() ||
						len(a.Value) == 0 {
						t.Fatalf("%s: attribute %+v is %v", path, e.Attributes[i], a)
					}
				}
				for i, f := range e.Kind.Fields() {
					if f.Repeated {
						break
					}
					raw := v.Fields[f.Name]
					var number uint64
					var ref struct{ ID, Rank *uint64 }
					switch {
					case raw == nil:
						t.Fatalf("%s: no field %s in %s", path, f.Name, line)
					case json.Unmarshal(raw, &number) == nil && number != e.Args[i] && string(raw) != "null",
						json.Unmarshal(raw, &ref) == nil && ref.ID != nil && *ref.ID != e.Args[i],
						json.Unmarshal(raw, &ref) == nil && ref.Rank != nil && *ref.Rank != e.Args[i]:
						t.Fatalf("%s: field %s of %v is %s", path, f.Name, e, raw)
					}
				}
			}
		}
		if definitions != len(a.Defs.Order) || next != len(events) {
			t.Errorf("%s: %d of %d definitions, %d of %d events", path, definitions, len(a.Defs.Order), next,
				len(events))
		}
	}
}

// Values that JSON has no form for, undefined ones, and what the definitions lack.
func TestJSONOddValues(t *testing.T) {
	dir := t.TempDir()
	base := filepath.Join(dir, "odd")
	testkit.Must(t, os.Mkdir(base, 0o755))
	d, err := otf2.CreateGlobalDefWriter(base+".def", 0)
	testkit.Must(t, err)
	testkit.Must(t, d.ClockProperties(1, 1000, 1, 1<<64-1))
	testkit.Must(t, d.String(0, "a \"b\"\n\xff\u2028"))
	testkit.Must(t, d.Attribute(0, 0, otf2.TypeDouble, otf2.UndefinedString))
	testkit.Must(t, d.Location(0, otf2.UndefinedString, otf2.LocationType(77), 3, otf2.UndefinedLocationGroup))
	testkit.Must(t, d.Close())
	w, err := otf2.CreateEventWriter(base+"/0.evt", nil)
	testkit.Must(t, err)
	var a otf2.AttributeList
	a.Double(0, math.Inf(-1))
	a.Double(1, math.NaN())
	a.Add(otf2.UndefinedAttribute, otf2.Type(99), 1<<64-1)
	testkit.Must(t, w.Enter(900, &a, 5))
	testkit.Must(t, w.IoSeek(1000, nil, otf2.UndefinedIoHandle, -3, otf2.IoSeekOption(200), 1<<63))
	testkit.Must(t, w.IoCreateHandle(1001, nil, 1, 0, 1|1<<20, 0))
	testkit.Must(t, w.Close())
	testkit.Must(t, otf2.WriteAnchor(base+".otf2", &otf2.Anchor{Locations: 1, GlobalDefs: 4, TraceID: 1}))
	archive, err := otf2.Open(base+".otf2", nil)
	testkit.Must(t, err)
	got := allJSON(t, archive, &otf2print.Options{Relative: true})
	for _, want := range []string{
		`"realtime":null`, `{"self":0,"text":"a \"b\"\n\ufffd\u2028"}`, `"type":77,"events":3,"group":null`,
		`"location":{"id":0},"time":-100,"kind":"Enter","fields":{"region":{"id":5,"invalid":true}},"attributes":[{"id":0,"name":"a \"b\"\n\ufffd\u2028","type":"DOUBLE","value":"-inf"},` +
			`{"id":1,"invalid":true,"type":"DOUBLE","value":"nan"},{"id":null,"type":99,"value":18446744073709551615}]`,
		`"time":0,"kind":"IoSeek","fields":{"handle":null,"offsetRequest":-3,"whence":200,"offsetResult":9223372036854775808}`,
		`"creationFlags":["CREATE",1048576],"statusFlags":[]`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
}
