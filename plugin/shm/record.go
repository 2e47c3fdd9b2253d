// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"
)

// EventType is an event type of NCCL's profiler API: the number of its bit in the activation mask
// (ncclProfileGroup = 1<<EventGroup, and so on).
type EventType uint8

// Event types. EventContext marks handles of contexts, which share number 15 with KernelPhase and
// differ by ContextBit.
const (
	EventGroup EventType = iota
	EventColl
	EventP2p
	EventProxyOp
	EventProxyStep
	EventProxyCtrl
	EventKernelCh
	EventNetPlugin
	EventGroupApi
	EventCollApi
	EventP2pApi
	EventKernelLaunch
	EventCeColl
	EventCeSync
	EventCeBatch
	EventKernelPhase
)

// EventNames are NCCL's names of the event types without the prefix ncclProfile, indexed by type.
var EventNames = [TypeCount]string{
	"Group", "Coll", "P2p", "ProxyOp", "ProxyStep", "ProxyCtrl", "KernelCh", "NetPlugin",
	"GroupApi", "CollApi", "P2pApi", "KernelLaunch", "CeColl", "CeSync", "CeBatch", "KernelPhase",
}

// ByName maps the numbers that are not zero to the names of their types.
func ByName(n *[TypeCount]uint64) map[string]uint64 {
	out := make(map[string]uint64)
	for t, n := range n {
		if n > 0 {
			out[EventType(t).String()] = n
		}
	}
	return out
}

func (t EventType) String() string {
	if int(t) < len(EventNames) {
		return EventNames[t]
	}
	return fmt.Sprintf("EventType(%d)", uint8(t))
}

// apiTypes is how many event types each version of the profiler API has.
var apiTypes = [...]uint{1: 6, 2: 6, 3: 8, 4: 8, 5: 12, 6: 15, 7: 16}

// KnownTypes returns the event types (bits) that a version of NCCL's profiler API has. Others must not be
// asked for: in another vendor's v6, bit 15 is something else.
func KnownTypes(apiVersion int) uint32 {
	if apiVersion < 1 {
		return 0
	}
	return 1<<apiTypes[min(apiVersion, len(apiTypes)-1)] - 1
}

// RecordKind says what a record is about.
type RecordKind uint8

// Record kinds of plugin/shm.h.
const (
	RecordThread   RecordKind = 1 // first in a ring, and again whenever its owner changes
	RecordStart    RecordKind = 2
	RecordStop     RecordKind = 3
	RecordState    RecordKind = 4
	RecordInit     RecordKind = 5 // Aux: communicator index
	RecordFinalize RecordKind = 6 // Aux: communicator index
	RecordMark     RecordKind = 7 // the application's own; Mark, MarkText
	RecordEdge     RecordKind = 8 // Aux: communicator index; Arg: ordinal of the first operation that is chosen
	// otherwise than those before it; FlagInside: from here on they are recorded
	RecordBefore RecordKind = 9 // record mode; Handle: the event started next in this ring; Arg: what *eHandle held before

	RecordCupti      RecordKind = 10 // an activity record of CUPTI's: Activity, ActivityName; Arg: cuptiGetVersion
	RecordCuptiClock RecordKind = 11 // Handle: cuptiGetTimestamp at Ticks; Arg: how many ticks reading it took; Real

	RecordScorepThread RecordKind = 12 // Aux: tid; Arg: number of a Score-P location that it recorded at
	RecordMask         RecordKind = 13 // Aux: the types asked for that NCCL tells now; Arg: those that it told before
)

var recordKindNames = [...]string{"", "Thread", "Start", "Stop", "State", "Init", "Finalize", "Mark", "Edge", "Before", "Cupti", "CuptiClock", "ScorepThread", "Mask"}

// Mark is what a RecordMark says.
type Mark uint8

// Marks of plugin/shm.h.
const (
	MarkPhaseBegin Mark = 0
	MarkPhaseEnd   Mark = 1 // without text
	MarkPoint      Mark = 2
)

