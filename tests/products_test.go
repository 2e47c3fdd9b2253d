// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/flate"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/compare"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/efficiency"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/live"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/matrix"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/tally"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/verdict"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/waits"
	"github.com/nccl-otf2/nccl-otf2/internal/export"
	"github.com/nccl-otf2/nccl-otf2/internal/export/tracetest"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/naming"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/timing"
	"github.com/nccl-otf2/nccl-otf2/internal/profile/cubex"
	"github.com/nccl-otf2/nccl-otf2/internal/report"
	"github.com/nccl-otf2/nccl-otf2/internal/stats"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
	"github.com/nccl-otf2/nccl-otf2/internal/view"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// product is something that the tool makes of an archive, and the figures that it shows.
type product struct {
	name string
	args []string // of the tool; DIR stands for the experiment directory
	file string   // relative to DIR, a pattern, where the product is no standard output
	read func(f figures, name string, outputs map[string][]byte) error
}

// products are all of which figures are compared.
var products = []product{
	{"report", []string{"report", "DIR", "--format", "json"}, "", readReport},
	{"report, text", []string{"report", "DIR"}, "", readReportText},
	{"report, CSV", []string{"report", "DIR", "--format", "csv"}, "", readReportCSV},
	{"report, HTML", []string{"report", "DIR", "--html", "-o", "DIR/report.html"}, "report.html", readReportHTML},
	{"report, Markdown", []string{"report", "DIR", "--format", "markdown"}, "", readReportMarkdown},
	{"report --nccl-tests", []string{"report", "DIR", "--nccl-tests", "--format", "json"}, "", readNCCLTests},
	{"report --tally", []string{"report", "DIR", "--tally", "--format", "json"}, "", readTally},
	{"report --waits", []string{"report", "DIR", "--waits", "--format", "json"}, "", readWaits},
	{"report --matrix", []string{"report", "DIR", "--matrix", "--format", "json"}, "", readMatrix},
	{"report --path", []string{"report", "DIR", "--path", "--format", "json"}, "", readPath},
	{"profile --summary", []string{"profile", "DIR", "--summary", "DIR/summary.json"}, "summary.json", readSummary},
	{"export --jsonl", []string{"export", "--jsonl", "DIR"}, "jsonl/*.jsonl", readJSONL},
	{"export --perfetto", []string{"export", "--perfetto", "DIR"}, "trace.pftrace", readPerfetto},
	{"export --parquet", []string{"export", "--parquet", "DIR"}, "parquet/*.parquet", readParquet},
	{"export --prometheus", []string{"export", "--prometheus", "DIR"}, "nccl_otf2.prom", readPrometheus},
	{"timeline", []string{"timeline", "DIR"}, "timeline.html", readTimeline},
	{"diff", []string{"diff", "DIR", "DIR", "--warm-up", "0", "--format", "json"}, "", readDiff},
	{"top", []string{"top", "DIR", "--once", "--format", "json"}, "", readTop},
	{"view --scalasca", []string{"view", "--scalasca", "DIR", "--format", "json"}, "", readView},
	{"view --scalasca, its archive", []string{"print", "--show-all", "DIR/scalasca/traces.otf2"}, "", readViewed},
}

// goName is a member of JSON that is written as Go writes names. Those of properties, which are members of some
// objects, are in capitals.
var goName = regexp.MustCompile(`(?m)^\s*"[A-Z][a-z]\w*":`)

// outputs runs the tool for all products, and reads what it wrote, by the product's name.
func outputs(t *testing.T, dir string) map[string]map[string][]byte {
	t.Helper()
	all := make(map[string]map[string][]byte)
	for _, p := range products {
		args := make([]string, len(p.args))
		for i, a := range p.args {
			args[i] = strings.ReplaceAll(a, "DIR", dir)
		}
		cmd := exec.Command(builtFile(t, "nccl-otf2"), args...)
		out := testkit.Output(t, cmd)
		if slices.Contains(p.args, "json") {
			name := goName.Find(out)
			testkit.Check(t, name == nil, "%s has a member %s, a name of the code's", p.name, name)
		}
		all[p.name] = map[string][]byte{"": out}
		if p.file == "" {
			continue
		}
		files, err := filepath.Glob(filepath.Join(dir, p.file))
		testkit.Require(t, err == nil && len(files) != 0, "%s has written no %s", p.name, p.file)
		all[p.name] = make(map[string][]byte)
		for _, file := range files {
			all[p.name][filepath.Base(file)] = testkit.Value(os.ReadFile(file))(t)
		}
	}
	return all
}

// figuresOf collects the figures of all products.
func figuresOf(all map[string]map[string][]byte) (figures, error) {
	f := make(figures)
	for _, p := range products {
		if err := p.read(f, p.name, all[p.name]); err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
	}
	if f["not counted"]["report"].value > 0 {
		f.dropAllRecorded()
	}
	return f, nil
}

// dropAllRecorded drops figures of all that members recorded, which tallies and profiles have: a report leaves out
// operations that not all members have ended, or that they did not record alike, and says so. Its answer is then what
// stopped the job, and not of waiting.
func (f figures) dropAllRecorded() {
	for what := range f {
		if strings.HasSuffix(what, " calls") || strings.Contains(what, " alone") ||
			strings.HasSuffix(what, " size of members") || what == "calls" ||
			strings.HasPrefix(what, "busbw and times of members") || what == "verdict: waited" {
			delete(f, what)
		}
	}
}

func decode(outputs map[string][]byte, to any) error {
	for _, text := range outputs {
		return json.Unmarshal(text, to)
	}
	return fmt.Errorf("there is no output")
}

// kind is what a row of a table of operations is of.
type kind struct {
	comm, operation, datatype string
	size                      uint64
	source                    string
	grouped, replayed         bool
	equal, root               int // root −1: none
	inPlace                   string
	algorithm, protocol       string
	variant                   string
}

