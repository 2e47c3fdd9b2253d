// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/nccl-otf2/nccl-otf2/experiment"
	"github.com/nccl-otf2/nccl-otf2/experiment/jobs"
	"github.com/nccl-otf2/nccl-otf2/facts"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// LiveView is how a job stands that is being recorded, and what it did in the last seconds.
//
// It comes from what its processes' collectors have written so far. They write every 2 s at most, and operations with
// GPU times 2 s after these have ended, so the view is some seconds behind: the last seconds are those before the
// latest operation that is known to have ended on all its ranks (Age ago).
type LiveView struct {
	Time      time.Time         `json:"time"`
	Directory string            `json:"directory"`
	State     LiveState         `json:"state"`
	Jobs      int               `json:"jobs"`      // in the directory; the view is of the one that began last of those that run
	Processes int               `json:"processes"` // with data
	Running   int               `json:"running"`
	Ended     int               `json:"ended"`
	Crashed   int               `json:"crashed"` // whose collector died, too
	Died      []string          `json:"died"`    // of processes that did not end in order: how, and who was first
	Hosts     int               `json:"hosts"`
	Done      uint64            `json:"operations"` // that have ended so far on some rank; messages count at their sender
	Lost      uint64            `json:"lost"`       // events that could not be recorded so far
	LostBy    map[string]uint64 `json:"lost_by"`    // by reason
	Partial   int               `json:"partial"`    // processes that do not record everything, on request
	// Window is the time that the following is about; it ends Age before Time. 0: nothing was seen.
	Window      uint64          `json:"window_ns"`
	Age         uint64          `json:"age_ns"`
	Rate        float64         `json:"operations_per_second"`
	Bytes       float64         `json:"bytes_per_second"` // sizes of operations, as nccl-tests counts them
	Operations  []LiveOperation `json:"by_operation"`     // those that take the most time first
	Ranks       []LiveRank      `json:"ranks"`
	Compared    uint64          `json:"compared"`     // collectives in which it is known who waited; the first of several of a communicator is not looked at
	NotCompared uint64          `json:"not_compared"` // others: without comparable times, or rooted ones on several hosts
	// Skipped: there was more than could be followed, and parts were not looked at.
	Skipped  bool     `json:"skipped"`
	Over     bool     `json:"-"` // no process has run for a while, nor is one to be expected
	Problems []string `json:"problems"`
}

// LiveState is the state of a job.
type LiveState string

// States of a job.
const (
	LiveWaiting LiveState = "waiting" // there is none yet
	LiveRunning LiveState = "running"
	LiveEnded   LiveState = "ended" // no process runs
)

// LiveOperation is a function on a communicator.
type LiveOperation struct {
	Communicator string  `json:"communicator"`
	Ranks        int     `json:"ranks"`
	Operation    string  `json:"operation"` // a message is a "SendRecv", with the sender's times
	Rate         float64 `json:"operations_per_second"`
	Size         uint64  `json:"size"`          // mean
	Avg          float64 `json:"avg_ns"`        // mean over members and operations
	TimingSource string  `json:"timing_source"` // what the times are, the weakest of all members: "gpu", "network", "enqueue" (when they were launched, not how long they ran)
	BusBW        float64 `json:"busbw"`         // GB/s, of those that were launched alone and of which it is known how long they ran; 0: of none
	Waiting      float64 `json:"waiting"`       // part of the members' time in them that they waited for the last one; 0 also if it is not known
	Compared     uint64  `json:"compared"`      // operations in which it is
	busy         float64
}

// LiveRank is a process, or a GPU of a process with several.
type LiveRank struct {
	Rank    string  `json:"rank"`
	Host    string  `json:"host"`
	PID     int     `json:"pid"`
	State   string  `json:"state"` // "running", "ended", how it died ("killed by SIGKILL"), "crashed"
	Rate    float64 `json:"operations_per_second"`
	Inside  float64 `json:"inside"`  // part of the window that it was in operations, of those of which it is known how long they ran; more than 1 if they overlap
	Waiting float64 `json:"waiting"` // part of the window that it waited in collectives
	Caused  float64 `json:"caused"`  // part of all waiting that was for it
	Lost    uint64  `json:"lost"`    // of the process
}

