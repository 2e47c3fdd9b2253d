// SPDX-License-Identifier: Apache-2.0

package otf2

import (
	"context"
	"errors"
	"iter"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// limitFiles lets the process have n more open files than it has now, until the test ends.
func limitFiles(t *testing.T, n int) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("no /proc: the number of open files is NOT tested")
	}
	var old syscall.Rlimit
	testkit.Must(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &old))
	limit := old
	limit.Cur = min(old.Max, uint64(len(entries)+n))
	testkit.Must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
	t.Cleanup(func() { testkit.Must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &old)) })
}

// Ten thousand locations are read with far fewer open files, one by one and merged.
func TestManyLocationsFewFiles(t *testing.T) {
	const locations, rounds = 10_000, 30
	file := eventFile(t, rounds, writeEnterLeave)
	files := map[LocationRef][]byte{}
	for i := range locations {
		files[LocationRef(i)] = file
	}
	path := archiveOf(t, files, nil)
	limitFiles(t, 240)
	a := testkit.Value(Open(path, &ReadOptions{MaxOpenFiles: 128}))(t)
	var mu sync.Mutex
	seen := map[LocationRef]int{}
	testkit.Must(t, a.EachLocation(t.Context(), 16, nil, func(loc LocationRef, events iter.Seq2[*Event, error]) error {
		n := 0
		for e, err := range events {
			if err != nil {
				return err
			}
			testkit.Check(t, e.Location == loc, "event of location %d among those of %d", e.Location, loc)
			n++
		}
		mu.Lock()
		defer mu.Unlock()
		seen[loc] += n
		return nil
	}))
	testkit.Equal(t, len(seen), locations, "locations")
	for loc, n := range seen {
		testkit.Require(t, n == 2*rounds, "location %d: %d events, want %d", loc, n, 2*rounds)
	}
	n := 0
	for _, err := range a.Events(nil) {
		testkit.Must(t, err)
		n++
	}
	testkit.Equal(t, n, 2*rounds*locations, "events")
	testkit.Equal(t, a.open.left.Load(), 128, "files of 128 may be opened after reading")
}

// eventFile writes n rounds of events with write and returns the file.
func eventFile(t testing.TB, n int, write func(w *EventWriter, at Timestamp)) []byte {
	w := NewMemoryEventWriter(nil)
	for i := range n {
		write(w, Timestamp(10*i+1))
	}
	testkit.Must(t, w.Close())
	return w.Bytes()
}

func writeEnterLeave(w *EventWriter, at Timestamp) {
	_ = w.Enter(at, nil, 3)
	_ = w.Leave(at+5, nil, 3)
}

// A selection means the same for one location as for all.
func TestSelection(t *testing.T) {
	files := map[LocationRef][]byte{}
	for loc := range LocationRef(5) {
		files[loc] = eventFile(t, 50_000, func(w *EventWriter, at Timestamp) {
			_ = w.MpiCollectiveBegin(at, nil)
			_ = w.MpiCollectiveEnd(at+5, nil, CollectiveOpAllreduce, 3, CollectiveRootNone, 4<<20, 4<<20)
			_ = w.Enter(at+6, nil, RegionRef(loc))
		})
	}
	a := testkit.Value(Open(archiveOf(t, files, nil), nil))(t)
	for _, sel := range []*Selection{
		nil,
		{Kinds: Kinds(EventEnter)},
		{Kinds: Kinds(EventEnter, EventMpiCollectiveEnd), From: 100_003, To: 400_001},
		{Kinds: Kinds(EventLeave)},
		{Locations: []LocationRef{3, 1, 3}, From: 499_990},
		{Locations: []LocationRef{}},
		{To: 1},
	} {
		want := map[LocationRef][]Event{}
		for loc := range files {
			for e, err := range a.EventsOf(loc) {
				testkit.Must(t, err)
				if sel == nil || (sel.Locations == nil || slices.Contains(sel.Locations, loc)) && e.Time >= sel.From &&
					(sel.To == 0 || e.Time <= sel.To) && (sel.Kinds.Empty() || sel.Kinds.Has(e.Kind)) {
					want[loc] = append(want[loc], e.Clone())
				}
			}
		}
		equal := func(how string, got map[LocationRef][]Event) {
			t.Helper()
			for loc := range files {
				if len(got[loc]) != len(want[loc]) {
					t.Errorf("%s %+v: location %d: %d events, want %d", how, sel, loc, len(got[loc]), len(want[loc]))
					continue
				}
				for i := range got[loc] {
					g, w := &got[loc][i], &want[loc][i]
					testkit.Require(t, g.Time == w.Time && g.Kind == w.Kind && slices.Equal(g.Args, w.Args),
						"%s %+v: location %d: event %d is %v, want %v", how, sel, loc, i, g, w)
				}
			}
		}
		got := map[LocationRef][]Event{}
		for e, err := range a.Events(sel) {
			testkit.Must(t, err)
			got[e.Location] = append(got[e.Location], e.Clone())
		}
		equal("Events", got)
		got = map[LocationRef][]Event{}
		var mu sync.Mutex
		testkit.Must(t, a.EachLocation(t.Context(), 3, sel,
			func(loc LocationRef, events iter.Seq2[*Event, error]) error {
				var list []Event
				for e, err := range events {
					testkit.Must(t, err)
					list = append(list, e.Clone())
				}
				mu.Lock()
				defer mu.Unlock()
				got[loc] = list
				return nil
			}))
		equal("EachLocation", got)
	}
}

// Errors of the function and of the context end the work.
func TestEachLocationErrors(t *testing.T) {
	files := map[LocationRef][]byte{}
	file := eventFile(t, 10_000, writeEnterLeave)
	for loc := range LocationRef(50) {
		files[loc] = file
	}
	files[7] = files[7][:1000] // damaged
	a, err := Open(archiveOf(t, files, nil), nil)
	testkit.Must(t, err)
	begun := 0
	failure := errors.New("failure of the test")
	err = a.EachLocation(t.Context(), 1, nil, func(loc LocationRef, events iter.Seq2[*Event, error]) error {
		if begun++; loc == 3 {
			return failure
		}
		return nil
	})
	testkit.Check(t, err == failure && begun == 4, "%v after %d locations, want the failure after 4", err, begun)
	damaged := 0
	testkit.Must(t, a.EachLocation(t.Context(), 4, nil, func(loc LocationRef, events iter.Seq2[*Event, error]) error {
		for _, err := range events {
			if err == nil {
				continue
			}
			if damaged++; loc != 7 || !errors.Is(err, ErrTruncated) {
				t.Errorf("location %d: %v", loc, err)
			}
		}
		return nil
	}))
	testkit.Equal(t, damaged, 1, "damaged locations")
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	err = a.EachLocation(ctx, 1, nil, func(loc LocationRef, events iter.Seq2[*Event, error]) error {
		for _, err := range events {
			if err != nil {
				return err
			}
			if n++; n == 5000 {
				cancel()
			}
		}
		return nil
	})
	testkit.Check(t, errors.Is(err, context.Canceled) && n <= 5000+checkEvery,
		"%v after %d events, want Canceled soon after 5000", err, n)
	testkit.Equal(t, a.open.left.Load(), int64(a.opts.MaxOpenFiles), "files of %d may be opened after reading",
		a.opts.MaxOpenFiles)
}
