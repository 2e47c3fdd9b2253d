// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/realnccl/suite"
)

// endsWithThread0 tells, by algorithm, of which batches thread 0 of a block, which writes the stamps, is done only when
// all threads are. That is asked of the last batch of a channel: before another one begins, all threads meet.
// docs/nccl-profiler-api.md, §7.7, says why.
var endsWithThread0 = map[string]func(*suite.Kernel) bool{
	"RING": func(*suite.Kernel) bool { return true }, // all threads meet at the end of each work
	"TREE": func(*suite.Kernel) bool { return false },
	// it goes up, others come down; only the root's do both
	"SendRecv": func(k *suite.Kernel) bool { return k.Parts <= 1 },
	// it is in the first work, and sends if that has a send
}

// algorithmOf is that of a device function: AllReduce_Sum_f32_TREE_LL; one that has none is its own.
func algorithmOf(function string) string {
	if parts := strings.Split(function, "_"); len(parts) > 2 {
		return parts[len(parts)-2]
	}
	return function
}

// ruleOf reports whether thread 0 of a batch that is its channel's last is done only when all threads are.
func ruleOf(k *suite.Kernel) bool {
	rule, known := endsWithThread0[algorithmOf(k.Func)]
	if !known {
		panic(fmt.Sprintf("it is not known whose end is stamped in %s", k.Func))
	}
	return rule(k)
}

// partsAgree wants the pretended GPU to divide batches as the rules say.
func partsAgree(t *testing.T, logs map[int]*suite.Process) {
	t.Helper()
	for _, p := range logs {
		for i := range p.Kernels {
			k := &p.Kernels[i]
			testkit.Check(t, k.T0 <= k.TDone && k.TDone <= k.T1 && (k.TDone >= k.T1 || k.Parts >= 2 && !ruleOf(k)),
				"%s of %d parts began at %d, its thread 0 was done at %d, and it ended at %d", k.Func, k.Parts, k.T0,
				k.TDone, k.T1)
		}
	}
}

// endedLater counts kernels whose end was stamped before another rank's kernel of the same launch began, and which
// ended after that: ranks launch the same one after the other, on channels of the same numbers.
func endedLater(logs map[int]*suite.Process) (count int) {
	type place struct{ comm, channel, launch int }
	type rank struct{ world, comm, channel int }
	at := make(map[place][]*suite.Kernel)
	launches := make(map[rank]int)
	for _, p := range logs {
		for i := range p.Kernels {
			k := &p.Kernels[i]
			if len(k.PTimers) == 0 || k.PTimers[0] == nil {
				continue
			}
			r := rank{k.WorldRank, k.Comm, k.Channel}
			of := place{k.Comm, k.Channel, launches[r]}
			at[of], launches[r] = append(at[of], k), launches[r]+1
		}
	}
	for _, kernels := range at {
		for _, k := range kernels {
			for _, late := range kernels {
				if k.PTimers[0][1] < late.PTimers[0][0] && k.T1 > late.T0 {
					count++
				}
			}
		}
	}
	return count
}

// launch is what the pretended GPU ran of one, on all channels.
type launch struct {
	begin, end uint64
	done       uint64                // when the last of its end stamps was written
	lasts      map[int]*suite.Kernel // of each channel the last batch
}

func (l *launch) add(k *suite.Kernel) {
	l.begin, l.end, l.done = min(l.begin, k.T0), max(l.end, k.T1), max(l.done, k.TDone)
	l.lasts[k.Channel] = k
}

// whole reports whether the end stamps are those of its end.
func (l *launch) whole() bool {
	for k := range maps.Values(l.lasts) {
		if !ruleOf(k) {
			return false
		}
	}
	return true
}

// off is how far a time is from the launch's end; where its stamps may be earlier, from the span of what it may be.
func (l *launch) off(end int64) time.Duration {
	least, most := int64(l.end), int64(l.end)
	if !l.whole() {
		least = int64(l.done)
	}
	return time.Duration(max(least-end, end-most, 0))
}
