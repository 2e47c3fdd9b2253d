// SPDX-License-Identifier: Apache-2.0

package otf2

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ReadLocalDefs reads a location's definition file. With an error it returns what came before it. Other records
// than mapping tables and clock offsets, tables of unknown types and second tables of a type are ignored, the
// last with an error at the end.
func ReadLocalDefs(path string, loc LocationRef, chunkSize uint64) ([]MappingTable, []ClockOffset, error) {
	chunk, err := checkChunkSize(chunkSize, DefaultDefChunkSize)
	if err != nil {
		return nil, nil, err
	}
	var maps []MappingTable
	var clocks []ClockOffset
	var flaw error
	err = readRecords(path, loc, uint64(chunk), &localDefTable, func(id uint8, d *fieldDecoder) error {
		switch id {
		case localMappingTable:
			m, err := readMapping(d)
			if err != nil || m == nil {
				return err
			}
			if slices.ContainsFunc(maps, func(o MappingTable) bool { return o.Type == m.Type }) {
				flaw = fmt.Errorf("%w: second mapping table of type %v", ErrCorrupt, m.Type)
				return nil
			}
			maps = append(maps, *m)
		case localClockOffset:
			c := ClockOffset{Timestamp(d.f64()), d.s64(), math.Float64frombits(d.f64())}
			if d.err != nil {
				return d.err
			}
			if n := len(clocks); n > 0 && c.Time <= clocks[n-1].Time {
				flaw = fmt.Errorf("%w: clock offset at %d after one at %d", ErrCorrupt, c.Time, clocks[n-1].Time)
				return nil
			}
			clocks = append(clocks, c)
		}
		return nil
	})
	if err == nil && flaw != nil {
		err = &FormatError{File: path, Location: loc, Err: flaw}
	}
	return maps, clocks, err
}

// readMapping decodes a mapping table; nil if its type is not known.
func readMapping(d *fieldDecoder) (*MappingTable, error) {
	m := &MappingTable{Type: MappingType(d.u8())}
	n := d.c64()
	mode := d.u8()
	switch {
	case d.err != nil:
		return nil, d.err
	case m.Type >= mappingTypes:
		return nil, nil
	case n == 0:
		return nil, fmt.Errorf("%w: mapping table %v without entries", ErrCorrupt, m.Type)
	}
	switch mode {
	case idMapDense:
		m.Global = make([]uint64, count(d, n, 1))
		for i := range m.Global {
			m.Global[i] = d.c64()
		}
	case idMapSparse:
		k := count(d, n, 2)
		m.Local, m.Global = make([]uint64, k), make([]uint64, k)
		for i := range m.Global {
			m.Local[i], m.Global[i] = d.c64(), d.c64()
		}
		if !slices.IsSorted(m.Local) {
			sortPairs(m)
		}
	default:
		return nil, fmt.Errorf("%w: id map mode %d", ErrCorrupt, mode)
	}
	return m, d.err
}

// sortPairs orders a sparse table by local id.
func sortPairs(m *MappingTable) {
	order := make([]int, len(m.Local))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(m.Local[a], m.Local[b]) })
	local, global := make([]uint64, len(order)), make([]uint64, len(order))
	for i, k := range order {
		local[i], global[i] = m.Local[k], m.Global[k]
	}
	m.Local, m.Global = local, global
}

// mappingTypes is the number of id spaces.
const mappingTypes = 15

// localMaps is what reading a location's events needs of its definitions.
type localMaps struct {
	tables [mappingTypes]*MappingTable
	clock  *clockCorrection
	maps   []MappingTable
	clocks []ClockOffset
}

func newLocalMaps(maps []MappingTable, clocks []ClockOffset, resolution uint64) *localMaps {
	l := &localMaps{clock: newClockCorrection(clocks, resolution), maps: maps, clocks: clocks}
	for i := range maps {
		l.tables[maps[i].Type] = &maps[i]
	}
	return l
}

