// SPDX-License-Identifier: Apache-2.0
// Code generated from plugin/api/generate/table.go by make generate; DO NOT EDIT.

package shm

import "unsafe"

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

// starts describes the records of kind START by event type.
var starts = [TypeCount]recordLayout{
	EventGroup: {"record", 1, nil},
	EventColl: {"coll", 4, []field{
		{"seq", 32, wide, unsafe.Offsetof(rec.Seq)},
		{"send_buff", 40, wide, unsafe.Offsetof(rec.SendBuff)},
		{"recv_buff", 48, wide, unsafe.Offsetof(rec.RecvBuff)},
		{"count", 56, wide, unsafe.Offsetof(rec.Count)},
		{"parent_group", 64, wide, unsafe.Offsetof(rec.ParentGroup)},
		{"user_tag", 72, wide, unsafe.Offsetof(rec.UserTag)},
		{"func", 80, text, unsafe.Offsetof(rec.Func)},
		{"root", 84, word, unsafe.Offsetof(rec.Root)},
		{"datatype", 88, text, unsafe.Offsetof(rec.Datatype)},
		{"algo", 92, text, unsafe.Offsetof(rec.Algo)},
		{"proto", 96, text, unsafe.Offsetof(rec.Proto)},
		{"kernel_variant", 100, text, unsafe.Offsetof(rec.KernelVariant)},
		{"rank", 104, word, unsafe.Offsetof(rec.Rank)},
		{"nchannels", 108, octet, unsafe.Offsetof(rec.NChannels)},
		{"nwarps", 109, octet, unsafe.Offsetof(rec.NWarps)},
	}},
	EventP2p: {"p2p", 3, []field{
		{"send_buff", 32, wide, unsafe.Offsetof(rec.SendBuff)},
		{"count", 40, wide, unsafe.Offsetof(rec.Count)},
		{"parent_group", 48, wide, unsafe.Offsetof(rec.ParentGroup)},
		{"user_tag", 56, wide, unsafe.Offsetof(rec.UserTag)},
		{"func", 64, text, unsafe.Offsetof(rec.Func)},
		{"datatype", 68, text, unsafe.Offsetof(rec.Datatype)},
		{"peer", 72, word, unsafe.Offsetof(rec.Peer)},
		{"rank", 76, word, unsafe.Offsetof(rec.Rank)},
		{"nchannels", 80, octet, unsafe.Offsetof(rec.NChannels)},
	}},
	EventProxyOp: {"proxy_op", 2, []field{
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
		{"context", 32, wide, unsafe.Offsetof(rec.Context)},
		{"net_id", 40, wide, unsafe.Offsetof(rec.NetID)},
		{"data", 48, wide, unsafe.Offsetof(rec.Data)},
		{"length", 56, wide, unsafe.Offsetof(rec.Length)},
		{"wr_id", 64, wide, unsafe.Offsetof(rec.WrID)},
		{"device_or_fd", 72, word, unsafe.Offsetof(rec.DeviceOrFD)},
		{"opcode", 76, word, unsafe.Offsetof(rec.Opcode)},
		{"qp", 80, word, unsafe.Offsetof(rec.QP)},
		{"rank", 84, word, unsafe.Offsetof(rec.Rank)},
	}},
	EventGroupApi: {"group_api", 2, []field{
		{"group_depth", 32, word, unsafe.Offsetof(rec.GroupDepth)},
	}},
	EventCollApi: {"coll_api", 3, []field{
		{"count", 32, wide, unsafe.Offsetof(rec.Count)},
		{"stream", 40, wide, unsafe.Offsetof(rec.Stream)},
		{"user_tag", 48, wide, unsafe.Offsetof(rec.UserTag)},
		{"func", 56, text, unsafe.Offsetof(rec.Func)},
		{"datatype", 60, text, unsafe.Offsetof(rec.Datatype)},
		{"root", 64, word, unsafe.Offsetof(rec.Root)},
	}},
	EventP2pApi: {"coll_api", 3, []field{
		{"count", 32, wide, unsafe.Offsetof(rec.Count)},
		{"stream", 40, wide, unsafe.Offsetof(rec.Stream)},
		{"user_tag", 48, wide, unsafe.Offsetof(rec.UserTag)},
		{"func", 56, text, unsafe.Offsetof(rec.Func)},
		{"datatype", 60, text, unsafe.Offsetof(rec.Datatype)},
		{"root", 64, word, unsafe.Offsetof(rec.Root)},
	}},
	EventKernelLaunch: {"kernel_launch", 2, []field{
		{"stream", 32, wide, unsafe.Offsetof(rec.Stream)},
	}},
	EventCeColl: {"ce_coll", 4, []field{
		{"seq", 32, wide, unsafe.Offsetof(rec.Seq)},
		{"send_buff", 40, wide, unsafe.Offsetof(rec.SendBuff)},
		{"recv_buff", 48, wide, unsafe.Offsetof(rec.RecvBuff)},
		{"count", 56, wide, unsafe.Offsetof(rec.Count)},
		{"stream", 64, wide, unsafe.Offsetof(rec.Stream)},
		{"user_tag", 72, wide, unsafe.Offsetof(rec.UserTag)},
		{"func", 80, text, unsafe.Offsetof(rec.Func)},
		{"root", 84, word, unsafe.Offsetof(rec.Root)},
		{"datatype", 88, text, unsafe.Offsetof(rec.Datatype)},
		{"sync_strategy", 92, text, unsafe.Offsetof(rec.SyncStrategy)},
		{"batch_size", 96, word, unsafe.Offsetof(rec.BatchSize)},
		{"num_batches", 100, word, unsafe.Offsetof(rec.NumBatches)},
		{"ce_seq", 104, word, unsafe.Offsetof(rec.CeSeq)},
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
		{"phase_name", 40, text, unsafe.Offsetof(rec.PhaseName)},
		{"channel", 44, octet, unsafe.Offsetof(rec.Channel)},
		{"phase", 45, octet, unsafe.Offsetof(rec.Phase)},
	}},
}
