// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
)

// mirror makes Go's constants and the record of plugin/shm.
func mirror(s *source) {
	s.line("\npackage shm\n\nimport \"unsafe\"\n\n// Event types of NCCL's profiler API.\nconst (")
	for i, e := range Events {
		s.line("Event%s EventType = %d // %s", e.Name, i, e.Doc)
	}
	s.line(")\n\n// TypeCount is how many event types there are, StateCount how many states.\nconst (\nTypeCount = "+
		"%d\nStateCount = %d\n)\n", len(Events), len(States))
	s.line(`// Record is one decoded record. It is flat, so that one variable can be reused for all of them;
// fields that a record's type does not have are zero. Strings stay valid after the next decode.
type Record struct {
	Ticks  uint64
	Kind   RecordKind
	Type   EventType // of stops and states: the type in the handle
	Flags  RecordFlags
	Aux    uint32 // START, INIT, FINALIZE, EDGE: communicator index or None; STATE: state value; THREAD: tid
	Handle uint64 // START, STOP, STATE: the event
	Arg    uint64 // START: parent handle; STATE: the argument's bits, if FlagHasArg

	// The payload of starts, as NCCL's descriptor had it.`)
	var all []Field
	for i := range Events {
		fields, _ := Events[i].Record()
		for _, f := range fields {
			if !slices.ContainsFunc(all, func(other Field) bool { return other.Go == f.Go }) {
				all = append(all, f)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Field) int { return b.Member.Kind.Size() - a.Member.Kind.Size() })
	for _, f := range all {
		comment := ""
		if f.Member.Doc != "" {
			comment = " // " + f.Member.Doc
		}
		s.line("%s %s%s", f.Go, recordType(f), comment)
	}
	s.line(`
	// Of the other kinds, and of states.
	TID          int32  // THREAD
	ThreadName   string // THREAD: at the thread's first callback
	Steps        int32  // STATE: steps of ProxyOp's states 0 … 7
	Mark         Mark   // MARK
	MarkText     string // MARK: the phase's or the point's name
	Real         uint64 // CUPTICLOCK: CLOCK_REALTIME (ns)
	Activity     []byte // CUPTI: the record as it lay in CUPTI's buffer; a copy
	ActivityName string // CUPTI: what the record's pointer to a name points to
}`)
	recordLayouts(s)
}

func recordType(f Field) string {
	if f.Member.Kind.Text() {
		return "string"
	}
	return strings.TrimSuffix(f.CType, "_t")
}

// descriptors makes the constants and types of package descriptor.
func descriptors(s *source) {
	s.line(`
package descriptor

// The event types: numbers of the bits in NCCL's activation mask, but for the last two.
const (`)
	for i, e := range Events {
		s.line("Type%s Type = %d // %s", e.Name, i, e.Doc)
	}
	s.line(`TypeProxyDiag Type = %d // RCCL's, with the bit of KernelPhase, in its version 6
TypeOther Type = %d // any that neither NCCL nor RCCL defines: Event.TypeBits says which
typeCount Type = %d
)

// The states.
const (`, len(Events), len(Events)+1, len(Events)+2)
	for i, state := range States {
		comment := ""
		if state.Doc != "" {
			comment = " // " + state.Doc
		}
		s.line("State%s State = %d%s", state.Name, i, comment)
	}
	s.line(`StateProxyDiagUpdate State = 31 // RCCL's, in its version 6
)

// The descriptors, one type for each event type, with the members that NCCL fills in. Counts are in elements of
// Datatype, except where NCCL counts bytes (Coll of AllGather and Broadcast: ncclInt8). A NULL string is "".
// Members that some versions have are 0 or "" in others.
type (`)
	var names []string
	for i := range Events {
		e := &Events[i]
		names = append(names, e.Name+"{}")
		s.line("// %s is %s.\n%[1]s struct {", e.Name, e.Doc)
		for j := range e.Members {
			m := &e.Members[j]
			if m.Name == "" {
				continue
			}
			comment := memberComment(e, m)
			tag := m.Name
			if _, common := m.Place(6); !common && e.Since <= 6 {
				tag += ",omitempty"
			}
			name := strings.ToUpper(m.Name[:1]) + m.Name[1:]
			for _, initials := range []string{"Id", "Pid"} {
				if strings.HasSuffix(name, initials) {
					name = strings.TrimSuffix(name, initials) + strings.ToUpper(initials)
				}
			}
			s.line("%s %s `json:\"%s\"`%s", name, descriptorType(m), tag, comment)
			if m.Kind == NetData {
				s.line("Sock *Sock `json:\"sock,omitempty\"` // what Data pointed to, where it was a socket's")
				s.line("IB *IB `json:\"ib,omitempty\"` // … a queue pair's")
			}
		}
		s.line("}\n")
	}
	s.line(")\n\n// descriptorTypes are the descriptors by event type.\nvar descriptorTypes = [typeCount]any{")
	s.wrap("", strings.Split(strings.Join(append(names, "ProxyDiag{}", "Other{},"), ",|"), "|"))
	s.line("}")
}

// memberComment says what a member is and which versions have it, if not all of its event's do.
func memberComment(e *Event, m *Member) string {
	text := m.Doc
	if !e.Always(m) {
		text = strings.TrimPrefix(text+"; "+span(m), "; ")
	}
	if text == "" {
		return ""
	}
	return " // " + text
}

func descriptorType(m *Member) string {
	switch {
	case m.Flag != "":
		return "Flag"
	case m.Kind.Text():
		return "string"
	}
	switch m.Kind {
	case Bool:
		return "Flag"
	case U8, I32, PID:
		return "int"
	case U32:
		return "uint32"
	case I64:
		return "int64"
	case U64, Size:
		return "uint64"
	}
	return "Pointer"
}
