// SPDX-License-Identifier: Apache-2.0

package otf2print

import (
	"errors"
	"reflect"
	"strconv"
	"strings"
	"unicode"

	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Definitions writes the global definitions in file order.
func (j *JSON) Definitions() error {
	d := definitionValues(j.a.Defs)
	var err error
	eachDef(j.a.Defs, func(kind otf2.DefKind, i int) {
		if err != nil {
			return
		}
		j.begin("definition")
		j.text("kind", kind.String())
		if values, known := d[kind.String()]; known {
			v := values
			if v.Kind() == reflect.Slice {
				v = v.Index(i)
			}
			j.key("fields")
			j.definition(v)
		}
		err = j.end()
	})
	return errors.Join(err, j.flush(nil))
}

// definitionValues finds the definitions of each kind by the name of its struct.
func definitionValues(defs *otf2.Definitions) map[string]reflect.Value {
	all := map[string]reflect.Value{}
	v := reflect.ValueOf(defs).Elem()
	for i := range v.NumField() {
		if !v.Type().Field(i).IsExported() {
			continue
		}
		t := v.Field(i).Type()
		if t.Kind() == reflect.Slice {
			t = t.Elem()
		}
		if t.Kind() == reflect.Struct && t.Name() != "Record" {
			// ParadigmDef and ParadigmPropertyDef leave the plain names to enumerations.
			all[strings.TrimSuffix(t.Name(), "Def")] = v.Field(i)
		}
	}
	return all
}

// definition writes the fields of a definition's struct.
func (j *JSON) definition(v reflect.Value) {
	j.b = append(j.b, '{')
	for i := range v.NumField() {
		field := v.Type().Field(i)
		f := v.Field(i)
		j.key(lowerFirst(field.Name))
		switch {
		case field.Name == "Self":
			j.b = strconv.AppendUint(j.b, f.Uint(), 10)
		case field.Name == "Scope" && v.FieldByName("MetricScope").IsValid():
			j.scope(otf2.MetricScope(v.FieldByName("MetricScope").Uint()), f.Uint())
		case field.Name == "Members" && v.FieldByName("Paradigm").IsValid():
			j.members(v.Addr().Interface().(*otf2.Group))
		case field.Name == "Value":
			j.value(otf2.Type(v.FieldByName("Type").Uint()), otf2.Value(f.Uint()))
		case field.Name == "Values":
			j.list(f.Len(), func(k int) {
				j.value(otf2.Type(v.FieldByName("Types").Index(k).Uint()), otf2.Value(f.Index(k).Uint()))
			})
		case field.Name == "Rank":
			comm := otf2.UndefinedComm
			if t := j.a.Defs.CartTopology(otf2.CartTopologyRef(v.FieldByName("CartTopology").Uint())); t != nil {
				comm = t.Communicator
			}
			j.rank(otf2.UndefinedLocation, comm, f.Uint())
		case field.Name == "Realtime":
			if f.Uint() == uint64(otf2.UndefinedTimestamp) {
				j.b = append(j.b, "null"...)
			} else {
				j.b = strconv.AppendUint(j.b, f.Uint(), 10)
			}
		default:
			j.goValue(f)
		}
	}
	j.b = append(j.b, '}')
}

// goValue writes a field by its Go type.
func (j *JSON) goValue(f reflect.Value) {
	switch f.Kind() {
	case reflect.String:
		j.b = appendQuoted(j.b, f.String())
	case reflect.Int64:
		j.b = strconv.AppendInt(j.b, f.Int(), 10)
	case reflect.Slice:
		j.list(f.Len(), func(i int) { j.goValue(f.Index(i)) })
	default:
		name := f.Type().Name()
		if s, isRef := spaceOf[name]; isRef {
			j.b = j.appendRef(j.b, s, f.Uint())
		} else if isFlags(name) {
			j.b = appendJSONFlags(j.b, name, f.Uint())
		} else {
			j.b = appendJSONEnum(j.b, name, f.Uint()) // a plain number is one without a name
		}
	}
}

// members writes what a group holds.
func (j *JSON) members(g *otf2.Group) {
	s, isRef := spaceOfMember[g.Type]
	world := j.p.names.world[g.Paradigm]
	j.list(len(g.Members), func(i int) {
		id := g.Members[i]
		switch {
		case isRef:
			j.b = j.appendRef(j.b, s, id)
		case g.Type == otf2.GroupTypeCommGroup:
			j.b = strconv.AppendUint(append(j.b, `{"index":`...), id, 10)
			if world != nil && id < uint64(len(world.Members)) {
				j.ref("location", spaceLocation, world.Members[id])
			}
			j.b = append(j.b, '}')
		default:
			j.b = strconv.AppendUint(j.b, id, 10)
		}
	})
}

// scope writes the scope of a metric instance.
func (j *JSON) scope(typ otf2.MetricScope, id uint64) {
	if s, isRef := spaceOfScope[typ]; isRef {
		j.b = j.appendRef(j.b, s, id)
	} else {
		j.b = strconv.AppendUint(j.b, id, 10)
	}
}

func lowerFirst(s string) string {
	r := []rune(s)
	r[0] = unicode.ToLower(r[0])
	return string(r)
}
