// SPDX-License-Identifier: Apache-2.0
// Code generated from plugin/api/table.go by make generate; DO NOT EDIT.

package shm

// Event types of NCCL's profiler API.
const (
	EventGroup        EventType = 0  // a kernel plan's enqueueing
	EventColl         EventType = 1  // one collective of a plan
	EventP2p          EventType = 2  // one send or receive of a plan
	EventProxyOp      EventType = 3  // one channel's network transfers of an operation, in one direction
	EventProxyStep    EventType = 4  // one network transfer
	EventProxyCtrl    EventType = 5  // the progress thread's own activity
	EventKernelCh     EventType = 6  // one channel of a kernel on the GPU
	EventNetPlugin    EventType = 7  // what a network plugin reports under a ProxyStep
	EventGroupApi     EventType = 8  // an outermost group, or a call outside any
	EventCollApi      EventType = 9  // the call of a collective
	EventP2pApi       EventType = 10 // the call of a send or receive
	EventKernelLaunch EventType = 11 // the launch of a plan's kernel
	EventCeColl       EventType = 12 // a collective by copy engine
	EventCeSync       EventType = 13 // a synchronization of a CeColl
	EventCeBatch      EventType = 14 // a batch of copies of a CeColl
	EventKernelPhase  EventType = 15 // a part of a KernelCh
)

// TypeCount is how many event types there are, StateCount how many states.
const (
	TypeCount  = 16
	StateCount = 32
)

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
	Seq           uint64 // per communicator and function, from 0
	SendBuff      uint64
	RecvBuff      uint64
	Count         uint64
	ParentGroup   uint64 // handle of the Group event
	UserTag       uint64 // of the application
	Func          string
	Datatype      string
	Algo          string
	Proto         string
	KernelVariant string
	Context       uint64 // as given: another process's with PXN
	PTimer        uint64 // start, the GPU's clock
	NetID         int64  // kind in bits 16 to 31, version in bits 0 to 15
	Data          uint64 // address, which means nothing; what was there follows, where it is known
	Length        uint64
	WrID          uint64
	Stream        uint64
	SyncStrategy  string
	Bytes         uint64
	PhaseName     string
	Root          int32
	Rank          int32 // the descriptor's
	Peer          int32 // rank in the communicator
	PID           int32 // of the process whose operation it is
	NSteps        int32
	ChunkSize     int32 // bytes, the maximum per step
	Step          int32 // from 0 in each ProxyOp
	DeviceOrFD    int32
	Opcode        int32
	QP            int32
	GroupDepth    int32 // 1: a plain call
	BatchSize     uint32
	NumBatches    uint32
	CeSeq         uint32
	NRanks        int32
	NumOps        int32
	NChannels     uint8 // versions 1 to 3: a maximum
	NWarps        uint8
	Channel       uint8
	Phase         uint8

	// Of the other kinds, and of states.
	TID          int32  // THREAD
	ThreadName   string // THREAD: at the thread's first callback
	Steps        int32  // STATE: steps of ProxyOp's states 0 … 7
	Mark         Mark   // MARK
	MarkText     string // MARK: the phase's or the point's name
	Real         uint64 // CUPTICLOCK: CLOCK_REALTIME (ns)
	Activity     []byte // CUPTI: the record as it lay in CUPTI's buffer; a copy
	ActivityName string // CUPTI: what the record's pointer to a name points to
}