func (k RecordKind) String() string {
	if k >= RecordThread && int(k) < len(recordKindNames) {
		return recordKindNames[k]
	}
	return fmt.Sprintf("RecordKind(%d)", uint8(k))
}

// RecordFlags are bits of a record; each is defined for the types named.
type RecordFlags uint8

// Record flags of plugin/shm.h.
const (
	FlagGraph           RecordFlags = 1  // graphCaptured
	FlagHasArg          RecordFlags = 2  // STATE: NCCL passed an argument that this state defines
	FlagSym             RecordFlags = 4  // Coll: isSymColl (API v7)
	FlagSend            RecordFlags = 8  // ProxyOp: isSend; NetPlugin socket: op is send
	FlagComplete        RecordFlags = 16 // CeSync: isComplete; CeColl: intraBatchSync; CeBatch: useIntraSync
	FlagKnownNet        RecordFlags = 32 // NetPlugin: the descriptor was of a known kind and was read
	FlagUnknownChannels RecordFlags = 64 // P2p: the number of channels is not known (API v4)

	FlagInside RecordFlags = 1 // RecordEdge: operations are recorded from here on
	FlagReplay RecordFlags = 2 // RecordEdge: the ordinal counts what replayed graphs bring; else calls
)

// stateNames are the state values of NCCL's profiler API (one enumeration for all API versions)
// without the prefix ncclProfiler and version suffixes.
var stateNames = [...]string{
	"ProxyOpSendPosted", "ProxyOpSendRemFifoWait", "ProxyOpSendTransmitted", "ProxyOpSendDone",
	"ProxyOpRecvPosted", "ProxyOpRecvReceived", "ProxyOpRecvTransmitted", "ProxyOpRecvDone",
	"ProxyStepSendGPUWait", "ProxyStepSendWait",
	"ProxyStepRecvWait", "ProxyStepRecvFlushWait", "ProxyStepRecvGPUWait",
	"ProxyCtrlIdle", "ProxyCtrlActive", "ProxyCtrlSleep", "ProxyCtrlWakeup", "ProxyCtrlAppend", "ProxyCtrlAppendEnd",
	"ProxyOpInProgress", "ProxyStepSendPeerWait", "NetPluginUpdate", "KernelChStop",
	"GroupStartApiStop", "GroupEndApiStart",
	"CeCollStart", "CeCollComplete", "CeSyncStart", "CeSyncComplete", "CeBatchStart", "CeBatchComplete",
	"KernelPhaseStop",
}

// StateName names a state value of recordEventState, such as "ProxyStepSendWait".
func StateName(state uint32) string {
	if state < uint32(len(stateNames)) {
		return stateNames[state]
	}
	return fmt.Sprintf("State(%d)", state)
}

// Record is one decoded record. It is flat, so that one variable can be reused for all of them;
// fields that a record's type does not have are zero. Strings stay valid after the next decode.
type Record struct {
	Ticks  uint64
	Kind   RecordKind
	Type   EventType // of stops and states: the type in the handle
	Flags  RecordFlags
	Aux    uint32 // START, INIT, FINALIZE, EDGE: communicator index or None; STATE: state value; THREAD: tid
	Handle uint64 // START, STOP, STATE: the event
	Arg    uint64 // START: parent handle; STATE: the argument's bits, if FlagHasArg

	// The payload of starts, as NCCL's descriptor had it.
	Count, Stream, UserTag       uint64
	Seq, SendBuff, RecvBuff      uint64
	ParentGroup                  uint64 // handle of the Group event
	Context                      uint64 // as given: another process's with PXN
	PTimer                       uint64 // the GPU's clock
	Length, WrID, Bytes          uint64
	NetID                        int64 // kind and version of the network plugin's descriptor
	Func, Datatype               string
	Algo, Proto                  string
	KernelVariant                string
	SyncStrategy                 string
	PhaseName                    string
	GroupDepth                   int32
	Root, Rank, Peer             int32 // Root of P2pApi: −1
	PID, NSteps, ChunkSize, Step int32
	NRanks, NumOps               int32
	Opcode, QP, DeviceOrFD       int32
	BatchSize, NumBatches, CeSeq uint32
	NChannels, NWarps            uint8
	Channel, Phase               uint8
	TID                          int32  // THREAD
	ThreadName                   string // THREAD: at the thread's first callback
	Steps                        int32  // STATE: steps of ProxyOp's states 0 … 7
	Data                         uint64 // NetPlugin: the descriptor's address, a value
	Mark                         Mark   // MARK
	MarkText                     string // MARK: the phase's or the point's name
	Real                         uint64 // CUPTICLOCK: CLOCK_REALTIME (ns)
	Activity                     []byte // CUPTI: the record as it lay in CUPTI's buffer; a copy
	ActivityName                 string // CUPTI: what the record's pointer to a name points to
}

