// SPDX-License-Identifier: Apache-2.0
// Code generated from plugin/api/generate/table.go by make generate; DO NOT EDIT.

package api

// Layout is the version of the memory that plugin and collector share.
const Layout = 7

// Kinds of members; from String on they are names.
const (
	U8 Kind = iota
	Bool
	I32
	PID
	U32
	I64
	U64
	Size
	Hash
	Pointer
	ConstPointer
	Handle
	NetData
	String
	Func
	Datatype
	Algo
	Proto
)

// Arguments of states.
const (
	None Argument = iota
	TransSize
	AppendedOps
	NetArg
	GPUTimer
	OpProgress
)

// Versions are all versions, from 1 on.
var Versions = []Version{
	{1, "2.23.4", 23},
	{2, "2.24.3", 24},
	{3, "2.26.2", 26},
	{4, "2.27.3", 27},
	{5, "2.28.3", 28},
	{6, "2.29.2", 29},
	{7, "2.31.2", 31},
}

// Presets are the names of the presets, each of which holds what the ones before it do.
var Presets = []string{"light", "gpu", "net", "all"}

var presetMasks = map[string]uint32{
	"light": 0xf07,
	"gpu":   0xf47,
	"net":   0xf5f,
	"all":   0xffff,
}

// Names are the names of all event types in the order of their numbers.
var Names = [...]string{
	"Group", "Coll", "P2p", "ProxyOp", "ProxyStep", "ProxyCtrl", "KernelCh", "NetPlugin", "GroupApi", "CollApi", "P2pApi",
	"KernelLaunch", "CeColl", "CeSync", "CeBatch", "KernelPhase",
}

