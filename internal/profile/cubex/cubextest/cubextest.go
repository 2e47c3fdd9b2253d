// SPDX-License-Identifier: Apache-2.0

// Package cubextest says whether profiles of jobs are as they should be.
package cubextest

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/cube"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/tally"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/regions"
	"github.com/nccl-otf2/nccl-otf2/regions/sizeclass"
)

// waits are the metrics of wait states, by the names of the report.
var waits = map[string]string{
	"collective": "nccl_wait_nxn", "late broadcast": "nccl_late_broadcast", "early reduce": "nccl_early_reduce",
	"late sender":   "nccl_late_sender",
	"late receiver": "nccl_late_receiver", "": "nccl_startup_wait",
}

// shares are the metrics that share out the time.
var shares = []string{
	"application_time", "application_gpu_time", "nccl_enqueue_time", "nccl_operation_time", "nccl_unplaced_time",
	"nccl_network_time", "nccl_proxy_time", "nccl_idle_time",
}

// Profile is a profile with all its values in memory.
type Profile struct {
	*cube.Profile
	values map[string][][]float64 // by metric, cnode id, location
	below  [][]int                // by cnode id
}

// Load reads a file.
func Load(t testing.TB, file string) *Profile {
	t.Helper()
	p := testkit.Value(cube.Open(file))(t)
	t.Cleanup(func() { testkit.Must(t, p.Close()) })
	m := &Profile{Profile: p, values: make(map[string][][]float64), below: make([][]int, len(p.Cnodes))}
	var row cube.Row
	for id, metric := range p.Metrics {
		if metric.Kind.Derived() {
			continue
		}
		all := make([][]float64, len(p.Cnodes))
		for c := range all {
			testkit.Value(p.Row(cube.MetricID(id), cube.CnodeID(c), &row))(t)
			for l := range p.Locations {
				all[c] = append(all[c], row.At(cube.LocationID(l)).Float64())
			}
		}
		m.values[metric.UniqueName] = all
	}
	for c := range p.Cnodes {
		if parent := m.parent(c); parent >= 0 {
			m.below[parent] = append(m.below[parent], c)
		}
	}
	return m
}

func (m *Profile) parent(c int) int { return int(m.Cnodes[c].Parent) }

// Tree is the name of the root above a cnode.
func (m *Profile) Tree(c int) string {
	for m.parent(c) >= 0 {
		c = m.parent(c)
	}
	return m.Name(c)
}

// Name is that of the region of a cnode.
func (m *Profile) Name(c int) string { return m.Regions[m.Cnodes[c].Callee].Name }

// ByPath lists the values that are not 0, by metric, location and call path: "time 3/program/step *". Those of equal
// paths are added up.
func (m *Profile) ByPath() map[string]float64 {
	all := make(map[string]float64)
	for metric, cnodes := range m.values {
		for c, row := range cnodes {
			path := ""
			for at := c; at >= 0; at = m.parent(at) {
				path = "/" + m.Name(at) + path
			}
			for l, v := range row {
				if v != 0 {
					all[fmt.Sprintf("%s %d%s", metric, l, path)] += v
				}
			}
		}
	}
	return all
}

// Sum adds up a metric over the cnodes that where chooses, and all locations.
func (m *Profile) Sum(metric string, where func(c int) bool) (sum float64) {
	for c, row := range m.values[metric] {
		if where(c) {
			for _, v := range row {
				sum += v
			}
		}
	}
	return sum
}

func same(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Max(math.Abs(a), math.Abs(b))+1e-12 }

// Sound checks what holds in every profile: times with what is below are at least the sum of those below, each node's
// own time is in one of the metrics that share it out, waits and the longest visit are within times, processes and
// locations are named so that tools can tell them apart.
func (m *Profile) Sound(t testing.TB) {
	t.Helper()
	for c := range m.Cnodes {
		for l := range m.Locations {
			total, below := m.values["time"][c][l], 0.0
			for _, k := range m.below[c] {
				below += m.values["time"][k][l]
			}
			testkit.Check(t, below <= total*(1+1e-12)+1e-12,
				"%s at location %d: %g s below it, %g in all", m.Name(c), l, below, total)
			own, in := 0.0, 0
			for _, name := range shares {
				if v := m.values[name][c][l]; v != 0 {
					own, in = own+v, in+1
				}
			}
			if in > 1 || math.Abs(own-(total-below)) > 1e-9*total+1e-12 ||
				m.values["nccl_wait_time"][c][l] > m.values["nccl_operation_time"][c][l]+1e-12 {
				t.Errorf("%s at location %d: %g s of its own in %d shares, %g s in all, %g s below it", m.Name(c), l,
					own, in, total, below)
			}
			sum := 0.0
			for _, name := range waits {
				sum += m.values[name][c][l]
			}
			if all := m.values["nccl_wait_time"][c][l]; !same(sum, all) || sum > total+1e-12 {
				t.Errorf("%s at location %d: waits of %g s, %g in all, within %g s", m.Name(c), l, sum, all, total)
			}
			most, visits := m.values["max_time"][c][l], m.values["visits"][c][l]
			if most < 0 || most > total*(1+1e-9)+1e-12 || most > 0 && visits == 0 {
				t.Errorf("%s at location %d: at most %g s in %g visits, %g s", m.Name(c), l, most, visits, total)
			}
		}
	}
	names := make(map[string]bool)
	for i, g := range m.Groups {
		if n := m.Nodes[g.Node]; n.Class != cube.ClassNode || names[g.Name] {
			t.Errorf("group %q on %q of class %q", g.Name, n.Name, n.Class)
		}
		names[g.Name] = true
		in := make(map[string]bool)
		for _, l := range m.Locations {
			if int(l.Group) != i {
				continue
			}
			testkit.Check(t, !in[l.Name], "%s has two locations %q", g.Name, l.Name)
			in[l.Name] = true
		}
		created := slices.IndexFunc(g.Attributes,
			func(a cube.Attribute) bool { return a.Key == cube.AttributeCreatingGroup && names[a.Value] })
		testkit.Check(t, g.Type != cube.GroupAccelerator || created >= 0, "%s: attributes %v", g.Name, g.Attributes)
	}
}