// identity reports whether nothing is mapped or corrected.
func (l *localMaps) identity() bool { return len(l.maps) == 0 && l.clock == nil }

// mappingOfType is the id space of the values of a type, NoSpace if they are no references.
func mappingOfType(t Type) MappingType {
	if int(t) < len(typeSpaces) {
		return typeSpaces[t]
	}
	return NoSpace
}

var typeSpaces = func() (s [TypeLocationGroup + 1]MappingType) {
	for t := range s {
		s[t] = NoSpace
		if name, _ := enumTable()["Type"].lookup(uint32(t)); Type(t).IsReference() {
			s[t] = spaceOf(name)
		}
	}
	return s
}()

// localDefs returns the location's definitions, read once and shared by locations whose files are equal.
func (a *Archive) localDefs(loc LocationRef) (*localMaps, error) {
	path := a.locationFile(loc, ".def")
	maps, clocks, err := ReadLocalDefs(path, loc, a.Anchor.DefChunkSize)
	if errors.Is(err, fs.ErrNotExist) {
		if err = nil; a.hasLocalDefs() {
			err = &FormatError{File: path, Location: loc,
				Err: fmt.Errorf("the location's ids and times are not known without its definitions: %w",
					fs.ErrNotExist)}
		}
	}
	return a.share(newLocalMaps(maps, clocks, a.ticks)), err
}

// localDefWriters are how the creator of an archive begins if it makes a file of local definitions for every location,
// also for those that need none.
var localDefWriters = []string{"Score-P", "nccl-otf2"}

// creatorOfRecovered is the creator in an anchor that was made anew, if the original one is unknown.
const creatorOfRecovered = "nccl-otf2 recover"

// promisesLocalDefs reports whether an archive's creator makes a file of local definitions for every location.
func (a *Anchor) promisesLocalDefs() bool {
	return a.Creator != creatorOfRecovered &&
		slices.ContainsFunc(localDefWriters, func(w string) bool { return strings.HasPrefix(a.Creator, w) })
}

// hasLocalDefs reports whether locations of the archive have files of definitions, so that one that has none has lost
// it. The format does not require them: in archives where no location has one, ids and times are the archive's own.
func (a *Archive) hasLocalDefs() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.localDefsKnown {
		a.localDefsKnown = true
		entries, err := os.ReadDir(a.base())
		a.localDefsThere = err != nil || a.Anchor.promisesLocalDefs() ||
			slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return filepath.Ext(e.Name()) == ".def" })
	}
	return a.localDefsThere
}

// share returns an equal set of definitions that was read before, if there is one: the locations of a process
// usually have the same tables, and a thousand copies of them would not be small.
func (a *Archive) share(l *localMaps) *localMaps {
	h := l.hash()
	a.mu.Lock()
	defer a.mu.Unlock()
	if old, ok := a.maps[h]; ok {
		if old.equal(l) {
			return old
		}
		return l
	}
	a.maps[h] = l
	return l
}

// hash is FNV-1a over the numbers of the definitions.
func (l *localMaps) hash() uint64 {
	h := uint64(14695981039346656037)
	add := func(vs ...uint64) {
		for _, v := range vs {
			h = (h ^ v) * 1099511628211
		}
	}
	for i := range l.maps {
		add(uint64(l.maps[i].Type), uint64(len(l.maps[i].Local)))
		add(l.maps[i].Local...)
		add(l.maps[i].Global...)
	}
	for _, c := range l.clocks {
		add(uint64(c.Time), uint64(c.Offset))
	}
	return h
}

func (l *localMaps) equal(o *localMaps) bool {
	return slices.Equal(l.clocks, o.clocks) && slices.EqualFunc(l.maps, o.maps, func(a, b MappingTable) bool {
		return a.Type == b.Type && slices.Equal(a.Local, b.Local) && slices.Equal(a.Global, b.Global)
	})
}