const (
	// liveBuckets is into how many parts the window is divided, as which it moves on.
	liveBuckets = 20
	// livePending bounds the parts of operations that are kept until all members' are there.
	livePending = 1 << 16
	// liveBytes is how much is read at once of all event files. What is more is not looked at.
	liveBytes = 48 << 20
	// liveLag is how late operations may become known while the job goes on: two flushes of a collector, and some.
	liveLag = 5 * time.Second
)

// Live follows the job of an experiment directory. It only reads, and keeps a window's worth of sums, operations that
// are not complete, and the descriptions of the job's processes.
type Live struct {
	dir    string
	window time.Duration
	bytes  int64 // liveBytes

	shards   map[string]*liveShard // by path; nil before the first look
	comms    map[otf2.CommRef]*liveComm
	known    map[livePart]otf2.CommRef
	assembly *assembly
	arrivals
	rankOf map[liveUnit]int // numbers in the order in which ranks were first seen
	ranks  []LiveRank       // in world order
	order  []int            // their numbers

	buckets  map[uint64]*liveBucket // by time / (window / liveBuckets)
	begin    otf2.Timestamp         // of what has been seen without a break
	newest   otf2.Timestamp         // end of the latest operation that all members ended
	advanced time.Time              // when that was last seen to move
	moved    bool                   // newest did, in this look
	skipped  bool                   // parts were not looked at, in this look
	ended    time.Time              // since when no process has run
}

// livePart is a communicator in a shard.
type livePart struct {
	path string
	comm int
}

// NewLive follows the directory, which need not be there yet. The view is of a window of time.
func NewLive(dir string, window time.Duration) *Live {
	return &Live{dir: dir, window: window, bytes: liveBytes}
}

// liveUnit is a GPU of a process, as one of the job's ranks.
type liveUnit struct {
	shard string // the process's first
	gpu   int
}

type liveRowKey struct {
	comm     otf2.CommRef
	function string
}

// liveComm is a communicator of the job.
type liveComm struct {
	facts.Communicator
	expected int         // members with data
	started  bool        // its first collective has been seen; who came late to that was late with starting up
	only     []operation // that collective's members, until a second follows: the one collective of a communicator is not its start-up
	apart    bool        // members are on several hosts
	hosts    map[otf2.LocationRef]string
}

// liveShard is what is kept of a shard between looks.
type liveShard struct {
	reader *operationReader
	names  liveNames
	at     func(uint64) uint64
	tails  map[otf2.LocationRef]*liveTail
	number uint64
}

// liveTail is a location that is being followed.
type liveTail struct {
	*otf2.EventTail
	location otf2.LocationRef
	plan     uint64 // the last one whose time has been counted
	synced   bool   // it stands between operations
	size     int64  // of the file, as its shard says: that of the flush before
	bad      bool   // damage has been met
}

// liveBucket sums up a part of the window.
type liveBucket struct {
	rows  map[liveRowKey]*liveSum
	ranks []liveRankSum

	compared, notCompared uint64
}

type liveSum struct {
	source           facts.Source // the weakest
	n, compared      uint64
	bytes, time      float64 // of all; time is the mean of the members
	busy             float64 // time of all members together
	bandwidth, timed float64 // of those whose bandwidth is known: bytes × factor, time
	inside, waiting  float64 // of the members that were compared
}

type liveRankSum struct {
	operations             uint64
	inside, waited, caused float64
}

// Look reads what has been written since the last look.
func (l *Live) Look(now time.Time) (*LiveView, error) {
	v := &LiveView{
		Time: now, Directory: l.dir, State: LiveWaiting, LostBy: make(map[string]uint64),
		Operations: []LiveOperation{}, Ranks: []LiveRank{}, Problems: []string{}, Died: []string{},
	}
	all, problems, err := jobs.List(l.dir)
	v.Problems = append(v.Problems, problems...)
	if errors.Is(err, fs.ErrNotExist) {
		if spools, _ := filepath.Glob(filepath.Join(l.dir, experiment.Folder, "*"+experiment.SpoolSuffix)); len(spools) > 0 {
			v.Problems = append(v.Problems, "the job is recorded without collectors, into spool files: they can only be read when it has ended")
		}
		return v, nil
	}
	if err != nil {
		if len(problems) > 0 { // shards that nobody has described yet
			return v, nil
		}
		return v, err
	}
	job := latest(all)
	v.Jobs = len(all)
	l.follow(job)
	l.state(v, job, now)
	l.read(job, v)
	if v.State == LiveEnded {
		l.compareOnly()
	}
	l.sum(v)
	return v, nil
}

