// SPDX-License-Identifier: Apache-2.0

package ends

import (
	"math"
	"os"

	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Rewrite rewrites the event file at path with the moves applied, with the same chunk size. Hard links to the old file
// keep the old content. After an error the file is unchanged.
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

// applyTo applies the move to ev, event n of its row.
func (m *Move) applyTo(n uint64, ev *otf2.Event) {
	switch {
	case n < m.enter:
	case n >= m.first:
		ev.Time += otf2.Timestamp(m.by)
	case ev.Kind == otf2.EventMetric:
		m.slow(ev)
	}
}

// slow reduces a launch's bandwidths according to its longer duration. They are the only metrics with two real numbers
// on communicator ranks' rows (package regions, metrics). In ev.Args, each value is a type followed by its bits.
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
