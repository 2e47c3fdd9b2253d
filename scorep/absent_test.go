// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs/progress"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

// recordOf leaves a job of size ranks of which some are recorded. Each has the world and groups of eight neighbors and
// of every 4096th rank, and sends a message to the rank behind it.
func recordOf(t testing.TB, dir string, size int, ranks ...int) {
	t.Helper()
	for _, r := range ranks {
		p := shardtest.New(t, dir, fmt.Sprint("p", r)).On(fmt.Sprint("node", r/8), 1000+r).Launched("slurm", r, size)
		p.GPU(r%8, fmt.Sprint("GPU-", r), "")
		world := p.World()
		p.Comm(description.Comm{ID: 2 + uint64(r/8), Name: "tp", NRanks: 8, Rank: r % 8, InitTime: t0 + 2_000_000})
		p.Comm(description.Comm{ID: 1<<40 + uint64(r%4096), Name: "pp", NRanks: size / 4096, Rank: r / 4096,
			InitTime: t0 + 3_000_000})
		p.AllReduce(world, t0+10_000_000, t0+20_000_000, 64)
		p.AllReduce(1, t0+30_000_000, t0+40_000_000, 64)
		p.Send(world, (r+1)%size, t0+50_000_000, t0+60_000_000, 8)
		p.Finish()
	}
}

// Ranks of which nothing was recorded need no files of their own.
func TestAbsentRanksShareFiles(t *testing.T) {
	dir := t.TempDir()
	const size = 16384
	ranks := []int{0, 1, 8191, 16383}
	recordOf(t, dir, size, ranks...)
	run := unify(t, dir, nil).Runs[0]
	files, err := filepath.Glob(filepath.Join(dir, "traces", "*"))
	testkit.Check(t, err == nil && len(files) <= 48, "%d files, %v", len(files), err)
	testkit.Check(t, run.Missing == size-len(ranks) && !run.Complete, "%+v", run)
	defs := accept(t, run.Archive)
	for _, name := range []string{`"Ranks 2-8190 (no data)"`, `"Ranks 8192-16382 (no data)"`} {
		testkit.Check(t, strings.Contains(defs, name), "%s is not there", name)
	}
}

// Processes of which only the communicator is known are counted where the world has too few ranks for them.
func TestAbsentRanksAreCounted(t *testing.T) {
	for _, c := range []struct{ world, ranks, missing int }{{1, 2, 1}, {4, 4, 3}, {8, 4, 3}, {2, 5, 1}} {
		dir := t.TempDir()
		p := shardtest.New(t, dir, "p0").On("node", 1000).Launched("slurm", 0, c.world)
		p.GPU(0, "", "")
		p.Comm(description.Comm{ID: 1, NRanks: c.ranks, Rank: 0, InitTime: t0})
		p.Finish()
		if run := unify(t, dir, nil).Runs[0]; run.Missing != c.missing || run.MissingRanks != c.ranks-1 {
			t.Errorf("%+v: %d processes are missing, %d ranks", c, run.Missing, run.MissingRanks)
		}
	}
}

// Each member of a communicator that was not recorded is an entry of its own in the list of all locations, and which
// entry it is tells its rank in the world.
func TestAbsentRanksAreKnown(t *testing.T) {
	dir := t.TempDir()
	const size = 40
	for _, r := range []int{3, 4, 17, 30} {
		p := shardtest.New(t, dir, fmt.Sprint("p", r)).On("node", 1000+r).Launched("slurm", r, size)
		p.GPU(r, fmt.Sprint("GPU-", r), "")
		p.World()
		p.Comm(description.Comm{ID: 2, Name: "of two GPUs each", NRanks: 2 * size, Rank: 2 * r,
			InitTime: t0 + 2_000_000})
		gpu := p.GPU(100+r, fmt.Sprint("GPU-b", r), "")
		p.Comm(description.Comm{ID: 2, Name: "of two GPUs each", NRanks: 2 * size, Rank: 2*r + 1, GPU: gpu,
			InitTime: t0 + 2_000_000})
		p.Finish()
	}
	a := open(t, unify(t, dir, nil).Runs[0].Archive)
	ranksOf := make(map[otf2.LocationGroupRef]string)
	for _, p := range a.Defs.LocationGroupProperties {
		if a.Defs.String(p.Name) == property.NoData.Key() {
			ranksOf[p.LocationGroup] = a.Defs.String(otf2.StringRef(p.Value))
		}
	}
	list := a.Defs.Groups[slices.IndexFunc(a.Defs.Groups,
		func(g otf2.Group) bool { return g.Type == otf2.GroupTypeCommLocations })].Members
	for _, c := range a.Defs.Comms {
		members := a.Defs.Group(c.Group).Members
		if sorted := slices.Compact(slices.Sorted(slices.Values(members))); len(sorted) != len(members) {
			t.Errorf("%s: %d members, %d of them different", a.Defs.String(c.Name), len(members), len(sorted))
		}
		each := len(members) / size
		for rank, m := range members {
			group := a.Defs.Location(otf2.LocationRef(list[m])).Group
			text, absent := ranksOf[group]
			if !absent {
				continue
			}
			var first, last int
			_, err := fmt.Sscanf(text, "%d-%d", &first, &last)
			testkit.Require(t, err == nil, "%q: %v", text, err)
			begin := slices.Index(list, list[m])
			entries := 0
			for _, l := range list {
				if l == list[m] {
					entries++
				}
			}
			testkit.Require(t, entries == 2*(last-first+1), "ranks %s have %d entries", text, entries)
			if world := first + (int(m)-begin)/2; world != rank/each {
				t.Errorf("%s: rank %d is %d in the world, want %d", a.Defs.String(c.Name), rank, world, rank/each)
			}
		}
	}
}

