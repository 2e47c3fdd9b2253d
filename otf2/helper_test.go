// SPDX-License-Identifier: Apache-2.0

package otf2

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// fixtures lists the anchors of the archives that libotf2 wrote.
func fixtures(t testing.TB) []string {
	t.Helper()
	list, err := filepath.Glob("testdata/*/*.otf2")
	testkit.Require(t, err == nil && len(list) == 11, "%d archives in testdata, want 11 (%v)", len(list), err)
	return list
}

// tempFile writes b to a file.
func tempFile(t testing.TB, b []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "0.evt")
	testkit.Must(t, os.WriteFile(path, b, 0o644))
	return path
}

// readEvents reads all events of a file as they stand in it.
func readEvents(path string, chunk uint64) ([]Event, error) {
	return drain(&fileSource{path: path, budget: newOpenFiles(1), size: -1}, chunk)
}

// inMemory is a source whose file lies in memory.
func inMemory(b []byte) *fileSource {
	return &fileSource{path: "memory", budget: newOpenFiles(1), file: memoryReader{bytes.NewReader(b)},
		size: int64(len(b))}
}

type memoryReader struct{ *bytes.Reader }

func (memoryReader) Close() error { return nil }

func drain(src *fileSource, chunk uint64) ([]Event, error) {
	r := newEventReader(src, chunk, minWindow)
	defer r.close()
	var events []Event
	for {
		ok, err := r.next()
		if !ok {
			return events, err
		}
		events = append(events, r.event.Clone())
	}
}

// attributeList makes a list to write from attributes that were read.
func attributeList(attributes []AttributeValue) *AttributeList {
	var a AttributeList
	for _, v := range attributes {
		a.Add(v.ID, v.Type, v.Value())
	}
	return &a
}

// recordsOf reads a file without time stamps in generic form.
func recordsOf(t testing.TB, path string, chunk uint64, table *recordTable) []Record {
	t.Helper()
	var list []Record
	testkit.Must(t, readRecords(path, UndefinedLocation, chunk, table, func(id uint8, d *fieldDecoder) error {
		list = append(list, genericRecord(table, id, d))
		return nil
	}))
	return list
}

// genericRecord decodes a record by the table.
func genericRecord(table *recordTable, id uint8, d *fieldDecoder) Record {
	r := Record{ID: id}
	fields := table[id].Fields
	var previous, typ uint64
	one := func(f *Field) {
		var v uint64
		switch f.Encoding {
		case EncodingString:
			r.Texts = append(r.Texts, d.str())
			return
		case EncodingU8:
			v = uint64(d.u8())
		case EncodingC32:
			v = uint64(d.c32())
		case EncodingS64:
			v = uint64(d.s64())
		case EncodingF64, EncodingDouble:
			v = d.f64()
		case EncodingValue:
			v = uint64(d.value(Type(typ)))
		default:
			v = d.c64()
		}
		if f.Type == "Type" {
			typ = v
		}
		if !f.Repeated {
			previous = v
		}
		r.Args = append(r.Args, v)
	}
	for i := 0; i < len(fields); i++ {
		if fields[i].Encoding == EncodingIDMap {
			for d.hasField() { // count, mode, numbers: all that follows is compressed but the mode
				if len(r.Args) == 2 {
					r.Args = append(r.Args, uint64(d.u8()))
				} else {
					r.Args = append(r.Args, d.c64())
				}
			}
			break
		}
		if !fields[i].Repeated {
			if fields[i].Since == 0 || d.hasField() {
				one(&fields[i])
			}
			continue
		}
		n := i
		for n < len(fields) && fields[n].Repeated {
			n++
		}
		for range previous {
			for j := i; j < n; j++ {
				one(&fields[j])
			}
		}
		i = n - 1
	}
	return r
}
