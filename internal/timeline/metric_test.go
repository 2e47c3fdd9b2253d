// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/quantity"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/scorep"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

// measured is an archive in the making, of a thread, a GPU's stream and a location of metrics alone, as other tools
// write them.
type measured struct {
	testing.TB
	*otf2.GlobalDefWriter
	archive *otf2.ArchiveWriter
	texts   map[string]otf2.StringRef
	members otf2.MetricMemberRef
}

const (
	onThread, onStream, onMetrics = otf2.LocationRef(0), otf2.LocationRef(1), otf2.LocationRef(2)

	theProcess, theGPU = 0, 1 // location groups
)

func newMeasured(t testing.TB) *measured {
	t.Helper()
	a := testkit.Value(otf2.Create(t.TempDir(), "traces", &otf2.ArchiveOptions{Creator: "test"}))(t)
	m := &measured{t, a.Definitions(), a, make(map[string]otf2.StringRef), 0}
	m.must(m.ClockProperties(1e9, 1000, 1000, 0))
	m.must(m.SystemTreeNode(0, m.text("vm0"), m.text("node"), otf2.UndefinedSystemTreeNode))
	m.must(m.SystemTreeNode(1, m.text("GPU of vm0"), m.text("CUDA Device"), 0))
	m.must(m.LocationGroup(theProcess, m.text("Process 0"), otf2.LocationGroupTypeProcess, 0,
		otf2.UndefinedLocationGroup))
	m.must(m.LocationGroup(theGPU, m.text("GPU 0"), otf2.LocationGroupTypeAccelerator, 1, theProcess))
	m.must(m.Location(onThread, m.text("main thread"), otf2.LocationTypeCPUThread, 0, theProcess))
	m.must(m.Location(onStream, m.text("stream 7"), otf2.LocationTypeAcceleratorStream, 0, theGPU))
	m.must(m.Location(onMetrics, m.text("sensors"), otf2.LocationTypeMetric, 0, theGPU))
	return m
}

func (m *measured) must(err error) {
	m.Helper()
	if err != nil {
		m.Fatal(err)
	}
}

func (m *measured) text(s string) otf2.StringRef {
	at, ok := m.texts[s]
	if !ok {
		at = otf2.StringRef(len(m.texts))
		m.texts[s] = at
		m.must(m.String(at, s))
	}
	return at
}

// member is "name unit mode type exponent".
type member struct {
	name, unit string
	mode       otf2.MetricMode
	typ        otf2.Type
	exponent   int64
}

func (m *measured) class(self otf2.MetricRef, members ...member) {
	m.Helper()
	var refs []otf2.MetricMemberRef
	for _, q := range members {
		m.must(m.MetricMember(m.members, m.text(q.name), m.text("what "+q.name+" is"), otf2.MetricTypeOther, q.mode,
			q.typ, otf2.BaseDecimal, q.exponent, m.text(q.unit)))
		refs = append(refs, m.members)
		m.members++
	}
	m.must(m.MetricClass(self, refs, otf2.MetricAsynchronous, otf2.RecorderKindCPU))
}

// value writes an event; values are uint64, int64 and float64.
func (m *measured) value(on otf2.LocationRef, t uint64, metric otf2.MetricRef, values ...any) {
	m.Helper()
	w, err := m.archive.Events(on)
	m.must(err)
	var types []otf2.Type
	var bits []uint64
	for _, v := range values {
		switch v := v.(type) {
		case uint64:
			types, bits = append(types, otf2.TypeUint64), append(bits, v)
		case int64:
			types, bits = append(types, otf2.TypeInt64), append(bits, uint64(v))
		case float64:
			types, bits = append(types, otf2.TypeDouble), append(bits, math.Float64bits(v))
		}
	}
	m.must(w.Metric(otf2.Timestamp(1000+t), nil, metric, types, bits))
}

func (m *measured) read() *Data {
	m.Helper()
	for _, l := range []otf2.LocationRef{onThread, onStream, onMetrics} {
		_, err := m.archive.Events(l)
		m.must(err)
	}
	m.must(m.archive.Close())
	return read(m, m.archive.Path())
}

