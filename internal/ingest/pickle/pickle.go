// SPDX-License-Identifier: Apache-2.0

// Package pickle reads what Python's pickle module writes, protocols 2 to 5, of plain types alone: None, bool, int,
// float, str, list, tuple and dict. It refuses everything else, above all what names or calls anything.
package pickle

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
)

// object is a Python object: the JSON of a plain value, or a container.
type object struct {
	text  []byte
	kind  byte      // '[' or '{' of a container, markKind, else 0
	items []*object // of a dict: its keys, each followed by its value
}

// markKind is the kind of the object that MARK puts onto the stack.
const markKind = 'm'

// maxDepth bounds how deep containers may be nested.
const maxDepth = 32

var (
	errCut   = errors.New("a pickle that is cut off")
	errStack = errors.New("a damaged pickle: an instruction lacks what it works on")
)

// JSON returns the JSON of a pickled object of plain types. Objects may occur in several places, so the text may be
// longer than data: it fails if that has more than limit bytes, so that little data cannot take much memory.
func JSON(data []byte, limit int) ([]byte, error) {
	r := reader{rest: data}
	for r.result == nil {
		code, err := r.nextBytes(1)
		if err == nil {
			err = r.run(code[0])
		}
		if err != nil {
			return nil, fmt.Errorf("%w, at byte %d", err, len(data)-len(r.rest))
		}
	}
	return r.result.appendTo(nil, limit, 0)
}

// appendTo appends the object's JSON.
func (o *object) appendTo(to []byte, limit, depth int) (_ []byte, err error) {
	if len(to)+len(o.text) > limit || depth > maxDepth {
		return nil, fmt.Errorf("a pickle of more than %d bytes, or nested deeper than %d containers", limit, maxDepth)
	}
	if o.kind == 0 {
		return append(to, o.text...), nil
	}
	to = append(to, o.kind)
	for i, item := range o.items {
		key := o.kind == '{' && i%2 == 0
		switch {
		case key && (item.kind != 0 || item.text[0] != '"'):
			return nil, errors.New("a pickled dict with keys that are no strings")
		case o.kind == '{' && i%2 == 1:
			to = append(to, ':')
		case i > 0:
			to = append(to, ',')
		}
		if to, err = item.appendTo(to, limit, depth+1); err != nil {
			return nil, err
		}
	}
	return append(to, o.kind+2), nil // ']' or '}'
}

// reader carries out a pickle's instructions.
type reader struct {
	rest   []byte
	stack  []*object
	memo   []*object
	result *object
}

func (r *reader) nextBytes(n uint64) ([]byte, error) {
	if uint64(len(r.rest)) < n {
		return nil, errCut
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b, nil
}

// number takes a number of so many bytes, the lowest first.
func (r *reader) number(size uint64) (uint64, error) {
	var b [8]byte
	text, err := r.nextBytes(size)
	copy(b[:], text)
	return binary.LittleEndian.Uint64(b[:]), err
}

// operands are the sizes of the numbers behind an instruction's code.
var operands = map[byte]uint64{
	'\x80': 1, '\x95': 8, 'q': 1, 'r': 4, 'h': 1, 'j': 4, 'K': 1, 'M': 2, 'J': 4, '\x8a': 1, 'G': 8, '\x8c': 1, 'X': 4,
	'\x8d': 8,
}

// constants are the values of instructions without operands.
var constants = map[byte]object{
	'N': {text: []byte("null")}, '\x88': {text: []byte("true")}, '\x89': {text: []byte("false")},
	']': {kind: '['}, ')': {kind: '['}, '}': {kind: '{'}, '(': {kind: markKind},
}

// gathers are the instructions that put objects into a container, and how many objects: 0 stands for those since the
// last mark.
var gathers = map[byte]int{'a': 1, 'e': 0, 's': 2, 'u': 0, 't': 0, '\x85': 1, '\x86': 2, '\x87': 3}

// run carries out one instruction.
func (r *reader) run(code byte) error {
	n, err := r.number(operands[code])
	if err != nil {
		return err
	}
	constant, isConstant := constants[code]
	_, gather := gathers[code]
	switch {
	case isConstant:
		r.stack = append(r.stack, &constant)
		return nil
	case gather:
		return r.gather(code)
	}
	switch code {
	case '\x80', '\x95': // PROTO, FRAME
		return nil
	case '\x94', 'q', 'r': // MEMOIZE, BINPUT, LONG_BINPUT
		return r.memoize(code, n)
	case 'h', 'j': // BINGET, LONG_BINGET
		if n >= uint64(len(r.memo)) || r.memo[n] == nil {
			return errStack
		}
		r.stack = append(r.stack, r.memo[n])
		return nil
	case 'K', 'M': // BININT1, BININT2
		return r.push(strconv.AppendUint(nil, n, 10), nil)
	case 'J': // BININT
		return r.push(strconv.AppendInt(nil, int64(int32(n)), 10), nil)
	case '\x8a': // LONG1
		return r.long(n)
	case 'G': // BINFLOAT, the highest byte first
		v := math.Float64frombits(bits.ReverseBytes64(n))
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return r.push([]byte("null"), nil)
		}
		return r.push(json.Marshal(v))
	case '\x8c', 'X', '\x8d': // SHORT_BINUNICODE, BINUNICODE, BINUNICODE8
		text, err := r.nextBytes(n)
		if err != nil {
			return err
		}
		return r.push(json.Marshal(string(text)))
	case '.': // STOP
		if len(r.stack) != 1 || r.stack[0].kind == markKind {
			return errStack
		}
		r.result = r.stack[0]
		return nil
	}
	return fmt.Errorf("a pickle with instruction %#x: only plain values are read", code)
}

func (r *reader) push(text []byte, err error) error {
	r.stack = append(r.stack, &object{text: text})
	return err
}

// long pushes a signed number of size bytes.
func (r *reader) long(size uint64) error {
	if size > 8 {
		return errors.New("a pickled number of more than 64 bits")
	}
	n, err := r.number(size)
	unused := 64 - 8*size
	return r.push(strconv.AppendInt(nil, int64(n<<unused)>>unused, 10), err)
}

// memoize remembers the object on top of the stack. Writers number them without gaps.
func (r *reader) memoize(code byte, n uint64) error {
	if code == '\x94' {
		n = uint64(len(r.memo))
	}
	if len(r.stack) == 0 || n > uint64(len(r.memo)) {
		return errStack
	}
	if n == uint64(len(r.memo)) {
		r.memo = append(r.memo, nil)
	}
	r.memo[n] = r.stack[len(r.stack)-1]
	return nil
}

// gather puts the objects on top of the stack into the list or dict below them, or into a new tuple.
func (r *reader) gather(code byte) error {
	n, mark := gathers[code], 0
	if n == 0 {
		for mark = 1; n < len(r.stack) && r.stack[len(r.stack)-1-n].kind != markKind; n++ {
		}
	}
	below := len(r.stack) - n - mark
	if below < 0 {
		return errStack
	}
	items := r.stack[below+mark:]
	into, kind := &object{kind: '['}, byte('[')
	switch code {
	case 'a', 'e', 's', 'u':
		if below--; below < 0 {
			return errStack
		}
		into = r.stack[below]
	}
	if code == 's' || code == 'u' {
		kind = '{'
	}
	isMark := func(o *object) bool { return o.kind == markKind }
	if into.kind != kind || kind == '{' && n%2 != 0 || slices.ContainsFunc(items, isMark) {
		return errStack
	}
	into.items = append(into.items, items...)
	r.stack = append(r.stack[:below], into)
	return nil
}
