// SPDX-License-Identifier: Apache-2.0

package otf2print

import (
	"encoding/json"
	"math"
	"strconv"

	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// rank writes a rank of a communicator with its location.
func (j *JSON) rank(at otf2.LocationRef, comm otf2.CommRef, rank uint64) {
	if uint32(rank) == 1<<32-1 {
		j.b = append(j.b, "null"...)
		return
	}
	j.b = strconv.AppendUint(append(j.b, `{"rank":`...), rank, 10)
	if loc, ok := j.p.names.rankLocation(at, comm, rank); ok {
		j.ref("location", spaceLocation, uint64(loc))
	}
	j.b = append(j.b, '}')
}

// value writes an attribute or property value.
func (j *JSON) value(typ otf2.Type, v otf2.Value) {
	switch typ {
	case otf2.TypeInt8, otf2.TypeInt16, otf2.TypeInt32, otf2.TypeInt64:
		j.b = strconv.AppendInt(j.b, int64(v), 10)
	case otf2.TypeFloat:
		j.b = appendJSONFloat(j.b, float64(v.Float()))
	case otf2.TypeDouble:
		j.b = appendJSONFloat(j.b, v.Double())
	default:
		if s, isRef := spaceOfType[typ]; isRef {
			j.b = j.appendRef(j.b, s, uint64(v))
		} else {
			j.b = strconv.AppendUint(j.b, uint64(v), 10)
		}
	}
}

func (j *JSON) appendRef(b []byte, s space, id uint64) []byte {
	if undefined(s, id) {
		return append(b, "null"...)
	}
	e := j.p.names.tables[s].get(id)
	switch {
	case !e.known:
		return append(strconv.AppendUint(append(b, `{"id":`...), id, 10), `,"invalid":true}`...)
	case !e.named:
		return append(strconv.AppendUint(append(b, `{"id":`...), id, 10), '}')
	}
	return appendNamedJSON(b, id, e.name)
}

func appendNamedJSON(b []byte, id uint64, name string) []byte {
	b = strconv.AppendUint(append(b, `{"id":`...), id, 10)
	return append(appendQuoted(append(b, `,"name":`...), name), '}')
}

func (j *JSON) appendTime(b []byte, t uint64) []byte {
	if t == uint64(otf2.UndefinedTimestamp) {
		return append(b, "null"...)
	}
	return appendTime(b, t, j.p.names.epoch)
}

func appendJSONEnum(b []byte, enum string, v uint64) []byte {
	if name, ok := otf2.EnumName(enum, v); ok {
		return appendQuoted(b, name)
	}
	return strconv.AppendUint(b, v, 10)
}

// appendJSONFlags writes a list of flags, bits without a name as a number.
func appendJSONFlags(b []byte, enum string, v uint64) []byte {
	b = append(b, '[')
	flags, rest := otf2.EnumFlags(enum, v)
	for i, f := range flags {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendQuoted(b, f)
	}
	if rest != 0 {
		if len(flags) > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendUint(b, rest, 10)
	}
	return append(b, ']')
}

func appendJSONFloat(b []byte, v float64) []byte {
	switch {
	case math.IsNaN(v):
		return append(b, `"nan"`...)
	case math.IsInf(v, 1):
		return append(b, `"inf"`...)
	case math.IsInf(v, -1):
		return append(b, `"-inf"`...)
	}
	return strconv.AppendFloat(b, v, 'g', -1, 64)
}

func quoted(s string) []byte { return appendQuoted(nil, s) }

// appendQuoted writes a JSON string. Bytes that are no UTF-8 become U+FFFD.
func appendQuoted(b []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x7f {
			q, err := json.Marshal(s) // never fails for a string
			if err != nil {
				panic(err)
			}
			return append(b, q...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}
