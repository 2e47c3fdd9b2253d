// SPDX-License-Identifier: Apache-2.0

// Package live follows a job while it is being recorded: what it does now, and what it did in the last seconds, from
// its shards.
package live

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/hang/waitfor"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/waits"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs/progress"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/rawfiles"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/sequence"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/lateness"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/membership"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/timing"
	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// View shows the state of a job that is being recorded, and what it did in the last seconds.
//
// The source is what the collectors of the job's processes have written so far. They write every 2 s, and
// write operations with GPU times 2 s after these have ended. So the view is some seconds behind: its time ends with
// the latest operation known to have ended on all its ranks (Age ago).
type View struct {
	Time      time.Time `json:"time"`
	Directory string    `json:"directory"`
	State     State     `json:"state"`
	// Jobs is the number of jobs in the directory. The view shows the running one with the latest event.
	Jobs      int      `json:"jobs"`
	Processes int      `json:"processes"` // processes with data
	Running   int      `json:"running"`
	Ended     int      `json:"ended"`
	Crashed   int      `json:"crashed"` // processes whose collector died as well
	Died      []string `json:"died"`    // how each process that ended abnormally ended, and which was the first
	Hosts     int      `json:"hosts"`
	// Done counts the operations that have ended on some rank so far; messages count at their sender.
	Done    uint64            `json:"operations"`
	Lost    uint64            `json:"lost"`    // events that could not be recorded so far
	LostBy  map[string]uint64 `json:"lost_by"` // by reason
	Partial int               `json:"partial"` // processes that, on request, do not record everything
	// Window is the length of the time shown, which ends Age before Time; 0: nothing has been seen.
	Window     uint64      `json:"window_ns"`
	Age        uint64      `json:"age_ns"`
	Rate       float64     `json:"operations_per_second"`
	Bytes      float64     `json:"bytes_per_second"` // sizes of operations, as nccl-tests counts them
	Operations []Operation `json:"by_operation"`     // the ones with the most time first
	Ranks      []Rank      `json:"ranks"`
	// Compared counts the collectives for which the waiting ranks are known. A communicator's first one is left out,
	// unless it is the only one.
	Compared    uint64 `json:"compared"`
	NotCompared uint64 `json:"not_compared"` // the others: without comparable times, or rooted ones on several hosts
	// Skipped reports that there was too much data to follow, and that parts of it were left out.
	Skipped bool `json:"skipped"`
	// Stops are the reasons why the job does not continue, as in hang.Report, at most some seconds old. For a running
	// job they are those that it cannot overcome by itself, or that are older than operations usually are.
	Stops []waitfor.Stop `json:"stops"`
	// Silent says, where nothing is under way, since when the ranks have been silent (waitfor.Silence).
	Silent   string   `json:"silent,omitempty"`
	Over     bool     `json:"-"` // no process has run for a while, and none is expected to start
	Problems []string `json:"problems"`
}

// State is the state of a job.
type State string

// States of a job.
const (
	LiveWaiting State = "waiting" // there is no job yet
	LiveRunning State = "running"
	LiveEnded   State = "ended" // no process is running
)

// Operation sums up a function on a communicator.
type Operation struct {
	Communicator string  `json:"communicator"`
	Ranks        int     `json:"ranks"`
	Operation    string  `json:"operation"` // "SendRecv" for messages, with the sender's times
	Rate         float64 `json:"operations_per_second"`
	Size         uint64  `json:"size"` // mean
	// Timed counts the operations in Avg: not those of start-up, and not those whose running time is unknown.
	Timed uint64  `json:"timed"`
	Avg   float64 `json:"avg_ns"` // mean over members and operations; 0: there are none
	// TimingSource is the source of the times, the weakest of all members: "gpu", "network", or "enqueue" if only the
	// launches are known and there are no times.
	TimingSource string `json:"timing_source"`
	// BusBW is in GB/s, as in the report: each operation counts with the median of its size. 0: unknown.
	BusBW float64 `json:"busbw"`
	// Waiting is the part of the members' time that they waited for the last one; 0 also if unknown.
	Waiting  float64 `json:"waiting"`
	Compared uint64  `json:"compared"` // operations in which Waiting is known
	busy     float64
}

