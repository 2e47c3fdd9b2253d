// SPDX-License-Identifier: Apache-2.0

// Package commid derives the parent of a communicator from ids: NCCL makes the id of a split's or a shrink's child from
// the parent's id, the number of the split and the color.
package commid

// Birth is how a communicator was made from its parent: the id of the child is a hash of the parent's id and of both
// numbers.
type Birth struct {
	// Count is 1, 2, … for the parent's splits in order, 0 for a shrink.
	Count uint32
	Color uint32 // 0 for a shrink
}

// idHash is the state of NCCL's hash for the id of a child.
type idHash struct{ a, b uint64 }

const (
	mixA, mixB       = 0x9de62bbc8cef3ce3, 0x485cd6311b599e79
	digestA, digestB = 0xbac3bd562846de6b, 0x995a187a14e7b445
)

// mix mixes a word of size bytes into the state, except for the word itself, which is added at the end.
func (h idHash) mix(size uint64) idHash {
	h.a ^= size
	h.a += h.b
	h.b ^= h.a
	h.a ^= h.a >> 31
	h.a *= mixA
	h.b ^= h.b >> 32
	h.b *= mixB
	return h
}

func (h idHash) addWord(size, word uint64) idHash {
	h = h.mix(size)
	h.a += word
	return h
}

func (h idHash) digest() uint64 {
	v := (h.a ^ h.a>>31) * digestA
	v += h.b
	return (v ^ v>>32) * digestB
}

// parentState returns the state after a parent's id.
func parentState(parent uint64) idHash { return idHash{1, 1}.addWord(8, parent) }

// Child returns the id of a parent's child.
func Child(parent uint64, b Birth) uint64 {
	return parentState(parent).addWord(4, uint64(b.Count)).addWord(4, uint64(b.Color)).digest()
}

// Find returns how a child can come from a parent: as its shrink, or as one of its splits from first to last, which
// count from 1; ok is false if neither.
func Find(parent, child uint64, first, last uint32) (Birth, bool) {
	if shrunk := (Birth{}); Child(parent, shrunk) == child {
		return shrunk, true
	}
	h := parentState(parent)
	for count := first; count <= last; count++ {
		if color, ok := h.addWord(4, uint64(count)).colorOf(child); ok {
			return Birth{count, color}, true
		}
	}
	return Birth{}, false
}

// Inverses of the factors modulo 2^64.
var (
	undoMixDigestA = inverse(digestA)
	undoMixDigestB = inverse(digestB)
)

// inverse of an odd number modulo 2^64, by Newton's method: each step doubles the bits that are right, of which an odd
// number has three at first.
func inverse(odd uint64) uint64 {
	x := odd
	for range 5 {
		x *= 2 - odd*x
	}
	return x
}

// colorOf returns the color that makes a child with this id from the state after the parent's id and a count, if there
// is one. Colors are less than 2^31; one in 2^33 unrelated ids seems to have a color.
func (h idHash) colorOf(child uint64) (color uint32, ok bool) {
	h = h.mix(4)
	v := child * undoMixDigestB
	v = (v ^ v>>32) - h.b
	v *= undoMixDigestA
	v ^= v>>31 ^ v>>62
	word := v - h.a
	return uint32(word), word < 1<<31
}