// Tag is the process tag in a handle or context.
func Tag(handle uint64) uint16 { return uint16(handle >> TagShift) }

// TypeOf is the event type in a handle. Contexts have EventKernelPhase's number and ContextBit.
func TypeOf(handle uint64) EventType { return EventType(handle >> TypeShift & 15) }

// width says how a field lies in a record.
type width uint8

const (
	wide   width = iota // 8 bytes
	word                // 4 bytes
	octet               // 1 byte
	text                // 4 bytes: string id
	inline              // 16 bytes, NUL-padded
)

// field is one payload field: where it lies in the C record and in Record.
type field struct {
	name string // in the C struct
	from uintptr
	w    width
	to   uintptr
}

// recordLayout is one row of the table that drives decoding.
type recordLayout struct {
	name   string // of the C struct, "record" for a bare head
	units  uint8
	fields []field
}

// rec gives the offsets of Record's fields.
var rec Record

// starts describes the records of kind START by event type (plugin/shm.h, "records").
var starts = [TypeCount]recordLayout{
	EventGroup: {"record", 1, nil},
	EventColl: {"coll", 4, []field{
		{"seq", 32, wide, unsafe.Offsetof(rec.Seq)},
		{"count", 40, wide, unsafe.Offsetof(rec.Count)},
		{"send_buff", 48, wide, unsafe.Offsetof(rec.SendBuff)},
		{"recv_buff", 56, wide, unsafe.Offsetof(rec.RecvBuff)},
		{"parent_group", 64, wide, unsafe.Offsetof(rec.ParentGroup)},
		{"user_tag", 72, wide, unsafe.Offsetof(rec.UserTag)},
		{"func", 80, text, unsafe.Offsetof(rec.Func)},
		{"datatype", 84, text, unsafe.Offsetof(rec.Datatype)},
		{"algo", 88, text, unsafe.Offsetof(rec.Algo)},
		{"proto", 92, text, unsafe.Offsetof(rec.Proto)},
		{"kernel_variant", 96, text, unsafe.Offsetof(rec.KernelVariant)},
		{"root", 100, word, unsafe.Offsetof(rec.Root)},
		{"rank", 104, word, unsafe.Offsetof(rec.Rank)},
		{"nchannels", 108, octet, unsafe.Offsetof(rec.NChannels)},
		{"nwarps", 109, octet, unsafe.Offsetof(rec.NWarps)},
	}},
	EventP2p: {"p2p", 3, []field{
		{"count", 32, wide, unsafe.Offsetof(rec.Count)},
		{"buff", 40, wide, unsafe.Offsetof(rec.SendBuff)},
		{"parent_group", 48, wide, unsafe.Offsetof(rec.ParentGroup)},
		{"user_tag", 56, wide, unsafe.Offsetof(rec.UserTag)},
		{"func", 64, text, unsafe.Offsetof(rec.Func)},
		{"datatype", 68, text, unsafe.Offsetof(rec.Datatype)},
		{"peer", 72, word, unsafe.Offsetof(rec.Peer)},
		{"rank", 76, word, unsafe.Offsetof(rec.Rank)},
		{"nchannels", 80, octet, unsafe.Offsetof(rec.NChannels)},
	}},
	EventProxyOp: {"proxy_op", 3, []field{
		{"context", 32, wide, unsafe.Offsetof(rec.Context)},
		{"pid", 40, word, unsafe.Offsetof(rec.PID)},
		{"peer", 44, word, unsafe.Offsetof(rec.Peer)},
		{"nsteps", 48, word, unsafe.Offsetof(rec.NSteps)},
		{"chunk_size", 52, word, unsafe.Offsetof(rec.ChunkSize)},
		{"rank", 56, word, unsafe.Offsetof(rec.Rank)},
		{"channel", 60, octet, unsafe.Offsetof(rec.Channel)},
	}},
	EventProxyStep: {"proxy_step", 2, []field{
		{"context", 32, wide, unsafe.Offsetof(rec.Context)},
		{"step", 40, word, unsafe.Offsetof(rec.Step)},
		{"rank", 44, word, unsafe.Offsetof(rec.Rank)},
	}},
	EventProxyCtrl: {"record", 1, nil},
	EventKernelCh: {"kernel_ch", 2, []field{
		{"ptimer", 32, wide, unsafe.Offsetof(rec.PTimer)},
		{"channel", 40, octet, unsafe.Offsetof(rec.Channel)},
	}},
	EventNetPlugin: {"net_plugin", 3, []field{
		{"id", 32, wide, unsafe.Offsetof(rec.NetID)},
		{"context", 40, wide, unsafe.Offsetof(rec.Context)},
		{"length", 48, wide, unsafe.Offsetof(rec.Length)},
		{"wr_id", 56, wide, unsafe.Offsetof(rec.WrID)},
		{"device_or_fd", 64, word, unsafe.Offsetof(rec.DeviceOrFD)},
		{"opcode", 68, word, unsafe.Offsetof(rec.Opcode)},
		{"qp", 72, word, unsafe.Offsetof(rec.QP)},
		{"rank", 76, word, unsafe.Offsetof(rec.Rank)},
		{"data", 80, wide, unsafe.Offsetof(rec.Data)},
	}},
	EventGroupApi: {"group_api", 2, []field{
		{"group_depth", 32, word, unsafe.Offsetof(rec.GroupDepth)},
	}},
	EventCollApi: apiCall,
	EventP2pApi:  apiCall,
	EventKernelLaunch: {"kernel_launch", 2, []field{
		{"stream", 32, wide, unsafe.Offsetof(rec.Stream)},
	}},
	EventCeColl: {"ce_coll", 4, []field{
		{"seq", 32, wide, unsafe.Offsetof(rec.Seq)},
		{"count", 40, wide, unsafe.Offsetof(rec.Count)},
		{"send_buff", 48, wide, unsafe.Offsetof(rec.SendBuff)},
		{"recv_buff", 56, wide, unsafe.Offsetof(rec.RecvBuff)},
		{"stream", 64, wide, unsafe.Offsetof(rec.Stream)},
		{"user_tag", 72, wide, unsafe.Offsetof(rec.UserTag)},
		{"func", 80, text, unsafe.Offsetof(rec.Func)},
		{"datatype", 84, text, unsafe.Offsetof(rec.Datatype)},
		{"sync_strategy", 88, text, unsafe.Offsetof(rec.SyncStrategy)},
		{"batch_size", 92, word, unsafe.Offsetof(rec.BatchSize)},
		{"num_batches", 96, word, unsafe.Offsetof(rec.NumBatches)},
		{"ce_seq", 100, word, unsafe.Offsetof(rec.CeSeq)},
		{"root", 104, word, unsafe.Offsetof(rec.Root)},
		{"rank", 108, word, unsafe.Offsetof(rec.Rank)},
	}},
	EventCeSync: {"ce_sync", 2, []field{
		{"nranks", 32, word, unsafe.Offsetof(rec.NRanks)},
		{"rank", 36, word, unsafe.Offsetof(rec.Rank)},
	}},
	EventCeBatch: {"ce_batch", 2, []field{
		{"bytes", 32, wide, unsafe.Offsetof(rec.Bytes)},
		{"num_ops", 40, word, unsafe.Offsetof(rec.NumOps)},
		{"rank", 44, word, unsafe.Offsetof(rec.Rank)},
	}},
	EventKernelPhase: {"kernel_phase", 2, []field{
		{"ptimer", 32, wide, unsafe.Offsetof(rec.PTimer)},
		{"name", 40, text, unsafe.Offsetof(rec.PhaseName)},
		{"channel", 44, octet, unsafe.Offsetof(rec.Channel)},
		{"phase", 45, octet, unsafe.Offsetof(rec.Phase)},
	}},
}

