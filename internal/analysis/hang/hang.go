// SPDX-License-Identifier: Apache-2.0

// Package hang finds the operations of a job that are not complete, and the ranks responsible for that, from the
// tables of pending operations in the job's shards.
package hang

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/hang/ras"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/hang/waitfor"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/verdict"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs/progress"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/sequence"
)

// Report lists the operations that are not complete in the jobs of an experiment directory, and the ranks responsible.
// Its sources are the tables of pending operations, which every flush writes to disk, and the number of operations
// that each rank has begun. So it works while the job runs, and also after the job has been killed.
type Report struct {
	Directory string   `json:"directory"`
	Jobs      []Job    `json:"jobs"`
	Problems  []string `json:"problems"`
}

// Job is one job of the directory. Times are nanoseconds since 1970 on its common clock.
type Job struct {
	Processes int `json:"processes"` // processes with data
	Running   int `json:"running"`
	Ended     int `json:"ended"`
	Crashed   int `json:"crashed"` // processes whose collector died as well
	// Died has one sentence for each process that ended abnormally: how it ended, and which one was the first.
	Died []string `json:"died"`
	Last uint64   `json:"last"` // time of the last event or process end; now, if the job is running
	// Looked counts the communicators examined. Communicators has those with an operation that is not complete.
	Looked        int     `json:"communicators_looked_at"`
	Communicators []Stuck `json:"communicators"` // the longest-lasting first
	// Inexact names the processes whose counts may be wrong, because events were lost or another collector took over.
	Inexact []string `json:"inexact"`
	// Stops are the reasons why the job does not continue. Culprits are the ranks responsible, in the form of a
	// verdict.
	Stops    []waitfor.Stop    `json:"stops"`
	Culprits []verdict.Culprit `json:"culprits"`
	// RAS has the statements of NCCL's RAS about the job's communicators; it is empty if RAS was not asked.
	RAS []string `json:"ras,omitempty"`
	// Silent says, where no operation is under way, since when the ranks have been silent, and what is not known.
	Silent string `json:"silent,omitempty"`
	// Partial names the processes that, on request, do not record all operations. What they skip is not seen here.
	Partial []string `json:"partial"`
	// Undated reports that it was imported from snapshots: nothing has a known age.
	Undated bool `json:"undated,omitempty"`
}

// Stuck is the oldest operation of a communicator that is not complete.
type Stuck struct {
	Communicator string `json:"communicator"`
	Ranks        int    `json:"ranks"`
	// Operation is a function ("AllReduce"), or "Send 0>3" for a message from rank 0 to rank 3 of the communicator.
	Operation string    `json:"operation"`
	Words     [2]string `json:"-"`       // the same in words: the text before the ordinal and the text after it
	Ordinal   uint64    `json:"ordinal"` // among the communicator's operations of this function, from 0
	Since     uint64    `json:"since"`   // when the first member began it
	Age       uint64    `json:"age_ns"`  // from Since to the end of the last process in the operation, or to now
	// AtLeast reports that Age is a lower bound: Since is the begin of a later operation, or nobody saw when the
	// processes ended.
	AtLeast bool     `json:"at_least"`
	Verdict Verdict  `json:"verdict"`
	Members []Member `json:"members"` // by rank
	// Behind is the largest number of operations that a member has begun on this communicator after this one.
	Behind int `json:"behind"`
}

// Verdict says why an operation is not complete.
type Verdict string

// Possible verdicts.
const (
	NotReached Verdict = "not reached by all"   // at least one member with data has not called it
	AllInside  Verdict = "all inside"           // every member has called it, but not all have ended it
	NoDataOf   Verdict = "members without data" // all known members have called it
	Different  Verdict = "different operations" // the missing members are in other operations of the communicator
	CalledOnly Verdict = "called by all"        // all calls returned; NCCL does not report the end
	NoPeer     Verdict = "called by one"        // a message whose other end is not yet known
)

// Member describes how far one member has come with an operation.
type Member struct {
	Rank    int    `json:"rank"` // in the communicator
	Name    string `json:"name"` // in the world: "Rank 3"
	Process string `json:"process"`
	Host    string `json:"host"`
	PID     int    `json:"pid"`
	// ProcessState is "running", "ended", "crashed", or how the process ended if it ended abnormally ("killed by
	// SIGKILL"). It is "" if there is no data.
	ProcessState string `json:"process_state"`
	// State is "missing", "calling" (inside NCCL's call), "called" (the call returned, but NCCL has not reported a
	// launch), "enqueued", "running", "done", "no data", or "not known" (the record has gaps, so the member may have
	// called the operation).
	State   string `json:"state"`
	Since   uint64 `json:"since"`             // when the member began the operation; 0 if it has not
	LastNet string `json:"last_net"`          // the last phase of its network traffic, "" if none was seen
	Reached uint64 `json:"reached"`           // operations of this function that it has begun
	Instead string `json:"instead"`           // what a missing member is in instead; "" if unknown
	LastAgo uint64 `json:"last_event_ago_ns"` // from the last event of its process to the job's Last
}

