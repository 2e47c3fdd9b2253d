// SPDX-License-Identifier: Apache-2.0
// Code generated from plugin/shm.h by make generate; DO NOT EDIT.

package shm

// Constants of plugin/shm.h.
const (
	Magic          = 0x3266744f6c63636e // "ncclOtf2" read as little-endian
	PageSize       = 4096
	ChunkSize      = 65536 // ring memory is handed out in these units
	ChunkHead      = 64
	RingMax        = 4096  // threads that can record at one time
	CommMax        = 65536 // communicator ranks over the life of the process
	StringSize     = 4 << 20
	StringMax      = 127  // longer ones are cut,
	KernelNameMax  = 1000 // … names of kernels here: they include template arguments
	ActivityMost   = 512  // bytes of a record; longer ones are cut
	SpareMax       = 128  // most free chunks that the collector keeps at hand
	Unit           = 32   // records are multiples of this
	reasonSize     = 512  // of a line that says why something is not recorded
	None           = 0xffffffff
	FrameMagic     = 0x4c4f5053 // "SPOL"
	TagShift       = 48
	TypeShift      = 43
	TypeMask       = 31
	ContextBit     = 1 << 42
	CapturedBit    = 1 << 41
	SilentBit      = 1 << 40
	NumberMask     = SilentBit - 1
	CostPeriod     = 256
	internSlots    = 64
	RecordRaw      = 1 << 28 // record mode: also what *eHandle held, and calls with handles of none
	RecordInWindow = 1 << 29 // operations are chosen by their ordinals (struct ncclotf2_comm)
	RecordFull     = 1 << 30 // nothing new is recorded: NCCLOTF2_LOSS_DISK
	RecordNetSums  = 1 << 31 // the collector sums the network's steps up; the plugin does nothing else for it
)

// Values of enum ncclotf2_clock_source.
const (
	ClockMonotonic ClockSource = 1 // CLOCK_MONOTONIC, ns
	ClockTSC       ClockSource = 2 // x86-64 time-stamp counter
	ClockCNTVCT    ClockSource = 3 // arm64 virtual counter
	ClockHost      ClockSource = 4 // tests: ticks are ns that the host program hands out
)

// Values of enum ncclotf2_loss.
const (
	LossMemory     LossReason = 0 // start refused: memory at its cap
	LossStopMemory LossReason = 1 // stop or state dropped: even the reserve was used up
	LossRing       LossReason = 2 // start refused: no ring left for this thread
	LossComm       LossReason = 3 // events of a communicator beyond NCCLOTF2_COMM_MAX
	LossFork       LossReason = 4 // callback in a forked child
	LossDisk       LossReason = 5 // start refused: the collector has written all it may (NCCL_OTF2_DISK), or its disk is at fault
	LossReasons               = 6
)

// Values of enum ncclotf2_library.
const (
	LibraryUnknown Library = 0
	LibraryNCCL    Library = 1
	LibraryRCCL    Library = 2
)

// Values of enum ncclotf2_memory_kind.
const (
	MemoryMemfd MemoryKind = 0 // gone with the last process that has it open
	MemoryShm   MemoryKind = 1 // a file in /dev/shm, header.memory_path: outlives job and collector
)

// Values of enum ncclotf2_callback.
const (
	CallbackStart Callback = 0
	CallbackStop  Callback = 1
	CallbackState Callback = 2
	Callbacks              = 3
)

// Values of enum ncclotf2_collector_state.
const (
	CollectorNone    CollectorState = 0
	CollectorReady   CollectorState = 1 // settings are in place, events may come
	CollectorRefused CollectorState = 2 // the collector cannot work (message says why); it has gone
	CollectorSpool   CollectorState = 3 // the plugin's own thread writes spool files
)

// Values of enum ncclotf2_cupti_state.
const (
	CuptiOff       CuptiState = 0 // not asked for
	CuptiOn        CuptiState = 1
	CuptiNoLibrary CuptiState = 2 // no libcupti was found, or it lacks functions
	CuptiBusy      CuptiState = 3 // another client has it
	CuptiFailed    CuptiState = 4 // header.cupti_error says why
	CuptiEnded     CuptiState = 5 // was on; everything it had is in the rings
)

// Values of enum ncclotf2_scorep_state.
const (
	ScorepOff      ScorepState = 0 // not asked for, or there is no sign of Score-P
	ScorepOn       ScorepState = 1
	ScorepAbsent   ScorepState = 2 // asked for, and there is none
	ScorepUnusable ScorepState = 3 // it is there and cannot be called
	ScorepNoCalls  ScorepState = 4 // NCCL does not report calls
)

