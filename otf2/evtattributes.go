// SPDX-License-Identifier: Apache-2.0

package otf2

import "encoding/binary"

// attributes reads the attribute list at the read position. Several lists before one event add up.
func (r *eventReader) attributes() error {
	b, head, err := r.whole()
	if err != nil {
		return err
	}
	first := len(r.attrs)
	if !r.big && cap(b)-len(b) >= decodeSlack {
		err = r.attributesLittle(b[:len(b)+decodeSlack], head, len(b))
	} else {
		d := fieldDecoder{buf: b, pos: head, big: r.big}
		for range count(&d, d.c32(), 3) {
			v := AttributeValue{ID: AttributeRef(d.c32()), Type: Type(d.u8())}
			v.Bits = uint64(d.value(v.Type))
			r.attrs = append(r.attrs, v)
		}
		err = d.err
	}
	if err != nil {
		return err
	}
	r.mapAttributes(first)
	r.win.r += len(b)
	return nil
}

// mapAttributes maps the ids and values of r.attrs[first:].
func (r *eventReader) mapAttributes(first int) {
	if r.maps == nil {
		return
	}
	for i := first; i < len(r.attrs); i++ {
		v := &r.attrs[i]
		v.ID = AttributeRef(r.mapped(&op{space: MappingAttribute, max: 4}, uint64(v.ID)))
		if f := &valueForms[v.Type]; f.space != NoSpace {
			v.Bits = r.mapped(&op{space: f.space, max: f.max}, v.Bits)
		}
	}
}

// attributesLittle decodes the list in b[p:end] of a little-endian chunk; decodeSlack bytes follow end.
func (r *eventReader) attributesLittle(b []byte, p, end int) error {
	size, n, err := compressedAt(b[p:], 4, false)
	if err != nil {
		return err
	}
	p += size
	if p > end {
		return errShort
	}
	if n > uint64(end-p)/3 {
		return badCount(n)
	}
	for range n {
		var id, v uint64
		if k := b[p]; k <= 4 {
			id = binary.LittleEndian.Uint64(b[p+1:]) & lowBytes[k&15]
			p += 1 + int(k)
		} else if k == 0xff {
			id = 1<<32 - 1
			p++
		} else {
			return badSize(k, 4)
		}
		if p >= end {
			return errShort
		}
		typ := b[p]
		p++
		f := &valueForms[typ]
		if p >= end {
			return errShort
		}
		if f.fixed != 0 {
			v = binary.LittleEndian.Uint64(b[p:]) & lowBytes[f.fixed&15]
			p += int(f.fixed)
		} else if k := b[p]; k <= f.max {
			v = binary.LittleEndian.Uint64(b[p+1:]) & lowBytes[k&15]
			p += 1 + int(k)
		} else if k == 0xff {
			v = undefinedOf(f.max)
			p++
		} else {
			return badSize(k, f.max)
		}
		if p > end {
			return errShort
		}
		if f.sign != 0 {
			v = uint64(int64(v<<f.sign) >> f.sign)
		}
		r.attrs = append(r.attrs, AttributeValue{ID: AttributeRef(id), Type: Type(typ), Bits: v})
	}
	return nil
}

// valueForm is how an attribute value of a type is encoded.
type valueForm struct {
	fixed uint8       // bytes, 0 for a compressed number
	max   uint8       // most bytes of a compressed number
	sign  uint8       // bits above the number's sign bit, 0 if there is none or no bits are above it
	space MappingType // of a reference, else NoSpace

	mask      uint64 // of the bits that are written
	undefined uint64 // of compressed unsigned numbers the one that is a single byte; else none, or a rare one
}

var valueForms = func() (forms [256]valueForm) {
	for t := range forms {
		f := &forms[t]
		f.max, f.space = 8, mappingOfType(Type(t))
		switch typ := Type(t); typ {
		case TypeUint8, TypeInt8:
			f.fixed = 1
		case TypeUint16, TypeInt16:
			f.fixed = 2
		case TypeFloat:
			f.fixed = 4
		case TypeDouble:
			f.fixed = 8
		case TypeUint32, TypeInt32:
			f.max = 4
		default:
			if typ.IsReference() && typ != TypeLocation {
				f.max = 4
			}
		}
	}
	for t := range forms {
		f := &forms[t]
		f.undefined = 1<<64 - 1
		switch {
		case f.fixed != 0:
			f.mask = undefinedOf(f.fixed)
		case Type(t) == TypeInt32 || Type(t) == TypeInt64:
			f.mask = undefinedOf(f.max)
		default:
			f.mask = undefinedOf(f.max)
			f.undefined = f.mask
		}
	}
	forms[TypeInt8].sign, forms[TypeInt16].sign, forms[TypeInt32].sign = 56, 48, 32
	return forms
}()
