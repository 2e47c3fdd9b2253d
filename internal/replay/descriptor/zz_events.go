// SPDX-License-Identifier: Apache-2.0
// Code generated from plugin/api/generate/table.go by make generate; DO NOT EDIT.

package descriptor

// The event types: numbers of the bits in NCCL's activation mask, but for the last two.
const (
	TypeGroup        Type = 0  // a kernel plan's enqueueing
	TypeColl         Type = 1  // one collective of a plan
	TypeP2p          Type = 2  // one send or receive of a plan
	TypeProxyOp      Type = 3  // one channel's network transfers of an operation, in one direction
	TypeProxyStep    Type = 4  // one network transfer
	TypeProxyCtrl    Type = 5  // the progress thread's own activity
	TypeKernelCh     Type = 6  // one channel of a kernel on the GPU
	TypeNetPlugin    Type = 7  // what a network plugin reports under a ProxyStep
	TypeGroupApi     Type = 8  // an outermost group, or a call outside any
	TypeCollApi      Type = 9  // the call of a collective
	TypeP2pApi       Type = 10 // the call of a send or receive
	TypeKernelLaunch Type = 11 // the launch of a plan's kernel
	TypeCeColl       Type = 12 // a collective by copy engine
	TypeCeSync       Type = 13 // a synchronization of a CeColl
	TypeCeBatch      Type = 14 // a batch of copies of a CeColl
	TypeKernelPhase  Type = 15 // a part of a KernelCh
	TypeProxyDiag    Type = 16 // RCCL's, with the bit of KernelPhase, in its version 6
	TypeOther        Type = 17 // any that neither NCCL nor RCCL defines: Event.TypeBits says which
	typeCount        Type = 18
)

// The states.
const (
	StateProxyOpSendPosted      State = 0 // up to NCCL 2.26, like all states of ProxyOp before InProgress
	StateProxyOpSendRemFifoWait State = 1
	StateProxyOpSendTransmitted State = 2
	StateProxyOpSendDone        State = 3
	StateProxyOpRecvPosted      State = 4
	StateProxyOpRecvReceived    State = 5
	StateProxyOpRecvTransmitted State = 6
	StateProxyOpRecvDone        State = 7
	StateProxyStepSendGPUWait   State = 8  // given to the GPU
	StateProxyStepSendWait      State = 9  // taken by the network
	StateProxyStepRecvWait      State = 10 // posted
	StateProxyStepRecvFlushWait State = 11 // arrived
	StateProxyStepRecvGPUWait   State = 12 // flushed
	StateProxyCtrlIdle          State = 13
	StateProxyCtrlActive        State = 14
	StateProxyCtrlSleep         State = 15
	StateProxyCtrlWakeup        State = 16
	StateProxyCtrlAppend        State = 17
	StateProxyCtrlAppendEnd     State = 18 // the only one with a number
	StateProxyOpInProgress      State = 19
	StateProxyStepSendPeerWait  State = 20 // data ready, but refused by the network
	StateNetPluginUpdate        State = 21
	StateKernelChStop           State = 22
	StateGroupStartApiStop      State = 23
	StateGroupEndApiStart       State = 24 // all operations have been called; they are now launched
	StateCeCollStart            State = 25 // never emitted, like all states of CE events
	StateCeCollComplete         State = 26
	StateCeSyncStart            State = 27
	StateCeSyncComplete         State = 28
	StateCeBatchStart           State = 29
	StateCeBatchComplete        State = 30
	StateKernelPhaseStop        State = 31 // RCCL's version 6: ProxyDiagUpdate
	StateProxyDiagUpdate        State = 31 // RCCL's, in its version 6
)

