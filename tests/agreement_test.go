// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/tally"
	"github.com/nccl-otf2/nccl-otf2/internal/export"
	"github.com/nccl-otf2/nccl-otf2/internal/profile/cubex/cubextest"
	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// figure is a number as a product shows it, and by how much the shown one may differ, relatively, from what it is of.
type figure struct{ value, error float64 }

// figures are numbers that products show of one recording, by what they are and by product.
type figures map[string]map[string]figure

// add adds to a number, that of a sum.
func (f figures) add(product, what string, v float64) {
	// sums may be added up in floats
	f.near(product, what, f[what][product].value+v, max(1e-12, f[what][product].error))
}

// near notes a number that is rounded.
func (f figures) near(product, what string, v, relative float64) {
	if f[what] == nil {
		f[what] = make(map[string]figure)
	}
	f[what][product] = figure{v, relative}
}

// extreme notes the least or the most of several numbers.
func (f figures) extreme(product, what string, v float64, of func(a, b float64) float64) {
	if old, known := f[what][product]; known {
		v = of(old.value, v)
	}
	f.near(product, what, v, 0)
}

// disagreements lists the numbers that products do not show alike.
func (f figures) disagreements() (all []string) {
	for _, what := range slices.Sorted(maps.Keys(f)) {
		products := slices.Sorted(maps.Keys(f[what]))
		for _, p := range products[1:] {
			a, b := f[what][products[0]], f[what][p]
			if math.IsNaN(a.value+b.value) || math.Abs(a.value-b.value) > (a.error+b.error)*max(
				math.Abs(a.value), math.Abs(b.value)) {
				all = append(all, fmt.Sprintf("%s: %s has %v, %s %v", what, products[0], a.value, p, b.value))
			}
		}
	}
	return all
}

// shared is how many numbers of a product others show, too; "" stands for any product.
func (f figures) shared(product string) (n int) {
	for _, by := range f {
		if _, has := by[product]; (has || product == "") && len(by) > 1 {
			n++
		}
	}
	return n
}

var allAgreements = flag.Bool("agreements", false,
	"compare the products of all recordings, presets and channels; without, some recordings, each with one preset "+
		"and the channels on or off, so that all pairs come")

// labeled are the recordings of which it is known what made ranks wait.
func labeled(t *testing.T) (all []*replay.Recording) {
	t.Helper()
	files, err := filepath.Glob("../testdata/nccl-causes/*/run.json")
	if err != nil || len(files) < 15 {
		t.Fatalf("%d labeled recordings: %v", len(files), err)
	}
	for _, file := range files {
		rec := testkit.Value(replay.Load(filepath.Dir(file)))(t)
		all = append(all, rec)
	}
	return all
}

// presets are the events that are recorded; with light there are no operations' times but of enqueueing.
var presets = []string{"light", "net", "gpu", "all"}

// Whatever products show of the same recording is the same number: with the presets, with channels shown and not, from
// the archive's events and from profile mode. Where two products mean different things by a word their outputs say so,
// and the readers of products_test.go bring them together as they say.
func TestProductsAgree(t *testing.T) {
	t.Parallel()
	const few = 4 // of how many labeled recordings the short form takes one
	all := append(recordings(t), labeled(t)...)
	for i, rec := range all {
		if !*allAgreements && strings.HasPrefix(rec.Name, "c") && i%few != 0 {
			continue
		}
		for j, events := range presets {
			for k, channels := range []string{"off", "on"} {
				if !*allAgreements && (i/few%len(presets) != j || i%2 != k) {
					continue
				}
				t.Run(rec.Name+"/"+events+"/channels="+channels, func(t *testing.T) {
					t.Parallel()
					productsAgree(t, rec, events, channels)
				})
			}
		}
	}
}

