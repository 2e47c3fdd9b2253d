// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/check"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/hang"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/hang/waitfor"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/verdict"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/report"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
	"github.com/nccl-otf2/nccl-otf2/tests/collectors"
)

// hanging is a job in which some ranks never come to an operation.
type hanging struct {
	recording string
	function  string
	ordinal   int
	missing   []int // ranks, of the communicator in which the operation is the first of the recording
	events    string
	end       ending // "kill", "abort" (SIGABRT), "finalize": as after ncclCommAbort, those that are inside
}

type ending string

var hangs = []hanging{
	{"01-allreduce-2p", "AllReduce", 4, []int{1}, "gpu", "kill"},
	{"01-allreduce-2p", "AllReduce", 0, []int{0}, "light", "abort"},
	{"02-allcoll-4p-net", "AllReduce", 3, []int{2}, "net", "kill"},
	{"02-allcoll-4p-net", "AllReduce", 3, []int{2}, "net-sums", "kill"},
	{"02-allcoll-4p-net", "ReduceScatter", 1, []int{0, 3}, "all", "abort"},
	{"02-allcoll-4p-net", "AllGather", 1, []int{1}, "light", "finalize"},
	{"07-twocomms-streams", "AllReduce", 2, []int{0}, "gpu", "finalize"},
	{"08-v5-nccl228-3p", "AllReduce", 2, []int{0, 1}, "gpu", "abort"},
	{"09-straggler-4p", "AllReduce", 7, []int{2}, "gpu", "finalize"},
	{"09-straggler-4p", "AllReduce", 20, []int{1, 2, 3}, "all", "kill"},
}

// Of a job that hangs the report names the operation and who is missing: while it hangs, and when it is dead.
func TestHang(t *testing.T) {
	for _, h := range hangs {
		t.Run(fmt.Sprintf("%s-%s-%d-%s-%s", h.recording, h.function, h.ordinal, h.events, h.end), func(t *testing.T) {
			t.Parallel()
			h.run(t)
		})
	}
}