func (k kind) String() string {
	text := fmt.Sprintf("%s, %s of %d %s, %s", k.comm, k.operation, k.size, k.datatype, k.source)
	for _, more := range []struct {
		is   bool
		text string
	}{
		{k.grouped, "grouped"}, {k.equal > 0, fmt.Sprint(k.equal, " equal")},
		{k.root >= 0, fmt.Sprint("root ", k.root)}, {k.replayed, "replayed"}, {k.inPlace != "", k.inPlace},
		{k.algorithm+k.protocol+k.variant != "", k.algorithm + " " + k.protocol + " " + k.variant},
	} {
		if more.is {
			text += ", " + more.text
		}
	}
	return text
}

func placeOf(inPlace *bool) string {
	switch {
	case inPlace == nil:
		return ""
	case *inPlace:
		return "in place"
	}
	return "out of place"
}

func kindOf(o *operations.Row) kind {
	k := kind{
		comm: o.Communicator, operation: o.Operation, datatype: o.Datatype, size: o.Size, source: o.TimingSource,
		grouped: o.Grouped, replayed: o.Replayed, equal: o.Equal, root: -1,
		inPlace: placeOf(o.InPlace), algorithm: strings.Join(o.Algorithms, ","),
		protocol: strings.Join(o.Protocols, ","), variant: strings.Join(o.Variants, ","),
	}
	if o.Root != nil {
		k.root = *o.Root
	}
	return k
}

// A report has a row for each kind of operations. Its times are of operations: of collectives the mean of their
// members'; of these the median, without start-up.
func readReport(f figures, name string, outputs map[string][]byte) error {
	var r operations.Report
	if err := decode(outputs, &r); err != nil {
		return err
	}
	if r.Verdict != nil {
		f.verdict(name, r.Verdict)
		f.add(name, "verdict: waited", float64(r.Verdict.Waited))
	}
	if r.CriticalPath != nil {
		f.path(name+", critical path", r.CriticalPath)
	}
	rows := make(map[kind][]operations.Row) // those with device buffers are apart
	ofName := make(map[string]*topSum)
	compared := make(map[string][]*operations.Row)
	written := make(map[string][]*operations.Row)
	curves := make(map[string][]*operations.Row)
	for i := range r.Operations {
		o := &r.Operations[i]
		if o.AlgBW > 0 && !o.Replayed && o.Equal == 0 {
			curves[curvePoint(o)] = append(curves[curvePoint(o)], o)
		}
		f.add(name, o.Operation+" calls", float64(o.Calls))
		f.add(name, o.Operation+" size of members", float64(o.Size*o.Calls))
		if !o.Grouped {
			f.add(name, o.Operation+" alone, calls", float64(o.Calls))
			f.add(name, o.Operation+" alone, member time",
				o.Time.Total*float64(o.Calls)/float64(o.Count)) // all members have ended
		}
		rows[kindOf(o)] = append(rows[kindOf(o)], *o)
		if ofName[o.Operation] == nil {
			ofName[o.Operation] = new(topSum)
		}
		ofName[o.Operation].row(o)
		compared[diffKind(o.Operation, o.Size, o.TimingSource, o.Equal)] = append(
			compared[diffKind(o.Operation, o.Size, o.TimingSource, o.Equal)], o)
		written[writtenName(o)] = append(written[writtenName(o)], o)
	}
	for k, of := range rows {
		key := k.String()
		least, most, timed := math.Inf(1), 0.0, uint64(0)
		for i := range of {
			o := &of[i]
			f.add(name, key+": operations", float64(o.Count))
			f.add(name, key+": time", o.Time.Total)
			f.add(name, key+": timed", float64(o.Timed))
			if timed += o.Timed; o.Timed > 0 {
				least, most = min(least, o.Time.Min), max(most, o.Time.Max)
			}
		}
		if timed > 0 {
			f.add(name, key+": least", least)
			f.add(name, key+": most", most)
		}
		if len(of) == 1 && !of[0].Approximate {
			f.row(name, key, &of[0])
		}
	}
	for key, of := range compared {
		if len(of) == 1 && of[0].Timed > 0 && (!of[0].Grouped || of[0].Equal > 0) {
			f.add(name, key, of[0].Time.P50)
		}
	}
	for key, of := range written {
		if len(of) == 1 {
			f.written(name, key, map[string]float64{
				"count": float64(of[0].Timed), "median": of[0].Time.P50, "algbw": of[0].AlgBW, "busbw": of[0].BusBW,
				"nobody late": transferOf(of[0]), "busbw nobody late": of[0].BusBWNobodyLate,
			}, 0)
		}
	}
	for point, of := range curves {
		if len(of) == 1 {
			f.add(name, point+": busbw", of[0].BusBW)
			f.add(name, point+": algbw", of[0].AlgBW)
		}
	}
	for operation, s := range ofName {
		if operation != "Recv" {
			s.show(f, name, operation)
		}
	}
	f.add(name, "not counted",
		float64(r.Summary.Unfinished+r.Summary.LeftOut+r.Summary.Oddities["INCOMPLETE_OPERATIONS"]))
	f.add(name, "duration", float64(r.Summary.Duration))
	f.add(name, "processes", float64(r.Summary.Processes))
	f.add(name, "hosts", float64(r.Summary.Hosts))
	f.add(name, "ranks", float64(r.Summary.Ranks))
	f.add(name, "communicators", float64(r.Summary.Communicators))
	f.add(name, "calls", float64(r.Summary.Calls))
	f.add(name, "operations", float64(r.Summary.Operations))
	f.add(name, "events", float64(r.Summary.Events))
	f.add(name, "lost", sum(r.Summary.Lost))
	f.add(name, "transfers", float64(r.Summary.Network["PUTS"]))
	f.add(name, "bytes of transfers", float64(r.Summary.Network["PUT_BYTES"]))
	f.add(name, "collectives compared", float64(r.Waits.Collectives))
	f.add(name, "waited in collectives", float64(r.Waits.Total))
	f.add(name, "waited at the start", float64(r.Waits.StartUp.Waited))
	readEfficiency(f, name, r.Efficiency)
	for _, w := range r.Waits.Ranks {
		f.add(name, w.Rank+" in collectives: waited", float64(w.Waited))
		f.add(name, w.Rank+" in collectives: caused", float64(w.Caused))
	}
	for _, p := range r.Phases {
		f.add(name, "phases", float64(p.Count+p.Points))
		if p.Depth <= 1 { // a page has no deeper ones
			f.add(name, p.Phase+": ended", float64(p.Count))
			f.near(name, p.Phase+": time", p.Time.Avg*float64(p.Count), 1e-9)
		}
	}
	return nil
}

