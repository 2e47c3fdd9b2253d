// SPDX-License-Identifier: Apache-2.0

package cubex

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/cube"
	"github.com/nccl-otf2/nccl-otf2/cube/cubeprint"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/tally"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/internal/profile/cubex/cubextest"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

const (
	t0 = shardtest.Epoch + 1_000_000
	us = 1000
)

// makeJob leaves a finished job of three processes on two hosts and unifies it: collectives with and without times of
// the GPU, launched together and alone, messages, phases, transfers, a communicator of one rank. Ids depend on the
// salt, as they do on the run.
func makeJob(t testing.TB, salt int) string {
	t.Helper()
	dir := t.TempDir()
	for r := range 3 {
		p := shardtest.New(t, dir, fmt.Sprint("p", salt, r)).On("node"+fmt.Sprint(r/2), 100*salt+r).Launched(
			"slurm", r, 3)
		p.GPU(r%2, fmt.Sprint("GPU-", salt, r), "")
		world := p.Comm(description.Comm{ID: uint64(1000 + salt), NRanks: 3, Rank: r, InitTime: t0})
		late := uint64(r) * 10 * us
		phase := p.Region("step 7", regions.GroupApplication, otf2.RegionRoleCode)
		testkit.Must(t, p.Writer(0).Enter(otf2.Timestamp(t0+90*us), nil, phase))
		for i := range uint64(3) {
			p.Call("ncclAllReduce", t0+(100+i*100)*us, t0+(105+i*100)*us)
			p.AllReduce(world, t0+(110+i*100)*us+late, t0+(150+i*100)*us, 1000)
		}
		testkit.Must(t, p.Writer(0).Leave(otf2.Timestamp(t0+390*us), nil, phase))
		p.Call("ncclBroadcast", t0+395*us, t0+399*us)
		p.Broadcast(world, 1, t0+400*us+uint64(r)*5*us, t0+430*us, 200, "network")
		p.Broadcast(world, 1, t0+440*us, t0+442*us, 200, "enqueue")
		p.GatherAndScatter(world, t0+450*us+late, t0+490*us, 100)
		switch r {
		case 0:
			p.Send(world, 1, t0+500*us, t0+510*us, 4096)
			p.Send(world, 1, t0+520*us, t0+530*us, 64)
		case 1:
			p.Recv(world, 0, t0+500*us, t0+512*us, 4096)
			p.Recv(world, 0, t0+525*us, t0+532*us, 64)
		}
		p.Destroy(world, t0+600*us)
		alone := p.Comm(description.Comm{ID: uint64(2000 + 10*salt + r), Name: "self", NRanks: 1, Rank: 0,
			InitTime: t0 + 610*us})
		p.AllReduce(alone, t0+620*us, t0+625*us, 500)
		next := p.Comm(description.Comm{ID: uint64(3000 + salt), NRanks: 3, Rank: r, InitTime: t0 + 700*us})
		p.AllReduce(next, t0+710*us+late, t0+750*us, 1<<20)
		p.Finish()
	}
	return jobtest.Unify(t, dir)
}

// profileArchive makes a profile of an archive and compares it with the reports.
func profileArchive(t testing.TB, anchor string) (file string, m *cubextest.Profile) {
	t.Helper()
	a := jobtest.Open(t, anchor)
	p, report, err := FromArchive(a)
	testkit.Must(t, err)
	p.Creator = "test"
	file = filepath.Join(t.TempDir(), "p.cubex")
	testkit.Must(t, p.Write(file, false))
	m = cubextest.Load(t, file)
	m.Sound(t)
	if p.WaitsKnown {
		m.Agrees(t, report, tally.Read(a, nil))
	}
	return file, m
}

func TestArchive(t *testing.T) {
	anchor := makeJob(t, 1)
	file, m := profileArchive(t, anchor)

	// Bytes are those of the events.
	var sent, received float64
	for ev, err := range jobtest.Open(t, anchor).Events(nil) {
		testkit.Must(t, err)
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
	if s, r := m.Sum("bytes_sent", all), m.Sum("bytes_received", all); s != sent || r != received || s == 0 {
		t.Errorf("%g and %g bytes, the events have %g and %g", s, r, sent, received)
	}

	p := testkit.Value(cube.Open(file))(t)
	defer p.Close()
	var text bytes.Buffer
	testkit.Must(t, cubeprint.Print(&text, p, nil))
	golden.Text(t, "testdata/archive.txt", text.String())
}

// Two runs of one program give the same ids, although processes and communicators have others.
func TestRunsHaveTheSameIDs(t *testing.T) {
	var texts []string
	for salt := 1; salt <= 2; salt++ {
		file, _ := profileArchive(t, makeJob(t, salt))
		p := testkit.Value(cube.Open(file))(t)
		for i := range p.Groups { // which GPU it was may differ
			p.Groups[i].Attributes = p.Groups[i].Attributes[:min(1, len(p.Groups[i].Attributes))]
		}
		var text bytes.Buffer
		testkit.Must(t, cubeprint.Print(&text, p, nil))
		testkit.Must(t, p.Close())
		lines := strings.Split(text.String(), "\n")
		lines = slices.DeleteFunc(lines, func(l string) bool {
			return strings.HasPrefix(strings.TrimSpace(l), "anchor.xml")
		})
		texts = append(texts, strings.Join(lines, "\n"))
	}
	testkit.Check(t, texts[0] == texts[1], "one run:\n%s\nanother:\n%s", texts[0], texts[1])
}

// Archives of other tools have calls of other kinds, and no operations.
func TestArchivesOfOtherTools(t *testing.T) {
	for _, name := range []string{"collectives/nccl.otf2", "scorep-mpi/traces.otf2", "scalasca-min/traces.otf2"} {
		t.Run(name, func(t *testing.T) {
			anchor := filepath.Join("../../../tests/jobtest/testdata", name)
			_, m := profileArchive(t, anchor)
			testkit.Check(t, m.Sum("visits", func(int) bool { return true }) != 0, "nothing was counted")
		})
	}
}
