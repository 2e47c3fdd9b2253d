// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"fmt"
	"slices"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/sequence"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

func TestSequencesAreCompared(t *testing.T) {
	run := func(n int, sizes func(i int) uint64) sequence.Sequence { return digest(n, sizes) }
	same := func(int) uint64 { return 100 }
	but := func(k int) func(int) uint64 {
		return func(i int) uint64 {
			if i == k {
				return 7
			}
			return 100
		}
	}
	for _, c := range []struct {
		name   string
		tracks []track
		want   string // "" if alike
	}{
		{"alike", []track{{rank: 0, of: run(200, same)}, {rank: 1, of: run(200, same)}}, ""},
		{"nobody did anything", []track{{rank: 0, of: sequence.Sequence{}}, {rank: 1, of: sequence.Sequence{}}},
			""},
		{"one alone", []track{{rank: 0, of: run(3, same)}}, ""},
		{"one that differs in the second block",
			[]track{{rank: 0, of: run(200, same)}, {rank: 1, of: run(200, but(70))}, {rank: 2, of: run(200, same)}},
			"64-199: 200 operations, but of other sizes on rank 1 than on ranks 0,2"},
		{"one that differs behind the last digest",
			[]track{{rank: 0, of: run(70, same)}, {rank: 1, of: run(70, but(69))}},
			"64-69: 70 operations, but of other sizes on rank 0 than on rank 1"},
		{"one that ends early", []track{{rank: 0, of: run(130, same)}, {rank: 1, of: run(129, same)},
			{rank: 2, of: run(130, same)}, {rank: 3, of: run(130, same)}},
			"128-129: rank 1 has 129 operations, ranks 0,2-3 have 130 operations"},
		{"one that did nothing", []track{{rank: 0, of: run(5, same)}, {rank: 1, of: sequence.Sequence{}}},
			"0-4: rank 0 has 5 operations, rank 1 has 0 operations"},
		{"one that still runs", []track{{rank: 0, of: run(130, same), unfinished: true}, {rank: 1, of: run(129, same)}},
			""},
		{"one that still runs and differs", []track{{rank: 0, of: run(130, but(3)), unfinished: true},
			{rank: 1, of: run(129, same)}}, "0-129: rank 0 has 130 operations, rank 1 has 129 operations"},
		{"one that died inside", []track{{rank: 0, of: run(7, same), died: true, settled: 6},
			{rank: 1, of: run(6, same), died: true, settled: 6}},
			"6-6: rank 0 has 7 operations, rank 1 has 6 operations"},
		{"one that died between others", []track{{rank: 0, of: run(7, same), settled: 7},
			{rank: 1, of: run(5, same), died: true, settled: 3}},
			"3-6: rank 0 has 7 operations, rank 1 has 5 operations"},
		{"one that died, with others in another order",
			[]track{{rank: 0, of: run(70, but(67)), settled: 70},
				{rank: 1, of: run(69, but(66)), died: true, settled: 69}},
			"66-69: rank 0 has 70 operations, rank 1 has 69 operations"},
		{"one that died, with others of which nobody knows what they did so long ago",
			[]track{{rank: 0, of: run(130, same), settled: 130}, {rank: 1, of: run(69, same), died: true, settled: 69}},
			"64-129: rank 0 has 130 operations, rank 1 has 69 operations"},
		{"one that still runs, with others in another order",
			[]track{{rank: 0, of: run(7, but(3)), unfinished: true}, {rank: 1, of: run(6, but(2))}},
			"0-6: rank 0 has 7 operations, rank 1 has 6 operations"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ""
			if first, last, detail, differ := compareTracks(c.tracks); differ {
				got = fmt.Sprintf("%d-%d: %s", first, last, detail)
			}
			testkit.Check(t, got == c.want, "got  %s\nwant %s", got, c.want)
		})
	}
}

// digest runs FNV-1a over sizes, as processes do over what members must have alike.
func digest(n int, size func(i int) uint64) sequence.Sequence {
	s := sequence.Sequence{Count: uint64(n), Last: 14695981039346656037}
	for i := range n {
		s.Last = (s.Last ^ size(i)) * 1099511628211
		s.Recent = append(s.Recent, byte(s.Last>>32), byte(s.Last>>40))
		if (i+1)%sequence.DigestStep == 0 {
			s.Digests, s.Recent = append(s.Digests, s.Last), nil
		}
	}
	return s
}

// Where ordinals are given, what each member lacks is found by its holes and its end, what nobody has is not listed,
// and long lists stay short.
func TestWhatMembersLack(t *testing.T) {
	of := func(count uint64, holes ...sequence.Hole) sequence.Sequence {
		return sequence.Sequence{Count: count, Holes: holes, Numbered: true}
	}
	in := new(Communicator)
	all := in.lacking("AllReduce", []track{
		{rank: 0, of: of(20, sequence.Hole{From: 0, To: 4}, sequence.Hole{From: 9, To: 10})},
		{rank: 1, of: of(18, sequence.Hole{From: 0, To: 6})},
	})
	var got []string
	for _, d := range all {
		got = append(got, fmt.Sprintf("%d-%d %s", d.First, d.Last, d.Detail))
	}
	want := []string{"4-5 rank 1 lacks them", "9-9 rank 0 lacks them", "18-19 rank 1 lacks them"}
	testkit.Check(t, slices.Equal(got, want), "got %q, want %q", got, want)

	var holes []sequence.Hole
	for i := range uint64(2 * mostDescribed) {
		holes = append(holes, sequence.Hole{From: 2 * i, To: 2*i + 1})
	}
	all = in.lacking("AllReduce", []track{{rank: 0, of: of(4*mostDescribed, holes...)},
		{rank: 1, of: of(4 * mostDescribed)}})
	if last := all[len(all)-1]; len(all) != 2*mostDescribed || last.Detail != "lacking in 1 rank" {
		t.Errorf("%d, the last %+v", len(all), last)
	}
}
