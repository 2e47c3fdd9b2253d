// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// heapOf makes a string heap and the function that gives ids.
func heapOf() (*Strings, func(string) uint32) {
	heap := make([]byte, 1<<16)
	used := 0
	ids := map[string]uint32{}
	return NewStrings(heap), func(s string) uint32 {
		if s == "" {
			return 0
		}
		if id, ok := ids[s]; ok {
			return id
		}
		heap[used] = byte(len(s) + 1)
		copy(heap[used+4:], s)
		id := uint32(used/8) + 1
		used = (used + 4 + len(s) + 1 + 7) &^ 7
		ids[s] = id
		return id
	}
}

// sample fills every field that a record of this kind and type has.
func sample(kind RecordKind, typ EventType, seed uint64) Record {
	random := rand.New(rand.NewPCG(seed, 0))
	r := Record{
		Ticks: random.Uint64(), Kind: kind, Type: typ, Flags: RecordFlags(random.Uint32()),
		Aux: random.Uint32(), Handle: random.Uint64(), Arg: random.Uint64(),
	}
	v := reflect.ValueOf(&r).Elem()
	for _, f := range layoutOf(kind, typ).fields {
		for i := range v.NumField() {
			if v.Type().Field(i).Offset != f.to {
				continue
			}
			switch field := v.Field(i); field.Kind() {
			case reflect.String:
				field.SetString("s" + string(rune('a'+random.IntN(26))) + f.name)
			case reflect.Int32, reflect.Int64:
				field.SetInt(int64(int32(random.Uint32())))
			default:
				field.SetUint(random.Uint64() >> (64 - 8*field.Type().Size()))
			}
		}
	}
	switch kind {
	case RecordThread:
		r.Aux = uint32(r.TID)
	case RecordState:
		r.Aux = random.Uint32N(40)
		if r.Aux < proxyOpStates {
			r.Steps = int32(random.Uint32N(1 << 24))
		}
	case RecordMark:
		r.Aux, r.Type, r.Mark = 0, 0, Mark(random.Uint32N(3))
	case RecordCupti:
		r.Aux, r.Handle = 0, 0
		r.Activity = make([]byte, 8*(1+random.IntN(ActivityMost/8)))
		for i := range r.Activity {
			r.Activity[i] = byte(random.Uint32())
		}
	}
	return r
}

func TestRecordsDecodeAsEncoded(t *testing.T) {
	strings, id := heapOf()
	try := func(kind RecordKind, typ EventType) {
		want := sample(kind, typ, uint64(kind)<<8|uint64(typ))
		b := AppendRecord(nil, &want, id)
		b = append(b, 0xff) // the next record
		got := Record{Func: "left over", Count: 1}
		n, err := Decode(b, strings, &got)
		testkit.Check(t, err == nil && n == len(b)-1, "%s %s: %d of %d bytes, %v", kind, typ, n, len(b)-1, err)
		testkit.Equal(t, cmp.Diff(want, got), "", "%s %s", kind, typ)
	}
	for typ := range EventType(TypeCount) {
		try(RecordStart, typ)
	}
	for _, kind := range []RecordKind{RecordThread, RecordStop, RecordState, RecordInit, RecordFinalize, RecordCupti,
		RecordCuptiClock} {
		try(kind, EventColl)
	}
	testkit.Check(t, strings.Missing == 0, "%d strings missing", strings.Missing)
}

