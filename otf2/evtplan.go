// SPDX-License-Identifier: Apache-2.0

package otf2

import (
	"encoding/binary"
	"fmt"
	"sync"
)

// plan is a record of the event table prepared for decoding.
type plan struct {
	known    bool
	noLength bool
	simple   bool // has a length field, no repetition, and at most simpleSize-8 bytes of fields
	fixed    []op // fields before the repetition; the last one counts it if there is one
	repeated []op
}

// op says how to decode one field.
type op struct {
	form  form
	max   uint8       // most bytes of a compressed number
	space MappingType // id space, timeSpace or NoSpace
}

// form is how a field's bytes are to be taken.
type form uint8

const (
	formCompressed form = iota
	formByte
	formWord // eight bytes
)

// simpleSize is the most bytes that decoding a simple plan can look at.
const simpleSize = 64

// timeSpace marks fields that are times and so subject to clock correction.
const timeSpace = NoSpace - 1

// decodeSlack is the number of bytes behind a record that decodeLittle may look at.
const decodeSlack = 16

// lowBytes[n] keeps the n low bytes of a word.
var lowBytes = [16]uint64{1: 1<<8 - 1, 1<<16 - 1, 1<<24 - 1, 1<<32 - 1, 1<<40 - 1, 1<<48 - 1, 1<<56 - 1, 1<<64 - 1}

var (
	eventPlans    = sync.OnceValue(func() *[256]plan { return newPlans(&eventTable) })
	snapshotPlans = sync.OnceValue(func() *[256]plan { return newPlans(&snapshotTable) })
	mostFixed     = sync.OnceValue(func() int { return max(fixedOf(eventPlans()), fixedOf(snapshotPlans())) })
)

// fixedOf is the most fields that a record has before its repetition. A reader has room for them, and there may be many
// readers.
func fixedOf(plans *[256]plan) (most int) {
	for id := range plans {
		most = max(most, len(plans[id].fixed), 1)
	}
	return most
}

func newPlans(table *recordTable) *[256]plan {
	plans := new([256]plan)
	for id := range table {
		spec := &table[id]
		if spec.Name == "" {
			continue
		}
		p := &plans[id]
		p.known, p.noLength = true, spec.NoLength
		for i := range spec.Fields {
			f := &spec.Fields[i]
			o := op{space: f.Space}
			if f.Type == "Timestamp" {
				o.space = timeSpace
			}
			switch f.Encoding {
			case EncodingU8:
				o.form = formByte
			case EncodingF64, EncodingDouble:
				o.form = formWord
			case EncodingC32:
				o.max = 4
			default:
				o.max = 8
			}
			if f.Repeated {
				p.repeated = append(p.repeated, o)
			} else {
				p.fixed = append(p.fixed, o)
			}
		}
		p.simple = !p.noLength && len(p.repeated) == 0 && 9*len(p.fixed) <= simpleSize-8
	}
	return plans
}

func undefinedOf(max uint8) uint64 { return 1<<(8*uint(max)) - 1 }

func badSize(n uint8, max uint8) error {
	return fmt.Errorf("%w: compressed number of %d bytes where at most %d are allowed", ErrCorrupt, n, max)
}

func badCount(n uint64) error {
	return fmt.Errorf("%w: %d elements do not fit the record", ErrCorrupt, n)
}

var errShort = fmt.Errorf("%w: record shorter than its fields", ErrCorrupt)

// decodeLittle decodes the fields in b[p:end] of a little-endian chunk; decodeSlack bytes follow end.
func (pl *plan) decodeLittle(r *eventReader, b []byte, p, end int) ([]uint64, error) {
	args := r.args[:len(pl.fixed)]
	p, err := r.fieldsLittle(pl.fixed, args, b, p, end)
	if err != nil || len(pl.repeated) == 0 {
		return args, err
	}
	n := args[len(args)-1]
	if n > uint64(end-p)/uint64(len(pl.repeated)) {
		return args, badCount(n)
	}
	fixed, each := len(pl.fixed), len(pl.repeated)
	if need := fixed + int(n)*each; need > len(r.args) {
		r.args = append(r.args, make([]uint64, need-len(r.args))...)
	}
	args = r.args[:fixed+int(n)*each]
	for i := fixed; i < len(args); i += each {
		if p, err = r.fieldsLittle(pl.repeated, args[i:i+each], b, p, end); err != nil {
			return args, err
		}
	}
	return args, nil
}

// fieldsLittle decodes one field per op into args.
func (r *eventReader) fieldsLittle(ops []op, args []uint64, b []byte, p, end int) (int, error) {
	args = args[:len(ops)]
	mapping := r.maps != nil
	for i := range ops {
		o := &ops[i]
		if p > end {
			return p, errShort
		}
		var v uint64
		switch o.form {
		case formCompressed:
			n := b[p]
			if n <= o.max {
				v = binary.LittleEndian.Uint64(b[p+1:]) & lowBytes[n&15]
				p += 1 + int(n)
			} else if n == 0xff {
				v = undefinedOf(o.max)
				p++
			} else {
				return p, badSize(n, o.max)
			}
		case formByte:
			v = uint64(b[p])
			p++
		case formWord:
			v = binary.LittleEndian.Uint64(b[p:])
			p += 8
		}
		if mapping && o.space != NoSpace {
			v = r.mapped(o, v)
		}
		args[i] = v
	}
	if p > end {
		return p, errShort
	}
	return p, nil
}

// decode is decodeLittle for both byte orders and without bytes to spare.
func (pl *plan) decode(r *eventReader, d *fieldDecoder) ([]uint64, error) {
	args := r.args[:0]
	one := func(o *op) {
		var v uint64
		switch o.form {
		case formCompressed:
			v = d.compressed(int(o.max))
		case formByte:
			v = uint64(d.u8())
		case formWord:
			v = d.f64()
		}
		args = append(args, r.mapped(o, v))
	}
	for i := range pl.fixed {
		one(&pl.fixed[i])
	}
	if len(pl.repeated) > 0 && d.err == nil {
		for range count(d, args[len(args)-1], len(pl.repeated)) {
			for i := range pl.repeated {
				one(&pl.repeated[i])
			}
		}
	}
	if len(args) > len(r.args) {
		r.args = args[:cap(args)]
	}
	return args, d.err
}
