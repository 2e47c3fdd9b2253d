// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// The types of the table (table.go), and what follows from it. Offsets and sizes are bytes, of 64-bit Linux.

// Version is one version of the API.
type Version struct {
	Number  int
	Release string // of NCCL, the first that has it
	Source  string // the header that was compiled for the sizes and offsets, in NCCL's repository
	Descr   int    // size of the descriptor
	Args    int    // size of the union of a state's arguments
	Type    int    // size of the descriptor's type
	Init    string // what init takes behind the context
}

// Kind is what a descriptor's member is.
type Kind uint8

// Kinds of members.
const (
	U8 Kind = iota
	Bool
	I32
	PID // of a process
	U32
	I64
	U64
	Size
	Hash    // of a communicator's id
	Pointer // of a buffer or a stream: a value
	ConstPointer
	Handle  // of another event
	NetData // a network plugin's own descriptor
	String
	Func // the last four are strings, numbers in version 1
	Datatype
	Algo
	Proto
)

// kindNames are the kinds' names in package api.
var kindNames = [...]string{"U8", "Bool", "I32", "PID", "U32", "I64", "U64", "Size", "Hash", "Pointer", "ConstPointer",
	"Handle", "NetData", "String", "Func", "Datatype", "Algo", "Proto"}

// CType is how C declares a member of this kind, Size how large it is.
func (k Kind) CType() string {
	return [...]string{"uint8_t ", "uint8_t ", "int ", "int32_t ", "uint32_t ", "int64_t ", "uint64_t ", "size_t ",
		"uint64_t ", "void *",
		"const void *", "void *", "void *", "const char *", "const char *", "const char *", "const char *",
		"const char *"}[k]
}

// Size is the size of a member of this kind.
func (k Kind) Size() int {
	switch k {
	case U8, Bool:
		return 1
	case I32, PID, U32:
		return 4
	}
	return 8
}

// Text reports whether members of this kind are names.
func (k Kind) Text() bool { return k >= String }

// Place is where versions from Since on have a member, until the next place; Offset 0: nowhere any more.
type Place struct {
	Since, Offset int
	Name          string // if it is another one than the member's
}

// Member is a member of an event's descriptor, or of its record alone.
type Member struct {
	Name string
	Kind Kind
	At   []Place // by version; empty: it is in the record alone
	Go   string  // the field of the record that has it, by its name in shm.Record; "": it is not recorded, or as a flag
	Flag string  // the flag of the record that is set if it is not 0: its name in enum ncclotf2_record_flags
	Doc  string

	Trusted int    // the first version from which on it can be believed; 0: all that have it
	Before  string // what the record has in older versions; "": 0
	RCCL    bool   // RCCL's version 6 has it
}

// Event is an event type. Its number is its place in Events.
type Event struct {
	Name    string // without ncclProfile
	Doc     string
	Member  string   // the part of the descriptor's union
	Since   int      // version
	Start   []string // NCCL calls startEvent if one of these types is in the mask
	Ranked  bool     // the descriptor's rank is set
	Foreign bool     // its context may be another process's (PXN), and is recorded

	Preset string // of NCCL_OTF2_EVENTS, the smallest that has it
	Class  string // enum ncclotf2_class: when memory runs out, what says least goes first
	Depth  int    // of nesting: at one time, less begins first and ends last
	Parent bool   // others have it as their parent
	Unsure int    // the number of channels is not told up to this version
	Hook   string // function of event.h that completes the record

	NeedsParent  bool // not started below NULL
	NeededParent bool // … up to NCCL 2.27
	NullCalls    bool // stop and states come with the handle NULL, too
	StaleSlot    bool // the slot keeps its handle after the stop

	Members []Member
}

// Argument is what a state's argument holds.
type Argument uint8

// Arguments of states.
const (
	None Argument = iota
	TransSize
	AppendedOps
	NetArg
	GPUTimer
	OpProgress // transSize and steps, to version 3
)

// argumentNames are the arguments' names in package api.
var argumentNames = [...]string{"None", "TransSize", "AppendedOps", "NetArg", "GPUTimer", "OpProgress"}

// State is a state of recordEventState. Its number is its place in States.
type State struct {
	Name     string // without ncclProfiler and its version
	Since    int    // version
	Argument Argument
	Doc      string
}

// Minor is the release's second number: NCCL's first is 2.
func (v Version) Minor() int {
	second, _, _ := strings.Cut(strings.TrimPrefix(v.Release, "2."), ".")
	minor, err := strconv.Atoi(second)
	if err != nil {
		panic("release " + v.Release)
	}
	return minor
}