// latest is the job that runs and began last, or if none runs the last one.
func latest(all []*jobs.Job) *jobs.Job {
	best := all[0]
	for _, j := range all[1:] {
		if runs, r := running(j) > 0, running(best) > 0; runs != r && runs || runs == r && j.Last() > best.Last() {
			best = j
		}
	}
	return best
}

func running(j *jobs.Job) (n int) {
	for _, p := range j.Processes {
		n += int(boolCount(p.State == jobs.Running))
	}
	return n
}

// state tells how the processes stand.
func (l *Live) state(v *LiveView, j *jobs.Job, now time.Time) {
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
		v.Partial += int(boolCount(p.Paused))
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
func doneOn(c *jobs.JobCommunicator) (n uint64) {
	collectives := make(map[string]uint64)
	for _, r := range c.Ranks {
		if r == nil {
			continue
		}
		for key, done := range r.Done {
			var peer int
			switch {
			case scan(key, "Send>", &peer):
				n += done
			case !scan(key, "Recv<", &peer) && key != "Send" && key != "Recv":
				collectives[key] = max(collectives[key], done)
			}
		}
	}
	for _, done := range collectives {
		n += done
	}
	return n
}

// follow takes over what the shards' descriptions say.
func (l *Live) follow(j *jobs.Job) {
	if !l.follows(j) {
		l.shards, l.comms, l.known = make(map[string]*liveShard), make(map[otf2.CommRef]*liveComm), make(map[livePart]otf2.CommRef)
		l.rankOf = make(map[liveUnit]int)
		l.buckets = make(map[uint64]*liveBucket)
		l.begin, l.newest, l.advanced = 0, 0, time.Time{}
		l.assembly = newAssembly(l.finish, func([]operation) {})
		l.assembly.most = livePending
	}
	l.describeRanks(j)
	l.of = make(map[otf2.LocationRef]int)
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
		lc.apart = len(hosts) > 1
	}
}

// follows tells whether the job is the one that was looked at before.
func (l *Live) follows(j *jobs.Job) bool {
	for _, c := range j.Communicators {
		for _, r := range c.Ranks {
			if r != nil && slices.ContainsFunc(r.Parts, func(p jobs.JobPart) bool { return l.shards[p.Path] != nil }) {
				return true
			}
		}
	}
	return l.shards != nil && len(l.shards) == 0
}

// communicator finds what is kept of a communicator, by any of its parts that was there before.
func (l *Live) communicator(c *jobs.JobCommunicator) *liveComm {
	ref := otf2.CommRef(len(l.comms))
	for _, r := range c.Ranks {
		if r == nil {
			continue
		}
		for _, p := range r.Parts {
			if known, ok := l.known[livePart{p.Path, p.Comm}]; ok {
				ref = known
			}
		}
	}
	lc := l.comms[ref]
	if lc == nil {
		lc = &liveComm{Communicator: facts.Communicator{Ref: ref, Members: make([]otf2.LocationRef, c.Size), Ranks: make(map[otf2.LocationRef]int)}}
		l.comms[ref] = lc
	}
	lc.Name, lc.expected, lc.hosts = c.Name, 0, make(map[otf2.LocationRef]string)
	for _, r := range c.Ranks {
		if r == nil {
			continue
		}
		for _, p := range r.Parts {
			l.known[livePart{p.Path, p.Comm}] = ref
		}
	}
	return lc
}

