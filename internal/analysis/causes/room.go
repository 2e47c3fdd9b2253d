// SPDX-License-Identifier: Apache-2.0

package causes

import "github.com/nccl-otf2/nccl-otf2/otf2"

// Sends end as soon as their data is in a buffer. If that is full, they wait until the other end has received one of
// the messages before, and not for the receive of their own message.

// Room is the end of a receive that made room for a later send of the same two ranks.
type Room struct {
	Rank int32 // of the world, that received
	Seq  uint32
	End  otf2.Timestamp
}

// Functions of launches that only send, or only receive.
const (
	sends = "Send"
	recvs = "Recv"
)

// keptReceives is the number of receives of a pair in which the one that made room is looked for: NCCL's buffers have
// room for eight messages.
const keptReceives = 16

// way is from one rank of the world to another.
type way struct{ from, to int32 }

// receives are the last ones of a way.
type receives struct {
	all  [keptReceives]Room
	next int
}

// received keeps that messages of a launch were received by another, if both do nothing else.
func (e *Engine) received(from, by *launch) {
	if from.function != sends || by.function != recvs {
		return
	}
	w := way{from.Local.Rank, by.Local.Rank}
	r := e.ways[w]
	if r == nil {
		if len(e.ways) >= mostPairs {
			return
		}
		r = new(receives)
		e.ways[w] = r
	}
	r.all[r.next] = Room{by.Local.Rank, by.Local.Seq, by.End}
	r.next = (r.next + 1) % keptReceives
}

// findRoom sets the receive that a launch of sends waited for: the last one that ended while it lasted, in the later
// half, if it ended before its own messages were asked for.
func (e *Engine) findRoom(l *launch) {
	if l.function != sends {
		return
	}
	half := l.Begin + (l.End-min(l.Begin, l.End))/2
	for _, o := range l.others {
		r := e.ways[way{l.Local.Rank, o.Local.Rank}]
		if r == nil || o.There <= l.End {
			continue
		}
		for _, x := range r.all {
			if x.End > max(half, l.room.End) && x.End < l.End {
				l.room = x
			}
		}
	}
}