// Rank is a process, or a GPU of a process with several.
type Rank struct {
	Rank  string  `json:"rank"`
	Host  string  `json:"host"`
	PID   int     `json:"pid"`
	State string  `json:"state"` // "running", "ended", how it died ("killed by SIGKILL"), "crashed"
	Rate  float64 `json:"operations_per_second"`
	// Inside is the part of the window that the rank was in operations whose running time is known; it exceeds 1 if
	// they overlap.
	Inside  float64 `json:"inside"`
	Waiting float64 `json:"waiting"` // part of the window that it waited in collectives
	Caused  float64 `json:"caused"`  // part of all waiting that this rank caused
	Lost    uint64  `json:"lost"`    // events lost by its process
}

const (
	// liveBuckets is the number of parts in a window, which advances by one part at a time.
	liveBuckets = 20
	// livePending limits the parts of operations that are kept until those of all members have come.
	livePending = 1 << 16
	// liveBytes limits the bytes of all event files that are read in one look. The rest is skipped.
	liveBytes = 48 << 20
	// liveLag is how late an operation may become known while the job is running: two flushes of a collector and a
	// margin.
	liveLag = 5 * time.Second
)

// Follower follows the job of an experiment directory. It only reads. It keeps the sums of one window, the operations
// that are not complete, and the descriptions of the job's processes.
type Follower struct {
	dir    string
	window time.Duration
	bytes  int64 // liveBytes

	shards   map[string]*liveShard // by path; nil before the first look
	comms    map[otf2.CommRef]*liveComm
	known    map[shardComm]otf2.CommRef
	assembly *analysis.Assembly
	waits.Arrivals
	rankOf map[liveUnit]int // ranks are numbered in the order in which they were first seen
	ranks  []Rank           // in world order
	order  []int            // the numbers of ranks

	buckets  map[uint64]*liveBucket // by time / (window / liveBuckets)
	begin    otf2.Timestamp         // begin of the time seen without gaps
	newest   otf2.Timestamp         // end of the latest operation that all members ended
	advanced time.Time              // when newest was last seen to move
	moved    bool                   // newest moved in this look
	skipped  bool                   // this look left out parts
	ended    time.Time              // time since which no process has run
	stops    []waitfor.Stop         // the latest result of waitfor.Find
	silent   string                 // and of waitfor.Silence
	asked    time.Time              // time of that result
}

// shardComm identifies a communicator in a shard.
type shardComm struct {
	path string
	comm int
}

// New returns a Follower of a directory, which need not exist yet. window is the time that views cover.
func New(dir string, window time.Duration) *Follower {
	return &Follower{dir: dir, window: window, bytes: liveBytes}
}

// liveUnit identifies a rank of the job: a GPU of a process.
type liveUnit struct {
	shard string // the process's first
	gpu   int
}

type liveRowKey struct {
	comm     otf2.CommRef
	function string
}

// liveSize distinguishes operations of a function for their bandwidth.
type liveSize struct {
	size   uint64
	factor float64 // nccl-tests' bus bandwidth factor
}

// liveSizes limits the sizes of a function in a part of the window. Operations of further sizes are in no bandwidth.
const liveSizes = 64

// liveComm is a communicator of the job.
type liveComm struct {
	membership.Communicator
	expected int  // members with data
	started  bool // its first collective has been seen
	// only has the members of the first collective until a second follows: a communicator's only collective is not its
	// start-up.
	only         []analysis.Operation
	severalHosts bool // members are on several hosts
	hosts        map[otf2.LocationRef]string
}

// liveShard is what is kept about a shard between looks.
type liveShard struct {
	reader *analysis.OperationReader
	names  liveNames
	at     func(uint64) uint64
	tails  map[otf2.LocationRef]*liveTail
	number uint64
}

// liveTail is a location that is being followed.
type liveTail struct {
	*otf2.EventTail
	location otf2.LocationRef
	plan     uint64 // the last launch whose time has been counted
	synced   bool   // the position is between operations
	size     int64  // size of the file at the flush before, from its shard
	bad      bool   // its data is damaged
}

// liveBucket sums up a part of the window.
type liveBucket struct {
	rows  map[liveRowKey]*liveSum
	ranks []liveRankSum

	compared, notCompared uint64
}

