// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
)

// EventType is the number of an event type's bit in NCCL's activation mask, but for the last two.
type EventType uint8

// The event types of plugin interface versions 1 to 7. Source: NCCL's nccl_profiler.h. The numbers
// are those of tests/fakenccl/profiler.h.
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
	TypeKernelPhase
	TypeProxyDiag // RCCL's, with the bit of KernelPhase, in its version 6
	TypeOther     // any that neither NCCL nor RCCL defines: Event.TypeBits says which
	typeCount
)

// Bit is the type's bit in the activation mask and in descriptors, 0 for TypeOther.
func (t EventType) Bit() uint64 {
	switch t {
	case TypeProxyDiag:
		return 1 << TypeKernelPhase
	case TypeOther:
		return 0
	}
	return 1 << t
}

func (t EventType) String() string {
	if t < typeCount {
		return eventTypes[t].name
	}
	return fmt.Sprintf("event type %d", uint8(t))
}

// typeOf finds the type that a descriptor's bits mean. name tells what is meant by the bit that is
// NCCL's, RCCL's or, before either had it, nobody's.
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

// The states of plugin interface versions 1 to 7. Source: as above.
const (
	StateProxyOpSendPosted      State = 0 // ProxyOp 0–7: up to NCCL 2.26
	StateProxyOpSendRemFifoWait State = 1
	StateProxyOpSendTransmitted State = 2
	StateProxyOpSendDone        State = 3
	StateProxyOpRecvPosted      State = 4
	StateProxyOpRecvReceived    State = 5
	StateProxyOpRecvTransmitted State = 6
	StateProxyOpRecvDone        State = 7
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
	StateCeCollStart            State = 25 // 25–30: NCCL never emits them
	StateCeCollComplete         State = 26
	StateCeSyncStart            State = 27
	StateCeSyncComplete         State = 28
	StateCeBatchStart           State = 29
	StateCeBatchComplete        State = 30
	StateKernelPhaseStop        State = 31
	StateProxyDiagUpdate        State = 31 // RCCL's, in its version 6
)

func (s State) String() string {
	if s >= 0 && int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("state %d", int32(s))
}

var stateNames = [...]string{
	StateProxyOpSendPosted:      "ProxyOpSendPosted",
	StateProxyOpSendRemFifoWait: "ProxyOpSendRemFifoWait",
	StateProxyOpSendTransmitted: "ProxyOpSendTransmitted",
	StateProxyOpSendDone:        "ProxyOpSendDone",
	StateProxyOpRecvPosted:      "ProxyOpRecvPosted",
	StateProxyOpRecvReceived:    "ProxyOpRecvReceived",
	StateProxyOpRecvTransmitted: "ProxyOpRecvTransmitted",
	StateProxyOpRecvDone:        "ProxyOpRecvDone",
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
	StateCeCollStart:            "CeCollStart",
	StateCeCollComplete:         "CeCollComplete",
	StateCeSyncStart:            "CeSyncStart",
	StateCeSyncComplete:         "CeSyncComplete",
	StateCeBatchStart:           "CeBatchStart",
	StateCeBatchComplete:        "CeBatchComplete",
	StateKernelPhaseStop:        "KernelPhaseStop",
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
	// some: only some versions of the interface have it, so recordings may lack it: then it is NULL or 0,
	// or what the communicator has.
	some bool
}

// These make lists of fields of one kind.
func number(names ...string) []field               { return fields(fieldNumber, false, names) }
func text(names ...string) []field                 { return fields(fieldString, false, names) }
func opaque(names ...string) []field               { return fields(fieldPointer, false, names) }
func one(name string, kind fieldKind) []field      { return fields(kind, false, []string{name}) }
func rare(kind fieldKind, names ...string) []field { return fields(kind, true, names) }

func fields(kind fieldKind, some bool, names []string) []field {
	var list []field
	for _, name := range names {
		list = append(list, field{name, kind, some})
	}
	return list
}

