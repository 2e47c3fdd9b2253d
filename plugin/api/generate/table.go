// SPDX-License-Identifier: Apache-2.0

package main

// What init takes behind the context.
const (
	initMask = "int *eActivationMask"
	initHash = "int *eActivationMask, const char *commName, uint64_t commHash, int nNodes, int nranks, int rank, " +
		"ncclotf2_logger logfn"
	initID = "uint64_t commId, int *eActivationMask, const char *commName, int nNodes, int nranks, int rank, " +
		"ncclotf2_logger logfn"
)

// Layout is the version of the memory that plugin and collector share: raised with every change of records, the members
// that are recorded among them, or of plugin/shm.h. A counter that takes the place of padding needs no new one, for it
// reads as 0 where nobody knows it.
const Layout = 7

// Versions are all versions, from 1 on. The headers of versions 1 to 6 are the same in all later releases to 2.30.7.
var Versions = []Version{
	{1, "2.23.4", "v2.23.4-1 src/include/nccl_profiler.h", 120, 16, 1, initMask},
	{2, "2.24.3", "v2.24.3-1 src/include/nccl_profiler.h", 128, 16, 1, initMask},
	{3, "2.26.2", "v2.26.2-1 src/include/plugin/profiler/profiler_v3.h", 120, 16, 1, initMask},
	{4, "2.27.3", "v2.27.3-1 src/include/plugin/profiler/profiler_v4.h", 104, 8, 1, initHash},
	{5, "2.28.3", "v2.28.3-1 src/include/plugin/profiler/profiler_v5.h", 112, 8, 8, initID},
	{6, "2.29.2", "v2.29.2-1 src/include/plugin/profiler/profiler_v6.h", 112, 8, 8, initID},
	{7, "2.31.2", "v2.31.2-1 src/include/plugin/profiler/profiler_v7.h", 136, 8, 8, initID},
}

// at gives places as pairs of the first version and the offset.
func at(pairs ...int) (places []Place) {
	for i := 0; i < len(pairs); i += 2 {
		places = append(places, Place{Since: pairs[i], Offset: pairs[i+1]})
	}
	return places
}

// rccl are members that RCCL's version 6 alone has.
func rccl(offset int) []Place { return []Place{{Since: rcclVersion, Offset: offset}} }

// rcclVersion stands for RCCL's version 6, which no version of NCCL's follows.
const rcclVersion = 1 << 20

// Sets of types that switch an event on. Source: src/plugin/profiler.cc, one condition per start function.
var (
	proxies = []string{"ProxyOp", "ProxyStep", "NetPlugin"}
	tasks   = append([]string{"KernelCh"}, proxies...)
	copies  = []string{"CeColl", "CeSync", "CeBatch"}
)

func and(lists ...any) (all []string) {
	for _, l := range lists {
		switch l := l.(type) {
		case string:
			all = append(all, l)
		case []string:
			all = append(all, l...)
		}
	}
	return all
}

const (
	nameDoc  = "the communicator's"
	tagDoc   = "of the application"
	groupDoc = "handle of the Group event"
)

