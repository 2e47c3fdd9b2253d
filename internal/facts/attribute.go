// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// Details holds what attributes state about an operation, launch or call. Strings are ids of the source of the events,
// UndefinedString where they are not stated.
type Details struct {
	Algo, Proto, Datatype otf2.StringRef
	Variant               otf2.StringRef // symmetric kernel, or how copy engines synchronize
	Recorded              uint64         // ordinal as recorded
	Numbered              bool           // Recorded is known
	Counted               bool           // Count is known
	Stated                bool           // Uncertainty is known
	// the end of its GPU times is that of a part of the kernel: it ended then or later
	EndsEarly   bool
	GPULast     uint64 // ns after the begin at which it was not over yet, if EndsEarly; 0: unknown
	Device      bool   // a buffer is in a GPU's memory
	Graph       bool   // captured into or replayed from a CUDA graph
	Unfinished  bool   // it was open when the data ended
	Linked      bool   // of a kernel: NCCL launched it
	Source      Source // of the times
	Channels    uint32 // 0: not known
	Together    uint32 // operations of a launch of several, 0: not stated
	Count       uint64 // elements, as given in the call
	Uncertainty uint64 // ns that begin and end may be off by, of the GPU's times
	Parent      uint64 // id of NCCL's event that asked for it, 0: not known
	Event       uint64 // id of NCCL's event, 0: not known
	Send, Recv  uint64 // addresses of the buffers, 0: not stated
	// of NCCL, and of a transfer within its operation; −1: not stated, as the next ones
	Channel, Step int32
	Peer          int32                 // rank that a row's oldest transfer goes to or comes from
	QP            int32                 // InfiniBand queue pair
	Carried       Carried               // what the network carried of it
	Attributes    []otf2.AttributeValue // of its events, the outer ones first; only if Reader.Keep
}

// Certain reports whether NCCL's operation had ended by the end of its times, see Arrival.
func (d *Details) Certain() bool { return d.Source == SourceGPU && !d.EndsEarly }

// Carried is what an operation says of its transfers over the network, where each of them was seen.
type Carried struct {
	Known        bool   // there were some, and what follows is known
	GPUBothWays  bool   // on the channel of GPUSteps it both received and sent
	GPUHeld      uint64 // ns for which they waited for nothing but the GPU
	GPUHeldFirst uint64 // of that, before it had done anything: it may have waited for other members to come
	GPUSteps     uint64 // buffers that it filled or emptied for them, on the channel where they waited longest
	Link         Link   // that it was sending on longest
}

// Link is what an operation sent over the network to the rank that it was sending to longest.
type Link struct {
	Peer      int32  // rank in the communicator, −1: unknown
	Busy      uint64 // ns for which at least one transfer was under way
	Bytes     uint64 // of its transfers; 0 where NCCL does not report them (before 2.27)
	Transfers uint64
}

// NoDetails is the value of Details when nothing is stated.
var NoDetails = Details{Algo: otf2.UndefinedString, Proto: otf2.UndefinedString, Variant: otf2.UndefinedString,
	Datatype: otf2.UndefinedString, Channel: -1, Step: -1, Peer: -1, QP: -1, Carried: Carried{Link: Link{Peer: -1}}}

// Read sets in d what the event's attributes state; other fields keep their values.
func (r *Reader) Read(ev *otf2.Event, d *Details) {
	for i := range ev.Attributes {
		a := &ev.Attributes[i]
		ref, ok := r.attributes.Resolve(a.ID)
		if !ok {
			continue
		}
		switch ref {
		case regions.AttrOrdinal:
			d.Recorded, d.Numbered = a.Bits, true
		case regions.AttrAlgo:
			d.Algo = otf2.StringRef(a.Bits)
		case regions.AttrProto:
			d.Proto = otf2.StringRef(a.Bits)
		case regions.AttrKernelVariant, regions.AttrSyncStrategy:
			d.Variant = otf2.StringRef(a.Bits)
		case regions.AttrDatatype:
			d.Datatype = otf2.StringRef(a.Bits)
		case regions.AttrChannels:
			d.Channels = uint32(a.Bits)
		case regions.AttrCount:
			d.Count, d.Counted = a.Bits, true
		case regions.AttrTimingSource:
			d.Source = r.source(otf2.StringRef(a.Bits))
		case regions.AttrUncertainty:
			d.Uncertainty, d.Stated = a.Bits, true
		case regions.AttrEndsEarly:
			d.EndsEarly = a.Bits != 0
		case regions.AttrGPULast:
			d.GPULast = a.Bits
		case regions.AttrOperations:
			d.Together = uint32(a.Bits)
		case regions.AttrEventID:
			d.Event = a.Bits
		case regions.AttrParentID:
			d.Parent = a.Bits
		case regions.AttrSendBuff:
			d.Send = a.Bits
		case regions.AttrRecvBuff:
			d.Recv = a.Bits
		case regions.AttrSendBuffClass, regions.AttrRecvBuffClass:
			d.Device = d.Device || OnGPU(r.Names.String(otf2.StringRef(a.Bits)))
		case regions.AttrGraph:
			d.Graph = a.Bits != 0
		case regions.AttrUnfinished:
			d.Unfinished = a.Bits&1 != 0
		case regions.AttrExternalID, regions.AttrPlanID:
			d.Linked = true
		case regions.AttrChannel:
			d.Channel = int32(a.Bits)
		case regions.AttrStep:
			d.Step = int32(a.Bits)
		case regions.AttrPeer:
			d.Peer = int32(a.Bits)
		case regions.AttrQP:
			d.QP = int32(a.Bits)
		case regions.AttrGPUHeld:
			d.Carried.GPUHeld, d.Carried.Known = a.Bits, true
		case regions.AttrGPUHeldFirst:
			d.Carried.GPUHeldFirst = a.Bits
		case regions.AttrGPUSteps:
			d.Carried.GPUSteps = a.Bits
		case regions.AttrGPUWays:
			d.Carried.GPUBothWays = a.Bits == 2
		case regions.AttrLinkPeer:
			d.Carried.Link.Peer = int32(a.Bits)
		case regions.AttrLinkBusy:
			d.Carried.Link.Busy = a.Bits
		case regions.AttrLinkBytes:
			d.Carried.Link.Bytes = a.Bits
		case regions.AttrLinkTransfers:
			d.Carried.Link.Transfers = a.Bits
		}
	}
	if r.Keep && len(ev.Attributes) > 0 {
		d.Attributes = slices.Concat(d.Attributes, ev.Attributes)
	}
}

// OnGPU reports whether a memory class is GPU memory, or managed memory, which a GPU shares with the host.
func OnGPU(class string) bool { return class == regions.ClassDevice || class == regions.ClassManaged }

// source returns the source with a name. The result is cached by id, because few names come with every launch.
func (r *Reader) source(ref otf2.StringRef) Source {
	return keyed.EntryMade(r.sources, ref, func() Source { return SourceOf(r.Names.String(ref)) })
}

// ElementSize is the size in bytes of an element of a type, 0 if it is not known.
func (r *Reader) ElementSize(dtype otf2.StringRef) uint64 {
	if dtype == otf2.UndefinedString {
		return 0
	}
	return keyed.EntryMade(r.sizes, dtype, func() uint64 { return regions.DatatypeSize(r.Names.String(dtype)) })
}

// ElementSize is the size in bytes of an element of an archive's type, 0 if it is not known.
func ElementSize(defs *otf2.Definitions, dtype otf2.StringRef) uint64 {
	return regions.DatatypeSize(defs.String(dtype))
}