type liveSum struct {
	source          facts.Source // the weakest of all members
	n, compared     uint64
	bytes           float64                    // of all operations
	timed           uint64                     // operations with a time
	timedSource     facts.Source               // the weakest source of those
	time            float64                    // sum of the operations' mean times, without start-up
	busy            float64                    // time of all members together
	speeds          map[liveSize]*timing.Speed // of the operations with a known bandwidth
	inside, waiting float64                    // times of the compared members
}

type liveRankSum struct {
	operations             uint64
	inside, waited, caused float64
}

// Look reads what has been written since the last look and returns the current view.
func (l *Follower) Look(now time.Time) (*View, error) {
	v := &View{
		Time: now, Directory: l.dir, State: LiveWaiting, LostBy: make(map[string]uint64),
		Operations: []Operation{}, Ranks: []Rank{}, Problems: []string{}, Died: []string{}, Stops: []waitfor.Stop{},
	}
	all, problems, err := progress.List(l.dir)
	v.Problems = append(v.Problems, problems...)
	if errors.Is(err, fs.ErrNotExist) {
		if len(rawfiles.Find(l.dir)) > 0 {
			v.Problems = append(
				v.Problems,
				"the job is recorded without collectors, into raw files: run `nccl-otf2 unify` when it has ended")
		}
		return v, nil
	}
	if err != nil {
		if len(problems) > 0 { // no process has described its shards yet
			return v, nil
		}
		return v, err
	}
	job := latest(all)
	v.Jobs = len(all)
	l.adoptShards(job)
	l.state(v, job, now)
	l.read(job, v)
	if v.State == LiveEnded {
		l.compareOnly()
	}
	l.sum(v)
	l.stop(v, job, now)
	return v, nil
}

// stop adds the reasons why the job does not continue. Finding them requires the tables of all processes, so it is not
// done in every look.
func (l *Follower) stop(v *View, j *progress.Job, now time.Time) {
	if l.asked.IsZero() || now.Sub(l.asked) >= liveLag || v.State == LiveEnded {
		l.stops, l.silent, l.asked = waitfor.Find(j, now), "", now
		if len(l.stops) == 0 {
			l.silent = waitfor.Silence(j, now)
		}
	}
	v.Silent = l.silent
	for _, s := range l.stops {
		if s.Certain || s.Seen || s.Age >= waitfor.Young || v.State == LiveEnded {
			v.Stops = append(v.Stops, s)
		}
	}
}

// latest returns the job with the latest event, of the running ones if any is running.
func latest(all []*progress.Job) *progress.Job {
	best := all[0]
	for _, j := range all[1:] {
		if runs, r := running(j) > 0, running(best) > 0; runs != r && runs || runs == r && j.Last() > best.Last() {
			best = j
		}
	}
	return best
}

func running(j *progress.Job) (n int) {
	for _, p := range j.Processes {
		n += int(analysis.BoolCount(p.State == jobs.Running))
	}
	return n
}

// state counts the processes by their state.
func (l *Follower) state(v *View, j *progress.Job, now time.Time) {
	hosts := make(map[string]bool)
	size := 0
	for _, p := range j.Processes {
		hosts[p.Host] = true
		size = max(size, p.Size)
		switch p.State {
		case jobs.Running:
			v.Running++
		case jobs.Crashed:
			v.Crashed++
		default:
			v.Ended++
		}
		v.Lost += p.Lost
		for reason, n := range p.Losses {
			v.LostBy[reason] += n
		}
		v.Partial += int(analysis.BoolCount(p.Paused))
	}
	v.Died = append([]string{}, j.Deaths...)
	v.Processes, v.Hosts, v.State = len(j.Processes), len(hosts), LiveRunning
	for _, c := range j.Communicators {
		v.Done += doneOn(c)
	}
	if v.Running > 0 {
		l.ended = time.Time{}
		return
	}
	v.State = LiveEnded
	// Processes of a job need not run at the same time: others may be about to start.
	if l.ended.IsZero() {
		l.ended = now
	}
	patience := 2 * time.Second
	if size > len(j.Processes) {
		patience = 30 * time.Second
	}
	v.Over = now.Sub(l.ended) >= patience
}