// eventTypes is indexed by EventType. The fields are in the order in which programs have them: that
// of the lists in tests/fakenccl/events.h.
var eventTypes = [typeCount]struct {
	name   string
	descr  any // the type's Descr
	fields []field
}{
	TypeGroup: {"Group", Group{}, nil},
	TypeColl: {"Coll", Coll{}, slices.Concat(number("seqNumber"), text("func"), opaque("sendBuff", "recvBuff"), number("count", "root"),
		text("datatype"), number("nChannels", "nWarps"), text("algo", "proto"), one("parentGroup", fieldHandle),
		rare(fieldString, "kernelVariant"), rare(fieldNumber, "isSymColl", "userTag"),
		rare(fieldString, "name"), rare(fieldPointer, "commHash"), rare(fieldNumber, "trafficBytes", "op", "isCollnet", "isNvls"))},
	TypeP2p: {"P2p", P2p{}, slices.Concat(text("func"), opaque("buff"), text("datatype"), number("count", "peer", "nChannels"),
		one("parentGroup", fieldHandle), rare(fieldNumber, "userTag"), rare(fieldString, "name"), rare(fieldPointer, "commHash"))},
	TypeProxyOp: {"ProxyOp", ProxyOp{}, slices.Concat(one("pid", fieldPID), number("channelId", "peer", "nSteps", "chunkSize", "isSend"),
		rare(fieldPointer, "commHash"), rare(fieldNumber, "opCount", "traceFuncIdx", "traceProtocol", "tracePattern", "traceTotalBytes",
			"proxyNbytes", "rawProxyNsteps"))},
	TypeProxyStep: {"ProxyStep", ProxyStep{}, number("step")},
	TypeProxyCtrl: {"ProxyCtrl", ProxyCtrl{}, nil},
	TypeKernelCh:  {"KernelCh", KernelCh{}, slices.Concat(number("channelId"), rare(fieldNumber, "pTimer"))},
	TypeNetPlugin: {"NetPlugin", NetPlugin{}, slices.Concat(number("id"), one("data", fieldNet))},
	TypeGroupApi:  {"GroupApi", GroupApi{}, number("graphCaptured", "groupDepth")},
	TypeCollApi: {"CollApi", CollApi{}, slices.Concat(text("func"), number("count"), text("datatype"), number("root"), opaque("stream"),
		number("graphCaptured"), rare(fieldNumber, "userTag"))},
	TypeP2pApi: {"P2pApi", P2pApi{}, slices.Concat(text("func"), number("count"), text("datatype"), opaque("stream"),
		number("graphCaptured"), rare(fieldNumber, "userTag"))},
	TypeKernelLaunch: {"KernelLaunch", KernelLaunch{}, opaque("stream")},
	TypeCeColl: {"CeColl", CeColl{}, slices.Concat(number("seqNumber"), text("func"), opaque("sendBuff", "recvBuff"), number("count", "root"),
		text("datatype", "syncStrategy"), number("intraBatchSync", "batchSize", "numBatches", "ceSeqNum"), opaque("stream"),
		rare(fieldNumber, "userTag"))},
	TypeCeSync:      {"CeSync", CeSync{}, number("isComplete", "nRanks")},
	TypeCeBatch:     {"CeBatch", CeBatch{}, number("numOps", "totalBytes", "useIntraSync")},
	TypeKernelPhase: {"KernelPhase", KernelPhase{}, slices.Concat(number("channelId", "phaseId"), text("phaseName"), number("pTimer"))},
	TypeProxyDiag:   {"ProxyDiag", ProxyDiag{}, nil},
	TypeOther:       {"?", Other{}, nil},
}

// TypeOf is the event type that a descriptor, or a pointer to one, is of; false if it is none.
func TypeOf(descr any) (EventType, bool) {
	t := reflect.TypeOf(descr)
	if t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	for i := range eventTypes {
		if t == reflect.TypeOf(eventTypes[i].descr) {
			return EventType(i), true
		}
	}
	return 0, false
}

