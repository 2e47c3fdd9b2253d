// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/hang"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/scorep"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
)

// entry is an operation in a made-up dump: "tp 7 all_gather scheduled", or "pp 7 recv_1<-0 scheduled" for messages.
type entry string

// dumpText is a dump of a rank in JSON. Groups are "tp" (ranks 0 and 1), "dp" (all) and "pp" (all); the status of each is
// what was called last and what has ended last.
func dumpText(rank, ranks int, status map[string][2]int, entries []entry) string {
	names := []string{"world", "dp", "pp", "tp"}
	all := make([]int, ranks)
	for i := range all {
		all[i] = i
	}
	text := func(v any) string {
		b, _ := json.Marshal(v)
		return string(b)
	}
	d := map[string]any{"version": "2.10", "comm_lib_version": "2.27.3"}
	config, states, list := make(map[string]any), make(map[string]any), []any{}
	for i, name := range names {
		of := all
		if name == "tp" {
			of = all[:2]
		}
		if name == "tp" && rank > 1 {
			continue
		}
		config[fmt.Sprint(i)] = map[string]string{"name": fmt.Sprint(i), "desc": name, "ranks": text(of)}
		if s, known := status[name]; known {
			states[fmt.Sprint(i)] = map[string]string{"last_enqueued_collective": fmt.Sprint(s[0]),
				"last_started_collective": "-1", "last_completed_collective": fmt.Sprint(s[1])}
		}
	}
	for i, e := range entries {
		f := strings.Fields(string(e))
		group, number := slices.Index(names, f[0]), 0
		_, _ = fmt.Sscan(f[1], &number)
		size := 1024
		if len(f) > 4 {
			_, _ = fmt.Sscan(f[4], &size)
		}
		record := map[string]any{
			"record_id": 100 + i, "pg_id": group, "process_group": []string{fmt.Sprint(group), f[0]},
			"collective_seq_id": number, "p2p_seq_id": 0, "profiling_name": "nccl:" + strings.ReplaceAll(f[2], "_", " "),
			"state": f[3], "input_sizes": [][]int{{size}}, "input_dtypes": []string{"Float"},
			"output_sizes": [][]int{{size}}, "time_created_ns": 1_760_000_000_000_000_000 + i*1000,
		}
		if !strings.Contains(f[2], "<-") && !strings.Contains(f[2], "->") {
			record["profiling_name"] = "nccl:" + f[2]
		} else {
			record["p2p_seq_id"], record["collective_seq_id"] = number, 0
		}
		list = append(list, record)
	}
	d["pg_config"], d["pg_status"], d["entries"] = config, states, list
	return text(d)
}

