// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs"
	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

func processNames(a *otf2.Archive) []string {
	var names []string
	for _, g := range a.Defs.LocationGroups {
		if g.Type == otf2.LocationGroupTypeProcess {
			names = append(names, a.Defs.String(g.Name))
		}
	}
	return names
}

func runsOf(t *testing.T, parts []*jobs.Process) []*jobs.Run {
	t.Helper()
	runs := testkit.Value(jobs.Separate(parts))(t)
	return runs
}

func TestProcessesAreInWorldOrder(t *testing.T) {
	type process struct {
		host              string
		pid               int
		launcher, size    int // 0: unknown
		comm, rank, of    int
		comm2, rank2, of2 int
	}
	for _, c := range []struct {
		name  string
		procs []process
		want  []string
	}{
		{"the launcher's ranks count", []process{
			{"a", 1, 2, 3, 1, 0, 3, 0, 0, 0}, {"b", 2, 0, 3, 1, 1, 3, 0, 0, 0}, {"c", 3, 1, 3, 1, 2, 3, 0, 0, 0},
		}, []string{"Rank 0", "Rank 1", "Rank 2"}},
		{"else those of a communicator of all", []process{
			{"a", 1, -1, -1, 1, 2, 3, 0, 0, 0}, {"b", 2, -1, -1, 1, 1, 3, 0, 0, 0}, {"c", 3, -1, -1, 1, 0, 3, 0, 0, 0},
		}, []string{"Rank 0", "Rank 1", "Rank 2"}},
		{"else host and pid", []process{
			{"b", 1, -1, -1, 1, 0, 2, 2, 0, 2}, {"a", 20, -1, -1, 2, 1, 2, 0, 0, 0}, {"a", 3, -1, -1, 1, 1, 2, 0, 0, 0},
		}, []string{"Process a:3", "Process a:20", "Process b:1"}},
		{"a launcher that knows only some is not trusted", []process{
			{"a", 2, 1, 2, 1, 0, 2, 2, 0, 2}, {"a", 1, -1, -1, 1, 1, 2, 0, 0, 0}, {"b", 1, 0, 2, 2, 1, 2, 0, 0, 0},
		}, []string{"Process a:1", "Process a:2", "Process b:1"}},
		{"ranks that the launcher knows and that left nothing", []process{
			{"a", 1, 0, 6, 1, 0, 6, 0, 0, 0}, {"a", 2, 5, 6, 1, 5, 6, 0, 0, 0}, {"a", 3, 3, 6, 1, 3, 6, 0, 0, 0},
		}, []string{"Rank 0", "Ranks 1-2 (no data)", "Rank 3", "Rank 4 (no data)", "Rank 5"}},
		{"ranks missing in a communicator of all", []process{
			{"a", 1, -1, -1, 1, 3, 4, 0, 0, 0}, {"a", 2, -1, -1, 1, 0, 4, 0, 0, 0},
		}, []string{"Rank 0", "Ranks 1-2 (no data)", "Rank 3"}},
		{"a missing rank that could be several", []process{
			// Of world ranks 0 to 3 only 0 and 3 left data; their communicator of three lacks one in the middle.
			{"a", 1, 0, 4, 1, 0, 3, 0, 0, 0}, {"a", 2, 3, 4, 1, 2, 3, 0, 0, 0},
		}, []string{"Rank 0", "Rank 3", "Unknown ranks (no data)"}},
		{"a communicator against the world's order", []process{
			{"a", 1, 0, 4, 1, 3, 4, 0, 0, 0}, {"a", 2, 1, 4, 1, 0, 4, 0, 0, 0},
		}, []string{"Rank 0", "Rank 1", "Unknown ranks (no data)"}},
		{"one that never communicated", []process{
			{"a", 1, 1, 2, 0, 0, 0, 0, 0, 0}, {"a", 2, 0, 2, 1, 0, 1, 0, 0, 0},
		}, []string{"Rank 0", "Rank 1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for i, d := range c.procs {
				p := shardtest.New(t, dir, fmt.Sprint("p", i)).On(d.host, d.pid)
				if d.size > 0 {
					p.Launched("slurm", d.launcher, d.size)
				}
				p.GPU(0, "", "")
				if d.comm > 0 {
					p.Comm(description.Comm{ID: uint64(d.comm), NRanks: d.of, Rank: d.rank, InitTime: t0})
				}
				if d.comm2 > 0 {
					p.Comm(description.Comm{ID: uint64(d.comm2), NRanks: d.of2, Rank: d.rank2, InitTime: t0})
				}
				p.Finish()
			}
			res := unify(t, dir, nil)
			testkit.Require(t, len(res.Runs) == 1, "%+v", res)
			testkit.Same(t, c.want, processNames(open(t, res.Runs[0].Archive)))
			accept(t, res.Runs[0].Archive)
		})
	}
}

