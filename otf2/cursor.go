// SPDX-License-Identifier: Apache-2.0

package otf2

// Cursor gives what [Archive.Events] does one by one, to who reads many iterations in turns: each has little more than
// its windows, and no goroutine.
type Cursor struct {
	archive *Archive // nil: the files have been opened
	sel     *Selection

	merge  merge
	failed []error // of files that could not be opened, or read up to their first event
	given  bool    // the first event of the heap
}

// Cursor reads the events of the selected locations; sel may be nil. Nothing is opened before the first event is asked
// for. The cursor must be closed.
func (a *Archive) Cursor(sel *Selection) *Cursor {
	if sel == nil {
		sel = &Selection{}
	}
	return &Cursor{archive: a, sel: sel, merge: merge{filter: newFilter(sel)}}
}

// Next returns the next event, or the error that ends the reading of a location; ok is false at the end. The event is
// valid until the next call.
func (c *Cursor) Next() (ev *Event, ok bool, err error) {
	if a := c.archive; a != nil {
		c.archive = nil
		a.fill(&c.merge, c.sel, func(err error) bool {
			c.failed = append(c.failed, err)
			return true
		})
	}
	if len(c.failed) > 0 {
		err = c.failed[0]
		c.failed = c.failed[1:]
		return nil, true, err
	}
	if c.given {
		c.given = false
		if err := c.merge.step(); err != nil {
			return nil, true, err
		}
	}
	if len(c.merge.heap) == 0 {
		return nil, false, nil
	}
	c.given = true
	return &c.merge.heap[0].reader.event, true, nil
}

// Close ends the reading.
func (c *Cursor) Close() {
	c.merge.close()
	c.archive, c.merge.heap, c.failed, c.given = nil, nil, nil, false
}
