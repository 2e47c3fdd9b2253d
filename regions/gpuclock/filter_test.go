// SPDX-License-Identifier: Apache-2.0

package gpuclock

// rank has the plans of a communicator rank. The GPU's clock is offset ahead of the host's.
type rank struct {
	Filter
	plans  []*Plan // enqueued and not written
	starts []uint64
}

const (
	offset = 7_000_000
	launch = 10_000
	length = 50_000
	late   = 1_000
)

func (r *rank) IsLast(number uint64) bool { return r.plans[len(r.plans)-1].Number == number }

func (r *rank) OperationsBehind(number uint64, most int) (n int) {
	for i := len(r.plans) - 1; r.plans[i].Number != number && n < most; i-- {
		n++
	}
	return n
}

func (r *rank) EnqueuedSince(number uint64) (uint64, bool) {
	for i, p := range r.plans {
		if p.Number >= number {
			return r.starts[i], true
		}
	}
	return 0, false
}

const (
	beginning = uint64(1e15)
	beat      = uint64(1e6)
)
