// SPDX-License-Identifier: Apache-2.0

package export

import (
	"encoding/binary"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/waits"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// What the timeline says of attributes and waits.

// pointers are attributes whose type does not say that they are addresses of memory or handles.
var pointers = []otf2.AttributeRef{regions.AttrSendBuff, regions.AttrRecvBuff, regions.AttrStream}

// writeAttributes writes attributes with their names in small letters. Of several of one name the last one counts.
func (p *perfettoWriter) writeAttributes(all []otf2.AttributeValue) {
	r, w := p.rows, p.out
	for i, a := range all {
		d := r.defs.Attribute(a.ID)
		if d == nil || isRepeated(all[i+1:], a.ID) {
			continue
		}
		switch name := strings.ToLower(r.defs.String(d.Name)); a.Type {
		case otf2.TypeString:
			w.text(name, r.defs.String(otf2.StringRef(a.Bits)))
		case otf2.TypeComm:
			if one := r.comms[otf2.CommRef(a.Bits)]; one != nil {
				w.text(name, one.Name)
			}
		case otf2.TypeDouble:
			w.number(name, a.Value().Double())
		case otf2.TypeFloat:
			w.number(name, float64(a.Value().Float()))
		case otf2.TypeInt8, otf2.TypeInt16, otf2.TypeInt32, otf2.TypeInt64:
			w.integer(name, int64(a.Bits))
		default:
			if ref, known := r.attributes.Resolve(a.ID); known && slices.Contains(pointers, ref) {
				w.hex(name, a.Bits)
			} else {
				w.unsigned(name, a.Bits)
			}
		}
	}
}

func isRepeated(all []otf2.AttributeValue, id otf2.AttributeRef) bool {
	return slices.ContainsFunc(all, func(a otf2.AttributeValue) bool { return a.ID == id })
}

// Names of what is drawn for waits.
const (
	waitingName  = "waiting"
	waitCategory = "wait"
)

// annotateWait are what is known of a wait beside its interval, named as in the table of waits.
func (p *perfettoWriter) annotateWait(w *waits.Wait) {
	r, out := p.rows, p.out
	out.text("kind", w.Kind)
	out.text("communicator", w.Communicator)
	out.text("function", w.Function)
	out.integer("ordinal", int64(w.Ordinal))
	out.integer("size_bytes", int64(w.Place.Size))
	for _, of := range []struct {
		name string
		ref  otf2.StringRef
	}{{"algorithm", w.Place.Algo}, {"protocol", w.Place.Proto}} {
		if of.ref != otf2.UndefinedString {
			out.text(of.name, r.defs.String(of.ref))
		}
	}
	out.text("rank_name", r.world[w.World].Name)
	out.text("for_rank_name", r.world[w.For].Name)
	out.text("for_host", r.world[w.For].Host)
	out.integer("waited_ns", r.clock.nanoseconds(int64(w.Waited)))
	out.integer("time_ns", r.clock.nanoseconds(int64(w.Time)))
	if w.Stated {
		out.integer("uncertainty_ns", int64(w.Uncertainty))
	}
	if w.StartUp {
		out.integer("start_up", 1)
	}
	out.text("timing_source", w.Source)
}

// nameOfSlice is what a region is called where it is drawn.
func (r *rows) nameOfSlice(s *span) string {
	if s.launched {
		return r.defs.RegionName(s.region) + facts.LaunchedOnly
	}
	return r.defs.RegionName(s.region)
}

// What is left out of timelines.
const (
	openRegions   = "ends of regions that were open at the end"
	openTransfers = "ends of transfers"
	// summedTransfers are shown by their sums, in the regions that tell them.
	summedTransfers = "transfers that were recorded in sums"
)

// hashID is a number for what belongs together, the same at each export of an archive.
func hashID(kind, name string, of ...uint64) uint64 {
	h := fnv.New64a()
	b := append([]byte(kind), 0)
	b = append(append(b, name...), 0)
	for _, v := range of {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	_, _ = h.Write(b) // it gives no errors
	return max(h.Sum64(), 1)
}
