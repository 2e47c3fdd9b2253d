// SPDX-License-Identifier: Apache-2.0

package waits_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/causes"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/waits"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/membership"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

// Score-P's archive of four MPI ranks. The expected waits were derived from the output of otf2-print by Scalasca's
// definitions: from the Enter of MPI's regions, for requests from the Enter of the call that ended them, at most until
// the collective's end.
func TestWaitsOfMPI(t *testing.T) {
	w := jobtest.Operations(t, "../../../scorep/testdata/mpi4-clock_gettime/traces.otf2").WaitStates
	got := map[string]uint64{"start-up": w.StartUp.Waited}
	for _, k := range w.Kinds {
		got[k.Name] = k.Waited
	}
	for kind, want := range map[string]uint64{
		"start-up": 23_137_659 + 17_402 + 9_533, "collective": 164_632_745 - 23_164_594,
		"late broadcast": 62_700_344, "early reduce": 157_229, "late sender": 62_328_238, "late receiver": 0,
	} {
		testkit.Check(t, got[kind] == want, "%s: %d ns, not %d", kind, got[kind], want)
	}
	testkit.Check(t, w.Messages == 15 && w.NotCompared.NoTimes+w.NotCompared.Messages+w.NotCompared.Unmatched == 0,
		"%d messages compared, left out: %+v", w.Messages, w.NotCompared)
	testkit.Check(t, w.Paradigms == nil && w.Times["call"] == w.Collectives+w.Messages,
		"paradigms %+v, times %v", w.Paradigms, w.Times)
}

// mixed makes an archive of three ranks as after a merge, with NCCL communicators of all ranks, of 0 and 1, and of 1
// and 2, and an MPI communicator of all. draw writes NCCL's operations; message writes a message, with the times at
// which each end enters and leaves the call.
func mixed(t *testing.T, draw func(rank int, all, low int, p *shardtest.Process),
	messages func(message func(from, to int, sent, posted, done uint64))) string {
	t.Helper()
	s := jobtest.Load(t, jobtest.Make(t, 3, 3, func(r int, p *shardtest.Process) {
		all, low := p.World(), -1
		if r < 2 {
			low = p.Comm(description.Comm{ID: 2, Name: "low", NRanks: 2, Rank: r, NNodes: 1, InitTime: t0})
		}
		p.Call("ncclCommInitRank", t0, t0+us)
		draw(r, all, low, p)
	}))
	for i := range s.Defs.Groups {
		if s.Defs.Groups[i].Paradigm == otf2.ParadigmMPI {
			s.Defs.Groups[i].Paradigm = regions.ParadigmNCCL
		}
	}
	s.Defs.Groups = append(s.Defs.Groups, otf2.Group{
		Self: otf2.GroupRef(len(s.Defs.Groups)), Type: otf2.GroupTypeCommLocations, Paradigm: otf2.ParadigmMPI,
		Members: []uint64{0, 1, 2},
	})
	comm := s.Comm(otf2.ParadigmMPI, otf2.UndefinedComm, 0, 1, 2)
	s.Defs.Comms[comm].Name = s.Text("MPI_COMM_WORLD")
	call := otf2.RegionRef(len(s.Defs.Regions))
	s.Defs.Regions = append(s.Defs.Regions, otf2.Region{Self: call, Name: s.Text("MPI_Wait"),
		CanonicalName: s.Text("MPI_Wait"), Paradigm: otf2.ParadigmMPI})
	put := func(rank int, begin, end uint64, ev otf2.Event) {
		l := jobtest.Thread(rank)
		ev.Time = otf2.Timestamp(end)
		if ev.Kind == otf2.EventMpiSend {
			ev.Time = otf2.Timestamp(begin)
		}
		for _, ev := range []otf2.Event{
			{Kind: otf2.EventEnter, Time: otf2.Timestamp(begin), Args: []uint64{uint64(call)}}, ev,
			{Kind: otf2.EventLeave, Time: otf2.Timestamp(end), Args: []uint64{uint64(call)}},
		} {
			ev.Location = l
			s.Events[l] = append(s.Events[l], ev)
		}
	}
	messages(func(from, to int, sent, posted, done uint64) {
		put(from, t0+sent*us, t0+(sent+1)*us, otf2.Event{Kind: otf2.EventMpiSend,
			Args: []uint64{uint64(to), comm, 5, 64}})
		put(to, t0+posted*us, t0+done*us, otf2.Event{Kind: otf2.EventMpiRecv,
			Args: []uint64{uint64(from), comm, 5, 64}})
	})
	for l := range s.Events {
		slices.SortStableFunc(s.Events[l], func(a, b otf2.Event) int { return cmp.Compare(a.Time, b.Time) })
	}
	s.Recount()
	return s.Write()
}

