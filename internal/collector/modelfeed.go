// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// The model is advanced in steps of time that only the records determine. So its output, and what it knows of the GPU's
// clock at each point, depends on the records and not on when a round read them.
const (
	modelStep   = 1 << 26 // ns: 67 ms
	longestGaps = 1 << 36 // ns: 69 s; longer gaps are shortened to this
)

// modelFeed announces the process's communicators to a model, and advances its time.
type modelFeed struct {
	model *regions.Model

	latest   uint64 // time of the last record, or up to which all records have been read
	advanced uint64 // time to which the model has been advanced

	announced   int          // the model knows all entries of communicators below this one
	comms       map[int]bool // entries that the model knows
	brokenComms uint64       // communicators whose size or rank is impossible
}

// advance advances the model to time t. The model must have all records before t. Before the first record, it does
// nothing.
func (f *modelFeed) advance(t, records uint64) error {
	if f.advanced == 0 || t > f.advanced+longestGaps {
		f.advanced = max(f.advanced, t-min(t, longestGaps))
		if records == 0 {
			return nil
		}
	}
	for next := f.advanced - f.advanced%modelStep + modelStep; next <= t; next += modelStep {
		f.advanced = next
		if err := f.model.Advance(next); err != nil {
			return err
		}
	}
	return nil
}

// announceComms announces all initialized communicators to the model.
func (f *modelFeed) announceComms(d *drain) {
	for n := d.source.Comms(); f.announced < n && f.announceComm(d, f.announced); f.announced++ {
	}
}

// announceComm announces a communicator to the model once. It returns false if the communicator's entry is not complete
// yet.
func (f *modelFeed) announceComm(d *drain, i int) bool {
	if f.comms[i] {
		return true
	}
	c, ok := d.source.Comm(i)
	if !ok {
		return false
	}
	f.comms[i] = true
	if c.NRanks < 0 || c.NRanks > description.MaxRanks || c.Rank >= description.MaxRanks ||
		c.NRanks > 0 && (c.Rank < 0 || c.Rank >= c.NRanks) {
		c.NRanks, c.Rank = 0, -1 // treat both as unknown
		f.brokenComms++
	}
	f.model.Comm(i, description.Comm{
		ID: c.ID, Name: c.Name, NRanks: c.NRanks, Rank: c.Rank, NNodes: c.NNodes, InitTime: d.line.time(c.InitTicks),
	}, description.GPU{Device: c.Device, UUID: c.UUID, PCI: c.PCI})
	return true
}

// commOf returns the communicator of a record that may be its first one; false for other records.
func commOf(rec *shm.Record) (i int, ok bool) {
	switch rec.Kind {
	case shm.RecordStart, shm.RecordInit, shm.RecordFinalize, shm.RecordEdge:
		return int(rec.Aux), rec.Aux != shm.None
	}
	return 0, false
}
