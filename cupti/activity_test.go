// SPDX-License-Identifier: Apache-2.0

package cupti

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// abi is testdata/cupti-abi.json.
type abi struct {
	Releases []struct {
		CUDA    string
		Version uint32
	}
	Kinds map[string]struct {
		Value  Kind
		Struct map[string]string `json:"struct_by_release"`
	}
	Records map[string]struct {
		Size   int
		Fields map[string][2]int // offset, size
	}
}

func readABI(t *testing.T) *abi {
	t.Helper()
	b := testkit.Read(t, "testdata/cupti-abi.json")
	facts := new(abi)
	testkit.Must(t, json.Unmarshal(b, facts))
	testkit.Require(t, len(facts.Releases) >= 16 && len(facts.Kinds) == len(layouts),
		"%d releases and %d kinds of records, want 16 and %d", len(facts.Releases), len(facts.Kinds), len(layouts))
	return facts
}

// plain is a field without the function that sets it.
type plain struct {
	name         string
	offset, size int
	since        uint32
}

func plainFields[T any](fields []field[T]) (out []plain) {
	for _, f := range fields {
		out = append(out, plain{f.name, f.offset, f.size, f.since})
	}
	return out
}

var tables = map[string][]plain{
	"KERNEL": plainFields(kernelFields), "CONCURRENT_KERNEL": plainFields(kernelFields),
	"MEMCPY": plainFields(copyFields), "MEMCPY2": plainFields(copy2Fields), "MEMSET": plainFields(setFields),
	"DRIVER": plainFields(apiFields), "RUNTIME": plainFields(apiFields),
	"EXTERNAL_CORRELATION": plainFields(externalFields),
	"SYNCHRONIZATION":      plainFields(synchronizationFields), "MEMORY2": plainFields(memoryFields),
	"MEMORY_POOL": plainFields(poolFields), "GRAPH_TRACE": plainFields(graphFields),
}

// TestTablesMatchEveryRelease holds every field to the header of every release: same place and size where the version
// has it, and no such field where it has not.
func TestTablesMatchEveryRelease(t *testing.T) {
	facts := readABI(t)
	for name, kind := range facts.Kinds {
		l, ok := layouts[kind.Value]
		if !ok {
			t.Errorf("%s (%d) is not known", name, kind.Value)
			continue
		}
		first := facts.Records[kind.Struct["11.8.0"]]
		testkit.Check(t, l.least == first.Size, "%s has %d bytes in 11.8, not %d", name, first.Size, l.least)
		for _, release := range facts.Releases {
			record := facts.Records[kind.Struct[release.CUDA]]
			testkit.Check(t, record.Size >= l.least,
				"%s of %s has %d bytes, fewer than in 11.8", name, release.CUDA, record.Size)
			for _, f := range tables[name] {
				at, ok := record.Fields[f.name]
				if outer, _, nested := strings.Cut(f.name, "."); nested && !ok {
					// Bindings of some releases do not say what is inside.
					in, ok := record.Fields[outer]
					testkit.Check(t, ok && f.offset >= in[0] && f.offset+f.size <= in[0]+in[1],
						"%s of %s: %s at %d is not within %s %v", name, release.CUDA, f.name, f.offset, outer, in)
					continue
				}
				testkit.Check(t, ok == (release.Version >= f.since),
					"%s of %s (version %d): %s is there: %v", name, release.CUDA, release.Version, f.name, ok)
				testkit.Check(t, !ok || at == [2]int{f.offset, f.size},
					"%s of %s: %s lies at %v, not at [%d %d]", name, release.CUDA, f.name, at, f.offset, f.size)
			}
		}
	}
}

// TestParseEveryRelease writes a different value into every field of every release's record, and garbage elsewhere, and
// compares what Parse makes of it.
func TestParseEveryRelease(t *testing.T) {
	facts := readABI(t)
	for name, kind := range facts.Kinds {
		fields := tables[name]
		for _, release := range facts.Releases {
			b := make([]byte, facts.Records[kind.Struct[release.CUDA]].Size)
			for i := range b {
				b[i] = 0xa5
			}
			binary.NativeEndian.PutUint32(b, uint32(kind.Value))
			want := make(map[string]uint64)
			for i, f := range fields {
				if f.since > release.Version || f.offset == 0 {
					continue
				}
				v := uint64(i + 1)
				want[f.name] = v
				switch f.size {
				case 1:
					b[f.offset] = byte(v)
				case 2:
					binary.NativeEndian.PutUint16(b[f.offset:], uint16(v))
				case 4:
					binary.NativeEndian.PutUint32(b[f.offset:], uint32(v))
				case 8:
					binary.NativeEndian.PutUint64(b[f.offset:], v)
				}
			}
			rec, err := Parse(b, release.Version)
			if err != nil {
				t.Errorf("%s of %s: %v", name, release.CUDA, err)
				continue
			}
			// The numbers in the struct, but its kind, are those written, each once.
			sum, n := numbers(reflect.ValueOf(rec).Elem())
			var wantSum uint64
			for _, v := range want {
				wantSum += v
			}
			testkit.Check(t, sum == wantSum && n == len(want), "%s of %s: %d values of sum %d, want %d of %d: %+v",
				name, release.CUDA, n, sum, len(want), wantSum, rec)
		}
	}
}

