// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"bytes"
	"sync/atomic"
	"unsafe"
)

// Strings resolves string ids. Each string is copied out of the heap once.
// It is not safe for concurrent use.
type Strings struct {
	heap    []byte   // 8-aligned; the mapping, or what a spool file brought
	cache   []string // by id; "" is not looked up yet
	names   map[string]string
	Missing uint64 // look-ups of ids that the heap does not define
}

// NewStrings makes a resolver over a heap of the layout in plugin/shm.h. A nil heap knows no string.
func NewStrings(heap []byte) *Strings { return &Strings{heap: heap} }

// Lookup returns the string with this id; "" for id 0 and for ids that the heap does not define.
func (s *Strings) Lookup(id uint32) string {
	if id == 0 {
		return ""
	}
	if uint64(id) < uint64(len(s.cache)) && s.cache[id] != "" {
		return s.cache[id]
	}
	return s.load(id)
}

func (s *Strings) load(id uint32) string {
	at := uint64(id-1) * 8
	if at+4 > uint64(len(s.heap)) {
		s.Missing++
		return ""
	}
	// The bytes are in place before the length is non-zero.
	length := atomic.LoadUint32((*uint32)(unsafe.Pointer(&s.heap[at])))
	if length == 0 || length > KernelNameMax+1 || at+4+uint64(length) > uint64(len(s.heap)) {
		s.Missing++
		return ""
	}
	text := string(s.heap[at+4 : at+4+uint64(length)-1])
	for uint32(len(s.cache)) <= id {
		s.cache = append(s.cache, "")
	}
	s.cache[id] = text
	return text
}

// intern returns the text before the first NUL, sharing equal ones.
func (s *Strings) intern(b []byte) string {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	if text, ok := s.names[string(b)]; ok {
		return text
	}
	if s.names == nil {
		s.names = make(map[string]string)
	}
	text := string(b)
	s.names[text] = text
	return text
}

// storeBytes stores bytes of the heap at an offset, as a spool file's frame brings them.
func (s *Strings) storeBytes(offset uint64, b []byte) bool {
	if offset > StringSize || uint64(len(b)) > StringSize-offset {
		return false
	}
	if end := int(offset) + len(b); end > len(s.heap) {
		s.heap = append(s.heap, make([]byte, end-len(s.heap))...)
	}
	copy(s.heap[offset:], b)
	return true
}

// cString is the text before the first NUL of a fixed-size field.
func cString(b []byte) string {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return string(b)
}
