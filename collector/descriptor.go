// SPDX-License-Identifier: Apache-2.0

package collector

import "github.com/nccl-otf2/nccl-otf2/plugin/shm"

// A descriptorMember writes one member of an event's descriptor.
type descriptorMember struct {
	since, until int // API versions; until 0: no end
	write        func(t *transcript, b []byte, r *shm.Record) []byte
}

func numberOf(name string, get func(r *shm.Record) int64) descriptorMember {
	return descriptorMember{write: func(_ *transcript, b []byte, r *shm.Record) []byte { return number(b, name, get(r)) }}
}

func unsignedOf(name string, get func(r *shm.Record) uint64) descriptorMember {
	return descriptorMember{write: func(_ *transcript, b []byte, r *shm.Record) []byte { return unsigned(b, name, get(r)) }}
}

func textOf(name string, get func(r *shm.Record) string) descriptorMember {
	return descriptorMember{write: func(_ *transcript, b []byte, r *shm.Record) []byte { return text(b, name, get(r)) }}
}

func pointerOf(name string, get func(r *shm.Record) uint64) descriptorMember {
	return descriptorMember{write: func(_ *transcript, b []byte, r *shm.Record) []byte { return pointer(b, name, get(r)) }}
}

func flagOf(name string, bit shm.RecordFlags) descriptorMember {
	return descriptorMember{write: func(_ *transcript, b []byte, r *shm.Record) []byte { return boolean(b, name, r.Flags&bit != 0) }}
}

func (m descriptorMember) from(api int) descriptorMember { m.since = api; return m }

// Members that several types have.
var (
	funcName = textOf("func", func(r *shm.Record) string { return r.Func })
	datatype = textOf("datatype", func(r *shm.Record) string { return r.Datatype })
	count    = unsignedOf("count", func(r *shm.Record) uint64 { return r.Count })
	seq      = unsignedOf("seqNumber", func(r *shm.Record) uint64 { return r.Seq })
	commName = descriptorMember{until: 3, write: func(t *transcript, b []byte, r *shm.Record) []byte {
		return text(b, "name", t.comm(r.Aux).Name)
	}}
	commHash = descriptorMember{until: 3, write: func(t *transcript, b []byte, r *shm.Record) []byte {
		return pointer(b, "commHash", t.comm(r.Aux).ID)
	}}
	root     = numberOf("root", func(r *shm.Record) int64 { return int64(r.Root) })
	stream   = pointerOf("stream", func(r *shm.Record) uint64 { return r.Stream })
	sendBuff = pointerOf("sendBuff", func(r *shm.Record) uint64 { return r.SendBuff })
	recvBuff = pointerOf("recvBuff", func(r *shm.Record) uint64 { return r.RecvBuff })
	captured = flagOf("graphCaptured", shm.FlagGraph)
	channels = numberOf("nChannels", func(r *shm.Record) int64 { return int64(r.NChannels) })
	channel  = numberOf("channelId", func(r *shm.Record) int64 { return int64(r.Channel) })
	ptimer   = unsignedOf("pTimer", func(r *shm.Record) uint64 { return r.PTimer })
	userTag  = unsignedOf("userTag", func(r *shm.Record) uint64 { return r.UserTag }).from(7)
	group    = descriptorMember{write: func(t *transcript, b []byte, r *shm.Record) []byte {
		b = pointer(b, "parentGroup", r.ParentGroup)
		b, _ = t.refer(b, "parentGroupId", r.ParentGroup)
		return b
	}}
)