func (d *Data) tree() string {
	var out strings.Builder
	var visit func(parent, depth int)
	visit = func(parent, depth int) {
		for i := range d.rows {
			if d.rows[i].parent == parent {
				fmt.Fprintf(&out, "%s%s: %s\n", strings.Repeat("  ", depth), d.rows[i].kind, d.rows[i].name)
				visit(i, depth+1)
			}
		}
	}
	visit(-1, 0)
	return out.String()
}

var gauge = member{"level", "W", otf2.MetricAbsoluteNext, otf2.TypeUint64, 0}

// Metrics stand below what they were measured of: the location, or the scope of their instance.
func TestMetricRows(t *testing.T) {
	m := newMeasured(t)
	m.class(0, member{"PAPI_TOT_CYC", "#", otf2.MetricAccumulatedStart, otf2.TypeUint64, 0},
		member{"ru_maxrss", "KiB", otf2.MetricAbsolutePoint, otf2.TypeInt64, 0})
	m.class(1, gauge)
	m.class(2, member{"", "B", otf2.MetricAbsoluteLast, otf2.TypeDouble, 0})
	instances := []struct {
		on    otf2.LocationRef
		scope otf2.MetricScope
		of    uint64
	}{
		{onThread, otf2.MetricScopeLocation, uint64(onStream)},
		{onThread, otf2.MetricScopeLocationGroup, theProcess},
		{onMetrics, otf2.MetricScopeLocationGroup, theGPU}, // has no row: there is one GPU
		{onThread, otf2.MetricScopeSystemTreeNode, 0},
		{onStream, otf2.MetricScopeSystemTreeNode, 0}, // a second one of the name
		{onMetrics, otf2.MetricScopeSystemTreeNode, 1},
	}
	for i, in := range instances {
		m.must(m.MetricInstance(otf2.MetricRef(10+i), 1, in.on, in.scope, in.of))
		m.value(in.on, 10, otf2.MetricRef(10+i), uint64(5))
	}
	m.value(onThread, 20, 0, uint64(100), int64(-3))
	m.value(onStream, 20, 2, 1.5)
	d := m.read()
	want := `host: vm0
  process: Process 0
    thread: main thread
      metric: PAPI_TOT_CYC
      metric: ru_maxrss
    stream: stream 7
      metric: level
      metric: (no name)
    metric: level
    sensors: sensors
      metric: level
      metric: level (sensors)
  metric: level
  metric: level (stream 7)
`
	testkit.Same(t, want, d.tree())
	testkit.Check(t, d.duration == 20 && len(d.problems) == 0, "%d ns, problems %q", d.duration, d.problems)
}

// In archives of the plugin sensors are below the GPU, and values from NCCL below the communicator's rank.
func TestMetricRowsOfAJob(t *testing.T) {
	dir := t.TempDir()
	p := shardtest.New(t, dir, "p0").On("node0", 100).Launched("slurm", 0, 1)
	for g := range 2 {
		p.GPU(g, fmt.Sprint("GPU-", g), "")
		c := p.Comm(description.Comm{ID: uint64(g + 1), Name: fmt.Sprint("c", g), NRanks: 1, Rank: 0, GPU: g,
			InitTime: t0})
		p.AllReduce(c, t0+100*us, t0+200*us, 1000)
		p.Measure(p.Shard.Comms[c].Location, p.Metric(otf2.RecorderKindGPU, shardtest.Outstanding), t0+250*us, 1)
	}
	row, power := p.GPUMetrics(1, shardtest.Power)
	p.Measure(row, power, t0+400*us, 300_000)
	p.Finish()
	_, err := scorep.Unify(dir, nil)
	testkit.Require(t, err == nil, "%v", err)
	d := read(t, filepath.Join(dir, "traces.otf2"))
	want := `host: node0
  process: Rank 0
    thread: Thread 0
    device: Rank 0 GPU 0
      rank: c0 rank 0
        metric: NCCL outstanding
    device: Rank 0 GPU 1
      rank: c1 rank 0
        metric: NCCL outstanding
      sensors: GPU 1 metrics
        metric: GPU power
`
	testkit.Same(t, want, d.tree())
}

// sums writes least, greatest, mean and time without a value of the whole of a quantity.
func (s *series) summary(i int) string {
	all := noSum
	for _, n := range s.sums[i] {
		all.merge(&n)
	}
	return fmt.Sprintf("%g to %g, mean %.6g, %d missing", all.min, all.max,
		all.area/float64(s.finish-s.starts[0]-all.missing), all.missing)
}