func (h *hanging) run(t *testing.T) {
	rec, stops := h.cut(t, recording(t, h.recording))
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
	opt.StopAt = func(process int) int { return stops[process] }
	opt.Stopped = func(process, pid int) {
		all.Done()
		<-seen
		switch {
		case h.end == "abort":
			_ = syscall.Kill(pid, syscall.SIGABRT)
		case h.end == "kill" || h.isMissing(rec.Processes[process]):
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
	if fault := h.end.fault(dir, rec, h.missing, hung, time.Since(began)); fault != "" {
		t.Error(fault)
	}
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

// Of recordings of jobs that were killed while nobody went on: the report names what is missing, or in another order,
// says that it was so until the end, and who was killed.
func TestHangUntilTheEnd(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name      string
		operation string
		ordinal   uint64
		missing   []int
		kind      verdict.Kind
		culprit   int
		says      string
	}{
		{"c10-missing-4p", "AllReduce", 16, []int{2}, verdict.Missing, 2,
			"Rank 2 never called AllReduce 16 on hang, which Ranks 0-1,3 are in (for "},
		{"c11-order-3p", "AllReduce", 7, nil, verdict.Order, 0, // on one of the two communicators
			"Rank 0 called AllReduce 7 on order before AllReduce 7 on order.1, Ranks 1-2 the other way round: each " +
				"waits for the other (for "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			rec := testkit.Value(replay.Load(filepath.Join("../testdata/nccl-causes", tc.name)))(t)
			var run struct {
				Truth struct {
					KilledAt uint64 `json:"killedAt"`
				} `json:"truth"`
			}
			text, err := os.ReadFile(filepath.Join(rec.Dir, "run.json"))
			if err == nil {
				err = json.Unmarshal(text, &run)
			}
			testkit.Must(t, err)
			dir := filepath.Join(t.TempDir(), "experiment")
			opt := usual(t, dir, clock(replay.ClockLive), env("NCCL_OTF2_EVENTS=gpu"))
			opt.Pace = replay.PaceRecorded
			opt.StopAt = func(process int) int { return len(rec.Processes[process].Calls) }
			left := func(process int) time.Duration { // to live, after its last call
				calls := rec.Processes[process].Calls
				return time.Duration(run.Truth.KilledAt - calls[len(calls)-1].T)
			}
			opt.Stopped = func(process, pid int) {
				time.Sleep(left(process))
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			began, least := time.Now(), left(0)
			for i := range rec.Processes {
				if !slices.Contains(tc.missing, i) {
					least = min(least, left(i))
				}
			}
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
			defer cancel()
			testkit.Value(replay.Run(ctx, rec, opt))(t)
			collectors.Await(t, dir)
			if fault := ending("kill").fault(dir, rec, tc.missing, least, time.Since(began)); fault != "" {
				t.Error(fault)
			}
			r := testkit.Value(hang.Find(dir, time.Now(), nil))(t)
			c := &r.Jobs[0].Communicators[0]
			var missing []int
			for _, m := range c.Members {
				if m.State == "missing" {
					missing = append(missing, m.Rank)
				}
			}
			if c.Operation != tc.operation || c.Ordinal != tc.ordinal || !slices.Equal(missing, tc.missing) {
				t.Errorf("%+v", c)
			}
			path := unified(t, dir)
			checkSound(t, path, check.Note)
			a := openArchive(t, path)
			for where, culprits := range map[string][]verdict.Culprit{"the shards": r.Jobs[0].Culprits,
				"the archive": waitfor.OfArchive(a.Anchor)} {
				if len(culprits) != 1 || culprits[0].Kind != tc.kind || culprits[0].Rank != tc.culprit ||
					!strings.HasPrefix(culprits[0].Evidence, tc.says) {
					t.Errorf("%s: %+v", where, culprits)
				}
			}
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
	stretches, unnamed := facts.Stretches(a.Anchor)
	if len(stretches) != 1 || unnamed > 0 || stretches[0].First != 7 || stretches[0].Last != 7 ||
		stretches[0].Detail != "Rank 1 asked for 10000 elements, Ranks 0,2 asked for 20000 elements" {
		t.Errorf("%+v", stretches)
	}
	if c := waitfor.OfArchive(a.Anchor); len(c) != 1 || c[0].Kind != verdict.Mismatch || c[0].Rank != 1 {
		t.Errorf("%+v", c)
	}
	r := testkit.Value(operations.Observe(a, new(operations.Observer)))(t)
	if s := &r.Summary; s.Operations != 11 || s.LeftOut != 3 || len(s.Deviations) != 1 {
		t.Errorf("%+v", s)
	}
}

func (h *hanging) isMissing(p *replay.Process) bool {
	return slices.Contains(h.missing, p.Contexts[0].Rank)
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

// cut makes of a recording one in which ranks miss an operation: they do not call it, and what they called before runs
// to its end; on the other ranks what needs them begins and does not end. It tells after how many calls each process
// stands still.
func (h *hanging) cut(t *testing.T, rec *replay.Recording) (*replay.Recording, []int) {
	t.Helper()
	want := expect(rec)
	comm := commKey(rec.Processes[0].Contexts[0])
	for _, p := range rec.Processes { // the communicator that has the function
		if len(want.operations[member{commKey(p.Contexts[0]), p.Contexts[0].Rank}][h.function]) > h.ordinal {
			comm = commKey(p.Contexts[0])
		}
	}
	chosen := func(rank int) *replay.Event {
		ops := want.operations[member{comm, rank}][h.function]
		if len(ops) <= h.ordinal {
			t.Fatalf("rank %d has %d operations %s", rank, len(ops), h.function)
		}
		return ops[h.ordinal].event
	}
	// Where the missing ranks stop, and how many operations each communicator rank has begun then.
	ends := make([]int, len(rec.Processes))
	begun := make(map[member]map[string]int)
	for i, p := range rec.Processes {
		ends[i] = len(p.Calls)
		if h.isMissing(p) {
			root := chosen(p.Contexts[0].Rank)
			for e := root; e != nil; e = e.Parent {
				if e.Start.Index < root.Start.Index {
					root = e
				}
			}
			ends[i] = root.Start.Index
			if g := chosen(p.Contexts[0].Rank).Group; g != nil {
				ends[i] = min(ends[i], g.Start.Index)
			}
		}
		for m, of := range want.operations {
			for key, ops := range of {
				for _, op := range ops {
					if slices.Contains(p.Events, op.event) && op.event.Start.Index < ends[i] {
						if begun[m] == nil {
							begun[m] = make(map[string]int)
						}
						begun[m][key]++
					}
				}
			}
		}
	}
	blocked := make(map[*replay.Event]bool)
	for m, of := range want.operations {
		for key, ops := range of {
			for n, op := range ops {
				for _, p := range rec.Processes {
					for _, x := range p.Contexts {
						o := member{commKey(x), x.Rank}
						if !h.isMissing(p) || o.comm != m.comm || o == m {
							continue
						}
						other := key
						switch {
						case strings.HasPrefix(key, "Send"):
							other = fmt.Sprintf("Recv %d", m.rank)
						case strings.HasPrefix(key, "Recv"):
							other = fmt.Sprintf("Send %d", m.rank)
						}
						if other != key && int(op.Root) != o.rank {
							continue
						}
						if n >= begun[o][other] {
							blocked[op.event] = true
						}
					}
				}
			}
		}
	}
	kept := make([]map[*replay.Call]bool, len(rec.Processes))
	stops := make([]int, len(rec.Processes))
	for i, p := range rec.Processes {
		if !h.isMissing(p) {
			for _, c := range p.Calls { // the application goes on until the first time that something should have ended
				if c.Event != nil && c.Event.Type == replay.TypeKernelCh && c.Kind != replay.CallStart &&
					blocked[c.Event.Parent] {
					ends[i] = c.Index
					break
				}
			}
		}
		kept[i] = make(map[*replay.Call]bool)
		there := make(map[*replay.Event]bool)
		for _, c := range p.Calls {
			e := c.Event
			keep := c.Index < ends[i]
			switch {
			case e == nil:
			case c.Kind == replay.CallStart && !keep: // what NCCL does for operations that were begun
				keep = e.Parent != nil && there[e.Parent] &&
					(e.Type == replay.TypeKernelCh || e.Type == replay.TypeProxyOp || e.Type == replay.TypeProxyStep ||
						e.Type == replay.TypeNetPlugin)
			case c.Kind != replay.CallStart:
				keep = there[e]
			}
			if e != nil && (c.Kind == replay.CallStop &&
				(e.Type == replay.TypeProxyOp || e.Type == replay.TypeProxyStep) || c.Kind != replay.CallStart &&
				e.Type == replay.TypeKernelCh) {
				for o := e; o != nil; o = o.Parent {
					keep = keep && !blocked[o]
				}
			}
			finalize := c.Kind == replay.CallFinalize && h.end == "finalize" && !h.isMissing(p) &&
				kept[i][c.Context.Init]
			if keep && !finalize && c.Kind != replay.CallFinalize {
				stops[i]++
			}
			if keep && c.Kind != replay.CallFinalize || finalize {
				kept[i][c] = true
				if c.Kind == replay.CallStart {
					there[e] = true
				}
			}
		}
	}
	return filtered(t, rec, func(process int, c *replay.Call) bool { return kept[process][c] }), stops
}

// filtered is a recording with some of its calls left out.
func filtered(t *testing.T, rec *replay.Recording, keep func(process int, c *replay.Call) bool) *replay.Recording {
	t.Helper()
	dir := filepath.Join(t.TempDir(), rec.Name)
	testkit.Must(t, os.MkdirAll(dir, 0o777))
	run := make(map[string]any)
	text, err := os.ReadFile(filepath.Join(rec.Dir, "run.json"))
	if err == nil {
		err = json.Unmarshal(text, &run)
	}
	testkit.Must(t, err)
	for _, counted := range []string{"files", "calls", "starts", "states"} {
		delete(run, counted)
	}
	if text, err = json.Marshal(run); err == nil {
		err = os.WriteFile(filepath.Join(dir, "run.json"), text, 0o666)
	}
	testkit.Must(t, err)
	for i, p := range rec.Processes {
		calls := make(map[[2]int]*replay.Call)
		for _, c := range p.Calls {
			calls[[2]int{c.Open, c.Seq}] = c
		}
		in := testkit.Value(os.Open(filepath.Join(rec.Dir, fmt.Sprintf("p%d.rec.jsonl.gz", i))))(t)
		defer in.Close()
		unzipped := testkit.Value(gzip.NewReader(in))(t)
		file := testkit.Value(os.Create(filepath.Join(dir, fmt.Sprintf("p%d.rec.jsonl.gz", i))))(t)
		out := gzip.NewWriter(file)
		open, seq := -1, 0
		lines := bufio.NewScanner(unzipped)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var head struct {
				F   string `json:"f"`
				Seq int    `json:"seq"`
			}
			testkit.Must(t, json.Unmarshal(lines.Bytes(), &head))
			if head.F == "open" {
				open++
				seq = 0
			}
			if c := calls[[2]int{open, head.Seq}]; c != nil && !keep(i, c) {
				continue
			}
			was, now := fmt.Sprintf(`"seq":%d,`, head.Seq), fmt.Sprintf(`"seq":%d,`, seq)
			if !strings.Contains(lines.Text(), was) {
				t.Fatalf("no %s in %s", was, lines.Text())
			}
			seq++
			testkit.Value(fmt.Fprintln(out, strings.Replace(lines.Text(), was, now, 1)))(t)
		}
		testkit.Must(t, lines.Err())
		testkit.Must(t, errors.Join(out.Close(), file.Close()))
	}
	return testkit.Value(replay.Load(dir))(t)
}
