// SPDX-License-Identifier: Apache-2.0

package otf2print

import (
	"math"
	"strconv"

	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// appendValue writes an attribute or property value of a type.
func (n *names) appendValue(b []byte, typ otf2.Type, v otf2.Value) []byte {
	switch typ {
	case otf2.TypeInt8, otf2.TypeInt16, otf2.TypeInt32, otf2.TypeInt64:
		return strconv.AppendInt(b, int64(v), 10)
	case otf2.TypeFloat:
		return appendFloat(b, float64(v.Float()))
	case otf2.TypeDouble:
		return appendFloat(b, v.Double())
	}
	if kind, isRef := kindsByName[typ.String()]; isRef {
		return n.appendRef(b, kind, uint64(v))
	}
	return strconv.AppendUint(b, uint64(v), 10)
}

// appendFloat writes a number as C's %g does.
func appendFloat(b []byte, v float64) []byte {
	switch {
	case math.IsNaN(v):
		if math.Signbit(v) {
			b = append(b, '-')
		}
		return append(b, "nan"...)
	case math.IsInf(v, 0):
		if v < 0 {
			b = append(b, '-')
		}
		return append(b, "inf"...)
	}
	return strconv.AppendFloat(b, v, 'g', 6, 64)
}

// appendPadded writes text left-aligned in a column.
func appendPadded(b []byte, text string, width int) []byte {
	b = append(b, text...)
	for i := len(text); i < width; i++ {
		b = append(b, ' ')
	}
	return b
}

// appendRight writes a number right-aligned in a column.
func appendRight(b []byte, v uint64, width int) []byte {
	var digits [20]byte
	return appendRightText(b, strconv.AppendUint(digits[:0], v, 10), width)
}

func appendRightText(b, text []byte, width int) []byte {
	for i := len(text); i < width; i++ {
		b = append(b, ' ')
	}
	return append(b, text...)
}
