// SPDX-License-Identifier: Apache-2.0

package scoutrules_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/check"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
)

// Archives in which the check finds no error end scout well, and scout warns of as many messages against the clock
// condition as the check names; of collectives, whose violations scout counts by member, where the check names one.
func TestRealScout(t *testing.T) {
	if _, err := exec.LookPath("scout.mpi"); err != nil {
		t.Skip("SKIPPED, NOT TESTED: Scalasca's scout.mpi is not on the PATH (docs/scalasca.md has the results of a " +
			"run with it)")
	}
	violating, quiet := 0, 0
	for seed := range uint64(60) {
		s := jobtest.SmallestOfScalasca(t)
		exchanges(s, rand.New(rand.NewPCG(seed, 1)))
		path := s.Write()
		res := checkScalasca(t, path)
		if res.Errors() > 0 {
			continue
		}
		messages, collectives := clockNotes(res)
		p2p, coll := scout(t, path)
		if p2p != messages || (coll > 0) != (collectives > 0) || coll < collectives {
			t.Errorf("seed %d: scout counts %d messages and %d collectives' members, the check\n%s", seed, p2p, coll,
				jobtest.Lines(res))
		}
		if p2p+coll > 0 {
			violating++
		} else {
			quiet++
		}
	}
	t.Logf("%d archives against the clock condition, %d without", violating, quiet)
	testkit.Check(t, violating >= 10 && quiet >= 5,
		"%d archives against the clock condition, %d without", violating, quiet)
}

// exchanges adds operations to an archive of four ranks, whose clocks agree or are up to two operations apart.
func exchanges(s *jobtest.Sample, random *rand.Rand) {
	var off [4]otf2.Timestamp
	if random.IntN(3) > 0 {
		for l := range off {
			off[l] = otf2.Timestamp(random.IntN(2 * ms))
		}
	}
	pair := s.Comm(otf2.ParadigmMPI, 0, 1, 3)
	at := otf2.Timestamp(10 * ms)
	everyone := func(op otf2.CollectiveOp, comm uint64, root uint32, members ...otf2.LocationRef) {
		for _, l := range members {
			sent, received := uint64(8), uint64(8)
			if op == otf2.CollectiveOpBarrier {
				sent, received = 0, 0
			}
			s.Collective(l, at+off[l], op, comm, root, sent, received)
		}
	}
	for range 1 + random.IntN(5) {
		root := uint32(random.IntN(4))
		switch random.IntN(7) {
		case 0:
			everyone(otf2.CollectiveOpAllreduce, 0, otf2.CollectiveRootNone, 0, 1, 2, 3)
		case 1:
			everyone(otf2.CollectiveOpBcast, 0, root, 0, 1, 2, 3)
		case 2:
			everyone(otf2.CollectiveOpReduce, 0, root, 0, 1, 2, 3)
		case 3:
			everyone(otf2.CollectiveOpBarrier, 0, otf2.CollectiveRootNone, 0, 1, 2, 3)
		case 4:
			everyone(otf2.CollectiveOpAlltoallv, 0, otf2.CollectiveRootNone, 0, 1, 2, 3)
		case 5:
			everyone(otf2.CollectiveOpReduceScatterBlock, pair, otf2.CollectiveRootNone, 1, 3)
		case 6:
			to := otf2.LocationRef(random.IntN(4))
			if from := otf2.LocationRef(root); from != to {
				s.Call(from, at+off[from], jobtest.RegionRecv, otf2.EventMpiSend, uint64(to), 0, 5, 8)
				s.Call(to, at+off[to], jobtest.RegionRecv, otf2.EventMpiRecv, uint64(from), 0, 5, 8)
			}
		}
		at += ms
	}
}

var clockNote = regexp.MustCompile(`scout-clock: (\d+) (messages|collectives)`)

// clockNotes are the numbers of messages and collectives that the check names.
func clockNotes(res *check.Result) (messages, collectives int) {
	for _, m := range clockNote.FindAllStringSubmatch(jobtest.Lines(res), -1) {
		n, _ := strconv.Atoi(m[1])
		if m[2] == "messages" {
			messages = n
		} else {
			collectives = n
		}
	}
	return messages, collectives
}

var scoutWarning = regexp.MustCompile(`Point-to-point: +(\d+)\s+Collective +: +(\d+)`)

// scout analyzes an archive of four ranks and gives what it counts against the clock condition.
func scout(t *testing.T, path string) (messages, collectives int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "mpirun", "--oversubscribe", "-np", "4", "scout.mpi", path)
	cmd.Env = append(os.Environ(), "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatal(fmt.Errorf("scout.mpi: %w\n%s", err, out))
	}
	if m := scoutWarning.FindSubmatch(out); m != nil {
		messages, _ = strconv.Atoi(string(m[1]))
		collectives, _ = strconv.Atoi(string(m[2]))
	}
	return messages, collectives
}