func sum(all map[string]uint64) (n float64) {
	for _, v := range all {
		n += float64(v)
	}
	return n
}

// row notes what is timed of a row of the report.
func (f figures) row(name, key string, o *operations.Row) {
	if o.Timed == 0 {
		return
	}
	f.add(name, key+": p50", o.Time.P50)
	f.add(name, key+": p99", o.Time.P99)
	f.near(name, key+": average", o.Time.Avg, 1e-9)
	for what, v := range map[string]float64{"algbw": o.AlgBW, "busbw": o.BusBW, "algbw, nobody late": o.AlgBWNobodyLate,
		"busbw, nobody late": o.BusBWNobodyLate} {
		if v > 0 {
			f.add(name, key+": "+what, v)
		}
	}
	if o.Transfer != nil {
		f.add(name, key+": nobody late", o.Transfer.P50)
	}
	if m := o.Members; m != nil {
		f.add(name, key+": fastest member", m.Min)
		f.add(name, key+": slowest member", m.Max)
		if m.Rank0 != nil {
			f.add(name, key+": rank 0", *m.Rank0)
		}
	}
}

func transferOf(o *operations.Row) float64 {
	if o.Transfer == nil {
		return 0
	}
	return o.Transfer.P50
}

// diffKind names the median time of operations that diff takes together.
func diffKind(operation string, size uint64, source string, equal int) string {
	return fmt.Sprintf("median of %s of %d, %s, %d equal", operation, size, source, equal)
}

// topSum adds up operations of a name as top shows them: for the bandwidth each with the median of its size.
type topSum struct {
	count, timed, time, bytes float64
	bus                       timing.Moved
	comm                      string
	sizes                     map[uint64]bool
	mixed                     bool // not of one communicator, or several rows of one size
}

func (s *topSum) row(o *operations.Row) {
	s.count, s.bytes = s.count+float64(o.Count), s.bytes+float64(o.Size)*float64(o.Count)
	if o.TimingSource != "enqueue" {
		s.timed, s.time = s.timed+float64(o.Timed), s.time+float64(o.Timed)*o.Time.Avg
	}
	if s.sizes == nil {
		s.comm, s.sizes = o.Communicator, make(map[uint64]bool)
	}
	s.mixed = s.mixed || s.comm != o.Communicator || s.sizes[o.Size] || o.Mixed > 0
	if s.sizes[o.Size] = true; o.BusBW > 0 {
		s.bus.Add(o.Timed, o.BusBW*o.Time.P50, o.Time.P50)
	}
}

func (s *topSum) show(f figures, name, operation string) {
	f.add(name, operation+" operations", s.count)
	f.add(name, operation+" operations with times", s.timed)
	if s.timed > 0 {
		f.near(name, operation+" mean time", s.time/s.timed, 1e-9)
	}
	f.near(name, operation+" mean size", s.bytes/s.count, 0.5/max(s.bytes/s.count, 1)) // whole bytes
	if v := s.bus.Bandwidth(); v > 0 && !s.mixed {
		f.near(name, operation+" busbw", v, 1e-6)
	}
}

var operationsLine = regexp.MustCompile(`(?m)^  operations +(\d+) in (\d+) calls`)

// The text has three digits of each time and bandwidth.
func readReportText(f figures, name string, outputs map[string][]byte) error {
	m := operationsLine.FindSubmatch(outputs[""])
	if m == nil {
		return fmt.Errorf("no line of operations")
	}
	for i, what := range []string{"operations", "calls"} {
		n, err := strconv.ParseFloat(string(m[i+1]), 64)
		if err != nil {
			return err
		}
		f.add(name, what, n)
	}
	if err := f.answer(name, string(outputs[""])); err != nil {
		return err
	}
	cells := func(line string) []string { return gaps.Split(strings.TrimSpace(line), -1) }
	if err := f.waitedRows(name, tableRows(string(outputs[""]), ofAll, cells)); err != nil {
		return err
	}
	return f.writtenRows(name, tableRows(string(outputs[""]), "busbw GB/s", cells))
}

// A tally adds up regions by name: launches, so operations only where they were launched alone.
func readTally(f figures, name string, outputs map[string][]byte) error {
	var r struct{ Tally tally.Report }
	if err := decode(outputs, &r); err != nil {
		return err
	}
	type sum struct{ calls, time float64 }
	alone := make(map[string]sum)
	for _, g := range r.Tally.Groups {
		for _, row := range g.Rows {
			region := g.Group + "/" + row.Name
			if row.Launched {
				region += facts.LaunchedOnly
			}
			f.add(name, region+" regions", float64(row.Calls))
			f.add(name, region+" time", float64(row.Time))
			switch {
			case g.Group == regions.GroupApplication:
				f.add(name, "phases", float64(row.Calls))
			case g.Group != regions.GroupCollectives && g.Group != regions.GroupPointToPoint:
			case regions.CollectiveNamed(row.Name) != nil || facts.IsMessage(row.Name): // launches of one
				f.add(name, row.Name+" alone, calls", float64(row.Calls))
				f.add(name, row.Name+" alone, member time", float64(row.Time))
				alone[row.Name] = sum{alone[row.Name].calls + float64(row.Calls),
					alone[row.Name].time + float64(row.Time)}
			}
		}
	}
	for operation, s := range alone {
		f.add(name, shownAlone(operation, s.calls), s.time)
	}
	return nil
}