// Events are the event types in the order of their numbers: their bits in the mask and in a descriptor's type.
var Events = []Event{
	{Name: "Group", Depth: 4, Since: 1},
	{Name: "Coll", Ranked: true, Depth: 5, Since: 1, Unsure: 3, Members: []Member{
		{Name: "seqNumber", Kind: U64, Go: "Seq", Since: 1},
		{Name: "func", Kind: Func, Go: "Func", Since: 1},
		{Name: "sendBuff", Kind: ConstPointer, Go: "SendBuff", Since: 1},
		{Name: "recvBuff", Kind: Pointer, Go: "RecvBuff", Since: 1},
		{Name: "count", Kind: Size, Go: "Count", Since: 1},
		{Name: "root", Kind: I32, Go: "Root", Since: 1},
		{Name: "datatype", Kind: Datatype, Go: "Datatype", Since: 1},
		{Name: "nChannels", Kind: U8, Go: "NChannels", Since: 1},
		{Name: "nWarps", Kind: U8, Go: "NWarps", Since: 1},
		{Name: "algo", Kind: Algo, Go: "Algo", Since: 1},
		{Name: "proto", Kind: Proto, Go: "Proto", Since: 1},
		{Name: "parentGroup", Kind: Handle, Go: "ParentGroup", Since: 5, Inferred: true},
		{Name: "kernelVariant", Kind: String, Go: "KernelVariant", Since: 7},
		{Name: "isSymColl", Kind: Bool, Flag: "SYM", Since: 7},
		{Name: "userTag", Kind: U64, Go: "UserTag", Since: 7},
		{Name: "name", Kind: String, Since: 1, Until: 3},
		{Name: "commHash", Kind: Hash, Since: 1, Until: 3},
		{Name: "trafficBytes", Kind: Size, Since: 1, Until: 2},
		{Name: "op", Kind: U32, Since: 1, Until: 1},
		{Name: "isCollnet", Kind: I32, Since: 1, Until: 1},
		{Name: "isNvls", Kind: I32, Since: 1, Until: 1},
	}},
	{Name: "P2p", Ranked: true, Depth: 5, Since: 1, Unsure: 4, Members: []Member{
		{Name: "func", Kind: Func, Go: "Func", Since: 1},
		{Name: "buff", Kind: Pointer, Go: "SendBuff", Since: 1},
		{Name: "datatype", Kind: Datatype, Go: "Datatype", Since: 1},
		{Name: "count", Kind: Size, Go: "Count", Since: 1},
		{Name: "peer", Kind: I32, Go: "Peer", Since: 1},
		{Name: "nChannels", Kind: U8, Go: "NChannels", Since: 4, Trusted: 5},
		{Name: "parentGroup", Kind: Handle, Go: "ParentGroup", Since: 5, Inferred: true},
		{Name: "userTag", Kind: U64, Go: "UserTag", Since: 7},
		{Name: "name", Kind: String, Since: 1, Until: 3},
		{Name: "commHash", Kind: Hash, Since: 1, Until: 3},
	}},
	{Name: "ProxyOp", Ranked: true, Depth: 6, Since: 1, Members: []Member{
		{Name: "pid", Kind: PID, Go: "PID", Since: 1},
		{Name: "channelId", Kind: U8, Go: "Channel", Since: 1},
		{Name: "peer", Kind: I32, Go: "Peer", Since: 1},
		{Name: "nSteps", Kind: I32, Go: "NSteps", Since: 1},
		{Name: "chunkSize", Kind: I32, Go: "ChunkSize", Since: 1},
		{Name: "isSend", Kind: I32, Flag: "SEND", Since: 1},
		{Name: "commHash", Kind: Hash, Since: 1048576},
		{Name: "opCount", Kind: I64, Since: 1048576},
		{Name: "traceFuncIdx", Kind: I32, Since: 1048576},
		{Name: "traceProtocol", Kind: I32, Since: 1048576},
		{Name: "tracePattern", Kind: I32, Since: 1048576},
		{Name: "traceTotalBytes", Kind: U32, Since: 1048576},
		{Name: "proxyNbytes", Kind: U32, Since: 1048576},
		{Name: "rawProxyNsteps", Kind: I32, Since: 1048576},
	}},
	{Name: "ProxyStep", Ranked: true, Depth: 7, Since: 1, Members: []Member{
		{Name: "step", Kind: I32, Go: "Step", Since: 1},
	}},
	{Name: "ProxyCtrl", Depth: 6, Since: 1},
	{Name: "KernelCh", Depth: 6, Since: 3, Members: []Member{
		{Name: "channelId", Kind: U8, Go: "Channel", Since: 3},
		{Name: "pTimer", Kind: U64, Go: "PTimer", Since: 4},
	}},
	{Name: "NetPlugin", Ranked: true, Depth: 8, Since: 3, Members: []Member{
		{Name: "id", Kind: I64, Go: "NetID", Since: 3},
		{Name: "data", Kind: NetData, Go: "Data", Since: 3},
		{Kind: U64, Go: "Length"},
		{Kind: U64, Go: "WrID"},
		{Kind: I32, Go: "DeviceOrFD"},
		{Kind: I32, Go: "Opcode"},
		{Kind: I32, Go: "QP"},
	}},
	{Name: "GroupApi", Depth: 1, Since: 5, Members: []Member{
		{Name: "graphCaptured", Kind: Bool, Flag: "GRAPH", Since: 5},
		{Name: "groupDepth", Kind: I32, Go: "GroupDepth", Since: 5},
	}},
	{Name: "CollApi", Depth: 2, Since: 5, Members: []Member{
		{Name: "func", Kind: String, Go: "Func", Since: 5},
		{Name: "count", Kind: Size, Go: "Count", Since: 5},
		{Name: "datatype", Kind: String, Go: "Datatype", Since: 5},
		{Name: "root", Kind: I32, Go: "Root", Since: 5},
		{Name: "stream", Kind: Pointer, Go: "Stream", Since: 5},
		{Name: "graphCaptured", Kind: Bool, Flag: "GRAPH", Since: 5},
		{Name: "userTag", Kind: U64, Go: "UserTag", Since: 7},
	}},
	{Name: "P2pApi", Depth: 2, Since: 5, Members: []Member{
		{Name: "func", Kind: String, Go: "Func", Since: 5},
		{Name: "count", Kind: Size, Go: "Count", Since: 5},
		{Name: "datatype", Kind: String, Go: "Datatype", Since: 5},
		{Kind: I32, Go: "Root", Inferred: true},
		{Name: "stream", Kind: Pointer, Go: "Stream", Since: 5},
		{Name: "graphCaptured", Kind: Bool, Flag: "GRAPH", Since: 5},
		{Name: "userTag", Kind: U64, Go: "UserTag", Since: 7},
	}},
	{Name: "KernelLaunch", Depth: 3, Since: 5, Members: []Member{
		{Name: "stream", Kind: Pointer, Go: "Stream", Since: 5},
	}},
	{Name: "CeColl", Ranked: true, Depth: 5, Since: 6, Members: []Member{
		{Name: "seqNumber", Kind: U64, Go: "Seq", Since: 6},
		{Name: "func", Kind: String, Go: "Func", Since: 6},
		{Name: "sendBuff", Kind: ConstPointer, Go: "SendBuff", Since: 6},
		{Name: "recvBuff", Kind: Pointer, Go: "RecvBuff", Since: 6},
		{Name: "count", Kind: Size, Go: "Count", Since: 6},
		{Name: "root", Kind: I32, Go: "Root", Since: 6},
		{Name: "datatype", Kind: String, Go: "Datatype", Since: 6},
		{Name: "syncStrategy", Kind: String, Go: "SyncStrategy", Since: 6},
		{Name: "intraBatchSync", Kind: Bool, Flag: "COMPLETE", Since: 6},
		{Name: "batchSize", Kind: U32, Go: "BatchSize", Since: 6},
		{Name: "numBatches", Kind: U32, Go: "NumBatches", Since: 6},
		{Name: "ceSeqNum", Kind: U32, Go: "CeSeq", Since: 6},
		{Name: "stream", Kind: Pointer, Go: "Stream", Since: 6},
		{Name: "userTag", Kind: U64, Go: "UserTag", Since: 7},
	}},
	{Name: "CeSync", Ranked: true, Depth: 6, Since: 6, Members: []Member{
		{Name: "isComplete", Kind: Bool, Flag: "COMPLETE", Since: 6},
		{Name: "nRanks", Kind: I32, Go: "NRanks", Since: 6},
	}},
	{Name: "CeBatch", Ranked: true, Depth: 6, Since: 6, Members: []Member{
		{Name: "numOps", Kind: I32, Go: "NumOps", Since: 6},
		{Name: "totalBytes", Kind: Size, Go: "Bytes", Since: 6},
		{Name: "useIntraSync", Kind: Bool, Flag: "COMPLETE", Since: 6},
	}},
	{Name: "KernelPhase", Depth: 7, Since: 7, Members: []Member{
		{Name: "channelId", Kind: U8, Go: "Channel", Since: 7},
		{Name: "phaseId", Kind: U8, Go: "Phase", Since: 7},
		{Name: "phaseName", Kind: String, Go: "PhaseName", Since: 7},
		{Name: "pTimer", Kind: U64, Go: "PTimer", Since: 7},
	}},
}