func TestRuns(t *testing.T) {
	const second = 1_000_000_000
	type process struct {
		launcher, size int // 0: unknown
		comm, rank, of int // 0: none
		begin, end     uint64
	}
	for _, c := range []struct {
		name  string
		procs []process
		want  [][]int // processes of each run
	}{
		{"one communicator", []process{{-1, -1, 1, 0, 2, 0, 9}, {-1, -1, 1, 1, 2, 0, 9}}, [][]int{{0, 1}}},
		{"strangers", []process{{-1, -1, 1, 0, 1, 0, 9}, {-1, -1, 2, 0, 1, 1, 9}}, [][]int{{0}, {1}}},
		{"ranks of one launcher without a common communicator", []process{{0, 2, 1, 0, 1, 0, 9}, {1, 2, 2, 0, 1, 1, 9}},
			[][]int{{0, 1}}},
		{"one rank twice", []process{{0, 2, 1, 0, 1, 0, 9}, {0, 2, 2, 0, 1, 20, 29}, {1, 2, 3, 0, 1, 1, 9},
			{1, 2, 4, 0, 1, 21, 29}}, [][]int{{0, 2}, {1, 3}}},
		{"worlds of different sizes", []process{{0, 2, 1, 0, 1, 0, 9}, {1, 3, 2, 0, 1, 0, 9}}, [][]int{{0}, {1}}},
		{"one commId at different times", []process{{-1, -1, 7, 0, 2, 0, 5}, {-1, -1, 7, 1, 2, 1, 5},
			{-1, -1, 7, 0, 2, 10, 15}, {-1, -1, 7, 1, 2, 10, 15}}, [][]int{{0, 1}, {2, 3}}},
		{"a process that ended before its first communicator",
			[]process{{-1, -1, 1, 0, 1, 0, 5}, {-1, -1, 2, 0, 1, 100, 105}, {-1, -1, 0, 0, 0, 101, 101}},
			[][]int{{0}, {1, 2}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for i, d := range c.procs {
				p := shardtest.New(t, dir, fmt.Sprint(i)).On("a", i)
				if d.size > 0 {
					p.Launched("slurm", d.launcher, d.size)
				}
				p.Shard.FirstTime, p.Shard.LastTime = t0+d.begin*second, t0+d.end*second
				if d.comm > 0 {
					p.Comm(description.Comm{ID: uint64(d.comm), NRanks: d.of, Rank: d.rank,
						InitTime: t0 + d.begin*second, FinalTime: t0 + d.end*second})
				}
				p.Finish()
			}
			parts, left, err := jobs.Read(dir, 2, time.Now())
			testkit.Require(t, err == nil && len(left.Problems) == 0, "%v %v", err, left.Problems)
			var got [][]int
			for _, r := range runsOf(t, parts) {
				var members []int
				for _, p := range r.Processes {
					var n int
					fmt.Sscan(p.Shard.UUID, &n)
					members = append(members, n)
				}
				slices.Sort(members)
				got = append(got, members)
			}
			testkit.Same(t, c.want, got)
		})
	}
}