// Newest is the newest version.
func Newest() Version { return Versions[len(Versions)-1] }

// Number is an event type's number by its name, −1 if there is none.
func Number(name string) int {
	return slices.IndexFunc(Events, func(e Event) bool { return e.Name == name })
}

// Known are the event types (bits) of a version: of older ones than the first none, of newer ones than the newest its.
func Known(version int) (mask uint32) {
	for i, e := range Events {
		if version >= e.Since {
			mask |= 1 << i
		}
	}
	return mask
}

// Presets are the names of the presets, each of which holds what the ones before it do.
var Presets = []string{"light", "gpu", "net", "all"}

// Place is where a version has the member.
func (m *Member) Place(version int) (p Place, ok bool) {
	for _, at := range m.At {
		if at.Since <= version {
			p = at
		}
	}
	p.Name = cmp.Or(p.Name, m.Name)
	return p, p.Offset > 0
}

// Since is the first version that has the member.
func (m *Member) Since() int {
	if len(m.At) == 0 {
		return 0
	}
	return m.At[0].Since
}

// until is the last version that has the member, 0 if the newest does.
func (m *Member) until() int {
	for _, p := range m.At {
		if p.Offset == 0 {
			return p.Since - 1
		}
	}
	return 0
}

// Always reports whether all versions that have the event have the member.
func (e *Event) Always(m *Member) bool {
	for _, v := range Versions {
		if _, ok := m.Place(v.Number); !ok && v.Number >= e.Since {
			return false
		}
	}
	return true
}

// Field is a field of an event's record behind the head, as C and Go have it.
type Field struct {
	Member *Member
	Name   string // in C
	Go     string
	CType  string
	Offset int
	Size   int // in the record: 4 for names, which are string ids there
}

// Unit is what records are multiples of, and the size of their head.
const Unit = 32

// The fields that several events have beside their members.
var (
	contextField = Member{Go: "Context", Kind: Pointer, Doc: "as given: another process's with PXN"}
	rankField    = Member{Go: "Rank", Kind: I32, Doc: "the descriptor's"}
)

// Record lays out an event's record: the largest fields first, in the order of the members.
func (e *Event) Record() (fields []Field, units int) {
	members := make([]*Member, 0, len(e.Members)+2)
	if e.Foreign {
		members = append(members, &contextField)
	}
	for i := range e.Members {
		if e.Members[i].Go != "" {
			members = append(members, &e.Members[i])
		}
	}
	if e.Ranked {
		members = append(members, &rankField)
	}
	end := Unit
	for _, size := range []int{8, 4, 1} {
		for _, m := range members {
			f := Field{m, snake(m.Go), m.Go, strings.TrimSuffix(m.Kind.CType(), " "), end, m.Kind.Size()}
			switch {
			case m.Kind.Text():
				f.CType, f.Size = "uint32_t", 4
			case f.Size == 8 && m.Kind != I64:
				f.CType = "uint64_t"
			case f.Size == 4 && m.Kind != U32:
				f.CType = "int32_t"
			}
			if f.Size == size {
				fields = append(fields, f)
				end += size
			}
		}
	}
	return fields, (end + Unit - 1) / Unit
}

// RecordName names the struct of an event's record in C, and says whether the event is the first that has it: events
// whose records have the same fields share one, and those without fields are the bare head.
func RecordName(event int) (name string, first bool) {
	fields, _ := Events[event].Record()
	if len(fields) == 0 {
		return "record", false
	}
	for i := range event {
		other, _ := Events[i].Record()
		if slices.EqualFunc(fields, other, func(a, b Field) bool { return a.Name == b.Name && a.CType == b.CType }) {
			return snake(Events[i].Name), false
		}
	}
	return snake(Events[event].Name), true
}

// snake is a name in C's spelling: SendBuff is send_buff, NChannels nchannels, WrID wr_id. Names are ASCII; each start
// of the tool spells those of the whole table.
func snake(name string) string {
	upper := func(i int) bool { return i < len(name) && name[i] >= 'A' && name[i] <= 'Z' }
	lower := func(i int) bool { return i < len(name) && name[i] >= 'a' && name[i] <= 'z' }
	b := make([]byte, 0, 2*len(name))
	for i := range len(name) {
		c := name[i]
		if upper(i) {
			if i > 0 && (lower(i-1) || i > 1 && lower(i+1)) {
				b = append(b, '_')
			}
			c += 'a' - 'A'
		}
		b = append(b, c)
	}
	return string(b)
}

// Macro is a name in the spelling of C's constants: ProxyOp is PROXY_OP.
func Macro(name string) string { return strings.ToUpper(snake(name)) }