// numbers adds up the non-zero numbers of a record but its kind.
func numbers(v reflect.Value) (sum uint64, n int) {
	for i := range v.NumField() {
		f := v.Field(i)
		switch {
		case f.Type() == reflect.TypeFor[Kind]():
		case f.Kind() == reflect.Array:
			for j := range f.Len() {
				sum += f.Index(j).Uint()
				n += min(1, int(f.Index(j).Uint()))
			}
		default:
			sum += f.Uint()
			n += min(1, int(f.Uint()))
		}
	}
	return sum, n
}

func TestParseKernel(t *testing.T) {
	b := make([]byte, 248)
	put32 := func(at int, v uint32) { binary.NativeEndian.PutUint32(b[at:], v) }
	put64 := func(at int, v uint64) { binary.NativeEndian.PutUint64(b[at:], v) }
	put32(0, uint32(KindConcurrentKernel))
	binary.NativeEndian.PutUint16(b[6:], 96)
	put64(16, 1_700_000_000_000_000_000)
	put64(24, 1_700_000_000_000_012_345)
	put32(40, 3)
	put32(44, 1)
	put32(48, 7)
	for i, v := range []uint32{24, 1, 1, 544, 1, 1} {
		put32(52+4*i, v)
	}
	put32(76, 1024)
	put32(80, 84000)
	put32(92, 4_000_000_000)
	put64(144, 0x500000007)
	put32(156, 5)
	put64(240, 0x400000009)
	want := &Kernel{
		Start: 1_700_000_000_000_000_000, End: 1_700_000_000_000_012_345, Device: 3, Context: 1, Stream: 7,
		Correlation: 4_000_000_000, Registers: 96, Grid: [3]uint32{24, 1, 1}, Block: [3]uint32{544, 1, 1},
		StaticShared: 1024, DynamicShared: 84000, Graph: 5, GraphNode: 0x500000007, SourceGraphNode: 0x400000009,
	}
	got := testkit.Value(Parse(b, Version134))(t)
	testkit.Same(t, Record(want), got)
	// Before 13.4 nobody has written there.
	want.SourceGraphNode = 0
	if got, _ = Parse(b, 130300); !cmp.Equal(Record(want), got) {
		t.Errorf("as of 13.3: %+v", got)
	}
	if got, _ = Parse(b[:232], Version134); !cmp.Equal(Record(want), got) {
		t.Errorf("of a shorter record: %+v", got)
	}
}

func TestParseRefuses(t *testing.T) {
	kernel := make([]byte, 200)
	kernel[0] = byte(KindKernel)
	for _, tc := range []struct {
		name string
		b    []byte
		want error
	}{
		{"nothing", nil, errShort},
		{"half a kind", []byte{3, 0}, errShort},
		{"kind only", []byte{3, 0, 0, 0}, errShort},
		{"one byte less", kernel[:199], errShort},
		{"kind 0", make([]byte, 200), ErrKind},
		{"a device", append([]byte{8, 0, 0, 0}, make([]byte, 200)...), ErrKind},
	} {
		rec, err := Parse(tc.b, 22)
		testkit.Check(t, rec == nil && errors.Is(err, tc.want), "%s: %v, %v, want %v", tc.name, rec, err, tc.want)
	}
	_, err := Parse(kernel, 18)
	testkit.Check(t, err == nil, "a whole record: %v", err)
}

func FuzzParse(f *testing.F) {
	for kind, l := range layouts {
		b := make([]byte, l.least)
		binary.NativeEndian.PutUint32(b, uint32(kind))
		f.Add(b, uint32(18))
		f.Add(append(b, make([]byte, 48)...), uint32(Version134))
	}
	f.Fuzz(func(t *testing.T, b []byte, version uint32) {
		rec, err := Parse(b, version)
		testkit.Require(t, (rec == nil) == (err != nil), "%v and %v", rec, err)
		testkit.Require(t, err == nil || errors.Is(err, ErrKind) || errors.Is(err, errShort), "%v", err)
	})
}
