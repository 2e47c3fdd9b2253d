// SPDX-License-Identifier: Apache-2.0

package otf2

import (
	"reflect"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// bitsOf is a typed value as it stands in Args.
func bitsOf(t *testing.T, v reflect.Value) uint64 {
	t.Helper()
	switch {
	case v.CanUint():
		return v.Uint()
	case v.CanInt():
		return uint64(v.Int())
	}
	t.Fatalf("%v is no number", v.Type())
	return 0
}

// The typed records hold what Args holds, field by field, for every kind.
func TestTypedEventsAgreeWithArgs(t *testing.T) {
	kinds := 0
	for kind := range EventKind(255) {
		if !kind.Known() {
			continue
		}
		kinds++
		// Numbers that differ in every field and use the width it has; -k where it is signed.
		e := &Event{Kind: kind}
		var fixed, repeated []Field
		for i, f := range kind.Fields() {
			v := uint64(i + 2)
			switch f.Encoding {
			case EncodingC32:
				v |= 0x8765_4300
			case EncodingC64, EncodingF64:
				v |= 0x8765_4321_0fed_cb00
			case EncodingS64:
				v = -v
			}
			e.Args = append(e.Args, v)
			if f.Repeated {
				repeated = append(repeated, f)
			} else {
				fixed = append(fixed, f)
			}
		}
		const rounds = 3
		if len(repeated) > 0 {
			fixed = fixed[:len(fixed)-1] // the count
			one := e.Args[len(fixed)+1:]
			e.Args[len(fixed)] = rounds
			for k := range uint64(rounds - 1) {
				for _, v := range one[:len(repeated)] {
					e.Args = append(e.Args, v^(k+1))
				}
			}
		}
		method := reflect.ValueOf(e).MethodByName(kind.String())
		if !method.IsValid() {
			t.Errorf("Event has no method %v", kind)
			continue
		}
		record := method.Call(nil)[0]
		testkit.Equal(t, record.Type().Name(), kind.String(), "Event.%v returns a", kind)
		for i, f := range fixed {
			name := strings.ToUpper(f.Name[:1]) + f.Name[1:]
			member := record.FieldByName(name)
			if !member.IsValid() {
				t.Errorf("%v has no field %s", kind, name)
				continue
			}
			testkit.Check(t, f.Type == "" || f.Type == "CollectiveRoot" || member.Type().Name() == f.Type,
				"%v.%s is a %v, want %s", kind, name, member.Type(), f.Type)
			testkit.Equal(t, bitsOf(t, member), e.Args[i], "%v.%s =", kind, name)
		}
		if len(repeated) == 0 {
			n := record.NumField()
			testkit.Check(t, n == len(fixed), "%v has %d fields, want %d", kind, n, len(fixed))
			continue
		}
		testkit.Equal(t, record.MethodByName("Len").Call(nil)[0].Int(), rounds, "%v.Len() =", kind)
		for i := range rounds {
			for j, v := range record.MethodByName("At").Call([]reflect.Value{reflect.ValueOf(i)}) {
				want := e.Args[len(fixed)+1+i*len(repeated)+j]
				if v.Kind() == reflect.Uint8 {
					want &= 0xff
				}
				testkit.Equal(t, bitsOf(t, v), want, "%v.At(%d) member %d =", kind, i, j)
			}
		}
	}
	testkit.Equal(t, kinds, 83, "kinds")
}

// An event taken for another kind is a mistake of the program, not zeros.
func TestTypedEventOfOtherKind(t *testing.T) {
	defer func() {
		want := "otf2: event of kind Leave with 1 fields taken as Enter"
		got := recover()
		testkit.Check(t, got == want, "panic with %q, want %q", got, want)
	}()
	e := Event{Kind: EventLeave, Args: []uint64{1}}
	e.Enter()
}

func TestTypedReadingDoesNotAllocate(t *testing.T) {
	collective := Event{Kind: EventMpiCollectiveEnd, Args: []uint64{11, 3, 1<<32 - 1, 10, 20}}
	metric := Event{Kind: EventMetric, Args: []uint64{4, 2, uint64(TypeUint64), 7, uint64(TypeDouble), 8}}
	var sum uint64
	allocations := testing.AllocsPerRun(100, func() {
		c := collective.MpiCollectiveEnd()
		sum += c.SizeSent + c.SizeReceived
		m := metric.Metric()
		for i := range m.Len() {
			_, v := m.At(i)
			sum += v
		}
	})
	testkit.Check(t, allocations == 0 && sum != 0, "%v allocations per round", allocations)
}