// States are the states in the order of their numbers.
var States = []State{
	{"ProxyOpSendPosted", OpProgress},
	{"ProxyOpSendRemFifoWait", OpProgress},
	{"ProxyOpSendTransmitted", OpProgress},
	{"ProxyOpSendDone", OpProgress},
	{"ProxyOpRecvPosted", OpProgress},
	{"ProxyOpRecvReceived", OpProgress},
	{"ProxyOpRecvTransmitted", OpProgress},
	{"ProxyOpRecvDone", OpProgress},
	{"ProxyStepSendGPUWait", TransSize},
	{"ProxyStepSendWait", TransSize},
	{"ProxyStepRecvWait", TransSize},
	{"ProxyStepRecvFlushWait", TransSize},
	{"ProxyStepRecvGPUWait", TransSize},
	{"ProxyCtrlIdle", AppendedOps},
	{"ProxyCtrlActive", AppendedOps},
	{"ProxyCtrlSleep", AppendedOps},
	{"ProxyCtrlWakeup", AppendedOps},
	{"ProxyCtrlAppend", AppendedOps},
	{"ProxyCtrlAppendEnd", AppendedOps},
	{"ProxyOpInProgress", None},
	{"ProxyStepSendPeerWait", TransSize},
	{"NetPluginUpdate", NetArg},
	{"KernelChStop", GPUTimer},
	{"GroupStartApiStop", None},
	{"GroupEndApiStart", None},
	{"CeCollStart", None},
	{"CeCollComplete", None},
	{"CeSyncStart", None},
	{"CeSyncComplete", None},
	{"CeBatchStart", None},
	{"CeBatchComplete", None},
	{"KernelPhaseStop", GPUTimer},
}
