// SPDX-License-Identifier: Apache-2.0

package cubex

import (
	"bytes"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ncclotf2/analysis"
	"ncclotf2/cube"
	"ncclotf2/cube/cubeprint"
	"ncclotf2/cube/cubetest"
	"ncclotf2/otf2"
	"ncclotf2/profile"
	"ncclotf2/regions"
	"ncclotf2/scorep"
	"ncclotf2/scorep/shardtest"
	"ncclotf2/shard"
)

var update = flag.Bool("update", false, "write the golden files anew")

const (
	t0 = shardtest.Epoch + 1_000_000
	us = 1000
)

func check(t testing.TB, err error) {
	if err != nil {
		t.Helper()
		t.Fatal(err)
	}
}

// makeJob leaves a finished job of three processes on two hosts and unifies it: collectives with and without times of the GPU,
// launched together and alone, messages, phases, transfers, a communicator of one rank. Ids depend on the salt, as they do on the run.
func makeJob(t testing.TB, salt int) string {
	t.Helper()
	dir := t.TempDir()
	for r := range 3 {
		p := shardtest.New(t, dir, fmt.Sprint("p", salt, r)).On("node"+fmt.Sprint(r/2), 100*salt+r).Launched("slurm", r, 3)
		p.GPU(r%2, fmt.Sprint("GPU-", salt, r), "")
		world := p.Comm(shard.Comm{ID: uint64(1000 + salt), NRanks: 3, Rank: r, InitTime: t0})
		late := uint64(r) * 10 * us
		phase := p.Region("step 7", regions.GroupApplication, otf2.RegionRoleCode)
		check(t, p.Writer(0).Enter(otf2.Timestamp(t0+90*us), nil, phase))
		for i := range uint64(3) {
			p.Call("ncclAllReduce", t0+(100+i*100)*us, t0+(105+i*100)*us)
			p.AllReduce(world, t0+(110+i*100)*us+late, t0+(150+i*100)*us, 1000)
		}
		check(t, p.Writer(0).Leave(otf2.Timestamp(t0+390*us), nil, phase))
		p.Call("ncclBroadcast", t0+395*us, t0+399*us)
		bcast := shardtest.Op{
			Function: "Broadcast", Kind: otf2.CollectiveOpBcast, Begin: t0 + 400*us + uint64(r)*5*us, End: t0 + 430*us,
			Rooted: true, Root: 1, Received: 800, Count: 200, Source: "network",
		}
		if r == 1 {
			bcast.Sent = 2400
		}
		p.Collective(world, bcast)
		bcast.Begin, bcast.End, bcast.Source = t0+440*us, t0+442*us, "enqueue"
		p.Collective(world, bcast)
		p.Plan(world, []shardtest.Op{
			{Function: "AllGather", Kind: otf2.CollectiveOpAllgather, Begin: t0 + 450*us + late, End: t0 + 490*us, Sent: 1200, Received: 1200, Count: 100},
			{Function: "ReduceScatter", Kind: otf2.CollectiveOpReduceScatterBlock, Begin: t0 + 450*us + late, End: t0 + 490*us, Sent: 2400, Received: 2400, Count: 200},
		})
		switch r {
		case 0:
			p.Send(world, 1, t0+500*us, t0+510*us, 4096)
			p.Send(world, 1, t0+520*us, t0+530*us, 64)
		case 1:
			p.Recv(world, 0, t0+500*us, t0+512*us, 4096)
			p.Recv(world, 0, t0+525*us, t0+532*us, 64)
		}
		p.Destroy(world, t0+600*us)
		alone := p.Comm(shard.Comm{ID: uint64(2000 + 10*salt + r), Name: "self", NRanks: 1, Rank: 0, InitTime: t0 + 610*us})
		p.AllReduce(alone, t0+620*us, t0+625*us, 500)
		next := p.Comm(shard.Comm{ID: uint64(3000 + salt), NRanks: 3, Rank: r, InitTime: t0 + 700*us})
		p.AllReduce(next, t0+710*us+late, t0+750*us, 1<<20)
		p.Finish()
	}
	res, err := scorep.Unify(dir, nil)
	check(t, err)
	return res.Runs[0].Archive
}

// made is a profile and what it was made of.
type made struct {
	*cubetest.Profile
	report *analysis.Report
	tally  *analysis.TallyReport
	file   string
	values map[string][][]float64 // by metric, cnode id, location
	parent map[int]int
}

// profileArchive makes a profile of an archive and reads it by the tests' own reader.
func profileArchive(t testing.TB, anchor string) *made {
	t.Helper()
	a, err := otf2.Open(anchor, nil)
	check(t, err)
	defer a.Close()
	p, report, err := FromArchive(a)
	check(t, err)
	p.Creator = "test"
	m := &made{report: report, tally: analysis.Tally(a), file: filepath.Join(t.TempDir(), "p.cubex")}
	check(t, p.Write(m.file, false))
	m.read(t)
	return m
}

