// SPDX-License-Identifier: Apache-2.0

// Package queries holds the files of sql/ to the reports: whatever engine runs them, figures are the same to the
// nanosecond, and bandwidths to the last digits of a double.
package queries

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/matrix"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/waits"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// row is one of a query's result, by column.
type row map[string]any

func (r row) text(column string) string {
	if r[column] == nil {
		return ""
	}
	return fmt.Sprint(r[column])
}

func (r row) number(column string) float64 {
	switch v := r[column].(type) {
	case json.Number:
		f, err := v.Float64()
		if err != nil {
			return math.NaN()
		}
		return f
	case bool:
		if v {
			return 1
		}
	}
	return 0
}

// time is the low digits of a time since 1970, which a float64 has room for: ns of the last 1000 s.
func (r row) time(column string) float64 {
	v, ok := r[column].(json.Number)
	if !ok {
		return math.NaN()
	}
	ns, err := v.Int64()
	if err != nil {
		return math.NaN()
	}
	return lowDigits(ns)
}

func lowDigits[T int64 | uint64 | otf2.Timestamp](ns T) float64 {
	return float64(ns % 1_000_000_000_000)
}

// reported is what the report says of an archive, in its JSON.
type reported struct {
	operations.Report
	States waits.States
	Matrix matrix.Report
}

func (r *reported) read(report, states, flows []byte) error {
	var w struct {
		Waits *waits.States `json:"waits"`
	}
	var m struct {
		Matrix *matrix.Report `json:"matrix"`
	}
	w.Waits, m.Matrix = &r.States, &r.Matrix
	for _, one := range []struct {
		text []byte
		into any
	}{{report, &r.Report}, {states, &w}, {flows, &m}} {
		if err := json.Unmarshal(one.text, one.into); err != nil {
			return err
		}
	}
	return nil
}

// figures are numbers by what they are of.
type figures map[string]float64

func (f figures) add(v float64, of ...any) { f[fmt.Sprint(of...)] += v }

func (f figures) most(v float64, of ...any) { f[fmt.Sprint(of...)] = max(f[fmt.Sprint(of...)], v) }

// lastDigits is what doubles that were worked out in another order may differ by, relatively.
const lastDigits = 1e-14

