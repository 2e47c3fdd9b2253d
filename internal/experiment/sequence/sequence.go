// SPDX-License-Identifier: Apache-2.0

// Package sequence defines the numbering of a communicator rank's operations: which sequence does an operation belong
// to, and what does a shard say of each?
package sequence

import (
	"fmt"
	"strconv"
	"strings"
)

// DigestStep is the number of operations between two entries of Sequence.Digests.
const DigestStep = 64

// Sequence is a short digest of the operations of one function on one communicator rank, in order.
type Sequence struct {
	Count uint64 `json:"count"`
	// Digests are 0 from where operations are missing on: they cannot be compared. Digests[i] is a running hash over
	// the first (i+1)·DigestStep operations (what all members must have in common: element count, datatype, root, and
	// whether a graph was replayed); Last is the hash over all of them.
	Digests []uint64 `json:"digests"`
	Last    uint64   `json:"last,string"`
	// Recent has recentSize bytes of that hash as of each operation behind the last entry of Digests.
	Recent []byte `json:"recent,omitempty"`
	Bytes  uint64 `json:"bytes"` // point-to-point: sum of message lengths

	// Holes are the missing operations within Count, ascending: a collector died that held them in memory, or the input
	// of a Numbered sequence lacks them.
	Holes []Hole `json:"holes,omitempty"`
	// Numbered is set if the input of an import gives the ordinals. Operations after the last one may exist, too.
	Numbered bool `json:"numbered,omitempty"`
}

// After returns recentSize bytes of the running hash after n operations, nil if it is not known.
func (s *Sequence) After(n uint64) []byte {
	behind := s.Count / DigestStep * DigestStep
	if n <= behind || n > s.Count || uint64(len(s.Recent)) != recentSize*(s.Count-behind) {
		return nil
	}
	return s.Recent[recentSize*(n-behind-1):][:recentSize]
}

// recentSize is the number of bytes of an operation in Sequence.Recent.
const recentSize = 2

// Hole is a run of operations by their ordinals: From ≤ ordinal < To.
type Hole struct {
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
}

// Pair is a direction of messages: from one rank of a communicator to another. Each end numbers the messages in a
// sequence of its own.
type Pair struct{ From, To int }

// Name names the messages of the pair, as an archive's properties do: "Send 0>3".
func (p Pair) Name() string { return fmt.Sprintf("Send %d>%d", p.From, p.To) }

// SendKey is the key of the sender's sequence in Comm.Sequences: "Send>3".
func (p Pair) SendKey() string { return "Send>" + strconv.Itoa(p.To) }

// RecvKey is the key of the receiver's sequence in Comm.Sequences: "Recv<0".
func (p Pair) RecvKey() string { return "Recv<" + strconv.Itoa(p.From) }

// PairOf is the direction of the messages that a rank numbers in the sequence of a key; not ok if the key is none of
// messages, or names no rank.
func PairOf(key string, rank int) (p Pair, ok bool) {
	text, send := strings.CutPrefix(key, "Send>")
	if !send {
		if text, ok = strings.CutPrefix(key, "Recv<"); !ok {
			return Pair{}, false
		}
	}
	peer, err := strconv.Atoi(text)
	if err != nil || peer < 0 {
		return Pair{}, false
	}
	if send {
		return Pair{rank, peer}, true
	}
	return Pair{peer, rank}, true
}

// FunctionOf is the function of a key of Comm.Sequences: "Send" of "Send>3".
func FunctionOf(key string) string {
	if i := strings.IndexAny(key, "<>"); i >= 0 {
		return key[:i]
	}
	return key
}