// Who stopped a job is told from the order and the states of what its ranks called, and nobody is accused of what dumps
// do not tell.
func TestDumpsOfTheFlightRecorder(t *testing.T) {
	const inside = "tp 8 all_reduce scheduled"
	for _, c := range []struct {
		name   string
		ranks  map[int][]entry
		status map[int]map[string][2]int
		kind   string
		named  []int
		says   string
	}{
		{"all inside", map[int][]entry{0: {inside}, 1: {inside}}, nil, "", nil, ""},
		{"not called, behind others that begin anywhere",
			map[int][]entry{0: {"tp 7 _all_gather_base completed", inside}, 1: {"tp 7 _all_gather_base completed"}}, nil,
			"missing", []int{1}, "Rank 1 never called AllReduce 8 on tp (3), which Rank 0 is in"},
		{"of what is behind it, only the first", map[int][]entry{0: {inside, "tp 9 all_gather scheduled"},
			1: {"tp 7 all_reduce completed"}}, nil, "missing", []int{1}, "AllReduce 8"},
		{"nothing open, and the status tells that it has not called it", map[int][]entry{0: {inside}, 1: nil},
			map[int]map[string][2]int{1: {"world": {3, 3}, "dp": {3, 3}, "pp": {3, 3}, "tp": {7, 7}}}, "missing", []int{1},
			"Rank 1 never called AllReduce 8"},
		{"one of eight", map[int][]entry{0: {"dp 5 all_reduce scheduled"}, 1: {"dp 5 all_reduce scheduled"},
			2: {"dp 5 all_reduce scheduled"}, 3: {"dp 5 all_reduce scheduled"}, 4: {"dp 5 all_reduce scheduled"},
			5: {"dp 5 all_reduce scheduled"}, 6: {"dp 5 all_reduce scheduled"}, 7: nil},
			map[int]map[string][2]int{7: {"world": {3, 3}, "dp": {4, 4}, "pp": {3, 3}}}, "missing", []int{7},
			"Rank 7 never called AllReduce 5"},
		{"nothing open, and nothing tells whether it has called it", map[int][]entry{0: {inside}, 1: nil}, nil, "", nil,
			""},
		{"a status that may be about messages", map[int][]entry{0: {"tp 2 send_0->1 completed", inside}, 1: nil},
			map[int]map[string][2]int{1: {"tp": {2, 2}}}, "", nil, ""},
		{"no dump", map[int][]entry{0: {inside}}, nil, "", nil, ""},
		{"it waits for a message itself", map[int][]entry{0: {inside},
			1: {"tp 7 all_reduce completed", "pp 3 recv_1<-2 scheduled"}, 2: nil}, nil, "", nil, ""},
		{"it is in another group's operation, which others have not called",
			map[int][]entry{0: {"dp 5 all_reduce scheduled", inside},
				1: {"tp 7 all_reduce completed", "dp 5 all_reduce scheduled"},
				2: {"dp 5 all_reduce scheduled"}, 3: {"dp 4 all_reduce completed"}}, nil, "missing", []int{3},
			"Rank 3 never called AllReduce 5 on dp (1), which Ranks 0-2 are in"},
		{"others have ended it", map[int][]entry{0: {"dp 5 all_to_all scheduled 9"},
			1: {"dp 5 all_to_all completed", "dp 6 all_reduce scheduled"},
			2: {"dp 5 all_to_all completed", "dp 6 all_reduce scheduled"}}, nil, "missing", []int{0},
			"Rank 0 has not ended AlltoAll 5 on dp (1), which Ranks 1-2 have, though it takes all members"},
		{"the root has ended it", map[int][]entry{0: {"tp 8 broadcast completed"}, 1: {"tp 8 broadcast scheduled"}}, nil,
			"", nil, ""},
		{"its GPU has not begun it", map[int][]entry{0: {"dp 5 all_reduce started"}, 1: {"dp 5 all_reduce started"},
			2: {"dp 5 all_reduce scheduled"}}, nil, "missing", []int{2}, "GPU of Rank 2 has not begun AllReduce 5"},
		{"another function", map[int][]entry{0: {"dp 5 all_reduce scheduled"}, 1: {"dp 5 broadcast scheduled"},
			2: {"dp 5 all_reduce scheduled"}}, nil, "mismatch", []int{1},
			"as collective 5 on dp (1), Rank 1 called Broadcast of 1024 elements of Float32"},
		{"another size", map[int][]entry{0: {"dp 5 all_reduce scheduled 4"}, 1: {"dp 5 all_reduce scheduled"},
			2: {"dp 5 all_reduce scheduled"}}, nil, "mismatch", []int{0}, "AllReduce of 4 elements"},
		{"sizes that may differ", map[int][]entry{0: {"tp 5 all_to_all scheduled 4"}, 1: {"tp 5 all_to_all scheduled"}},
			nil, "", nil, ""},
		{"called together, one entry has the state", map[int][]entry{
			0: {"tp 5 all_gather scheduled", "tp 5 all_gather scheduled", "tp 5 coalesced completed", inside},
			1: {"tp 5 all_gather scheduled", "tp 5 all_gather scheduled", "tp 5 coalesced completed"}}, nil, "missing",
			[]int{1}, "AllReduce 8"},
		{"opposite orders", map[int][]entry{0: {inside}, 1: {"dp 5 all_reduce scheduled"}},
			map[int]map[string][2]int{0: {"world": {3, 3}, "dp": {4, 4}, "pp": {3, 3}, "tp": {8, 7}},
				1: {"world": {3, 3}, "dp": {5, 4}, "pp": {3, 3}, "tp": {7, 7}}}, "order", []int{0, 1}, "each waits for the other"},
	} {
		in, dir := t.TempDir(), filepath.Join(t.TempDir(), "made")
		for rank, entries := range c.ranks {
			testkit.Write(t, filepath.Join(in, fmt.Sprintf("dump_%d.json", rank)),
				[]byte(dumpText(rank, max(2, slices.Max(slices.Collect(maps.Keys(c.ranks)))+1), c.status[rank], entries)))
		}
		testkit.Value(Import([]string{in}, dir, nil))(t)
		kind, named, text := culprits(t, dir)
		testkit.Check(t, kind == c.kind && slices.Equal(named, c.named) && strings.Contains(text, c.says),
			"%s: %s %v: %s", c.name, kind, named, text)
		made := testkit.Value(scorep.Unify(dir, nil))(t)
		a := jobtest.Open(t, made.Runs[0].Archive)
		verdict := testkit.Value(operations.Observe(a, new(operations.Observer)))(t).Verdict.Text
		said := strings.Contains(verdict, "order and state, no times")
		testkit.Check(t, said == (c.kind != ""), "%s: %s", c.name, verdict)
	}
}