// What lies between values depends on the mode; values are in the unit that is defined. The archive ends at 100.
func TestMetricModes(t *testing.T) {
	for name, c := range map[string]struct {
		member
		values []any // at 20, 30, 30 and 70
		want   string
	}{
		"holds until the next": {member{"", "", otf2.MetricAbsoluteNext, otf2.TypeUint64, 0},
			[]any{uint64(4), uint64(99), uint64(8), uint64(2)}, "2 to 8, mean 5.25, 0 missing"},
		"of its moment": {member{"", "", otf2.MetricAbsolutePoint, otf2.TypeInt64, 0},
			[]any{int64(-4), int64(99), int64(8), int64(2)}, "-4 to 8, mean 4.25, 0 missing"},
		"of the time before": {member{"", "", otf2.MetricAbsoluteLast, otf2.TypeDouble, 0},
			[]any{77.5, 3.0, 4.0, 2.0}, "2 to 77.5, mean 2.2, 30 missing"},
		"a counter": {member{"", "", otf2.MetricAccumulatedStart, otf2.TypeUint64, 0},
			[]any{uint64(1 << 60), uint64(1<<60 + 1), uint64(1<<60 + 2), uint64(1<<60 + 6)},
			"1e+08 to 1e+08, mean 1.2e+08, 30 missing"},
		"that begins anew": {member{"", "", otf2.MetricAccumulatedLast, otf2.TypeUint64, 0},
			[]any{uint64(10), uint64(15), uint64(15), uint64(7)}, "-2e+08 to 5e+08, mean -6e+07, 30 missing"},
		"of fractions": {member{"", "", otf2.MetricAccumulatedPoint, otf2.TypeDouble, 0},
			[]any{0.5, 1.0, 1.0, 2.0}, "2.5e+07 to 5e+07, mean 3e+07, 30 missing"},
		"in thousandths": {member{"", "", otf2.MetricAbsoluteNext, otf2.TypeUint64, -3},
			[]any{uint64(123456), uint64(0), uint64(123456), uint64(123456)},
			"123.456 to 123.456, mean 123.456, 0 missing"},
		"in millions": {member{"", "", otf2.MetricRelativeNext, otf2.TypeUint64, 6},
			[]any{uint64(3), uint64(3), uint64(3), uint64(3)}, "3e+06 to 3e+06, mean 3e+06, 0 missing"},
		"no numbers": {member{"", "", otf2.MetricAbsoluteNext, otf2.TypeDouble, 0},
			[]any{math.NaN(), 1.0, math.Inf(1), 3.0}, "3 to 3, mean 3, 50 missing"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMeasured(t)
			m.class(0, c.member)
			for i, at := range []uint64{20, 30, 30, 70} {
				m.value(onThread, at, 0, c.values[i])
			}
			m.class(1, gauge)
			m.value(onMetrics, 100, 1, uint64(1))
			got := m.read().series[0].summary(0)
			testkit.Check(t, got == c.want, "got  %s\nwant %s", got, c.want)
		})
	}
}

// What cannot be shown is counted and told.
func TestMetricsThatAreNotShown(t *testing.T) {
	m := newMeasured(t)
	m.class(0, gauge)
	m.class(1, member{"text", "", otf2.MetricAbsoluteNext, otf2.TypeString, 0})
	m.value(onThread, 10, 0, uint64(1))
	m.value(onThread, 11, 0, 1.0)
	m.value(onThread, 12, 0, uint64(1), uint64(2))
	m.value(onThread, 13, 0)
	m.value(onThread, 14, 1, uint64(0))
	m.value(onThread, 15, 99, uint64(0))
	d := m.read()
	want := []string{
		"2 events of metrics are not shown: the archive does not define their metrics as numbers",
		"3 events of metrics are not shown: their values are not as their metrics are defined",
	}
	testkit.Same(t, want, d.notes)
	testkit.Check(t, len(d.series) == 1 && d.series[0].count == 2, "%d series", len(d.series))
}

// columnsOf unpacks a block of raw and varint columns.
func columnsOf(t *testing.T, packed []byte) (all [][]byte) {
	b := testkit.Value(io.ReadAll(flate.NewReader(bytes.NewReader(packed))))(t)
	for len(b) > 0 {
		n, size := binary.Uvarint(b)
		all = append(all, b[size:size+int(n)])
		b = b[size+int(n):]
	}
	return all
}