// followRank follows the row of a communicator rank.
func (l *Live) followRank(lc *liveComm, rank int, r *jobs.JobRank, p *jobs.JobPart) {
	number := p.Shard.Comms[p.Comm].Location
	at := slices.IndexFunc(p.Shard.Locations, func(l experiment.Location) bool { return int(l.Number) == number })
	if at < 0 {
		return // it has no events yet
	}
	where := &p.Shard.Locations[at]
	s := l.shards[p.Path]
	if s == nil {
		s = &liveShard{tails: make(map[otf2.LocationRef]*liveTail), number: uint64(len(l.shards))}
		s.names.comms = make(map[otf2.CommRef]*facts.Communicator)
		s.reader = newOperationsOf(&s.names, nil, s.names.comms, func(o *operation) { l.add(s, o) })
		l.shards[p.Path] = s
	}
	s.at = p.At
	s.names.process = p.Shard
	location := otf2.LocationRef(uint64(number)<<32 | s.number)
	lc.Members[rank], lc.Ranks[location], lc.hosts[location] = location, rank, r.Process.Host
	s.reader.comms[otf2.CommRef(p.Comm)] = &lc.Communicator
	s.reader.member[location] = true
	l.of[location] = l.rankOf[liveUnit{r.Process.Shard, p.Shard.Comms[p.Comm].GPU}]
	t := s.tails[location]
	if t == nil {
		tail, err := otf2.NewEventTail(filepath.Join(p.Path, fmt.Sprintf("%d.evt", where.Number)), location, p.Shard.EventChunkSize)
		if err != nil {
			return // its description is not to be trusted; Jobs has checked the size of chunks
		}
		t = &liveTail{EventTail: tail, location: location}
		s.tails[location] = t
	}
	t.size = where.Bytes
}

// liveNames tells what ids mean in a shard, by what it has described by now.
type liveNames struct {
	process *experiment.Process
	comms   map[otf2.CommRef]*facts.Communicator
}

func (n *liveNames) String(ref otf2.StringRef) string {
	if int64(ref) < int64(len(n.process.Strings)) {
		return n.process.Strings[ref]
	}
	return ""
}

func (n *liveNames) RegionName(ref otf2.RegionRef) string {
	if int64(ref) < int64(len(n.process.Regions)) {
		return n.process.Regions[ref].Name
	}
	return ""
}

func (n *liveNames) CommSize(ref otf2.CommRef) int {
	if c := n.comms[ref]; c != nil {
		return c.Size()
	}
	return 0
}

func (n *liveNames) Rank(ref otf2.CommRef, l otf2.LocationRef) int {
	if c := n.comms[ref]; c != nil {
		return c.RankOf(l)
	}
	return -1
}

