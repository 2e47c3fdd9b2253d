// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/hang"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/hang/waitfor"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/verdict"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/report"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
	"github.com/nccl-otf2/nccl-otf2/tests/collectors"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/scenario"
)

// hanging is a job in which some ranks never come to an operation.
type hanging struct {
	release  string
	function string
	ranks    int
	ordinal  int
	missing  []int
	events   string
	end      ending // "kill", "abort" (SIGABRT), "finalize": as after ncclCommAbort, those that are inside
}

type ending string

var hangs = []hanging{
	{v4, "AllReduce", 2, 4, []int{1}, "gpu", "kill"},
	{v6, "AllReduce", 2, 0, []int{0}, "light", "abort"},
	{v6, "AllReduce", 4, 3, []int{2}, "net", "kill"},
	{v6, "AllReduce", 4, 3, []int{2}, "net-sums", "kill"},
	{v6, "ReduceScatter", 4, 1, []int{0, 3}, "all", "abort"},
	{v5, "AllGather", 4, 1, []int{1}, "light", "finalize"},
	{v7, "AllReduce", 3, 2, []int{0}, "gpu", "finalize"},
	{v5, "AllReduce", 3, 2, []int{0, 1}, "gpu", "abort"},
	{v6, "AllReduce", 4, 7, []int{2}, "gpu", "finalize"},
	{v7, "AllReduce", 4, 20, []int{1, 2, 3}, "all", "kill"},
}

// Of a job that hangs the report names the operation and who is missing: while it hangs, and when it is dead.
func TestHang(t *testing.T) {
	for _, h := range hangs {
		t.Run(fmt.Sprintf("%s-%s-%d-%s-%s", h.release, h.function, h.ordinal, h.events, h.end), func(t *testing.T) {
			t.Parallel()
			h.run(t)
		})
	}
}

