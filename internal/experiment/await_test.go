// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// written begins a shard of a process, whose writer is this program.
func written(t *testing.T, dir, name string, p *description.Process) *Store {
	t.Helper()
	s := testkit.Value(Create(dir, name))(t)
	t.Cleanup(func() { _ = s.Close() })
	if p != nil {
		one := *p
		one.Version, one.UUID = description.Version, name
		testkit.Must(t, s.Write(&one))
	}
	return s
}

// Collectors are waited for that write the rest of a process which has ended, as far as that can be known; never those
// of one that runs.
func TestWhichCollectorsAreWaitedFor(t *testing.T) {
	gone := exec.Command("true")
	testkit.Must(t, gone.Run())
	start := testkit.Value(shm.ProcessStart(os.Getpid()))(t)
	lives := &description.Process{BootID: BootID(), PID: os.Getpid(), PIDStart: start}
	ended := &description.Process{BootID: BootID(), PID: gone.Process.Pid, PIDStart: 1}
	far := &description.Process{BootID: "another boot", PID: os.Getpid(), PIDStart: start}
	farEnded := &description.Process{BootID: "another boot", PID: os.Getpid(), PIDStart: start, Ended: true}
	unseen := func(s *Store) { // in a container of its own: nor can its process be seen
		w := writer{Place: place{Boot: BootID(), Namespace: "pid:[1]"}, PID: os.Getpid(), Start: start, Locked: true}
		text := testkit.Value(json.Marshal(w))(t)
		testkit.Must(t, os.WriteFile(filepath.Join(s.Path(), lockFile), text, FileMode))
	}
	none := func(*Store) {}
	for name, c := range map[string]struct {
		process                *description.Process
		change                 func(*Store)
		want, over, overAndNot bool // with the zero value; with Over; with Over and Here
	}{
		"of a process that runs":                       {lives, none, false, false, false},
		"of one that has ended":                        {ended, none, true, true, true},
		"of one that has not said whose it is":         {nil, none, true, true, true},
		"of another machine":                           {far, none, false, true, false},
		"of another machine, which says that it ended": {farEnded, none, true, true, false},
		"of a container":                               {ended, unseen, false, true, true},
		"of a container, not described":                {nil, unseen, false, true, true},
		"finished": {ended, func(s *Store) { testkit.Must(t, s.Finish()) }, false,
			false, false},
		"that has died": {ended, func(s *Store) { testkit.Must(t, s.Close()) }, false,
			false, false},
		"that has died, of a process that had ended so": {farEnded, func(s *Store) { testkit.Must(t, s.Close()) },
			false, false, false},
	} {
		dir := t.TempDir()
		c.change(written(t, dir, "a", c.process))
		for _, a := range []struct {
			await Await
			want  bool
		}{{Await{}, c.want}, {Await{Over: true}, c.over}, {Await{Over: true, Here: true}, c.overAndNot}} {
			looked, stop := context.WithCancel(context.Background())
			stop()
			if late := a.await.Collectors(looked, dir); (len(late) == 1) != a.want {
				t.Errorf("%s: late %v with %+v, want that it is: %v", name, late, a.await, a.want)
			}
		}
	}
	late := new(Await).Collectors(context.Background(), filepath.Join(t.TempDir(), "nothing"))
	testkit.Check(t, late == nil, "of no directory: %v", late)
}

// fakeTime is a clock that runs as long as somebody sleeps.
type fakeTime struct{ now time.Time }

func (f *fakeTime) of(a Await) *Await {
	a.now, a.sleep = func() time.Time { return f.now },
		func(_ context.Context, d time.Duration) { f.now = f.now.Add(d) }
	return &a
}

// As long as one of them makes progress all are waited for, however long that takes. When none does they are not any
// more.
func TestCollectorsAreWaitedForAsLongAsTheyMakeProgress(t *testing.T) {
	gone := exec.Command("true")
	testkit.Must(t, gone.Run())
	ended := &description.Process{BootID: BootID(), PID: gone.Process.Pid, PIDStart: 1}
	dir := t.TempDir()
	works, hangs := written(t, dir, "works", ended), written(t, dir, "hangs", ended)
	clock := &fakeTime{time.Now()}
	began, looks, lastProgress := clock.now, 0, time.Time{}
	late := clock.of(Await{Patience: 10 * time.Second, Progress: func(shards []string) {
		looks++
		if looks%30 != 0 { // every 6 s
			return
		}
		switch n := looks / 30; {
		case n < 20:
			lastProgress = clock.now
			testkit.Must(t, os.WriteFile(filepath.Join(works.Path(), fmt.Sprintf("%d.evt", n%3)), make([]byte, 100*n),
				FileMode))
		case n == 20:
			lastProgress = clock.now
			testkit.Must(t, works.Finish())
		default:
			testkit.Check(t, len(shards) == 1, "%v are waited for", shards)
		}
	}}).Collectors(context.Background(), dir)
	testkit.Check(t, slices.Equal(late, []string{"hangs"}) && clock.now.Sub(began) >= 100*time.Second,
		"late %v after %v", late, clock.now.Sub(began))
	if waited := clock.now.Sub(lastProgress); waited < 10*time.Second || waited > 11*time.Second {
		t.Errorf("waited for %v after the last progress", waited)
	}
	// Of what a process of another machine's collector writes nobody knows whether it ends.
	far := written(t, dir, "far", &description.Process{BootID: "another boot", PID: 1})
	began, looks = clock.now, 0
	testkit.Must(t, hangs.Finish())
	late = clock.of(Await{Over: true, Patience: 10 * time.Second, Progress: func([]string) {
		looks++
		testkit.Must(t, os.WriteFile(filepath.Join(far.Path(), "0.evt"), make([]byte, looks), FileMode))
	}}).Collectors(context.Background(), dir)
	waited := clock.now.Sub(began)
	testkit.Check(t, slices.Equal(late, []string{"far"}) && waited >= 10*time.Second && waited <= 11*time.Second,
		"late %v after %v", late, waited)
	testkit.Must(t, far.Close())
	late = clock.of(Await{}).Collectors(context.Background(), dir)
	testkit.Check(t, late == nil, "late %v although the last one has ended", late)
}
