// SPDX-License-Identifier: Apache-2.0

package record

import (
	"reflect"

	"github.com/nccl-otf2/nccl-otf2/plugin/api"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// descriptorMember is a member of an event's descriptor, with its place in records.
type descriptorMember struct {
	*api.Member
	field int // of shm.Record; −1: none
	flag  shm.RecordFlags
}

// descriptors has the members of each event type that come from records or from their communicators.
var descriptors = func() (all [shm.TypeCount][]descriptorMember) {
	record := reflect.TypeFor[shm.Record]()
	for t := range all {
		for i := range api.Events[t].Members {
			m := descriptorMember{Member: &api.Events[t].Members[i], field: -1}
			m.flag = shm.FlagsByName[m.Flag]
			if f, ok := record.FieldByName(m.Go); ok {
				m.field = f.Index[0]
			}
			if m.Name != "" && (m.field >= 0 || m.flag != 0 || m.Name == "name" || m.Kind == api.Hash) {
				all[t] = append(all[t], m)
			}
		}
	}
	return all
}()

// member writes one member of an event's descriptor.
func (t *Transcript) member(b []byte, m *descriptorMember, r *shm.Record) []byte {
	var v reflect.Value
	if m.field >= 0 {
		v = reflect.ValueOf(r).Elem().Field(m.field)
	}
	switch {
	case m.flag != 0:
		return boolean(b, m.Name, r.Flags&m.flag != 0)
	case m.Kind == api.Hash:
		return pointer(b, m.Name, t.comm(r.Aux).ID)
	case m.field < 0:
		return text(b, m.Name, t.comm(r.Aux).Name)
	case m.Kind == api.Proto && r.Flags&shm.FlagSym != 0 && r.Proto == "": // NCCL's own "", not NULL
		return append(b, `,"proto":""`...)
	case m.Kind.Text():
		return text(b, m.Name, v.String())
	case m.Kind == api.Handle:
		b, _ = t.refer(pointer(b, m.Name, v.Uint()), m.Name+"Id", v.Uint())
		return b
	case m.Kind == api.NetData:
		return netData(pointer(b, m.Name, v.Uint()), r)
	case m.Kind == api.Pointer || m.Kind == api.ConstPointer:
		return pointer(b, m.Name, v.Uint())
	case v.CanInt():
		return number(b, m.Name, v.Int())
	}
	return unsigned(b, m.Name, v.Uint())
}

// Kinds of network plugins in the upper half of NetPlugin's id (docs/nccl-profiler-api.md §8).
const (
	netIB     = 1
	netSocket = 2
)

// netData writes the contents of a network plugin's own descriptor.
func netData(b []byte, r *shm.Record) []byte {
	if r.Flags&shm.FlagKnownNet == 0 {
		return b
	}
	switch r.NetID >> 16 {
	case netSocket:
		b = append(b, `,"sock":{"type":1`...)
		b = number(b, "fd", int64(r.DeviceOrFD))
		b = append(b, `,"op":`...)
		if r.Flags&shm.FlagSend != 0 {
			b = append(b, '0')
		} else {
			b = append(b, '1')
		}
		return append(unsigned(b, "length", r.Length), '}')
	case netIB:
		b = append(b, `,"ib":{"type":1`...)
		b = number(b, "device", int64(r.DeviceOrFD))
		b = unsigned(b, "wrId", r.WrID)
		b = number(b, "opcode", int64(r.Opcode))
		b = number(b, "qpNum", int64(r.QP))
		return append(unsigned(b, "length", r.Length), '}')
	}
	return b
}
