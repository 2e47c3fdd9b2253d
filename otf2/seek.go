// SPDX-License-Identifier: Apache-2.0

package otf2

import "sort"

// seek moves a new reader to the last chunk that begins before time from, because no event of an earlier chunk can
// be at or after it. It uses the stamp with which every event chunk begins; where a chunk does not, as in a damaged
// file, it stays with what is known. Reading then reports the damage.
func (r *eventReader) seek(from Timestamp) error {
	w := r.win
	if from == 0 {
		return nil
	}
	if err := w.src.prepare(); err != nil {
		return err
	}
	chunks := int((w.src.size + w.chunk - 1) / w.chunk)
	var failure error
	sound := true
	// The first chunk that begins at or after from; the one before it is wanted.
	k := sort.Search(max(0, chunks-1), func(i int) bool {
		if !sound || failure != nil {
			return true
		}
		t, ok, err := r.chunkTime(int64(i+1) * w.chunk)
		if err != nil {
			failure = err
		}
		sound = ok
		return !ok || t >= from
	})
	if failure != nil || k == 0 {
		return failure
	}
	return r.chunk(int64(k) * w.chunk)
}

// chunkTime returns the corrected time with which the chunk at off begins, if it begins with one.
func (r *eventReader) chunkTime(off int64) (t Timestamp, ok bool, err error) {
	var b [headerSize + stampSize]byte
	n, err := r.win.src.readAt(b[:], off)
	if err != nil || n < len(b) || b[headerSize] != recordTimestamp {
		return 0, false, err
	}
	big, err := byteOrder(b[:])
	if err != nil {
		return 0, false, nil
	}
	d := fieldDecoder{buf: b[headerSize+1:], big: big}
	v := d.f64()
	if r.maps != nil && r.maps.clock != nil {
		c := r.maps.clock
		v = c.intervals[c.locate(v, 0)].apply(v)
	}
	return Timestamp(v), true, nil
}
