// SPDX-License-Identifier: Apache-2.0

package otf2

import (
	"fmt"
	"slices"
)

// MappingTable maps the local ids of one kind to the archive's global ids when a location's events are read.
//
// A dense table lists the global ids of the local ids 0 … n-1, a sparse one the pairs. A local id that the table
// lacks stays as it is, so a table must cover every local id in use. A global id of 2^64-1 means undefined.
type MappingTable struct {
	Type   MappingType
	Global []uint64 // dense: by local id; sparse: beside Local
	Local  []uint64 // sparse: ascending; nil for a dense table
}

// NewDenseMapping returns a table that maps i to global[i]. The slice is kept.
func NewDenseMapping(t MappingType, global []uint64) *MappingTable {
	return &MappingTable{Type: t, Global: global}
}

// OptimalMapping returns the smaller table that maps i to global[i]: nil for the identity and for no ids at all,
// sparse if fewer than half of the ids move, else dense. This is libotf2's choice.
func OptimalMapping(t MappingType, global []uint64) *MappingTable {
	moved := 0
	for local, id := range global {
		if uint64(local) != id {
			moved++
		}
	}
	switch {
	case moved == 0:
		return nil
	case 2*moved >= len(global):
		return NewDenseMapping(t, global)
	}
	m := &MappingTable{Type: t, Local: make([]uint64, 0, moved), Global: make([]uint64, 0, moved)}
	for local, id := range global {
		if uint64(local) != id {
			m.Local = append(m.Local, uint64(local))
			m.Global = append(m.Global, id)
		}
	}
	return m
}

// Len returns the number of mapped ids.
func (m *MappingTable) Len() int {
	if m == nil {
		return 0
	}
	return len(m.Global)
}

// Map returns the global id of a local one. The method of a nil table is the identity.
func (m *MappingTable) Map(local uint64) uint64 {
	if m == nil {
		return local
	}
	if m.Local == nil {
		if local < uint64(len(m.Global)) {
			return m.Global[local]
		}
		return local
	}
	if i, ok := slices.BinarySearch(m.Local, local); ok {
		return m.Global[i]
	}
	return local
}

// String names the table in one line.
func (m *MappingTable) String() string {
	kind := "dense"
	if m.Local != nil {
		kind = "sparse"
	}
	return fmt.Sprintf("%v: %d ids, %s", m.Type, m.Len(), kind)
}

// Modes of an id map on disk.
const (
	idMapDense  = 0
	idMapSparse = 1
)

// append writes the table's id map.
func (m *MappingTable) append(b []byte) []byte {
	b = appendC64(b, uint64(len(m.Global)))
	if m.Local == nil {
		b = append(b, idMapDense)
		for _, id := range m.Global {
			b = appendC64(b, id)
		}
		return b
	}
	b = append(b, idMapSparse)
	for i, id := range m.Global {
		b = appendC64(appendC64(b, m.Local[i]), id)
	}
	return b
}