func TestDecodeRefuses(t *testing.T) {
	strings, id := heapOf()
	r := sample(RecordStart, EventColl, 1)
	good := AppendRecord(nil, &r, id)
	for _, tc := range []struct {
		name  string
		spoil func([]byte) []byte
	}{
		{"nothing", func(b []byte) []byte { return nil }},
		{"half a unit", func(b []byte) []byte { return b[:16] }},
		{"cut off", func(b []byte) []byte { return b[:96] }},
		{"no kind", func(b []byte) []byte { b[8] = 0; return b }},
		{"unknown kind", func(b []byte) []byte { b[8] = 200; return b }},
		{"unknown type", func(b []byte) []byte { b[9] = TypeCount; return b }},
		{"no units", func(b []byte) []byte { b[10] = 0; return b }},
		{"too few units", func(b []byte) []byte { b[10] = 3; return b }},
		{"too many units", func(b []byte) []byte { b[10] = 255; return b }},
	} {
		b := tc.spoil(append([]byte(nil), good...))
		n, err := Decode(b, strings, new(Record))
		testkit.Check(t, errors.Is(err, ErrRecord) && n == 0, "%s: %d, %v", tc.name, n, err)
	}
	activity := sample(RecordCupti, 0, 2)
	b := AppendRecord(nil, &activity, id)
	binary.NativeEndian.PutUint64(b[16:], uint64(len(b)-Unit+1))
	n, err := Decode(b, strings, new(Record))
	testkit.Check(t, errors.Is(err, ErrRecord) && n == 0, "an activity record longer than its units: %d, %v", n, err)
}

func TestUnknownStringsAreCounted(t *testing.T) {
	strings, id := heapOf()
	r := sample(RecordStart, EventCollApi, 1)
	b := AppendRecord(nil, &r, func(string) uint32 { return 1 << 30 })
	var got Record
	if _, err := Decode(b, strings, &got); err != nil || got.Func != "" || strings.Missing != 2 {
		t.Errorf("func %q, %d missing, %v", got.Func, strings.Missing, err)
	}
	if n := id("x"); strings.Lookup(n) != "x" || strings.Lookup(0) != "" || strings.Missing != 2 {
		t.Errorf("%q, %d missing", strings.Lookup(n), strings.Missing)
	}
}

func TestDecodeDoesNotAllocate(t *testing.T) {
	strings, id := heapOf()
	r := sample(RecordStart, EventColl, 1)
	b := AppendRecord(nil, &r, id)
	var got Record
	Decode(b, strings, &got)
	n := testing.AllocsPerRun(100, func() { Decode(b, strings, &got) })
	testkit.Check(t, n == 0, "%v allocations", n)
}

func TestRecordsOfAnyContentDecode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		strings, id := heapOf()
		var b []byte
		var want []Record
		for range rapid.IntRange(1, 8).Draw(t, "n") {
			kind := rapid.SampledFrom([]RecordKind{1, 2, 2, 2, 3, 4, 5, 6, 7, 8, 9}).Draw(t, "kind")
			r := sample(kind, rapid.SampledFrom([]EventType{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}).Draw(
				t, "type"),
				rapid.Uint64().Draw(t, "seed"))
			want = append(want, r)
			b = AppendRecord(b, &r, id)
		}
		for i := range want {
			var got Record
			n := testkit.Value(Decode(b, strings, &got))(t)
			d := cmp.Diff(want[i], got)
			testkit.Require(t, d == "", "%v", d)
			b = b[n:]
		}
		testkit.Require(t, len(b) == 0, "%d bytes left", len(b))
	})
}

func TestNames(t *testing.T) {
	testkit.Equal(t, StateName(22), "KernelChStop", "StateName(22)")
	testkit.Equal(t, StateName(31), "KernelPhaseStop", "StateName(31)")
	testkit.Equal(t, StateName(9), "ProxyStepSendWait", "StateName(9)")
	testkit.Equal(t, StateName(1000), "State(1000)", "StateName(1000)")
	testkit.Check(t, EventKernelLaunch.String() == "KernelLaunch" && EventType(77).String() == "EventType(77)",
		"%v %v", EventKernelLaunch, EventType(77))
	h := uint64(0x1234)<<TagShift | uint64(EventCeSync)<<TypeShift | 99
	testkit.Check(t, Tag(h) == 0x1234 && TypeOf(h) == EventCeSync, "%#x: tag %#x, type %s", h, Tag(h), TypeOf(h))
}

func FuzzDecode(f *testing.F) {
	strings, id := heapOf()
	for typ := range EventType(TypeCount) {
		r := sample(RecordStart, typ, 1)
		f.Add(AppendRecord(nil, &r, id))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var r Record
		n, err := Decode(b, strings, &r)
		testkit.Check(t, err != nil || n >= Unit && n <= len(b) && n%Unit == 0, "%d of %d bytes", n, len(b))
	})
}
