// SPDX-License-Identifier: Apache-2.0

package cube

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

type fataler interface {
	Helper()
	Fatal(...any)
}

func check(t fataler, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// fixtures lists the profiles of other writers.
func fixtures(t testing.TB) []string {
	t.Helper()
	list, err := filepath.Glob("testdata/*.cubex")
	list = slices.DeleteFunc(list, func(path string) bool { return path == "testdata/sample.cubex" })
	testkit.Require(t, err == nil && len(list) == 9, "%d profiles of others in testdata, want 9 (%v)", len(list), err)
	return list
}

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	check(t, err)
	return b
}

func open(t testing.TB, path string) *Profile {
	t.Helper()
	p, err := Open(path)
	check(t, err)
	t.Cleanup(func() { check(t, p.Close()) })
	return p
}

// memory is a file in memory.
type memory struct{ data []byte }

func (m *memory) Write(p []byte) (int, error) {
	m.data = append(m.data, p...)
	return len(p), nil
}

func (m *memory) WriteAt(p []byte, off int64) (int, error) { return copy(m.data[off:], p), nil }

func inMemory(b []byte) (*Profile, error) { return Read(bytes.NewReader(b), int64(len(b))) }

// values are set in rows: bits of numbers at [metric][cnode][location].
type values map[MetricID][][]uint64

// setBits sets a value by its bits, through the method for its type.
func setBits(row *Row, l LocationID, bits uint64) {
	switch n := (Number{row.layout.parts[0].number, bits}); n.kind {
	case numberFloat:
		row.SetFloat64(l, n.Float64())
	case numberSigned:
		row.SetInt64(l, int64(bits))
	default:
		row.SetUint64(l, bits)
	}
}

// written is the profile of definitions and values.
func written(d *Definitions, v values, o *Options) ([]byte, error) {
	var m memory
	w, err := newWriter(&m, d, o)
	if err != nil {
		return nil, err
	}
	for id := range d.Metrics {
		rows := v[MetricID(id)]
		if rows == nil {
			continue
		}
		err := w.WriteMetric(MetricID(id), func(c CnodeID, row *Row) error {
			for l, bits := range rows[c] {
				setBits(row, LocationID(l), bits)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	err = w.Close()
	return m.data, err
}

// stored reads all stored values back.
func stored(p *Profile) (values, error) {
	v := make(values)
	var row Row
	for id := range p.Metrics {
		l, known := p.Metrics[id].Type.layout()
		if m := &p.Metrics[id]; m.Kind.Derived() || !known || len(l.parts) != 1 {
			continue
		}
		rows := make([][]uint64, len(p.Cnodes))
		for c := range rows {
			if _, err := p.Row(MetricID(id), CnodeID(c), &row); err != nil {
				return nil, err
			}
			for l := range p.Locations {
				rows[c] = append(rows[c], row.At(LocationID(l)).Bits())
			}
		}
		v[MetricID(id)] = rows
	}
	return v, nil
}
