// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

// put is an RmaPut as a reader of the archive understands it.
type put struct {
	From, To string // names of locations
	Window   string
	Bytes    uint64
}

// transferPuts reads all transfers of an archive through its definitions.
func transferPuts(t *testing.T, a *otf2.Archive) []put {
	t.Helper()
	var world []uint64
	for _, g := range a.Defs.Groups {
		if g.Type == otf2.GroupTypeCommLocations {
			world = g.Members
		}
	}
	name := func(l otf2.LocationRef) string {
		d := a.Defs.Location(l)
		return a.Defs.String(a.Defs.LocationGroup(d.Group).Name) + "/" + a.Defs.String(d.Name)
	}
	var all []put
	for ev, err := range a.Events(nil) {
		testkit.Must(t, err)
		if ev.Kind != otf2.EventRmaPut {
			continue
		}
		win := a.Defs.RmaWin(otf2.RmaWinRef(ev.Args[0]))
		if win == nil {
			t.Fatalf("window %d is not defined", ev.Args[0])
		}
		members := a.Defs.Group(a.Defs.Comm(win.Comm).Group).Members
		from := -1
		for i, m := range members {
			if otf2.LocationRef(world[m]) == ev.Location {
				from = i
			}
		}
		testkit.Check(t, from >= 0, "%s is no member of %s", name(ev.Location), a.Defs.String(win.Name))
		if ev.Args[1] >= uint64(len(members)) {
			t.Errorf("put to rank %d of %d", ev.Args[1], len(members))
			continue
		}
		all = append(all, put{name(ev.Location), name(otf2.LocationRef(world[members[ev.Args[1]]])),
			a.Defs.String(win.Name), ev.Args[2]})
	}
	return all
}

func TestTransfersNameTheirReceivers(t *testing.T) {
	dir := t.TempDir()
	procs := job(t, dir, 4, 1, func(rank int, p *shardtest.Process) {
		p.Comm(description.Comm{ID: 7, Name: "pp", NRanks: 2, Rank: rank / 2, InitTime: t0 + uint64(rank%2)})
		p.Shard.Comms[1].ID += uint64(rank % 2) // ranks 0, 2 and 1, 3
		if rank == 3 {
			return // no network events of it: its operations' location stands for it
		}
		p.Network(1) // not in the order of the communicators
		p.Network(0)
		p.Arrival(0, t0+2_000_000, t0+2_000_500)
		p.Put(0, (rank+1)%4, t0+3_000_000+uint64(rank), t0+3_001_000, uint64(100+rank))
		p.Put(1, 1-rank/2, t0+4_000_000+uint64(rank), t0+4_001_000, uint64(200+rank))
	})
	finish(procs)
	res := unify(t, dir, nil)
	run := res.Runs[0]
	testkit.Check(t, run.Complete && run.Communicators == 3, "%+v", run)
	golden.Text(t, "testdata/network.defs.txt", accept(t, run.Archive))
	a := open(t, run.Archive)
	want := []put{
		{"Rank 0/world net send", "Rank 1/world net recv", "world network", 100},
		{"Rank 1/world net send", "Rank 2/world net recv", "world network", 101},
		{"Rank 2/world net send", "Rank 3 GPU 0/world rank 3", "world network", 102},
		{"Rank 0/pp net send", "Rank 2/pp net recv", "pp network", 200},
		{"Rank 1/pp net send", "Rank 3 GPU 0/pp rank 1", "pp #2 network", 201},
		{"Rank 2/pp net send", "Rank 0/pp net recv", "pp network", 202},
	}
	testkit.Same(t, want, transferPuts(t, a))
}

// The communicators that a job has without network locations are the same with them.
func TestNetworksLeaveCommunicatorsAsTheyAre(t *testing.T) {
	comms := func(net bool) (all []string) {
		dir := t.TempDir()
		finish(job(t, dir, 3, 1, func(rank int, p *shardtest.Process) {
			if net {
				p.Network(0)
			}
		}))
		a := open(t, unify(t, dir, nil).Runs[0].Archive)
		for _, c := range a.Defs.Comms {
			if name := a.Defs.String(c.Name); !strings.HasSuffix(name, " network") {
				all = append(all, fmt.Sprint(c.Self, name, a.Defs.Group(c.Group).Members, c.Flags, c.Parent))
			}
		}
		return all
	}
	without, with := comms(false), comms(true)
	diff := cmp.Diff(without, with)
	testkit.Check(t, diff == "" && len(with) == 1, "%v %v", len(with), diff)
}