var apiCall = recordLayout{"coll_api", 3, []field{
	{"count", 32, wide, unsafe.Offsetof(rec.Count)},
	{"stream", 40, wide, unsafe.Offsetof(rec.Stream)},
	{"user_tag", 48, wide, unsafe.Offsetof(rec.UserTag)},
	{"func", 56, text, unsafe.Offsetof(rec.Func)},
	{"datatype", 60, text, unsafe.Offsetof(rec.Datatype)},
	{"root", 64, word, unsafe.Offsetof(rec.Root)},
}}

// others describes the records of the other kinds.
var others = [...]recordLayout{
	RecordThread: {"thread_record", 2, []field{
		{"head.aux", 12, word, unsafe.Offsetof(rec.TID)},
		{"name", 32, inline, unsafe.Offsetof(rec.ThreadName)},
	}},
	RecordStart:    {},
	RecordStop:     {"record", 1, nil},
	RecordState:    {"record", 1, nil},
	RecordInit:     {"record", 1, nil},
	RecordFinalize: {"record", 1, nil},
	RecordMark: {"record", 1, []field{
		{"aux", 12, text, unsafe.Offsetof(rec.MarkText)},
		{"type", 9, octet, unsafe.Offsetof(rec.Mark)},
	}},
	RecordEdge:   {"record", 1, nil},
	RecordBefore: {"record", 1, nil},
	RecordCupti: {"cupti", 1, []field{
		{"head.aux", 12, text, unsafe.Offsetof(rec.ActivityName)},
	}},
	RecordCuptiClock: {"cupti_clock", 2, []field{
		{"real", 32, wide, unsafe.Offsetof(rec.Real)},
	}},
	RecordScorepThread: {"record", 1, nil},
	RecordMask:         {"record", 1, nil},
}

