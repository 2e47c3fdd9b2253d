// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// exampleText is a trace in the form of NCCL's example plugin, of collectives from one number on; later versions quote
// what early ones do not.
func exampleText(rank, pid, first, n int, quoted bool) string {
	word := func(s string) string { return s }
	if quoted {
		word = func(s string) string { return `"` + s + `"` }
	}
	text := "[\n"
	event := func(name, category, phase string, at float64, args string) {
		if args != "" {
			args = `, "args": {` + args + `}`
		}
		text += fmt.Sprintf(`{"name": "%s", "cat": "%s", "ph": "%s", "id": 0, "pid": %d, "tid": 1, "ts": %f%s},`+"\n",
			name, category, phase, pid, at, args)
	}
	for i := range n {
		at := 1000 + 500*float64(i)
		event("Group API", "GROUP_API", "b", at, `"groupApiId": 0, "groupDepth": 1`)
		event("KernelLaunch", "KERNEL_LAUNCH", "b", at+5, `"groupId": 0, "Stream": `+word("0x262ca50"))
		event("KernelLaunch", "KERNEL_LAUNCH", "e", at+9, "")
		event("AllReduce", "COLL_API", "b", at+1,
			`"count": 1024, "datatype": `+word("ncclFloat32")+`, "root": 0, "GraphCaptured":0, "Stream": `+word(
				"0x262ca50"))
		event("AllReduce", "COLL", "b", at+2, fmt.Sprintf(
			`"SeqNum": %d, "CommHash": 12715772615376301750, "Rank": %d, "Count": 1024, "Datatype": "ncclFloat32", "Algorithm": "RING", "Protocol": "LL", "nChannels": 1`, first+i, rank))
		event("KernelCh", "GPU", "b", at+20, fmt.Sprintf(
			`"Channel": 0, "StartGpuClk": %d, "StopGpuClk": %d`, 1765223116927674080+500000*i,
			1765223116927674080+500000*i+90000))
		event("ScheduleSend", "PROXY", "b", at+10,
			`"Channel": 0, "Peer": 1, "Steps": 1, "ChunkSize": 4096, "transSize": 4096`)
		event("ScheduleSend", "PROXY", "e", at+11, "")
		event("ProgressSend", "PROXY", "b", at+11,
			`"Channel": 0, "Peer": 1, "Steps": 1, "ChunkSize": 4096, "transSize": 4096`)
		for k, name := range []string{"SendGpuWait", "SendPeerWait", "SendWait"} {
			event(name, "NET", "b", at+20+float64(k), `"Step": 0`)
			event(name, "NET", "e", at+21+float64(k), "")
		}
		event("ProgressSend", "PROXY", "e", at+60, "")
		event("KernelCh", "GPU", "e", at+110, "")
		event("AllReduce", "COLL", "e", at+3, "")
		event("AllReduce", "COLL_API", "e", at+4, "")
		event("Group API", "GROUP_API", "e", at+12, "")
	}
	event("Sleep", "PROXY", "b", 5000, "")
	event("Sleep", "PROXY", "e", 5001, "")
	return text + "{}]\n"
}

// Operations are matched by the numbers that the plugin was given, whatever its pools had no room for.
func TestTracesOfNCCLsExamplePlugin(t *testing.T) {
	for _, quoted := range []bool{false, true} {
		in, dir := t.TempDir(), filepath.Join(t.TempDir(), "made")
		for rank := range 2 {
			testkit.Write(t, filepath.Join(in, fmt.Sprintf("dump_12715772615376301750_%d.json", rank)),
				[]byte(exampleText(rank, 4711+rank, 5+rank, 4, quoted)))
		}
		res := testkit.Value(Import([]string{in}, dir, nil))(t)
		testkit.Check(t, res.Processes == 2 && res.Malformed == 0 && res.NotUsed["OTHER_RECORDS"] == 4 &&
			len(res.NotUsed) == 1, "%+v", res)
		a := unify(t, dir, true)
		report := testkit.Value(operations.Observe(a, new(operations.Observer)))(t)
		s := &report.Summary
		testkit.Check(t, s.Operations == 3 && s.LeftOut == 2 && s.Timing["GPU"] == 8 &&
			s.Lost["NOT_IN_INPUT::COLL"] == 11 && !report.Verdict.StandsOut, "%+v, %s", s, report.Verdict.Text)
		r := &report.Operations[0]
		testkit.Check(t, r.Size == 4096 && r.Datatype == "ncclFloat32" && r.Time.Avg == 90_000, "%+v", r)
	}
}

// Events without end, words without quotes, and an empty object at the end: what is there is taken.
func TestTraceWithoutEnds(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made")
	res, err := Import([]string{"testdata/example_42_0.json"}, dir, nil)
	testkit.Require(t, err == nil && res.Malformed+res.Truncated == 0 && res.NotUsed["EVENTS_WITHOUT_END"] == 1,
		"%+v, %v", res, err)
	a := unify(t, dir, false)
	testkit.Check(t, property(a, "STARTS::COLL") == "1" &&
		property(a, "IMPORTED_FROM") == "Chrome trace of NCCL's example plugin", "%v", a.Anchor.Properties)
}
