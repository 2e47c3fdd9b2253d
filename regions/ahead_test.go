// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"cmp"
	"errors"
	"math"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// watched are the operations that have been written ahead of time, as they come.
type watchedRow struct {
	*otf2.EventWriter
	ends []float64 // ns since base
}

func (w *watchedRow) Leave(t otf2.Timestamp, a *otf2.AttributeList, region otf2.RegionRef) error {
	w.ends = append(w.ends, float64(int64(uint64(t)-base)))
	return w.EventWriter.Leave(t, a, region)
}

// Who watches sees each operation within the time that its reports and aheadHold take, where the archive gets it 2 s
// later; and the archive is what it is if nobody watches.
func TestAheadOfTime(t *testing.T) {
	for name, set := range map[string]func(*fakeGPU){
		"one by one":   func(*fakeGPU) {},
		"bursts":       func(f *fakeGPU) { f.burst = 20 },
		"graph":        func(f *fakeGPU) { f.graph = true },
		"few":          func(f *fakeGPU) { f.n, f.pause = 100, 1e8 },
		"late reports": func(f *fakeGPU) { f.late, f.rare = 8e3, 0.2 },
		"clock jumps":  func(f *fakeGPU) { f.jumps = []jump{{at: 3e9, by: 3e6}, {at: 6e9, by: 2e9}} },
		"starved":      func(f *fakeGPU) { f.away, f.runs = 3e6, 300e3 },
	} {
		t.Run(name, func(t *testing.T) {
			play := func(watch func(*scene) func(uint64)) ([]fakeKernel, *scene, []shown) {
				f := newFakeGPU(7)
				set(f)
				f.watch = watch
				kernels := f.kernels()
				s, shown := f.play(t, kernels, otf2.ParadigmCUDA)
				return kernels, s, shown
			}
			kernels, alone, want := play(nil)
			// whose stamps is not known at once
			jumps := len(alone.m.ranks.clocks) > 0 && alone.m.ranks.clocks[0].Jumps() > 0
			const refit = 50_000_000
			row, rows, late, rounds := &watchedRow{EventWriter: otf2.NewMemoryEventWriter(nil)}, 0, 0, uint64(0)
			_, s, got := play(func(s *scene) func(uint64) {
				s.m.Ahead(func(uint32) (EventWriter, error) { rows++; return row, nil })
				before := base
				return func(now uint64) {
					// What is complete at the round before the last hold. The GPU's line is as of some time ago, and
					// need not hold for the newest.
					due := 0
					for _, k := range kernels {
						if base+uint64(k.ended)+s.m.opts.aheadHold+2*refit < before {
							due++
						}
					}
					if len(s.m.locations) > 1 && rows > 0 {
						rounds++
						late = max(late, due-len(row.ends))
					}
					before = now
				}
			})
			testkit.Must(t, s.m.AheadError())
			if diff := gocmp.Diff(want, got, gocmp.AllowUnexported(shown{})); diff != "" {
				t.Errorf("watched, the archive is another: %s", diff)
			}
			if diff := gocmp.Diff(alone.p, s.p); diff != "" {
				t.Errorf("watched, the description is another: %s", diff)
			}
			if rounds == 0 || rows != 1 || late > 0 && !jumps || len(row.ends) != len(kernels) {
				t.Errorf("%d rounds, %d rows, %d operations late, %d of %d seen", rounds, rows, late, len(row.ends),
					len(kernels))
			}
			off := 0.0
			for i, end := range row.ends {
				off = max(off, math.Abs(end-got[i].end))
			}
			if off > 1e6 {
				t.Errorf("ends are off by %v µs", off/1e3)
			}
			t.Logf("%d operations, seen %v µs off at most", len(row.ends), off/1e3)
		})
	}
}

// Operations that are seen ahead of time have the numbers that they get for good, in whatever ways NCCL carries them
// out, and whenever somebody begins to watch.
func TestAheadKeepsOrdinals(t *testing.T) {
	early := 0
	for seed := range uint64(60) {
		release, api := mixedRelease(seed)
		all := recordsOf(mixed(t, release, seed).Processes[0])
		for from := 0; from < len(all); from += 1 + len(all)/20 {
			archive, seen := newPlaces(t), newPlaces(t)
			m := New(archive, &experiment.Process{APIVersion: api}, &Options{RecordMask: 0xffff, aheadHold: 1})
			n := 0
			take(m, all, func(g *given) {
				if n++; n == from+1 {
					m.Ahead(func(number uint32) (EventWriter,
						error) {
						return seen.EventWriter(experiment.Location{Number: number})
					})
				}
				m.Advance(g.t)
				if len(seen.at) > len(archive.at) {
					early++
				}
			})
			m.Finish()
			testkit.Must(t, m.AheadError())
			for id, is := range seen.at {
				if of := archive.at[id].ordinal; is.ordinal != of {
					t.Fatalf("seed %d, watched from record %d: %s is number %d, want %d", seed, from, id, is.ordinal,
						of)
				}
			}
			if from == 0 && len(seen.at) != len(archive.at) {
				t.Fatalf("seed %d: %d operations of %d were seen", seed, len(seen.at), len(archive.at))
			}
		}
	}
	if early == 0 {
		t.Error("no operation was seen before it was written")
	}
}

// Where nothing can be written ahead of time the recording goes on.
func TestAheadFails(t *testing.T) {
	f := newFakeGPU(1)
	f.n = 100
	no := errors.New("no room")
	var failed error
	f.watch = func(s *scene) func(uint64) {
		s.m.Ahead(func(uint32) (EventWriter, error) { return nil, no })
		return func(uint64) { failed = s.m.AheadError() }
	}
	kernels := f.kernels()
	s, shown := f.play(t, kernels, otf2.ParadigmCUDA)
	if err := cmp.Or(failed, s.m.AheadError()); !errors.Is(err, no) || len(shown) != len(kernels) {
		t.Errorf("%v, %d of %d operations", err, len(shown), len(kernels))
	}
	s.m.Ahead(nil)
	testkit.Must(t, s.m.AheadError())
}
