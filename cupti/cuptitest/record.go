// SPDX-License-Identifier: Apache-2.0

// Package cuptitest makes activity records of CUPTI's for tests.
package cuptitest

import (
	"encoding/binary"

	"github.com/nccl-otf2/nccl-otf2/cupti"
)

// Record makes a record of a kind and size: values by offset, as wide as their Go types (uint8 to uint64). The bytes
// that are not given are garbage.
func Record(kind cupti.Kind, size int, values map[int]any) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = 0x5a
	}
	binary.NativeEndian.PutUint32(b, uint32(kind))
	for at, v := range values {
		switch v := v.(type) {
		case uint8:
			b[at] = v
		case uint16:
			binary.NativeEndian.PutUint16(b[at:], v)
		case uint32:
			binary.NativeEndian.PutUint32(b[at:], v)
		case uint64:
			binary.NativeEndian.PutUint64(b[at:], v)
		default:
			panic("cuptitest: a value of no width")
		}
	}
	return b
}