func (h *hanging) run(t *testing.T) {
	rec := h.play(t)
	dir := filepath.Join(t.TempDir(), "experiment")
	stopped, began := make(chan struct{}), time.Now()
	var all sync.WaitGroup
	all.Add(len(rec.Processes))
	go func() {
		all.Wait()
		close(stopped)
	}()
	seen := make(chan struct{})
	opt := usual(t, dir, clock(replay.ClockLive), env("NCCL_OTF2_EVENTS="+h.events)) // time goes on while they hang
	opt.StopAt = func(process int) int {
		// before it finalizes
		return len(slices.DeleteFunc(slices.Clone(rec.Processes[process].Calls),
			func(c *replay.Call) bool { return c.Kind == replay.CallFinalize }))
	}
	opt.Stopped = func(process, pid int) {
		all.Done()
		<-seen
		switch {
		case h.end == "abort":
			_ = syscall.Kill(pid, syscall.SIGABRT)
		case h.end == "kill" || slices.Contains(h.missing, process):
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := replay.Run(ctx, rec, opt)
		ended <- err
	}()
	select {
	case <-stopped:
	case err := <-ended:
		t.Fatalf("the hosts ended before they stopped: %v", err)
	}
	// What is not on disk yet comes with the next flush.
	fault, stood := "", time.Now()
	for deadline := time.Now().Add(5 * time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if fault = h.fault(dir, true); fault == "" {
			break
		}
	}
	testkit.Equal(t, fault, "", "while it hangs")
	hung := time.Since(stood)
	close(seen)
	testkit.Must(t, <-ended)
	collectors.Await(t, dir)
	testkit.Equal(t, h.fault(dir, false), "", "when it is dead")
	testkit.Equal(t, h.end.fault(dir, rec, h.missing, hung, time.Since(began)), "", "h.end.fault")
}

// fault compares what is said of the processes' ends, and how long they hung before, with what is true; "" if it fits.
func (e ending) fault(dir string, rec *replay.Recording, missing []int, least, most time.Duration) string {
	r, err := hang.Find(dir, time.Now(), nil)
	if err != nil || len(r.Jobs) != 1 || len(r.Jobs[0].Communicators) == 0 {
		return fmt.Sprint(r, err)
	}
	c := &r.Jobs[0].Communicators[0]
	if age := time.Duration(c.Age); (age < least || age > most) && e != "finalize" {
		return fmt.Sprintf("it was so for %v, and not for %v to %v", age, least, most)
	}
	for _, m := range c.Members {
		want := map[ending]string{"kill": "killed by SIGKILL", "abort": "killed by SIGABRT", "finalize": "ended"}[e]
		if e == "finalize" && slices.Contains(missing, m.Rank) {
			want = "killed by SIGKILL"
		}
		if m.ProcessState != want {
			return fmt.Sprintf("rank %d is %q, want %q", m.Rank, m.ProcessState, want)
		}
	}
	return ""
}

// Of a job in which one rank stays behind in the creation of a communicator, the report names it where NCCL says which
// communicator that is. Otherwise it says what is not known.
func TestHangInCreation(t *testing.T) {
	for release, says := range map[string]string{
		v3: "Not known whether they wait for a rank in the creation of a communicator",
		v6: "missing: Rank 3 has not come as far in the creation of tp (4 ranks) as Ranks 0-2",
	} {
		t.Run(release, func(t *testing.T) {
			t.Parallel()
			s := scenario.New("creation", release)
			ranks := s.Job(4, scenario.Comm{ID: 0x4a26, Name: "dp"})
			for range 3 {
				s.All(ranks, scenario.Same(scenario.Op{Func: "AllReduce", Steps: 1}))
			}
			for rank := range 3 {
				ranks[rank].App.Join(scenario.Comm{ID: 0x4a27, Name: "tp", NRanks: 4, Rank: rank})
			}
			rec := testkit.Value(s.Load(filepath.Join(t.TempDir(), "creation")))(t)
			dir := filepath.Join(t.TempDir(), "experiment")
			opt := usual(t, dir, clock(replay.ClockLive), env("NCCL_OTF2_EVENTS=gpu"))
			opt.StopAt = func(process int) int { return len(rec.Processes[process].Calls) }
			opt.Stopped = func(_, pid int) {
				time.Sleep(1500 * time.Millisecond) // silence that is long enough to be reported
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			testkit.Value(replay.Run(t.Context(), rec, opt))(t)
			collectors.Await(t, dir)
			var text strings.Builder
			testkit.Must(t, report.Hang(testkit.Value(hang.Find(dir, time.Now(), nil))(t)).WriteText(&text))
			testkit.Contains(t, text.String(), says)
		})
	}
}

// Of a job in which one rank asked for other arguments once, that operation alone is left out, and the rank is named.
func TestOneOtherCountLeavesOutOneOperation(t *testing.T) {
	t.Parallel()
	rec := testkit.Value(replay.Load("../testdata/nccl-causes/c14-count-mismatch-3p"))(t)
	dir := filepath.Join(t.TempDir(), "experiment")
	testkit.Value(replay.Run(t.Context(), rec,
		usual(t, dir, clock(replay.ClockRecorded), env("NCCL_OTF2_EVENTS=gpu"))))(t)
	collectors.Await(t, dir)
	a := openArchive(t, unified(t, dir))
	stretches, unnamed := property.Stretches(a.Anchor)
	testkit.Check(t, len(stretches) == 1 && unnamed <= 0 && stretches[0].First == 7 && stretches[0].Last == 7 &&
		stretches[0].Detail == "Rank 1 asked for 10000 elements, Ranks 0,2 asked for 20000 elements", "%+v", stretches)
	c := waitfor.OfArchive(a.Anchor)
	testkit.Check(t, len(c) == 1 && c[0].Kind == verdict.Mismatch && c[0].Rank == 1, "%+v", c)
	r := testkit.Value(operations.Observe(a, new(operations.Observer)))(t)
	s := &r.Summary
	testkit.Check(t, s.Operations == 11 && s.LeftOut == 3 && len(s.Deviations) == 1, "%+v", s)
}

// fault compares the report with what must be in it; "" if it is all there.
func (h *hanging) fault(dir string, alive bool) string {
	r, err := hang.Find(dir, time.Now(), nil)
	if err != nil {
		return err.Error()
	}
	if len(r.Jobs) != 1 || len(r.Problems) > 0 {
		return fmt.Sprintf("%d jobs, %v", len(r.Jobs), r.Problems)
	}
	j := &r.Jobs[0]
	if alive && j.Running != j.Processes || !alive && j.Running+j.Crashed > 0 || len(j.Communicators) == 0 ||
		len(j.Inexact) > 0 {
		return fmt.Sprintf("job: %+v", j)
	}
	c := &j.Communicators[0]
	if c.Operation != h.function || c.Ordinal != uint64(h.ordinal) || c.Verdict != hang.NotReached &&
		c.Verdict != hang.Different {
		return fmt.Sprintf("first of %d: %+v", len(j.Communicators), c)
	}
	var missing []int
	for _, m := range c.Members {
		switch m.State {
		case "missing":
			missing = append(missing, m.Rank)
			if m.Reached != uint64(h.ordinal) {
				return fmt.Sprintf("rank %d has reached %d", m.Rank, m.Reached)
			}
		case "calling", "called", "enqueued", "running":
			if m.Reached <= uint64(h.ordinal) {
				return fmt.Sprintf("rank %d has reached %d and is %s", m.Rank, m.Reached, m.State)
			}
			if h.events != "light" && m.State != "running" {
				return fmt.Sprintf("rank %d is %s, and its kernel has begun", m.Rank, m.State)
			}
			if (strings.HasPrefix(h.events, "net") || h.events == "all") && m.LastNet == "" {
				return fmt.Sprintf("nothing is said of the network of rank %d", m.Rank)
			}
		default:
			return fmt.Sprintf("rank %d is %q", m.Rank, m.State)
		}
	}
	for _, who := range j.Culprits {
		if who.Kind != verdict.Missing || !slices.Contains(h.missing, who.Rank) {
			return fmt.Sprintf("%+v", who)
		}
	}
	if !slices.Equal(missing, h.missing) {
		return fmt.Sprintf("missing %v", missing)
	}
	var text strings.Builder
	_ = report.Hang(r).WriteText(&text) // to memory
	want := units.RankNames(missing) + " missing"
	if !strings.Contains(text.String(), want) {
		return fmt.Sprintf("no %q in\n%s", want, text.String())
	}
	return ""
}

// play is the job: its ranks go through some operations, and those that are not missing begin one more.
func (h *hanging) play(t *testing.T) *replay.Recording {
	t.Helper()
	s := scenario.New("hang", h.release)
	ranks := s.Job(h.ranks, scenario.Comm{ID: 0x4a26, Name: "dp"})
	op := scenario.Op{Func: h.function, Steps: 1}
	for range h.ordinal {
		s.All(ranks, scenario.Same(op))
	}
	op.Open = true
	var inside []*scenario.Rank
	for rank, r := range ranks {
		if !slices.Contains(h.missing, rank) {
			r.Call(op)
			inside = append(inside, r)
		}
	}
	s.Advance(200)
	if h.end == "finalize" {
		scenario.Leave(inside)
	}
	return testkit.Value(s.Load(filepath.Join(t.TempDir(), "hang")))(t)
}