// Values of enum ncclotf2_scorep_model.
const (
	ScorepUnknown    ScorepModel = 0
	ScorepSingle     ScorepModel = 1 // there is one
	ScorepForkJoin   ScorepModel = 2 // OpenMP's
	ScorepCreateWait ScorepModel = 3 // pthreads, and any other thread that tells it something
)

// Values of enum ncclotf2_scorep_kept.
const (
	ScorepKeptThread    = 0 // not the main thread, and the model allows no other
	ScorepKeptOutside   = 1 // before or behind the measurement
	ScorepKeptPaused    = 2 // its recording was off
	ScorepKeptUndefined = 3 // its region was not there (yet)
	ScorepKeptMemory    = 4 // one thread more than it has memory for
	ScorepKeptReasons   = 5
)

// Values of enum ncclotf2_withheld_why.
const (
	WithheldNothing    WithheldWhy = 0
	WithheldBroadcasts WithheldWhy = 1 // NCCL counts them wrongly
	WithheldLate       WithheldWhy = 2 // the collector was not ready in time
	WithheldRoom       WithheldWhy = 3 // NCCL's proxies lack room, since some communicator
)

// Values of enum ncclotf2_chunk_state.
const (
	chunkFree  = 0 // anybody may take it by compare-and-swap
	chunkSpare = 1 // prepared, in header.spare
	chunkUsed  = 2 // belongs to a ring
)

// Values of enum ncclotf2_record_kind.
const (
	RecordThread       RecordKind = 1 // first in a ring, and again whenever its owner changes
	RecordStart        RecordKind = 2
	RecordStop         RecordKind = 3
	RecordState        RecordKind = 4
	RecordInit         RecordKind = 5  // aux: communicator index
	RecordFinalize     RecordKind = 6  // aux: communicator index
	RecordMark         RecordKind = 7  // the application's own; type: enum ncclotf2_mark; aux: string id
	RecordEdge         RecordKind = 8  // aux: communicator index; arg: ordinal of the first operation that is chosen otherwise than those before; flags: enum ncclotf2_edge_flags
	RecordBefore       RecordKind = 9  // record mode; handle: the event started next in this ring; arg: what *eHandle held before
	RecordCupti        RecordKind = 10 // struct ncclotf2_cupti
	RecordCuptiClock   RecordKind = 11 // struct ncclotf2_cupti_clock
	RecordMask         RecordKind = 13 // something else has changed the activation mask; aux: what of the types asked for, and of KernelCh, is set now, arg: what was
	RecordScorepThread RecordKind = 12 // aux: tid; arg: number of a Score-P location that it recorded at
)

// Values of enum ncclotf2_mark.
const (
	MarkPhaseBegin Mark = 0
	MarkPhaseEnd   Mark = 1 // no string
	MarkPoint      Mark = 2
)

// Values of enum ncclotf2_record_flags.
const (
	FlagGraph           RecordFlags = 1  // graphCaptured
	FlagHasArg          RecordFlags = 2  // STATE: NCCL passed an argument that this state defines
	FlagSym             RecordFlags = 4  // Coll: isSymColl (v7)
	FlagSend            RecordFlags = 8  // ProxyOp: isSend; NetPlugin socket: op is send
	FlagComplete        RecordFlags = 16 // CeSync: isComplete; CeColl: intraBatchSync; CeBatch: useIntraSync
	FlagKnownNet        RecordFlags = 32 // NetPlugin: the descriptor was of a known kind and was read
	FlagUnknownChannels RecordFlags = 64 // P2p: the number of channels is not known (API v1 … v4); Coll: nchannels is a most (v1 … v3)
)

// Values of enum ncclotf2_edge_flags.
const (
	FlagInside RecordFlags = 1 // from here on operations are recorded; else they are not
	FlagReplay RecordFlags = 2 // the ordinal counts what replayed graphs bring; else calls
)

// Values of enum ncclotf2_frame_kind.
const (
	frameHeaderKind = 1 // struct ncclotf2_header: first frame, and again at each flush
	frameComm       = 2 // index, then struct ncclotf2_comm: again whenever it changed
	frameStrings    = 3 // index: offset in the heap; the bytes from there
	frameRing       = 4 // index: ring; position: sequence of the chunk << 32 | bytes of records in it before these
	frameClock      = 5 // struct ncclotf2_clock_tuple
	frameEnd        = 6 // the process ended in order
	frameFailed     = 7 // in place of the first header frame, as long as the file has `position` bytes and no more: what follows could not be written (index: errno). The header counts that, too, as NCCLOTF2_LOSS_DISK
)

