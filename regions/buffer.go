// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions/cuda"
)

// The memory that operations worked on.

// Classes of memory that buffers can be in.
const (
	ClassDevice  = cuda.ClassDevice
	ClassManaged = cuda.ClassManaged
	ClassPinned  = cuda.ClassPinned
	ClassHost    = cuda.ClassHost
	ClassUnknown = cuda.ClassUnknown
)

// buffers are the addresses of an operation's buffers; 0: not known.
type buffers struct{ send, recv uint64 }

// bufferAttributes adds the memory classes of an operation's buffers, if CUPTI records memory, and whether the
// operation was in place.
func (pw *planWriter) bufferAttributes(a *otf2.AttributeList, c *commRank, op *operation) {
	if !op.task {
		return
	}
	pw.classAttributes(a, op)
	if same, known := op.inPlace(c); known {
		v := uint8(0)
		if same {
			v = 1
		}
		a.Uint8(attrInPlace, v)
	}
}

func (pw *planWriter) classAttributes(a *otf2.AttributeList, op *operation) {
	if !pw.cuda.SeesMemory() {
		return
	}
	class := func(address uint64) otf2.StringRef {
		return pw.defs.stringRef(pw.cuda.MemoryClass(address, op.plan.enqueue.start))
	}
	if op.buffers.send != 0 {
		a.String(AttrSendBuffClass, class(op.buffers.send))
	}
	if op.buffers.recv != 0 {
		a.String(AttrRecvBuffClass, class(op.buffers.recv))
	}
}

// inPlace reports whether an operation's buffers are the same.
func (op *operation) inPlace(c *commRank) (same, known bool) {
	f := CollectiveNamed(op.name)
	if op.p2p || f == nil {
		return false, false
	}
	return f.SameBuffer(op.buffers.send, op.buffers.recv, op.shareBytes(), c.Rank)
}
