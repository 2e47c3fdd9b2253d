// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/stats"
	"github.com/nccl-otf2/nccl-otf2/tests/bench/caller"
)

// start measures init and the last finalize.
func (b *bench) start(ctx context.Context, r *result) error {
	const times, later = 5, 16
	var first, next, last [2][]float64
	for range times * b.rounds {
		b.say(".")
		for which := range b.plugins() {
			into := new(caller.Start)
			if _, err := b.call(ctx, which, into, "start", later); err != nil {
				return err
			}
			first[which] = append(first[which], into.First/1e6)
			next[which] = append(next[which], stats.Median(into.Later)/1e3)
			last[which] = append(last[which], into.LastFinalize/1e6)
		}
	}
	add := func(title, unit string, v [2][]float64, aim float64) {
		r.add(otherRow{Title: title + ", median", Unit: unit, Ours: stats.Median(v[ours]),
			Empty: value(stats.Median(v[empty])), Aim: aim})
	}
	add("first init", "ms", first, 30)
	r.add(otherRow{Title: "first init, longest", Unit: "ms", Ours: slices.Max(first[ours]),
		Empty: value(slices.Max(first[empty]))})
	add("later inits", "µs", next, 0)
	add("last finalize", "ms", last, 0)
	return nil
}

func value(v float64) *float64 { return &v }
