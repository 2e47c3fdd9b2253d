// SPDX-License-Identifier: Apache-2.0

package otf2

import "fmt"

// find returns the index of the definition named ref among n. Without an index the ids are 0 … n-1 in order, as
// writers are asked to number them.
func find[R ~uint8 | ~uint32 | ~uint64](index map[R]int, ref R, n int) (int, bool) {
	if index == nil {
		return int(ref), uint64(ref) < uint64(n)
	}
	i, ok := index[ref]
	return i, ok
}

// Reindex makes definitions that were put together by hand, and not read, findable by their ids. It is to be called
// again when some were added.
func (defs *Definitions) Reindex() { defs.finish() }

// indexOf builds the index of n definitions, nil if it is not needed. Of doubled ids the first counts.
func indexOf[R ~uint8 | ~uint32 | ~uint64](n int, self func(i int) R) map[R]int {
	dense := true
	for i := 0; i < n && dense; i++ {
		dense = uint64(self(i)) == uint64(i)
	}
	if dense {
		return nil
	}
	index := make(map[R]int, n)
	for i := range n {
		if _, ok := index[self(i)]; !ok {
			index[self(i)] = i
		}
	}
	return index
}

// String returns the text of a string definition, "" if there is none.
func (defs *Definitions) String(ref StringRef) string {
	if s := defs.StringDef(ref); s != nil {
		return s.Text
	}
	return ""
}

// RegionName returns the name of a region, "undefined region 7" if none is defined that has the id 7.
func (defs *Definitions) RegionName(ref RegionRef) string {
	if d := defs.Region(ref); d != nil {
		return defs.String(d.Name)
	}
	return fmt.Sprintf("undefined region %d", ref)
}

// ReadGlobalDefs reads a global definition file. With an error it returns what came before it.
func ReadGlobalDefs(path string, chunkSize uint64) (*Definitions, error) {
	defs := &Definitions{}
	chunk, err := checkChunkSize(chunkSize, DefaultDefChunkSize)
	if err != nil {
		return defs, err
	}
	err = readRecords(path, UndefinedLocation, uint64(chunk), &globalDefTable, func(id uint8, d *fieldDecoder) error {
		if !defs.add(DefKind(id), d) {
			// Of an unknown kind only the bytes are certain.
			r := Record{ID: id, Args: make([]uint64, len(d.buf))}
			for i, c := range d.buf {
				r.Args[i] = uint64(c)
			}
			defs.Other = append(defs.Other, r)
		}
		if d.err == nil {
			defs.Order = append(defs.Order, DefKind(id))
		}
		return nil
	})
	defs.finish()
	return defs, err
}