// doneOn counts the operations that have ended on a communicator.
func doneOn(c *progress.Communicator) (n uint64) {
	collectives := make(map[string]uint64)
	for _, r := range c.Ranks {
		if r == nil {
			continue
		}
		for key, done := range r.Done {
			switch function := sequence.FunctionOf(key); {
			case function != key && function == "Send":
				n += done
			case !facts.IsMessage(function):
				collectives[key] = max(collectives[key], done)
			}
		}
	}
	for _, done := range collectives {
		n += done
	}
	return n
}

// adoptShards takes over the descriptions of the shards.
func (l *Follower) adoptShards(j *progress.Job) {
	if !l.follows(j) {
		l.shards, l.comms, l.known = make(map[string]*liveShard), make(map[otf2.CommRef]*liveComm),
			make(map[shardComm]otf2.CommRef)
		l.rankOf = make(map[liveUnit]int)
		l.buckets = make(map[uint64]*liveBucket)
		l.begin, l.newest, l.advanced = 0, 0, time.Time{}
		l.assembly = analysis.NewAssembly(l.finish, func([]analysis.Operation) {})
		l.assembly.Most = livePending
	}
	l.describeRanks(j)
	l.Of = make(map[otf2.LocationRef]int)
	for _, c := range j.Communicators {
		lc := l.communicator(c)
		hosts := make(map[string]bool)
		for rank, r := range c.Ranks {
			if r == nil {
				continue
			}
			lc.expected++
			hosts[r.Process.Host] = true
			for _, p := range r.Parts {
				l.followRank(lc, rank, r, &p)
			}
		}
		lc.severalHosts = len(hosts) > 1
	}
}

// follows reports whether the job is the one of the last look.
func (l *Follower) follows(j *progress.Job) bool {
	for _, c := range j.Communicators {
		for _, r := range c.Ranks {
			if r != nil && slices.ContainsFunc(r.Parts, func(p progress.Part) bool { return l.shards[p.Path] != nil }) {
				return true
			}
		}
	}
	return l.shards != nil && len(l.shards) == 0
}

// communicator finds the state kept for a communicator, by any of its parts that was there before.
func (l *Follower) communicator(c *progress.Communicator) *liveComm {
	ref := otf2.CommRef(len(l.comms))
	for _, r := range c.Ranks {
		if r == nil {
			continue
		}
		for _, p := range r.Parts {
			if known, ok := l.known[shardComm{p.Path, p.Comm}]; ok {
				ref = known
			}
		}
	}
	lc := keyed.EntryMade(l.comms, ref, func() *liveComm {
		return &liveComm{Communicator: membership.Communicator{Ref: ref, Members: make([]otf2.LocationRef, c.Size),
			Ranks: make(map[otf2.LocationRef]int)}}
	})
	lc.Name, lc.expected, lc.hosts = c.Name, 0, make(map[otf2.LocationRef]string)
	for _, r := range c.Ranks {
		if r == nil {
			continue
		}
		for _, p := range r.Parts {
			l.known[shardComm{p.Path, p.Comm}] = ref
		}
	}
	return lc
}

// followRank follows the row of a communicator rank.
func (l *Follower) followRank(lc *liveComm, rank int, r *progress.Rank, p *progress.Part) {
	number := p.Shard.Comms[p.Comm].Location
	at := slices.IndexFunc(p.Shard.Locations, func(l description.Location) bool { return int(l.Number) == number })
	if at < 0 {
		return // it has no events yet
	}
	where := &p.Shard.Locations[at]
	s := l.shards[p.Path]
	if s == nil {
		s = &liveShard{tails: make(map[otf2.LocationRef]*liveTail), number: uint64(len(l.shards))}
		s.names.CommTable = make(map[otf2.CommRef]*membership.Communicator)
		s.reader = analysis.NewOperationsOf(&s.names, nil, s.names.CommTable,
			func(o *analysis.Operation) { l.add(s, o) })
		l.shards[p.Path] = s
	}
	s.at = p.At
	s.names.process = facts.ShardNames(p.Shard)
	location := otf2.LocationRef(uint64(number)<<32 | s.number)
	lc.Members[rank], lc.Ranks[location], lc.hosts[location] = location, rank, r.Process.Host
	s.reader.Comms[otf2.CommRef(p.Comm)] = &lc.Communicator
	s.reader.Member[location] = true
	l.Of[location] = l.rankOf[liveUnit{r.Process.Shard, p.Shard.Comms[p.Comm].GPU}]
	t := s.tails[location]
	if t == nil {
		tail, err := otf2.NewEventTail(experiment.EventFile(p.Path, where.Number), location, p.Shard.EventChunkSize)
		if err != nil {
			return // its description is not plausible; Jobs has checked the chunk size
		}
		t = &liveTail{EventTail: tail, location: location}
		s.tails[location] = t
	}
	t.size = where.Bytes
}

