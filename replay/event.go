// SPDX-License-Identifier: Apache-2.0

package replay

import "fmt"

// EventType is the number of an event type's bit in NCCL's activation mask.
type EventType uint8

// The event types of plugin interface version 6. Source: NCCL's nccl_profiler.h.
const (
	TypeGroup EventType = iota
	TypeColl
	TypeP2p
	TypeProxyOp
	TypeProxyStep
	TypeProxyCtrl
	TypeKernelCh
	TypeNetPlugin
	TypeGroupApi
	TypeCollApi
	TypeP2pApi
	TypeKernelLaunch
	TypeCeColl
	TypeCeSync
	TypeCeBatch
	typeCount
)

// Bit is the type's bit in the activation mask and in descriptors.
func (t EventType) Bit() uint64 { return 1 << t }

func (t EventType) String() string {
	if t < typeCount {
		return eventTypes[t].name
	}
	return fmt.Sprintf("event type %d", uint8(t))
}

// State is the second argument of recordEventState.
type State uint8

// The states that NCCL 2.28–2.30 emit.
const (
	StateProxyStepSendGPUWait   State = 8
	StateProxyStepSendWait      State = 9
	StateProxyStepRecvWait      State = 10
	StateProxyStepRecvFlushWait State = 11
	StateProxyStepRecvGPUWait   State = 12
	StateProxyCtrlIdle          State = 13
	StateProxyCtrlActive        State = 14
	StateProxyCtrlSleep         State = 15
	StateProxyCtrlWakeup        State = 16
	StateProxyCtrlAppend        State = 17
	StateProxyCtrlAppendEnd     State = 18
	StateProxyOpInProgress      State = 19
	StateProxyStepSendPeerWait  State = 20
	StateNetPluginUpdate        State = 21
	StateKernelChStop           State = 22
	StateGroupStartApiStop      State = 23
	StateGroupEndApiStart       State = 24

	stateCount = 31
)

func (s State) String() string {
	if int(s) < len(stateNames) && stateNames[s] != "" {
		return stateNames[s]
	}
	return fmt.Sprintf("state %d", uint8(s))
}

var stateNames = [...]string{
	StateProxyStepSendGPUWait:   "ProxyStepSendGPUWait",
	StateProxyStepSendWait:      "ProxyStepSendWait",
	StateProxyStepRecvWait:      "ProxyStepRecvWait",
	StateProxyStepRecvFlushWait: "ProxyStepRecvFlushWait",
	StateProxyStepRecvGPUWait:   "ProxyStepRecvGPUWait",
	StateProxyCtrlIdle:          "ProxyCtrlIdle",
	StateProxyCtrlActive:        "ProxyCtrlActive",
	StateProxyCtrlSleep:         "ProxyCtrlSleep",
	StateProxyCtrlWakeup:        "ProxyCtrlWakeup",
	StateProxyCtrlAppend:        "ProxyCtrlAppend",
	StateProxyCtrlAppendEnd:     "ProxyCtrlAppendEnd",
	StateProxyOpInProgress:      "ProxyOpInProgress",
	StateProxyStepSendPeerWait:  "ProxyStepSendPeerWait",
	StateNetPluginUpdate:        "NetPluginUpdate",
	StateKernelChStop:           "KernelChStop",
	StateGroupStartApiStop:      "GroupStartApiStop",
	StateGroupEndApiStart:       "GroupEndApiStart",
}

// fieldKind says how a descriptor's member is written in a program.
type fieldKind uint8

const (
	fieldNumber  fieldKind = iota
	fieldString            // const char *, may be NULL
	fieldPointer           // opaque
	fieldHandle            // another event's handle; its id is in the member <name>Id
	fieldNet               // a network plugin's own descriptor
	fieldPID               // a process id: the recording process's own becomes that of the playing one
)

type field struct {
	name string // in the recording's member "d"
	kind fieldKind
}

