// SPDX-License-Identifier: Apache-2.0

package otf2

import "slices"

// BigEndianEvents, BigEndianSnapshots, BigEndianGlobalDefs and BigEndianLocalDefs turn a whole little-endian file into
// the same file as a big-endian machine writes it. Sizes stay, so it is done in place.
func BigEndianEvents(b []byte, chunk uint64)     { toBigEndian(b, chunk, eventTable(), true) }
func BigEndianSnapshots(b []byte, chunk uint64)  { toBigEndian(b, chunk, snapshotTable(), true) }
func BigEndianGlobalDefs(b []byte, chunk uint64) { toBigEndian(b, chunk, globalDefTable(), false) }
func BigEndianLocalDefs(b []byte, chunk uint64)  { toBigEndian(b, chunk, localDefTable(), false) }

func toBigEndian(b []byte, chunk uint64, table *recordTable, stamped bool) {
	for start := 0; start < len(b); start += int(chunk) {
		c := &turner{b: b[start:min(len(b), start+int(chunk))]}
		c.p++
		c.b[c.p] = bigEndian
		c.p++
		c.turn(8)
		c.turn(8)
		c.records(table, stamped)
	}
}

// turner walks a chunk and turns its numbers around.
type turner struct {
	b []byte
	p int
}

// turn reverses the next n bytes and passes them.
func (c *turner) turn(n int) {
	slices.Reverse(c.b[c.p : c.p+n])
	c.p += n
}

// compressed passes a compressed number and returns it.
func (c *turner) compressed() (v uint64) {
	n := int(c.b[c.p])
	c.p++
	if n == 0xff {
		return 1<<64 - 1
	}
	c.turn(n)
	for _, x := range c.b[c.p-n : c.p] {
		v = v<<8 | uint64(x)
	}
	return v
}

func (c *turner) byte() uint64 {
	c.p++
	return uint64(c.b[c.p-1])
}

func (c *turner) records(table *recordTable, stamped bool) {
	for {
		id := uint8(c.byte())
		switch {
		case id == recordEndOfChunk, id == recordEndOfFile:
			return
		case stamped && id == recordTimestamp:
			c.turn(8)
			continue
		case stamped && table[id].NoLength:
			c.compressed()
			continue
		}
		size := int(c.byte())
		if size == 0xff {
			size = 0
			for i := 7; i >= 0; i-- {
				size = size<<8 | int(c.b[c.p+i])
			}
			c.turn(8)
		}
		end := c.p + size
		if stamped && id == recordAttributes {
			for range c.compressed() {
				c.compressed()
				c.value(Type(c.byte()))
			}
		} else {
			c.fields(table[id].Fields, end)
		}
		if c.p != end {
			panic("record does not end where it should")
		}
	}
}

func (c *turner) fields(fields []Field, end int) {
	var times uint64
	var typ Type
	one := func(f *Field) {
		var v uint64
		switch f.Encoding {
		case EncodingU8:
			v = c.byte()
		case EncodingF64, EncodingDouble:
			c.turn(8)
		case EncodingString:
			c.p += slices.Index(c.b[c.p:], 0) + 1
		case EncodingValue:
			c.value(typ)
		case EncodingIDMap:
			c.compressed()
			c.byte()
			for c.p < end {
				c.compressed()
			}
		default:
			v = c.compressed()
		}
		if f.Type == "Type" {
			typ = Type(v)
		}
		if !f.Repeated {
			times = v
		}
	}
	for i := 0; i < len(fields); {
		if !fields[i].Repeated {
			one(&fields[i])
			i++
			continue
		}
		n := i
		for n < len(fields) && fields[n].Repeated {
			n++
		}
		for range times {
			for j := i; j < n; j++ {
				one(&fields[j])
			}
		}
		i = n
	}
}

// value passes an attribute value.
func (c *turner) value(typ Type) {
	switch typ {
	case TypeUint8, TypeInt8:
		c.p++
	case TypeUint16, TypeInt16:
		c.turn(2)
	case TypeFloat:
		c.turn(4)
	case TypeDouble:
		c.turn(8)
	default:
		c.compressed()
	}
}
