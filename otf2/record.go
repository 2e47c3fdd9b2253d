// SPDX-License-Identifier: Apache-2.0

package otf2

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Record is a record in generic form. Which table its ID belongs to depends on the file it came from.
type Record struct {
	ID    uint8
	Args  []uint64 // numbers in on-disk order, counts and repeated members included, superseded fields too
	Texts []string // texts in on-disk order
}

// writeRecord encodes r as spec has it. Fields that later versions appended may be missing.
func (w *recordFile) writeRecord(spec *recordSpec, r *Record) error {
	bad := func(what string) error {
		return fmt.Errorf("otf2: %s: %s: %w", spec.Name, what, ErrInvalid)
	}
	b, slack := w.start(), 0
	args, texts := r.Args, r.Texts
	var previous, typ uint64 // last argument outside a repetition; last Type
	one := func(f *Field) error {
		if f.Encoding == EncodingString {
			if len(texts) == 0 {
				return bad("a text is missing")
			}
			if err := checkText(texts[0]); err != nil {
				return err
			}
			b = append(append(b, texts[0]...), 0)
			texts = texts[1:]
			return nil
		}
		if len(args) == 0 {
			return bad("too few arguments")
		}
		v := args[0]
		args = args[1:]
		if f.Type == "Type" {
			typ = v
		}
		if f.Encoding == EncodingValue {
			before := len(b)
			b = appendValue(b, Type(typ), Value(v))
			slack += 9 - (len(b) - before)
			return nil
		}
		b = appendArg(b, f.Encoding, v)
		if !f.Repeated {
			previous = v
		}
		return nil
	}
	for i := 0; i < len(spec.Fields); i++ {
		f := &spec.Fields[i]
		if f.Since != 0 && len(args) == 0 {
			break
		}
		if !f.Repeated {
			if err := one(f); err != nil {
				return err
			}
			continue
		}
		n := i
		for n < len(spec.Fields) && spec.Fields[n].Repeated {
			n++
		}
		if previous > uint64(len(args)) {
			return bad("too few arguments")
		}
		for range previous {
			for j := i; j < n; j++ {
				if err := one(&spec.Fields[j]); err != nil {
					return err
				}
			}
		}
		i = n - 1
	}
	if len(args) > 0 || len(texts) > 0 {
		return bad("too many arguments")
	}
	return w.emit(r.ID, b, slack)
}

func appendArg(b []byte, e Encoding, v uint64) []byte {
	switch e {
	case EncodingU8:
		return append(b, byte(v))
	case EncodingC32:
		return appendC32(b, uint32(v))
	case EncodingS64:
		return appendS64(b, int64(v))
	case EncodingF64, EncodingDouble:
		return binary.LittleEndian.AppendUint64(b, v)
	default:
		return appendC64(b, v)
	}
}

// append writes the fields of a clock offset.
func (c *ClockOffset) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(c.Time))
	b = appendS64(b, c.Offset)
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(c.StdDev))
}
