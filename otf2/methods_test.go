// SPDX-License-Identifier: Apache-2.0

package otf2

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// eventArgs draws arguments that fit a kind's fields.
func eventArgs(t *rapid.T, kind EventKind, most int) []uint64 {
	var args []uint64
	fields := kind.Fields()
	one := func(f *Field) {
		v := anyUint64().Draw(t, f.Name)
		switch f.Encoding {
		case EncodingU8:
			v = uint64(uint8(v))
		case EncodingC32:
			v = uint64(uint32(v))
		}
		args = append(args, v)
	}
	for i := range fields {
		if !fields[i].Repeated {
			one(&fields[i])
			continue
		}
		n := rapid.IntRange(0, most).Draw(t, "repetitions")
		args[len(args)-1] = uint64(n)
		for range n {
			for j := i; j < len(fields); j++ {
				one(&fields[j])
			}
		}
		break
	}
	return args
}

func anyEventKind() *rapid.Generator[EventKind] {
	return rapid.Custom(func(t *rapid.T) EventKind { return EventKind(rapid.IntRange(10, 92).Draw(t, "kind")) })
}

// callMethod calls the writer's method of a kind, found by name, with arguments in table order.
func callMethod(t testing.TB, w *EventWriter, kind EventKind, at Timestamp, a *AttributeList, args []uint64) error {
	t.Helper()
	m := reflect.ValueOf(w).MethodByName(kind.String())
	testkit.Require(t, m.IsValid(), "EventWriter has no method %v", kind)
	in := []reflect.Value{reflect.ValueOf(at), reflect.ValueOf(a)}
	fields := kind.Fields()
	fixed := 0
	for fixed < len(fields) && !fields[fixed].Repeated {
		fixed++
	}
	for i := range fixed {
		if i == fixed-1 && fixed < len(fields) {
			break // the count follows from the slices
		}
		in = append(in, reflect.ValueOf(args[i]).Convert(m.Type().In(len(in))))
	}
	for j := fixed; j < len(fields); j++ {
		slice := reflect.MakeSlice(m.Type().In(len(in)), 0, 0)
		for i := j; i < len(args); i += len(fields) - fixed {
			slice = reflect.Append(slice, reflect.ValueOf(args[i]).Convert(slice.Type().Elem()))
		}
		in = append(in, slice)
	}
	testkit.Require(t, m.Type().NumIn() == len(in),
		"%v: %d parameters, the table gives %d", kind, m.Type().NumIn(), len(in))
	err, _ := m.Call(in)[0].Interface().(error)
	return err
}

// Every event has a method whose bytes are those of the table-driven Write and of the plain encoder, and they are
// read back.
func TestEventMethodsAgreeWithTable(t *testing.T) {
	for id := EventKind(10); id <= 92; id++ {
		testkit.Require(t, id.Known(), "event %d is not known", id)
	}
	rapid.Check(t, func(rt *rapid.T) {
		byMethod, byTable := NewMemoryEventWriter(nil), NewMemoryEventWriter(nil)
		body := [][]byte{plainLittle.stamp(7)}
		var want []Event
		n := rapid.IntRange(1, 5).Draw(rt, "events")
		for range n {
			kind := anyEventKind().Draw(rt, "kind")
			args := eventArgs(rt, kind, 255)
			testkit.Must(t, callMethod(t, byMethod, kind, 7, nil, args))
			testkit.Must(t, byTable.Write(kind, 7, nil, args))
			body = append(body, plainLittle.event(kind, args))
			want = append(want, Event{Time: 7, Kind: kind, Args: args})
		}
		testkit.Must(t, byMethod.Close())
		testkit.Must(t, byTable.Close())
		equalBytes(t, "method", byMethod.Bytes(), plainLittle.file(n, body...))
		equalBytes(t, "table", byTable.Bytes(), byMethod.Bytes())
		for _, order := range []plain{plainLittle, plainBig} {
			body[0] = order.stamp(7)
			for i, e := range want {
				body[i+1] = order.event(e.Kind, e.Args)
			}
			got := testkit.Value(readEvents(tempFile(t, order.file(n, body...)), DefaultEventChunkSize))(t)
			for i := range want {
				testkit.Require(rt, len(got) == n && got[i].Kind == want[i].Kind && got[i].Time == 7 &&
					string(words(got[i].Args)) == string(words(want[i].Args)), "read %v, want %v", got, want)
			}
		}
	})
}

func words(vs []uint64) []byte {
	var b []byte
	for _, v := range vs {
		b = plainLittle.order.AppendUint64(b, v)
	}
	return b
}

// Every definition has a method of the writer and a typed struct with fields of the same types in its order.
func TestDefMethodsAgreeWithTable(t *testing.T) {
	w := reflect.TypeFor[*GlobalDefWriter]()
	all := reflect.TypeFor[Definitions]()
	kinds := 0
	for id := range 256 {
		kind := DefKind(id)
		if !kind.Known() {
			continue
		}
		kinds++
		m, ok := w.MethodByName(kind.String())
		if !ok {
			t.Errorf("GlobalDefWriter has no method %v", kind)
			continue
		}
		want := 0
		for i, f := range kind.Fields() {
			counts := i+1 < len(kind.Fields()) && kind.Fields()[i+1].Repeated && !f.Repeated
			if !f.Legacy && !counts {
				want++
			}
		}
		testkit.Check(t, m.Type.NumIn()-1 == want,
			"%v: %d parameters, the table gives %d", kind, m.Type.NumIn()-1, want)
		if kind == DefClockProperties {
			continue
		}
		slice, ok := all.FieldByName(pluralOf(kind.String()))
		if !ok {
			t.Errorf("Definitions has no %s", pluralOf(kind.String()))
			continue
		}
		typ := slice.Type.Elem()
		if typ.NumField() != want {
			t.Errorf("%v: %d fields, the table gives %d", kind, typ.NumField(), want)
			continue
		}
		for i := range want {
			testkit.Check(t, typ.Field(i).Type == m.Type.In(i+1),
				"%v: field %s is %v, parameter %d is %v", kind, typ.Field(i).Name, typ.Field(i).Type, i, m.Type.In(i+1))
		}
	}
	testkit.Equal(t, kinds, 38, "kinds of definitions")
}