func varints(b []byte) (all []uint64) {
	for len(b) > 0 {
		v, size := binary.Uvarint(b)
		all = append(all, v)
		b = b[size:]
	}
	return all
}

// Whatever is measured stands in the blocks as it was, and nodes sum it up.
func TestMetricBlocksHoldAllValues(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 2, metricLeaf - 1, metricLeaf, metricLeaf + 1, chunk - 1, chunk, chunk + 1,
		2*chunk + 40} {
		temporary := &spool{temp: new(temp)}
		s := &series{to: temporary, quantities: []quantity.Member{
			{Type: otf2.TypeUint64, Mode: otf2.MetricAccumulatedStart, Factor: 1, Divisor: 1},
			{Type: otf2.TypeInt64, Mode: otf2.MetricAbsoluteLast, Factor: 1, Divisor: 1000},
			{Type: otf2.TypeDouble, Mode: otf2.MetricAbsolutePoint, Factor: 1, Divisor: 1},
		}}
		s.bits, s.sums = make([][]uint64, 3), make([][]sum, 3)
		var times []uint64
		var values [3][]uint64
		now, counter := random.Uint64N(100), uint64(1)<<63
		for range n {
			counter += random.Uint64N(1 << random.UintN(20))
			v := []uint64{counter, random.Uint64() - random.Uint64()>>40, math.Float64bits(random.NormFloat64())}
			s.add(now, v, false)
			times = append(times, now)
			for i := range v {
				values[i] = append(values[i], v[i])
			}
			now += random.Uint64N(5)
		}
		last := times[n-1]
		s.closeSeries(last + random.Uint64N(2)*7)
		times = append(times[:1:1], times...)
		if s.closed {
			times = append(times, last+7)
		}
		for i := range values {
			values[i] = append(values[i][:1:1], values[i]...)
			if s.closed {
				values[i] = append(values[i], values[i][n])
			}
		}
		testkit.Require(t, s.count == len(times)-1 && len(s.blocks) == (s.count+chunk-1)/chunk,
			"%d intervals in %d blocks of %d points", s.count, len(s.blocks), len(times))
		for k, e := range s.blocks {
			columns := columnsOf(t, temporary.read(e, nil))
			from, to := k*chunk, min((k+1)*chunk, s.count)+1
			var at uint64
			for j, d := range varints(columns[0]) {
				if at += d; at != times[from+j] {
					t.Fatalf("block %d: point %d is at %d", k, j, at)
				}
			}
			for i := range 2 {
				at = 0
				got := varints(columns[1+i])
				testkit.Require(t, len(got) == to-from, "block %d: %d values of %d", k, len(got), to-from)
				for j, z := range got {
					if at += z>>1 ^ -(z & 1); at != values[i][from+j] {
						t.Fatalf("block %d: value %d of member %d is %d", k, j, i, at)
					}
				}
			}
			for j := range to - from {
				got := binary.LittleEndian.Uint64(columns[3][8*j:])
				testkit.Require(t, got == values[2][from+j], "block %d: double %d is %x", k, j, got)
			}
		}
		// Coarser nodes sum up the same.
		compare := func() {
			t.Helper()
			for i := range s.quantities {
				want, size := noSum, 0.0
				for j := range s.count {
					before := want.area
					want.add(&s.quantities[i], values[i][j], values[i][j+1], times[j+1]-times[j],
						s.closed && j == s.count-1)
					size += math.Abs(want.area - before)
				}
				got := noSum
				for _, one := range s.sums[i] {
					got.merge(&one)
				}
				testkit.Require(t, got.min == want.min && got.max == want.max && got.missing == want.missing &&
					math.Abs(got.area-want.area) <= 1e-12*size, "member %d: %v, want %v", i, got, want)
			}
		}
		testkit.Require(t, len(s.starts) == (s.count+metricLeaf-1)/metricLeaf,
			"%d nodes of %d intervals", len(s.starts), s.count)
		compare()
		temporary.close()
		s.coarser()
		testkit.Require(t, len(s.starts) == (s.count+4*metricLeaf-1)/(4*metricLeaf),
			"%d coarser nodes of %d intervals", len(s.starts), s.count)
		compare()
	}
}
