// SPDX-License-Identifier: Apache-2.0

package cube

import (
	"math"
	"strconv"
	"strings"
)

// DataType is the type of a metric's values, as the format spells it. Types of several numbers are read, but not
// written: cube_info and cube_sanity abort on profiles that have one.
type DataType string

// Types of values. Sums are made in the type itself, so that those of the small ones overflow: count in 64 bits.
const (
	Double    DataType = "DOUBLE"
	Uint64    DataType = "UINT64"
	Int64     DataType = "INT64"
	Uint32    DataType = "UINT32"
	Int32     DataType = "INT32"
	Uint16    DataType = "UINT16"
	Int16     DataType = "INT16"
	Uint8     DataType = "UINT8"
	Int8      DataType = "INT8"
	MinDouble DataType = "MINDOUBLE" // aggregated as the minimum; no value is the largest double
	MaxDouble DataType = "MAXDOUBLE" // aggregated as the maximum; no value is the least double

	TauAtomic DataType = "TAU_ATOMIC" // count, minimum, maximum, sum, sum of squares
	Complex   DataType = "COMPLEX"    // real and imaginary part
	Rate      DataType = "RATE"       // numerator, denominator
)

// part is a number in a value.
type part struct {
	size   int // bytes
	number numberKind
	absent uint64 // bits of the number where no value is stored
}

type numberKind uint8

const (
	numberFloat numberKind = iota
	numberUnsigned
	numberSigned
)

var (
	partDouble  = part{8, numberFloat, 0}
	partMinimum = part{8, numberFloat, math.Float64bits(math.MaxFloat64)}
	partMaximum = part{8, numberFloat, math.Float64bits(-math.MaxFloat64)}
	partCount   = part{4, numberUnsigned, 0}
)

// layout is how a value lies in a row: its numbers one behind the other, without padding, least significant byte first.
type layout struct {
	parts   []part
	size    int  // bytes
	written bool // by this package
	only    MetricKind
}

// dataTypes lists the types with their older names. Types with a repeated part carry the count in parentheses behind
// their name. Kinds: minima, maxima and atomics have no difference, so readers drop inclusive metrics of them.
var dataTypes = []struct {
	names    []DataType
	parts    []part
	repeated *part
	written  bool
	only     MetricKind
}{
	{names: []DataType{Double, "FLOAT"}, parts: []part{partDouble}, written: true},
	{names: []DataType{Uint64, "UNSIGNED INTEGER"}, parts: []part{{8, numberUnsigned, 0}}, written: true},
	{names: []DataType{Int64, "INTEGER", "SIGNED INTEGER"}, parts: []part{{8, numberSigned, 0}}, written: true},
	{names: []DataType{Uint32, "UNSIGNED INT"}, parts: []part{{4, numberUnsigned, 0}}, written: true},
	{names: []DataType{Int32, "INT", "SIGNED INT"}, parts: []part{{4, numberSigned, 0}}, written: true},
	{names: []DataType{Uint16, "UNSIGNED SHORT INT"}, parts: []part{{2, numberUnsigned, 0}}, written: true},
	{names: []DataType{Int16, "SHORT INT", "SIGNED SHORT INT"}, parts: []part{{2, numberSigned, 0}}, written: true},
	{names: []DataType{Uint8, "CHAR"}, parts: []part{{1, numberUnsigned, 0}}, written: true},
	{names: []DataType{Int8}, parts: []part{{1, numberSigned, 0}}, written: true},
	{names: []DataType{MinDouble}, parts: []part{partMinimum}, written: true, only: Exclusive},
	{names: []DataType{MaxDouble}, parts: []part{partMaximum}, written: true, only: Exclusive},
	{names: []DataType{TauAtomic}, parts: []part{partCount, partMinimum, partMaximum, partDouble, partDouble},
		only: Exclusive},
	{names: []DataType{Complex, Rate}, parts: []part{partDouble, partDouble}},
	{names: []DataType{"HISTOGRAM"}, parts: []part{partDouble, partDouble}, repeated: &partDouble},
	{names: []DataType{"NDOUBLES"}, repeated: &partDouble},
}

// maxRepeated bounds the numbers of one value; more is damage.
const maxRepeated = 1 << 16

// layout finds the layout of a type, or says that there is no such type (ok false).
func (t DataType) layout() (l layout, ok bool) {
	name, count := string(t), 0
	if before, after, found := strings.Cut(name, "("); found {
		n, err := strconv.ParseUint(strings.TrimSuffix(after, ")"), 10, 32)
		if err != nil || n > maxRepeated || !strings.HasSuffix(after, ")") {
			return layout{}, false
		}
		name, count = before, int(n)
	}
	for i := range dataTypes {
		row := &dataTypes[i]
		for _, n := range row.names {
			if string(n) != name || (row.repeated != nil) != (count > 0) {
				continue
			}
			l = layout{parts: row.parts, written: row.written, only: row.only}
			for range count {
				l.parts = append(l.parts[:len(l.parts):len(l.parts)], *row.repeated)
			}
			for _, p := range l.parts {
				l.size += p.size
			}
			return l, true
		}
	}
	return layout{}, false
}