// Find looks for incomplete operations in the shards of an experiment directory. The ages of running jobs are counted
// up to now. status is the answer of NCCL's RAS, which serves as another witness; it is nil if RAS was not asked.
func Find(dir string, now time.Time, status *ras.Status) (*Report, error) {
	all, problems, err := progress.List(dir)
	if err != nil {
		return nil, err
	}
	r := &Report{Directory: dir, Jobs: []Job{}, Problems: append([]string{}, problems...)}
	for _, j := range all {
		h := hangOf(j, uint64(max(now.UnixNano(), 0)))
		h.Stops = append([]waitfor.Stop{}, waitfor.Find(j, now)...)
		h.Culprits = waitfor.Culprits(j, h.Stops)
		if len(h.Stops) == 0 {
			h.Silent = waitfor.Silence(j, now)
		}
		h.hear(j, status)
		r.Jobs = append(r.Jobs, h)
	}
	return r, nil
}

func hangOf(j *progress.Job, now uint64) Job {
	h := Job{Processes: len(j.Processes), Looked: len(j.Communicators), Communicators: []Stuck{}, Inexact: []string{},
		Partial: []string{},
		Died:    append([]string{}, j.Deaths...)}
	for _, p := range j.Processes {
		h.Last = max(h.Last, p.Last, p.Ended)
		switch p.State {
		case jobs.Running:
			h.Running++
		case jobs.Crashed:
			h.Crashed++
		default:
			h.Ended++
		}
		h.Undated = h.Undated || p.Snapshot
		if p.Lossy || p.Continued {
			h.Inexact = append(h.Inexact, p.Name)
		}
		if p.Paused {
			h.Partial = append(h.Partial, p.Name)
		}
	}
	if h.Running > 0 {
		h.Last = max(h.Last, now)
	}
	doing := whatRanksDo(j)
	for _, c := range j.Communicators {
		if found := stuck(c, doing); found != nil {
			found.age(c, h.Last)
			for i := range found.Members {
				if r := c.Ranks[found.Members[i].Rank]; r != nil {
					found.Members[i].LastAgo = h.Last - min(h.Last, r.Process.Last)
				}
			}
			h.Communicators = append(h.Communicators, *found)
		}
	}
	slices.SortStableFunc(h.Communicators, func(a, b Stuck) int { return a.compare(&b) })
	return h
}

// age sets Age: the time from Since to the end of the last process in the operation, or to now if that process is
// still running; 0 in imported snapshots. If nobody saw the process end, its last event is taken instead and the age is
// a lower bound.
func (h *Stuck) age(c *progress.Communicator, now uint64) {
	end, seen := uint64(0), false
	for i := range h.Members {
		r := c.Ranks[h.Members[i].Rank]
		if r == nil || !h.Members[i].Inside() {
			continue
		}
		if r.Process.Snapshot {
			return // not known
		}
		until, known := r.Process.Ended, true
		switch {
		case r.Process.State == jobs.Running:
			until = now
		case until == 0:
			until, known = r.Process.Last, false
		}
		if until > end || until == end && known {
			end, seen = max(until, end), known
		}
	}
	h.Age = end - min(end, h.Since)
	h.AtLeast = h.AtLeast || !seen
}

// Inside reports whether the member has begun the operation and is not known to have ended it.
func (m *Member) Inside() bool {
	return m.State != "missing" && m.State != "done" && m.State != "no data" && m.State != "not known"
}

// compare puts the operations that are known not to have ended first, and within each group the oldest first.
func (h *Stuck) compare(o *Stuck) int {
	return cmp.Or(cmp.Compare(analysis.BoolCount(h.Verdict == CalledOnly), analysis.BoolCount(o.Verdict == CalledOnly)),
		cmp.Compare(h.Since, o.Since))
}

// pendingOf is an operation that a rank has under way on a communicator.
type pendingOf struct {
	comm *progress.Communicator
	rank *progress.Rank
	description.Pending
}

// whatRanksDo lists the operations that each process has under way, the oldest first.
func whatRanksDo(j *progress.Job) map[*progress.Process][]pendingOf {
	all := make(map[*progress.Process][]pendingOf)
	for _, c := range j.Communicators {
		for _, r := range c.Ranks {
			if r == nil {
				continue
			}
			for _, p := range r.Pending {
				all[r.Process] = append(all[r.Process], pendingOf{c, r, p})
			}
		}
	}
	for _, list := range all {
		slices.SortStableFunc(list, func(a, b pendingOf) int { return cmp.Compare(a.Since, b.Since) })
	}
	return all
}

// namesOf returns the name of a sequence as results show it, and in words: the text before the ordinal and after it.
func namesOf(c *progress.Communicator, s *progress.Sequence) (name string, words [2]string) {
	switch {
	case s.Pair != nil:
		return s.Name, [2]string{"Send", fmt.Sprintf(" from %s to %s", c.Names[s.Pair.From], c.Names[s.Pair.To])}
	case s.Rank >= 0:
		return fmt.Sprintf("%s of rank %d", s.Name, s.Rank), [2]string{s.Name, " of " + c.Names[s.Rank]}
	}
	return s.Name, [2]string{s.Name}
}

