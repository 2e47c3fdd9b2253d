// SPDX-License-Identifier: Apache-2.0

package export

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/verdict"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/timing"
	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
	"github.com/nccl-otf2/nccl-otf2/internal/stats"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// promFormat is the minor version of NCCL Inspector's metric format (inspector_prom.cc of NCCL, June 2026). The major
// version is that of NCCL's profiler interface.
const promFormat = 1

// promVersion returns the value of the label "version"; "" if the version of the profiler interface is unknown.
func promVersion(properties []otf2.Property) string {
	api := property.Read(&otf2.Anchor{Properties: properties}).Text(property.APIVersion)
	if api == "" {
		return ""
	}
	return fmt.Sprintf("v%s.%d", api, promFormat)
}

// promKey identifies a bucket of operations, as in NCCL Inspector.
type promKey struct {
	message   bool
	node, gpu string
	comm      string
	nodes     string
	ranks     int
	function  string
	size      uint64 // lower bound of the range of sizes, in bytes
	algoProto string
}

func (k promKey) compare(o promKey) int {
	return cmp.Or(cmp.Compare(k.node, o.node), cmp.Compare(k.gpu, o.gpu), cmp.Compare(k.comm, o.comm),
		cmp.Compare(k.nodes, o.nodes), cmp.Compare(k.ranks, o.ranks),
		cmp.Compare(k.function, o.function), cmp.Compare(k.size, o.size), cmp.Compare(k.algoProto, o.algoProto))
}

// label is a name and its value.
type label [2]string

// promKind states for what a metric is written: archives, running jobs, or both.
type promKind uint8

const (
	archiveMetric promKind = 1 << iota
	runningMetric
	everyMetric = archiveMetric | runningMetric
)

// exposition holds the values from which a text of metrics about an archive or a running job is written.
type exposition struct {
	kind           promKind
	job, directory string // "" if unknown
	version        string
	buckets        map[promKey]promBucket
	ranks          []*rankSums // in order
	lost           map[string]uint64
	duration       uint64 // ns

	culprits []verdict.Culprit // archives only
	set      *verdict.Set      // archives only; nil: none

	// The following are for running jobs only.
	processes map[string]int
	leftOut   int
	ended     bool
	written   time.Time
	counted   map[string]float64 // highest value of each counter, by series
}

// promBucket holds the values of a bucket.
type promBucket struct {
	bandwidth  float64 // GB/s
	median     float64 // µs; for several sizes, the mean of their medians
	operations uint64
}

// sizeTimes holds the durations, in ns, of the operations of one size in a bucket.
type sizeTimes[T uint64 | float64] struct {
	bus   float64 // bytes: the size times nccl-tests' bus factor
	times stats.Distribution[T]
}

// sizeTimesOf returns the sizeTimes of a size in a bucket, and creates it if needed.
func sizeTimesOf[T uint64 | float64](speeds map[promKey]map[uint64]*sizeTimes[T], k promKey,
	size uint64) *sizeTimes[T] {
	return keyed.Entry(keyed.Map(speeds, k), size)
}

// sumSizes combines the sizes of a bucket. Inspector computes means; here each operation counts with the median of its
// size, as in the report, but for one GPU.
func sumSizes[T uint64 | float64](sizes map[uint64]*sizeTimes[T]) (b promBucket) {
	var moved timing.Moved
	for _, size := range slices.Sorted(maps.Keys(sizes)) {
		s := sizes[size]
		moved.Add(s.times.Count, s.bus, s.times.Percentile(50))
		b.operations += s.times.Count
	}
	b.bandwidth, b.median = moved.Bandwidth(), moved.Time/float64(b.operations)/1e3
	return b
}

// rankSums holds the sums of a rank, or of all ranks of a node; times are in ns.
type rankSums struct {
	node, rank        string
	operations        uint64
	time, waited      uint64
	waitKnown         bool // waited and caused are valid
	caused            float64
	goesBack          *float64 // nil: unknown
	busBytes, busTime float64
}