// ClockTuple is one instant on four clocks.
type ClockTuple struct {
	Ticks uint64
	Raw   uint64 // CLOCK_MONOTONIC_RAW, ns
	Mono  uint64 // CLOCK_MONOTONIC, ns
	Real  uint64 // CLOCK_REALTIME, ns since 1970
}

// Cost is what a callback took in the process's threads: every CostPeriod-th event is measured.
type Cost struct {
	Samples uint64
	Ticks   uint64 // sum over the samples
	Most    uint64 // the greatest
}

// Header is the head of the memory. In live memory, the fields from RingUsed on change while they
// are looked at: read them through the methods of Memory, or from the copy that Source.Header returns.
type Header struct {
	Magic                   uint64
	Version                 uint32
	HeaderSize              uint32
	TotalSize               uint64
	ChunkStateOffset        uint64 // uint32_t[chunk_count], enum ncclotf2_chunk_state
	RingOffset              uint64 // struct ncclotf2_ring[NCCLOTF2_RING_MAX]
	CommOffset              uint64 // struct ncclotf2_comm[NCCLOTF2_COMM_MAX]
	StringOffset            uint64 // byte heap, see struct ncclotf2_string
	ChunkOffset             uint64 // struct ncclotf2_chunk, NCCLOTF2_CHUNK_SIZE each
	ChunkCount              uint32
	ChunkReserve            uint32 // last chunks that only stops may take (1/16)
	PID                     uint32 // as the process itself sees it
	Tag                     uint32
	PIDStart                uint64      // field 22 of /proc/self/stat
	ClockSource             ClockSource // enum ncclotf2_clock_source
	APIVersion              uint32      // NCCL profiler API that was taken: 1 … 7
	ClockHz                 uint64      // ticks per second if known exactly, else 0
	Created                 ClockTuple
	Hostname                [256]byte
	BootID                  [64]byte
	Executable              [512]byte
	Library                 Library    // enum ncclotf2_library
	LibraryVersion          int32      // as ncclGetVersion has it (22907 is 2.29.7); 0 if it cannot be asked
	LibraryPath             [256]byte  // of the file that the logger lies in; empty if that is not known
	MemoryKind              MemoryKind // enum ncclotf2_memory_kind
	UID                     uint32     // effective user of the process
	MemoryPath              [128]byte  // MEMORY_SHM: the file
	_                       [2048 - 104 - 32 - 256 - 64 - 512 - 8 - 256 - 8 - 128]uint8
	RingUsed                uint32 // rings [0, ring_used) have been taken at least once
	CommUsed                uint32 // entries [0, comm_used) exist; each has its own ready flag
	StringUsed              uint64
	NextNumber              uint64
	HostTicks               uint64                         // CLOCK_HOST: the greatest tick handed out so far
	Request                 uint32                         // futex: raised to ask for "everything on disk"
	Ended                   uint32                         // 1 once the process's exit handler has run
	LiveComms               uint32                         // initialized minus finalized
	FaultedChunks           uint32                         // chunks taken unprepared
	Foreign                 uint64                         // stops and states with a handle that is none of this process's
	NullHandles             uint64                         // stops and states with the handle NULL
	LostMarks               uint64                         // of the application, for want of memory
	Filtered                [TypeCount]uint64              // starts not asked for by the settings
	Paused                  [TypeCount]uint64              // starts outside the window
	Lost                    [LossReasons][TypeCount]uint64 // by reason and type
	Cost                    [Callbacks][TypeCount]Cost
	CuptiState              CuptiState                // enum ncclotf2_cupti_state
	CuptiVersion            uint32                    // as cuptiGetVersion gives it; 0 before
	CuptiError              int32                     // the CUptiResult that ended it; 0 if none did
	WithheldWhy             WithheldWhy               // enum ncclotf2_withheld_why
	CuptiLost               uint64                    // activity records for want of memory, or with the disk full
	CuptiDropped            uint64                    // activity records that CUPTI dropped itself
	CuptiUnknown            uint64                    // places in buffers where CUPTI could not find the next record
	CuptiBuffersOut         uint64                    // with records, that CUPTI had not given back when it was switched off
	CuptiBuffersStrange     uint64                    // that it gave back and had not been given
	CuptiBuffersOverwritten uint64                    // for which there was no memory: their records are gone
	CuptiWhy                [reasonSize]byte          // one line, if it was asked for and is not on, or failed; else empty. Written before the state
	ScorepState             ScorepState               // enum ncclotf2_scorep_state
	ScorepModel             ScorepModel               // enum ncclotf2_scorep_model
	ScorepForwarded         uint64                    // regions begun in Score-P
	ScorepKept              [ScorepKeptReasons]uint64 // calls, by why they were not forwarded
	ScorepWhy               [reasonSize]byte          // one line, if calls cannot be forwarded; else empty. Written before the state
	ScorepMeasured          uint32                    // 1: our substrate plugin is loaded in the Score-P measurement
	ScorepRank              int32                     // then: Score-P's number of this process, -1 if it is not known
	ScorepPoints            uint32                    // 1: forwarded calls are regions without duration
	Withheld                uint32                    // types that NCCL is not asked for because it could hang or crash (mask.c)
	Preparer                uint32                    // 1: a thread of the plugin fills the spare slots, or is about to; 0: the collector does
	Unanswered              uint32                    // requests whose answer was not waited for any longer
	Waited                  uint64                    // ns that threads of the program have waited for answers
	_                       [6144 - 2048 - 72 - 8*TypeCount*(2+LossReasons) -
		24*Callbacks*TypeCount - 64 - 512 - 16 - 8*ScorepKeptReasons - 512 - 32]uint8
	CollectorState CollectorState // futex, enum ncclotf2_collector_state
	CollectorPID   uint32
	Answered       uint32 // futex: the latest request whose work is done
	EventMask      uint32 // what NCCL is to be asked for; less header.withheld that is what it is asked for
	RecordMask     uint32 // types that are recorded, a subset of what event_mask implies; NCCLOTF2_RECORD_…
	MessageNumber  uint32 // raised with each new message
	WindowFirst    uint64 // what the entries of new communicators begin with, see struct ncclotf2_comm
	WindowLast     uint64
	Freed          uint64 // raised after any chunk has become free, by whoever made it so
	CuptiKinds     uint64 // bit k: CUPTI activity kind k is wanted; 0: CUPTI is left alone. Before READY
	_              uint32
	Spare          [SpareMax]uint32 // chunk index + 1, or 0; exchanged atomically
	Message        [512]byte        // one line for NCCL's logger, NUL-terminated: what is amiss
	Place          [512]byte        // the experiment directory, NUL-terminated; before READY or SPOOL, then constant
	_              [8192 - 6144 - 60 - 4*SpareMax - 512 - 512]uint8
}