func productsAgree(t *testing.T, rec *replay.Recording, events, channels string) {
	dir, _ := play(t, rec, env("NCCL_OTF2_EVENTS="+events, "NCCL_OTF2_CHANNELS="+channels))
	f := testkit.Value(figuresOf(outputs(t, dir)))(t)
	for _, p := range []string{"report", "report, CSV", "export --jsonl", "export --perfetto",
		"export --parquet", "timeline", "report --tally", "profile --summary"} {
		if n := f.shared(p); n < 2 {
			t.Errorf("%d numbers of %s are compared", n, p)
		}
	}
	summed := filepath.Join(t.TempDir(), "experiment")
	runQuietly(t, rec, usual(t, summed, env("NCCL_OTF2_EVENTS="+events, "NCCL_OTF2_CHANNELS="+channels,
		"NCCL_OTF2_MODE=profile")))
	waitDone(t, summed, len(rec.Processes))
	file := filepath.Join(t.TempDir(), "summary.json")
	if out, err := exec.Command(builtFile(t, "nccl-otf2"), "profile", summed, "--summary",
		file).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text, err := os.ReadFile(file)
	if err == nil {
		err = readSummary(f, "profile mode", map[string][]byte{"": text})
	}
	testkit.Must(t, err)
	for _, what := range f.disagreements() {
		t.Error(what)
	}
	a := openArchive(t, filepath.Join(dir, "traces.otf2"))
	report := testkit.Value(operations.Observe(a, new(operations.Observer)))(t)
	cubextest.Load(t, filepath.Join(dir, "profile.cubex")).Agrees(t, report, tally.Read(a, nil))
}

// bump changes a number of a text by hand.
func bump(pattern string) func(t *testing.T, file string, text []byte) []byte {
	return func(t *testing.T, file string, text []byte) []byte {
		at := regexp.MustCompile(pattern).FindSubmatchIndex(text)
		if at == nil {
			t.Fatalf("%s has no %s", file, pattern)
		}
		v := testkit.Value(strconv.ParseFloat(string(text[at[2]:at[3]]), 64))(t)
		return slices.Concat(text[:at[2]], []byte(strconv.FormatFloat(v*1.25+1, 'f', -1, 64)), text[at[3]:])
	}
}

// ofPage changes the head of a page.
func ofPage(pattern string) func(t *testing.T, file string, text []byte) []byte {
	return func(t *testing.T, file string, text []byte) []byte {
		at := pageHead.FindSubmatchIndex(text)
		packed := testkit.Value(base64.StdEncoding.DecodeString(string(text[at[2]:at[3]])))(t)
		plain, err := io.ReadAll(flate.NewReader(bytes.NewReader(packed)))
		testkit.Must(t, err)
		var out bytes.Buffer
		z, err := flate.NewWriter(&out, flate.BestSpeed)
		testkit.Must(t, err)
		_, err = z.Write(bump(pattern)(t, file, plain))
		testkit.Must(t, errors.Join(err, z.Close()))
		return slices.Concat(text[:at[2]], []byte(base64.StdEncoding.EncodeToString(out.Bytes())), text[at[3]:])
	}
}

// ofTable changes the first row of a table.
func ofTable[T any](change func(*T)) func(t *testing.T, file string, text []byte) []byte {
	return func(t *testing.T, _ string, text []byte) []byte {
		rows, err := table[T](text)
		if err != nil || len(rows) == 0 {
			t.Fatalf("%d rows: %v", len(rows), err)
		}
		change(&rows[0])
		var out bytes.Buffer
		testkit.Must(t, parquet.Write(&out, rows))
		return out.Bytes()
	}
}

// later has the first slice that ends in a trace of Perfetto's end a microsecond later.
func later(t *testing.T, _ string, text []byte) []byte {
	const packetTime, event, eventType, end = 8, 11, 9, 2
	for at := 0; at < len(text); {
		_, _, tag := protowire.ConsumeTag(text[at:])
		packet, n := protowire.ConsumeBytes(text[at+tag:])
		var changed []byte
		ends := false
		for rest := packet; len(rest) > 0; {
			number, _, n := protowire.ConsumeField(rest)
			field := rest[:n]
			rest = rest[n:]
			_, _, tag := protowire.ConsumeTag(field)
			switch number {
			case packetTime:
				v, _ := protowire.ConsumeVarint(field[tag:])
				field = protowire.AppendVarint(slices.Clone(field[:tag]), v+1000)
			case event:
				m, _ := protowire.ConsumeBytes(field[tag:])
				ends = bytes.HasPrefix(m, protowire.AppendVarint(
					protowire.AppendTag(nil, eventType, protowire.VarintType), end))
			}
			changed = append(changed, field...)
		}
		if ends {
			return slices.Concat(text[:at], text[at:at+tag], protowire.AppendBytes(nil, changed), text[at+tag+n:])
		}
		at += tag + n
	}
	t.Fatal("no slice ends")
	return nil
}

