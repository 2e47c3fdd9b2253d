// SPDX-License-Identifier: Apache-2.0

package analysis_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/membership"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
)

// numbered identifies a call of an MPI collective by its end and its number.
type numbered struct {
	location otf2.LocationRef
	comm     otf2.CommRef
	function string
	end      otf2.Timestamp
}

// numbersOf returns the numbers of an archive's collectives, and the stretches that are not to be compared.
func numbersOf(t *testing.T, path string) (numbers map[numbered]uint64, left []property.Stretch) {
	t.Helper()
	a := testkit.Value(analysis.Open(path, nil))(t)
	defer a.Close()
	numbers = make(map[numbered]uint64)
	r := analysis.NewOperationReader(a.Defs, membership.Communicators(a.Defs), func(o *analysis.Operation) {
		if !o.Message {
			numbers[numbered{o.Location, o.Comm, o.Function, o.End}] = o.Ordinal
		}
	})
	for ev, err := range a.Events(nil) {
		testkit.Must(t, err)
		r.Event(ev)
	}
	left, _ = property.Stretches(a.Anchor)
	return numbers, left
}

// mpi4 is Score-P's archive of four MPI ranks.
const mpi4 = "../../scorep/testdata/mpi4-clock_gettime/traces.otf2"

// loseCollective removes the n-th end of a collective from a row, and with whole also its begin.
func loseCollective(s *jobtest.Sample, l otf2.LocationRef, n int, whole bool) {
	at := s.Index(l, otf2.EventMpiCollectiveEnd, n)
	s.Remove(l, at, 1)
	for whole && at > 0 {
		if at--; s.Events[l][at].Kind == otf2.EventMpiCollectiveBegin {
			s.Remove(l, at, 1)
			return
		}
	}
}

// After calls are removed, the others keep their numbers or are excluded from comparison, and that is reported.
func TestCallsThatAreMissingDoNotShiftOthers(t *testing.T) {
	want, left := numbersOf(t, mpi4)
	testkit.Require(t, len(want) != 0 && len(left) == 0, "%d collectives; left out: %+v", len(want), left)
	count := func(s *jobtest.Sample, l otf2.LocationRef) (n int) {
		for _, ev := range s.Events[l] {
			if ev.Kind == otf2.EventMpiCollectiveEnd {
				n++
			}
		}
		return n
	}
	rows := []otf2.LocationRef{}
	for l := range jobtest.Load(t, mpi4).Events {
		if count(jobtest.Load(t, mpi4), l) > 0 {
			rows = append(rows, l)
		}
	}
	slices.Sort(rows)
	exact := 0
	try := func(name string, lose func(s *jobtest.Sample)) {
		s := jobtest.Load(t, mpi4)
		lose(s)
		got, left := numbersOf(t, s.Write())
		testkit.Check(t, len(left) != 0, "%s: nothing is said", name)
		wrong, compared := 0, 0
		for of, n := range got {
			switch {
			case property.Excluded(left, of.comm, of.function, n):
			case n != want[of]:
				wrong++
			default:
				compared++
			}
		}
		testkit.Check(t, wrong <= 0, "%s: %d of %d collectives have other numbers", name, wrong, len(got))
		if compared > len(want)/2 {
			exact++
		}
	}
	tries := 0
	for _, l := range rows {
		n := count(jobtest.Load(t, mpi4), l)
		for _, at := range []int{0, 1, n / 2, n - 2, n - 1} {
			for _, whole := range []bool{false, true} {
				tries++
				try(fmt.Sprintf("collective %d of row %d, whole %v", at, l, whole),
					func(s *jobtest.Sample) { loseCollective(s, l, at, whole) })
			}
		}
	}
	for i, l := range rows {
		other := rows[(i+1)%len(rows)]
		tries += 2
		try(fmt.Sprintf("two of row %d", l), func(s *jobtest.Sample) {
			loseCollective(s, l, 3, true)
			loseCollective(s, l, 1, true)
		})
		try(fmt.Sprintf("different ones of rows %d and %d", l, other),
			func(s *jobtest.Sample) { loseCollective(s, l, 1, true); loseCollective(s, other, 3, true) })
	}
	testkit.Check(t, exact >= tries/2, "in %d of %d cases most collectives are compared", exact, tries)
}

// Different clocks alone make no call missing, and in an archive that does lack calls, nothing wrong is reported.
func TestCallsOfDifferentClocks(t *testing.T) {
	want, _ := numbersOf(t, mpi4)
	for _, by := range []int64{-100_000_000, -10_000_000, -100_000, 3_000, 100_000, 10_000_000, 100_000_000} {
		for _, lost := range []bool{false, true} {
			s := jobtest.Load(t, mpi4)
			for i := range s.Events[1] {
				s.Events[1][i].Time += otf2.Timestamp(by)
			}
			if lost {
				loseCollective(s, 2, 8, true)
			}
			s.Defs.Clock.Offset, s.Defs.Clock.Length = 0, 1<<62
			got, left := numbersOf(t, s.Write())
			testkit.Check(t, lost || 2*len(left) <= len(want)/4, "clocks differ by %d ns: left out are %+v", by, left)
			for of, n := range got {
				was := of
				if of.location == 1 {
					was.end -= otf2.Timestamp(by)
				}
				testkit.Check(t, n == want[was] || lost && property.Excluded(left, of.comm, of.function, n),
					"clocks differ by %d ns, lost %v: %+v has number %d, not %d", by, lost, of, n, want[was])
			}
		}
	}
}