// promMetric defines a metric.
type promMetric struct {
	name, help string
	kind       promKind
	counter    bool // otherwise a gauge
	digits     int  // significant digits; −1: as many as needed
	samples    func(x *exposition, add addSample)
}

// addSample adds a sample with its labels, in this order.
type addSample func(value float64, labels ...label)

// promMetrics lists all metrics in the order in which they are written. The first four are NCCL Inspector's. Those of
// archives match the report of the run, without start-up.
var promMetrics = []promMetric{
	{"nccl_bus_bandwidth_gbs", "Bus bandwidth of collectives in GB/s, of the median operation.", everyMetric, false, 6,
		bucketSamples(false, func(b promBucket) float64 { return b.bandwidth })},
	{"nccl_collective_exec_time_microseconds", "Execution time of collectives in microseconds, median.", everyMetric,
		false, 6, bucketSamples(false, func(b promBucket) float64 { return b.median })},
	{"nccl_p2p_bus_bandwidth_gbs", "Bandwidth of messages in GB/s, of the median operation.", everyMetric, false, 6,
		bucketSamples(true, func(b promBucket) float64 { return b.bandwidth })},
	{"nccl_p2p_exec_time_microseconds", "Execution time of messages in microseconds, median.", everyMetric, false, 6,
		bucketSamples(true, func(b promBucket) float64 { return b.median })},

	{"nccl_otf2_operations_total", "Operations of a rank.", runningMetric, true, -1,
		rankSamples(func(r *rankSums) (float64, bool) { return float64(r.operations), true })},
	{"nccl_otf2_operations_seconds_total", "Time of a rank in its operations.", runningMetric, true, -1,
		rankSamples(timeSeconds)},
	{"nccl_otf2_waited_seconds_total",
		"Of that, waiting for others in collectives, without start-up; estimated from samples.",
		runningMetric, true, -1, rankSamples(waitedSeconds)},
	{"nccl_otf2_caused_wait_seconds_total",
		"How long others waited in collectives because a rank came later; estimated from samples.",
		runningMetric, true, -1,
		rankSamples(func(r *rankSums) (float64, bool) { return toSeconds(r.caused), r.waitKnown })},
	{"nccl_otf2_bus_bytes_total",
		"Bytes of a rank's operations times the factor of nccl-tests for the bus, of those that have a bandwidth.",
		runningMetric, true, -1, rankSamples(func(r *rankSums) (float64, bool) { return r.busBytes, r.busTime > 0 })},
	{"nccl_otf2_bus_seconds_total", "Time of the same operations.", runningMetric, true, -1,
		rankSamples(func(r *rankSums) (float64, bool) { return toSeconds(r.busTime), r.busTime > 0 })},
	{"nccl_otf2_caused_wait_share",
		"Whom the ranks waited for so far: share of all waiting in collectives, of the ranks with the largest.",
		runningMetric, false, 6, causedShares},
	{"nccl_otf2_lost_records_total", lostHelp, runningMetric, true, -1, lostRecords},
	{"nccl_otf2_processes", "Processes of the job, by state.", runningMetric, false, -1,
		func(x *exposition, add addSample) {
			for _, state := range slices.Sorted(maps.Keys(x.processes)) {
				add(float64(x.processes[state]), x.ownLabels(label{"state", state})...)
			}
		}},

	{"nccl_otf2_run_duration_seconds", "From the run's first event to its last.", everyMetric, false, -1,
		runSample(func(x *exposition) float64 { return toSeconds(float64(x.duration)) })},

	{"nccl_otf2_operations_seconds", "Time of a rank in operations whose members' times can be compared.",
		archiveMetric, false, -1, rankSamples(timeSeconds)},
	{"nccl_otf2_waited_seconds", "Of that, waiting for others.", archiveMetric, false, -1, rankSamples(waitedSeconds)},
	{"nccl_otf2_goes_back_seconds", "What others waited because of what a rank did itself.", archiveMetric, false, -1,
		rankSamples(func(r *rankSums) (float64, bool) {
			if r.goesBack == nil {
				return 0, false
			}
			return toSeconds(*r.goesBack), true
		})},
	{"nccl_otf2_culprit_share",
		"Whom the verdict names: part of all waiting that its longer work or slow transfers explain.",
		archiveMetric, false, -1, func(x *exposition, add addSample) {
			for i := range x.culprits {
				c := &x.culprits[i]
				add(c.Share, x.ownLabels(label{"node", c.Host}, label{"rank", units.RankName(c.Rank)},
					label{"kind", string(c.Kind)})...)
			}
		}},
	{"nccl_otf2_culprit_set_share", "Ranks that the verdict names together: share of all waiting that they caused.",
		archiveMetric, false, -1, func(x *exposition, add addSample) {
			if x.set != nil {
				add(x.set.Share, x.ownLabels(label{"node", x.set.Host}, label{"ranks", x.set.Name})...)
			}
		}},
	{"nccl_otf2_lost_records", lostHelp, archiveMetric, false, -1, lostRecords},

	{"nccl_otf2_series_left_out", "Series that are left out, as there are too many.", runningMetric, false, -1,
		runSample(func(x *exposition) float64 { return float64(x.leftOut) })},
	{"nccl_otf2_job_running", "1 while the job runs, 0 of one that has ended.", runningMetric, false, -1,
		runSample(func(x *exposition) float64 {
			if x.ended {
				return 0
			}
			return 1
		})},
	{"nccl_otf2_written_timestamp_seconds", "When this was written.", runningMetric, false, -1,
		runSample(func(x *exposition) float64 { return float64(x.written.UnixMilli()) / 1e3 })},
}

