// SPDX-License-Identifier: Apache-2.0

package export

import (
	"bufio"
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
	"github.com/nccl-otf2/nccl-otf2/internal/stats"
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
	before         map[promKey]map[uint64]*speedSum // of the job so far, at the last look
	last           map[promKey]*promInterval        // of the last interval that had such operations
	counted        map[string]float64               // by series
}

// NewMeter makes the meter of the jobs of an experiment directory; job is their scheduler's id, "" if it is not known.
func NewMeter(job, directory string) *Meter {
	return &Meter{job: job, directory: directory, before: make(map[promKey]map[uint64]*speedSum),
		last: make(map[promKey]*promInterval), counted: make(map[string]float64)}
}

// speedSum is the operations of one size in a bucket.
type speedSum struct {
	bus   float64
	times profile.Histogram
}

// promInterval is what a bucket came to in an interval.
type promInterval struct {
	bandwidth, median float64
	operations        uint64 // of the job so far
}

// nodeRank says whose counters they are.
type nodeRank struct{ node, rank string }

// rankSums are the counters of a rank, times in ns.
type rankSums struct {
	operations        uint64
	time              uint64
	waited            uint64
	caused            float64
	busBytes, busTime float64
	hasWaitable       bool
}

// Write gives the metrics of the jobs of the directory at a time.
func (m *Meter) Write(jobs []RunningJob, now time.Time, ended bool) []byte {
	var b bytes.Buffer
	w := &promWriter{Writer: bufio.NewWriter(&b), meter: m}
	sums, speeds := make(map[nodeRank]*rankSums), make(map[promKey]map[uint64]*speedSum)
	versions := make(map[string]bool)
	for i := range jobs {
		sumJob(&jobs[i], sums, speeds)
		if api := facts.PropertiesOf(&otf2.Anchor{Properties: jobs[i].Properties}).Text(
			facts.PropAPIVersion); api != "" {
			versions[fmt.Sprintf("v%s.%d", api, promFormat)] = true
		}
	}
	version := "unknown"
	if of := slices.Sorted(maps.Keys(versions)); len(of) > 0 {
		version = of[len(of)-1]
	}
	m.interval(speeds)
	w.inspector(version)
	w.ranks(sums)
	w.state(jobs, now, ended)
	_ = w.Flush() // a buffer takes everything
	return b.Bytes()
}

// sumJob adds up a job's rows: by rank, and by Inspector's buckets.
func sumJob(j *RunningJob, sums map[nodeRank]*rankSums, speeds map[promKey]map[uint64]*speedSum) {
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
			sums[who] = new(rankSums)
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
	s.hasWaitable = s.hasWaitable || r.FirstSample != nil
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
func addSpeeds(r *profile.RankRow, base promKey, sum *rankSums, speeds map[promKey]map[uint64]*speedSum) {
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
			if speeds[k] == nil {
				speeds[k] = make(map[uint64]*speedSum)
			}
			x := speeds[k][size]
			if x == nil {
				x = &speedSum{bus: bus}
				speeds[k][size] = x
			}
			x.times.Merge(times)
			sum.busBytes += bus * float64(times.Count)
			sum.busTime += float64(times.Sum)
		})
	}
}

// interval works out what has come since the last look.
func (m *Meter) interval(speeds map[promKey]map[uint64]*speedSum) {
	for k, sizes := range speeds {
		var moved facts.Moved
		n, all := uint64(0), uint64(0)
		for _, size := range slices.Sorted(maps.Keys(sizes)) {
			x := sizes[size]
			all += x.times.Count
			since := stats.Distribution[uint64]{}
			since.Merge(&x.times)
			if before := m.before[k][size]; before != nil {
				since = x.times.Since(&before.times)
			}
			if since.Count > 0 {
				moved.Add(since.Count, x.bus, since.Percentile(50))
				n += since.Count
			}
		}
		if n > 0 {
			m.last[k] = &promInterval{moved.Bandwidth(), moved.Time / float64(n) / 1e3, all}
		}
	}
	m.before = speeds
}

// promWriter writes metrics.
type promWriter struct {
	*bufio.Writer
	meter *Meter
	out   uint64 // series that are left out
}