// waitMetrics are the causes of waiting in the words of reports and of profiles.
var waitMetrics = map[string]string{
	"collective": "nccl_wait_nxn", "late broadcast": "nccl_late_broadcast", "early reduce": "nccl_early_reduce",
	"late sender": "nccl_late_sender", "late receiver": "nccl_late_receiver",
}

const startUpMetric = "nccl_startup_wait"

// inCollectives are the causes that the report's own table adds up.
var inCollectives = []string{"collective", "late broadcast", "early reduce"}

func readWaits(f figures, name string, outputs map[string][]byte) error {
	var r struct{ Waits waits.States }
	if err := decode(outputs, &r); err != nil {
		return err
	}
	w := &r.Waits
	for kind, metric := range waitMetrics {
		f.add(name, metric, 0)
		for _, k := range w.Kinds {
			if k.Name == kind {
				f.add(name, metric, float64(k.Waited))
				if slices.Contains(inCollectives, kind) {
					f.add(name, "waited in collectives", float64(k.Waited))
				}
			}
		}
	}
	for _, row := range w.Ranks {
		f.add(name, row.Name+": waited", float64(row.Waited))
		f.add(name, row.Name+": caused", float64(row.Caused))
		f.add(name, row.Name+": late arrivals", float64(row.Last))
		f.add(name, row.Name+": compared", float64(row.Parts))
		if row.GoesBack != nil {
			f.near(name, row.Name+": goes back to it", *row.GoesBack, 0)
			if v := w.Verdict; v != nil && v.Waited > 0 && *row.GoesBack > 0 {
				f.near(name, row.Name+": "+ofAll, *row.GoesBack/float64(v.Waited), 1e-9)
			}
		}
	}
	f.add(name, "collectives compared", float64(w.Collectives))
	f.add(name, "waited", float64(w.Total.Waited))
	for _, part := range []string{"over time", "by communicator and operation", "by communicator"} {
		f.add(name+", "+part, "waited", 0)
	}
	for _, window := range w.OverTime {
		f.add(name+", over time", "waited", float64(window.Waited))
	}
	f.add(name, "waited in what cost the most", 0)
	for i := range w.Worst {
		f.add(name, "waited in what cost the most", float64(w.Worst[i].Caused))
	}
	for _, pair := range w.Pairs {
		f.add(name+", by communicator and operation", "waited", float64(pair.Waited))
		f.add(name, pair.Name+" on "+pair.Communicator+": waited", float64(pair.Waited))
		f.add(name, pair.Name+" on "+pair.Communicator+": waits", float64(pair.Waits))
	}
	for _, c := range w.Communicators {
		f.add(name+", by communicator", "waited", float64(c.Waited))
		f.add(name, c.Name+": waited", float64(c.Waited))
	}
	readEfficiency(f, name, w.Efficiency)
	f.add(name, startUpMetric, float64(w.StartUp.Waited))
	f.add(name, "waited at the start", float64(w.StartUp.Waited))
	return nil
}

// readEfficiency notes the efficiencies.
func readEfficiency(f figures, name string, e *efficiency.Result) {
	if e == nil || e.Ranks == nil {
		return
	}
	f.add(name, "ranks: load balance", e.Ranks.LoadBalance)
	f.add(name, "ranks: communication efficiency", e.Ranks.Communication)
	f.add(name, "ranks: parallel efficiency", e.Ranks.Parallel)
	f.near(name+", product", "ranks: parallel efficiency", e.Ranks.LoadBalance*e.Ranks.Communication, 1e-12)
	if e.Ranks.Transfer != nil {
		f.near(name+", product", "ranks: communication efficiency", *e.Ranks.Transfer**e.Ranks.Serialization, 1e-12)
	}
	mean, n := 0.0, 0.0
	for _, r := range e.ByRank {
		if r.Observed > 0 {
			mean += float64(r.Useful) / float64(r.Observed)
			n++
		}
	}
	f.near(name+", by rank", "ranks: parallel efficiency", mean/n, 1e-9)
}

func readMatrix(f figures, name string, outputs map[string][]byte) error {
	var r struct{ Matrix matrix.Report }
	if err := decode(outputs, &r); err != nil {
		return err
	}
	f.add(name, "transfers", 0)
	f.add(name, "bytes of transfers", 0)
	for _, n := range r.Matrix.Networks {
		f.add(name, "transfers", float64(n.Total.Transfers))
		f.add(name, "bytes of transfers", float64(n.Total.Bytes))
		f.add(name+", cells", "transfers", float64(n.UnknownSender.Transfers))
		f.add(name+", cells", "bytes of transfers", float64(n.UnknownSender.Bytes))
		for _, c := range n.Cells {
			f.add(name+", cells", "transfers", float64(c.Transfers))
			f.add(name+", cells", "bytes of transfers", float64(c.Bytes))
		}
	}
	for _, flow := range r.Matrix.Ranks {
		f.add(name, flow.From+" to "+flow.To+": transfers", float64(flow.Transfers))
		f.add(name, flow.From+" to "+flow.To+": bytes", float64(flow.Bytes))
		f.add(name, flow.From+" to "+flow.To+": busy", float64(flow.Busy))
		f.add(name, flow.From+" to "+flow.To+": bandwidth", flow.Bandwidth)
	}
	for of, flows := range map[string]int{"hosts": len(r.Matrix.Hosts), "channels": len(r.Matrix.Channels)} {
		if flows == 0 && len(r.Matrix.Networks) > 0 && r.Matrix.Networks[0].Total.Transfers > 0 {
			return fmt.Errorf("no %s", of)
		}
	}
	for _, flow := range r.Matrix.Nominal {
		f.add(name, flow.From+" to "+flow.To+": bytes of operations", float64(flow.Bytes))
		f.add(name, flow.From+" to "+flow.To+": operations", float64(flow.Transfers))
	}
	for _, c := range r.Matrix.Channels {
		f.add(name+", channels", "transfers", float64(c.Transfers))
		f.add(name+", channels", "bytes of transfers", float64(c.Bytes))
	}
	for _, h := range r.Matrix.Hosts {
		f.add(name+", hosts", "transfers", float64(h.Transfers))
		f.add(name+", hosts", "bytes of transfers", float64(h.Bytes))
	}
	return nil
}

