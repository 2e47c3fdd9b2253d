// SPDX-License-Identifier: Apache-2.0

package export

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

func readTable[T any](t *testing.T, path string) []T {
	t.Helper()
	return testkit.Value(parquet.ReadFile[T](path))(t)
}

func TestTablesReadBack(t *testing.T) {
	a := job(t)
	report := testkit.Value(operations.Observe(a, new(operations.Observer)))(t)
	for _, codec := range Codecs() {
		dir := filepath.Join(t.TempDir(), "new", codec)
		res := testkit.Value(Parquet(a, dir, codec, &Options{Version: "test"}))(t)
		ops := readTable[Operation](t, filepath.Join(dir, OperationsFile))
		waits := readTable[WaitRow](t, filepath.Join(dir, WaitsFile))
		transfers := readTable[TransferRow](t, filepath.Join(dir, TransfersFile))
		if len(ops) != operationsOf || res.Records["operations"] != operationsOf || len(transfers) != 10 {
			t.Fatalf("%s: %d operations, %d transfers, %v", codec, len(ops), len(transfers), res.Records)
		}

		// The report's table, made of the rows as a query would make it.
		type key struct {
			function string
			size     int64
		}
		calls := make(map[key]uint64)
		for _, o := range ops {
			calls[key{o.Function, o.Size}]++
		}
		want := make(map[key]uint64)
		for _, r := range report.Operations {
			want[key{r.Operation, int64(r.Size)}] += r.Calls
		}
		if diff := cmp.Diff(want, calls); diff != "" {
			t.Errorf("%s: calls by function and size (report, table):\n%s", codec, diff)
		}
		o := ops[slices.IndexFunc(ops, func(o Operation) bool {
			return o.Function == "AllReduce" && o.Rank == 2 &&
				o.Ordinal == 1
		})]
		begin, duration := int64(t0+(110+50+20)*us), int64(15*us)
		wantOp := Operation{
			Communicator: odd, Comm: 0, CommID: valueIfKnown(uint64(0xfedcba9876543210), true), Ranks: 3, Rank: 2,
			WorldRank: 2, RankName: "Rank 2", Host: "node1",
			GPU: valueIfKnown("CUDA Device 0", true), Function: "AllReduce", Ordinal: 1, Begin: begin, End: begin + duration,
			Duration: duration, Size: 4 << 20,
			Elements: valueIfKnown(int64(1<<20), true), Datatype: valueIfKnown("ncclFloat32", true), Algorithm: valueIfKnown("RING", true),
			Protocol: valueIfKnown("SIMPLE", true),
			Channels: valueIfKnown(int32(4), true), TimingSource: valueIfKnown("gpu", true), AlgBW: valueIfKnown(float64(4<<20)/15000, true),
			BusBW: valueIfKnown(float64(4<<20)/15000*4/3, true), Plan: o.Plan, Consistent: true, Location: o.Location,
			Run: o.Run, Members: 3, WaitKind: valueIfKnown("collective", true), Leads: true, BusFactor: 4.0 / 3,
		}
		if diff := cmp.Diff(wantOp, o); diff != "" {
			t.Errorf("%s: an operation:\n%s", codec, diff)
		}
		for _, o := range ops {
			if enqueue := *o.TimingSource == "enqueue"; (o.AlgBW == nil) != (enqueue || o.Grouped) ||
				(o.Root != nil) != (o.Function == "Broadcast") ||
				(o.Peer != nil) != (o.Function == "Send" || o.Function == "Recv") {
				t.Errorf("%s: %+v", codec, o)
			}
		}

		var waited, startUp int64
		for _, w := range waits {
			if w.StartUp {
				startUp += w.Waited
			} else {
				waited += w.Waited
			}
			if i := slices.IndexFunc(ops, func(o Operation) bool {
				return o.Comm == w.Comm && o.Rank == w.Rank && o.Ordinal == w.Ordinal && o.Begin == w.Begin &&
					o.RankName == w.RankName && (o.Function == w.Function)
			}); i < 0 {
				t.Errorf("%s: a wait without operation: %+v", codec, w)
			}
		}
		if s := report.WaitStates; uint64(waited) != s.Total.Waited || uint64(startUp) != s.StartUp.Waited ||
			waited == 0 {
			t.Errorf("%s: %d ns of waiting and %d starting up; the report has %d and %d", codec, waited, startUp,
				s.Total.Waited, s.StartUp.Waited)
		}

		bytes := int64(0)
		pxn := 0
		for _, x := range transfers {
			bytes += x.Bytes
			if x.FromName == nil || *x.FromName != x.Executor {
				pxn++
			}
			if *x.Duration != *x.End-x.Begin || *x.ToHost == "" {
				t.Errorf("%s: %+v", codec, x)
			}
		}
		if want := int64(3*(1000+1001+1002) + 500); bytes != want || pxn != 1 {
			t.Errorf("%s: %d bytes in transfers, want %d; %d by another process, want 1", codec, bytes, want, pxn)
		}
	}
	if _, err := Parquet(a, t.TempDir(), "lzma", nil); err == nil {
		t.Error("lzma is accepted")
	}
}

