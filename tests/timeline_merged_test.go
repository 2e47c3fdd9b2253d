// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/provenance"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/scorep"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

// mergedJob merges a trace of Score-P, of a program with MPI on four processes, with what NCCL did in these: rank 2
// comes late to each AllReduce.
func mergedJob(t *testing.T) string {
	t.Helper()
	const ticksPerNs = 2.5 // of the trace's timer
	measurement := "jobtest/testdata/scorep-mpi"
	a := testkit.Value(otf2.Open(filepath.Join(measurement, "traces.otf2"), nil))(t)
	defer a.Close()
	raw := func(tick uint64) uint64 { return uint64(float64(tick) / ticksPerNs) }
	begin, end := raw(a.Defs.Clock.Offset), raw(a.Defs.Clock.Offset+a.Defs.Clock.Length)
	dir := t.TempDir()
	for rank, g := range a.Defs.LocationGroups {
		pid := 0
		for e, err := range a.EventsOf(otf2.LocationRef(g.Self)) {
			testkit.Must(t, err)
			pid = int(e.Attributes[0].Bits)
			break
		}
		p := shardtest.New(t, dir, fmt.Sprint("p", rank)).On("vm", pid).Launched(
			"openmpi", rank, len(a.Defs.LocationGroups))
		p.Shard.PIDStart, p.Shard.Locations[0].TID = uint64(100+rank), pid
		anchor := begin - 3_000_000
		p.Shard.Clock = provenance.Clock{Source: "tsc", AnchorRaw: anchor, AnchorReal: shardtest.Epoch}
		for at := anchor; at < end+1_000_000; at += (end - begin) / 20 {
			p.Shard.Clock.Tuples = append(p.Shard.Clock.Tuples,
				provenance.ClockTuple{Ticks: uint64(ticksPerNs * float64(at)), Raw: at, Mono: at,
					Real: shardtest.Epoch + at - anchor})
		}
		at := func(raw uint64) uint64 { return raw - anchor + shardtest.Epoch }
		world := p.Comm(description.Comm{ID: 7, Name: "nccl world", NRanks: len(a.Defs.LocationGroups), Rank: rank,
			NNodes: 1, InitTime: at(begin + 100_000)})
		const calls = 10
		step := (end - begin - 2_000_000) / (calls + 1)
		for i := range uint64(calls) {
			call := at(begin + 1_000_000 + i*step)
			late := uint64(0)
			if rank == 2 {
				late = step / 4
			}
			p.Call("ncclAllReduce", call+late, call+late+1000)
			p.AllReduce(world, call+late+2000, call+step/2, 1024)
		}
		p.Finish()
	}
	res := testkit.Value(scorep.Merge(measurement, dir, filepath.Join(t.TempDir(), "merged"), nil))(t)
	return res.Archive
}