// culprits are the ranks that stopped the job of an import, and what is said of them.
func culprits(t *testing.T, dir string) (kind string, ranks []int, text string) {
	t.Helper()
	held, err := hang.Find(dir, time.Now(), nil)
	testkit.Require(t, err == nil && len(held.Jobs) == 1 && len(held.Problems) == 0, "%+v, %v", held, err)
	for _, c := range held.Jobs[0].Culprits {
		kind, ranks, text = cmp.Or(kind, string(c.Kind)), append(ranks, c.Rank), text+c.Evidence+"\n"
	}
	slices.Sort(ranks)
	return kind, ranks, text
}

// What PyTorch itself has written.
func TestDumpsThatPyTorchWrote(t *testing.T) {
	for _, c := range []struct{ fault, says string }{
		{"missing", "Rank 2 never called AllReduce 6 on default_pg, which Ranks 0-1 are in, called at train.py:14 ("},
		{"mismatch", "as collective 6 on default_pg, Rank 2 called Broadcast of 1024 elements of Float32, " +
			"Ranks 0-1 called AllReduce of 1024 elements of Float32"},
	} {
		dir := filepath.Join(t.TempDir(), "made")
		res := testkit.Value(Import([]string{filepath.Join("testdata/flightrecorder", c.fault)}, dir, nil))(t)
		testkit.Check(t, res.Processes == 3 && res.Malformed == 0 && len(res.NotUsed) == 0, "%+v", res)
		kind, named, text := culprits(t, dir)
		testkit.Check(t, kind == c.fault && slices.Equal(named, []int{2}) && strings.Contains(text, c.says),
			"%s %v: %s", kind, named, text)
		a := unify(t, dir, false)
		testkit.Check(t, property(a, "IMPORTED_FROM") == "dumps of PyTorch's Flight Recorder" &&
			strings.Contains(property(a, "IMPORT_MISSING"), "when operations ran"), "%v", a.Anchor.Properties)
	}
}

// Beside dumps, a folder may have files of other programs. A damaged dump is named, and the others are read.
func TestWhatIsBesideDumps(t *testing.T) {
	in, dir := t.TempDir(), filepath.Join(t.TempDir(), "made")
	good := dumpText(0, 2, nil, []entry{"tp 8 all_reduce scheduled"})
	for name, text := range map[string]string{"job.log": "Rank 1 is slow\n", "dump_0": good, "dump_0.json": good,
		"dump_1": "\x80\x02}cos\nsystem\n", "nameless": good, "dump_2": strings.Replace(good, "[0,1]", "0", 1),
		"dump_999999999": good,
		"dump_3":         strings.Replace(good, "2.10", "1.5", 1)} {
		testkit.Write(t, filepath.Join(in, name), []byte(text))
	}
	res, err := Import([]string{in}, dir, nil)
	testkit.Require(t, err == nil && res.Processes == 1 && res.Malformed == 5 && res.NotUsed["REPEATED_DUMPS"] == 1,
		"%+v, %v", res, err)
	testkit.Contains(t, strings.Join(res.Problems, "\n"), "dump_1: a pickle with instruction 0x63")
	_, err = Import([]string{filepath.Join(in, "nameless")}, filepath.Join(t.TempDir(), "made"), nil)
	testkit.Check(t, err != nil && strings.Contains(err.Error(), "give the file a name that ends in it"), "%v", err)
}