// The descriptors, one type for each event type, with the members that NCCL fills in. Counts are in elements of
// Datatype, except where NCCL counts bytes (Coll of AllGather and Broadcast: ncclInt8). A NULL string is "".
// Members that some versions have are 0 or "" in others.
type (
	// Group is a kernel plan's enqueueing.
	Group struct {
	}

	// Coll is one collective of a plan.
	Coll struct {
		SeqNumber     uint64  `json:"seqNumber"` // per communicator and function, from 0
		Func          string  `json:"func"`
		SendBuff      Pointer `json:"sendBuff"`
		RecvBuff      Pointer `json:"recvBuff"`
		Count         uint64  `json:"count"`
		Root          int     `json:"root"`
		Datatype      string  `json:"datatype"`
		NChannels     int     `json:"nChannels"` // versions 1 to 3: a maximum
		NWarps        int     `json:"nWarps"`
		Algo          string  `json:"algo"`
		Proto         string  `json:"proto"`
		ParentGroup   Pointer `json:"parentGroup"`             // handle of the Group event; from version 5 on
		KernelVariant string  `json:"kernelVariant,omitempty"` // version 7
		IsSymColl     Flag    `json:"isSymColl,omitempty"`     // version 7
		UserTag       uint64  `json:"userTag,omitempty"`       // of the application; version 7
		Name          string  `json:"name,omitempty"`          // the communicator's; versions 1 to 3
		CommHash      Pointer `json:"commHash,omitempty"`      // versions 1 to 3
		TrafficBytes  uint64  `json:"trafficBytes,omitempty"`  // versions 1 to 2
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
		Peer        int     `json:"peer"`               // rank in the communicator
		NChannels   int     `json:"nChannels"`          // from version 4 on
		ParentGroup Pointer `json:"parentGroup"`        // handle of the Group event; from version 5 on
		UserTag     uint64  `json:"userTag,omitempty"`  // of the application; version 7
		Name        string  `json:"name,omitempty"`     // the communicator's; versions 1 to 3
		CommHash    Pointer `json:"commHash,omitempty"` // versions 1 to 3
	}

	// ProxyOp is one channel's network transfers of an operation, in one direction.
	ProxyOp struct {
		PID             int     `json:"pid"` // of the process whose operation it is
		ChannelID       int     `json:"channelId"`
		Peer            int     `json:"peer"` // rank in the communicator
		NSteps          int     `json:"nSteps"`
		ChunkSize       int     `json:"chunkSize"` // bytes, the maximum per step
		IsSend          Flag    `json:"isSend"`
		CommHash        Pointer `json:"commHash,omitempty"`        // RCCL's version 6
		OpCount         int64   `json:"opCount,omitempty"`         // RCCL's version 6
		TraceFuncIdx    int     `json:"traceFuncIdx,omitempty"`    // RCCL's version 6
		TraceProtocol   int     `json:"traceProtocol,omitempty"`   // RCCL's version 6
		TracePattern    int     `json:"tracePattern,omitempty"`    // RCCL's version 6
		TraceTotalBytes uint32  `json:"traceTotalBytes,omitempty"` // RCCL's version 6
		ProxyNbytes     uint32  `json:"proxyNbytes,omitempty"`     // RCCL's version 6
		RawProxyNsteps  int     `json:"rawProxyNsteps,omitempty"`  // RCCL's version 6
	}

	// ProxyStep is one network transfer.
	ProxyStep struct {
		Step int `json:"step"` // from 0 in each ProxyOp
	}

	// ProxyCtrl is the progress thread's own activity.
	ProxyCtrl struct {
	}

	// KernelCh is one channel of a kernel on the GPU.
	KernelCh struct {
		ChannelID int    `json:"channelId"`
		PTimer    uint64 `json:"pTimer"` // start, the GPU's clock; from version 4 on
	}

	// NetPlugin is what a network plugin reports under a ProxyStep.
	NetPlugin struct {
		ID   int64   `json:"id"`             // kind in bits 16 to 31, version in bits 0 to 15
		Data Pointer `json:"data"`           // address, which means nothing; what was there follows, where it is known
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
		UserTag       uint64  `json:"userTag,omitempty"` // of the application; version 7
	}

	// P2pApi is the call of a send or receive.
	P2pApi struct {
		Func          string  `json:"func"`
		Count         uint64  `json:"count"`
		Datatype      string  `json:"datatype"`
		Stream        Pointer `json:"stream"`
		GraphCaptured Flag    `json:"graphCaptured"`
		UserTag       uint64  `json:"userTag,omitempty"` // of the application; version 7
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
		BatchSize      uint32  `json:"batchSize"`
		NumBatches     uint32  `json:"numBatches"`
		CeSeqNum       uint32  `json:"ceSeqNum"`
		Stream         Pointer `json:"stream"`
		UserTag        uint64  `json:"userTag,omitempty"` // of the application; version 7
	}

	// CeSync is a synchronization of a CeColl.
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
		PTimer    uint64 `json:"pTimer"` // start, the GPU's clock
	}
)

// descriptorTypes are the descriptors by event type.
var descriptorTypes = [typeCount]any{
	Group{}, Coll{}, P2p{}, ProxyOp{}, ProxyStep{}, ProxyCtrl{}, KernelCh{}, NetPlugin{}, GroupApi{}, CollApi{}, P2pApi{},
	KernelLaunch{}, CeColl{}, CeSync{}, CeBatch{}, KernelPhase{}, ProxyDiag{}, Other{},
}