// Events are the event types in the order of their numbers: their bits in the mask and in a descriptor's type.
// Sources: of members, the headers of Versions; of who starts what, src/plugin/profiler.cc of 2.28 to 2.30; of RCCL's
// members, its src/include/plugin/profiler/profiler_v6.h of mid-2026.
var Events = []Event{
	{
		Name: "Group", Doc: "a kernel plan's enqueueing", Since: 1, Start: and("Group", "Coll", "P2p", tasks),
		Preset: "light", Class: "OPERATION", Depth: 4, Parent: true,
	},
	{
		Name: "Coll", Doc: "one collective of a plan", Member: "coll", Since: 1, Start: and("Coll", tasks),
		NeededParent: true, Ranked: true,
		Preset: "light", Class: "OPERATION", Depth: 5, Parent: true, Unsure: 3,
		Members: []Member{
			{Name: "seqNumber", Kind: U64, Go: "Seq", At: at(1, 40, 4, 24),
				Doc: "per communicator and function, from 0"},
			{Name: "func", Kind: Func, Go: "Func", At: at(1, 48, 4, 32)},
			{Name: "sendBuff", Kind: ConstPointer, Go: "SendBuff", At: at(1, 56, 4, 40)},
			{Name: "recvBuff", Kind: Pointer, Go: "RecvBuff", At: at(1, 64, 4, 48)},
			{Name: "count", Kind: Size, Go: "Count", At: at(1, 72, 4, 56)},
			{Name: "root", Kind: I32, Go: "Root", At: at(1, 80, 4, 64)},
			{Name: "datatype", Kind: Datatype, Go: "Datatype", At: at(1, 84, 2, 88, 4, 72)},
			{Name: "nChannels", Kind: U8, Go: "NChannels",
				At:  []Place{{1, 104, "nMaxChannels"}, {3, 96, "nMaxChannels"}, {Since: 4, Offset: 80}},
				Doc: "versions 1 to 3: a maximum"},
			{Name: "nWarps", Kind: U8, Go: "NWarps", At: at(1, 105, 3, 97, 4, 81)},
			{Name: "algo", Kind: Algo, Go: "Algo", At: at(1, 106, 2, 112, 3, 104, 4, 88)},
			{Name: "proto", Kind: Proto, Go: "Proto", At: at(1, 107, 2, 120, 3, 112, 4, 96)},
			{Name: "parentGroup", Kind: Handle, Go: "ParentGroup", At: at(5, 104), Before: "head.arg", Doc: groupDoc},
			{Name: "kernelVariant", Kind: String, Go: "KernelVariant", At: at(7, 112)},
			{Name: "isSymColl", Kind: Bool, Flag: "SYM", At: at(7, 120)},
			{Name: "userTag", Kind: U64, Go: "UserTag", At: at(7, 128), Doc: tagDoc},
			{Name: "name", Kind: String, At: at(1, 24, 4, 0), Doc: nameDoc},
			{Name: "commHash", Kind: Hash, At: at(1, 32, 4, 0)},
			{Name: "trafficBytes", Kind: Size, At: at(1, 96, 3, 0)},
			{Name: "op", Kind: U32, At: at(1, 88, 2, 0)},
			{Name: "isCollnet", Kind: I32, At: at(1, 108, 2, 0)},
			{Name: "isNvls", Kind: I32, At: at(1, 112, 2, 0)},
		},
	},
	{
		Name: "P2p", Doc: "one send or receive of a plan", Member: "p2p", Since: 1, Start: and("P2p", tasks),
		NeededParent: true, Ranked: true,
		Preset: "light", Class: "OPERATION", Depth: 5, Parent: true, Unsure: 4,
		Members: []Member{
			{Name: "func", Kind: Func, Go: "Func", At: at(1, 40, 4, 24)},
			{Name: "buff", Kind: Pointer, Go: "SendBuff", At: at(1, 48, 4, 32)},
			{Name: "datatype", Kind: Datatype, Go: "Datatype", At: at(1, 56, 4, 40)},
			{Name: "count", Kind: Size, Go: "Count", At: at(1, 64, 4, 48)},
			{Name: "peer", Kind: I32, Go: "Peer", At: at(1, 72, 4, 56), Doc: "rank in the communicator"},
			// NCCL 2.28 and later leave it out when they adapt a version 4 plugin (docs/nccl-profiler-api.md §2.4).
			{Name: "nChannels", Kind: U8, Go: "NChannels", At: at(4, 60), Trusted: 5},
			{Name: "parentGroup", Kind: Handle, Go: "ParentGroup", At: at(5, 64), Before: "head.arg", Doc: groupDoc},
			{Name: "userTag", Kind: U64, Go: "UserTag", At: at(7, 72), Doc: tagDoc},
			{Name: "name", Kind: String, At: at(1, 24, 4, 0), Doc: nameDoc},
			{Name: "commHash", Kind: Hash, At: at(1, 32, 4, 0)},
		},
	},
	{
		Name: "ProxyOp", Doc: "one channel's network transfers of an operation, in one direction", Member: "proxyOp",
		Since: 1, Start: proxies,
		Ranked: true, Foreign: true, Preset: "net", Class: "CHANNEL", Depth: 6, Parent: true,
		Members: []Member{
			{Name: "pid", Kind: PID, Go: "PID", At: at(1, 24), Doc: "of the process whose operation it is"},
			{Name: "channelId", Kind: U8, Go: "Channel", At: at(1, 28)},
			{Name: "peer", Kind: I32, Go: "Peer", At: at(1, 32), Doc: "rank in the communicator"},
			{Name: "nSteps", Kind: I32, Go: "NSteps", At: at(1, 36)},
			{Name: "chunkSize", Kind: I32, Go: "ChunkSize", At: at(1, 40), Doc: "bytes, the maximum per step"},
			{Name: "isSend", Kind: I32, Flag: "SEND", At: at(1, 44)},
			{Name: "commHash", Kind: Hash, At: rccl(48), RCCL: true},
			{Name: "opCount", Kind: I64, At: rccl(56), RCCL: true},
			{Name: "traceFuncIdx", Kind: I32, At: rccl(64), RCCL: true},
			{Name: "traceProtocol", Kind: I32, At: rccl(68), RCCL: true},
			{Name: "tracePattern", Kind: I32, At: rccl(72), RCCL: true},
			{Name: "traceTotalBytes", Kind: U32, At: rccl(76), RCCL: true},
			{Name: "proxyNbytes", Kind: U32, At: rccl(80), RCCL: true},
			{Name: "rawProxyNsteps", Kind: I32, At: rccl(84), RCCL: true},
		},
	},
	{
		Name: "ProxyStep", Doc: "one network transfer", Member: "proxyStep", Since: 1,
		Start: and("ProxyStep", "NetPlugin"), NeededParent: true,
		Ranked: true, Foreign: true, Preset: "net", Class: "STEP", Depth: 7, Parent: true,
		Members: []Member{{Name: "step", Kind: I32, Go: "Step", At: at(1, 24), Doc: "from 0 in each ProxyOp"}},
	},
	{
		Name: "ProxyCtrl", Doc: "the progress thread's own activity", Since: 1, Start: and("ProxyCtrl"), Preset: "all",
		Class: "CONTROL", Depth: 6,
	},
	{
		Name: "KernelCh", Doc: "one channel of a kernel on the GPU", Member: "kernelCh", Since: 3,
		Start:  and("KernelCh"),
		Preset: "gpu", Class: "CHANNEL", Depth: 6, Parent: true,
		Members: []Member{
			{Name: "channelId", Kind: U8, Go: "Channel", At: at(3, 24)},
			{Name: "pTimer", Kind: U64, Go: "PTimer", At: at(4, 32), Doc: "start, the GPU's clock"},
		},
	},
	{
		Name: "NetPlugin", Doc: "what a network plugin reports under a ProxyStep", Member: "netPlugin", Since: 3,
		Start: and("NetPlugin"), NullCalls: true,
		Ranked: true, Foreign: true, Preset: "all", Class: "STEP", Depth: 8, Hook: "ncclotf2_fill_net",
		Members: []Member{
			{Name: "id", Kind: I64, Go: "NetID", At: at(3, 24), Doc: "kind in bits 16 to 31, version in bits 0 to 15"},
			{Name: "data", Kind: NetData, Go: "Data", At: at(3, 32),
				Doc: "address, which means nothing; what was there follows, where it is known"},
			{Go: "Length", Kind: U64},
			{Go: "WrID", Kind: U64},
			{Go: "DeviceOrFD", Kind: I32},
			{Go: "Opcode", Kind: I32},
			{Go: "QP", Kind: I32},
		},
	},
	{
		Name: "GroupApi", Doc: "an outermost group, or a call outside any", Member: "groupApi", Since: 5,
		Start:  and("GroupApi", "P2pApi", "CollApi", "KernelLaunch", "Group", "Coll", "P2p", tasks, copies),
		Preset: "light", Class: "OPERATION", Depth: 1, Parent: true,
		Members: []Member{
			{Name: "graphCaptured", Kind: Bool, Flag: "GRAPH", At: at(5, 24)},
			{Name: "groupDepth", Kind: I32, Go: "GroupDepth", At: at(5, 28), Doc: "1: a plain call"},
		},
	},
	{
		Name: "CollApi", Doc: "the call of a collective", Member: "collApi", Since: 5,
		Start: and("CollApi", "Coll", tasks, copies), StaleSlot: true,
		Preset: "light", Class: "OPERATION", Depth: 2, Parent: true,
		Members: []Member{
			{Name: "func", Kind: String, Go: "Func", At: at(5, 24)},
			{Name: "count", Kind: Size, Go: "Count", At: at(5, 32)},
			{Name: "datatype", Kind: String, Go: "Datatype", At: at(5, 40)},
			{Name: "root", Kind: I32, Go: "Root", At: at(5, 48)},
			{Name: "stream", Kind: Pointer, Go: "Stream", At: at(5, 56)},
			{Name: "graphCaptured", Kind: Bool, Flag: "GRAPH", At: at(5, 64)},
			{Name: "userTag", Kind: U64, Go: "UserTag", At: at(7, 72), Doc: tagDoc},
		},
	},
	{
		Name: "P2pApi", Doc: "the call of a send or receive", Member: "p2pApi", Since: 5,
		Start:  and("P2pApi", "P2p", tasks),
		Preset: "light", Class: "OPERATION", Depth: 2, Parent: true,
		Members: []Member{
			{Name: "func", Kind: String, Go: "Func", At: at(5, 24)},
			{Name: "count", Kind: Size, Go: "Count", At: at(5, 32)},
			{Name: "datatype", Kind: String, Go: "Datatype", At: at(5, 40)},
			{Go: "Root", Kind: I32, Before: "-1", Doc: "of P2pApi −1"},
			{Name: "stream", Kind: Pointer, Go: "Stream", At: at(5, 48)},
			{Name: "graphCaptured", Kind: Bool, Flag: "GRAPH", At: at(5, 56)},
			{Name: "userTag", Kind: U64, Go: "UserTag", At: at(7, 64), Doc: tagDoc},
		},
	},
	{
		Name: "KernelLaunch", Doc: "the launch of a plan's kernel", Member: "kernelLaunch", Since: 5,
		Start:  and("KernelLaunch"),
		Preset: "light", Class: "OPERATION", Depth: 3, Hook: "ncclotf2_launch_filled",
		Members: []Member{{Name: "stream", Kind: Pointer, Go: "Stream", At: at(5, 24)}},
	},
	{
		Name: "CeColl", Doc: "a collective by copy engine", Member: "ceColl", Since: 6, Start: copies, Ranked: true,
		Preset: "all", Class: "OPERATION", Depth: 5, Parent: true,
		Members: []Member{
			{Name: "seqNumber", Kind: U64, Go: "Seq", At: at(6, 24)},
			{Name: "func", Kind: String, Go: "Func", At: at(6, 32)},
			{Name: "sendBuff", Kind: ConstPointer, Go: "SendBuff", At: at(6, 40)},
			{Name: "recvBuff", Kind: Pointer, Go: "RecvBuff", At: at(6, 48)},
			{Name: "count", Kind: Size, Go: "Count", At: at(6, 56)},
			{Name: "root", Kind: I32, Go: "Root", At: at(6, 64)},
			{Name: "datatype", Kind: String, Go: "Datatype", At: at(6, 72)},
			{Name: "syncStrategy", Kind: String, Go: "SyncStrategy", At: at(6, 80)},
			{Name: "intraBatchSync", Kind: Bool, Flag: "COMPLETE", At: at(6, 88)},
			{Name: "batchSize", Kind: U32, Go: "BatchSize", At: at(6, 92)},
			{Name: "numBatches", Kind: U32, Go: "NumBatches", At: at(6, 96)},
			{Name: "ceSeqNum", Kind: U32, Go: "CeSeq", At: at(6, 100)},
			{Name: "stream", Kind: Pointer, Go: "Stream", At: at(6, 104)},
			{Name: "userTag", Kind: U64, Go: "UserTag", At: at(7, 112), Doc: tagDoc},
		},
	},
	{
		Name: "CeSync", Doc: "a synchronization of a CeColl", Member: "ceCollSync", Since: 6, Start: and("CeSync"),
		NeedsParent: true, Ranked: true,
		Preset: "all", Class: "CHANNEL", Depth: 6,
		Members: []Member{
			{Name: "isComplete", Kind: Bool, Flag: "COMPLETE", At: at(6, 24)},
			{Name: "nRanks", Kind: I32, Go: "NRanks", At: at(6, 28)},
		},
	},
	{
		Name: "CeBatch", Doc: "a batch of copies of a CeColl", Member: "ceCollBatch", Since: 6, Start: and("CeBatch"),
		NeedsParent: true, Ranked: true,
		Preset: "all", Class: "CHANNEL", Depth: 6,
		Members: []Member{
			{Name: "numOps", Kind: I32, Go: "NumOps", At: at(6, 24)},
			{Name: "totalBytes", Kind: Size, Go: "Bytes", At: at(6, 32)},
			{Name: "useIntraSync", Kind: Bool, Flag: "COMPLETE", At: at(6, 40)},
		},
	},
	{
		Name: "KernelPhase", Doc: "a part of a KernelCh", Member: "kernelPhase", Since: 7, Start: and("KernelPhase"),
		Preset: "all", Class: "CHANNEL", Depth: 7,
		Members: []Member{
			{Name: "channelId", Kind: U8, Go: "Channel", At: at(7, 24)},
			{Name: "phaseId", Kind: U8, Go: "Phase", At: at(7, 25)},
			{Name: "phaseName", Kind: String, Go: "PhaseName", At: at(7, 32)},
			{Name: "pTimer", Kind: U64, Go: "PTimer", At: at(7, 40), Doc: "start, the GPU's clock"},
		},
	},
}