// liveNames resolves the ids of a shard by its current description. Unlike [facts.ShardNames], which knows a single
// process, it knows communicators with all their members, under the follower's own location ids.
type liveNames struct {
	process
	membership.CommTable
}

// process resolves the names of regions and strings.
type process interface {
	String(otf2.StringRef) string
	RegionName(otf2.RegionRef) string
}

// describeRanks lists the ranks: processes, or the GPUs of processes that have communicators on several.
func (l *Follower) describeRanks(j *progress.Job) {
	gpus := make(map[*progress.Process]map[int]int) // GPU → its number for people
	for _, c := range j.Communicators {
		for _, r := range c.Ranks {
			if r == nil {
				continue
			}
			for _, p := range r.Parts {
				gpu, device := p.Shard.Comms[p.Comm].GPU, -1
				if gpu >= 0 && gpu < len(p.Shard.GPUs) {
					device = p.Shard.GPUs[gpu].Device
				}
				keyed.Map(gpus, r.Process)[gpu] = device
			}
		}
	}
	l.ranks, l.order = l.ranks[:0], l.order[:0]
	for _, p := range j.Processes {
		row := Rank{Rank: p.Name, Host: p.Host, PID: p.PID, State: p.Describe(), Lost: p.Lost}
		units := slices.Sorted(maps.Keys(gpus[p]))
		if len(units) == 0 {
			units = []int{-1} // no communicator yet
		}
		for _, gpu := range units {
			if len(units) > 1 {
				row.Rank = fmt.Sprintf("%s GPU %d", p.Name, gpus[p][gpu])
			}
			unit := liveUnit{p.Shard, gpu}
			if _, known := l.rankOf[unit]; !known {
				l.rankOf[unit] = len(l.rankOf)
			}
			l.ranks, l.order = append(l.ranks, row), append(l.order, l.rankOf[unit])
		}
	}
}

// read reads the new events of all event files.
func (l *Follower) read(j *progress.Job, v *View) {
	backlog := int64(0)
	var tails []*liveTail
	var of []*liveShard
	for _, path := range slices.Sorted(maps.Keys(l.shards)) {
		s := l.shards[path]
		for _, at := range slices.Sorted(maps.Keys(s.tails)) {
			t := s.tails[at]
			tails, of = append(tails, t), append(of, s)
			backlog += max(0, t.size-t.Offset())
		}
	}
	// In the first look, and if there is too much to follow, only the last stretch of time is read, the same on all
	// ranks.
	switch {
	case backlog > l.bytes:
		l.skip(j, tails, of, uint64(l.window)*uint64(l.bytes)/uint64(backlog)/2)
	case l.begin == 0:
		l.skip(j, tails, of, uint64(l.window))
	}
	v.Skipped, l.skipped = l.skipped, false
	for i, t := range tails {
		if t.bad {
			continue
		}
		for ev, err := range t.Events() {
			if err != nil {
				t.bad = true
				v.Problems = append(v.Problems, err.Error())
				break
			}
			if !t.synced {
				if !facts.Resumes(ev) {
					continue
				}
				t.synced = true
			}
			of[i].reader.Event(ev)
		}
	}
	if reach := otf2.Timestamp(max(3*l.window, 30*time.Second)); l.newest > reach {
		l.assembly.AbandonBefore(l.newest - reach)
	}
}

