// SPDX-License-Identifier: Apache-2.0

package regions

import "github.com/nccl-otf2/nccl-otf2/otf2"

// Attributes of operations, calls, kernels and transfers. Their values are those of NCCL's event descriptors
// (docs/nccl-profiler-api.md §2.5, §4.3) and of CUPTI's records (docs/gpu.md).

// Attributes of operations and calls. Their ids are the same in every process, so they need no
// mapping table. Each is written only where NCCL reported the value.
const (
	AttrSeq           otf2.AttributeRef = iota // NCCL's sequence number: per communicator and function
	AttrOrdinal                                // index in the communicator's sequence of this function, counted here
	AttrAlgo                                   // "RING", "TREE", …
	AttrProto                                  // "LL", "LL128", "SIMPLE"
	AttrChannels                               // number of channels
	AttrWarps                                  // warps per channel
	AttrDatatype                               // "ncclFloat32", …
	AttrCount                                  // elements, as given in the API call
	AttrSendBuff                               // device address
	AttrRecvBuff                               // device address
	AttrStream                                 // CUDA stream handle
	AttrGraph                                  // 1: captured into, or replayed from, a CUDA graph
	AttrUserTag                                // the application's tag
	AttrEventID                                // the event's handle: process tag, type, number
	AttrParentID                               // the parent event's handle
	AttrTimingSource                           // where the interval comes from: "gpu", "network", "enqueue"
	AttrUnfinished                             // 1: the region was still open when the data ended; see UnderWay
	AttrChannel                                // NCCL channel, 0 … 63
	AttrStep                                   // number of a network transfer within its ProxyOp
	AttrPeer                                   // rank in the communicator that a network transfer goes to or comes from
	AttrQP                                     // InfiniBand queue pair of a transfer
	AttrBytes                                  // bytes of a copy-engine batch, or of transfers
	AttrTimes                                  // number of NCCL events that a region stands for
	AttrKernelVariant                          // symmetric kernel, "AllReduce_AGxLL_R"
	AttrSyncStrategy                           // of copy-engine collectives: "MC", "UC"
	AttrBatches                                // copy batches of a copy-engine collective
	// ns by which begin and end of a "gpu" interval may be off, in at least 95 of 100 cases
	AttrUncertainty
	attrGridX         // blocks of a kernel; y and z where they are not 1
	attrGridY         // Blocks in y; 1 if missing
	attrGridZ         // Blocks in z; 1 if missing
	attrBlockX        // threads of a block; y and z where they are not 1
	attrBlockY        // Threads per block in y; 1 if missing
	attrBlockZ        // Threads per block in z; 1 if missing
	attrRegisters     // Registers per thread
	attrStaticShared  // Static shared memory per block, bytes
	attrDynamicShared // Dynamic shared memory per block, bytes
	attrCorrelationID // CUPTI correlation id of the API call
	AttrDevice        // CUDA device, its number in the process
	attrContext       // CUPTI id of the CUDA context
	attrStreamID      // CUPTI id of the CUDA stream
	attrGraphID       // CUPTI id of the executable CUDA graph
	attrGraphNodeID   // CUPTI id of the node of the CUDA graph
	AttrExternalID    // EVENT_ID of the ncclKernelLaunch that launched this kernel
	// Id of the NCCL Group event: on a kernel and on the operations that it carried out
	AttrPlanID
	attrGPUSource // What GPU times come from: kernelch (NCCL) or cupti
	// ns by which NCCL's stamps and CUPTI disagree about when the kernel ran
	attrGPUDifference
	AttrSendBuffClass // Memory of the send buffer: device, managed, pinned, host or unknown
	AttrRecvBuffClass // Memory of the receive buffer: device, managed, pinned, host or unknown
	attrInPlace       // 1 if send and receive buffer are the same by NCCL's definition
	AttrGPUHeld       // ns for which transfers of an operation waited for the GPU alone
	AttrGPUHeldFirst  // of that, before the GPU's first step
	// steps that the GPU filled or emptied for them, on the channel where they waited longest
	AttrGPUSteps
	// 2: that channel both sends and receives over the network, 1: one of them
	AttrGPUWays
	AttrLinkPeer      // rank in the communicator to which an operation was sending longest
	AttrLinkBusy      // ns for which it was
	AttrLinkBytes     // bytes that it sent there
	AttrLinkTransfers // in how many transfers
	// of a call: the communicator; missing for those of one rank, which archives do not contain
	AttrComm
	AttrRank       // of a call: the rank in it for which the call is
	AttrRoot       // of a call of a rooted collective: the root's rank
	AttrFunction   // of a raw event, as all below: NCCL's function
	AttrGroupDepth // nesting depth of groups; 1: a plain call
	AttrSymmetric  // 1: a symmetric kernel's
	AttrProxyPID   // process for whose operation a proxy works
	// transfers that a ProxyOp is to make; of its states (to API v3) those so far
	AttrSteps
	AttrChunkSize // bytes, a most per transfer
	AttrSend      // 1: it sends; missing: it receives
	// a network plugin's event: kind in bits 16 to 31, version in bits 0 to 15
	AttrNetID
	AttrNetDevice   // InfiniBand device, or the socket's descriptor
	AttrWorkRequest // InfiniBand work request
	AttrOpcode      // InfiniBand opcode
	AttrGPUTimer    // GPU's clock when it began, as NCCL passed it
	AttrPhase       // number of a kernel's phase
	AttrPhaseName   // its name
	AttrBatchSize   // of copy-engine collectives
	AttrCeSeq       // their number
	AttrSyncRanks   // ranks that synchronize
	AttrBatchOps    // copies of a batch
	AttrComplete    // NCCL's isComplete, intraBatchSync or useIntraSync
	AttrTID         // the thread on which NCCL reported the start
	// of a state: bytes, operations, the GPU's clock, or what a network plugin passed
	AttrArgument
	// largest number of kernels by which NCCL's stamps of a "gpu" interval had been shifted to later operations
	attrRealigned
	AttrOperations // of a launch of several: their number
	// 1: the end of a "gpu" interval is that of a part of the kernel, see endsEarly
	AttrEndsEarly
	// of transfers that are summed up, as all below (netsum.go): the window of those that were sent
	AttrWindow
	AttrProxyOps    // number of their ProxyOps
	AttrTransfers   // transfers with bytes that were sent or received
	AttrGPUWait     // ns of the row's phases, see netPhases: for the GPU
	AttrPeerWait    // for the receiver
	AttrNetworkTime // for the network
	AttrFlushTime   // until data was visible to the GPU
	// number of such phases in these times; left out where 0
	AttrGPUWaits
	AttrPeerWaits    // for the receiver
	AttrNetworkTimes // for the network
	AttrFlushTimes   // until data was visible
	AttrOpenPhase    // the phase that was open when the data ended, which no time includes
	AttrOpenTime     // ns: how long it was open
	// ns with a transfer under way to the peer, since the previous record
	AttrBusy
	AttrLongest      // ns: a single step's longest time in one phase
	AttrLongestPhase // that phase
	AttrLongestOn    // the step's channel
	// with AttrEndsEarly: ns from the begin of the operation until its GPU was last given data to take, or room to fill
	AttrGPULast
	AttrCallSite // of an import: the line of the program that called the operation
	numAttributes
)