// describeRanks lists the ranks: processes, or the GPUs of processes that have communicators on several.
func (l *Live) describeRanks(j *jobs.Job) {
	gpus := make(map[*jobs.JobProcess]map[int]int) // GPU → its number for people
	for _, c := range j.Communicators {
		for _, r := range c.Ranks {
			if r == nil {
				continue
			}
			for _, p := range r.Parts {
				if gpus[r.Process] == nil {
					gpus[r.Process] = make(map[int]int)
				}
				gpu, device := p.Shard.Comms[p.Comm].GPU, -1
				if gpu >= 0 && gpu < len(p.Shard.GPUs) {
					device = p.Shard.GPUs[gpu].Device
				}
				gpus[r.Process][gpu] = device
			}
		}
	}
	l.ranks, l.order = l.ranks[:0], l.order[:0]
	for _, p := range j.Processes {
		row := LiveRank{Rank: p.Name, Host: p.Host, PID: p.PID, State: p.Is(), Lost: p.Lost}
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

// read takes what is new in the event files.
func (l *Live) read(j *jobs.Job, v *LiveView) {
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
	// At first, and when there is too much to follow, only the last stretch is looked at: the same on all ranks.
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
		l.assembly.abandonBefore(l.newest - reach)
	}
}

// skip goes on where less than a stretch of time is left, if that is further on.
func (l *Live) skip(j *jobs.Job, tails []*liveTail, of []*liveShard, stretch uint64) {
	last := j.Last()
	began := first(j)
	if last < began+stretch { // all of it is to be read
		l.begin = otf2.Timestamp(max(began, 1))
		return
	}
	from := last - stretch
	moved := false
	for i, t := range tails {
		// The shard's own clock differs by as much at all times.
		own := from - (of[i].at(from) - from)
		before := t.Offset()
		if err := t.SkipTo(otf2.Timestamp(own)); err != nil {
			continue // reading will tell
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

// first is when the job's first communicator was made; what was recorded before it is of no rank.
func first(j *jobs.Job) (t uint64) {
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

// add takes a member's operation.
func (l *Live) add(s *liveShard, o *operation) {
	t, lc := s.tails[o.Location], l.comms[o.comm.Ref]
	o.Begin, o.End = otf2.Timestamp(s.at(uint64(o.Begin))), otf2.Timestamp(s.at(uint64(o.End)))
	rank := l.of[o.Location]
	l.bucket(o.End).ranks[rank].operations++
	if o.Source.HasPlace() && (o.Launch == 0 || o.Launch != t.plan) { // those that were launched together have one time
		t.plan = o.Launch
		l.spread(o.Begin, o.End, func(b *liveBucket, ns float64) { b.ranks[rank].inside += ns })
	}
	switch o.Function {
	case "Recv":
	case "Send":
		l.count(o, liveRowKey{o.comm.Ref, sendRecv}, 1, float64(o.Duration()), o.Grouped, o.Source)
	default:
		l.assembly.add(partKey{o.comm.Ref, o.Function, o.Ordinal}, o, lc.expected)
	}
}

// finish takes a collective that all members have ended.
func (l *Live) finish(members []operation) {
	o := members[0]
	time, grouped, src := 0.0, false, facts.SourceGPU
	for i := range members {
		m := &members[i]
		o.End, o.Begin, o.Size = max(o.End, m.End), min(o.Begin, m.Begin), max(o.Size, m.Size)
		time += float64(m.Duration())
		grouped, src = grouped || m.Grouped, min(src, m.Source)
	}
	n := len(members)
	l.count(&o, liveRowKey{o.comm.Ref, o.Function}, n, time/float64(n), grouped, src)
	if slices.ContainsFunc(members, func(m operation) bool { return !m.Leads }) {
		return // its launch is counted with the first of it
	}
	c := l.comms[o.comm.Ref]
	if !c.started {
		if c.started = true; o.Ordinal == 0 {
			c.only = slices.Clone(members)
			return
		}
	}
	c.only = nil
	l.compare(c, o.End, members)
}

// compareOnly looks at the collectives that were the only ones of their communicators, when there will be no more.
func (l *Live) compareOnly() {
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

// compare tells who waited in a collective that ended at a time.
func (l *Live) compare(c *liveComm, end otf2.Timestamp, members []operation) {
	b := l.bucket(end)
	sum := b.rows[liveRowKey{c.Ref, members[0].Function}]
	if sum == nil {
		return // it is in no window any more
	}
	var a *arrival
	if c.align(members) {
		a = l.arrive(members)
	}
	if a == nil {
		b.notCompared++
		return
	}
	b.compared++
	sum.compared++
	for i := range a.parts {
		p := &a.parts[i]
		sum.inside += float64(p.time)
		sum.waiting += float64(p.waits)
		if p.waits > 0 {
			l.spread(p.begin, p.begin+otf2.Timestamp(p.waits), func(b *liveBucket, ns float64) {
				b.ranks[p.rank].waited += ns
				b.ranks[a.culprit].caused += ns
			})
		}
	}
}

// align brings the clocks of several hosts together for one collective, by its ends: where everybody waits for everybody,
// all are done at about the same time. While a job runs nothing better is known. It returns false where that does not
// hold.
func (c *liveComm) align(members []operation) bool {
	if !c.apart {
		return true
	}
	if members[0].Collective == nil || facts.WaitKindOf(members[0].Collective) != facts.WaitCollective {
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
func (l *Live) count(o *operation, key liveRowKey, members int, time float64, grouped bool, src facts.Source) *liveSum {
	if o.End > l.newest {
		l.newest, l.moved = o.End, true
	}
	b := l.bucket(o.End)
	s := b.rows[key]
	if s == nil {
		s = new(liveSum)
		b.rows[key] = s
	}
	if s.n++; s.n == 1 || src < s.source {
		s.source = src
	}
	s.bytes += float64(o.Size)
	s.time += time
	s.busy += time * float64(members)
	if !grouped && src.HasLength() && time > 0 {
		factor := 1.0
		if o.Collective != nil {
			factor = o.Collective.BusFactor(float64(o.comm.Size()))
		}
		s.bandwidth += float64(o.Size) * factor
		s.timed += time
	}
	return s
}

func (l *Live) width() uint64 { return max(uint64(l.window)/liveBuckets, 1) }

// bucket is the part of the window that a time lies in.
func (l *Live) bucket(t otf2.Timestamp) *liveBucket {
	at := uint64(t) / l.width()
	b := l.buckets[at]
	if b == nil {
		b = &liveBucket{rows: make(map[liveRowKey]*liveSum)}
		l.buckets[at] = b
	}
	for len(b.ranks) < len(l.rankOf) {
		b.ranks = append(b.ranks, liveRankSum{})
	}
	return b
}

// spread gives each part of the window its share of a time.
func (l *Live) spread(from, to otf2.Timestamp, add func(b *liveBucket, ns float64)) {
	width := otf2.Timestamp(l.width())
	oldest := to/width - min(to/width, 2*liveBuckets) // what lies before is in no window any more
	for from = max(from, oldest*width); from < to; {
		end := min(to, (from/width+1)*width)
		add(l.bucket(from), float64(end-from))
		from = end
	}
}

// until is the end of the window: the latest operation, and later where the job has done nothing since then for longer than
// it takes to hear of it.
func (l *Live) until(v *LiveView) otf2.Timestamp {
	if l.newest == 0 {
		return 0
	}
	ago := time.Duration(uint64(v.Time.UnixNano()) - uint64(l.newest))
	switch {
	case l.advanced.IsZero(): // what has been there before the first look
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

// sum makes the view of the window, and forgets what lies before it.
func (l *Live) sum(v *LiveView) {
	until := l.until(v)
	v.Ranks = append(v.Ranks, l.ranks...)
	if until == 0 {
		return
	}
	width := l.width()
	first := (max(uint64(until), uint64(l.window))-uint64(l.window))/width + 1
	if begin := uint64(l.begin) / width; begin > first { // that part is not whole
		first = begin + boolCount(uint64(l.begin)%width > 0)
	}
	v.Window = max(uint64(until)-min(first*width, uint64(until)), 1)
	rows, ranks := make(map[liveRowKey]*liveSum), make([]liveRankSum, len(l.rankOf))
	waited := 0.0
	for at, b := range l.buckets {
		if at < first {
			delete(l.buckets, at)
			continue
		}
		if at > uint64(until)/width {
			continue // not all ranks are that far
		}
		v.Compared += b.compared
		v.NotCompared += b.notCompared
		for key, s := range b.rows {
			if rows[key] == nil {
				rows[key] = new(liveSum)
			}
			rows[key].add(s)
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
	slices.SortFunc(v.Operations, func(a, b LiveOperation) int {
		return cmp.Or(cmp.Compare(b.busy, a.busy), cmp.Compare(a.Communicator, b.Communicator), cmp.Compare(a.Operation, b.Operation))
	})
	for i := range v.Ranks {
		r, s := &v.Ranks[i], &ranks[l.order[i]]
		r.Rate, r.Inside, r.Waiting = float64(s.operations)/seconds, s.inside/float64(v.Window), s.waited/float64(v.Window)
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
	s.time += o.time
	s.busy += o.busy
	s.bandwidth += o.bandwidth
	s.timed += o.timed
	s.inside += o.inside
	s.waiting += o.waiting
}

func (s *liveRankSum) add(o *liveRankSum) {
	s.operations += o.operations
	s.inside += o.inside
	s.waited += o.waited
	s.caused += o.caused
}

func (s *liveSum) row(c *liveComm, function string, seconds float64) LiveOperation {
	n := float64(s.n)
	row := LiveOperation{
		Communicator: c.Name, Ranks: c.Size(), Operation: function, Rate: n / seconds, Size: uint64(s.bytes / n), Avg: s.time / n,
		TimingSource: s.source.String(), Compared: s.compared, busy: s.busy,
	}
	if s.timed > 0 {
		row.BusBW = s.bandwidth / s.timed // bytes per ns are GB/s
	}
	if s.inside > 0 {
		row.Waiting = s.waiting / s.inside
	}
	return row
}