// proxyOpStates is the number of ProxyOp's own states of API v1 … v3: their Aux holds the steps, too.
const proxyOpStates = 8

// layoutOf finds the row for a record; nil if there is none.
func layoutOf(kind RecordKind, typ EventType) *recordLayout {
	typed := kind == RecordStart || kind == RecordStop || kind == RecordState
	switch {
	case typed && int(typ) >= TypeCount:
		return nil
	case kind == RecordStart:
		return &starts[typ]
	case kind >= RecordThread && int(kind) < len(others):
		return &others[kind]
	}
	return nil
}

// ErrRecord is wrapped by Decode's errors.
var ErrRecord = errors.New("not a record")

// Decode reads the record at the start of b into r and returns its length in bytes. Strings are
// looked up in s (an unknown id gives "", and is counted there). Bytes that are no record give an error
// that wraps ErrRecord; who takes a record may rely on its kind, on the type of a start, stop or state, and on nothing
// else. It allocates only for strings not seen before and for activity records.
func Decode(b []byte, s *Strings, r *Record) (int, error) {
	if len(b) < Unit {
		return 0, fmt.Errorf("%w: %d bytes", ErrRecord, len(b))
	}
	kind, typ := RecordKind(b[8]), EventType(b[9])
	l := layoutOf(kind, typ)
	if l == nil {
		return 0, fmt.Errorf("%w: kind %d, type %d", ErrRecord, kind, typ)
	}
	size := int(b[10]) * Unit
	if b[10] < l.units || size > len(b) {
		return 0, fmt.Errorf("%w: %s %s of %d units, %d bytes left", ErrRecord, typ, kind, b[10], len(b))
	}
	*r = Record{
		Ticks:  binary.NativeEndian.Uint64(b),
		Kind:   kind,
		Type:   typ,
		Flags:  RecordFlags(b[11]),
		Aux:    binary.NativeEndian.Uint32(b[12:]),
		Handle: binary.NativeEndian.Uint64(b[16:]),
		Arg:    binary.NativeEndian.Uint64(b[24:]),
	}
	b = b[:size]
	for i := range l.fields {
		f := &l.fields[i]
		// The offset comes from unsafe.Offsetof of a field of r's type with this width; a test holds
		// the table to that.
		to := unsafe.Add(unsafe.Pointer(r), f.to)
		switch f.w {
		case wide:
			*(*uint64)(to) = binary.NativeEndian.Uint64(b[f.from:])
		case word:
			*(*uint32)(to) = binary.NativeEndian.Uint32(b[f.from:])
		case octet:
			*(*uint8)(to) = b[f.from]
		case text:
			*(*string)(to) = s.Lookup(binary.NativeEndian.Uint32(b[f.from:]))
		case inline:
			*(*string)(to) = s.intern(b[f.from : f.from+16])
		}
	}
	switch kind {
	case RecordState:
		if r.Aux&0xff < proxyOpStates {
			r.Aux, r.Steps = r.Aux&0xff, int32(r.Aux>>8)
		}
	case RecordMark:
		r.Aux, r.Type = 0, 0
	case RecordCupti:
		if r.Handle > uint64(size-Unit) {
			return 0, fmt.Errorf("%w: %s with %d bytes in %d units", ErrRecord, kind, r.Handle, b[10])
		}
		r.Activity = bytes.Clone(b[Unit : Unit+r.Handle])
		r.Aux, r.Handle = 0, 0
	}
	return size, nil
}

