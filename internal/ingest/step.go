// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"cmp"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/plugin/api"
)

// step is one moment of an event or a state.
type step struct {
	time  int64
	class uint8 // order among steps at one time
	at    int32 // index into events or states
	kind  stepKind
}

type stepKind uint8

const (
	stepStart stepKind = iota
	stepState
	stepStop
)

// Classes order the steps at one time: parents begin before their children and stop after them.
const (
	classEarlierStop = 10 // minus the depth
	classInit        = 15
	classStart       = 20 // plus the depth
	classState       = 40
	classStop        = 60 // minus the depth: stops of events that start at the same time
	classFinal       = 70
)

func (m *minimal) steps() []step {
	all := make([]step, 0, 2*len(m.events)+len(m.states))
	for i := range m.events {
		e := &m.events[i]
		depth := uint8(api.Events[e.typ].Depth) // parents come before their children
		switch e.life {
		case lifeInit:
			all = append(all, step{e.start, classInit, int32(i), stepStart})
			continue
		case lifeFinal:
			all = append(all, step{e.start, classFinal, int32(i), stepStart})
			continue
		}
		if e.hasOperationTimes() { // its records come together when its call has ended, as in NCCL
			all = append(all, step{e.stop, classStart + depth, int32(i), stepStart})
			continue
		}
		all = append(all, step{e.start, classStart + depth, int32(i), stepStart})
		if e.details.Unfinished {
			continue
		}
		stop := step{e.stop, classEarlierStop - depth, int32(i), stepStop}
		if e.stop == e.start {
			stop.class = classStop - depth
		}
		all = append(all, stop)
	}
	for i := range m.states {
		all = append(all, step{m.states[i].time, classState, int32(i), stepState})
	}
	slices.SortStableFunc(all, func(a, b step) int {
		return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.class, b.class))
	})
	return all
}
