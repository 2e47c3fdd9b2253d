// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/nccl-otf2/nccl-otf2/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
	"github.com/nccl-otf2/nccl-otf2/scorep/jobtest"
	"github.com/nccl-otf2/nccl-otf2/scorep/shardtest"
)

// The time of a union is that of its nanoseconds, however many intervals there are.
func TestUnion(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var u union
		covered := make(map[otf2.Timestamp]bool)
		end := otf2.Timestamp(1000)
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		for range rapid.IntRange(0, 6*maxIntervals).Draw(rt, "intervals") {
			end += otf2.Timestamp(random.IntN(10))
			begin := end - otf2.Timestamp(random.IntN(13))
			u.add(begin, end)
			for at := begin; at < end; at++ {
				covered[at] = true
			}
		}
		if got := u.time(); got != uint64(len(covered)) {
			rt.Errorf("%d, want %d", got, len(covered))
		}
		if len(u.list) > 2*maxIntervals {
			rt.Errorf("%d intervals are kept", len(u.list))
		}
	})
}

func TestMatrixOfTransfers(t *testing.T) {
	r := Matrix(jobtest.Open(t, networkJob(t)))
	flow := func(from, to int, transfers, bytes, busy uint64) Flow {
		host := []string{"node0", "node0", "node1"}
		name := []string{"Rank 0", "Rank 1", "Rank 2"}
		return Flow{name[from], host[from], name[to], host[to], Traffic{transfers, bytes}, busy, float64(bytes) / float64(busy)}
	}
	if diff := cmp.Diff([]Flow{
		flow(0, 1, 3, 3000, 30*us), flow(0, 2, 2, 507, 6*us), flow(1, 0, 1, 7, 5*us),
		flow(1, 2, 3, 3003, 30*us), flow(2, 0, 3, 3006, 30*us), flow(2, 1, 1, 7, 5*us),
	}, r.Ranks); diff != "" {
		t.Error(diff)
	}
	host := func(from, to string, transfers, bytes, busy uint64) Flow {
		return Flow{from, from, to, to, Traffic{transfers, bytes}, busy, float64(bytes) / float64(busy)}
	}
	// Transfers of several ranks at one time are one time of the hosts.
	if diff := cmp.Diff([]Flow{
		host("node0", "node0", 4, 3007, 35*us), host("node0", "node1", 5, 3510, 36*us), host("node1", "node0", 4, 3013, 35*us),
	}, r.Hosts); diff != "" {
		t.Error(diff)
	}
	if len(r.Channels) != 1 || r.Channels[0].Channel != -1 || r.Channels[0].Transfers != 13 || r.Channels[0].Busy != 36*us {
		t.Errorf("channels %+v", r.Channels)
	}
	if len(r.Nominal)+len(r.NominalHosts) > 0 || len(r.Remarks) != 1 {
		t.Errorf("%+v", r)
	}
	var text bytes.Buffer
	try(t, r.Document().WriteText(&text))
	golden.Text(t, "testdata/matrix.txt", text.String())
	text.Reset()
	try(t, r.Document().WriteCSV(&text))
	golden.Text(t, "testdata/matrix.csv", text.String())
}

