// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"errors"
	"io"
	"path/filepath"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/causes"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/lateness"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

const (
	usualWork = 100 // ns between operations
	lateWork  = 250 // ns, of rank 1
	transfer  = 10  // ns that an operation takes once both ranks have come
)

// recordLateRank records AllReduces of two ranks, of which rank 1 works longer before each. before is how many
// operations back the one is that had ended when an operation began.
func recordLateRank(t *testing.T, operations, before int) *Recorder {
	t.Helper()
	return recordWork(t, operations, before, func(int) [2]uint64 { return [...]uint64{usualWork, lateWork} })
}

// recordWork records operations of two ranks, which work for so many ns before the n-th one.
func recordWork(t *testing.T, operations, before int, work func(n int) [2]uint64) *Recorder {
	t.Helper()
	r := NewRecorder(2)
	t.Cleanup(r.Close)
	op := &causes.Operation{Members: 2, Function: "AllReduce"}
	for n, end := 1, otf2.Timestamp(1000); n <= operations; n++ {
		ended, both := end, work(n)
		most := max(both[0], both[1])
		end += otf2.Timestamp(most + transfer)
		members := make([]causes.Member, 2)
		came := make([]lateness.Arrival, 2)
		late := &lateness.Result{Kind: lateness.WaitCollective}
		for i, ns := range both {
			came[i] = lateness.Arrival{Rank: i, Begin: ended + otf2.Timestamp(ns), End: end, Wait: most - ns}
			if ns == most {
				late.Last = i
			}
			members[i] = causes.Member{Arrival: came[i], There: came[i].Begin, Work: ns, Local: causes.Local{
				Rank: int32(i), Seq: uint32(n), Before: uint32(max(n-before, 0)), Ended: ended, Ready: ended,
				Called: true}}
		}
		r.Collective(op, members, came, late, n == 1)
	}
	return r
}

// The single other rank with the role is held up once: that is no pace for the late one.
func TestStallsAreNoPace(t *testing.T) {
	const operations = 20
	r := recordWork(t, operations, 1, func(n int) [2]uint64 {
		if n == 10 {
			return [...]uint64{100 * usualWork, lateWork}
		}
		return [...]uint64{usualWork, lateWork}
	})
	gains, notKnown := r.Replay([]Scenario{{Ranks: []int{1}}})
	testkit.Require(t, notKnown == "", "not known: %s", notKnown)
	testkit.Equal(t, gains[0].Earlier, (lateWork-usualWork)*(operations-2), "ns earlier, but for start-up and the stall")
}

// A rank that called early, and began as soon as the operation before had ended, may have worked on its GPU meanwhile.
// Its host shows how long hosts take, which counts unless the GPU of the late rank had something else to do.
func TestOnlyHostsAreKnown(t *testing.T) {
	const operations = 20
	for gpu, want := range map[otf2.Timestamp]int64{0: (lateWork - usualWork) * (operations - 1), lateWork / 2: 0} {
		r := NewRecorder(2)
		defer r.Close()
		op := &causes.Operation{Members: 2, Function: "AllReduce"}
		for n, ended := 1, otf2.Timestamp(1000); n <= operations; n++ {
			begin := ended + lateWork
			end := begin + transfer
			came := []lateness.Arrival{{Begin: ended, End: end, Wait: lateWork}, {Rank: 1, Begin: begin, End: end}}
			local := causes.Local{Seq: uint32(n), Before: uint32(n - 1), Ended: ended, Called: true}
			early, late := local, local
			early.Free, early.Ready, early.Returned = ended-2*usualWork, ended-usualWork, ended-usualWork
			late.Rank, late.Free, late.Ready, late.Returned = 1, ended, begin-gpu, begin-gpu
			r.Collective(op, []causes.Member{{Arrival: came[0], There: ended, Local: early},
				{Arrival: came[1], There: begin, Work: lateWork, Local: late}},
				came, &lateness.Result{Kind: lateness.WaitCollective, Last: 1}, n == 1)
			ended = end
		}
		gains, notKnown := r.Replay([]Scenario{{Ranks: []int{1}}})
		testkit.Require(t, notKnown == "", "not known: %s", notKnown)
		testkit.Equal(t, gains[0].Earlier, want, "%d ns on the GPU: ns earlier", gpu)
	}
}

func TestReplay(t *testing.T) {
	const operations = 20_000 // more than a block
	r := recordLateRank(t, operations, 1)
	testkit.Require(t, r.log.file != nil, "all is in memory")
	gains, notKnown := r.Replay([]Scenario{{}, {Ranks: []int{1}}, {Ranks: []int{0}}, {Ideal: true}})
	testkit.Require(t, notKnown == "", "not known: %s", notKnown)
	for i, want := range []int64{
		0,
		(lateWork - usualWork) * (operations - 1), // the first one is start-up
		0,
		transfer * (operations - 1),
	} {
		testkit.Equal(t, gains[i].Earlier, want, "scenario %d ends earlier by", i)
	}
	testkit.Equal(t, gains[1].Times, operations-1, "operations that rank 1 made late")
}

// Without all that was recorded there is no gain.
func TestGainsAreNotKnown(t *testing.T) {
	one := []Scenario{{Ranks: []int{1}}}
	t.Run("no temporary folder", func(t *testing.T) {
		t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "absent"))
		gains, notKnown := recordLateRank(t, 20_000, 1).Replay(one)
		testkit.Check(t, gains == nil, "gains %v", gains)
		testkit.Contains(t, notKnown, "set TMPDIR")
	})
	t.Run("a file that cannot be read", func(t *testing.T) {
		r := recordLateRank(t, 20_000, 1)
		testkit.Must(t, r.log.file.Close())
		gains, notKnown := r.Replay(one)
		testkit.Check(t, gains == nil, "gains %v", gains)
		testkit.Contains(t, notKnown, "cannot be read")
	})
	t.Run("operations that are not kept", func(t *testing.T) {
		gains, notKnown := recordLateRank(t, 1000, causes.KeptEnds+1).Replay(one)
		testkit.Check(t, gains == nil, "gains %v", gains)
		testkit.Contains(t, notKnown, "overlap")
	})
}

func TestLogEndsAtTheFirstError(t *testing.T) {
	l := log{err: errors.New("no room")}
	l.write(1)
	testkit.Contains(t, l.failure(), "no room")
	in := new(log).reader()
	in.read()
	testkit.Check(t, errors.Is(in.err, io.EOF), "an empty log: %v", in.err)
}
