// SPDX-License-Identifier: Apache-2.0

package otf2

import (
	"cmp"
	"context"
	"iter"
	"runtime"
	"sync"
	"sync/atomic"
)

// EachLocation calls f for every selected location with its selected events, for at most workers locations at the same
// time (0: as many as processors). It suits uses without a common order: memory and open files are those of the
// locations under way, however many the archive has. f is called from several goroutines; events can be ranged over
// while f runs, is like [Archive.EventsOf] in what it yields, and costs nothing where it is not used. sel may be nil.
//
// The first error of f, or of ctx, keeps further locations from being begun and is returned when those under way
// have ended; their events then stop with context.Canceled or the error of ctx.
func (a *Archive) EachLocation(ctx context.Context, workers int, sel *Selection,
	f func(loc LocationRef, events iter.Seq2[*Event, error]) error) error {
	sel = cmp.Or(sel, &Selection{})
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	locations := a.selected(sel)
	work, stop := context.WithCancel(ctx)
	defer stop()
	var (
		next    atomic.Int64
		group   sync.WaitGroup
		once    sync.Once
		failure error
	)
	for range min(workers, len(locations)) {
		group.Go(func() {
			for work.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(locations) {
					return
				}
				if err := f(locations[i], a.stream(work, locations[i], sel)); err != nil {
					once.Do(func() { failure = err })
					stop()
				}
			}
		})
	}
	group.Wait()
	if err := ctx.Err(); err != nil {
		return err
	}
	return failure
}

// checkEvery is the number of events after which a stream looks whether it is to stop; a power of two.
const checkEvery = 1 << 10

// stream iterates over the selected events of one location.
func (a *Archive) stream(ctx context.Context, loc LocationRef, sel *Selection) iter.Seq2[*Event, error] {
	return func(yield func(*Event, error) bool) {
		r := a.eventReader(loc, maxWindow)
		defer r.close()
		if err := r.seek(sel.From); err != nil {
			r.fail(err)
		}
		f := newFilter(sel)
		for n := 0; ; n++ {
			if n%checkEvery == 0 {
				if err := ctx.Err(); err != nil {
					yield(nil, err)
					return
				}
			}
			switch ok, err := f.advance(r); {
			case err != nil:
				yield(nil, err)
				return
			case !ok:
				return
			case !yield(&r.event, nil):
				return
			}
		}
	}
}
