// SPDX-License-Identifier: Apache-2.0

package otf2test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// missingID is the id of nothing in the archives of tests.
const missingID = 7777

// definition is a record of a global definition file: the bytes of its fields, and which of them are a reference.
type definition struct {
	kind   otf2.DefKind
	fields []byte
	refs   []span
}

type span struct {
	field    string
	from, to int
}

// EachUndefined lets use look at archives like that with this anchor in which something is not defined. what says which
// field of definitions refers to nothing (of the first one of a kind to an id that nobody has, of all of a kind to
// OTF2's undefined one), or which definitions are missing (the first of a kind, all of it).
func EachUndefined(t *testing.T, anchor string, use func(t *testing.T, what, anchor string)) {
	t.Helper()
	files := ReadFiles(t, anchor)
	name := strings.TrimSuffix(files.anchor, ".otf2") + ".def"
	head, all := readDefinitions(t, files.Content(name))
	of := make(map[otf2.DefKind][]int)
	var kinds []otf2.DefKind
	for i := range all {
		if of[all[i].kind] == nil {
			kinds = append(kinds, all[i].kind)
		}
		of[all[i].kind] = append(of[all[i].kind], i)
	}
	changed := func(what string, at []int, change func(*definition)) {
		list := slices.Clone(all)
		for _, i := range at {
			change(&list[i])
		}
		use(t, what, files.With(t, name, writeDefinitions(head, list)))
	}
	for _, k := range kinds {
		missing := func(d *definition) { d.kind = unknownRecord }
		changed(fmt.Sprintf("the first %v is missing", k), of[k][:1], missing)
		changed(fmt.Sprintf("every %v is missing", k), of[k], missing)
		var fields []string
		for _, i := range of[k] {
			for _, r := range all[i].refs {
				if !slices.Contains(fields, r.field) {
					fields = append(fields, r.field)
				}
			}
		}
		for _, f := range fields {
			with := slices.IndexFunc(of[k], func(i int) bool {
				return slices.ContainsFunc(all[i].refs, func(r span) bool { return r.field == f })
			})
			changed(fmt.Sprintf("%s of the first %v is %d", f, k, missingID), of[k][with:with+1], func(d *definition) {
				d.refer(f, appendCompressed(nil, missingID))
			})
			changed(fmt.Sprintf("%s of every %v is undefined", f, k), of[k],
				func(d *definition) { d.refer(f, []byte{0xff}) })
		}
	}
}

// refer puts an id into all references of a field.
func (d *definition) refer(field string, id []byte) {
	var b []byte
	last := 0
	for _, r := range d.refs {
		if r.field == field {
			b = append(append(b, d.fields[last:r.from]...), id...)
			last = r.to
		}
	}
	d.fields = append(b, d.fields[last:]...)
}

const chunkHeader = 18

// readDefinitions takes a file of one little-endian chunk apart.
func readDefinitions(t *testing.T, b []byte) (head []byte, all []definition) {
	t.Helper()
	testkit.Require(t, len(b) >= chunkHeader && b[1] == 0x42, "definitions of another byte order than this test's")
	for at := chunkHeader; b[at] >= byte(otf2.DefClockProperties); {
		kind, size := otf2.DefKind(b[at]), int(b[at+1])
		at += 2
		if size == 0xff {
			size = int(binary.LittleEndian.Uint64(b[at:]))
			at += 8
		}
		all = append(all, definition{kind: kind, fields: b[at : at+size], refs: findReferences(kind, b[at:at+size])})
		at += size
	}
	testkit.Require(t, len(all) >= 10, "%d definitions", len(all))
	return b[:chunkHeader], all
}

func writeDefinitions(head []byte, all []definition) []byte {
	b := slices.Clone(head)
	for _, d := range all {
		b = binary.LittleEndian.AppendUint64(append(b, byte(d.kind), 0xff), uint64(len(d.fields)))
		b = append(b, d.fields...)
	}
	return append(b, 2, 1)
}

// findReferences says where the fields of a definition refer to others. Members of groups count, and values and scopes
// that are ids.
func findReferences(kind otf2.DefKind, b []byte) (refs []span) {
	specs := kind.Fields()
	at, times, typ := 0, uint64(0), otf2.Type(0)
	read := func(f *otf2.Field) {
		from, v := at, uint64(0)
		compressed := false
		switch f.Encoding {
		case otf2.EncodingU8:
			v = uint64(b[at])
			at++
		case otf2.EncodingF64, otf2.EncodingDouble:
			at += 8
		case otf2.EncodingString:
			at += slices.Index(b[at:], 0) + 1
		case otf2.EncodingValue:
			switch typ {
			case otf2.TypeUint8, otf2.TypeInt8:
				at++
			case otf2.TypeUint16, otf2.TypeInt16:
				at += 2
			case otf2.TypeFloat:
				at += 4
			case otf2.TypeDouble:
				at += 8
			default:
				compressed = true
			}
		default:
			compressed = true
		}
		if compressed {
			v = ^uint64(0)
			if n := int(b[at]); n == 0xff {
				at++
			} else {
				v = binary.LittleEndian.Uint64(append(slices.Clone(b[at+1:at+1+n]), make([]byte, 8)...))
				at += 1 + n
			}
		}
		if f.Type == "Type" {
			typ = otf2.Type(v)
		}
		if !f.Repeated {
			times = v
		}
		refers := strings.HasSuffix(f.Type, "Ref") && f.Name != "self" || f.Name == "members" || f.Name == "scope" ||
			f.Encoding == otf2.EncodingValue && typ.IsReference()
		if compressed && refers {
			refs = append(refs, span{f.Name, from, at})
		}
	}
	for i := 0; i < len(specs) && at < len(b); {
		n := i
		for n < len(specs) && specs[n].Repeated {
			n++
		}
		if n == i {
			read(&specs[i])
			i++
			continue
		}
		for range times {
			for j := i; j < n; j++ {
				read(&specs[j])
			}
		}
		i = n
	}
	return refs
}