// disagreements lists the figures that are not alike, and those that one side alone has and are not 0.
func (f figures) disagreements(o figures) (all []string) {
	names := slices.Collect(maps.Keys(f))
	for name := range o {
		if _, both := f[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		if a, b := f[name], o[name]; math.IsNaN(a+b) || math.Abs(a-b) > lastDigits*max(math.Abs(a), math.Abs(b)) {
			all = append(all, fmt.Sprintf("%s: the report has %v, the query %v", name, a, b))
		}
	}
	return all
}

// compared are the queries, and the table of runs, whose figures reports have, with how the figures are read on both
// sides.
var compared = []struct {
	query  string
	report func(r *reported, f figures)
	rows   func(rows []row, r *reported, f figures)
}{
	{"arrivals", reportArrivals, rowsArrivals},
	{"waits", reportWaits, rowsWaits},
	{"bandwidths", reportBandwidths, rowsBandwidths},
	{"matrix", reportMatrix, rowsMatrix},
	{"lateness", reportLateness, rowsLateness},
	{"phases", reportPhases, rowsPhases},
	{"runs", reportRuns, rowsRuns},
}

// disagreements compares the results of the queries that are in compared, by name, with a report. n is how many figures
// were compared.
func disagreements(r *reported, results map[string][]row) (all []string, n int) {
	for _, c := range compared {
		want, got := make(figures), make(figures)
		c.report(r, want)
		c.rows(results[c.query], r, got)
		n += len(want)
		for _, d := range want.disagreements(got) {
			all = append(all, c.query+": "+d)
		}
	}
	return all, n
}

func reportArrivals(r *reported, f figures) {
	for _, p := range r.States.Pairs {
		n := float64(p.Collectives)
		f.add(n, p.Comm, " ", p.Name, " collectives")
		f.add(math.Round(p.SkewAvg*n), p.Comm, " ", p.Name, " skew")
		f.most(float64(p.SkewMax), p.Comm, " ", p.Name, " most skew")
		f.add(math.Round(p.TransferAvg*n), p.Comm, " ", p.Name, " transfer")
	}
	for _, rank := range r.Waits.Ranks {
		f.add(float64(rank.Caused), rank.Rank, " caused")
		f.add(float64(rank.Last), rank.Rank, " last")
		f.most(float64(rank.MaxCaused), rank.Rank, " most caused")
	}
	f.add(float64(r.Waits.Total), "waited in collectives")
	f.add(float64(r.Waits.StartUp.Collectives), "collectives of start-up")
	f.add(float64(r.Waits.StartUp.Waited), "waited at start-up")
	for _, w := range r.States.Worst {
		if !strings.HasPrefix(w.Operation, "Send") && w.Operation != "Recv" {
			f.add(float64(w.Caused), "worst ", w.Communicator, " ", w.Operation, " ", w.Ordinal, " ", w.Rank)
			f.add(lowDigits(w.At), "worst ", w.Communicator, " ", w.Operation, " ", w.Ordinal, " at")
		}
	}
}

func rowsArrivals(rows []row, report *reported, f figures) {
	onlyWorst(rows, report, f)
	for _, r := range rows {
		if r["start_up"] == true {
			f.add(1, "collectives of start-up")
			f.add(r.number("caused_ns"), "waited at start-up")
			continue
		}
		of, rank := r.text("comm")+" "+r.text("function"), r.text("late_rank_name")
		f.add(1, of, " collectives")
		f.add(r.number("skew_ns"), of, " skew")
		f.most(r.number("skew_ns"), of, " most skew")
		f.add(r.number("transfer_ns"), of, " transfer")
		f.add(r.number("caused_ns"), "waited in collectives")
		f.add(r.number("caused_ns"), rank, " caused")
		if r.number("caused_ns") > 0 {
			f.add(1, rank, " last")
		}
		f.most(r.number("caused_ns"), rank, " most caused")
	}
}

// onlyWorst adds, of the query's arrivals, those that the report lists as the worst: it has the 20 that cost the most,
// messages among them.
func onlyWorst(rows []row, r *reported, f figures) {
	for _, w := range r.States.Worst {
		for _, a := range rows {
			if a["start_up"] != true && a.text("communicator") == w.Communicator && a.text("function") == w.Operation &&
				a.number("ordinal") == float64(w.Ordinal) {
				f.add(a.number("caused_ns"), "worst ", w.Communicator, " ", w.Operation, " ", w.Ordinal, " ",
					a.text("late_rank_name"))
				f.add(a.time("last_ns"), "worst ", w.Communicator, " ", w.Operation, " ", w.Ordinal, " at")
			}
		}
	}
}

func reportWaits(r *reported, f figures) {
	for _, rank := range r.States.Ranks {
		for what, v := range map[string]uint64{
			"waits": rank.Waits, "waited_ns": rank.Waited, "uncertainty_ns": rank.Uncertainty,
			"unstated": rank.Unstated, "below_ns": rank.BelowTime,
			"caused_ns": rank.Caused, "last": rank.Last, "max_caused_ns": rank.MaxCaused,
		} {
			f.add(float64(v), rank.Name, " ", rank.Host, " ", what)
		}
	}
}

func rowsWaits(rows []row, _ *reported, f figures) {
	for _, r := range rows {
		for _, what := range []string{"waits", "waited_ns", "uncertainty_ns", "unstated", "below_ns", "caused_ns",
			"last", "max_caused_ns"} {
			f.add(r.number(what), r.text("rank_name"), " ", r.text("host"), " ", what)
		}
	}
}

func reportBandwidths(r *reported, f figures) {
	for i := range r.Operations {
		o := &r.Operations[i]
		root, inPlace := "", ""
		if o.Root != nil {
			root = fmt.Sprint(*o.Root)
		}
		if o.InPlace != nil {
			inPlace = fmt.Sprint(*o.InPlace)
		}
		of := fmt.Sprintln(o.Comm, o.Operation, o.Datatype, o.Size, root, o.Grouped, o.Equal, o.Device, inPlace,
			o.Replayed, o.TimingSource, o.Algorithms, o.Protocols, o.Variants)
		for what, v := range map[string]float64{
			"calls": float64(o.Calls), "operations": float64(o.Count), "start_up": float64(o.StartUp),
			"mixed": float64(o.Mixed), "timed": float64(o.Timed),
			"total_ns": o.Time.Total, "avg_ns": o.Time.Avg, "min_ns": o.Time.Min, "p50_ns": o.Time.P50,
			"p99_ns": o.Time.P99, "max_ns": o.Time.Max,
			"algbw_gbs": o.AlgBW, "busbw_gbs": o.BusBW, "algbw_nobody_late_gbs": o.AlgBWNobodyLate,
			"busbw_nobody_late_gbs": o.BusBWNobodyLate,
			"transfer_timed":        float64(o.TransferTimed), "ranks": float64(o.Ranks),
		} {
			f.add(v, of, " ", what)
		}
		if o.Transfer != nil {
			f.add(o.Transfer.P50, of, " transfer_p50_ns")
		}
	}
}

func rowsBandwidths(rows []row, _ *reported, f figures) {
	for _, r := range rows {
		of := fmt.Sprintln(r.text("comm"), r.text("function"), r.text("datatype"), int64(r.number("size_bytes")),
			r.text("root"), r["grouped"] == true, r.number("launched_equal"),
			r["device"] == true, r.text("in_place"), r["replayed"] == true, r.text("timing_source"),
			[]string{r.text("algorithm")}, []string{r.text("protocol")}, []string{r.text("variant")})
		for _, what := range []string{
			"calls", "operations", "start_up", "mixed", "timed", "total_ns", "avg_ns", "min_ns", "p50_ns", "p99_ns",
			"max_ns", "algbw_gbs", "busbw_gbs",
			"algbw_nobody_late_gbs", "busbw_nobody_late_gbs", "transfer_timed", "ranks", "transfer_p50_ns",
		} {
			if r[what] != nil {
				f.add(r.number(what), of, " ", what)
			}
		}
	}
}

func reportMatrix(r *reported, f figures) {
	for _, x := range r.Matrix.Ranks {
		of := fmt.Sprint(x.From, " ", x.FromHost, " to ", x.To, " ", x.ToHost)
		f.add(float64(x.Transfers), of, " transfers")
		f.add(float64(x.Bytes), of, " bytes")
		f.add(float64(x.Busy), of, " busy")
		f.add(x.Bandwidth, of, " bandwidth")
	}
}

func rowsMatrix(rows []row, _ *reported, f figures) {
	for _, r := range rows {
		of := fmt.Sprint(r.text("from_name"), " ", r.text("from_host"), " to ", r.text("to_name"), " ",
			r.text("to_host"))
		f.add(r.number("transfers"), of, " transfers")
		f.add(r.number("bytes"), of, " bytes")
		f.add(r.number("busy_ns"), of, " busy")
		f.add(r.number("bandwidth_gbs"), of, " bandwidth")
	}
}

func reportLateness(r *reported, f figures) {
	for _, rank := range r.States.Ranks {
		f.add(float64(rank.Caused), rank.Name, " caused")
	}
	for _, w := range r.States.OverTime {
		f.add(float64(w.Waited), "waited over time")
	}
}

func rowsLateness(rows []row, _ *reported, f figures) {
	for _, r := range rows {
		f.add(r.number("caused_ns"), r.text("rank_name"), " caused")
		f.add(r.number("caused_ns"), "waited over time")
	}
}

func reportPhases(r *reported, f figures) {
	for i := range r.Phases {
		p := &r.Phases[i]
		if p.Count > 0 {
			f.add(float64(p.Count), p.Phase, " count")
			f.add(p.Time.Total, p.Phase, " total")
			f.add(p.Time.P50, p.Phase, " p50")
			f.add(p.Time.Max, p.Phase, " max")
			f.add(float64(p.NCCL), p.Phase, " NCCL")
			f.add(float64(p.Spread), p.Phase, " spread ", p.Slowest)
		}
	}
}

func rowsPhases(rows []row, _ *reported, f figures) {
	for _, r := range rows {
		kind := r.text("kind")
		f.add(r.number("phases"), kind, " count")
		f.add(r.number("total_ns"), kind, " total")
		f.add(r.number("p50_ns"), kind, " p50")
		f.add(r.number("max_ns"), kind, " max")
		f.add(r.number("nccl_ns"), kind, " NCCL")
		f.add(r.number("spread_ns"), kind, " spread ", r.text("slowest_rank_name"))
	}
}

func reportRuns(r *reported, f figures) {
	f.add(lowDigits(r.Summary.Begin), "begin")
	f.add(float64(r.Summary.Duration), "duration")
	f.add(float64(r.Summary.Ranks), "ranks")
	f.add(float64(r.Summary.Hosts), "hosts")
	f.add(float64(r.Summary.Processes), "processes")
}

func rowsRuns(rows []row, _ *reported, f figures) {
	for _, r := range rows {
		f.add(r.time("begin_ns"), "begin")
		f.add(r.number("duration_ns"), "duration")
		f.add(r.number("ranks"), "ranks")
		f.add(r.number("hosts"), "hosts")
		f.add(r.number("processes"), "processes")
	}
}