// A profile's times are of members. Waits of profile mode may be estimated, which it then says.
func readSummary(f figures, name string, outputs map[string][]byte) error {
	var s cubex.Summary
	if err := decode(outputs, &s); err != nil {
		return err
	}
	f.add(name, "duration", float64(s.Duration))
	f.add(name, "processes", float64(s.Processes))
	figures := make(map[string][]float64) // of communicators
	for i := range s.Operations {
		o := &s.Operations[i]
		if o.Operation == "Group" {
			continue
		}
		f.add(name, o.Operation+" calls", float64(o.Calls))
		f.add(name, o.Operation+" size of members", float64(o.Size.Sum))
		if o.BusBW > 0 {
			key := profileName(o.Operation, o.Source, o.Grouped)
			figures[key] = append(figures[key], o.BusBW)
			figures[key+", algbw"] = append(figures[key+", algbw"], o.AlgBW)
		}
		if !o.Grouped && o.Time.Count > 0 {
			key := profileName(o.Operation, o.Source, false)
			figures[key+", p50"] = append(figures[key+", p50"], o.Time.P50)
			figures[key+", p99"] = append(figures[key+", p99"], o.Time.P99)
		}
		if !o.Grouped {
			f.add(name, o.Operation+" alone, calls", float64(o.Calls))
			f.add(name, o.Operation+" alone, member time", float64(o.Time.Sum))
			f.extreme(name, o.Operation+" alone, least of "+o.Source, float64(o.Time.Min), math.Min)
			f.extreme(name, o.Operation+" alone, most of "+o.Source, float64(o.Time.Max), math.Max)
		}
	}
	for key, all := range figures {
		if len(all) == 1 { // profiles have other names of communicators
			f.near(name, key, all[0], stats.PercentileError)
		}
	}
	f.add(name, "lost", float64(s.Lost))
	if s.Estimate == nil {
		for metric, ns := range s.Waits {
			f.add(name, metric, float64(ns))
		}
	}
	return nil
}

// What a line of JSONL tells.
type jsonlRecord struct {
	RecordType, Type, Func, Name string
	CommID                       any
	Rank                         any
	Duration                     float64 // µs
	TransSize                    *uint64
	Details                      struct {
		CommName, TimingSource string
		Plan                   uint64
		Unfinished             bool
	}
}

func readJSONL(f figures, name string, outputs map[string][]byte) error {
	f.add(name, "transfers", 0)
	f.add(name, "bytes of transfers", 0)
	f.add(name, "calls", 0)
	for file, text := range outputs {
		type launch struct {
			comm, rank any
			plan       uint64
		}
		var operations []jsonlRecord
		launched := make(map[launch]int)
		lines := bufio.NewScanner(bytes.NewReader(text))
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var r jsonlRecord
			if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			if r.RecordType == "state" {
				if r.TransSize != nil {
					f.add(name, "bytes of transfers", float64(*r.TransSize))
				}
				continue
			}
			ns := math.Round(r.Duration * 1e3)
			region := func(of string) {
				f.add(name, of+" regions", 1)
				f.add(name, of+" time", ns)
			}
			switch r.Type {
			case "ncclProfileColl", "ncclProfileCeColl", "ncclProfileP2p":
				operations = append(operations, r)
				launched[launch{r.CommID, r.Rank, r.Details.Plan}]++
			case "ncclProfileCollApi", "ncclProfileP2pApi":
				region(regions.GroupAPI + "/" + regions.NameCall + r.Func)
			case "ncclProfileKernelLaunch":
				region(regions.GroupEnqueue + "/" + regions.NameKernelLaunch)
			case "ncclProfileProxyStep":
				f.add(name, "transfers", 1)
			}
		}
		for _, r := range operations {
			f.add(name, r.Func+" calls", 1)
			f.add(name, "calls", 1)
			if launched[launch{r.CommID, r.Rank, r.Details.Plan}] == 1 {
				f.add(name, r.Func+" alone, calls", 1)
				f.add(name, r.Func+" alone, member time", math.Round(r.Duration*1e3))
			}
		}
		if err := lines.Err(); err != nil {
			return err
		}
	}
	return nil
}

// addWait adds up a wait of one member.
func addWait(f figures, name, kind, rank, culprit string, startUp bool, waited float64) {
	if startUp {
		f.add(name, startUpMetric, waited)
		return
	}
	f.add(name, waitMetrics[kind], waited)
	f.add(name, "waited", waited)
	f.add(name, rank+": waited", waited)
	f.add(name, culprit+": caused", waited)
	if slices.Contains(inCollectives, kind) {
		f.add(name, "waited in collectives", waited)
		f.add(name, rank+" in collectives: waited", waited)
		f.add(name, culprit+" in collectives: caused", waited)
	}
}

// noWaits says that there are none of a kind, where none follow.
func noWaits(f figures, name string) {
	for _, metric := range append(slices.Collect(maps.Values(waitMetrics)), startUpMetric) {
		f.add(name, metric, 0)
	}
}

// A trace for viewers has the regions that the tally adds up, those of channels' rows apart.
func readPerfetto(f figures, name string, outputs map[string][]byte) error {
	trace, err := tracetest.Read(outputs["trace.pftrace"])
	if err != nil {
		return err
	}
	f.add(name, "transfers", 0)
	f.add(name, "bytes of transfers", 0)
	noWaits(f, name)
	for _, s := range trace.Slices {
		row := trace.Tracks[s.Track].Name
		text := func(key string) string { v, _ := s.Args[key].(string); return v }
		switch duration := float64(s.End - s.Begin); s.Category {
		case "transfer":
			if bytes, _ := s.Args["bytes"].(uint64); !s.Instant {
				f.add(name, "transfers", 1)
				f.add(name, "bytes of transfers", float64(bytes))
			}
		case "wait":
			addWait(f, name, text("kind"), text("rank_name"), text("for_rank_name"), s.Args["start_up"] != nil,
				duration)
		case "answer", "marker", "measurement":
		default:
			group := s.Category
			if _, channel := naming.Channel(row); channel {
				group = "NCCL channels"
			}
			if s.Args["unfinished"] == nil { // the tally counts them apart
				f.add(name, group+"/"+s.Name+" regions", 1)
				f.add(name, group+"/"+s.Name+" time", duration)
			}
		}
	}
	return nil
}

