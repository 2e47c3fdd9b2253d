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

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/placement"
	"github.com/nccl-otf2/nccl-otf2/internal/atomicfile"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
	"github.com/nccl-otf2/nccl-otf2/internal/profile"
	"github.com/nccl-otf2/nccl-otf2/internal/regular"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// Limits on the number of series, however large a running job is and whatever names it uses.
const (
	// mostSeries is the maximum number of series for each of Inspector's metrics. Further series are only counted.
	mostSeries = 5000
	// mostNamedRanks is the maximum number of processes with separate series. Larger jobs have series by node, with the
	// rank "all".
	mostNamedRanks = 1000
	// mostCauses is the maximum number of ranks for which the share of caused waiting is written.
	mostCauses = 20
)

// allRanks is the label "rank" of a node's series.
const allRanks = "all"

// RunningJob is the current state of a running job.
type RunningJob struct {
	Defs       *otf2.Definitions
	Properties []otf2.Property
	Rows       []profile.RankRow // rows of communicator ranks
	Processes  map[string]int    // number of processes, by state
}

// Meter computes the metrics of running jobs for the node exporter's textfile collector, once per interval. Counters
// never fall, even if processes restart: new processes in the directory add to the sums, and an estimated sum keeps its
// highest value.
type Meter struct {
	job, directory string
	before         map[promKey]map[uint64]*sizeTimes[uint64] // of the whole job, as of the previous interval
	last           map[promKey]promBucket                    // by the last interval that had such operations
	counted        map[string]float64                        // highest value of each counter, by series
}

// NewMeter returns the Meter for the jobs of an experiment directory. job is the scheduler's id; "" if unknown.
func NewMeter(job, directory string) *Meter {
	return &Meter{job: job, directory: directory, last: make(map[promKey]promBucket), counted: make(map[string]float64)}
}

// nodeRank identifies the rank, or node, that sums belong to.
type nodeRank struct{ node, rank string }

// Write returns the text of the metrics at the time now. ended: the job has ended.
func (m *Meter) Write(jobs []RunningJob, now time.Time, ended bool) []byte {
	x := &exposition{kind: runningMetric, job: m.job, directory: m.directory, lost: make(map[string]uint64),
		processes: make(map[string]int), ended: ended, written: now, counted: m.counted}
	sums, speeds := make(map[nodeRank]*rankSums), make(map[promKey]map[uint64]*sizeTimes[uint64])
	first, last := uint64(0), uint64(0)
	for i := range jobs {
		j := &jobs[i]
		sumJob(j, sums, speeds)
		x.version = max(x.version, promVersion(j.Properties))
		for what, n := range property.Read(&otf2.Anchor{Properties: j.Properties}).Below(property.Lost) {
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
	_, _ = x.write(&b) // writing to a buffer cannot fail
	return b.Bytes()
}

// mostUsedSizes returns the mostSeries buckets with the most operations, and the number of other buckets.
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

// sumJob adds a job's rows to the sums by rank and to the durations by bucket.
func sumJob(j *RunningJob, sums map[nodeRank]*rankSums, speeds map[promKey]map[uint64]*sizeTimes[uint64]) {
	rows := newRows(j.Defs, nil)
	comms := make(map[otf2.LocationRef]*comm)
	several := make(map[otf2.LocationRef]bool)
	for _, c := range placement.Communicators(j.Defs) {
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
		sum := keyed.EntryMade(sums, who, func() *rankSums { return &rankSums{node: who.node, rank: who.rank} })
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
		sum.add(r)
		addSpeeds(r, base, sum, speeds)
	}
}

// label returns the process's name, or a placeholder.
func (p *process) label() string { return cmp.Or(p.name, unnamed) }

// operationTrees lists the trees that contain operations, by the source of their times.
var operationTrees = []profile.Kind{profile.Kernels, profile.ByNetwork, profile.ByDuration, profile.ByEnqueue}

// add adds a row's operations from all trees. The time of a launch with several operations counts once.
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
		if tree != profile.ByEnqueue { // an enqueue time is not the operation's duration
			s.time += c.Time
		}
		s.waited += c.Waits.Total() - c.Waits[profile.WaitStartUp]
	}
}

// addSpeeds adds the operations of a row that have a bandwidth.
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

// addInterval updates m.last from the operations since the previous interval, and keeps speeds for the next one.
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

// RunningSuffix is the suffix of the files that the node exporter reads.
const RunningSuffix = ".prom"

// RunningName returns the file name for the jobs of a directory. A hash of the path makes it unique.
func RunningName(directory string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(directory))
	return fmt.Sprintf("nccl-otf2-%.100s-%08x%s", filepath.Base(directory), h.Sum32(), RunningSuffix)
}

// runningName matches the names that RunningName returns. Files with other names may be exports of jobs that have
// ended.
var runningName = regexp.MustCompile(`^nccl-otf2-.+-[0-9a-f]{8}\.prom$`)

// ReplaceMetrics atomically replaces a file of metrics.
func ReplaceMetrics(path string, text []byte) error {
	f, err := atomicfile.Output(path, 0o666)
	if err != nil {
		return err
	}
	defer func() { _ = f.Abandon() }()
	if err := f.Chmod(0o644); err != nil { // another user's program reads it, whatever the job's umask
		return err
	}
	if _, err := f.Write(text); err != nil {
		return err
	}
	return f.Commit(atomicfile.Volatile)
}

// staleAfter is the age at which a running job's file is stale: it is rewritten at each interval.
const staleAfter = 10 * time.Minute

// RemoveStale removes stale files of running jobs, whose writer was killed before it could remove them, from a folder.
// It returns their paths.
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