// Without recorded transfers the operations tell what each rank has for the others.
func TestNominalMatrix(t *testing.T) {
	r := Matrix(jobtest.Open(t, makeJob(t, nil)))
	if len(r.Ranks)+len(r.Hosts)+len(r.Channels)+len(r.Networks) > 0 {
		t.Errorf("%+v", r)
	}
	got := make(map[[2]string]Traffic)
	for _, f := range r.Nominal {
		got[[2]string{f.From, f.To}] = f.Traffic
	}
	// Of every rank: two AllReduces of 4000 bytes, 2 × 4000 × 2/3 to all others together; an AllGather and a
	// ReduceScatter. Rank 1 is root of a Broadcast of 800 bytes. Then messages.
	const base = 2*(2*4000/3) + 400 + 800
	want := map[[2]string]Traffic{
		{"Rank 0", "Rank 1"}: {6, base + 4160}, {"Rank 0", "Rank 2"}: {4, base},
		{"Rank 1", "Rank 0"}: {5, base + 800}, {"Rank 1", "Rank 2"}: {6, base + 800 + 100},
		{"Rank 2", "Rank 0"}: {4, base}, {"Rank 2", "Rank 1"}: {4, base},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	sum := uint64(0)
	for _, f := range r.NominalHosts {
		sum += f.Bytes
	}
	for _, f := range r.Nominal {
		sum -= f.Bytes
	}
	if sum != 0 {
		t.Errorf("hosts %+v", r.NominalHosts)
	}
}

func TestMatrixSaysWhatIsMissing(t *testing.T) {
	s := load(t, networkJob(t))
	sends := otf2.LocationRef(2 << 32) // of rank 0
	s.remove(sends, s.index(sends, otf2.EventRmaOpCompleteNonBlocking, 1), 1)
	s.defs.LocationProperties = slices.DeleteFunc(s.defs.LocationProperties, func(p otf2.LocationProperty) bool { return p.Location == sends|1 })
	s.property("NCCL_OTF2::LOST::RING::ProxyStep", "3")
	r := Matrix(jobtest.Open(t, s.write()))
	want := []string{
		r.Remarks[0],
		"Incomplete: of 4 transfers, 2.94 KiB, the sender is not known.",
		"Incomplete: 1 transfers have no end; they are in no time.",
		"Incomplete: events were lost: 3 ring proxystep.",
	}
	if diff := cmp.Diff(want, r.Remarks); diff != "" {
		t.Error(diff)
	}
	if f := r.Ranks[0]; f.From != notKnown || f.To != "Rank 0" {
		t.Errorf("%+v", r.Ranks)
	}
}

func TestTally(t *testing.T) {
	s := load(t, networkJob(t))
	last := len(s.events[thread(0)]) - 1
	s.remove(thread(0), last, 1) // an end is missing
	r := Tally(jobtest.Open(t, s.write()))
	var text bytes.Buffer
	try(t, r.Document().WriteText(&text))
	golden.Text(t, "testdata/tally.txt", text.String())
	text.Reset()
	try(t, r.Document().WriteCSV(&text))
	golden.Text(t, "testdata/tally.csv", text.String())
}

// Operations on device memory have rows of their own.
func TestTallyOfDeviceMemory(t *testing.T) {
	s := load(t, makeJob(t, nil))
	texts := otf2.StringRef(len(s.defs.Strings))
	s.defs.Strings = append(s.defs.Strings, otf2.String{Self: texts, Text: "device"})
	ev := s.find(stream(1), otf2.EventEnter, 0)
	ev.Attributes = append(ev.Attributes, otf2.AttributeValue{ID: regions.AttrRecvBuffClass, Type: otf2.TypeString, Bits: uint64(texts)})
	calls := make(map[bool]uint64)
	for _, g := range Tally(jobtest.Open(t, s.write())).Groups {
		for _, row := range g.Rows {
			if row.Name == "AllReduce" {
				calls[row.Device] += row.Calls
			}
		}
	}
	if calls[true] != 1 || calls[false] != 5 {
		t.Errorf("calls %v", calls)
	}
}

// Rows of channels show parts of the operations on the rows of ranks: they are a table of their own, and counts say what of.
func TestTallyCountsOperationsOnce(t *testing.T) {
	dir := t.TempDir()
	for rank := range 2 {
		p := shardtest.New(t, dir, string(rune('a'+rank))).Launched("slurm", rank, 2)
		p.World()
		p.AllReduce(0, shardtest.Epoch+2_000_000, shardtest.Epoch+3_000_000, 1000)
		w, region := p.Location(experiment.KindChannel, otf2.LocationTypeAcceleratorStream, "world ch 00", 0), p.Region("AllReduce", regions.GroupCollectives, otf2.RegionRoleCollAll2All)
		for _, err := range []error{w.Enter(shardtest.Epoch+2_000_100, nil, region), w.Leave(shardtest.Epoch+2_999_900, nil, region)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		p.Finish()
	}
	got := make(map[string]string)
	for _, g := range Tally(jobtest.Open(t, jobtest.Unify(t, dir))).Groups {
		got[g.Group] = fmt.Sprintf("%d %s, %d ns, %d of %s", g.Calls, g.Counts, g.Total, g.Rows[0].Calls, g.Rows[0].Name)
	}
	want := map[string]string{"NCCL collectives": "2 launches, 2000000 ns, 2 of AllReduce", "NCCL channels": "2 channels, 1999600 ns, 2 of AllReduce"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