// A number that one product shows otherwise is found, whichever product it is.
func TestDisagreementsAreFound(t *testing.T) {
	t.Parallel()
	dir, _ := play(t, recording(t, "02-allcoll-4p-net"), env("NCCL_OTF2_EVENTS=all", "NCCL_OTF2_CHANNELS=on"))
	all := outputs(t, dir)
	f := testkit.Value(figuresOf(all))(t)
	if d := f.disagreements(); len(d) > 0 {
		t.Fatalf("before anything is changed: %q", d)
	}
	for i, c := range []struct {
		product, file string // of several files that which ends so
		change        func(t *testing.T, file string, text []byte) []byte
	}{
		{"report", "", bump(`"calls": (\d+)`)},
		{"report", "", bump(`"avg_ns": ([\d.]+)`)},
		{"report", "", bump(`"p99_ns": ([\d.]+)`)},
		{"report", "", bump(`"busbw": (0\.\d+)`)},
		{"report", "", bump(`"p50_ns": ([1-9][\d.]+)`)},
		{"report", "", bump(`"busbw_nobody_late": ([\d.e+-]*[1-9][\d.e+-]*)`)},
		{"report", "", bump(`"rank_0_ns": ([\d.]+)`)},
		{"report", "", bump(`"timed": (\d+)`)},
		{"report, text", "", bump(`AllReduce .* ([\d.e+-]+)  +[\d.e+-]+ [nµm]?s  +[\d.e+-]+  +RING`)},
		{"report, text", "", bump(`AllReduce .*  ([\d.e+-]+)  +RING`)},
		{"report, Markdown", "", bump(`AllReduce .*\| ([\d.e+-]+) \| [\d.e+-]+ [nµm]?s \| [\d.e+-]+ \| RING`)},
		{"report, CSV", "", bump(`AllReduce,false.*,([\d.e+-]+),[\d.e+-]+,[\d.e+-]+,RING`)},
		{"profile --summary", "", bump(`"busbw": ([\d.e+-]*[1-9][\d.e+-]*)`)},
		{"diff", "", bump(`"median_a_ns": ([1-9][\d.]+)`)},
		{"report", "", bump(`"waited_ns": (\d+)`)},
		{"report", "", bump(`"size": (\d+)`)},
		{"report, text", "", bump(`operations +(\d+) in`)},
		{"report --tally", "", bump(`"time_ns": (\d+)`)},
		{"report --tally", "", bump(`"calls": (\d+),\s+"average_ns"`)},
		{"report --waits", "", bump(`"waited_ns": (\d+)`)},
		{"report --waits", "", bump(`(?s)"ranks".*?"caused_ns": (\d+)`)},
		{"report --waits", "", bump(`(?s)"over_time".*?"waited_ns": ([1-9]\d*)`)},
		{"report --waits", "", bump(`(?s)"communicator_operations".*?"waited_ns": ([1-9]\d*)`)},
		{"report --waits", "", bump(`"load_balance": ([\d.]+)`)},
		{"report", "", bump(`"communication": ([\d.]+)`)},
		{"report --matrix", "", bump(`"transfers": (\d+)`)},
		{"report --matrix", "", bump(`"bytes": (\d+)`)},
		{"profile --summary", "", bump(`"calls": (\d+)`)},
		{"profile --summary", "", bump(`"nccl_wait_nxn": (\d+)`)},
		{"profile --summary", "", bump(`"min": (\d+)`)},
		{"export --jsonl", "", bump(`"type":"ncclProfileCollApi".*"duration":([\d.]+)`)},
		{"export --jsonl", "", bump(`"transSize":(\d+)`)},
		{"export --perfetto", "", later},
		{"export --parquet", export.OperationsFile, ofTable(func(o *export.Operation) { o.Duration += 1000 })},
		{"export --parquet", export.OperationsFile, ofTable(func(o *export.Operation) { o.Function += "s" })},
		{"export --parquet", export.OperationsFile, ofTable(func(o *export.Operation) { o.Size *= 2 })},
		{"export --parquet", export.TransfersFile, ofTable(func(x *export.TransferRow) { x.Bytes++ })},
		{"export --parquet", export.WaitsFile, ofTable(func(w *export.WaitRow) { w.Waited++ })},
		{"export --prometheus", "", bump(`nccl_collective_exec_time_microseconds\{.*collective="Reduce".*\} (\S+)`)},
		{"export --prometheus", "", bump(`nccl_bus_bandwidth_gbs\{.*collective="Reduce".*\} (\S+)`)},
		{"timeline", "", ofPage(`"totals":\{[^}]*"operations":(\d+)`)},
		{"timeline", "", ofPage(`"caused":(\d+)`)},
		{"timeline", "", ofPage(`"windows":\[\{[^}]*"waited":(\d+)`)},
		{"timeline", "", ofPage(`"worst":\[\{[^}]*"caused":(\d+)`)},
		{"diff", "", bump(`"operations": (\d+)`)},
		{"top", "", bump(`"operations":(\d+)`)},
		{"top", "", bump(`"busbw":(0\.\d+)`)},
		{"diff, text", "", bump(`Reduce +27.3 KiB .*  ([\d.]+) ms  +[\d.]+ ms `)},
		{"view --scalasca", "", bump(`"collectives": (\d+)`)},
		{"view --scalasca", "", bump(`"hosts": (\d+)`)},
		{"view --scalasca, its archive", "", bump(`(?m)^LEAVE +\d+ +(\d+)  Region: "ncclAllGather"`)},
		{"report, text", "", bump(`caused (\d+) % of it`)},
		{"report, text", "", bump(`Where the waiting went: ([\d.]+)`)},
		{"report, text", "", bump(`the answer above covers the other ([\d.]+) ms`)},
		{"report, text", "", bump(`Critical path of ([\d.]+)`)},
		{"report", "", bump(`"length_ns": (\d+)`)},
		{"report --path", "", bump(`"steady_ns": (\d+)`)},
		{"report --path", "", bump(`"gain_ns": (\d+)`)},
		{"report --nccl-tests", "", bump(`"avg": \{\s+"time_ns": ([\d.]+)`)},
		{"report --nccl-tests", "", bump(`"busbw": ([\d.]*[1-9][\d.]*)`)},
		{"report --nccl-tests", "", bump(`"nobody_late": \{\s+"time_ns": ([\d.]+)`)},
		{"report --tally, text", "", bump(`AllReduce +([\d.]+) s`)},
		{"report --tally, text", "", bump(`ReduceScatter .* %  +(\d+)  `)},
		{"report --tally, CSV", "", bump(`NCCL network,Recv flush,false,false,(\d+)`)},
		{"report --waits, text", "", bump(`late sender  .*  +([\d.]+) ms  +[\d.]+ %`)},
		{"report --waits, text", "", bump(`(?s)By rank.*?Rank 3 .*?  ([\d.]+) ms  +[\d.]+ %`)},
		{"report --waits, text", "", bump(`load balance +([\d.]+)`)},
		{"report --waits, CSV", "", bump(`\nranks,Rank 1,\w+,\d+,\d+,\d+,(\d+)`)},
		{"report --waits, CSV", "", bump(`early reduce,\d+,\d+,\d+,(\d+)`)},
		{"report --matrix, text", "", bump(`Rank 3 +\w+ +Rank 0 +\w+ +(\d+)`)},
		{"report --matrix, text", "", bump(`Rank 3 +\w+ +Rank 0 .*  ([\d.]+)\n`)},
		{"report --matrix, CSV", "", bump(`ranks,Rank 0,\w+,Rank 1,\w+,\d+,(\d+)`)},
		{"profile --summary", "", bump(`"p99": ([1-9][\d.]*)`)},
		{"profile --summary", "", bump(`"duration_ns": (\d+)`)},
		{"export --parquet", export.RunsFile, ofTable(func(r *export.RunRow) { r.Duration++ })},
		{"timeline", "", ofPage(`"busbw":"([\d.]+)"`)},
		{"timeline", "", ofPage(`"back":([1-9]\d*)`)},
		{"timeline", "", ofPage(`"backBy":\[(\d+)`)},
		{"timeline", "", ofPage(`"waiting":\[\{[^}]*"waits":(\d+)`)},
		{"timeline", "", ofPage(`"waiting":\[\{[^}]*"waited":(\d+)`)},
		{"report --waits", "", bump(`"goes_back_ns": ([1-9][\d.]*)`)},
		{"timeline", "", ofPage(`"text":"Nobody stands out: ranks waited ([\d.]+)`)},
	} {
		changed := maps.Clone(all)
		changed[c.product] = maps.Clone(all[c.product])
		for _, file := range slices.Sorted(maps.Keys(all[c.product])) {
			if strings.HasSuffix(file, c.file) {
				changed[c.product][file] = c.change(t, c.product+" "+file, all[c.product][file])
				break
			}
		}
		f, err := figuresOf(changed)
		if err == nil && !slices.ContainsFunc(f.disagreements(),
			func(d string) bool { return strings.Contains(d, c.product) }) {
			t.Errorf("case %d: a changed number of %s was not found", i, c.product)
		}
	}
}
