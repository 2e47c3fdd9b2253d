// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"

	"github.com/nccl-otf2/nccl-otf2/plugin/api"
)

// EventType is the number of an event type's bit in NCCL's activation mask; the last two types are exceptions.
type EventType uint8

// Bit returns the type's bit in the activation mask and in descriptors, 0 for TypeOther.
func (t EventType) Bit() uint64 {
	switch t {
	case TypeProxyDiag:
		return 1 << TypeKernelPhase
	case TypeOther:
		return 0
	}
	return 1 << t
}

// String returns NCCL's name of the type.
func (t EventType) String() string {
	if t < typeCount {
		return eventTypes[t].name
	}
	return fmt.Sprintf("event type %d", uint8(t))
}

// typeOf returns the type for a descriptor's bits. One bit means a type of NCCL, a type of RCCL, or, before either
// defined it, nothing; name decides which.
func typeOf(bits uint64, name string) EventType {
	if bits == TypeKernelPhase.Bit() {
		for _, t := range []EventType{TypeProxyDiag, TypeOther} {
			if name == eventTypes[t].name {
				return t
			}
		}
	}
	for t := range TypeProxyDiag {
		if t.Bit() == bits {
			return t
		}
	}
	return TypeOther
}

// State is the second argument of recordEventState.
type State int32

// String returns NCCL's name of the state.
func (s State) String() string {
	if s >= 0 && int(s) < len(api.States) {
		return api.States[s].Name
	}
	return fmt.Sprintf("state %d", int32(s))
}

// fieldKind says how a descriptor's member is written in a program.
type fieldKind uint8

const (
	fieldNumber  fieldKind = iota
	fieldString            // const char *, may be NULL
	fieldPointer           // opaque
	fieldHandle            // another event's handle; its id is in the member <name>Id
	fieldNet               // a network plugin's own descriptor
	fieldPID               // a process id: the recording process's own is replaced by that of the playing one
)

type field struct {
	name string // in the recording's member "d"
	kind fieldKind
	// some: only some versions of the interface have the member, so recordings may lack it. It is then NULL or 0, or
	// taken from the communicator.
	some bool
}

// eventTypes is indexed by EventType. The fields have the same order as in programs.
var eventTypes = func() (all [typeCount]struct {
	name   string
	descr  any // the type's Descr
	fields []field
}) {
	for t := range all {
		all[t].descr = descriptorTypes[t]
	}
	for t := range api.Events {
		e := &api.Events[t]
		all[t].name = e.Name
		for i := range e.Members {
			if m := &e.Members[i]; m.Name != "" {
				all[t].fields = append(all[t].fields, field{m.Name, kindOf(m.Kind), !e.Always(m)})
			}
		}
	}
	all[TypeProxyDiag].name, all[TypeOther].name = "ProxyDiag", "?"
	return all
}()

func kindOf(k api.Kind) fieldKind {
	switch k {
	case api.PID:
		return fieldPID
	case api.Handle:
		return fieldHandle
	case api.NetData:
		return fieldNet
	case api.Pointer, api.ConstPointer, api.Hash:
		return fieldPointer
	}
	if k.Text() {
		return fieldString
	}
	return fieldNumber
}

// Descriptor returns an empty descriptor of a type, as Event.Descr points to.
func Descriptor(t EventType) any { return eventTypes[t].descr }

// Descriptors of types that NCCL does not have, and parts of descriptors.
type (
	// ProxyDiag is RCCL's descriptor; none of its members is known.
	ProxyDiag struct{}

	// Other is the descriptor of a type that neither NCCL nor RCCL defines.
	Other struct{}

	// Sock is the socket transport's descriptor.
	Sock struct {
		Type   int    `json:"type"`
		FD     int    `json:"fd"`
		Op     int    `json:"op"` // 0 send, 1 receive
		Length uint64 `json:"length"`
	}

	// IB is the InfiniBand transport's descriptor of a queue pair's work request.
	IB struct {
		Type   int    `json:"type"`
		Device int    `json:"device"` // within the merged NIC
		WrID   uint64 `json:"wrId"`
		Opcode int    `json:"opcode"`
		QPNum  int    `json:"qpNum"`
		Length uint64 `json:"length"` // bytes; stale for receives
	}
)