// MarshalDescr writes a descriptor as the member "d" of a start line, without the ids of other
// events. A string "" is NULL, but for the protocol of a symmetric collective, which NCCL leaves empty.
func MarshalDescr(descr any) ([]byte, error) {
	t, ok := TypeOf(descr)
	if !ok {
		return nil, fmt.Errorf("%T is not a descriptor", descr)
	}
	plain, err := json.Marshal(descr)
	if err != nil {
		return nil, err
	}
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal(plain, &members); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	out.WriteString(`{"_":0`)
	for _, f := range eventTypes[t].fields {
		v, ok := members[f.name]
		switch {
		case !ok:
			continue
		case string(v) == `""` && !(f.name == "proto" && string(members["isSymColl"]) == "1"):
			v = json.RawMessage("null")
		}
		fmt.Fprintf(&out, ",%q:%s", f.name, v)
		if f.kind == fieldNet {
			for _, content := range []string{"sock", "ib"} {
				if v, ok := members[content]; ok {
					fmt.Fprintf(&out, ",%q:%s", content, v)
				}
			}
		}
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// The descriptors, one Go type for each event type, with the members that NCCL fills in. Counts are
// in elements of Datatype except where NCCL counts bytes (Coll of AllGather and Broadcast: datatype
// ncclInt8). A NULL string is "". Members marked with versions exist in these only; elsewhere they
// are 0 or "".
type (
	// Group is the descriptor of a kernel plan's enqueueing: it has no members.
	Group struct{}

	// Coll is one collective of a plan.
	Coll struct {
		SeqNumber     uint64  `json:"seqNumber"` // per communicator and function, from 0
		Func          string  `json:"func"`
		SendBuff      Pointer `json:"sendBuff"`
		RecvBuff      Pointer `json:"recvBuff"`
		Count         uint64  `json:"count"`
		Root          int     `json:"root"`
		Datatype      string  `json:"datatype"`
		NChannels     int     `json:"nChannels"` // versions 1–3: nMaxChannels
		NWarps        int     `json:"nWarps"`
		Algo          string  `json:"algo"`
		Proto         string  `json:"proto"`
		ParentGroup   Pointer `json:"parentGroup"`             // recorded handle; Event.Group is the event
		KernelVariant string  `json:"kernelVariant,omitempty"` // version 7
		IsSymColl     Flag    `json:"isSymColl,omitempty"`     // version 7
		UserTag       uint64  `json:"userTag,omitempty"`       // version 7
		Name          string  `json:"name,omitempty"`          // versions 1–3: the communicator's
		CommHash      Pointer `json:"commHash,omitempty"`      // versions 1–3
		TrafficBytes  uint64  `json:"trafficBytes,omitempty"`  // versions 1, 2
		Op            uint32  `json:"op,omitempty"`            // version 1
		IsCollnet     int     `json:"isCollnet,omitempty"`     // version 1
		IsNvls        int     `json:"isNvls,omitempty"`        // version 1
	}

	// P2p is one send or receive of a plan.
	P2p struct {
		Func        string  `json:"func"`
		Buff        Pointer `json:"buff"`
		Datatype    string  `json:"datatype"`
		Count       uint64  `json:"count"`
		Peer        int     `json:"peer"` // rank in the communicator
		NChannels   int     `json:"nChannels"`
		ParentGroup Pointer `json:"parentGroup"`
		UserTag     uint64  `json:"userTag,omitempty"`  // version 7
		Name        string  `json:"name,omitempty"`     // versions 1–3
		CommHash    Pointer `json:"commHash,omitempty"` // versions 1–3
	}

	// ProxyOp is one channel's network transfers of an operation, in one direction.
	ProxyOp struct {
		PID       int  `json:"pid"` // of the process whose operation it is
		ChannelID int  `json:"channelId"`
		Peer      int  `json:"peer"` // rank in the communicator
		NSteps    int  `json:"nSteps"`
		ChunkSize int  `json:"chunkSize"` // bytes, upper bound per step
		IsSend    Flag `json:"isSend"`
		// RCCL's version 6 only:
		CommHash        Pointer `json:"commHash,omitempty"`
		OpCount         int64   `json:"opCount,omitempty"`
		TraceFuncIdx    int     `json:"traceFuncIdx,omitempty"`
		TraceProtocol   int     `json:"traceProtocol,omitempty"`
		TracePattern    int     `json:"tracePattern,omitempty"`
		TraceTotalBytes uint32  `json:"traceTotalBytes,omitempty"`
		ProxyNbytes     uint32  `json:"proxyNbytes,omitempty"`
		RawProxyNsteps  int     `json:"rawProxyNsteps,omitempty"`
	}

	// ProxyStep is one network transfer.
	ProxyStep struct {
		Step int `json:"step"` // from 0 in each ProxyOp
	}

	// ProxyCtrl is the progress thread's own doing: it has no members.
	ProxyCtrl struct{}

	// KernelCh is one channel of a kernel on the GPU.
	KernelCh struct {
		ChannelID int    `json:"channelId"`
		PTimer    uint64 `json:"pTimer"` // start, GPU clock; versions 4–7
	}

	// NetPlugin is what a network plugin reports under a ProxyStep.
	NetPlugin struct {
		ID   int64   `json:"id"`             // kind in bits 16–31, version in bits 0–15
		Data Pointer `json:"data"`           // of no meaning if Sock or IB is set; else it must not be read
		Sock *Sock   `json:"sock,omitempty"` // what Data pointed to, where it was a socket's
		IB   *IB     `json:"ib,omitempty"`   // … a queue pair's
	}

	// GroupApi is an outermost group, or a call outside any.
	GroupApi struct {
		GraphCaptured Flag `json:"graphCaptured"`
		GroupDepth    int  `json:"groupDepth"` // 1: a plain call
	}

	// CollApi is the call of a collective.
	CollApi struct {
		Func          string  `json:"func"`
		Count         uint64  `json:"count"`
		Datatype      string  `json:"datatype"`
		Root          int     `json:"root"`
		Stream        Pointer `json:"stream"`
		GraphCaptured Flag    `json:"graphCaptured"`
		UserTag       uint64  `json:"userTag,omitempty"` // version 7
	}

	// P2pApi is the call of a send or receive.
	P2pApi struct {
		Func          string  `json:"func"`
		Count         uint64  `json:"count"`
		Datatype      string  `json:"datatype"`
		Stream        Pointer `json:"stream"`
		GraphCaptured Flag    `json:"graphCaptured"`
		UserTag       uint64  `json:"userTag,omitempty"` // version 7
	}

	// KernelLaunch is the launch of a plan's kernel.
	KernelLaunch struct {
		Stream Pointer `json:"stream"`
	}

	// CeColl is a collective by copy engine.
	CeColl struct {
		SeqNumber      uint64  `json:"seqNumber"`
		Func           string  `json:"func"`
		SendBuff       Pointer `json:"sendBuff"`
		RecvBuff       Pointer `json:"recvBuff"`
		Count          uint64  `json:"count"`
		Root           int     `json:"root"`
		Datatype       string  `json:"datatype"`
		SyncStrategy   string  `json:"syncStrategy"`
		IntraBatchSync Flag    `json:"intraBatchSync"`
		BatchSize      int     `json:"batchSize"`
		NumBatches     int     `json:"numBatches"`
		CeSeqNum       uint32  `json:"ceSeqNum"`
		Stream         Pointer `json:"stream"`
		UserTag        uint64  `json:"userTag,omitempty"` // version 7
	}

	// CeSync is a synchronisation of a CeColl.
	CeSync struct {
		IsComplete Flag `json:"isComplete"`
		NRanks     int  `json:"nRanks"`
	}

	// CeBatch is a batch of copies of a CeColl.
	CeBatch struct {
		NumOps       int    `json:"numOps"`
		TotalBytes   uint64 `json:"totalBytes"`
		UseIntraSync Flag   `json:"useIntraSync"`
	}

	// KernelPhase is a part of a KernelCh.
	KernelPhase struct {
		ChannelID int    `json:"channelId"`
		PhaseID   int    `json:"phaseId"`
		PhaseName string `json:"phaseName"`
		PTimer    uint64 `json:"pTimer"` // start, GPU clock
	}

	// ProxyDiag is RCCL's; no member of its descriptor is known.
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