// In each of ten rounds of 10 ms, rank 0 works 4 ms longer before it sends to rank 1, so both come to NCCL that much
// later than rank 2: half of rank 2's waiting is for a rank that waited in MPI. All of it is caused by rank 0.
func TestRanksLateToNCCLByWaitsInMPI(t *testing.T) {
	const rounds = 10
	at := func(round int, us uint64) uint64 { return uint64(round+1)*10_000 + us }
	r := jobtest.Operations(t, mixed(t, func(rank, all, _ int, p *shardtest.Process) {
		for i := range rounds {
			p.AllReduce(all, t0+at(i, []uint64{4100, 4100, 100}[rank])*us, t0+at(i, 5000)*us, 100)
		}
	}, func(message func(from, to int, sent, posted, done uint64)) {
		for i := range rounds {
			message(0, 1, at(i, 4000), at(i, 0), at(i, 4010))
		}
	}))
	paradigms := paradigmsOf(r.WaitStates.Paradigms)
	if p := paradigms[membership.ParadigmMPI]; p.Waited != rounds*4000*us || p.Through > 0 {
		t.Errorf("MPI: %d ns waited, %.0f for ranks that had waited in NCCL", p.Waited, p.Through)
	}
	if p := paradigms[membership.ParadigmNCCL]; p.Waited != (rounds-1)*4000*us || p.Through < 0.45*float64(p.Waited) ||
		p.Through > 0.55*float64(p.Waited) {
		t.Errorf("NCCL: %d ns waited, %.0f for ranks that had waited in MPI", p.Waited, p.Through)
	}
	blames(t, r.Causes, 0, causes.Host)
	v := r.Verdict
	testkit.Check(t, len(v.Culprits) == 1 && v.Culprits[0].Rank == 0 &&
		strings.Contains(v.Text, "It called MPI's Send"), "%s", v.Text)
}

// Rank 1 waits 4 ms in NCCL for rank 0, and then sends to rank 2: the waiting of rank 2 in MPI is caused through NCCL.
func TestRanksLateToMPIByWaitsInNCCL(t *testing.T) {
	const rounds = 10
	at := func(round int, us uint64) uint64 { return uint64(round+1)*10_000 + us }
	r := jobtest.Operations(t, mixed(t, func(rank, _, low int, p *shardtest.Process) {
		for i := range rounds {
			if rank < 2 {
				p.AllReduce(low, t0+at(i, []uint64{4000, 0}[rank])*us, t0+at(i, 4500)*us, 100)
			}
		}
	}, func(message func(from, to int, sent, posted, done uint64)) {
		for i := range rounds {
			message(1, 2, at(i, 4600), at(i, 100), at(i, 4610))
		}
	}))
	paradigms := paradigmsOf(r.WaitStates.Paradigms)
	if p := paradigms[membership.ParadigmMPI]; p.Waited != rounds*4500*us || p.Through < 0.75*float64(p.Waited) {
		t.Errorf("MPI: %d ns waited, %.0f for ranks that had waited in NCCL", p.Waited, p.Through)
	}
	if p := paradigms[membership.ParadigmNCCL]; p.Waited != (rounds-1)*4000*us || p.Through > 0 {
		t.Errorf("NCCL: %d ns waited, %.0f for ranks that had waited in MPI", p.Waited, p.Through)
	}
	blames(t, r.Causes, 0, causes.Own)
}

func paradigmsOf(all []waits.Paradigm) map[string]waits.Paradigm {
	by := make(map[string]waits.Paradigm)
	for _, p := range all {
		by[p.Name] = p
	}
	return by
}

// blames fails the test unless nearly all waiting is caused by one rank.
func blames(t *testing.T, r *causes.Result, rank int, kind causes.Kind) {
	t.Helper()
	cost := r.Ranks[rank].Costs[kind]
	testkit.Check(t, cost >= 0.85*r.Waited, "%.0f of %.0f ns go back to rank %d: %+v, unknown %.0f", cost, r.Waited,
		rank, r.Ranks[rank].Costs, r.Unknown)
}
