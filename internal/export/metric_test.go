// SPDX-License-Identifier: Apache-2.0

package export

import (
	"fmt"
	"math"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
)

// Values of metrics have the unit that the archive defines, whatever base and exponent they were stored with.
func TestCountersHaveTheUnitOfTheMetric(t *testing.T) {
	cases := []struct {
		unit     string
		typ      otf2.Type
		base     otf2.Base
		exponent int64
		bits     uint64
		want     float64
	}{
		{"s", otf2.TypeUint64, otf2.BaseDecimal, -3, 1, 0.001},
		{"byte", otf2.TypeUint64, otf2.BaseBinary, 10, 1, 1024},
		{"W", otf2.TypeUint64, otf2.BaseDecimal, -3, 300_000, 300},
		{"Hz", otf2.TypeUint64, otf2.BaseDecimal, 6, 1980, 1.98e9},
		{"K", otf2.TypeInt64, otf2.BaseDecimal, -1, ^uint64(14), -1.5},
		{"J", otf2.TypeDouble, otf2.BaseDecimal, 3, math.Float64bits(0.25), 250},
		{"B", otf2.TypeDouble, otf2.BaseBinary, -1, math.Float64bits(3), 1.5},
		{"#", otf2.TypeUint64, otf2.BaseDecimal, 0, math.MaxUint64, math.MaxUint64},
	}
	archive := testkit.Value(otf2.Create(t.TempDir(), "traces", nil))(t)
	defs := archive.Definitions()
	testkit.Must(t, defs.ClockProperties(1e9, 1000, 1000, 1_700_000_000_000_000_000))
	testkit.Must(t, defs.String(0, "node"))
	testkit.Must(t, defs.SystemTreeNode(0, 0, 0, otf2.UndefinedSystemTreeNode))
	testkit.Must(t, defs.LocationGroup(0, 0, otf2.LocationGroupTypeProcess, 0, otf2.UndefinedLocationGroup))
	testkit.Must(t, defs.Location(0, 0, otf2.LocationTypeCPUThread, 0, 0))
	events := testkit.Value(archive.Events(0))(t)
	var members []otf2.MetricMemberRef
	var types []otf2.Type
	var bits []uint64
	for i, c := range cases {
		testkit.Must(t, defs.String(otf2.StringRef(2*i+1), fmt.Sprintf("metric %d", i)))
		testkit.Must(t, defs.String(otf2.StringRef(2*i+2), c.unit))
		testkit.Must(t, defs.MetricMember(otf2.MetricMemberRef(i), otf2.StringRef(2*i+1), 0, otf2.MetricTypeOther,
			otf2.MetricAbsolutePoint, c.typ, c.base, c.exponent, otf2.StringRef(2*i+2)))
		members, types, bits = append(members, otf2.MetricMemberRef(i)), append(types, c.typ), append(bits, c.bits)
	}
	testkit.Must(t, defs.MetricClass(0, members, otf2.MetricAsynchronous, otf2.RecorderKindAbstract))
	testkit.Must(t, defs.MetricInstance(1, 0, 0, otf2.MetricScopeLocation, 0))
	for i, metric := range []otf2.MetricRef{0, 1} {
		testkit.Must(t, events.Metric(otf2.Timestamp(1000+i), nil, metric, types, bits))
	}
	testkit.Must(t, archive.Close())
	a := jobtest.Open(t, archive.Path())

	trace, _ := perfetto(t, a)
	testkit.Require(t, len(trace.Counters) == 2*len(cases),
		"%d counter values, want twice %d", len(trace.Counters), len(cases))
	for i, got := range trace.Counters {
		c := cases[i%len(cases)]
		unit := trace.Tracks[got.Track].Unit
		testkit.Check(t, got.Value == c.want && unit == c.unit, "%d with exponent %d of %v is %v %s, want %v %s",
			c.bits, c.exponent, c.base, got.Value, unit, c.want, c.unit)
	}
}
