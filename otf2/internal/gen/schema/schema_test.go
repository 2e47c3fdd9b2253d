// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// The tables are consistent with themselves and with what the format fixes.
func TestTables(t *testing.T) {
	enumNames := map[string]bool{}
	for _, e := range Enums() {
		enumNames[e.Name] = true
		seen := map[uint64]string{}
		for _, v := range e.Values {
			old, ok := seen[v.Value]
			testkit.Check(t, !ok, "%s: %s and %s are both %d", e.Name, old, v.Name, v.Value)
			seen[v.Value] = v.Name
			testkit.Check(t, v.Value < 1<<e.Bits, "%s: %s = %d does not fit %d bits", e.Name, v.Name, v.Value, e.Bits)
		}
	}
	encodings := map[string]bool{"u8": true, "c32": true, "c64": true, "s64": true, "f64": true, "dbl": true,
		"str": true, "val": true, "idmap": true}
	for name, table := range map[string][]Record{
		"events": Events(), "global": GlobalOnly(), "local": LocalOnly(), "definitions": Definitions(),
		"snapshots": Snapshots(), "markers": Markers(), "thumbnails": Thumbnails(),
	} {
		for i, r := range table {
			before := table[max(i, 1)-1].ID
			testkit.Check(t, i == 0 || r.ID > before, "%s: %s has id %d after %d", name, r.Name, r.ID, before)
			testkit.Check(t, !r.NoLength || len(r.Fields) == 1,
				"%s: %s has no length field but %d fields", name, r.Name, len(r.Fields))
			appended := false
			for k, f := range r.Fields {
				testkit.Check(t, encodings[f.Encoding], "%s: %s.%s: encoding %q", name, r.Name, f.Name, f.Encoding)
				if strings.Contains(f.Type, "/") || f.Type != "" && !enumNames[f.Type] &&
					!strings.HasSuffix(f.Type, "Ref") && f.Type != "Timestamp" && f.Type != "Value" {
					t.Errorf("%s: %s.%s: type %q is no enumeration, reference, time or value", name, r.Name, f.Name,
						f.Type)
				}
				if f.Repeated && (k == 0 || !r.Fields[k-1].Repeated &&
					!strings.HasPrefix(r.Fields[k-1].Name, "numberOf")) {
					t.Errorf("%s: %s.%s is repeated without a count before it", name, r.Name, f.Name)
				}
				testkit.Check(t, !appended || f.Since != "",
					"%s: %s.%s stands behind an appended field", name, r.Name, f.Name)
				appended = f.Since != ""
				testkit.Check(t, f.Encoding != "val" || r.Fields[k-1].Type == "Type",
					"%s: %s.%s has no type before it", name, r.Name, f.Name)
				testkit.Check(t, f.Space == "" || hasValue("MappingType", f.Space),
					"%s: %s.%s: no id space %s", name, r.Name, f.Name, f.Space)
			}
		}
	}
	var short []uint8
	for _, r := range Events() {
		if r.NoLength {
			short = append(short, r.ID)
		}
	}
	want := []uint8{12, 13, 16, 17, 20, 21, 24, 28, 29, 30}
	testkit.Check(t, string(short) == string(want), "events without length field: %v, want %v", short, want)
	if first, last := Events()[0].ID, Events()[len(Events())-1].ID; first != 10 || last != 92 || len(Events()) != 83 {
		t.Errorf("%d events from %d to %d, want all of 10 to 92", len(Events()), first, last)
	}
}

// Every record has its meaning, and no meaning is left over.
func TestMeanings(t *testing.T) {
	for name, c := range map[string]struct {
		meanings map[string]string
		records  []Record
	}{"events": {EventMeanings, Events()}, "definitions": {DefinitionMeanings,
		append(append([]Record(nil), GlobalOnly()...), Definitions()...)}} {
		for _, r := range c.records {
			testkit.Check(t, c.meanings[r.Name] != "", "%s: %s has no meaning", name, r.Name)
		}
		testkit.Check(t, len(c.meanings) == len(c.records),
			"%s: %d meanings for %d records", name, len(c.meanings), len(c.records))
	}
}

func hasValue(enum, name string) bool {
	for _, e := range Enums() {
		for _, v := range e.Values {
			if e.Name == enum && v.Name == name {
				return true
			}
		}
	}
	return false
}