// descriptors says what is written of each event type's descriptor (notes on the API, §2.5).
var descriptors = [shm.TypeCount][]descriptorMember{
	shm.EventColl: {
		seq, funcName, sendBuff, recvBuff, count, root, datatype, channels,
		numberOf("nWarps", func(r *shm.Record) int64 { return int64(r.NWarps) }),
		textOf("algo", func(r *shm.Record) string { return r.Algo }),
		{write: func(_ *transcript, b []byte, r *shm.Record) []byte {
			if r.Flags&shm.FlagSym != 0 && r.Proto == "" { // NCCL's own "", no NULL
				return append(b, `,"proto":""`...)
			}
			return text(b, "proto", r.Proto)
		}},
		group, userTag, commName, commHash,
		textOf("kernelVariant", func(r *shm.Record) string { return r.KernelVariant }).from(7),
		flagOf("isSymColl", shm.FlagSym).from(7),
	},
	shm.EventP2p: {
		funcName, pointerOf("buff", func(r *shm.Record) uint64 { return r.SendBuff }), datatype, count,
		numberOf("peer", func(r *shm.Record) int64 { return int64(r.Peer) }), channels, group, userTag, commName, commHash,
	},
	shm.EventProxyOp: {
		numberOf("pid", func(r *shm.Record) int64 { return int64(r.PID) }), channel,
		numberOf("peer", func(r *shm.Record) int64 { return int64(r.Peer) }),
		numberOf("nSteps", func(r *shm.Record) int64 { return int64(r.NSteps) }),
		numberOf("chunkSize", func(r *shm.Record) int64 { return int64(r.ChunkSize) }),
		flagOf("isSend", shm.FlagSend),
	},
	shm.EventProxyStep:    {numberOf("step", func(r *shm.Record) int64 { return int64(r.Step) })},
	shm.EventKernelCh:     {channel, ptimer},
	shm.EventNetPlugin:    {numberOf("id", func(r *shm.Record) int64 { return r.NetID }), pointerOf("data", func(r *shm.Record) uint64 { return r.Data }), {write: netData}},
	shm.EventGroupApi:     {captured, numberOf("groupDepth", func(r *shm.Record) int64 { return int64(r.GroupDepth) })},
	shm.EventCollApi:      {funcName, count, datatype, root, stream, captured, userTag},
	shm.EventP2pApi:       {funcName, count, datatype, stream, captured, userTag},
	shm.EventKernelLaunch: {stream},
	shm.EventCeColl: {
		seq, funcName, sendBuff, recvBuff, count, root, datatype,
		textOf("syncStrategy", func(r *shm.Record) string { return r.SyncStrategy }),
		flagOf("intraBatchSync", shm.FlagComplete),
		numberOf("batchSize", func(r *shm.Record) int64 { return int64(r.BatchSize) }),
		numberOf("numBatches", func(r *shm.Record) int64 { return int64(r.NumBatches) }),
		numberOf("ceSeqNum", func(r *shm.Record) int64 { return int64(r.CeSeq) }),
		stream, userTag,
	},
	shm.EventCeSync: {flagOf("isComplete", shm.FlagComplete), numberOf("nRanks", func(r *shm.Record) int64 { return int64(r.NRanks) })},
	shm.EventCeBatch: {
		numberOf("numOps", func(r *shm.Record) int64 { return int64(r.NumOps) }),
		unsignedOf("totalBytes", func(r *shm.Record) uint64 { return r.Bytes }),
		flagOf("useIntraSync", shm.FlagComplete),
	},
	shm.EventKernelPhase: {
		channel, ptimer,
		numberOf("phaseId", func(r *shm.Record) int64 { return int64(r.Phase) }),
		textOf("phaseName", func(r *shm.Record) string { return r.PhaseName }),
	},
}

// Kinds of network plugins in the upper half of NetPlugin's id (notes on the API, §2.5).
const (
	netIB     = 1
	netSocket = 2
)

// netData writes what a network plugin's own descriptor held.
func netData(_ *transcript, b []byte, r *shm.Record) []byte {
	if r.Flags&shm.FlagKnownNet == 0 {
		return b
	}
	switch r.NetID >> 16 {
	case netSocket:
		b = append(b, `,"sock":{"type":1`...)
		b = number(b, "fd", int64(r.DeviceOrFD))
		b = append(b, `,"op":`...)
		if r.Flags&shm.FlagSend != 0 {
			b = append(b, '0')
		} else {
			b = append(b, '1')
		}
		return append(unsigned(b, "length", r.Length), '}')
	case netIB:
		b = append(b, `,"ib":{"type":1`...)
		b = number(b, "device", int64(r.DeviceOrFD))
		b = unsigned(b, "wrId", r.WrID)
		b = number(b, "opcode", int64(r.Opcode))
		b = number(b, "qpNum", int64(r.QP))
		return append(unsigned(b, "length", r.Length), '}')
	}
	return b
}