// chunkHeader is the head of a chunk.
type chunkHeader struct {
	Ring      uint32
	Next      uint32 // index + 1 of the following chunk, or 0
	Sequence  uint64 // 0, 1, … in its ring
	Committed uint32 // bytes of records after this head
	_         [11]uint32
}

// ringHeader is a ring.
type ringHeader struct {
	State       uint32 // taken and given back by compare-and-swap
	First       uint32 // index + 1 of the oldest chunk not yet freed, 0 before the first; the plugin sets it once, then only the reader does
	TID         uint32 // of the present owner
	Generation  uint32 // how many threads have owned it
	_           [48]uint8
	Cursor      uint64 // offset in the mapping of the next record
	Limit       uint64 // offset where the current chunk ends
	Number      uint64 // next handle number
	NumberEnd   uint64
	Chunk       uint32 // index + 1 of the current chunk
	InternEpoch uint32
	Sequence    uint64 // of the current chunk
	_           [16]uint8
	Intern      [internSlots]struct {
		Address uint64
		String  uint32
		_       uint32
	}
}

// commEntry is the entry of a communicator.
type commEntry struct {
	Ready            uint32 // 1 (release) when the rest is filled in; API v1 … v3: with the first operation
	APIVersion       uint32
	CommID           uint64
	Nranks           int32
	Rank             int32
	Nnodes           int32
	Device           int32 // CUDA ordinal, -1 if unknown
	InitTicks        uint64
	FinalTicks       uint64 // 0 while alive (release store)
	InitTID          uint32
	Name             uint32    // string id, 0 if NCCL gave none
	UUID             [16]uint8 // of the GPU; zero if unknown
	PCI              [16]uint8 // "dddddddd:bb:dd" style text, NUL-padded; empty if unknown
	HasUUID          uint32
	_                uint32
	RefusedFirst     uint64
	RefusedLast      uint64
	_                [4]uint32
	Collectives      uint64 // called so far
	Messages         uint64 // called so far
	Replayed         uint64 // collectives of replayed graphs so far
	First            uint64 // written by the collector, or by the plugin at init
	Last             uint64
	Recording        uint32 // bit 0: the last call was inside; bit 1: so was the last replayed operation
	Fresh            uint32 // bit 0: there have been calls inside since the last plan outside; bit 1: a graph has captured calls
	ReplayedMessages uint64
	_                [8]uint8
}

// frameHeader is the head of a frame of a spool file.
type frameHeader struct {
	Magic    uint32 // NCCLOTF2_FRAME_MAGIC
	Kind     uint32
	Index    uint64
	Position uint64
	Length   uint64 // of the body that follows, without its padding to 8
}