func (m *made) read(t testing.TB) {
	t.Helper()
	text, err := os.ReadFile(m.file)
	check(t, err)
	m.Profile, err = cubetest.Decode(text)
	check(t, err)
	m.values, m.parent = make(map[string][][]float64), make(map[int]int)
	for _, metric := range m.AllMetrics {
		if metric.Kind == "POSTDERIVED" {
			continue
		}
		bits, _, err := m.Values(metric)
		check(t, err)
		all := make([][]float64, len(bits))
		for c := range bits {
			for _, v := range bits[c] {
				f := math.Float64frombits(v[0])
				if metric.Type == "UINT64" {
					f = float64(v[0])
				}
				all[c] = append(all[c], f)
			}
		}
		m.values[metric.Name] = all
	}
	for id, c := range m.CnodeByID {
		for _, k := range c.Children {
			m.parent[k.ID] = id
		}
	}
	for _, c := range m.Cnodes {
		m.parent[c.ID] = -1
	}
}

// tree is the name of the root above a cnode.
func (m *made) tree(c int) string {
	for m.parent[c] >= 0 {
		c = m.parent[c]
	}
	return m.name(c)
}

func (m *made) name(c int) string { return m.Regions[m.CnodeByID[c].Callee].Name }

// sum adds up a metric over the cnodes that where chooses, and all locations.
func (m *made) sum(metric string, where func(c int) bool) (sum float64) {
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

// sound checks what holds in every profile: times with what is below are at least the sum of those below, waits and extremes are
// within times, processes and locations are named so that tools can tell them apart.
func (m *made) sound(t testing.TB) {
	t.Helper()
	for c := range m.CnodeByID {
		for l := range m.LocationByID {
			total, below := m.values["time"][c][l], 0.0
			for _, k := range m.CnodeByID[c].Children {
				below += m.values["time"][k.ID][l]
			}
			if below > total*(1+1e-12)+1e-12 {
				t.Errorf("%s at location %d: %g s below it, %g in all", m.name(c), l, below, total)
			}
			waits := 0.0
			for _, name := range waitNames {
				waits += m.values[name][c][l]
			}
			if all := m.values["nccl_wait_time"][c][l]; !same(waits, all) || waits > total+1e-12 {
				t.Errorf("%s at location %d: waits of %g s, %g in all, within %g s", m.name(c), l, waits, all, total)
			}
			least, most, visits := m.values["min_time"][c][l], m.values["max_time"][c][l], m.values["visits"][c][l]
			if (least != math.MaxFloat64) != (most != -math.MaxFloat64) || least < math.MaxFloat64 && (least > most || visits == 0 || least*visits > total*(1+1e-9)+1e-12) {
				t.Errorf("%s at location %d: %g to %g s in %g visits, %g s", m.name(c), l, least, most, visits, total)
			}
		}
	}
	names := make(map[string]bool)
	m.EachGroup(func(n cubetest.Node, g cubetest.Group) {
		if n.Class != "node" || names[g.Name] {
			t.Errorf("group %q on %q of class %q", g.Name, n.Name, n.Class)
		}
		names[g.Name] = true
		in := make(map[string]bool)
		for _, l := range g.Locations {
			if in[l.Name] {
				t.Errorf("%s has two locations %q", g.Name, l.Name)
			}
			in[l.Name] = true
		}
		if i := slices.IndexFunc(g.Attrs, func(a cubetest.Attr) bool { return a.Key == cube.AttributeCreatingGroup }); g.Type == "accelerator" && (i < 0 || !names[g.Attrs[i].Value]) {
			t.Errorf("%s: attributes %v", g.Name, g.Attrs)
		}
	})
}

// operationTrees are the trees in which operations are.
func operationTree(name string) bool {
	return name == "KERNELS" || strings.HasPrefix(name, "OPERATIONS")
}

// agrees compares the profile with the report on the same archive.
func (m *made) agrees(t testing.TB) {
	t.Helper()
	calls := float64(m.report.Summary.Alone)
	for i := range m.report.Operations {
		calls += float64(m.report.Operations[i].Calls)
	}
	leaf := func(c int) bool {
		return operationTree(m.tree(c)) && len(m.CnodeByID[c].Children) == 0 && !strings.HasPrefix(m.Regions[m.CnodeByID[c].Callee].Name, "Group")
	}
	if got := m.sum("visits", leaf); m.report.Summary.Unfinished+m.report.Summary.LeftOut == 0 && got != calls {
		t.Errorf("%g operations, the report has %g calls", got, calls)
	}
	waited := make(map[string]float64)
	for _, k := range m.report.WaitStates.Kinds {
		if kind, ok := waitKinds[k.Name]; ok {
			waited[waitNames[kind]] = float64(k.Waited) / 1e9
		}
	}
	waited["nccl_startup_wait"] = float64(m.report.WaitStates.StartUp.Waited) / 1e9
	for _, name := range waitNames {
		if got := m.sum(name, func(int) bool { return true }); !same(got, waited[name]) {
			t.Errorf("%s: %g s, the report has %g", name, got, waited[name])
		}
	}
	operations := 0.0
	for _, g := range m.tally.Groups {
		switch g.Group {
		case regions.GroupCollectives, regions.GroupPointToPoint:
			operations += float64(g.Total) / 1e9
		case regions.GroupAPI:
			for _, r := range g.Rows {
				named := func(c int) bool { return m.tree(c) == "program" && m.name(c) == r.Name }
				visits := m.sum("visits", func(c int) bool {
					return named(c) || m.parent[c] >= 0 && named(m.parent[c]) && strings.HasPrefix(m.name(c), r.Name+", ")
				})
				if time := m.sum("time", named); !same(time, float64(r.Time)/1e9) || visits != float64(r.Calls) {
					t.Errorf("%s: %g in %g s, tallied %d in %d ns", r.Name, visits, time, r.Calls, r.Time)
				}
			}
		}
	}
	if got := m.sum("time", func(c int) bool { return m.parent[c] < 0 && operationTree(m.name(c)) }); !same(got, operations) {
		t.Errorf("operations took %g s, tallied %g", got, operations)
	}
	for i := range m.report.Operations {
		o := &m.report.Operations[i]
		alike := 0
		for j := range m.report.Operations {
			if x := &m.report.Operations[j]; x.Operation == o.Operation && x.Comm == o.Comm && x.AlgBW > 0 {
				alike++
			}
		}
		if o.AlgBW == 0 || alike != 1 {
			continue
		}
		class := profile.ClassName(o.Size)
		at := func(c int) bool {
			return strings.HasPrefix(m.name(c), o.Operation) && strings.HasSuffix(m.name(c), ", "+class) && m.parent[c] >= 0
		}
		seconds := m.sum("nccl_busy_time", at)
		if alg, bus := m.sum("nccl_bytes", at)/seconds, m.sum("nccl_bus_bytes", at)/seconds; !same(alg, o.AlgBW*1e9) || !same(bus, o.BusBW*1e9) {
			t.Errorf("%s of %d bytes: %g and %g B/s, the report has %g and %g GB/s", o.Operation, o.Size, alg, bus, o.AlgBW, o.BusBW)
		}
	}
}

func TestArchive(t *testing.T) {
	anchor := makeJob(t, 1)
	m := profileArchive(t, anchor)
	m.sound(t)
	m.agrees(t)

	// Bytes are those of the events.
	a, err := otf2.Open(anchor, nil)
	check(t, err)
	defer a.Close()
	var sent, received float64
	for ev, err := range a.Events(nil) {
		check(t, err)
		switch ev.Kind {
		case otf2.EventMpiCollectiveEnd:
			sent, received = sent+float64(ev.Args[3]), received+float64(ev.Args[4])
		case otf2.EventNonBlockingCollectiveComplete:
			sent, received = sent+float64(ev.Args[3]), received+float64(ev.Args[4])
		case otf2.EventMpiIsend:
			sent += float64(ev.Args[3])
		case otf2.EventMpiIrecv:
			received += float64(ev.Args[3])
		}
	}
	all := func(int) bool { return true }
	if s, r := m.sum("bytes_sent", all), m.sum("bytes_received", all); s != sent || r != received || s == 0 {
		t.Errorf("%g and %g bytes, the events have %g and %g", s, r, sent, received)
	}

	p, err := cube.Open(m.file)
	check(t, err)
	defer p.Close()
	var text bytes.Buffer
	check(t, cubeprint.Print(&text, p, nil))
	golden := filepath.Join("testdata", "archive.txt")
	if *update {
		check(t, os.MkdirAll("testdata", 0o755))
		check(t, os.WriteFile(golden, text.Bytes(), 0o644))
	}
	want, err := os.ReadFile(golden)
	check(t, err)
	if text.String() != string(want) {
		t.Errorf("the profile is not that of %s (-update writes it anew):\n%s", golden, text.String())
	}
}

// Two runs of one program give the same ids, although processes and communicators have others.
func TestRunsHaveTheSameIDs(t *testing.T) {
	var texts []string
	for salt := 1; salt <= 2; salt++ {
		p, err := cube.Open(profileArchive(t, makeJob(t, salt)).file)
		check(t, err)
		for i := range p.Groups { // which GPU it was may differ
			p.Groups[i].Attributes = p.Groups[i].Attributes[:min(1, len(p.Groups[i].Attributes))]
		}
		var text bytes.Buffer
		check(t, cubeprint.Print(&text, p, nil))
		check(t, p.Close())
		lines := strings.Split(text.String(), "\n")
		lines = slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(strings.TrimSpace(l), "anchor.xml") })
		texts = append(texts, strings.Join(lines, "\n"))
	}
	if texts[0] != texts[1] {
		t.Errorf("one run:\n%s\nanother:\n%s", texts[0], texts[1])
	}
}

// Archives of other tools have calls of other kinds, and no operations.
func TestArchivesOfOtherTools(t *testing.T) {
	for _, name := range []string{"collectives/nccl.otf2", "scorep-mpi/traces.otf2", "scalasca-min/traces.otf2"} {
		t.Run(name, func(t *testing.T) {
			anchor := filepath.Join("../../analysis/testdata", name)
			m := profileArchive(t, anchor)
			m.sound(t)
			if m.sum("visits", func(int) bool { return true }) == 0 {
				t.Error("nothing was counted")
			}
		})
	}
}
