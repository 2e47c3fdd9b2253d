// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// positions say which records have been taken out of a process's rings: of each ring those up to a position. Ticks
// alone could not say it. A writer that is held up between reading the clock and publishing leaves a record that is
// older than what has been taken of other rings, and records of one ring can have equal ticks.
type positions struct {
	last  uint64   // ticks of the newest record
	rings []uint64 // position behind the last record of each ring, by number; of further rings nothing has been taken
}

// add adds a record, which ends at a position of its ring.
func (p *positions) add(ring int, ticks, end uint64) {
	p.last = max(p.last, ticks)
	if n := ring + 1 - len(p.rings); n > 0 {
		p.rings = append(p.rings, make([]uint64, n)...)
	}
	p.rings[ring] = max(p.rings[ring], end)
}

// hasTaken reports whether the record that begins at a position of a ring has been taken.
func (p *positions) hasTaken(ring int, at uint64) bool {
	return ring < len(p.rings) && at < p.rings[ring]
}

func (p *positions) clone() positions { return positions{p.last, slices.Clone(p.rings)} }

// String is the form in description.Process.Settings: "last ring0,ring1,…", or "last" alone.
func (p *positions) String() string {
	text := strconv.FormatUint(p.last, 10)
	if len(p.rings) > 0 {
		text += " " + strings.ReplaceAll(strings.Trim(fmt.Sprint(p.rings), "[]"), " ", ",")
	}
	return text
}

// parsePositions reads what String wrote.
func parsePositions(text string) (p positions, err error) {
	last, rings, known := strings.Cut(text, " ")
	p.last, err = strconv.ParseUint(last, 10, 64)
	if known {
		for end := range strings.SplitSeq(rings, ",") {
			n, bad := strconv.ParseUint(end, 10, 64)
			p.rings, err = append(p.rings, n), errors.Join(err, bad)
		}
	}
	return p, err
}
