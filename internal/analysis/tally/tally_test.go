// SPDX-License-Identifier: Apache-2.0

package tally_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/tally"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/internal/report"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

func TestTally(t *testing.T) {
	s := jobtest.Load(t, jobtest.WithNetwork(t))
	last := len(s.Events[jobtest.Thread(0)]) - 1
	s.Remove(jobtest.Thread(0), last, 1) // one Leave event is missing
	r := tally.Read(jobtest.Open(t, s.Write()), nil)
	var text bytes.Buffer
	testkit.Must(t, report.Tally(r).WriteText(&text))
	golden.Text(t, "testdata/tally.txt", text.String())
	text.Reset()
	testkit.Must(t, report.Tally(r).WriteCSV(&text))
	golden.Text(t, "testdata/tally.csv", text.String())
}

// Operations on device memory have rows of their own.
func TestTallyOfDeviceMemory(t *testing.T) {
	s := jobtest.Load(t, jobtest.Typical(t, nil))
	texts := otf2.StringRef(len(s.Defs.Strings))
	s.Defs.Strings = append(s.Defs.Strings, otf2.String{Self: texts, Text: "device"})
	ev := s.Find(jobtest.Stream(1), otf2.EventEnter, 0)
	ev.Attributes = append(ev.Attributes, otf2.AttributeValue{ID: regions.AttrRecvBuffClass, Type: otf2.TypeString,
		Bits: uint64(texts)})
	calls := make(map[bool]uint64)
	for _, g := range tally.Read(jobtest.Open(t, s.Write()), nil).Groups {
		for _, row := range g.Rows {
			if row.Name == "AllReduce" {
				calls[row.Device] += row.Calls
			}
		}
	}
	testkit.Check(t, calls[true] == 1 && calls[false] == 5, "calls %v", calls)
}

// Calls are marked if the resulting operations, launched alone or together, work on a GPU's memory or on memory that
// it shares; a group is marked if any of its calls is. Calls of other processes have the same event numbers.
func TestCallsOnDeviceMemory(t *testing.T) {
	dir := t.TempDir()
	const at = shardtest.Epoch + 2_000_000
	for rank, memory := range []string{"managed", "pinned"} {
		p := shardtest.New(t, dir, string(rune('a'+rank))).Launched("slurm", rank, 2)
		p.World()
		w := p.Location(description.KindThread, otf2.LocationTypeCPUThread, "Thread 1", -1)
		group, call := p.Region("ncclGroup", regions.GroupAPI, otf2.RegionRoleFunction),
			p.Region("ncclBroadcast", regions.GroupAPI, otf2.RegionRoleFunction)
		var in, alone otf2.AttributeList
		in.Uint64(regions.AttrEventID, 7)
		alone.Uint64(regions.AttrEventID, 8)
		alone.Uint64(regions.AttrParentID, 7)
		for _, err := range []error{w.Enter(at, &in, group), w.Enter(at+10, &alone, call), w.Leave(at+30, nil, call),
			w.Leave(at+100, nil, group)} {
			testkit.Must(t, err)
		}
		p.CallFor("ncclAllReduce", 9, at+200, at+300)
		p.CallFor("ncclAllGather", 10, at+400, at+500)
		op := shardtest.Op{Function: "Broadcast", Begin: at + 1000, End: at + 2000, Count: 10, Parent: 8,
			Memory: memory}
		p.Collective(0, op)
		op.Function, op.Begin, op.End, op.Parent = "AllReduce", at+3000, at+4000, 9
		p.Collective(0, op)
		op.Function, op.Begin, op.End, op.Parent, op.Memory = "AllGather", at+5000, at+6000, 10, "pinned"
		p.Collective(0, op)
		p.Finish()
	}
	got := make(map[string]string)
	for _, g := range tally.Read(jobtest.Open(t, jobtest.Unify(t, dir)), nil).Groups {
		for _, row := range g.Rows {
			name := row.Name
			if row.Device {
				name = "*" + name
			}
			got[name] = fmt.Sprintf("%d in %d ns", row.Calls, row.Time)
		}
	}
	want := map[string]string{
		"*ncclGroup": "1 in 100 ns", "*ncclBroadcast": "1 in 20 ns", "*ncclAllReduce": "1 in 100 ns",
		"*Broadcast": "1 in 1000 ns", "*AllReduce": "1 in 1000 ns",
		"ncclGroup": "1 in 100 ns", "ncclBroadcast": "1 in 20 ns", "ncclAllReduce": "1 in 100 ns",
		"Broadcast": "1 in 1000 ns", "AllReduce": "1 in 1000 ns",
		"ncclAllGather": "2 in 200 ns", "AllGather": "2 in 2000 ns",
	}
	testkit.Same(t, want, got)
}

// Channels' rows show parts of the operations on the ranks' rows. They have a table of their own, and Counts says what
// it counts.
func TestTallyCountsOperationsOnce(t *testing.T) {
	dir := t.TempDir()
	for rank := range 2 {
		p := shardtest.New(t, dir, string(rune('a'+rank))).Launched("slurm", rank, 2)
		p.World()
		p.AllReduce(0, shardtest.Epoch+2_000_000, shardtest.Epoch+3_000_000, 1000)
		w, region := p.Location(description.KindChannel, otf2.LocationTypeAcceleratorStream, "world ch 00", 0),
			p.Region("AllReduce", regions.GroupCollectives, otf2.RegionRoleCollAll2All)
		for _, err := range []error{w.Enter(shardtest.Epoch+2_000_100, nil, region),
			w.Leave(shardtest.Epoch+2_999_900, nil, region)} {
			testkit.Must(t, err)
		}
		p.Finish()
	}
	got := make(map[string]string)
	for _, g := range tally.Read(jobtest.Open(t, jobtest.Unify(t, dir)), nil).Groups {
		got[g.Group] = fmt.Sprintf("%d %s, %d ns, %d of %s", g.Calls, g.Counts, g.Total, g.Rows[0].Calls,
			g.Rows[0].Name)
	}
	want := map[string]string{"NCCL collectives": "2 launches, 2000000 ns, 2 of AllReduce",
		"NCCL channels": "2 channels, 1999600 ns, 2 of AllReduce"}
	testkit.Same(t, want, got)
}
