// SPDX-License-Identifier: Apache-2.0

package export

import (
	"bytes"
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
	"github.com/nccl-otf2/nccl-otf2/internal/atomicfile"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/profile"
	"github.com/nccl-otf2/nccl-otf2/internal/regular"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// Bounds of the labels of a running job's metrics, however large it is and whatever names it makes.
const (
	// mostSeries is how many series the names of Inspector have at most: of further ones there is only a count.
	mostSeries = 5000
	// mostNamedRanks is how many processes have series of their own; of larger jobs nodes have, with the rank "all".
	mostNamedRanks = 1000
	// mostCauses is how many ranks have a share of the waiting.
	mostCauses = 20
)

// allRanks is the rank of the series of a node.
const allRanks = "all"

// RunningJob is a job as it stands while it runs.
type RunningJob struct {
	Defs       *otf2.Definitions
	Properties []otf2.Property
	Rows       []profile.RankRow // of communicator ranks
	Processes  map[string]int    // by state
}

// Meter makes the metrics of running jobs for the node exporter's textfile collector, in text that is written anew at
// each interval. What counts never falls, whatever restarts: processes that come back in the directory count on, and a
// sum that is estimated keeps its highest value.
type Meter struct {
	job, directory string
	before         map[promKey]map[uint64]*sizeTimes[uint64] // of the job so far, at the last look
	last           map[promKey]promBucket                    // of the last interval that had such operations
	counted        map[string]float64                        // by series
}

// NewMeter makes the meter of the jobs of an experiment directory; job is their scheduler's id, "" if it is not known.
func NewMeter(job, directory string) *Meter {
	return &Meter{job: job, directory: directory, last: make(map[promKey]promBucket), counted: make(map[string]float64)}
}

// nodeRank says whose figures they are.
type nodeRank struct{ node, rank string }

// Write gives the metrics of the jobs of the directory at a time.
func (m *Meter) Write(jobs []RunningJob, now time.Time, ended bool) []byte {
	x := &exposition{kind: runningMetric, job: m.job, directory: m.directory, lost: make(map[string]uint64),
		processes: make(map[string]int), ended: ended, written: now, counted: m.counted}
	sums, speeds := make(map[nodeRank]*rankSums), make(map[promKey]map[uint64]*sizeTimes[uint64])
	first, last := uint64(0), uint64(0)
	for i := range jobs {
		j := &jobs[i]
		sumJob(j, sums, speeds)
		x.version = max(x.version, promVersion(j.Properties))
		for what, n := range facts.PropertiesOf(&otf2.Anchor{Properties: j.Properties}).Below(facts.PropLost) {
			x.lost[what] += n
		}
		for state, n := range j.Processes {
			x.processes[state] += n
		}
		for _, r := range j.Rows {
			if first == 0 || r.First < first {
				first = r.First
			}
			last = max(last, r.Last)
		}
	}
	x.duration = last - first
	x.ranks = slices.SortedFunc(maps.Values(sums), func(a, b *rankSums) int {
		return cmp.Or(cmp.Compare(len(a.rank), len(b.rank)), cmp.Compare(a.rank, b.rank), cmp.Compare(a.node, b.node))
	})
	m.addInterval(speeds)
	x.buckets, x.leftOut = m.mostUsedSizes()
	var b bytes.Buffer
	_, _ = x.write(&b) // a buffer takes everything
	return b.Bytes()
}

// mostUsedSizes are the buckets of the most operations, as many as may have series, and how many others there are.
func (m *Meter) mostUsedSizes() (most map[promKey]promBucket, others int) {
	if len(m.last) <= mostSeries {
		return m.last, 0
	}
	keys := slices.SortedFunc(maps.Keys(m.last), func(a, b promKey) int {
		return cmp.Or(cmp.Compare(m.last[b].operations, m.last[a].operations), a.compare(b))
	})
	most = make(map[promKey]promBucket)
	for _, k := range keys[:mostSeries] {
		most[k] = m.last[k]
	}
	return most, len(keys) - mostSeries
}

// sumJob adds up a job's rows: by rank, and by Inspector's buckets.
func sumJob(j *RunningJob, sums map[nodeRank]*rankSums, speeds map[promKey]map[uint64]*sizeTimes[uint64]) {
	rows := newRows(j.Defs, nil)
	comms := make(map[otf2.LocationRef]*comm)
	several := make(map[otf2.LocationRef]bool)
	for _, c := range analysis.Communicators(j.Defs) {
		for _, l := range c.Members {
			several[l] = comms[l] != nil
			comms[l] = rows.comms[c.Ref]
		}
	}
	for i := range j.Rows {
		r := &j.Rows[i]
		row := rows.of[r.Location]
		if row == nil {
			continue
		}
		who := nodeRank{cmp.Or(row.process.host, "unknown"), row.process.label()}
		if len(rows.processes) > mostNamedRanks {
			who.rank = allRanks
		}
		if sums[who] == nil {
			sums[who] = &rankSums{node: who.node, rank: who.rank}
		}
		base := promKey{node: who.node, gpu: promGPU(row.gpu), comm: "unknown", nodes: "unknown", ranks: r.Ranks}
		switch c := comms[r.Location]; {
		case r.Others > 0 || several[r.Location]:
			base.comm = "further communicators"
		case c != nil:
			base.comm = cmp.Or(c.Name, "unknown")
			if c.nodes > 0 {
				base.nodes = strconv.Itoa(c.nodes)
			}
		}
		sums[who].add(r)
		addSpeeds(r, base, sums[who], speeds)
	}
}

// label is what a process is called.
func (p *process) label() string { return cmp.Or(p.name, unnamed) }

// operationTrees are those that operations are in, by what their times are.
var operationTrees = []profile.Kind{profile.Kernels, profile.ByNetwork, profile.ByDuration, profile.ByEnqueue}

// add takes a row's operations, by whichever tree they are in: launches of several count once, with their time.
func (s *rankSums) add(r *profile.RankRow) {
	s.caused += r.Caused
	s.waitKnown = s.waitKnown || r.FirstSample != nil
	for i := range r.Cells {
		c := &r.Cells[i]
		n := &r.Nodes[c.Node]
		tree := profile.TreeOf(r.Nodes, c.Node)
		if n.Kind == profile.Kernel || !slices.Contains(operationTrees, tree) {
			continue
		}
		if n.Kind == profile.Size {
			s.operations += c.Visits
		}
		if tree != profile.ByEnqueue { // that is not how long they took
			s.time += c.Time
		}
		s.waited += c.Waits.Total() - c.Waits[profile.WaitStartUp]
	}
}

// addSpeeds takes the operations of a row that have a bandwidth.
func addSpeeds(r *profile.RankRow, base promKey, sum *rankSums, speeds map[promKey]map[uint64]*sizeTimes[uint64]) {
	for i := range r.Cells {
		c := &r.Cells[i]
		function, variant := profile.OperationOf(r.Nodes, c.Node)
		if function == "" {
			continue
		}
		k := base
		k.function, k.message = function, facts.IsMessage(function) || function == facts.SendAndRecv
		if !k.message {
			k.algoProto = cmp.Or(strings.ReplaceAll(variant, "/", "_"), "unknown_unknown")
		}
		c.Speeds.Each(func(size uint64, bus float64, times *profile.Histogram) {
			share := size
			if f := regions.CollectiveNamed(function); f != nil {
				share = f.Share(size, uint64(max(r.Ranks, 1)))
			}
			k := k
			k.size = lowerBound(share)
			x := sizeTimesOf(speeds, k, size)
			x.bus = cmp.Or(x.bus, bus)
			x.times.Merge(times)
			sum.busBytes += bus * float64(times.Count)
			sum.busTime += float64(times.Sum)
		})
	}
}

// addInterval works out what has come since the last look.
func (m *Meter) addInterval(speeds map[promKey]map[uint64]*sizeTimes[uint64]) {
	for k, sizes := range speeds {
		all, recent := uint64(0), make(map[uint64]*sizeTimes[uint64])
		for size, x := range sizes {
			all += x.times.Count
			since := x.times
			if before := m.before[k][size]; before != nil {
				since = x.times.Since(&before.times)
			}
			recent[size] = &sizeTimes[uint64]{x.bus, since}
		}
		if b := sumSizes(recent); b.operations > 0 {
			b.operations = all
			m.last[k] = b
		}
	}
	m.before = speeds
}

// RunningSuffix is what names of files end in that the node exporter reads.
const RunningSuffix = ".prom"

// RunningName is the name of the file of a directory's jobs, which no other directory has.
func RunningName(directory string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(directory))
	return fmt.Sprintf("nccl-otf2-%.100s-%08x%s", filepath.Base(directory), h.Sum32(), RunningSuffix)
}

