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

	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/stats"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// promFormat is the minor number of NCCL Inspector's format (inspector_prom.cc of NCCL, June 2026); the major one is
// the version of NCCL's profiler interface.
const promFormat = 1

// promKey is what identifies a sample: NCCL Inspector's buckets.
type promKey struct {
	message   bool
	node, gpu string
	comm      string
	nodes     string
	ranks     int
	function  string
	size      uint64 // lower bound of its range
	algoProto string
}

func (k promKey) compare(o promKey) int {
	return cmp.Or(cmp.Compare(k.node, o.node), cmp.Compare(k.gpu, o.gpu), cmp.Compare(k.comm, o.comm),
		cmp.Compare(k.nodes, o.nodes), cmp.Compare(k.ranks, o.ranks),
		cmp.Compare(k.function, o.function), cmp.Compare(k.size, o.size), cmp.Compare(k.algoProto, o.algoProto))
}

// labels are those of a sample, as Inspector has them.
func (k promKey) labels(version, job string) [][2]string {
	labels := [][2]string{
		{"version", version}, {"slurm_job_id", cmp.Or(job, "unknown")}, {"node", k.node}, {"gpu", k.gpu},
		{"comm_name", k.comm},
		{"n_nodes", k.nodes}, {"nranks", strconv.Itoa(k.ranks)},
	}
	if k.message {
		return append(labels, [2]string{"p2p_operation", k.function}, [2]string{"message_size", sizeRange(k.size)})
	}
	return append(labels, [2]string{"collective", k.function}, [2]string{"message_size", sizeRange(k.size)},
		[2]string{"algo_proto", k.algoProto})
}

// promSum is a bucket: of each size the times on the GPU. Inspector has means; here an operation counts with the median
// of its size, as in the report, but on one GPU.
type promSum struct {
	factor float64 // nccl-tests', for the bus
	times  map[uint64]*stats.Distribution[float64]
}

// add takes an operation's time in ns.
func (s *promSum) add(size uint64, ns float64) {
	d := s.times[size]
	if d == nil {
		d = new(stats.Distribution[float64])
		*d = facts.NewSpeed().Times
		s.times[size] = d
	}
	d.Add(ns)
}

// moved is all of the bucket.
func (s *promSum) moved() (m facts.Moved, n uint64) {
	for _, size := range slices.Sorted(maps.Keys(s.times)) {
		d := s.times[size]
		m.Add(d.Count, float64(size), d.Percentile(50))
		n += d.Count
	}
	return m, n
}

// promMetrics are the samples that a bucket gives: of collectives, and of messages.
var promMetrics = []struct {
	message    bool
	name, help string
	value      func(*promSum) float64
}{
	{false, "nccl_bus_bandwidth_gbs", "Bus bandwidth of collectives in GB/s, of the median operation.",
		(*promSum).bandwidth},
	{false, "nccl_collective_exec_time_microseconds", "Execution time of collectives in microseconds, median.",
		(*promSum).median},
	{true, "nccl_p2p_bus_bandwidth_gbs", "Bandwidth of messages in GB/s, of the median operation.",
		(*promSum).bandwidth},
	{true, "nccl_p2p_exec_time_microseconds", "Execution time of messages in microseconds, median.", (*promSum).median},
}

// median is the time in µs; of several sizes the mean of their medians.
func (s *promSum) median() float64 {
	m, n := s.moved()
	return m.Time / float64(n) / 1e3
}

func (s *promSum) bandwidth() float64 {
	m, _ := s.moved()
	return m.Bandwidth() * s.factor
}

// Prometheus writes a file for the node exporter's textfile collector, or to stdout if path is "-". Operations without
// GPU time are left out, as Inspector leaves them out, such as were launched together with different ones, which have
// no time of their own, and those of start-up.
func Prometheus(a *otf2.Archive, path string, stdout io.Writer, opts *Options) (*Result, error) {
	e := newExporter(a, opts)
	sums := make(map[promKey]*promSum)
	problems, err := operations.EachPart(a, e.opts.Selection, analysis.Slice{}, func(p *operations.Part) error {
		duration := e.rows.clock.nanoseconds(int64(p.End - p.Begin))
		switch {
		case p.Source == "network" || p.Source == "enqueue":
			e.leaveOut("operations without GPU time")
			return nil
		case !p.HasBandwidth():
			e.leaveOut("operations launched together with others")
			return nil
		case p.StartUp:
			e.leaveOut("operations of start-up")
			return nil
		case duration <= 0:
			e.leaveOut("operations without length")
			return nil
		}
		k := e.promKey(p)
		s := sums[k]
		if s == nil {
			s = &promSum{factor: p.BusFactor, times: make(map[uint64]*stats.Distribution[float64])}
			sums[k] = s
		}
		s.add(p.Size, float64(duration)/float64(max(p.Equal, 1)))
		e.count("operations")
		return nil
	})
	e.problems(problems)
	if err != nil {
		return nil, err
	}
	report, err := operations.Observe(a, &operations.Observer{Selection: e.opts.Selection})
	if err != nil {
		return nil, err
	}
	e.problems(report.Problems)
	if err := e.into(path, stdout, func(w io.Writer) error { return e.writeSums(w, sums, report) }); err != nil {
		return nil, err
	}
	return &e.result, nil
}

func (e *exporter) promKey(p *operations.Part) promKey {
	row := e.rows.of[p.Location]
	k := promKey{
		message: p.Message(), node: cmp.Or(row.process.host, "unknown"), gpu: promGPU(row.gpu),
		comm:  cmp.Or(p.Communicator, "unknown"),
		nodes: "unknown", ranks: p.Ranks, function: p.Function, size: lowerBound(p.Share),
	}
	if c := e.rows.comms[p.Comm]; c != nil && c.nodes > 0 {
		k.nodes = strconv.Itoa(c.nodes)
	}
	if !k.message {
		k.algoProto = cmp.Or(p.Algorithm, "unknown") + "_" + cmp.Or(p.Protocol, "unknown")
	}
	return k
}

// promGPU is Inspector's name of a device: "GPU" and its CUDA number, which ours has behind its class ("CUDA Device
// 3").
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

// sizeRange names the range that begins at a lower bound: "4-5GB".
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

func (e *exporter) writeSums(out io.Writer, sums map[promKey]*promSum, report *operations.Report) error {
	keys := make([]promKey, 0, len(sums))
	for k := range sums {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, promKey.compare)
	w := bufio.NewWriter(out)
	version := "unknown"
	if api := facts.PropertiesOf(e.archive.Anchor).Text(facts.PropAPIVersion); api != "" {
		version = fmt.Sprintf("v%s.%d", api, promFormat)
	}
	for _, m := range promMetrics {
		head := false
		for _, k := range keys {
			if k.message != m.message {
				continue
			}
			if !head {
				fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s gauge\n", m.name, m.help, m.name)
				head = true
			}
			labels := k.labels(version, e.opts.Job)
			writeSample(w, m.name, labels, m.value(sums[k]), 6)
			e.result.Records["samples"]++
		}
	}
	e.writeReport(w, report)
	return w.Flush()
}

// escapeLabel escapes the value of a label (Prometheus's text format, version 0.0.4).
var escapeLabel = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