// The same archive gives the same bytes.
func TestExportsAreReproducible(t *testing.T) {
	a := job(t)
	read := func() map[string]string {
		dir := t.TempDir()
		for _, err := range []error{
			second(JSONL(a, dir, nil)), second(Parquet(a, dir, "zstd", nil)),
			second(Perfetto(a, filepath.Join(dir, "t.pftrace.gz"), nil, nil)),
			second(Prometheus(a, filepath.Join(dir, "m.prom"), nil, nil)),
		} {
			testkit.Must(t, err)
		}
		all := make(map[string]string)
		entries := testkit.Value(os.ReadDir(dir))(t)
		for _, e := range entries {
			b := testkit.Read(t, filepath.Join(dir, e.Name()))
			all[e.Name()] = string(b)
		}
		return all
	}
	one, other := read(), read()
	testkit.Equal(t, len(one), 3+5+2, "files")
	for name, text := range one {
		testkit.Equal(t, other[name], text, "%s differs", name)
	}
}

func second[T any](_ T, err error) error { return err }

// Row groups are bounded, so that tables of any size can be written and read piece by piece.
func TestTablesHaveBoundedRowGroups(t *testing.T) {
	e := newExporter(job(t), nil)
	var out bytes.Buffer
	table := newTable[WaitRow](e, &out, "waits", &parquet.Zstd)
	const n = 2*rowsPerGroup + 5
	for i := range n {
		testkit.Must(t, table.add(WaitRow{Kind: "collective", Waited: int64(i)}))
	}
	testkit.Must(t, table.close())
	f := testkit.Value(parquet.OpenFile(bytes.NewReader(out.Bytes()), int64(out.Len())))(t)
	sizes := []int64{}
	for _, g := range f.RowGroups() {
		sizes = append(sizes, g.NumRows())
	}
	if !slices.Equal(sizes, []int64{rowsPerGroup, rowsPerGroup, 5}) {
		t.Errorf("row groups of %v rows", sizes)
	}
	if v, ok := f.Lookup("nccl-otf2.schema_version"); !ok || v != "2" {
		t.Errorf("schema %q", v)
	}
}

func TestClocksOfOtherResolutionsAreConverted(t *testing.T) {
	c := clock{Resolution: 1000, Offset: 500, Realtime: 1_700_000_000_000_000_000}
	for ticks, want := range map[uint64]int64{500: 0, 501: 1_000_000, 499: -1_000_000, math.MaxInt64: -1} {
		if got := c.fromBegin(timestamp(ticks)); got != want && !(ticks == math.MaxInt64 && got != 0) {
			t.Errorf("%d ticks are %d ns, want %d", ticks, got, want)
		}
	}
	testkit.Equal(t, c.since1970(timestamp(1500)), 1_700_000_001_000_000_000, "ns since 1970")
}
