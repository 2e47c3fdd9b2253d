// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"errors"
	"slices"
	"strconv"
	"strings"
)

// taken says which records have been taken out of a process's rings: of each ring those up to its own last one. One bound
// for all would not do, as a writer that is held up between reading the clock and publishing leaves a record that is
// older than what has been taken of other rings.
type taken struct {
	last  uint64   // ticks of the newest
	rings []uint64 // ticks of the newest of each ring, by number; of further rings nothing has been taken
	whole bool     // rings are not known: all up to last
}

// add takes a record.
func (t *taken) add(ring int, ticks uint64) {
	t.last = max(t.last, ticks)
	if n := ring + 1 - len(t.rings); n > 0 {
		t.rings = append(t.rings, make([]uint64, n)...)
	}
	t.rings[ring] = max(t.rings[ring], ticks)
}

// has tells that a record has been taken.
func (t *taken) has(ring int, ticks uint64) bool {
	if t.whole {
		return ticks <= t.last
	}
	return ring < len(t.rings) && ticks <= t.rings[ring]
}

func (t *taken) clone() taken { return taken{t.last, slices.Clone(t.rings), t.whole} }

// String is the form of shard.Process.Settings: "last ring0,ring1,…", or "last" alone.
func (t *taken) String() string {
	text := strconv.AppendUint(nil, t.last, 10)
	if t.whole {
		return string(text)
	}
	for i, ticks := range t.rings {
		separator := byte(',')
		if i == 0 {
			separator = ' '
		}
		text = strconv.AppendUint(append(text, separator), ticks, 10)
	}
	return string(text)
}

// parseTaken reads what String wrote.
func parseTaken(text string) (t taken, err error) {
	last, rings, known := strings.Cut(text, " ")
	t.last, err = strconv.ParseUint(last, 10, 64)
	t.whole = !known && t.last > 0
	if known {
		for ticks := range strings.SplitSeq(rings, ",") {
			n, bad := strconv.ParseUint(ticks, 10, 64)
			t.rings, err = append(t.rings, n), errors.Join(err, bad)
		}
	}
	return t, err
}