// runningName are the names that RunningName gives. Files of other names may be what somebody exported of a job that
// has ended.
var runningName = regexp.MustCompile(`^nccl-otf2-.+-[0-9a-f]{8}\.prom$`)

// ReplaceMetrics puts a text in the place of a file of metrics at once.
func ReplaceMetrics(path string, text []byte) error {
	f, err := atomicfile.Output(path, 0o666)
	if err != nil {
		return err
	}
	defer func() { _ = f.Abandon() }()
	if err := f.Chmod(0o644); err != nil { // it is for another user's program, whatever the umask of the job
		return err
	}
	if _, err := f.Write(text); err != nil {
		return err
	}
	return f.Commit(atomicfile.Volatile)
}

// staleAfter is how long a running job's file may be untouched: it is written at each interval.
const staleAfter = 10 * time.Minute

// RemoveStale removes files of jobs that have ended from a folder: those whose writer was killed before it could.
func RemoveStale(folder string, now time.Time) (removed []string) {
	for _, path := range regular.Matches(folder, "*"+RunningSuffix) {
		if !runningName.MatchString(filepath.Base(path)) {
			continue
		}
		if st, err := os.Lstat(path); err == nil && st.Mode().IsRegular() && now.Sub(st.ModTime()) > staleAfter &&
			os.Remove(path) == nil {
			removed = append(removed, path)
		}
	}
	return removed
}
