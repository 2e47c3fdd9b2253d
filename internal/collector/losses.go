// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"maps"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// losses are the events that the plugin could not record or the collector could not write.
type losses struct {
	drain     *drain
	unwritten [shm.TypeCount]uint64 // records taken after writing had ended for good
	uncounted []string              // see experiment.Counts.Uncounted
}

// collectives reports whether any collective has been lost so far.
func (l *losses) collectives() bool {
	return l.drain.lost(shm.EventColl, shm.LossStopMemory) || l.unwritten[shm.EventColl] > 0
}

// kernelParts are the types of events by which kernels are counted.
var kernelParts = []shm.EventType{shm.EventGroup, shm.EventColl, shm.EventP2p, shm.EventKernelCh, shm.EventCollApi,
	shm.EventKernelLaunch}

// kernelParts reports whether any event has been lost by which kernels are counted. The model asks for each operation.
func (l *losses) kernelParts() bool {
	for _, t := range kernelParts {
		if l.drain.lost(t) || l.unwritten[t] > 0 {
			return true
		}
	}
	return false
}

// describe states what was lost, by reason, beside what the model could not draw.
func (l *losses) describe(counts *experiment.Counts, h *shm.Header, withCollector map[string]uint64) {
	lost := maps.Clone(counts.Lost)
	if lost == nil {
		lost = make(map[string]map[string]uint64)
	}
	for reason := range h.Lost {
		if n := shm.ByName(&h.Lost[reason]); len(n) > 0 {
			lost[shm.LossReason(reason).String()] = n
		}
	}
	disk := l.unwritten
	for t, n := range h.Lost[shm.LossDisk] {
		disk[t] += n
	}
	if n := shm.ByName(&disk); len(n) > 0 {
		lost[shm.LossDisk.String()] = n
	}
	if len(withCollector) > 0 {
		lost[experiment.LostWithCollector] = withCollector
	}
	counts.Lost, counts.Uncounted = lost, l.uncounted
}