// Communicator ranks without operations share a row of their GPU: communicators that are made and never used need no
// files.
func TestUnusedCommunicatorsShareARow(t *testing.T) {
	dir := t.TempDir()
	const comms = 300
	for r := range 2 {
		p := shardtest.New(t, dir, fmt.Sprint("p", r)).On("node", 1000+r).Launched("slurm", r, 2)
		p.GPU(r, fmt.Sprint("GPU-", r), "")
		p.AllReduce(p.World(), t0+10_000_000, t0+20_000_000, 64)
		for c := range comms {
			p.Shard.Comms = append(p.Shard.Comms, description.Comm{ID: 100 + uint64(c), NRanks: 2, Rank: r,
				InitTime: t0 + 2_000_000 + uint64(c), Location: -1})
		}
		p.Finish()
	}
	run := unify(t, dir, nil).Runs[0]
	testkit.Check(t, run.Communicators == comms+1 && run.Locations == 6 && run.Complete, "%+v", run)
	defs := accept(t, run.Archive)
	testkit.Check(t, strings.Contains(defs, `Name: "no operations", Type: ACCELERATOR_STREAM`), "%v", defs)
}

// What a description says of the size of a communicator is bounded, and the file and the number are named.
func TestSizesOfCommunicatorsAreBounded(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(p *description.Process)
		want  string
	}{
		{"communicator", func(p *description.Process) { p.Comms[0].NRanks = 1 << 31 },
			"shard uuid-00 is left out: shard.json: communicator 0: rank 0 of 2147483648 (of at most 262144)"},
		{"of unknown size", func(p *description.Process) { p.Comms[0].NRanks, p.Comms[0].Rank = 0, 1<<30 },
			"shard uuid-00 is left out: shard.json: communicator 0: rank 1073741824, of at most 262144 ranks"},
		{"window", func(p *description.Process) { p.Wins = []description.Win{{Comm: 0, Foreign: -1, Ranks: 1 << 30}} },
			"shard uuid-00 is left out: shard.json: window 0 has 1073741824 ranks, of at most 262144"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			job(t, dir, 2, 2, func(rank int, p *shardtest.Process) {
				if rank == 0 {
					c.spoil(&p.Shard)
				}
				p.Finish()
			})
			res := unify(t, dir, nil)
			testkit.Check(t, res.Damaged == 1 && slices.Contains(res.Problems, c.want), "%+v", res)
		})
	}
}

// All communicators together are bounded, too.
func TestAbsentRanksAreBounded(t *testing.T) {
	defer func(n int) { jobs.MaxAbsent = n }(jobs.MaxAbsent)
	jobs.MaxAbsent = 100
	dir := t.TempDir()
	p := shardtest.New(t, dir, "p0").On("node", 1)
	p.GPU(0, "", "")
	for c := range 3 {
		p.Comm(description.Comm{ID: 1 + uint64(c), NRanks: 40, Rank: 1, InitTime: t0})
	}
	p.Finish()
	_, err := Unify(dir, nil)
	want := filepath.Join(dir, "shards", "p0", "shard.json") +
		": communicator 2 adds 40 ranks, and with it more than 100 have no data: that is more than an archive can " +
		"name"
	testkit.Check(t, err != nil && strings.HasSuffix(err.Error(), want), "%v, want %s", err, want)
	_, _, err = progress.List(dir)
	testkit.Check(t, err != nil, "Jobs takes it")
	_, err = os.Lstat(filepath.Join(dir, "traces.new"))
	testkit.Check(t, errors.Is(err, os.ErrNotExist), "%v", err)
}

// One byte that is wrong in a description costs no memory.
func TestAWrongByteCostsNoMemory(t *testing.T) {
	dir := t.TempDir()
	job(t, dir, 2, 2, func(rank int, p *shardtest.Process) { p.Finish() })
	path := filepath.Join(dir, "shards", "uuid-00", "shard.json")
	good := testkit.Read(t, path)
	random := rand.New(rand.NewPCG(1, 2))
	at := strings.Index(string(good), `"nranks":`)
	for i := range 200 {
		bad := slices.Clone(good)
		if i < 60 { // digits behind the number of ranks
			bad = slices.Concat(good[:at+9], []byte(strings.Repeat("9", 1+i%12)), good[at+9:])
		} else {
			bad[random.IntN(len(bad))] ^= 1 << random.IntN(8)
		}
		testkit.Must(t, os.WriteFile(path, bad, 0o600))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _ = Unify(dir, nil)
		runtime.ReadMemStats(&after)
		n := (after.TotalAlloc - before.TotalAlloc) >> 20
		testkit.Check(t, n <= 200, "variation %d: %d MiB", i, n)
	}
}