const lostHelp = "Records that were lost, by why and of what; none has a sample of 0."

// toSeconds converts ns to seconds.
func toSeconds(ns float64) float64 { return ns / 1e9 }

func timeSeconds(r *rankSums) (float64, bool) { return toSeconds(float64(r.time)), true }

func waitedSeconds(r *rankSums) (float64, bool) { return toSeconds(float64(r.waited)), r.waitKnown }

// bucketSamples makes the samples of a metric of collectives or, if message is true, of messages: one per bucket.
func bucketSamples(message bool, value func(promBucket) float64) func(x *exposition, add addSample) {
	return func(x *exposition, add addSample) {
		for _, k := range slices.SortedFunc(maps.Keys(x.buckets), promKey.compare) {
			if k.message == message {
				add(value(x.buckets[k]), x.bucketLabels(&k)...)
			}
		}
	}
}

// rankSamples makes the samples of a metric of ranks: one for each rank whose value is known.
func rankSamples(value func(r *rankSums) (v float64, known bool)) func(x *exposition, add addSample) {
	return func(x *exposition, add addSample) {
		for _, r := range x.ranks {
			if v, known := value(r); known {
				add(v, x.ownLabels(label{"node", r.node}, label{"rank", r.rank})...)
			}
		}
	}
}

// runSample makes the sample of a metric of the whole run.
func runSample(value func(x *exposition) float64) func(x *exposition, add addSample) {
	return func(x *exposition, add addSample) { add(value(x), x.ownLabels()...) }
}

func causedShares(x *exposition, add addSample) {
	all := 0.0
	for _, r := range x.ranks {
		all += r.caused
	}
	largest := slices.SortedStableFunc(slices.Values(x.ranks),
		func(a, b *rankSums) int { return cmp.Compare(b.caused, a.caused) })
	for _, r := range largest[:min(len(largest), mostCauses)] {
		if r.caused > 0 {
			add(r.caused/all, x.ownLabels(label{"node", r.node}, label{"rank", r.rank})...)
		}
	}
}

func lostRecords(x *exposition, add addSample) {
	for _, what := range slices.Sorted(maps.Keys(x.lost)) {
		add(float64(x.lost[what]), x.ownLabels(label{"reason", what})...)
	}
	if len(x.lost) == 0 {
		add(0, x.ownLabels(label{"reason", "none"})...)
	}
}