// skip moves each location to where at most stretch ns are left, unless it is already beyond that.
func (l *Follower) skip(j *progress.Job, tails []*liveTail, of []*liveShard, stretch uint64) {
	last := j.Last()
	began := first(j)
	if last < began+stretch { // all of it is to be read
		l.begin = otf2.Timestamp(max(began, 1))
		return
	}
	from := last - stretch
	moved := false
	for i, t := range tails {
		// The offset of the shard's clock is the same at all times.
		own := from - (of[i].at(from) - from)
		before := t.Offset()
		if err := t.SkipTo(otf2.Timestamp(own)); err != nil {
			continue // reading reports the error
		}
		if t.Offset() != before {
			moved, t.synced, t.plan = true, false, 0
			of[i].reader.Forget(t.location)
		}
	}
	if l.begin == 0 || moved {
		l.skipped = l.begin != 0
		l.begin = otf2.Timestamp(from)
	}
}

// first returns when the job's first communicator was made. Events before that belong to no rank.
func first(j *progress.Job) (t uint64) {
	for _, c := range j.Communicators {
		for _, r := range c.Ranks {
			if r == nil {
				continue
			}
			for _, p := range r.Parts {
				if at := p.At(p.Shard.Comms[p.Comm].InitTime); t == 0 || at < t {
					t = at
				}
			}
		}
	}
	return t
}

// add adds a member's operation.
func (l *Follower) add(s *liveShard, o *analysis.Operation) {
	lc := l.comms[o.Communicator.Ref]
	o.Begin, o.End = otf2.Timestamp(s.at(uint64(o.Begin))), otf2.Timestamp(s.at(uint64(o.End)))
	rank := l.Of[o.Location]
	l.bucket(o.End).ranks[rank].operations++
	t := s.tails[o.Location]
	if o.Source.HasPlace() && (o.Launch == 0 || o.Launch != t.plan) { // operations launched together have one time
		t.plan = o.Launch
		l.spread(o.Begin, o.End, func(b *liveBucket, ns float64) { b.ranks[rank].inside += ns })
	}
	switch o.Function {
	case "Recv":
	case "Send":
		var t timing.Whole
		t.Add(&o.Operation)
		t.Close(false)
		l.count(o, liveRowKey{o.Communicator.Ref, analysis.SendRecv}, 1, &t)
	default:
		l.assembly.Add(analysis.PartKey{Comm: o.Communicator.Ref, Sequence: o.Function, Ordinal: o.Ordinal}, o,
			lc.expected)
	}
}

// finish adds a collective that all members have ended.
func (l *Follower) finish(members []analysis.Operation) {
	o := members[0]
	var t timing.Whole
	for i := range members {
		m := &members[i]
		o.End, o.Begin, o.Size = max(o.End, m.End), min(o.Begin, m.Begin), max(o.Size, m.Size)
		t.Add(&m.Operation)
	}
	t.Close(false)
	l.count(&o, liveRowKey{o.Communicator.Ref, o.Function}, len(members), &t)
	if slices.ContainsFunc(members, func(m analysis.Operation) bool { return !m.Leads }) {
		return // its launch is counted with the launch's first operation
	}
	c := l.comms[o.Communicator.Ref]
	startUp := facts.IsStartUp(!c.started, o.Ordinal)
	c.started = true
	if startUp {
		c.only = slices.Clone(members)
		return
	}
	c.only = nil
	l.compare(c, o.End, members)
}

// compareOnly compares the collectives that were the only ones of their communicators. It is called when the job has
// ended.
func (l *Follower) compareOnly() {
	for _, ref := range slices.Sorted(maps.Keys(l.comms)) {
		c := l.comms[ref]
		if len(c.only) == 0 {
			continue
		}
		end := otf2.Timestamp(0)
		for i := range c.only {
			end = max(end, c.only[i].End)
		}
		l.compare(c, end, c.only)
		c.only = nil
	}
}

// compare adds the waiting in a collective that ended at the time end.
func (l *Follower) compare(c *liveComm, end otf2.Timestamp, members []analysis.Operation) {
	b := l.bucket(end)
	sum := b.rows[liveRowKey{c.Ref, members[0].Function}]
	if sum == nil {
		return // it is no longer in the window
	}
	var a *waits.Arrival
	if c.align(members) {
		a = l.Arrive(members)
	}
	if a == nil {
		b.notCompared++
		return
	}
	b.compared++
	sum.compared++
	for i := range a.Parts {
		p := &a.Parts[i]
		sum.inside += float64(p.Time)
		sum.waiting += float64(p.Waits)
		if p.Waits > 0 {
			l.spread(p.Begin, p.Begin+otf2.Timestamp(p.Waits), func(b *liveBucket, ns float64) {
				b.ranks[p.Rank].waited += ns
				b.ranks[a.Culprit].caused += ns
			})
		}
	}
}