func TestSequencesThatDifferAreReported(t *testing.T) {
	dir := t.TempDir()
	procs := job(t, dir, 3, 2, func(rank int, p *shardtest.Process) {
		switch rank {
		case 0:
			p.Send(0, 1, t0+10_000_000, t0+10_000_100, 8)
			p.Send(0, 1, t0+10_000_200, t0+10_000_300, 8)
			p.AllReduce(0, t0+11_000_000, t0+11_000_100, 8)
		case 1:
			p.Recv(0, 0, t0+10_000_000, t0+10_000_100, 8)
			p.AllReduce(0, t0+11_000_000, t0+11_000_100, 8)
		}
	})
	finish(procs)
	run := unify(t, dir, nil).Runs[0]
	want := []jobs.Difference{
		{Name: "world", Function: "AllReduce", First: 2, Last: 2,
			Detail: "rank 2 has 2 operations, ranks 0-1 have 3 operations"},
		{Name: "world", Function: "Send 0>1", First: 1, Last: 1,
			Detail: "rank 0 has 2 operations, rank 1 has 1 operation"},
	}
	diff := cmp.Diff(want, run.Differences)
	testkit.Check(t, diff == "" && !run.Complete, "%v %v", run.Complete, diff)
	a := open(t, run.Archive)
	got := propertyText(a, "NCCL_OTF2::SEQUENCES_DIFFER::1")
	testkit.Check(t, got == `comm 0 Send 0>1 1-1 "world": rank 0 has 2 operations, rank 1 has 1 operation`,
		"property: %s", got)
	testkit.Equal(t, propertyText(a, "OTF2::MPI_COMMUNICATION_COMPLETE"), "false", "complete")
	_, markers, err := a.Markers()
	testkit.Check(t, err == nil && len(markers) == 2 && markers[0].ScopeType == otf2.MarkerScopeComm &&
		strings.Contains(markers[0].Text, "AllReduce 2-2"), "%+v, %v", markers, err)
	accept(t, run.Archive)
}

func TestCountsAndMarkersOfProcessesAreInTheArchive(t *testing.T) {
	dir := t.TempDir()
	procs := job(t, dir, 2, 1, func(rank int, p *shardtest.Process) {
		c := &p.Shard.Counts
		c.Starts = map[string]uint64{"Coll": 3, "ProxyStep": 5}
		c.States = map[string]uint64{"ProxyStepSendWait": 2}
		c.Filtered = map[string]uint64{"KernelCh": 1}
		c.Oddities = map[string]uint64{"STRAY_STOPS": uint64(rank)}
		if rank == 1 {
			c.Lost = map[string]map[string]uint64{"ring full": {"ProxyOp": 4, "Coll": 2}, "memory-cap": {"KernelCh": 1}}
			p.Shard.Markers = []description.Marker{
				{Time: t0 + 400_000, Duration: 1000, Severity: otf2.MarkerSeverityHigh, Category: "Loss",
					Text: "7 events", Location: 1},
				{Time: 0, Duration: 1 << 60, Severity: otf2.MarkerSeverityLow, Category: "Loss",
					Text: "at some time\x00", Location: -1},
				{Time: t0 + 500_000, Severity: otf2.MarkerSeverityLow, Category: "Loss", Text: "of no location",
					Location: 99},
			}
		}
	})
	finish(procs)
	run := unify(t, dir, nil).Runs[0]
	testkit.Check(t, run.Lost == 7 && !run.Complete, "%+v", run)
	a := open(t, run.Archive)
	var text strings.Builder
	for _, p := range a.Anchor.Properties {
		fmt.Fprintf(&text, "%s = %s\n", p.Name, p.Value)
	}
	defs, markers, err := a.Markers()
	testkit.Must(t, err)
	for _, d := range defs {
		fmt.Fprintf(&text, "kind %d: %s, %s, %v\n", d.Self, d.Group, d.Category, d.Severity)
	}
	for _, m := range markers {
		fmt.Fprintf(&text, "marker %d at %d for %d: %v %d: %s\n", m.Marker, m.Time-t0, m.Duration, m.ScopeType, m.Scope,
			m.Text)
	}
	golden.Text(t, "testdata/properties.txt", text.String())
	accept(t, run.Archive)
}

func TestEventFilesOfFinishedProcessesAreNotRead(t *testing.T) {
	dir := t.TempDir()
	procs := job(t, dir, 2, 3, nil)
	finish(procs)
	for _, p := range procs {
		for _, l := range p.Shard.Locations {
			path := filepath.Join(p.Dir, fmt.Sprintf("%d.evt", l.Number))
			testkit.Must(t, os.WriteFile(path, bytes.Repeat([]byte{0xee}, int(l.Bytes)), 0o666))
		}
	}
	run := unify(t, dir, nil).Runs[0]
	testkit.Check(t, run.Linked == 4 && len(run.Problems) == 0, "%+v", run)
}