// States are the states in the order of their numbers. Source: src/include/plugin/nccl_profiler.h.
var States = []State{
	{"ProxyOpSendPosted", 1, OpProgress, "up to NCCL 2.26, like all states of ProxyOp before InProgress"},
	{"ProxyOpSendRemFifoWait", 1, OpProgress, ""},
	{"ProxyOpSendTransmitted", 1, OpProgress, ""},
	{"ProxyOpSendDone", 1, OpProgress, ""},
	{"ProxyOpRecvPosted", 1, OpProgress, ""},
	{"ProxyOpRecvReceived", 1, OpProgress, ""},
	{"ProxyOpRecvTransmitted", 1, OpProgress, ""},
	{"ProxyOpRecvDone", 1, OpProgress, ""},
	{"ProxyStepSendGPUWait", 1, TransSize, "given to the GPU"},
	{"ProxyStepSendWait", 1, TransSize, "taken by the network"},
	{"ProxyStepRecvWait", 1, TransSize, "posted"},
	{"ProxyStepRecvFlushWait", 1, TransSize, "arrived"},
	{"ProxyStepRecvGPUWait", 1, TransSize, "flushed"},
	{"ProxyCtrlIdle", 1, AppendedOps, ""},
	{"ProxyCtrlActive", 1, AppendedOps, ""},
	{"ProxyCtrlSleep", 1, AppendedOps, ""},
	{"ProxyCtrlWakeup", 1, AppendedOps, ""},
	{"ProxyCtrlAppend", 1, AppendedOps, ""},
	{"ProxyCtrlAppendEnd", 1, AppendedOps, "the only one with a number"},
	{"ProxyOpInProgress", 4, None, ""},
	{"ProxyStepSendPeerWait", 4, TransSize, "data ready, but refused by the network"},
	{"NetPluginUpdate", 4, NetArg, ""},
	{"KernelChStop", 4, GPUTimer, ""},
	{"GroupStartApiStop", 5, None, ""},
	{"GroupEndApiStart", 5, None, "all operations have been called; they are now launched"},
	{"CeCollStart", 6, None, "never emitted, like all states of CE events"},
	{"CeCollComplete", 6, None, ""},
	{"CeSyncStart", 6, None, ""},
	{"CeSyncComplete", 6, None, ""},
	{"CeBatchStart", 6, None, ""},
	{"CeBatchComplete", 6, None, ""},
	{"KernelPhaseStop", 7, GPUTimer, "RCCL's version 6: ProxyDiagUpdate"},
}