// align corrects the clocks of several hosts for one collective by its ends: if everybody waits for everybody, all end
// at about the same time. Nothing better is known while a job runs. It returns false if this does not apply to the
// operation.
func (c *liveComm) align(members []analysis.Operation) bool {
	if !c.severalHosts {
		return true
	}
	if members[0].Collective == nil || lateness.WaitKindOf(members[0].Collective) != lateness.WaitCollective {
		return false
	}
	ends, end := make(map[string]otf2.Timestamp), otf2.Timestamp(0)
	for i := range members {
		m := &members[i]
		host := c.hosts[m.Location]
		ends[host], end = max(ends[host], m.End), max(end, m.End)
	}
	for i := range members {
		m := &members[i]
		by := end - ends[c.hosts[m.Location]]
		m.Begin, m.End = m.Begin+by, m.End+by
	}
	return true
}

// count adds an operation of several members to its row.
func (l *Follower) count(o *analysis.Operation, key liveRowKey, members int, t *timing.Whole) {
	if o.End > l.newest {
		l.newest, l.moved = o.End, true
	}
	b := l.bucket(o.End)
	s := keyed.Entry(b.rows, key)
	if s.n++; s.n == 1 || t.Source < s.source {
		s.source = t.Source
	}
	s.bytes += float64(o.Size)
	s.addTime(t)
	s.busy += t.Time * float64(members)
	if t.HasBandwidth() && t.Time > 0 {
		s.speed(liveSize{o.Size, o.BusFactor(o.Communicator.Size())}).Add(t, false)
	}
}

// addTime adds a time as in the report: unless it belongs to start-up, has members with different sources, or is not
// the operation's running time.
func (s *liveSum) addTime(t *timing.Whole) {
	if t.StartUp || t.Mixed || !t.Source.HasLength() {
		return
	}
	if s.timed++; s.timed == 1 || t.Source < s.timedSource {
		s.timedSource = t.Source
	}
	s.time += t.Time
}

// speed returns the entry for a size. If there are too many sizes, the entry is new and is not kept.
func (s *liveSum) speed(size liveSize) *timing.Speed {
	x := s.speeds[size]
	if x == nil {
		speed := timing.NewSpeed()
		x = &speed
		if s.speeds == nil {
			s.speeds = make(map[liveSize]*timing.Speed)
		}
		if len(s.speeds) < liveSizes {
			s.speeds[size] = x
		}
	}
	return x
}

func (l *Follower) width() uint64 { return max(uint64(l.window)/liveBuckets, 1) }

// bucket returns the part of the window that contains a time.
func (l *Follower) bucket(t otf2.Timestamp) *liveBucket {
	at := uint64(t) / l.width()
	b := keyed.EntryMade(l.buckets, at, func() *liveBucket { return &liveBucket{rows: make(map[liveRowKey]*liveSum)} })
	for len(b.ranks) < len(l.rankOf) {
		b.ranks = append(b.ranks, liveRankSum{})
	}
	return b
}

// spread distributes an interval among the parts of the window.
func (l *Follower) spread(from, to otf2.Timestamp, add func(b *liveBucket, ns float64)) {
	width := otf2.Timestamp(l.width())
	oldest := to/width - min(to/width, 2*liveBuckets) // earlier parts are no longer in any window
	for from = max(from, oldest*width); from < to; {
		end := from - from%width + width
		if end < from || end > to { // < : overflow
			end = to
		}
		add(l.bucket(from), float64(end-from))
		from = end
	}
}

