// SPDX-License-Identifier: Apache-2.0

package cube

import (
	"encoding/binary"
	"slices"
)

// An index says which rows the data member of a metric has. Fields are packed:
//
//	0   11  "CUBEX.INDEX"
//	11   4  1, in the byte order of index and data
//	15   2  version, 0
//	17   1  format: 1 sparse, 3 dense
//	18   4  number of rows                        sparse only
//	22  4n  row numbers, strictly ascending       sparse only
const (
	indexMarker  = "CUBEX.INDEX"
	indexOrder   = 11
	indexVersion = 15
	indexFormat  = 17
	indexCount   = 18
	indexRows    = 22
	formatSparse = 1
	formatDense  = 3
	dataMarker   = "CUBEX.DATA"
	zdataMarker  = "ZCUBEX.DATA"
	zdataTable   = len(zdataMarker) + 8
	zdataEntry   = 24 // offset of the row's values, offset and length of its compressed bytes; 8 bytes each
	suffixData   = ".data"
	suffixIndex  = ".index"
)

// index is an index that was read.
type index struct {
	order binary.ByteOrder
	dense bool
	rows  []uint32 // row numbers of a sparse one
}

func writeIndex(rows []uint32, dense bool) []byte {
	b := make([]byte, 0, indexRows+4*len(rows))
	b = append(b, indexMarker...)
	b = binary.LittleEndian.AppendUint32(b, 1)
	b = binary.LittleEndian.AppendUint16(b, 0)
	if dense {
		return append(b, formatDense)
	}
	b = append(b, formatSparse)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(rows)))
	for _, r := range rows {
		b = binary.LittleEndian.AppendUint32(b, r)
	}
	return b
}

// readIndex reads an index of a profile with a number of cnodes. Reference readers accept much of what it rejects, and
// lose values by it.
func readIndex(b []byte, cnodes int) (index, error) {
	var x index
	if len(b) < indexCount {
		return x, truncated("an index of %d bytes", len(b))
	}
	if string(b[:indexOrder]) != indexMarker {
		return x, corrupt("an index begins with %s, this one with %q", indexMarker, b[:indexOrder])
	}
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		if order.Uint32(b[indexOrder:]) == 1 {
			x.order = order
		}
	}
	if x.order == nil {
		return x, corrupt("the mark of byte order is % x: the number 1 in neither", b[indexOrder:indexVersion])
	}
	if v := x.order.Uint16(b[indexVersion:]); v != 0 {
		return x, unsupported("index of version %d, only 0 is known", v)
	}
	switch b[indexFormat] {
	case formatDense:
		x.dense = true
		if len(b) != indexCount {
			return x, corrupt("a dense index has %d bytes, this one %d", indexCount, len(b))
		}
		return x, nil
	case formatSparse:
	default:
		return x, corrupt("index of format %d: neither sparse (%d) nor dense (%d)", b[indexFormat], formatSparse,
			formatDense)
	}
	if len(b) < indexRows {
		return x, truncated("an index of %d bytes without its number of rows", len(b))
	}
	n := x.order.Uint32(b[indexCount:])
	if int64(len(b)) != indexRows+4*int64(n) {
		return x, corrupt("the index says %d rows and has %d bytes of row numbers", n, len(b)-indexRows)
	}
	x.rows = make([]uint32, n)
	for i := range x.rows {
		r := x.order.Uint32(b[indexRows+4*i:])
		if int64(r) >= int64(cnodes) || i > 0 && r <= x.rows[i-1] {
			return x, corrupt("row number %d at place %d: they ascend and are less than %d, the number of cnodes", r, i,
				cnodes)
		}
		x.rows[i] = r
	}
	return x, nil
}

// position returns the index of a row among the stored ones.
func (x *index) position(row uint32) (int, bool) {
	if x.dense {
		return int(row), true
	}
	return slices.BinarySearch(x.rows, row)
}
