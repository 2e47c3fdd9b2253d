// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/export"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/timing"
	"github.com/nccl-otf2/nccl-otf2/internal/stats"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
)

// How tables of operations are read: those that are written for people, which are rounded, and those of members, of
// which the report's figures are worked out here as its documentation says.

// writtenName is what a row is found by in tables for people: there sizes are rounded. Rows that have it in common are
// not compared.
func writtenName(o *operations.Row) string {
	name := o.Operation
	switch {
	case o.Equal > 0:
		name += fmt.Sprintf("/%d", o.Equal)
	case o.Grouped:
		name += "*"
	}
	if o.Device {
		name = "*" + name
	}
	return o.Communicator + " " + name + " " + units.Bytes(o.Size)
}

// written notes the figures of a row that are known.
func (f figures) written(product, row string, all map[string]float64, relative float64) {
	for what, v := range all {
		if v > 0 {
			f.near(product, "as written: "+row+": "+what, v, relative)
		}
	}
}

var gaps = regexp.MustCompile(`  +`)

// tableRows finds a table by one of its heads, and gives its rows by heads. A head that comes twice has its number
// behind it.
func tableRows(text, head string, cells func(line string) []string) (rows []map[string]string) {
	var heads []string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		all := cells(line)
		switch {
		case heads == nil && slices.Contains(all, head):
			heads = all
		case heads == nil:
		case len(all) != len(heads):
			return rows
		case strings.HasPrefix(all[0], "--"): // Markdown's rule
		default:
			row := make(map[string]string)
			for i, head := range heads {
				row[head] = all[i]
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// heads are those that figures stand below.
var heads = map[string]string{
	"median": "median", "algbw GB/s": "algbw", "busbw GB/s": "busbw", "without waiting": "nobody late",
	"busbw without waiting GB/s": "busbw nobody late", "count": "count",
}

// writtenRows notes the figures of a table for people.
func (f figures) writtenRows(product string, rows []map[string]string) error {
	named := make(map[string][]map[string]string)
	for _, row := range rows {
		name := row["communicator"] + " " + row["operation"] + " " + row["size"]
		named[name] = append(named[name], row)
	}
	for name, all := range named {
		if len(all) > 1 {
			continue
		}
		values := make(map[string]float64)
		for head, what := range heads {
			v, err := written(all[0][head])
			if err != nil {
				return fmt.Errorf("%s: %s: %w", name, head, err)
			}
			values[what] = v
		}
		f.written(product, name, values, 0.006) // three digits
	}
	return nil
}

// unitsOf are those of figures for people: times in ns, sizes in bytes.
var unitsOf = map[string]float64{"": 1, "ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20,
	"GiB": 1 << 30}

// written reads a figure for people: a time in ns, a size in bytes, a number, the first of "3 of 4"; 0 if it is not
// known.
func written(text string) (float64, error) {
	text = strings.TrimPrefix(text, "~")
	if text == "" || text == "–" {
		return 0, nil
	}
	text, _, _ = strings.Cut(text, " of ")
	number, unit, _ := strings.Cut(text, " ")
	v, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0, err
	}
	factor, known := unitsOf[unit]
	if !known {
		return 0, fmt.Errorf("%q is no unit", unit)
	}
	return v * factor, nil
}

// Markdown has the text's tables.
func readReportMarkdown(f figures, name string, outputs map[string][]byte) error {
	rows := tableRows(string(outputs[""]), "busbw GB/s", func(line string) []string {
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		for i := range cells {
			cells[i] = strings.ReplaceAll(strings.TrimSpace(cells[i]), `\*`, "*")
		}
		return cells
	})
	if len(rows) == 0 {
		return nil
	}
	return f.writtenRows(name, rows)
}

// CSV has all digits.
func readReportCSV(f figures, name string, outputs map[string][]byte) error {
	text, _, _ := bytes.Cut(outputs[""], []byte("\n\n"))
	lines, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil || len(lines) == 0 || !slices.Contains(lines[0], "busbw") {
		return fmt.Errorf("the first table is none of operations: %v", err)
	}
	rows := make(map[kind][]map[string]string)
	for _, line := range lines[1:] {
		row := make(map[string]string)
		for i, field := range lines[0] {
			row[field] = line[i]
		}
		k, err := kindInCSV(row)
		if err != nil {
			return err
		}
		rows[k] = append(rows[k], row)
	}
	for k, all := range rows {
		if len(all) > 1 {
			continue
		}
		for field, what := range map[string]string{
			"timed": "timed", "p50_ns": "p50", "avg_ns": "average", "p99_ns": "p99", "algbw": "algbw", "busbw": "busbw",
			"transfer_p50_ns":   "nobody late",
			"algbw_nobody_late": "algbw, nobody late", "busbw_nobody_late": "busbw, nobody late",
		} {
			text := all[0][field]
			if text == "" {
				continue
			}
			v, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return err
			}
			f.add(name, k.String()+": "+what, v)
		}
	}
	return nil
}

func kindInCSV(row map[string]string) (k kind, err error) {
	whole := func(field string) int {
		if row[field] == "" {
			return -1
		}
		n, e := strconv.Atoi(row[field])
		if e != nil {
			err = e
		}
		return n
	}
	k = kind{
		comm: row["communicator"], operation: row["operation"], datatype: row["type"], size: uint64(whole("size")),
		source:  row["timing_source"],
		grouped: row["grouped"] == "true", replayed: row["replayed"] == "true", equal: whole("launched_together"),
		root:      whole("root"),
		algorithm: row["algorithms"], protocol: row["protocols"], variant: row["variants"],
	}
	if text := row["in_place"]; text != "" {
		same := text == "true"
		k.inPlace = placeOf(&same)
	}
	return k, err
}

// nearestRank is the nearest-rank percentile.
func nearestRank(values []float64, part float64) float64 {
	all := slices.Sorted(slices.Values(values))
	return all[max(0, int(math.Ceil(float64(len(all))*part))-1)]
}

// memberTime is a member's time of an operation: of one of several equal ones its part of the launch's.
func memberTime(o *export.Operation) float64 { return float64(o.Duration) / float64(max(o.Equal, 1)) }

// memberKind is what the report has in one row, from an operation's members.
func memberKind(all []*export.Operation) kind {
	first, lowest := *all[0], all[0]
	k := kind{comm: first.Communicator, operation: first.Function, datatype: valueOf(first.Datatype), root: -1,
		equal: int(first.Equal)}
	source, same, known := facts.SourceOf(valueOf(first.TimingSource)), true, true
	for _, m := range all {
		if m.Rank < lowest.Rank {
			lowest = m
		}
		k.size, k.grouped, k.replayed = max(k.size, uint64(m.Size)), k.grouped || m.Grouped, k.replayed || m.Graph
		source = min(source, facts.SourceOf(valueOf(m.TimingSource)))
		if int(m.Equal) != k.equal {
			k.equal = 0
		}
		same, known = same && valueOf(m.InPlace), known && m.InPlace != nil
		if m.InPlace != nil && !*m.InPlace {
			known = true // one is enough
			k.inPlace = placeOf(m.InPlace)
		}
	}
	if k.inPlace == "" && known {
		k.inPlace = placeOf(&same)
	}
	if first.Root != nil {
		k.root, k.inPlace = int(*first.Root), ""
		for _, m := range all {
			if int(m.Rank) == k.root {
				k.inPlace = placeOf(m.InPlace)
			}
		}
	}
	k.source, k.algorithm, k.protocol, k.variant = source.String(), valueOf(lowest.Algorithm), valueOf(lowest.Protocol),
		valueOf(lowest.Variant)
	return k
}

// timed is one operation.
type timed struct {
	time, late         float64
	lateKnown          bool
	rank0, least, most float64 // rank0 −1: it has no data
	factor             float64 // of a member
	size               float64
	startUp, mixed     bool
	members            int
}

func newTimed(all []*export.Operation) timed {
	t := timed{rank0: -1, least: math.Inf(1), members: len(all)}
	source, lastBegin, lastEnd := valueOf(all[0].TimingSource), int64(math.MinInt64), int64(0)
	equal := all[0].Equal
	for _, m := range all {
		ns := memberTime(m)
		t.time += float64(m.Duration) / float64(len(all))
		t.least, t.most = min(t.least, ns), max(t.most, ns)
		if m.Rank == 0 {
			t.rank0 = ns
		}
		t.startUp, t.mixed = t.startUp || m.StartUp, t.mixed || valueOf(m.TimingSource) != source
		lastBegin, lastEnd = max(lastBegin, m.Begin), max(lastEnd, m.End)
		if m.AlgBW != nil {
			t.factor = *m.BusBW / *m.AlgBW
		}
		t.size = max(t.size, float64(m.Size))
		if m.Equal != equal {
			equal = 0
		}
	}
	t.time /= float64(max(equal, 1))
	t.late = float64(lastEnd-min(lastBegin, lastEnd)) / float64(max(equal, 1))
	t.lateKnown = len(all) > 1 && !t.mixed && facts.SourceOf(source).HasPlace()
	return t
}

// timedRow is what the report has of the operations of one kind.
type timedRow struct {
	all, left                               int
	total, size, factor                     float64
	times, transfers, rank0s, leasts, mosts []float64
}

func (r *timedRow) add(t timed) {
	r.all++
	r.total += t.time
	r.size = t.size
	r.factor = max(r.factor, t.factor)
	if t.startUp || t.mixed {
		r.left++
		return
	}
	r.times = append(r.times, t.time)
	if t.lateKnown {
		r.transfers = append(r.transfers, t.late)
	}
	if t.members > 1 {
		r.leasts, r.mosts = append(r.leasts, t.least), append(r.mosts, t.most)
		if t.rank0 >= 0 {
			r.rank0s = append(r.rank0s, t.rank0)
		}
	}
}

func (r *timedRow) show(f figures, name string, k kind) {
	key := k.String()
	f.add(name, key+": operations", float64(r.all))
	f.near(name, key+": time", r.total, 1e-9)
	f.add(name, key+": timed", float64(len(r.times)))
	if len(r.times) == 0 {
		return
	}
	median := nearestRank(r.times, 0.5)
	f.near(name, key+": least", slices.Min(r.times), 1e-9)
	f.near(name, key+": most", slices.Max(r.times), 1e-9)
	f.near(name, key+": p50", median, 1e-9)
	f.near(name, key+": p99", nearestRank(r.times, 0.99), 1e-9)
	sum := 0.0
	for _, ns := range r.times {
		sum += ns
	}
	f.near(name, key+": average", sum/float64(len(r.times)), 1e-9)
	late := 0.0
	if len(r.transfers) > 0 {
		late = nearestRank(r.transfers, 0.5)
		f.near(name, key+": nobody late", late, 1e-9)
	}
	for what, all := range map[string][]float64{"fastest member": r.leasts, "slowest member": r.mosts,
		"rank 0": r.rank0s} {
		if len(all) > 0 {
			f.near(name, key+": "+what, nearestRank(all, 0.5), 1e-9)
		}
	}
	if r.factor == 0 || !timing.HasBandwidth(facts.SourceOf(k.source), k.grouped, k.equal) {
		return
	}
	f.near(name, key+": algbw", r.size/median, 1e-9)
	f.near(name, key+": busbw", r.size/median*r.factor, 1e-9)
	if late > 0 {
		f.near(name, key+": algbw, nobody late", r.size/late, 1e-9)
		f.near(name, key+": busbw, nobody late", r.size/late*r.factor, 1e-9)
	}
}

// profileName is what a profile's bandwidth is of.
func profileName(function, source string, grouped bool) string {
	return fmt.Sprintf("busbw and times of members: %s, %s, grouped %v", function, source, grouped)
}

// addProfiles works out bandwidths as profiles have them: bytes together / time together, each operation with the
// median of its size on its rank.
func addProfiles(f figures, name string, all []export.Operation) {
	type cell struct {
		rank, size int64
	}
	sums, factors, comms := make(map[string]map[cell][]float64), make(map[string]float64),
		make(map[string]map[int32]bool)
	for i := range all {
		o := &all[i]
		if o.StartUp || o.BusBW == nil {
			continue
		}
		key := profileName(o.Function, valueOf(o.TimingSource), o.Grouped)
		if sums[key] == nil {
			sums[key], comms[key] = make(map[cell][]float64), make(map[int32]bool)
		}
		comms[key][o.Comm] = true
		c := cell{int64(o.Location), o.Size}
		sums[key][c] = append(sums[key][c], memberTime(o))
		factors[key] = *o.BusBW / *o.AlgBW
	}
	for key, cells := range sums {
		if len(comms[key]) > 1 {
			continue
		}
		var moved timing.Moved
		for c, times := range cells {
			moved.Add(uint64(len(times)), float64(c.size)*factors[key], nearestRank(times, 0.5))
		}
		f.near(name, key, moved.Bandwidth(), stats.PercentileError)
		f.near(name, key+", algbw", moved.Bandwidth()/factors[key], stats.PercentileError)
	}
	addMembers(f, name, all)
}

// addMembers works out percentiles of members' times, as profiles have them: of operations that were launched alone.
func addMembers(f figures, name string, all []export.Operation) {
	times, comms := make(map[string][]float64), make(map[string]map[int32]bool)
	for i := range all {
		o := &all[i]
		if o.Grouped {
			continue
		}
		key := profileName(o.Function, valueOf(o.TimingSource), false)
		if comms[key] == nil {
			comms[key] = make(map[int32]bool)
		}
		comms[key][o.Comm] = true
		times[key] = append(times[key], float64(o.Duration))
	}
	for key, of := range times {
		if len(comms[key]) == 1 {
			f.near(name, key+", p50", nearestRank(of, 0.5), stats.PercentileError)
			f.near(name, key+", p99", nearestRank(of, 0.99), stats.PercentileError)
		}
	}
}