// pxnJob is a job of four ranks on two machines of two; rank 1 of each machine sends for rank 0.
func pxnJob(t *testing.T, dir string, change func(rank int, p *shardtest.Process)) []*shardtest.Process {
	procs := make([]*shardtest.Process, 4)
	for r := range procs {
		p := shardtest.New(t, dir, fmt.Sprint("uuid-", r)).On(fmt.Sprint("node", r/2), 1).Launched(
			"slurm", r, 4) // all have pid 1
		p.GPU(r%2, "", "")
		if r%2 == 0 {
			p.Comm(description.Comm{ID: 99, NRanks: 1, InitTime: t0}) // so that the number is not 0
		}
		p.Comm(description.Comm{ID: 5, Name: "world", NRanks: 4, Rank: r, InitTime: t0})
		procs[r] = p
	}
	for r, p := range procs {
		if r%2 == 1 {
			p.Network(0)
			f := p.Foreign(description.ForeignComm{Tag: procs[r-1].Shard.Tag, Index: 1, Rank: r - 1, PID: 1})
			p.Put(0, 3-r+1, t0+1_000_000, t0+1_000_100, 11)
			p.Put(-1-f, (r+1)%4, t0+2_000_000, t0+2_000_100, 22)
		}
		if change != nil {
			change(r, p)
		}
	}
	return procs
}

func TestWorkForOtherProcessesIsTheirs(t *testing.T) {
	dir := t.TempDir()
	for _, p := range pxnJob(t, dir, nil) {
		p.Finish()
	}
	run := unify(t, dir, nil).Runs[0]
	testkit.Check(t, run.Complete && run.Communicators == 1, "%+v", run)
	golden.Text(t, "testdata/pxn.defs.txt", accept(t, run.Archive))
	a := open(t, run.Archive)
	want := []put{
		{"Rank 1/world net send", "Rank 3/world net recv", "world network", 11},
		{"Rank 3/world net send", "Rank 1/world net recv", "world network", 11},
		{fmt.Sprintf("Rank 1/PXN %04x.1 send", originTag(t, "uuid-0")), "Rank 2 GPU 0/world rank 2", "world network",
			22},
		{fmt.Sprintf("Rank 3/PXN %04x.1 send", originTag(t, "uuid-2")), "Rank 0 GPU 0/world rank 0", "world network",
			22},
	}
	testkit.Same(t, want, transferPuts(t, a))
	ranks := make(map[string]uint64)
	for _, p := range a.Defs.LocationProperties {
		if a.Defs.String(p.Name) == property.Rank.Key() {
			ranks[a.Defs.String(a.Defs.Location(p.Location).Name)+fmt.Sprint(uint32(p.Location))] = uint64(p.Value)
		}
	}
	wantRanks := map[string]uint64{
		"world net send1": 1, "world net recv1": 1, fmt.Sprintf("PXN %04x.1 send1", originTag(t, "uuid-0")): 0,
		"world net send3": 3, "world net recv3": 3, fmt.Sprintf("PXN %04x.1 send3", originTag(t, "uuid-2")): 2,
	}
	testkit.Same(t, wantRanks, ranks)
	testkit.Check(t, propertyText(a, "NCCL_OTF2::PXN") == "2" && propertyText(a, "NCCL_OTF2::PXN_UNRESOLVED") == "",
		"properties: %+v", a.Anchor.Properties)
}

func originTag(t *testing.T, uuid string) uint16 {
	return shardtest.New(t, t.TempDir(), uuid).Shard.Tag
}

func TestOriginatorsThatAreNotCertainAreNotGuessed(t *testing.T) {
	var said strings.Builder
	for _, c := range []struct {
		name   string
		change func(rank int, p *shardtest.Process)
	}{
		{"a process without data", func(rank int, p *shardtest.Process) {
			if rank == 1 {
				p.Shard.Foreign[0].Tag ^= 0x55
			}
		}},
		{"the same tag on another machine", func(rank int, p *shardtest.Process) {
			if rank == 2 {
				p.Shard.Tag = originTag(t, "uuid-0")
			}
			if rank == 3 {
				p.Shard.Foreign[0].Tag = originTag(t, "uuid-0")
			}
		}},
		{"another rank", func(rank int, p *shardtest.Process) {
			if rank == 1 {
				p.Shard.Foreign[0].Rank = 3
			}
		}},
		{"no such communicator", func(rank int, p *shardtest.Process) {
			if rank == 1 {
				p.Shard.Foreign[0].Index = 8
			}
		}},
		{"two containers of one name with equal process ids", func(rank int, p *shardtest.Process) {
			p.Shard.PID, p.Shard.PIDStart, p.Shard.Host, p.Shard.BootID = 1, 1, "container", fmt.Sprint("boot", rank/2)
		}},
		{"containers of different names on one machine", func(rank int, p *shardtest.Process) {
			p.Shard.Host = fmt.Sprint("container", rank)
		}},
		{"no boot id", func(rank int, p *shardtest.Process) { p.Shard.BootID = "" }},
		{"a stranger with that tag", func(rank int, p *shardtest.Process) {
			if rank == 0 { // in the same job, and it has a communicator of that number and rank
				q := shardtest.New(t, strings.TrimSuffix(p.Dir, "/shards/uuid-0"), "stranger").On("node0", 77)
				q.Shard.Tag = p.Shard.Tag
				q.GPU(5, "", "")
				q.Comm(description.Comm{ID: 42, NRanks: 1, InitTime: t0})
				q.Comm(description.Comm{ID: 43, NRanks: 2, InitTime: t0})
				q.Finish()
				p.Comm(description.Comm{ID: 43, NRanks: 2, Rank: 1, InitTime: t0})
			}
		}},
		{"two members of one number with one tag", func(rank int, p *shardtest.Process) {
			if rank == 0 {
				q := shardtest.New(t, strings.TrimSuffix(p.Dir, "/shards/uuid-0"), "twin").On("node0", 77)
				q.Shard.Tag = p.Shard.Tag
				q.GPU(5, "", "")
				q.Comm(description.Comm{ID: 42, NRanks: 1, InitTime: t0})
				q.Comm(description.Comm{ID: 43, NRanks: 2, InitTime: t0})
				q.Finish()
			}
			if rank == 1 {
				p.Comm(description.Comm{ID: 43, NRanks: 2, Rank: 1, InitTime: t0})
			}
		}},
	} {
		dir := t.TempDir()
		for _, p := range pxnJob(t, dir, c.change) {
			p.Finish()
		}
		run := unify(t, dir, nil).Runs[0]
		accept(t, run.Archive)
		a := open(t, run.Archive)
		fmt.Fprintf(&said, "%s: complete: %t, unresolved: %q\n", c.name, run.Complete,
			propertyText(a, "NCCL_OTF2::PXN_UNRESOLVED"))
		_, markers, err := a.Markers()
		testkit.Must(t, err)
		for _, m := range markers {
			fmt.Fprintf(&said, "  marked: %s\n", m.Text)
		}
		for _, p := range transferPuts(t, a) {
			fmt.Fprintf(&said, "  %+v\n", p)
		}
	}
	golden.Text(t, "testdata/originators.txt", said.String())
}

