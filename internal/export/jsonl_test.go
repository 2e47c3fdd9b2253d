// SPDX-License-Identifier: Apache-2.0

package export

import (
	"bufio"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// readLines parses a file and checks each line against the minimal profiler's schema: the members of event and state
// records, their types, and that states have their event.
func readLines(t *testing.T, path string) (events, states []map[string]any) {
	t.Helper()
	f := testkit.Value(os.Open(path))(t)
	defer f.Close()
	addresses := make(map[string]bool)
	s := bufio.NewScanner(f)
	for s.Scan() {
		var r map[string]any
		if err := json.Unmarshal(s.Bytes(), &r); err != nil {
			t.Fatalf("%v in %s", err, s.Text())
		}
		check := func(in map[string]any, types map[string]string) {
			for name, value := range in {
				want, known := types[name]
				got := "null"
				switch value.(type) {
				case string:
					got = "string"
				case float64:
					got = "number"
				case bool:
					got = "bool"
				case map[string]any:
					got = "object"
				}
				if !known || !strings.Contains(want, got) {
					t.Errorf("member %s is %s, want %s, in %s", name, got, want, s.Text())
				}
			}
			for name, kind := range types {
				if _, ok := in[name]; !ok && !strings.Contains(kind, "optional") {
					t.Errorf("no member %s in %s", name, s.Text())
				}
			}
		}
		if r["recordType"] == "state" {
			check(r, map[string]string{"recordType": "string", "eventAddr": "string", "ts": "number", "name": "string",
				"id": "number", "pid": "number null", "tid": "number null", "transSize": "number optional"})
			states = append(states, r)
			continue
		}
		check(r, map[string]string{
			"recordType": "string", "type": "string", "func": "string", "gpuUuid": "string", "commId": "number null",
			"rank": "number null", "start": "object", "stop": "object",
			"duration": "number", "myPid": "number null", "originPid": "number optional",
			"parentObj": "string optional", "eventAddr": "string optional", "isPxn": "bool optional",
			"details": "object",
		})
		for _, end := range []string{"start", "stop"} {
			check(r[end].(map[string]any), map[string]string{"ts": "number", "pid": "number null",
				"tid": "number null"})
		}
		if a, ok := r["eventAddr"].(string); ok {
			addresses[a] = true
		}
		events = append(events, r)
	}
	for _, r := range states {
		if !addresses[r["eventAddr"].(string)] {
			t.Errorf("a state without event: %v", r)
		}
	}
	return events, states
}

func TestRecordsAreTheMinimalProfilers(t *testing.T) {
	a := job(t)
	dir := t.TempDir()
	res := testkit.Value(JSONL(a, dir, &Options{Job: "4711"}))(t)
	if names := list(t, dir); !slices.Equal(names,
		[]string{"trace_4711_pid100.jsonl", "trace_4711_pid101.jsonl", "trace_4711_pid102.jsonl"}) {
		t.Errorf("files %v", names)
	}
	counts := make(map[string]int)
	var transferred float64
	counted := make(map[string]int)
	parents, calls := make(map[string]float64), make(map[string]float64) // ranks by the call's address
	for _, path := range res.Files {
		events, states := readLines(t, path)
		for _, r := range events {
			counts[r["type"].(string)]++
			d := r["details"].(map[string]any)
			switch r["type"] {
			case "ncclProfileColl", "ncclProfileP2p":
				counted[r["func"].(string)]++
				if uint64(r["commId"].(float64)) != 0xfedcba9876543000 &&
					r["commId"].(float64) != float64(0xfedcba9876543210) || d["timingSource"] == nil {
					t.Errorf("%v", r)
				}
				if r["func"] == "ReduceScatter" && d["ordinal"] == 1.0 {
					delete(d, "plan")
					want := map[string]any{
						"func": "ReduceScatter", "seq": 7.0, "count": 500.0, "dtype": "ncclInt32", "sendBuff": "0x1000",
						"recvBuff": "0x2000",
						"ordinal":  1.0, "timingSource": "gpu", "uncertaintyNs": 300.0,
					}
					if diff := cmp.Diff(want, d); diff != "" || r["duration"] != 15.0 ||
						r["start"].(map[string]any)["tid"] != nil {
						t.Errorf("%v:\n%s", r, diff)
					}
					parents[r["parentObj"].(string)] = r["rank"].(float64)
				}
			case "ncclProfileCollApi", "ncclProfileKernelLaunch":
				if d["stream"] != "0xabc" || r["rank"] != r["start"].(map[string]any)["pid"].(float64)-100 {
					t.Errorf("%v", r)
				}
				if r["type"] == "ncclProfileCollApi" {
					calls[r["eventAddr"].(string)] = r["rank"].(float64)
				}
			case "ncclProfileProxyStep":
				if pxn, _ := r["isPxn"].(bool); pxn != (r["commId"] == 0.0 && r["rank"] == -1.0 && r["gpuUuid"] == "") || pxn && r["originPid"] != 100.0 {
					t.Errorf("%v", r)
				}
			}
		}
		for _, s := range states {
			transferred += s["transSize"].(float64)
		}
	}
	if len(calls) != 3 || !maps.Equal(calls, parents) {
		t.Errorf("calls %v, parents of operations %v", calls, parents)
	}
	want := make(map[string]int)
	testkit.Value(operations.EachPart(a, nil, analysis.Slice{},
		func(p *operations.Part) error { want[p.Function]++; return nil }))(t)
	testkit.Same(t, want, counted)
	if transferred != 3*(1000+1001+1002)+500 || counts["ProfilerLifecycle"] != 6 ||
		counts["ncclProfileProxyStep"] != 10 {
		t.Errorf("%v bytes in transfers; records %v", transferred, counts)
	}
	total := uint64(0)
	for _, n := range counts {
		total += uint64(n)
	}
	for kind, n := range res.Records {
		if kind != "state records" {
			total -= n
		}
	}
	testkit.Equal(t, total, 0, "records %v, counted %v", counts, res.Records)
	if !slices.Contains(slices.Collect(maps.Keys(res.LeftOut)), "phases of the network rows") {
		t.Errorf("left out %v", res.LeftOut)
	}
}

// Without a job's id, files are named after the time at which the archive begins.
func TestFilesAreNamedAfterTheirTime(t *testing.T) {
	dir := t.TempDir()
	res := testkit.Value(JSONL(job(t), dir, nil))(t)
	if got := filepath.Base(res.Files[0]); got != "trace_1760000000_pid100.jsonl" {
		t.Errorf("%s", got)
	}
	if _, err := JSONL(job(t), dir, &Options{Job: "../4711"}); err == nil {
		t.Error("a job's id leads out of the folder")
	}
}

// Strings come out as JSON that other parsers read, whatever bytes they hold; numbers keep their nanoseconds.
func TestJSONIsWritten(t *testing.T) {
	var out strings.Builder
	j := newJSONWriter(&out)
	for range 3 { // over the end of the buffer
		j.raw("{")
		for i := range 9000 {
			j.text("t", "\x00\x7f\"\\\n\xff\u00e9\u2028")
			j.micros("m", -int64(i)*1001)
		}
		j.object("o")
		j.boolean("b", true)
		j.null("n")
		j.hex("h", 255)
		j.number("f", 1e300)
		j.unsigned("u", 1<<63)
		j.raw("}}\n")
	}
	testkit.Must(t, j.flush())
	for line := range strings.Lines(out.String()) {
		var got map[string]any
		testkit.Must(t, json.Unmarshal([]byte(line), &got))
		if got["t"] != "\x00\x7f\"\\\n\ufffd\u00e9\u2028" || got["m"] != -9007.999 ||
			got["o"].(map[string]any)["h"] != "0xff" {
			t.Errorf("%v", got)
		}
	}
}