// operationTrees are the trees in which operations are.
func operationTree(name string) bool {
	return name == "KERNELS" || strings.HasPrefix(name, "OPERATIONS")
}

// Agrees compares the profile with the reports on the same archive. It must have no rows of channels.
func (m *Profile) Agrees(t testing.TB, report *operations.Report, tally *tally.Report) {
	t.Helper()
	calls := float64(report.Summary.Alone)
	for i := range report.Operations {
		calls += float64(report.Operations[i].Calls)
	}
	leaf := func(c int) bool {
		return operationTree(m.Tree(c)) && len(m.below[c]) == 0 && !strings.HasPrefix(m.Name(c), "Group")
	}
	if got := m.Sum("visits", leaf); report.Summary.Unfinished+report.Summary.LeftOut == 0 && got != calls {
		t.Errorf("%g operations, the report has %g calls", got, calls)
	}
	waited := make(map[string]float64)
	for _, k := range report.WaitStates.Kinds {
		waited[waits[k.Name]] = float64(k.Waited) / 1e9
	}
	waited["nccl_startup_wait"] = float64(report.WaitStates.StartUp.Waited) / 1e9
	for _, name := range waits {
		got := m.Sum(name, func(int) bool { return true })
		testkit.Check(t, same(got, waited[name]), "%s: %g s, the report has %g", name, got, waited[name])
	}
	operations, unfinished := 0.0, uint64(0) // profiles have the time of those without end, too
	for _, g := range tally.Groups {
		switch g.Group {
		case regions.GroupCollectives, regions.GroupPointToPoint:
			operations += float64(g.Total) / 1e9
			for _, r := range g.Rows {
				unfinished += r.Unfinished
			}
		case regions.GroupAPI:
			for _, r := range g.Rows {
				named := func(c int) bool { return m.Tree(c) == "program" && m.Name(c) == r.Name }
				visits := m.Sum("visits", func(c int) bool {
					return named(c) || m.parent(c) >= 0 && named(m.parent(c)) &&
						strings.HasPrefix(m.Name(c), r.Name+" ")
				})
				if time := m.Sum("time", named); !same(time, float64(r.Time)/1e9) || visits != float64(r.Calls) {
					t.Errorf("%s: %g in %g s, tallied %d in %d ns", r.Name, visits, time, r.Calls, r.Time)
				}
			}
		}
	}
	got := m.Sum("time", func(c int) bool { return m.parent(c) < 0 && operationTree(m.Name(c)) })
	testkit.Check(t, (unfinished != 0 || same(got, operations)) && got >= operations*(1-1e-9),
		"operations took %g s, tallied %g", got, operations)
	for i := range report.Operations {
		o := &report.Operations[i]
		equal := 0 // of all communicators, which a profile has together
		for j := range report.Operations {
			if x := &report.Operations[j]; x.Operation == o.Operation && x.AlgBW > 0 &&
				sizeclass.IndexOf(x.Size) == sizeclass.IndexOf(o.Size) {
				equal++
			}
		}
		// of several the median of the means is not the mean of the medians
		if o.AlgBW == 0 || equal != 1 || o.Timed != 1 {
			continue
		}
		class := sizeclass.All[sizeclass.IndexOf(o.Size)].String()
		at := func(c int) bool {
			return strings.HasPrefix(m.Name(c), o.Operation+" ") && strings.HasSuffix(m.Name(c), " "+class) &&
				m.parent(c) >= 0
		}
		seconds := m.Sum("nccl_busy_time", at)
		if alg, bus := m.Sum("nccl_bytes", at)/seconds,
			m.Sum("nccl_bus_bytes", at)/seconds; !same(alg, o.AlgBW*1e9) || !same(bus, o.BusBW*1e9) {
			t.Errorf("%s of %d bytes: %g and %g B/s, the report has %g and %g GB/s", o.Operation, o.Size, alg, bus,
				o.AlgBW, o.BusBW)
		}
	}
}