// until returns the end of the window: the end of the latest operation. If the job has done nothing for longer than
// liveLag, the window moves on with the clock.
func (l *Follower) until(v *View) otf2.Timestamp {
	if l.newest == 0 {
		return 0
	}
	ago := time.Duration(uint64(v.Time.UnixNano()) - uint64(l.newest))
	switch {
	case l.advanced.IsZero(): // data from before the first look
		l.advanced = v.Time.Add(-max(ago, 0))
	case l.moved:
		l.advanced = v.Time
	}
	l.moved = false
	v.Age = uint64(max(ago, 0))
	if quiet := v.Time.Sub(l.advanced); v.Running > 0 && quiet > liveLag {
		return l.newest + otf2.Timestamp(quiet-liveLag)
	}
	return l.newest
}

// sum fills in the view of the window, and forgets everything before it.
func (l *Follower) sum(v *View) {
	until := l.until(v)
	v.Ranks = append(v.Ranks, l.ranks...)
	if until == 0 {
		return
	}
	width := l.width()
	first := (max(uint64(until), uint64(l.window))-uint64(l.window))/width + 1
	if begin := uint64(l.begin) / width; begin > first { // that part is incomplete
		first = begin + analysis.BoolCount(uint64(l.begin)%width > 0)
	}
	from := first * width
	if first > uint64(until)/width { // all data lies in the incomplete part
		first, from = uint64(l.begin)/width, uint64(l.begin)
	}
	v.Window = max(uint64(until)-min(from, uint64(until)), 1)
	rows, ranks := make(map[liveRowKey]*liveSum), make([]liveRankSum, len(l.rankOf))
	waited := 0.0
	for at, b := range l.buckets {
		if at < first {
			delete(l.buckets, at)
			continue
		}
		if at > uint64(until)/width {
			continue // not all ranks have got that far
		}
		v.Compared += b.compared
		v.NotCompared += b.notCompared
		for key, s := range b.rows {
			keyed.Entry(rows, key).add(s)
		}
		for i := range b.ranks {
			ranks[i].add(&b.ranks[i])
			waited += b.ranks[i].waited
		}
	}
	seconds := float64(v.Window) / 1e9
	for key, s := range rows {
		v.Rate += float64(s.n) / seconds
		v.Bytes += s.bytes / seconds
		v.Operations = append(v.Operations, s.row(l.comms[key.comm], key.function, seconds))
	}
	slices.SortFunc(v.Operations, func(a, b Operation) int {
		return cmp.Or(cmp.Compare(b.busy, a.busy), cmp.Compare(a.Communicator, b.Communicator),
			cmp.Compare(a.Operation, b.Operation))
	})
	for i := range v.Ranks {
		r, s := &v.Ranks[i], &ranks[l.order[i]]
		r.Rate, r.Inside, r.Waiting = float64(s.operations)/seconds, s.inside/float64(v.Window),
			s.waited/float64(v.Window)
		if waited > 0 {
			r.Caused = s.caused / waited
		}
	}
}

func (s *liveSum) add(o *liveSum) {
	if s.n == 0 || o.source < s.source {
		s.source = o.source
	}
	s.n += o.n
	s.compared += o.compared
	s.bytes += o.bytes
	if o.timed > 0 && (s.timed == 0 || o.timedSource < s.timedSource) {
		s.timedSource = o.timedSource
	}
	s.timed += o.timed
	s.time += o.time
	s.busy += o.busy
	for size, x := range o.speeds {
		s.speed(size).Merge(x)
	}
	s.inside += o.inside
	s.waiting += o.waiting
}

func (s *liveRankSum) add(o *liveRankSum) {
	s.operations += o.operations
	s.inside += o.inside
	s.waited += o.waited
	s.caused += o.caused
}

func (s *liveSum) row(c *liveComm, function string, seconds float64) Operation {
	n := float64(s.n)
	row := Operation{
		Communicator: c.Name, Ranks: c.Size(), Operation: function, Rate: n / seconds, Size: uint64(s.bytes / n),
		TimingSource: s.source.String(), Compared: s.compared, busy: s.busy,
	}
	if s.timed > 0 {
		row.Timed, row.Avg, row.TimingSource = s.timed, s.time/float64(s.timed), s.timedSource.String()
	}
	var bus timing.Moved
	for size, x := range s.speeds {
		bus.Add(x.Times.Count, float64(size.size)*size.factor, x.Median())
	}
	row.BusBW = bus.Bandwidth()
	if s.inside > 0 {
		row.Waiting = s.waiting / s.inside
	}
	return row
}
