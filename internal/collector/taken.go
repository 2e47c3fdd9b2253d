// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"errors"
	"slices"
	"strconv"
	"strings"
)

// taken says which records have been taken out of a process's rings: of each ring those up to a position. Ticks would
// not do: a writer that is held up between reading the clock and publishing leaves a record that is older than what has
// been taken of other rings, and records of one ring can have equal ticks.
type taken struct {
	last  uint64   // ticks of the newest
	rings []uint64 // position behind the last one of each ring, by number; of further rings nothing has been taken
}

// add takes a record, which ends at a position of its ring.
func (t *taken) add(ring int, ticks, end uint64) {
	t.last = max(t.last, ticks)
	if n := ring + 1 - len(t.rings); n > 0 {
		t.rings = append(t.rings, make([]uint64, n)...)
	}
	t.rings[ring] = max(t.rings[ring], end)
}

// has reports whether a record has been taken, by where it begins.
func (t *taken) has(ring int, at uint64) bool { return ring < len(t.rings) && at < t.rings[ring] }

func (t *taken) clone() taken { return taken{t.last, slices.Clone(t.rings)} }

// String is the form of experiment.Process.Settings: "last ring0,ring1,…", or "last" alone.
func (t *taken) String() string {
	text := strconv.AppendUint(nil, t.last, 10)
	for i, end := range t.rings {
		separator := byte(',')
		if i == 0 {
			separator = ' '
		}
		text = strconv.AppendUint(append(text, separator), end, 10)
	}
	return string(text)
}

// parseTaken reads what String wrote.
func parseTaken(text string) (t taken, err error) {
	last, rings, known := strings.Cut(text, " ")
	t.last, err = strconv.ParseUint(last, 10, 64)
	if known {
		for end := range strings.SplitSeq(rings, ",") {
			n, bad := strconv.ParseUint(end, 10, 64)
			t.rings, err = append(t.rings, n), errors.Join(err, bad)
		}
	}
	return t, err
}