// eventTypes is indexed by EventType. The fields are in the order in which programs have them: that
// of the table in tests/fakenccl/events.c.
var eventTypes = [typeCount]struct {
	name   string
	descr  func() any // a new value of the type's Descr, as a pointer
	fields []field
}{
	TypeGroup: {"Group", func() any { return new(Group) }, nil},
	TypeColl: {"Coll", func() any { return new(Coll) }, []field{
		{"seqNumber", fieldNumber}, {"func", fieldString}, {"sendBuff", fieldPointer}, {"recvBuff", fieldPointer},
		{"count", fieldNumber}, {"root", fieldNumber}, {"datatype", fieldString}, {"nChannels", fieldNumber},
		{"nWarps", fieldNumber}, {"algo", fieldString}, {"proto", fieldString}, {"parentGroup", fieldHandle}}},
	TypeP2p: {"P2p", func() any { return new(P2p) }, []field{
		{"func", fieldString}, {"buff", fieldPointer}, {"datatype", fieldString}, {"count", fieldNumber},
		{"peer", fieldNumber}, {"nChannels", fieldNumber}, {"parentGroup", fieldHandle}}},
	TypeProxyOp: {"ProxyOp", func() any { return new(ProxyOp) }, []field{
		{"pid", fieldPID}, {"channelId", fieldNumber}, {"peer", fieldNumber}, {"nSteps", fieldNumber},
		{"chunkSize", fieldNumber}, {"isSend", fieldNumber}}},
	TypeProxyStep: {"ProxyStep", func() any { return new(ProxyStep) }, []field{{"step", fieldNumber}}},
	TypeProxyCtrl: {"ProxyCtrl", func() any { return new(ProxyCtrl) }, nil},
	TypeKernelCh: {"KernelCh", func() any { return new(KernelCh) }, []field{
		{"channelId", fieldNumber}, {"pTimer", fieldNumber}}},
	TypeNetPlugin: {"NetPlugin", func() any { return new(NetPlugin) }, []field{{"id", fieldNumber}, {"data", fieldNet}}},
	TypeGroupApi: {"GroupApi", func() any { return new(GroupApi) }, []field{
		{"graphCaptured", fieldNumber}, {"groupDepth", fieldNumber}}},
	TypeCollApi: {"CollApi", func() any { return new(CollApi) }, []field{
		{"func", fieldString}, {"count", fieldNumber}, {"datatype", fieldString}, {"root", fieldNumber},
		{"stream", fieldPointer}, {"graphCaptured", fieldNumber}}},
	TypeP2pApi: {"P2pApi", func() any { return new(P2pApi) }, []field{
		{"func", fieldString}, {"count", fieldNumber}, {"datatype", fieldString}, {"stream", fieldPointer},
		{"graphCaptured", fieldNumber}}},
	TypeKernelLaunch: {"KernelLaunch", func() any { return new(KernelLaunch) }, []field{{"stream", fieldPointer}}},
	TypeCeColl: {"CeColl", func() any { return new(CeColl) }, []field{
		{"seqNumber", fieldNumber}, {"func", fieldString}, {"sendBuff", fieldPointer}, {"recvBuff", fieldPointer},
		{"count", fieldNumber}, {"root", fieldNumber}, {"datatype", fieldString}, {"syncStrategy", fieldString},
		{"intraBatchSync", fieldNumber}, {"batchSize", fieldNumber}, {"numBatches", fieldNumber},
		{"ceSeqNum", fieldNumber}, {"stream", fieldPointer}}},
	TypeCeSync: {"CeSync", func() any { return new(CeSync) }, []field{
		{"isComplete", fieldNumber}, {"nRanks", fieldNumber}}},
	TypeCeBatch: {"CeBatch", func() any { return new(CeBatch) }, []field{
		{"numOps", fieldNumber}, {"totalBytes", fieldNumber}, {"useIntraSync", fieldNumber}}},
}

// The descriptors, one Go type for each event type, with the members that NCCL fills in. Counts are
// in elements of Datatype except where NCCL counts bytes (Coll of AllGather and Broadcast: datatype
// ncclInt8). A NULL string is "".
type (
	// Group is the descriptor of a kernel plan's enqueueing: it has no members.
	Group struct{}

	// Coll is one collective of a plan.
	Coll struct {
		SeqNumber          uint64 // per communicator and function, from 0
		Func               string
		SendBuff, RecvBuff Pointer
		Count              uint64
		Root               int
		Datatype           string
		NChannels, NWarps  int
		Algo, Proto        string
		ParentGroup        Pointer // recorded handle; Event.Group is the event
	}

	// P2p is one send or receive of a plan.
	P2p struct {
		Func        string
		Buff        Pointer
		Datatype    string
		Count       uint64
		Peer        int // rank in the communicator
		NChannels   int
		ParentGroup Pointer
	}

	// ProxyOp is one channel's network transfers of an operation, in one direction.
	ProxyOp struct {
		PID       int
		ChannelID int
		Peer      int // rank in the communicator
		NSteps    int
		ChunkSize int // bytes, upper bound per step
		IsSend    Flag
	}

	// ProxyStep is one network transfer.
	ProxyStep struct {
		Step int // from 0 in each ProxyOp
	}

	// ProxyCtrl is the progress thread's own doing: it has no members.
	ProxyCtrl struct{}

	// KernelCh is one channel of a kernel on the GPU.
	KernelCh struct {
		ChannelID int
		PTimer    uint64 // start, GPU clock
	}

	// NetPlugin is what a network plugin reports under a ProxyStep.
	NetPlugin struct {
		ID   int64 // kind in bits 16–31, version in bits 0–15
		Data Pointer
		Sock *Sock // what Data pointed to, where it was a socket's
	}

	// GroupApi is an outermost group, or a call outside any.
	GroupApi struct {
		GraphCaptured Flag
		GroupDepth    int // 1: a plain call
	}

	// CollApi is the call of a collective.
	CollApi struct {
		Func          string
		Count         uint64
		Datatype      string
		Root          int
		Stream        Pointer
		GraphCaptured Flag
	}

	// P2pApi is the call of a send or receive.
	P2pApi struct {
		Func          string
		Count         uint64
		Datatype      string
		Stream        Pointer
		GraphCaptured Flag
	}

	// KernelLaunch is the launch of a plan's kernel.
	KernelLaunch struct{ Stream Pointer }

	// CeColl is a collective by copy engine.
	CeColl struct {
		SeqNumber             uint64
		Func                  string
		SendBuff, RecvBuff    Pointer
		Count                 uint64
		Root                  int
		Datatype              string
		SyncStrategy          string
		IntraBatchSync        Flag
		BatchSize, NumBatches int
		CeSeqNum              uint32
		Stream                Pointer
	}

	// CeSync is a synchronisation of a CeColl.
	CeSync struct {
		IsComplete Flag
		NRanks     int
	}

	// CeBatch is a batch of copies of a CeColl.
	CeBatch struct {
		NumOps       int
		TotalBytes   uint64
		UseIntraSync Flag
	}

	// Sock is the socket transport's descriptor.
	Sock struct {
		Type   int
		FD     int
		Op     int // 0 send, 1 receive
		Length uint64
	}
)
