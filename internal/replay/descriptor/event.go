// SPDX-License-Identifier: Apache-2.0

package descriptor

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/nccl-otf2/nccl-otf2/plugin/api"
)

// Type is the number of an event type's bit in NCCL's activation mask; the last two types are exceptions.
type Type uint8

// Bit returns the type's bit in the activation mask and in descriptors, 0 for TypeOther.
func (t Type) Bit() uint64 {
	switch t {
	case TypeProxyDiag:
		return 1 << TypeKernelPhase
	case TypeOther:
		return 0
	}
	return 1 << t
}

// String returns NCCL's name of the type.
func (t Type) String() string {
	if t < typeCount {
		return Types[t].Name
	}
	return fmt.Sprintf("event type %d", uint8(t))
}

// FindType returns the type for a descriptor's bits. One bit means a type of NCCL, a type of RCCL, or, before either
// defined it, nothing; name decides which.
func FindType(bits uint64, name string) Type {
	if bits == TypeKernelPhase.Bit() {
		for _, t := range []Type{TypeProxyDiag, TypeOther} {
			if name == Types[t].Name {
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

// FieldKind says how a descriptor's member is written in a program.
type FieldKind uint8

const (
	Number  FieldKind = iota
	String            // const char *, may be NULL
	Opaque            // opaque
	Handle            // another event's handle; its id is in the member <name>Id
	NetData           // a network plugin's own descriptor
	PID               // a process id: the recording process's own is replaced by that of the playing one
)

// Field is a member of a type's descriptor.
type Field struct {
	Name string // in the recording's member "d"
	Kind FieldKind
	// some: only some versions of the interface have the member, so recordings may lack it. It is then NULL or 0, or
	// taken from the communicator.
	Optional bool
}

// Types is indexed by Type. The fields have the same order as in programs.
var Types = func() (all [typeCount]struct {
	Name   string
	Descr  any // the type's Descr
	Fields []Field
}) {
	for t := range all {
		all[t].Descr = descriptorTypes[t]
	}
	for t := range api.Events {
		e := &api.Events[t]
		all[t].Name = e.Name
		for i := range e.Members {
			if m := &e.Members[i]; m.Name != "" {
				all[t].Fields = append(all[t].Fields, Field{m.Name, kindOf(m.Kind), !e.Always(m)})
			}
		}
	}
	all[TypeProxyDiag].Name, all[TypeOther].Name = "ProxyDiag", "?"
	return all
}()

func kindOf(k api.Kind) FieldKind {
	switch k {
	case api.PID:
		return PID
	case api.Handle:
		return Handle
	case api.NetData:
		return NetData
	case api.Pointer, api.ConstPointer, api.Hash:
		return Opaque
	}
	if k.Text() {
		return String
	}
	return Number
}

// New returns an empty descriptor of a type, as Event.Descr points to.
func New(t Type) any { return Types[t].Descr }

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

// Pointer is an address or another opaque 64-bit number, written in hex in the recordings; 0 is NULL.
type Pointer uint64

// UnmarshalJSON accepts "0x…" and null.
func (p *Pointer) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		*p = 0
		return nil
	}
	var s string
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	v, err := strconv.ParseUint(s, 0, 64)
	if err != nil {
		return fmt.Errorf("%q is not a pointer", s)
	}
	*p = Pointer(v)
	return nil
}

// MarshalJSON writes "0x…", or null for 0.
func (p Pointer) MarshalJSON() ([]byte, error) {
	if p == 0 {
		return []byte("null"), nil
	}
	return fmt.Appendf(nil, `"0x%x"`, uint64(p)), nil
}

// Flag is a C bool or int used as one, written as 0 or 1.
type Flag bool

// UnmarshalJSON accepts numbers and JSON booleans.
func (f *Flag) UnmarshalJSON(text []byte) error {
	switch string(text) {
	case "0", "false":
		*f = false
	case "1", "true":
		*f = true
	default:
		return fmt.Errorf("%s is not a flag", text)
	}
	return nil
}

// MarshalJSON writes 0 or 1.
func (f Flag) MarshalJSON() ([]byte, error) {
	if f {
		return []byte("1"), nil
	}
	return []byte("0"), nil
}