// Attribute is one row of the table of attribute definitions.
type Attribute struct {
	Ref         otf2.AttributeRef
	Name        string
	Type        otf2.Type
	Description string
}

// Attributes lists every attribute that event files may refer to, indexed by its id.
var Attributes = [numAttributes]Attribute{
	{AttrSeq, "SEQ", otf2.TypeUint64, "NCCL sequence number, per communicator and function"},
	{AttrOrdinal, "ORDINAL", otf2.TypeUint64, "Position among the communicator's operations of this function, from 0"},
	{AttrAlgo, "ALGO", otf2.TypeString, "NCCL algorithm"},
	{AttrProto, "PROTO", otf2.TypeString, "NCCL protocol"},
	{AttrChannels, "CHANNELS", otf2.TypeUint32, "Number of channels"},
	{AttrWarps, "WARPS", otf2.TypeUint32, "Warps per channel"},
	{AttrDatatype, "DATATYPE", otf2.TypeString, "Element type"},
	{AttrCount, "COUNT", otf2.TypeUint64, "Elements, as given in the call"},
	{AttrSendBuff, "SENDBUFF_ADDRESS", otf2.TypeUint64, "Send buffer, device address"},
	{AttrRecvBuff, "RECVBUFF_ADDRESS", otf2.TypeUint64, "Receive buffer, device address"},
	{AttrStream, "STREAM", otf2.TypeUint64, "CUDA stream handle"},
	{AttrGraph, "GRAPH", otf2.TypeUint8, "1 if captured into or replayed from a CUDA graph"},
	{AttrUserTag, "USER_TAG", otf2.TypeUint64, "Tag given by the application"},
	{AttrEventID, "EVENT_ID", otf2.TypeUint64, "Id of the NCCL event"},
	{AttrParentID, "PARENT_ID", otf2.TypeUint64, "Id of the parent NCCL event"},
	{AttrTimingSource, "TIMING_SOURCE", otf2.TypeString, "What the interval is: gpu, network or enqueue"},
	{AttrUnfinished, "UNFINISHED", otf2.TypeUint8,
		"1 if the region was open when the recording ended; of operations whose end NCCL had not reported then, " +
			"plus 2, plus 4 if they were running, plus 8 if their GPU had begun them"},
	{AttrChannel, "CHANNEL", otf2.TypeUint32, "NCCL channel"},
	{AttrStep, "STEP", otf2.TypeUint32, "Number of the transfer within its proxy operation"},
	{AttrPeer, "PEER", otf2.TypeUint32, "The other end's rank in the communicator"},
	{AttrQP, "QP", otf2.TypeUint32, "InfiniBand queue pair"},
	{AttrBytes, "BYTES", otf2.TypeUint64, "Bytes copied, or carried by the network"},
	{AttrTimes, "TIMES", otf2.TypeUint64, "NCCL events that this region stands for"},
	{AttrKernelVariant, "KERNEL_VARIANT", otf2.TypeString, "Symmetric kernel"},
	{AttrSyncStrategy, "SYNC_STRATEGY", otf2.TypeString, "How a copy-engine collective synchronizes: MC or UC"},
	{AttrBatches, "BATCHES", otf2.TypeUint32, "Copy batches of a copy-engine collective"},
	{AttrUncertainty, "UNCERTAINTY", otf2.TypeUint64,
		"What begin and end of an interval of GPU time may be off by, ns"},
	{attrGridX, "GRID_X", otf2.TypeUint32, "Blocks in x"},
	{attrGridY, "GRID_Y", otf2.TypeUint32, "Blocks in y; 1 if missing"},
	{attrGridZ, "GRID_Z", otf2.TypeUint32, "Blocks in z; 1 if missing"},
	{attrBlockX, "BLOCK_X", otf2.TypeUint32, "Threads per block in x"},
	{attrBlockY, "BLOCK_Y", otf2.TypeUint32, "Threads per block in y; 1 if missing"},
	{attrBlockZ, "BLOCK_Z", otf2.TypeUint32, "Threads per block in z; 1 if missing"},
	{attrRegisters, "REGISTERS", otf2.TypeUint16, "Registers per thread"},
	{attrStaticShared, "STATIC_SHARED_MEMORY", otf2.TypeUint32, "Static shared memory per block, bytes"},
	{attrDynamicShared, "DYNAMIC_SHARED_MEMORY", otf2.TypeUint32, "Dynamic shared memory per block, bytes"},
	{attrCorrelationID, "CORRELATION_ID", otf2.TypeUint32, "CUPTI correlation id of the API call"},
	{AttrDevice, "DEVICE", otf2.TypeUint32, "CUDA device, its number in the process"},
	{attrContext, "CONTEXT", otf2.TypeUint32, "CUPTI id of the CUDA context"},
	{attrStreamID, "STREAM_ID", otf2.TypeUint32, "CUPTI id of the CUDA stream"},
	{attrGraphID, "GRAPH_ID", otf2.TypeUint32, "CUPTI id of the executable CUDA graph"},
	{attrGraphNodeID, "GRAPH_NODE_ID", otf2.TypeUint64, "CUPTI id of the node of the CUDA graph"},
	{AttrExternalID, "EXTERNAL_ID", otf2.TypeUint64, "EVENT_ID of the ncclKernelLaunch that launched this kernel"},
	{AttrPlanID, "PLAN_ID", otf2.TypeUint64,
		"Id of the NCCL Group event: on a kernel and on the operations that it carried out"},
	{attrGPUSource, "GPU_SOURCE", otf2.TypeString, "What GPU times come from: kernelch (NCCL) or cupti"},
	{attrGPUDifference, "GPU_TIMES_APART", otf2.TypeUint64,
		"By how much (ns) NCCL's stamps and CUPTI contradict each other on when the kernel ran"},
	{AttrSendBuffClass, "SENDBUFF_CLASS", otf2.TypeString,
		"Memory of the send buffer: device, managed, pinned, host or unknown"},
	{AttrRecvBuffClass, "RECVBUFF_CLASS", otf2.TypeString,
		"Memory of the receive buffer: device, managed, pinned, host or unknown"},
	{attrInPlace, "IN_PLACE", otf2.TypeUint8, "1 if send and receive buffer are the same as NCCL means it"},
	{AttrGPUHeld, "GPU_HELD", otf2.TypeUint64,
		"How long (ns) transfers over the network waited for nothing but the GPU"},
	{AttrGPUHeldFirst, "GPU_HELD_FIRST", otf2.TypeUint64,
		"How much of GPU_HELD (ns) was before the GPU had filled or emptied anything"},
	{AttrGPUSteps, "GPU_STEPS", otf2.TypeUint64,
		"Network buffers that the GPU filled or emptied, on the channel where they waited longest for it"},
	{AttrGPUWays, "GPU_WAYS", otf2.TypeUint8,
		"2 if the network both brought data on that channel and took data, 1 if one of both"},
	{AttrLinkPeer, "LINK_PEER", otf2.TypeUint32, "Rank in the communicator that the operation was sending to longest"},
	{AttrLinkBusy, "LINK_BUSY", otf2.TypeUint64, "How long (ns) the network carried what it sent to LINK_PEER"},
	{AttrLinkBytes, "LINK_BYTES", otf2.TypeUint64, "Bytes that it sent to LINK_PEER"},
	{AttrLinkTransfers, "LINK_TRANSFERS", otf2.TypeUint64, "Transfers in which it sent them"},
	{AttrComm, "COMM", otf2.TypeComm, "Communicator of the call"},
	{AttrRank, "RANK", otf2.TypeUint32, "Rank in the communicator that the call is for"},
	{AttrRoot, "ROOT", otf2.TypeUint32, "Rank of the root in the communicator"},
	{AttrFunction, "FUNCTION", otf2.TypeString, "Function of the operation"},
	{AttrGroupDepth, "GROUP_DEPTH", otf2.TypeUint32, "How deep groups were nested; 1 if it is a plain call"},
	{AttrSymmetric, "SYMMETRIC", otf2.TypeUint8, "1 if a symmetric kernel runs it"},
	{AttrProxyPID, "PROXY_PID", otf2.TypeUint32, "Process whose operation the proxy works for"},
	{AttrSteps, "STEPS", otf2.TypeUint32,
		"Transfers: of a proxy operation those that it is to make, of its states those made so far; of sums those " +
			"made, also without bytes"},
	{AttrChunkSize, "CHUNK_SIZE", otf2.TypeUint32, "Maximum bytes of a transfer"},
	{AttrSend, "IS_SEND", otf2.TypeUint8, "1 if it sends"},
	{AttrNetID, "NET_ID", otf2.TypeUint64, "Network plugin's event: kind in bits 16 to 31, version in bits 0 to 15"},
	{AttrNetDevice, "NET_DEVICE", otf2.TypeUint32, "InfiniBand device, or file descriptor of the socket"},
	{AttrWorkRequest, "WORK_REQUEST", otf2.TypeUint64, "Id of the InfiniBand work request"},
	{AttrOpcode, "OPCODE", otf2.TypeUint32, "InfiniBand opcode"},
	{AttrGPUTimer, "GPU_TIMER", otf2.TypeUint64, "GPU clock at the start, as reported by NCCL"},
	{AttrPhase, "PHASE", otf2.TypeUint32, "Number of the kernel's phase"},
	{AttrPhaseName, "PHASE_NAME", otf2.TypeString, "Name of the kernel's phase"},
	{AttrBatchSize, "BATCH_SIZE", otf2.TypeUint32, "Batch size of a copy-engine collective"},
	{AttrCeSeq, "CE_SEQ", otf2.TypeUint32, "Number of the copy-engine collective"},
	{AttrSyncRanks, "SYNC_RANKS", otf2.TypeUint32, "Ranks that synchronize"},
	{AttrBatchOps, "BATCH_OPS", otf2.TypeUint32, "Copies of the batch"},
	{AttrComplete, "IS_COMPLETE", otf2.TypeUint8, "1 if NCCL set isComplete, intraBatchSync or useIntraSync"},
	{AttrTID, "TID", otf2.TypeUint32, "Thread on which NCCL reported the start"},
	{AttrArgument, "ARGUMENT", otf2.TypeUint64,
		"Argument of the state: bytes, operations, GPU clock, or the network plugin's own"},
	{attrRealigned, "REALIGNED", otf2.TypeUint32,
		"By how many works of a channel, at most, NCCL had handed out the stamps of GPU times too late"},
	{AttrOperations, "GROUP_SIZE", otf2.TypeUint32, "Number of operations that were launched together"},
	{AttrEndsEarly, "END_IS_EARLY", otf2.TypeUint8,
		"1 if NCCL's stamp of the end is that of a part of the kernel: it ended then or later"},
	{AttrWindow, "WINDOW", otf2.TypeRmaWin, "Window of the transfers that were sent"},
	{AttrProxyOps, "PROXY_OPS", otf2.TypeUint32, "Proxy operations that the transfers were made in"},
	{AttrTransfers, "TRANSFERS", otf2.TypeUint64, "Transfers with bytes; all that there were, without STEPS"},
	{AttrGPUWait, "GPU_WAIT", otf2.TypeUint64, "How long (ns) the oldest transfer waited for the GPU"},
	{AttrPeerWait, "PEER_WAIT", otf2.TypeUint64, "How long (ns) it waited for the receiver to be ready"},
	{AttrNetworkTime, "NETWORK", otf2.TypeUint64, "How long (ns) the network had it"},
	{AttrFlushTime, "FLUSH", otf2.TypeUint64, "How long (ns) until its data was visible to the GPU"},
	{AttrGPUWaits, "GPU_WAIT_TIMES", otf2.TypeUint64, "How many times it waited for the GPU"},
	{AttrPeerWaits, "PEER_WAIT_TIMES", otf2.TypeUint64, "How many times it waited for the receiver"},
	{AttrNetworkTimes, "NETWORK_TIMES", otf2.TypeUint64, "How many times the network had it"},
	{AttrFlushTimes, "FLUSH_TIMES", otf2.TypeUint64, "How many times it was to become visible to the GPU"},
	{AttrOpenPhase, "OPEN_PHASE", otf2.TypeString, "Phase that was open when the recording ended; it is in no sum"},
	{AttrOpenTime, "OPEN_TIME", otf2.TypeUint64, "How long (ns) OPEN_PHASE had lasted"},
	{AttrBusy, "BUSY", otf2.TypeUint64, "How long (ns) something was under way to this peer, since the record before"},
	{AttrLongest, "LONGEST", otf2.TypeUint64, "Longest time (ns) of a single transfer in one phase"},
	{AttrLongestPhase, "LONGEST_PHASE", otf2.TypeString, "That phase"},
	{AttrLongestOn, "LONGEST_CHANNEL", otf2.TypeUint32, "NCCL channel of that transfer"},
	{AttrGPULast, "GPU_LAST", otf2.TypeUint64,
		"How long after the begin (ns) the network last gave the GPU data to take or room to fill, if END_IS_EARLY"},
	{AttrCallSite, "CALL_SITE", otf2.TypeString, "Line of the program that called it"},
}
