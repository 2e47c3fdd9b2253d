// SPDX-License-Identifier: Apache-2.0

package export

import (
	"encoding/binary"
	"hash/fnv"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/analysis/waits"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// What timelines say of attributes and waits, whatever their form.

type valueKind uint8

const (
	unsignedValue valueKind = iota
	signedValue
	doubleValue
	textValue
	idValue      // of an event, plan or kernel's launch: it may have all 64 bits
	addressValue // of memory, or a handle
)

type attributeValue struct {
	kind   valueKind
	bits   uint64
	number float64 // of doubleValue
	text   string  // of textValue
}

// kinds are those of attributes whose type says too little.
var kinds = map[otf2.AttributeRef]valueKind{
	regions.AttrEventID: idValue, regions.AttrParentID: idValue, regions.AttrExternalID: idValue, regions.AttrPlanID: idValue,
	regions.AttrGraphNodeID: idValue, regions.AttrUserTag: idValue,
	regions.AttrSendBuff: addressValue, regions.AttrRecvBuff: addressValue, regions.AttrStream: addressValue,
}

// eachAttribute passes on attributes with their names in small letters. Of several of one name the last one counts.
func (r *rows) eachAttribute(all []otf2.AttributeValue, f func(name string, v attributeValue)) {
	for i, a := range all {
		d := r.defs.Attribute(a.ID)
		if d == nil || again(all[i+1:], a.ID) {
			continue
		}
		v := attributeValue{bits: a.Bits}
		switch a.Type {
		case otf2.TypeString:
			v.kind, v.text = textValue, r.defs.String(otf2.StringRef(a.Bits))
		case otf2.TypeComm:
			one := r.comms[otf2.CommRef(a.Bits)]
			if one == nil {
				continue
			}
			v.kind, v.text = textValue, one.Name
		case otf2.TypeDouble:
			v.kind, v.number = doubleValue, a.Value().Double()
		case otf2.TypeFloat:
			v.kind, v.number = doubleValue, float64(a.Value().Float())
		case otf2.TypeInt8, otf2.TypeInt16, otf2.TypeInt32, otf2.TypeInt64:
			v.kind = signedValue
		default:
			if ref, known := r.attributes.Of(a.ID); known {
				v.kind = kinds[ref]
			}
		}
		f(strings.ToLower(r.defs.String(d.Name)), v)
	}
}

func again(all []otf2.AttributeValue, id otf2.AttributeRef) bool {
	for i := range all {
		if all[i].ID == id {
			return true
		}
	}
	return false
}

// Names of what is drawn for waits.
const (
	waitingName  = "waiting"
	waitCategory = "wait"
)

// waitName says for whom was waited.
func (r *rows) waitName(w *waits.Wait) string { return "waits for " + r.world[w.For].Name }

// waitFigures are what is known of a wait beside its interval, named as in the table of waits.
func (r *rows) waitFigures(w *waits.Wait, text func(name, v string), number func(name string, v int64)) {
	text("kind", w.Kind)
	text("communicator", w.Communicator)
	text("function", w.Function)
	number("ordinal", int64(w.Ordinal))
	number("size_bytes", int64(w.Place.Size))
	for _, of := range []struct {
		name string
		ref  otf2.StringRef
	}{{"algorithm", w.Place.Algo}, {"protocol", w.Place.Proto}} {
		if of.ref != otf2.UndefinedString {
			text(of.name, r.defs.String(of.ref))
		}
	}
	text("rank_name", r.world[w.World].Name)
	text("for_rank_name", r.world[w.For].Name)
	text("for_host", r.world[w.For].Host)
	number("waited_ns", r.clock.nanoseconds(int64(w.Waited)))
	number("time_ns", r.clock.nanoseconds(int64(w.Time)))
	if w.Stated {
		number("uncertainty_ns", int64(w.Uncertainty))
	}
	if w.StartUp {
		number("start_up", 1)
	}
	text("timing_source", w.Source)
}

// idOf is a number for what belongs together, the same at each export of an archive.
func idOf(kind, name string, of ...uint64) uint64 {
	h := fnv.New64a()
	b := append([]byte(kind), 0)
	b = append(append(b, name...), 0)
	for _, v := range of {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	_, _ = h.Write(b) // it gives no errors
	return max(h.Sum64(), 1)
}