func TestCommunicatorsOfUnknownSize(t *testing.T) {
	dir := t.TempDir()
	for r := range 3 {
		p := shardtest.New(t, dir, fmt.Sprint(r)).On("node0", 10+r).Launched("slurm", r, 3)
		p.Shard.APIVersion = 2
		p.GPU(r, "", "")
		p.Comm(description.Comm{ID: 0x77, Rank: r, InitTime: t0}) // by its commHash
		p.Comm(description.Comm{Rank: -1, InitTime: t0})          // nothing was said
		p.Comm(description.Comm{ID: 0x88, NRanks: 3, Rank: r, InitTime: t0})
		p.Shard.Comms = append(p.Shard.Comms, description.Comm{Location: -1}) // not announced yet
		for c := range 2 {
			p.Network(c)
			p.Put(c, (r+1)%3, t0+10_000+uint64(10*c+r), t0+20_000, uint64(10*c+r))
		}
		p.Finish()
	}
	run := unify(t, dir, nil).Runs[0]
	testkit.Check(t, run.Communicators == 1 && !run.Complete && run.MissingRanks == 0 && len(run.Problems) == 0,
		"%+v", run)
	golden.Text(t, "testdata/unsized.defs.txt", accept(t, run.Archive))
	a := open(t, run.Archive)
	got := propertyText(a, "NCCL_OTF2::RANKS_OF_UNKNOWN_SIZE")
	testkit.Check(t, got == "6", "%q ranks of communicators of unknown size", got)
	nowhere := "Unknown ranks (no data)/no data"
	want := []put{
		{"Rank 0/comm 77 net send", "Rank 1/comm 77 net recv", "ncclComm 0x77 network", 0},
		{"Rank 1/comm 77 net send", "Rank 2/comm 77 net recv", "ncclComm 0x77 network", 1},
		{"Rank 2/comm 77 net send", "Rank 0/comm 77 net recv", "ncclComm 0x77 network", 2},
		{"Rank 0/comm 0 net send", nowhere, "unknown communicator network", 10},
		{"Rank 1/comm 0 net send", nowhere, "unknown communicator #2 network", 11},
		{"Rank 2/comm 0 net send", nowhere, "unknown communicator #3 network", 12},
	}
	testkit.Same(t, want, transferPuts(t, a))
}

func TestNetworksOfRunningJobs(t *testing.T) {
	dir := t.TempDir()
	procs := pxnJob(t, dir, nil)
	for _, p := range procs {
		p.Flush()
	}
	first := unify(t, dir, nil).Runs[0]
	testkit.Check(t, first.Running == 4 && !first.Complete, "%+v", first)
	accept(t, first.Archive)
	before := transferPuts(t, open(t, first.Archive))
	for r, p := range procs {
		if r == 0 {
			p.Crash(0, []byte{12, 3}) // the originator dies; what it asked for remains its
			continue
		}
		p.Finish()
	}
	for range 2 {
		run := unify(t, dir, muchLater).Runs[0]
		testkit.Check(t, run.Finished == 3 && run.Crashed == 1, "%+v", run)
		accept(t, run.Archive)
		diff := cmp.Diff(before, transferPuts(t, open(t, run.Archive)))
		testkit.Check(t, diff == "" && len(before) == 4, "%v %v", len(before), diff)
	}
}