// ownLabels returns the labels of metrics that Inspector does not have; labels are appended.
func (x *exposition) ownLabels(labels ...label) []label {
	all := []label{{"slurm_job_id", cmp.Or(x.job, "unknown")}}
	if x.directory != "" {
		all = append(all, label{"directory", x.directory})
	}
	return append(all, labels...)
}

// bucketLabels returns Inspector's labels of a bucket, followed by the directory if known.
func (x *exposition) bucketLabels(k *promKey) []label {
	labels := []label{
		{"version", cmp.Or(x.version, "unknown")}, {"slurm_job_id", cmp.Or(x.job, "unknown")}, {"node", k.node},
		{"gpu", k.gpu}, {"comm_name", k.comm}, {"n_nodes", k.nodes}, {"nranks", strconv.Itoa(k.ranks)},
	}
	if k.message {
		labels = append(labels, label{"p2p_operation", k.function}, label{"message_size", sizeRange(k.size)})
	} else {
		labels = append(labels, label{"collective", k.function}, label{"message_size", sizeRange(k.size)},
			label{"algo_proto", k.algoProto})
	}
	if x.directory != "" {
		labels = append(labels, label{"directory", x.directory})
	}
	return labels
}

// write writes the metrics in Prometheus's text format, and returns the number of samples. A counter never falls below
// the value in x.counted.
func (x *exposition) write(out io.Writer) (samples uint64, err error) {
	w := bufio.NewWriter(out)
	for i := range promMetrics {
		m := &promMetrics[i]
		if m.kind&x.kind == 0 {
			continue
		}
		before := samples
		m.samples(x, func(value float64, labels ...label) {
			if samples == before {
				kind := "gauge"
				if m.counter {
					kind = "counter"
				}
				fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n", m.name, m.help, m.name, kind)
			}
			if m.counter {
				series := fmt.Sprint(m.name, labels)
				value = max(value, x.counted[series])
				x.counted[series] = value
			}
			writeSample(w, m, value, labels)
			samples++
		})
	}
	return samples, w.Flush()
}

func writeSample(w *bufio.Writer, m *promMetric, value float64, labels []label) {
	w.WriteString(m.name)
	separator := '{' // every sample has labels
	for _, l := range labels {
		fmt.Fprintf(w, "%c%s=\"%s\"", separator, l[0], escapeLabel.Replace(strings.ToValidUTF8(l[1], "�")))
		separator = ','
	}
	fmt.Fprintf(w, "} %s\n", strconv.FormatFloat(value, 'g', m.digits, 64))
}

// promGPU returns Inspector's name of a device: "GPU" with the CUDA number, which our names have at the end ("CUDA
// Device 3"); "unknown" if there is none.
func promGPU(name string) string {
	if n, ok := deviceNumber(name); ok {
		return "GPU" + strconv.Itoa(n)
	}
	return "unknown"
}

var sizeUnits = [...]string{"B", "KB", "MB", "GB", "TB"}

// lowerBound rounds a size down to a whole number of the largest unit that fits.
func lowerBound(bytes uint64) uint64 {
	unit := uint64(1)
	for i := 0; bytes/unit >= 1024 && i < len(sizeUnits)-1; i++ {
		unit *= 1024
	}
	return bytes / unit * unit
}

// sizeRange returns the name of the range with a lower bound in bytes: "4-5GB".
func sizeRange(bytes uint64) string {
	if bytes == 0 {
		return "0B"
	}
	unit := 0
	for ; bytes >= 1024 && unit < len(sizeUnits)-1; unit++ {
		bytes /= 1024
	}
	return fmt.Sprintf("%d-%d%s", bytes, bytes+1, sizeUnits[unit])
}

// escapeLabel escapes label values (Prometheus text format, version 0.0.4).
var escapeLabel = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