func table[T any](text []byte) ([]T, error) {
	return parquet.Read[T](bytes.NewReader(text), int64(len(text)))
}

func valueOf[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// Tables have members: what reports have of operations is worked out here as they say.
func readParquet(f figures, name string, outputs map[string][]byte) error {
	operations, err := table[export.Operation](outputs[export.OperationsFile])
	if err != nil {
		return err
	}
	type instance struct {
		comm     int32
		function string
		ordinal  int64
		member   int32 // of messages, which are one for each end
		peer     int32
	}
	members := make(map[instance][]*export.Operation)
	for i := range operations {
		o := &operations[i]
		f.add(name, o.Function+" calls", 1)
		f.add(name, "calls", 1)
		f.add(name, o.Function+" size of members", float64(o.Size))
		if !o.Grouped {
			f.add(name, o.Function+" alone, calls", 1)
			f.add(name, o.Function+" alone, member time", float64(o.Duration))
			f.extreme(name, o.Function+" alone, least of "+valueOf(o.TimingSource), float64(o.Duration), math.Min)
			f.extreme(name, o.Function+" alone, most of "+valueOf(o.TimingSource), float64(o.Duration), math.Max)
		}
		k := instance{comm: o.Comm, function: o.Function, ordinal: o.Ordinal, member: -1, peer: -1}
		if facts.IsMessage(o.Function) {
			k.member, k.peer = o.Rank, *o.Peer
		}
		members[k] = append(members[k], o)
	}
	rows := make(map[kind]*timedRow)
	for _, all := range members {
		if !all[0].Consistent || all[0].Peer == nil && len(all) < int(all[0].Members) {
			continue // the report leaves it out
		}
		k, timed := memberKind(all), newTimed(all)
		if rows[k] == nil {
			rows[k] = new(timedRow)
		}
		rows[k].add(timed)
	}
	for k, r := range rows {
		r.show(f, name, k)
	}
	addProfiles(f, name, operations)
	addBuckets(f, name, operations)
	runs, err := table[export.RunRow](outputs[export.RunsFile])
	if err != nil {
		return err
	}
	for _, r := range runs {
		f.add(name, "duration", float64(r.Duration))
		f.add(name, "processes", float64(r.Processes))
		f.add(name, "hosts", float64(r.Hosts))
		f.add(name, "ranks", float64(r.Ranks))
	}
	transfers, err := table[export.TransferRow](outputs[export.TransfersFile])
	if err != nil {
		return err
	}
	f.add(name, "transfers", float64(len(transfers)))
	f.add(name, "bytes of transfers", 0)
	for _, x := range transfers {
		f.add(name, "bytes of transfers", float64(x.Bytes))
		if x.FromName != nil && x.ToName != nil {
			f.add(name, *x.FromName+" to "+*x.ToName+": transfers", 1)
			f.add(name, *x.FromName+" to "+*x.ToName+": bytes", float64(x.Bytes))
		}
	}
	waits, err := table[export.WaitRow](outputs[export.WaitsFile])
	if err != nil {
		return err
	}
	noWaits(f, name)
	for _, w := range waits {
		addWait(f, name, w.Kind, w.RankName, w.ForName, w.StartUp, float64(w.Waited))
	}
	return nil
}

// bucketOf is what metrics of one operation on one GPU are told apart by, without its size.
func bucketOf(node, gpu, comm, function, way string) string {
	return fmt.Sprintf("%s (%s) on %s %s of %s", function, way, node, gpu, comm)
}

// addBuckets works out what the metrics for Prometheus say that they are: medians of a GPU's times, and bandwidths of
// these. They do not tell numbers of operations, so only metrics of one size are compared.
func addBuckets(f figures, name string, operations []export.Operation) {
	type bucket struct {
		size, factor float64
		times        []float64
		several      bool
	}
	all := make(map[string]*bucket)
	for i := range operations {
		o := &operations[i]
		source := facts.SourceOf(valueOf(o.TimingSource))
		if o.Grouped && o.Equal == 0 || o.StartUp || o.Duration <= 0 || source == facts.SourceNetwork ||
			source == facts.SourceEnqueue {
			continue // left out, as the tool says
		}
		way := "message"
		if !facts.IsMessage(o.Function) {
			way = cmp.Or(valueOf(o.Algorithm), "unknown") + "_" + cmp.Or(valueOf(o.Protocol), "unknown")
		}
		_, device, _ := strings.Cut(valueOf(o.GPU), " Device ")
		key := bucketOf(o.Host, "GPU"+device, o.Communicator, o.Function, way)
		if all[key] == nil {
			all[key] = &bucket{size: float64(o.Size), factor: valueOf(o.BusBW) / valueOf(o.AlgBW)}
		}
		b := all[key]
		b.times, b.several = append(b.times, memberTime(o)), b.several || b.size != float64(o.Size)
	}
	for key, b := range all {
		if !b.several {
			median := nearestRank(b.times, 0.5)
			f.add(name, key+", median µs", median/1e3)
			f.add(name, key+", busbw", b.size/median*b.factor)
		}
	}
}

var (
	sample      = regexp.MustCompile(`^(\w+)\{(.*)\} (\S+)$`)
	sampleLabel = regexp.MustCompile(`(\w+)="([^"]*)"`)
)

func readPrometheus(f figures, name string, outputs map[string][]byte) error {
	values := make(map[string][]float64)
	for line := range strings.Lines(string(outputs["nccl_otf2.prom"])) {
		m := sample.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil {
			continue
		}
		labels := make(map[string]string)
		for _, pair := range sampleLabel.FindAllStringSubmatch(m[2], -1) {
			labels[pair[1]] = pair[2]
		}
		if ns, err := strconv.ParseFloat(m[3], 64); strings.HasPrefix(m[1], "nccl_otf2_") {
			if err != nil {
				return err
			}
			switch ns = math.Round(ns * 1e9); m[1] {
			case "nccl_otf2_waited_seconds":
				f.add(name, labels["rank"]+": waited", ns)
				f.add(name, "waited", ns)
			case "nccl_otf2_run_duration_seconds":
				f.add(name, "duration", ns)
			}
			continue
		}
		key := bucketOf(labels["node"], labels["gpu"], labels["comm_name"],
			labels["collective"]+labels["p2p_operation"], cmp.Or(labels["algo_proto"], "message"))
		if strings.HasSuffix(m[1], "_exec_time_microseconds") {
			key += ", median µs"
		} else {
			key += ", busbw"
		}
		v, err := strconv.ParseFloat(m[3], 64)
		if err != nil {
			return err
		}
		values[key] = append(values[key], v)
	}
	for key, all := range values {
		if len(all) == 1 { // of one range of sizes; six digits
			f.near(name, key, all[0], 1e-5)
		}
	}
	return nil
}

// same notes a text, which has to be the same letter by letter.
func (f figures) same(product, what, text string) {
	sum := fnv.New32()
	io.WriteString(sum, text)
	f.add(product, what, float64(sum.Sum32()))
}

// compareStampedEnds compares the mean times of a running job with those of its archive. The former end where NCCL
// stamped a part's end, and the latter where that was moved to (docs/gpu.md), so they may be longer.
func (f figures) compareStampedEnds(t *testing.T, moved bool) {
	for what, of := range f {
		top, shown := of["top"]
		if moved && shown && strings.HasSuffix(what, " mean time") {
			testkit.Check(t, top.value <= of["report"].value*(1+1e-9), "%s: top has %v, report %v", what, top.value,
				of["report"].value)
			delete(of, "top")
		}
	}
}

// verdict notes who is named, and the answer's text.
func (f figures) verdict(product string, v *verdict.Verdict) {
	f.same(product, "verdict: text", v.Text)
	f.add(product, "verdict: culprits", float64(len(v.Culprits)))
	for i, c := range v.Culprits {
		f.add(product, fmt.Sprintf("verdict: culprit %d", i), float64(c.Rank))
		f.add(product, fmt.Sprintf("verdict: culprit %d: share", i), c.Share)
		f.add(product, fmt.Sprintf("verdict: culprit %d: %s", i, ofAll), c.Caused)
		if c.Kind == verdict.HostLate { // to what a GPU does before operations belongs what it does within them
			f.near(product, units.RankName(c.Rank)+": "+ofAll, c.Caused, 1e-9)
		}
		f.add(product, fmt.Sprintf("verdict: culprit %d: confidence", i), c.Confidence)
	}
}

var pageHead = regexp.MustCompile(`<script type="application/octet-stream" id="head">([^<]*)</script>`)

// pageFlow is what went from one rank of a page's head to another one.
type pageFlow struct {
	From, To     int
	Count, Bytes float64
}

func sumOf(all []float64) (n float64) {
	for _, v := range all {
		n += v
	}
	return n
}

// A page begins with its head, which has the figures that it shows from the start.
func readTimeline(f figures, name string, outputs map[string][]byte) error {
	m := pageHead.FindSubmatch(outputs["timeline.html"])
	if m == nil {
		return fmt.Errorf("the page has no head")
	}
	packed, err := base64.StdEncoding.DecodeString(string(m[1]))
	if err != nil {
		return err
	}
	text, err := io.ReadAll(flate.NewReader(bytes.NewReader(packed)))
	if err != nil {
		return err
	}
	var h struct {
		Ranks []struct {
			Name                 string
			Waited, Caused, Back float64
			BackBy               []float64
		}
		Matrix  struct{ Transfers, Nominal []pageFlow }
		Waiting []struct {
			Comm          int
			Name          string
			Waits, Waited float64
		}
		Comms     []struct{ Name string }
		Functions []string
		Phases    []struct {
			Kind        string
			Count, Time float64
		}
		Totals  struct{ Operations, Transfers, Events, Collectives, Waited, Hosts, Comms float64 }
		Verdict verdict.Verdict
		Answer  struct {
			Windows []struct{ Waited float64 }
			Worst   []struct{ Caused float64 }
		}
		Bandwidth *report.Plot
		Duration  float64
		Path      *pagePath
		Waits     *pageSeries
		Blocks    [][3]int
	}
	if err := json.Unmarshal(text, &h); err != nil {
		return err
	}
	f.add(name, "calls", h.Totals.Operations)
	f.add(name, "transfers", h.Totals.Transfers)
	f.add(name, "events", h.Totals.Events)
	f.add(name, "collectives compared", h.Totals.Collectives)
	f.add(name, "waited", h.Totals.Waited)
	f.add(name, "duration", h.Duration)
	f.add(name, "hosts", h.Totals.Hosts)
	f.add(name, "communicators", h.Totals.Comms)
	f.verdict(name, &h.Verdict)
	f.add(name+", over time", "waited", 0)
	for _, w := range h.Answer.Windows {
		f.add(name+", over time", "waited", w.Waited)
	}
	f.add(name, "waited in what cost the most", 0)
	for _, w := range h.Answer.Worst {
		f.add(name, "waited in what cost the most", w.Caused)
	}
	if err := f.curves(name, h.Bandwidth); err != nil {
		return err
	}
	for _, r := range h.Ranks {
		f.add(name, r.Name+": waited", r.Waited)
		f.add(name, r.Name+": caused", r.Caused)
		const rounded = 0.6 // ns
		f.near(name, r.Name+": goes back to it", r.Back, rounded/max(1, r.Back))
		if r.BackBy != nil {
			f.near(name+", by kinds", r.Name+": goes back to it", sumOf(r.BackBy), 2*rounded/max(1, r.Back))
		}
	}
	comm := func(at int) string { return h.Comms[at].Name }
	for _, w := range h.Waiting {
		f.add(name, w.Name+" on "+comm(w.Comm)+": waited", w.Waited)
		f.add(name, w.Name+" on "+comm(w.Comm)+": waits", w.Waits)
	}
	for _, p := range h.Phases {
		f.add(name, p.Kind+": ended", p.Count)
		f.near(name, p.Kind+": time", f[p.Kind+": time"][name].value+p.Time, 1e-9)
	}
	for _, flow := range h.Matrix.Nominal {
		if flow.From >= 0 && flow.To >= 0 {
			pair := h.Ranks[flow.From].Name + " to " + h.Ranks[flow.To].Name
			f.add(name, pair+": bytes of operations", flow.Bytes)
			f.add(name, pair+": operations", flow.Count)
		}
	}
	blocks := pageBlocks{outputs["timeline.html"], h.Blocks}
	if h.Path != nil {
		if err := blocks.path(f, name, h.Path); err != nil {
			return err
		}
	}
	if h.Waits != nil {
		of := func(comm, function uint64) string { return h.Functions[function] + " on " + h.Comms[comm].Name }
		if err := blocks.waits(f, name, h.Waits, func(at int) string { return h.Ranks[at].Name }, of); err != nil {
			return err
		}
	}
	for _, flow := range h.Matrix.Transfers {
		f.add(name+", matrix", "transfers", flow.Count)
		f.add(name+", matrix", "bytes of transfers", flow.Bytes)
		if flow.From >= 0 && flow.To >= 0 {
			pair := h.Ranks[flow.From].Name + " to " + h.Ranks[flow.To].Name
			f.add(name, pair+": transfers", flow.Count)
			f.add(name, pair+": bytes", flow.Bytes)
		}
	}
	return nil
}

// A run compared with itself has not changed.
func readDiff(f figures, name string, outputs map[string][]byte) error {
	var c compare.Comparison
	if err := decode(outputs, &c); err != nil {
		return err
	}
	if c.Slower+c.Faster > 0 {
		return fmt.Errorf("%d are slower, %d faster", c.Slower, c.Faster)
	}
	for side, run := range map[string]*compare.Run{"A": &c.A, "B": &c.B} {
		f.add(name+" "+side, "operations", float64(run.Operations))
		f.add(name+" "+side, "lost", float64(run.Lost))
		f.add(name+" "+side, "processes", float64(run.Processes))
		f.add(name+" "+side, "hosts", float64(run.Hosts))
		f.add(name+" "+side, "ranks", float64(run.Ranks))
		f.add(name+" "+side, "communicators", float64(run.Communicators))
	}
	for i := range c.Operations {
		o := &c.Operations[i]
		f.add(name+" A", "operations of kinds", float64(o.OperationsA))
		f.add(name+" B", "operations of kinds", float64(o.OperationsB))
		if o.Ratio != 1 || o.Time.Difference != 0 {
			return fmt.Errorf("%s has changed, by %v", o.Operation, o.Ratio)
		}
		if o.Class == nil && o.CommunicatorsA == 1 && o.Time.MedianA > 0 && (!o.Grouped || o.Equal > 0) {
			f.near(name, diffKind(o.Operation, o.Size, o.TimingSource, o.Equal), o.Time.MedianA, 1e-9)
		}
	}
	return nil
}

// What top shows at the end of a job is of its last seconds, as it says: of all, if all operations are in them.
func readTop(f figures, name string, outputs map[string][]byte) error {
	var v live.View
	if err := decode(outputs, &v); err != nil {
		return err
	}
	f.add(name, "lost", float64(v.Lost))
	if len(v.Stops) > 0 {
		return nil // it counts what has ended on some rank, also where it says that members asked for different things
	}
	f.add(name, "operations", float64(v.Done))
	window, seen := float64(v.Window)/1e9, 0.0
	for _, o := range v.Operations {
		seen += o.Rate * window
	}
	if math.Abs(seen-float64(v.Done)) > 1e-6*seen {
		return nil
	}
	sums := make(map[string]*topSum)
	for _, o := range v.Operations {
		operation := o.Operation
		if operation == "SendRecv" {
			operation = "Send"
		}
		if sums[operation] == nil {
			sums[operation] = new(topSum)
		}
		n := math.Round(o.Rate * window)
		s := sums[operation]
		s.count, s.bytes = s.count+n, s.bytes+n*float64(o.Size)
		s.timed, s.time = s.timed+float64(o.Timed), s.time+float64(o.Timed)*o.Avg
		if s.mixed = s.bus.Time > 0; o.BusBW > 0 { // of several communicators
			s.bus.Add(1, o.BusBW, 1)
		}
	}
	for operation, s := range sums {
		s.show(f, name, operation)
	}
	f.add(name, "collectives compared", float64(v.Compared))
	total := 0.0
	for _, r := range v.Ranks {
		total += r.Waiting * float64(v.Window)
	}
	f.near(name, "waited in collectives", total, 1e-9)
	for _, r := range v.Ranks {
		f.near(name, r.Rank+" in collectives: waited", r.Waiting*float64(v.Window), 1e-9)
		f.near(name, r.Rank+" in collectives: caused", r.Caused*total, 1e-9)
	}
	return nil
}

// A view has the operations that are in it, and counts those that are not.
func readView(f figures, name string, outputs map[string][]byte) error {
	var r view.Result
	if err := decode(outputs, &r); err != nil {
		return err
	}
	dropped := uint64(0)
	for reason, n := range r.Dropped {
		if reason != view.ReasonMissing && reason != view.ReasonDiffers { // the report leaves them out, too
			dropped += n
		}
	}
	f.add(name, "operations", float64(r.Collectives+r.Messages+dropped))
	f.add(name, "hosts", float64(r.Hosts))
	return nil
}
