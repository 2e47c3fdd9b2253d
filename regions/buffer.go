// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions/cuda"
)

// The memory that operations worked on, where CUPTI records memory, and whether it was one buffer.

// Classes of memory that buffers can be in.
const (
	ClassDevice  = cuda.ClassDevice
	ClassManaged = cuda.ClassManaged
	ClassPinned  = cuda.ClassPinned
	ClassHost    = cuda.ClassHost
	ClassUnknown = cuda.ClassUnknown
)

// bufferAttributes tells what memory an operation worked on.
func (pw *planWriter) bufferAttributes(a *otf2.AttributeList, c *commRank, op *operation) {
	if !pw.cuda.SeesMemory() || !op.task {
		return
	}
	class := func(address uint64) otf2.StringRef {
		return pw.defs.string(pw.cuda.MemoryClass(address, op.plan.start))
	}
	if op.send != 0 {
		a.String(AttrSendBuffClass, class(op.send))
	}
	if op.recv != 0 {
		a.String(AttrRecvBuffClass, class(op.recv))
	}
	if same, known := pw.inPlace(c, op); known {
		v := uint8(0)
		if same {
			v = 1
		}
		a.Uint8(AttrInPlace, v)
	}
}

// inPlace tells whether an operation's buffers are one, as NCCL's documentation defines it: the part that belongs to
// the rank lies in the whole where it belongs.
func (pw *planWriter) inPlace(c *commRank, op *operation) (same, known bool) {
	if op.p2p || op.send == 0 || op.recv == 0 {
		return false, false
	}
	count, datatype := op.elements()
	part := uint64(c.Rank) * count * DatatypeSize(datatype)
	switch op.name {
	case "AllReduce", "Broadcast", "Reduce":
		return op.send == op.recv, true
	case "AllGather":
		return op.send == op.recv+part, DatatypeSize(datatype) > 0
	case "ReduceScatter":
		return op.recv == op.send+part, DatatypeSize(datatype) > 0
	}
	return false, false
}