func (w *promWriter) head(name, kind, help string) {
	fmt.Fprintf(w.Writer, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

// own are the labels that all metrics of ours begin with.
func (w *promWriter) own(labels ...[2]string) [][2]string {
	return append([][2]string{{"slurm_job_id", cmp.Or(w.meter.job, "unknown")}, {"directory", w.meter.directory}},
		labels...)
}

// inspector writes the metrics that have Inspector's names. Where there are too many series, those of the most
// operations are kept.
func (w *promWriter) inspector(version string) {
	keys := slices.SortedFunc(maps.Keys(w.meter.last), func(a, b promKey) int {
		return cmp.Or(cmp.Compare(w.meter.last[b].operations, w.meter.last[a].operations), a.compare(b))
	})
	if len(keys) > mostSeries {
		w.out += uint64(len(keys) - mostSeries)
		keys = keys[:mostSeries]
	}
	slices.SortFunc(keys, promKey.compare)
	for _, metric := range []struct {
		message    bool
		name, help string
		value      func(*promInterval) float64
	}{
		{false, "nccl_bus_bandwidth_gbs", promMetrics[0].help, func(i *promInterval) float64 { return i.bandwidth }},
		{false, "nccl_collective_exec_time_microseconds", promMetrics[1].help,
			func(i *promInterval) float64 { return i.median }},
		{true, "nccl_p2p_bus_bandwidth_gbs", promMetrics[2].help, func(i *promInterval) float64 { return i.bandwidth }},
		{true, "nccl_p2p_exec_time_microseconds", promMetrics[3].help,
			func(i *promInterval) float64 { return i.median }},
	} {
		head := false
		for _, k := range keys {
			if k.message != metric.message {
				continue
			}
			if !head {
				w.head(metric.name, "gauge", metric.help)
				head = true
			}
			labels := append(k.labels(version, w.meter.job), [2]string{"directory", w.meter.directory})
			writeSample(w.Writer, metric.name, labels, metric.value(w.meter.last[k]), 6)
		}
	}
}

// rankMetrics are the counters of ranks.
var rankMetrics = []struct {
	name, help string
	value      func(*rankSums) (float64, bool)
}{
	{"nccl_otf2_operations_total", "Operations of a rank.",
		func(s *rankSums) (float64, bool) { return float64(s.operations), true }},
	{"nccl_otf2_operations_seconds_total", "Time of a rank in its operations.",
		func(s *rankSums) (float64, bool) { return seconds(float64(s.time)), true }},
	{"nccl_otf2_waited_seconds_total",
		"Of that, waiting for others in collectives, without start-up; estimated from samples.",
		func(s *rankSums) (float64, bool) { return seconds(float64(s.waited)), s.hasWaitable }},
	{"nccl_otf2_caused_wait_seconds_total",
		"How long others waited in collectives because a rank came later; estimated from samples.",
		func(s *rankSums) (float64, bool) { return seconds(s.caused), s.hasWaitable }},
	{"nccl_otf2_bus_bytes_total",
		"Bytes of a rank's operations times the factor of nccl-tests for the bus, of those that have a bandwidth.",
		func(s *rankSums) (float64, bool) { return s.busBytes, s.busTime > 0 }},
	{"nccl_otf2_bus_seconds_total", "Time of the same operations.",
		func(s *rankSums) (float64, bool) { return seconds(s.busTime), s.busTime > 0 }},
}

// ranks writes the counters of ranks, and whom the waiting was for.
func (w *promWriter) ranks(sums map[nodeRank]*rankSums) {
	order := slices.SortedFunc(maps.Keys(sums),
		func(a, b nodeRank) int { return cmp.Or(compareRanks(a.rank, b.rank), cmp.Compare(a.node, b.node)) })
	for _, m := range rankMetrics {
		head := false
		for _, who := range order {
			value, known := m.value(sums[who])
			if !known {
				continue
			}
			if !head {
				w.head(m.name, "counter", m.help)
				head = true
			}
			w.counter(m.name, w.own([2]string{"node", who.node}, [2]string{"rank", who.rank}), value)
		}
	}
	all := 0.0
	for _, s := range sums {
		all += s.caused
	}
	if all == 0 {
		return
	}
	slices.SortStableFunc(order, func(a, b nodeRank) int { return cmp.Compare(sums[b].caused, sums[a].caused) })
	w.head("nccl_otf2_caused_wait_share", "gauge",
		"Whom the ranks waited for so far: share of all waiting in collectives, of the ranks with the largest.")
	for i, who := range order {
		if i == mostCauses || sums[who].caused == 0 {
			break
		}
		writeSample(w.Writer, "nccl_otf2_caused_wait_share",
			w.own([2]string{"node", who.node}, [2]string{"rank", who.rank}), sums[who].caused/all, 6)
	}
}

// compareRanks orders ranks by their numbers.
func compareRanks(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }

// counter writes the value of a counter, which never falls.
func (w *promWriter) counter(name string, labels [][2]string, value float64) {
	series := fmt.Sprint(name, labels)
	value = max(value, w.meter.counted[series])
	w.meter.counted[series] = value
	writeSample(w.Writer, name, labels, value, -1)
}

// state writes what is said of the jobs as a whole.
func (w *promWriter) state(jobs []RunningJob, now time.Time, ended bool) {
	lost, processes := make(map[string]uint64), make(map[string]int)
	first, last := uint64(0), uint64(0)
	for i := range jobs {
		for what, n := range facts.PropertiesOf(&otf2.Anchor{Properties: jobs[i].Properties}).Below(facts.PropLost) {
			lost[what] += n
		}
		for state, n := range jobs[i].Processes {
			processes[state] += n
		}
		for _, r := range jobs[i].Rows {
			if first == 0 || r.First < first {
				first = r.First
			}
			last = max(last, r.Last)
		}
	}
	w.head("nccl_otf2_lost_records_total", "counter",
		"Records that were lost, by why and of what; none has a sample of 0.")
	if len(lost) == 0 {
		lost["none"] = 0
	}
	for _, what := range slices.Sorted(maps.Keys(lost)) {
		w.counter("nccl_otf2_lost_records_total", w.own([2]string{"reason", what}), float64(lost[what]))
	}
	w.head("nccl_otf2_processes", "gauge", "Processes of the job, by state.")
	for _, state := range slices.Sorted(maps.Keys(processes)) {
		writeSample(w.Writer, "nccl_otf2_processes", w.own([2]string{"state", state}), float64(processes[state]), -1)
	}
	running := 1.0
	if ended {
		running = 0
	}
	for _, g := range []struct {
		name, help string
		value      float64
	}{
		{"nccl_otf2_run_duration_seconds", "From the run's first event to its last.", seconds(float64(last - first))},
		{"nccl_otf2_series_left_out", "Series that are left out, as there are too many.", float64(w.out)},
		{"nccl_otf2_job_running", "1 while the job runs, 0 of one that has ended.", running},
		{"nccl_otf2_written_timestamp_seconds", "When this was written.", float64(now.UnixMilli()) / 1e3},
	} {
		w.head(g.name, "gauge", g.help)
		writeSample(w.Writer, g.name, w.own(), g.value, -1)
	}
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
