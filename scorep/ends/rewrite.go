// SPDX-License-Identifier: Apache-2.0

package ends

import (
	"math"
	"os"

	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Rewrite writes the event file at path anew, with chunks of the same size and the moves made. A hard link to it keeps
// what it had. After an error the file is as it was.
func Rewrite(path string, chunk uint64, moves []Move) error {
	made := path + ".moved"
	n := uint64(0)
	_, err := otf2.RewriteEventsWith(path, made, chunk, chunk, func(ev *otf2.Event) {
		if len(moves) > 0 {
			if moves[0].applyTo(n, ev); n >= moves[0].last {
				moves = moves[1:]
			}
		}
		n++
	})
	if err != nil {
		_ = os.Remove(made)
		return err
	}
	return os.Rename(made, path)
}

// applyTo applies the move to event n.
func (m *Move) applyTo(n uint64, ev *otf2.Event) {
	switch {
	case n < m.enter:
	case n >= m.first:
		ev.Time += otf2.Timestamp(m.by)
	case ev.Kind == otf2.EventMetric:
		m.slow(ev)
	}
}

// slow brings a launch's bandwidths to its new time: the only metrics of two real numbers on the rows of communicators'
// ranks (package regions, metrics). An event's arguments have them as type and bits.
func (m *Move) slow(ev *otf2.Event) {
	if ev.Metric().Len() != 2 {
		return
	}
	for values := ev.Args[2:]; len(values) > 1; values = values[2:] {
		if otf2.Type(values[0]) == otf2.TypeDouble {
			values[1] = math.Float64bits(math.Float64frombits(values[1]) / m.longer)
		}
	}
}
