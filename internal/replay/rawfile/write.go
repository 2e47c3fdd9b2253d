// SPDX-License-Identifier: Apache-2.0

package rawfile

import (
	"cmp"
	"io"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// Recording is a recording whose processes can be written. It is immutable.
type Recording struct {
	*replay.Recording
	numbers *numbering
	origins []replay.Origin // by process
}

// New prepares a recording for writing.
func New(rec *replay.Recording) (*Recording, error) {
	numbers, err := newNumbering(rec)
	if err != nil {
		return nil, err
	}
	r := &Recording{Recording: rec, numbers: numbers}
	for _, p := range rec.Processes {
		origin, err := rec.Origin(p)
		if err != nil {
			return nil, err
		}
		r.origins = append(r.origins, origin)
	}
	return r, nil
}

// Write writes the raw file of process k. Times are those of the recording: CLOCK_MONOTONIC_RAW, and its relation to
// the time of day when the plugin was loaded.
func (r *Recording) Write(w io.Writer, k int) error {
	p := r.Processes[k]
	c := &converter{r.numbers, p, p.Opens[0].API}
	out := shm.NewSpoolWriter(w, r.header(p))
	for _, x := range p.Contexts {
		out.Comm(c.entry(x), r.comm(p, x))
	}
	calls := slices.Clone(p.Calls)
	slices.SortStableFunc(calls, func(a, b *replay.Call) int { return cmp.Compare(a.T, b.T) })
	last := p.Opens[0].T
	introduced := make([]bool, len(p.Threads))
	for _, call := range calls {
		last = max(last, call.T)
		record, ok := c.record(call)
		if !ok {
			continue
		}
		ring := call.Thread.Index
		if !introduced[ring] {
			introduced[ring] = true
			tid := call.Thread.TID
			out.Record(ring, &shm.Record{Ticks: call.T, Kind: shm.RecordThread, TID: int32(tid), Aux: uint32(tid),
				ThreadName: call.Thread.Name})
		}
		out.Record(ring, &record)
	}
	return out.Close(clockAt(p, last))
}

// clockAt returns all clocks at a time: from the loading of the plugin on, they are assumed to run at the same rate.
func clockAt(p *replay.Process, t uint64) shm.ClockTuple {
	open := p.Opens[0]
	since := t - open.T
	return shm.ClockTuple{Ticks: t, Raw: t, Mono: open.Mono + since, Real: open.Real + since}
}

func (r *Recording) header(p *replay.Process) *shm.Header {
	origin, mask := r.origins[p.Index], p.Mask()
	h := &shm.Header{
		PID: uint32(p.PID), Tag: uint32(r.numbers.tags[p.Index]), ClockSource: shm.ClockHost, ClockHz: 1e9,
		APIVersion: uint32(origin.API), Created: clockAt(p, p.Opens[0].T),
		Library: origin.Library, LibraryVersion: int32(origin.LibraryVersion),
		Ended: 1, EventMask: mask, RecordMask: mask,
		CommUsed: uint32(len(p.Contexts)), RingUsed: uint32(len(p.Threads)),
	}
	copy(h.Hostname[:len(h.Hostname)-1], origin.Host)
	copy(h.BootID[:len(h.BootID)-1], origin.BootID)
	return h
}

// comm returns a communicator's entry.
func (r *Recording) comm(p *replay.Process, x *replay.Context) *shm.Comm {
	device, known := r.DeviceOf(p, x)
	if !known {
		device = -1
	}
	c := &shm.Comm{
		APIVersion: p.Opens[x.Open].API, ID: x.CommID, Name: x.Name(), NRanks: x.NRanks, Rank: x.Rank, NNodes: x.NNodes,
		Device: device,
		UUID:   x.UUID, PCI: x.PCI, InitTicks: x.Init.T, InitTID: x.Init.Thread.TID,
	}
	if x.Finalize != nil {
		c.FinalTicks = x.Finalize.T
	}
	return c
}