func TestDevices(t *testing.T) {
	dir := t.TempDir()
	for i := range 4 {
		p := shardtest.New(t, dir, fmt.Sprint(i)).On("a", i).Launched("slurm", i, 4)
		gpu := 0
		switch i {
		case 0, 1:
			gpu = p.GPU(0, "GPU-shared", "0000:01:00.0") // two processes on one GPU
		case 2:
			p.GPU(-1, "", "")
			gpu = p.GPU(-1, "", "") // two that nothing is known of
			p.Comm(description.Comm{ID: 2, NRanks: 1, GPU: 0, InitTime: t0})
		case 3:
			gpu = -1 // and none described at all
		}
		p.Comm(description.Comm{ID: 1, NRanks: 4, Rank: i, GPU: gpu, InitTime: t0})
		p.Region("AllReduce", "NCCL collectives", otf2.RegionRoleCollAll2All)
		p.Shard.Regions[0].Paradigm, p.Shard.Library = otf2.ParadigmHIP, "RCCL"
		p.Finish()
	}
	run := unify(t, dir, nil).Runs[0]
	var lines []string
	for line := range strings.Lines(accept(t, run.Archive)) {
		if strings.Contains(line, "HIP") || strings.HasPrefix(line, "LOCATION_GROUP ") {
			lines = append(lines, line)
		}
	}
	golden.Text(t, "testdata/devices.defs.txt", strings.Join(lines, ""))
}

// A process meets its GPUs in the order in which its threads make communicators; readers show them in the order of
// their definitions.
func TestDevicesAreInOrder(t *testing.T) {
	dir := t.TempDir()
	p := shardtest.New(t, dir, "0").On("a", 1).Launched("slurm", 0, 1)
	for rank, device := range []int{3, 0, 2, 1} {
		gpu := p.GPU(device, "", "")
		p.Comm(description.Comm{ID: 1, NRanks: 4, Rank: rank, GPU: gpu, InitTime: t0})
	}
	p.Finish()
	var names []string
	for line := range strings.Lines(accept(t, unify(t, dir, nil).Runs[0].Archive)) {
		if strings.HasPrefix(line, "LOCATION_GROUP ") || strings.HasPrefix(line, "SYSTEM_TREE_NODE ") {
			names = append(names, strings.Split(line, `"`)[1])
		}
	}
	want := []string{
		"Linux", "a", "CUDA Device 0", "CUDA Device 1", "CUDA Device 2", "CUDA Device 3",
		"Rank 0", "Rank 0 GPU 0", "Rank 0 GPU 1", "Rank 0 GPU 2", "Rank 0 GPU 3",
	}
	testkit.Same(t, want, names)
}

func TestComponentsOfPropertyNames(t *testing.T) {
	for in, want := range map[string]string{
		"Coll": "COLL", "ProxyStep": "PROXY_STEP", "P2pApi": "P2P_API", "KernelCh": "KERNEL_CH",
		"NETPlugin": "NET_PLUGIN",
		"ring full": "RING_FULL", "STRAY_STOPS": "STRAY_STOPS", "gpu": "GPU", "": "UNKNOWN", "::": "UNKNOWN",
		"a--b": "A_B",
	} {
		testkit.Equal(t, component(in), want, "%q", in)
	}
	valid := regexp.MustCompile(`^[A-Z0-9_]+$`)
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "name")
		testkit.Check(t, valid.MatchString(component(s)), "%q becomes %q", s, component(s))
	})
}

// A thousand locations in a hundred processes, of which a few are gone.
func TestManyLocations(t *testing.T) {
	dir := t.TempDir()
	const size = 110
	for r := range size {
		if r%11 == 10 {
			continue
		}
		p := shardtest.New(t, dir, fmt.Sprintf("%03d", r)).On(fmt.Sprint("n", r/8), r).Launched("slurm", r, size)
		p.GPU(r%8, fmt.Sprint("GPU-", r), "")
		for c := range uint64(9) {
			comm := p.Comm(description.Comm{ID: 100 + c, Name: fmt.Sprint("c", c), NRanks: size, Rank: r,
				InitTime: t0 + c})
			p.AllReduce(comm, t0+1000, t0+2000, 1)
		}
		p.Finish()
	}
	run := unify(t, dir, nil).Runs[0]
	testkit.Check(t, run.Locations == 100*10+10 && run.Missing == 10 && run.MissingRanks == 90 &&
		run.Communicators == 9 && run.Linked == 1000, "%+v", run)
	accept(t, run.Archive)
}