// stuck returns the operation of a communicator that has been under way the longest, or nil if there is none.
func stuck(c *progress.Communicator, doing map[*progress.Process][]pendingOf) *Stuck {
	var oldest *Stuck
	for _, s := range c.Sequences() {
		for _, ordinal := range s.Incomplete() {
			h := look(c, &s, ordinal, doing)
			if h == nil {
				continue
			}
			if oldest == nil || h.compare(oldest) < 0 {
				oldest = h
			}
			if h.Verdict != CalledOnly {
				break
			}
		}
	}
	return oldest
}

// look describes the members of an operation. It returns nil if the operation may well be complete.
func look(c *progress.Communicator, s *progress.Sequence, ordinal uint64,
	doing map[*progress.Process][]pendingOf) *Stuck {
	h := &Stuck{Communicator: c.Name, Ranks: c.Size, Ordinal: ordinal}
	h.Operation, h.Words = namesOf(c, s)
	seen := func(since uint64, later bool) {
		if since != 0 && (h.Since == 0 || h.AtLeast && !later || h.AtLeast == later && since < h.Since) {
			h.Since, h.AtLeast = since, later
		}
	}
	left := true // all members in the operation have finalized the communicator
	states := make(map[string]int)
	elsewhere := 0
	for rank, key := range s.Members {
		m := Member{Rank: rank, Name: c.Names[rank], State: "no data"}
		if r := c.Ranks[rank]; r != nil {
			switch p := m.of(r, key, ordinal); {
			case p != nil:
				seen(p.Since, false)
				left = left && p.Left
			case m.State == "missing":
				elsewhere += int(analysis.BoolCount(m.lookElsewhere(r, doing)))
			case m.State == "not known":
			default:
				seen(r.Begun, true)
			}
			h.Behind = max(h.Behind, behind(r, key, ordinal))
		}
		states[m.State]++
		h.Members = append(h.Members, m)
	}
	inside := states["calling"] + states["enqueued"] + states["running"]
	switch missing := states["missing"]; {
	case missing > 0 && elsewhere == missing:
		h.Verdict = Different
	case missing > 0:
		h.Verdict = NotReached
	case left:
		return nil
	case s.Rank >= 0:
		h.Verdict = NoPeer
	case inside == 0:
		h.Verdict = CalledOnly
	case states["no data"]+states["not known"] > 0:
		h.Verdict = NoDataOf
	default:
		h.Verdict = AllInside
	}
	return h
}

// behind counts the operations that a rank has begun on the communicator after the given one and has under way.
func behind(r *progress.Rank, key string, ordinal uint64) (n int) {
	this := r.UnderWay(key, ordinal)
	if this == nil {
		return 0
	}
	for i := range r.Pending {
		if p := &r.Pending[i]; p != this && p.Since > this.Since {
			n++
		}
	}
	return n
}

// states maps a member's standing to its state. A member that has the operation under way has a more detailed state.
var states = map[progress.Standing]string{
	progress.StandingUnknown: "not known", progress.NotBegun: "missing", progress.Ended: "done",
	progress.Begun: "enqueued"}

// of fills in how far a member has come with an operation, and returns its pending entry if the operation is under
// way.
func (m *Member) of(r *progress.Rank, key string, ordinal uint64) *description.Pending {
	p := r.Process
	m.Process, m.Host, m.PID = p.Name, p.Host, p.PID
	m.ProcessState = p.Describe()
	m.Reached = r.Reached[key]
	standing, pending := r.Standing(key, ordinal)
	m.State = states[standing]
	if pending != nil {
		m.State, m.Since, m.LastNet = pending.State, pending.Since, pending.LastNet
	}
	return pending
}

// lookElsewhere sets Instead to the oldest operation that the member's GPU is in, preferring operations of the same
// communicator. It reports whether the operation is one of the same communicator.
func (m *Member) lookElsewhere(r *progress.Rank, doing map[*progress.Process][]pendingOf) bool {
	for _, d := range doing[r.Process] {
		if d.rank == r {
			m.Instead = d.words() + " on this communicator"
			return true
		}
		if m.Instead == "" && r.SameGPU(d.rank) {
			m.Instead = d.words() + " on " + d.comm.Name
		}
	}
	if m.Instead == "" && r.Finalized {
		m.Instead = "nothing: it has finalized the communicator"
	}
	return false
}

// words names the operation in words.
func (d *pendingOf) words() string {
	if pair, ok := sequence.PairOf(d.Function, -1); ok {
		switch peer := max(pair.From, pair.To); {
		case peer >= len(d.comm.Names):
		case pair.To == peer:
			return fmt.Sprintf("Send %d to %s", d.Ordinal, d.comm.Names[peer])
		default:
			return fmt.Sprintf("Recv %d from %s", d.Ordinal, d.comm.Names[peer])
		}
	}
	return fmt.Sprintf("%s %d", d.Function, d.Ordinal)
}