// AppendRecord encodes r behind b: the inverse of Decode, for programs that make recordings. id gives
// the ids of strings.
func AppendRecord(b []byte, r *Record, id func(string) uint32) []byte {
	l := layoutOf(r.Kind, r.Type)
	if l == nil {
		panic(fmt.Sprintf("shm: no record of kind %d, type %d", r.Kind, r.Type))
	}
	start := len(b)
	units := int(l.units) + (len(r.Activity)+Unit-1)/Unit
	b = append(b, make([]byte, units*Unit)...)
	out := b[start:]
	binary.NativeEndian.PutUint64(out, r.Ticks)
	out[8], out[9], out[10], out[11] = uint8(r.Kind), uint8(r.Type), uint8(units), uint8(r.Flags)
	binary.NativeEndian.PutUint32(out[12:], r.Aux)
	binary.NativeEndian.PutUint64(out[16:], r.Handle)
	binary.NativeEndian.PutUint64(out[24:], r.Arg)
	if r.Kind == RecordState && r.Aux < proxyOpStates {
		binary.NativeEndian.PutUint32(out[12:], r.Aux|uint32(r.Steps)<<8)
	}
	if r.Kind == RecordCupti {
		binary.NativeEndian.PutUint64(out[16:], uint64(len(r.Activity)))
		copy(out[Unit:], r.Activity)
	}
	for _, f := range l.fields {
		from := unsafe.Add(unsafe.Pointer(r), f.to)
		switch f.w {
		case wide:
			binary.NativeEndian.PutUint64(out[f.from:], *(*uint64)(from))
		case word:
			binary.NativeEndian.PutUint32(out[f.from:], *(*uint32)(from))
		case octet:
			out[f.from] = *(*uint8)(from)
		case text:
			binary.NativeEndian.PutUint32(out[f.from:], id(*(*string)(from)))
		case inline:
			copy(out[f.from:f.from+15], *(*string)(from))
		}
	}
	return b
}
