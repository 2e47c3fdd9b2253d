// SPDX-License-Identifier: Apache-2.0

package sequence

import (
	"fmt"
	"strconv"
	"strings"
)

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
