// SPDX-License-Identifier: Apache-2.0

package otf2

import "fmt"

// Write writes an event of any kind this package knows; args are its fields in the order of [EventKind.Fields],
// the members of a repetition interleaved as on disk, as [Event].Args has them. a may be nil.
//
// Errors: *TimeError if t is before the last event, ErrInvalid for wrong arguments or an attribute list with a
// doubled id, ErrTooLarge for a record that does not fit a chunk, else the file's error, which sticks.
func (w *EventWriter) Write(kind EventKind, t Timestamp, a *AttributeList, args []uint64) error {
	if w.nesting != nil && len(args) == 1 {
		switch kind {
		case EventEnter:
			return w.Enter(t, a, RegionRef(args[0]))
		case EventLeave:
			return w.Leave(t, a, RegionRef(args[0]))
		}
	}
	return w.write(&eventTable[kind], uint8(kind), t, a, args)
}

// write writes a record as spec has it.
func (w *EventWriter) write(spec *recordSpec, id uint8, t Timestamp, a *AttributeList, args []uint64) error {
	if spec.Name == "" {
		return fmt.Errorf("otf2: record kind %d is not known: %w", id, ErrInvalid)
	}
	size, err := spec.maxSize(args)
	if err != nil {
		return err
	}
	if spec.NoLength {
		p, err := w.beginRecord(t, a, 1+size)
		if err != nil {
			return err
		}
		b := w.buf
		b[p] = id
		return w.endRecord(putArg(b, p+1, spec.Fields[0].Encoding, args[0]))
	}
	p, err := w.beginRecord(t, a, 1+lengthSize(size)+size)
	if err != nil {
		return err
	}
	b := w.buf
	b[p] = id
	start := p + 1 + lengthSize(size)
	p = start
	i := 0
	for ; i < len(spec.Fields) && !spec.Fields[i].Repeated; i++ {
		p = putArg(b, p, spec.Fields[i].Encoding, args[i])
	}
	for repeated := spec.Fields[i:]; i < len(args); {
		for j := range repeated {
			p = putArg(b, p, repeated[j].Encoding, args[i])
			i++
		}
	}
	putLength(b, start, p, size)
	return w.endRecord(p)
}

// maxSize checks the number of args and returns libotf2's estimate of the fields' size.
func (s *recordSpec) maxSize(args []uint64) (int, error) {
	size, want := 0, 0
	for i := range s.Fields {
		f := &s.Fields[i]
		times := uint64(1)
		if f.Repeated {
			fixed := i
			for s.Fields[fixed-1].Repeated {
				fixed--
			}
			if len(args) < fixed {
				break
			}
			times = args[fixed-1]
			if s.Fields[fixed-1].Encoding == EncodingU8 && times > 255 {
				return 0, fmt.Errorf("otf2: %s: %d %s, at most 255: %w", s.Name, times, f.Name, ErrInvalid)
			}
			if times > uint64(len(args)) {
				times = uint64(len(args)) + 1 // cannot match; avoids an overflow
			}
		}
		want += int(times)
		size += int(times) * f.Encoding.maxSize()
	}
	if want != len(args) {
		return 0, fmt.Errorf("otf2: %s: %d arguments do not match its fields: %w", s.Name, len(args), ErrInvalid)
	}
	return size, nil
}

// maxSize is the largest number of bytes of an event's field.
func (e Encoding) maxSize() int {
	switch e {
	case EncodingU8:
		return 1
	case EncodingC32:
		return 5
	case EncodingF64, EncodingDouble:
		return 8
	default:
		return 9
	}
}

func putArg(b []byte, p int, e Encoding, v uint64) int {
	switch e {
	case EncodingU8:
		b[p] = byte(v)
		return p + 1
	case EncodingC32:
		return putC32(b, p, uint32(v))
	case EncodingS64:
		return putS64(b, p, int64(v))
	case EncodingF64, EncodingDouble:
		return putF64(b, p, v)
	default:
		return putC64(b, p, v)
	}
}
