// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/scorep"
)

// checkImported requires that an import has accounted for every line, and that what comes of it are archives that can
// be read; after an error, that it has left nothing.
func checkImported(t *testing.T, res *Result, err error, out string) {
	t.Helper()
	if err != nil {
		_, err := os.Stat(out)
		testkit.Check(t, err != nil, "a failed import leaves something")
		return
	}
	testkit.Check(t, res.Malformed+res.Truncated <= res.Lines && (res.First == "") == (res.Malformed == 0),
		"%+v", res)
	entries, err := experiment.List(out)
	testkit.Require(t, err == nil && len(entries) == res.Processes, "%v %v %v", len(entries), res.Processes, err)
	for _, e := range entries {
		testkit.Require(t, e.Err == nil && e.State == experiment.Done, "%v %v", e.State, e.Err)
		for _, c := range e.Process.Comms {
			if c.NRanks > 256 { // many members take time, and are nothing new
				return
			}
		}
	}
	made := testkit.Value(scorep.Unify(out, nil))(t)
	for _, r := range made.Runs {
		a := testkit.Value(otf2.Open(r.Archive, nil))(t)
		for _, err := range a.Events(nil) {
			testkit.Check(t, err == nil, "%v", err)
		}
		a.Close()
	}
}

// FuzzImport imports any bytes: every line is accounted for, and what comes of it is an archive that can be read.
func FuzzImport(f *testing.F) {
	rec := testkit.Value(replay.Load("../../testdata/nccl-callbacks/08-v5-nccl228-3p"))(f)
	text := dump(rec.Processes[0]).out.String()
	for at := 0; at < len(text); at += 20_000 { // pieces: an init, and what follows somewhere
		head, _, _ := strings.Cut(text, "\n")
		f.Add([]byte(head + "\n" + text[at:min(at+3000, len(text))]))
	}
	f.Add([]byte(goodInit + "\n" + goodCall))
	f.Add([]byte(inspectorLine(0, "AllReduce", 1, 2, 3, "kernel_gpu", 1_760_000_000_000_000, "") +
		inspectorLine(1, "Broadcast", 1, 2, 3, "kernel_cpu", 1_760_000_000_000_000,
			`{"coll_start_ts":1760000000000000,"coll_stop_ts":1760000000000001,"kernel_events":[{"kernel_start_ts":1760000000000002,"kernel_stop_ts":1760000000000009}]}`)))
	f.Add([]byte(strings.Replace(goodInit, `"nranks":1`,
		`"nranks":2,"epoch":1760000000000000.5,"host":"h","source":"nccl-otf2","incomplete":true,"lost":{"NOT_IN_INPUT::COLL":3},"oddities":{"STRAY_STOPS":2},"worldRank":0,"worldSize":1`, 1) + "\n" +
		`{"recordType":"event","type":"ncclProfileColl","func":"AllReduce","commId":77,"rank":0,"start":{"ts":6,"tid":null},"stop":{"ts":7,"tid":null},"eventAddr":"0x5","details":{"func":"AllReduce","count":4,"dtype":"ncclFloat32","timingSource":"gpu","uncertaintyNs":1,"plan":1,"ordinal":7,"unfinished":true,"attributes":{"UNFINISHED":7,"LINK_PEER":1,"END_IS_EARLY":1}}}` + "\n" +
		`{"recordType":"event","type":"ncclProfileProxyStep","func":"ProxyStep","commId":77,"rank":0,"start":{"ts":6},"stop":{"ts":7},"parentObj":"0x5","eventAddr":"0x6","details":{"peer":1,"channel":0,"isSend":true}}`))
	f.Add([]byte(acclRecord(0, 1<<48, "1.50") + acclRecord(1, 3, "-nan") +
		`{"coll":"AllReduce","rank":0,"n_ranks":2,"comm_hash":"0xbeef"}` + "\n" +
		`{"summary":{"dropped_collectives":18446744073709551615}}`))
	f.Add([]byte(exampleText(0, 7, 5, 2, true) + exampleText(1, 8, 0, 1, false)))
	f.Add([]byte(framedLine(1, "v4.1", lossyCollective(1<<40)) + framedLine(2, "v4.1", lossyMessage("Send", 9, 1)) +
		framedLine(1, "v4.1", `"dump_stats":{"coll_dropped_total":7,"p2p_dropped_total":9}`)))
	f.Add([]byte(framedLine(1, "v4.1", `"dump_stats":{"coll_dropped_total":7,"p2p_dropped_total":9}`) +
		`{"energy":1}` + "\x00"))
	f.Add(testkit.Read(f, "testdata/flightrecorder/missing/nccl_trace_rank_0"))
	f.Add(testkit.Read(f, "testdata/flightrecorder/mismatch/nccl_trace_rank_2.json"))
	f.Add([]byte((&torchJobText{ranks: 2, steps: 3, calls: true, numbers: true}).text(1)))
	f.Add([]byte(gloo))
	f.Fuzz(func(t *testing.T, b []byte) {
		dir := t.TempDir()
		path := filepath.Join(dir, "trace_1_pid1.jsonl")
		testkit.Must(t, os.WriteFile(path, b, 0o666))
		out := filepath.Join(dir, "out")
		res, err := Import([]string{path}, out, nil)
		checkImported(t, res, err, out)
	})
}
