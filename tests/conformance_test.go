// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// demonstrations show by results what lines of conformance.md say: what is run on the archive of which recording,
// and what its output must have, each as often as it says ("58 × regular expression"; without a number at least once).
// Records of print are lines with their attributes. "DIR" among the arguments is the archive, "RECORDING" the recording
// itself, "OUT" a file whose text is looked at, or a folder whose files are.
var demonstrations = []struct {
	line     string // what was asked for
	archive  string // of conformanceArchives
	args     string
	contains []string
}{
	{"number of nodes at init", "hosts", "print -G DIR",
		[]string{`4 × LOCATION_PROPERTY .*"NCCL_OTF2::NNODES" <\d+>, Type: UINT64, Value: 2$`}},
	{"GroupApi: depth, the times of its two states", "raw", "print DIR", []string{
		`60 × ^ENTER .*"ncclProfileGroupApi".*\("GROUP_DEPTH" `, `60 × ^ENTER .*"ncclProfilerGroupStartApiStop"`,
		`60 × ^ENTER .*"ncclProfilerGroupEndApiStart"`,
	}},
	{"root of a call", "groups", "print DIR", []string{`8 × ^ENTER .*"ncclProfileCollApi".*\("ROOT" <\d+>; \w+; 3\)`}},
	{"launches in a capture marked", "graph", "print DIR",
		[]string{`^ENTER .*"nccl(AllReduce|AllGather|Group)".*\("GRAPH" <\d+>; UINT8; 1\)`}},
	{"the operation's own count and datatype, beside the call's", "raw", "print DIR", []string{
		`48 × ^ENTER .*"ncclProfileColl".*\("COUNT" .*\("DATATYPE" `,
		`52 × ^ENTER .*"ncclProfileCollApi".*\("COUNT" .*\("DATATYPE" `,
	}},
	{"parentGroup", "raw", "print DIR", []string{`48 × ^ENTER .*"ncclProfileColl".*\("PLAN_ID" `,
		`40 × ^ENTER .*"ncclProfileP2p".*\("PLAN_ID" `}},
	{"times of Group, Coll and P2p (enqueueing)", "raw", "print DIR", []string{
		`56 × ^ENTER .*"ncclProfileGroup"`, `56 × ^LEAVE .*"ncclProfileGroup"`, `48 × ^LEAVE .*"ncclProfileColl"`,
		`40 × ^LEAVE .*"ncclProfileP2p"`,
	}},
	{"ProxyOp: pid, nSteps, chunkSize, its interval and id", "raw", "print DIR", []string{
		`158 × ^ENTER .*"ncclProfileProxyOp".*\("EVENT_ID" .*\("PROXY_PID" .*\("STEPS" .*\("CHUNK_SIZE" `,
		`158 × ^LEAVE .*"ncclProfileProxyOp"`,
	}},
	{"ProxyStep: step and interval, including those of receives", "raw", "print DIR", []string{
		`1118 × ^ENTER .*"ncclProfileProxyStep".*\("STEP" `, `1118 × ^LEAVE .*"ncclProfileProxyStep"`,
		`559 × ^ENTER .*"ncclProfilerProxyStepRecvGPUWait"`,
	}},
	{"KernelCh's pTimer, unchanged", "raw", "print DIR",
		[]string{`96 × ^ENTER .*"ncclProfileKernelCh".*\("GPU_TIMER" <\d+>; UINT64; \d{9,}\)`}},
	{"stamps after NCCL's ring of 64 stamps was overrun", "net", "print DIR", []string{`^ENTER .*\("REALIGNED" `}},
	{"NetPlugin: id, device, wr_id, opcode", "raw", "print DIR", []string{ // of sockets
		`1118 × ^ENTER .*"ncclProfileNetPlugin".*\("NET_ID" .*\("BYTES" .*\("NET_DEVICE" `,
		`559 × ^ENTER .*"ncclProfileNetPlugin".*\("IS_SEND" `,
		`1118 × ^LEAVE .*"ncclProfileNetPlugin"`,
	}},
	{"the chain of parents, ids of ProxyOp and ProxyStep", "raw", "print DIR", []string{
		`1118 × ^ENTER .*"ncclProfileProxyStep".*\("EVENT_ID" .*\("PARENT_ID" `,
		`1118 × ^ENTER .*"ncclProfileNetPlugin".*\("PARENT_ID" `,
		`96 × ^ENTER .*"ncclProfileKernelCh".*\("PARENT_ID" `,
	}},
	{"every state", "raw", "print DIR", []string{`4066 × ^ENTER .*"ncclProfiler[A-Z]`,
		`4066 × ^LEAVE .*"ncclProfiler[A-Z]`}},
	{"GroupStartApiStop, GroupEndApiStart", "hosts", "print DIR",
		[]string{`40 × ^ENTER .*"ncclProfilerGroupStartApiStop"`, `40 × ^ENTER .*"ncclProfilerGroupEndApiStart"`}},
	{"transSize of both directions", "raw", "print DIR", []string{
		`559 × ^ENTER .*"ncclProfilerProxyStepRecvWait".*\("ARGUMENT" `,
		`559 × ^ENTER .*"ncclProfilerProxyStepSendWait".*\("ARGUMENT" `,
	}},
	{"thread of each event", "raw", "print DIR", []string{`3096 × ^ENTER .*"ncclProfile[A-Z].*\("TID" `}},

	{"rows that say communicator, rank, thread", "raw", "print -G DIR", []string{
		`LOCATION .*"comm \w+ event ProxyStep ch 00 send 0" .*Group: "Rank 0" `,
		`LOCATION .*"comm \w+ event GroupApi 0" .*Group: "Rank 3" `, `4 × LOCATION_PROPERTY .*"NCCL_OTF2::COMM_ID"`,
	}},
	{"analysis of recorded callbacks", "net", "report RECORDING", []string{`4 processes on 1 host`, `AllReduce`}},
	{"analysis of recorded callbacks", "net", "check RECORDING", []string{`^no findings \(\d+ events\)`}},
	{"several devices of one thread", "groups", "print DIR", []string{
		`9 × ^ENTER .*"ncclAllReduce".*\("DEVICE" <\d+>; UINT32; 0\), \("COMM" .*\("RANK" <\d+>; UINT32; 0\)`,
		`9 × ^ENTER .*"ncclAllReduce".*\("DEVICE" <\d+>; UINT32; 3\), \("COMM" .*\("RANK" <\d+>; UINT32; 3\)`,
	}},
	{"parents of communicators", "lineage", "print -G DIR",
		[]string{`^COMM .*Name: "tp" <\d+>.*Parent: "world" <0>`, `^COMM .*Name: "world" <\d+>.*Parent: UNDEFINED`}},

	{"thread in JSONL", "raw", "export --jsonl DIR -o OUT",
		[]string{`52 × "type":"ncclProfileCollApi",.*"start":\{"ts":[\d.]+,"pid":\d+,"tid":\d+\}`}},
	{"all events and states in JSONL", "raw", "export --jsonl DIR -o OUT", []string{
		`4066 × "recordType":"state"`, `1118 × "type":"ncclProfileProxyStep"`, `1118 × "type":"ncclProfileNetPlugin"`,
		`158 × "type":"ncclProfileProxyOp"`, `96 × "type":"ncclProfileKernelCh"`,
	}},
	{"GPU UUID and communicator in every record", "device", "export --jsonl DIR -o OUT",
		[]string{`930 × "recordType":"event",.*"gpuUuid":"GPU-[\w-]+","commId":\d+`, `930 × "recordType":"event"`}},

	{"out of place and in place side by side", "net", "report DIR --nccl-tests", []string{
		`^# +out-of-place +in-place`, `count +type +redop +root +time +algbw +busbw`,
		`^# Avg bus bandwidth    : [\d.]+$`, `^ +24000 +6000 +float +none +1 `,
	}},
	{"out of place and in place side by side", "device", "report DIR --nccl-tests",
		[]string{`^#  Rank  0 Pid +973 on +node1 device .* \[0000:00:06\.0\]`}},
	{"time on the application's side (cputime)", "net", "report DIR --nccl-tests --format csv",
		[]string{`call_time_ns`}},
	{"times over ranks (`-a`)", "net", "report DIR --nccl-tests --average max", []string{`on the slowest rank`}},
	{"warm-up left out (`-w`)", "net", "report DIR --nccl-tests", []string{`^ +20000 +5000 +float +\? +-1 +N/A `}},
	{"warm-up left out (`-w`)", "net", "report DIR --nccl-tests --first",
		[]string{`^ +20000 +5000 +float +\? +-1 +\d+`}},
	{"aggregated operations (`-m`)", "v5", "report DIR --nccl-tests",
		[]string{`called, agg iters: 2 \(times are of a launch, divided by it\)`}},
	{"CUDA graphs (`-G`)", "graph", "report DIR --nccl-tests",
		[]string{`3 ranks, called`, `3 ranks, replayed from a CUDA graph`}},
	{"a plot of bandwidth over size", "net", "report DIR --svg -",
		[]string{`^<svg `, `1 × >Bus bandwidth over size<`, `class="dim"[^>]*>64 KiB<`, `<path `}},
	{"the reduction's operation", "net", "report DIR --nccl-tests",
		[]string{`^ +80000 +20000 +float +\? `, `^ +14400 +900 +float +none `}}, // and why it is not known
	{"rows of channels counted once", "channels", "report DIR --tally", []string{
		`1 × ^AllReduce +1\.31 s +100\.0 % +96 `, `1 × ^AllReduce +2\.60 s +100\.0 % +192 `,
		`^Channels show the parts of operations that are in the other tables`,
	}},
	{"in place known without CUPTI", "net", "print DIR", []string{`48 × ^ENTER .*\("IN_PLACE" `}},
	{"filters", "net", "report DIR --tally --rank 0",
		[]string{`^selection: --rank 0`, `^NCCL API \| 1 host \| 1 process`}},
	{"filters", "net", "report DIR --tally", []string{`^NCCL API \| 1 host \| 4 processes`}},
}

// conformanceArchives are what is looked at: recordings that are played with some settings.
var conformanceArchives = map[string]struct {
	recording string
	settings  []string
}{
	"raw":      {"nccl-callbacks/02-allcoll-4p-net", []string{"NCCL_OTF2_EVENTS=all", "NCCL_OTF2_RAW=on"}},
	"net":      {"nccl-callbacks/02-allcoll-4p-net", []string{"NCCL_OTF2_EVENTS=all"}},
	"graph":    {"nccl-callbacks/10-graph-3p", []string{"NCCL_OTF2_EVENTS=gpu"}},
	"groups":   {"nccl-callbacks/03-onethread-4r-groups", []string{"NCCL_OTF2_EVENTS=gpu", "NCCL_OTF2_RAW=on"}},
	"hosts":    {"nccl-callbacks/06-twohosts-2x2", []string{"NCCL_OTF2_EVENTS=all", "NCCL_OTF2_RAW=on"}},
	"v5":       {"nccl-callbacks/08-v5-nccl228-3p", []string{"NCCL_OTF2_EVENTS=gpu"}},
	"channels": {"nccl-callbacks/09-straggler-4p", []string{"NCCL_OTF2_EVENTS=gpu", "NCCL_OTF2_CHANNELS=on"}},
	"device":   {"nccl-callbacks/12-gpu-few-2p", []string{"NCCL_OTF2_EVENTS=all", "NCCL_OTF2_RAW=on"}},
	"lineage":  {"nccl-causes/c12-lineage-6p", []string{"NCCL_OTF2_EVENTS=gpu"}},
}

// What conformance.md says is there is there: results show it, or else the files and tests that it names exist.
// What is not there has a reason.
func TestConformance(t *testing.T) {
	lines := conformanceLines(t)
	testkit.Require(t, len(lines) >= 50, "%d lines", len(lines))
	shown := make(map[string]bool)
	dirs, outputs := make(map[string]string), make(map[string]string)
	for _, d := range demonstrations {
		line := ""
		for asked := range lines {
			if strings.HasPrefix(asked, d.line) && (line == "" || len(asked) < len(line)) {
				line = asked
			}
		}
		if line == "" {
			t.Errorf("conformance.md has no line %q", d.line)
			continue
		}
		shown[line] = true
		a := conformanceArchives[d.archive]
		if dirs[d.archive] == "" {
			dirs[d.archive] = t.TempDir()
			conformanceTool(t, a.settings, "replay", filepath.Join("../testdata", a.recording), "--clock", "recorded",
				"--dir", dirs[d.archive])
		}
		run := d.archive + ": " + d.args
		if outputs[run] == "" {
			out := filepath.Join(t.TempDir(), "out")
			words := strings.NewReplacer("DIR", dirs[d.archive], "RECORDING", filepath.Join("../testdata", a.recording),
				"OUT", out)
			outputs[run] = conformanceTool(t, a.settings, strings.Fields(words.Replace(d.args))...) + textBelow(t, out)
		}
		for _, want := range d.contains {
			number, pattern, exact := strings.Cut(want, " × ")
			if !exact {
				pattern = want
			}
			n := len(regexp.MustCompile("(?m)"+pattern).FindAllString(outputs[run], -1))
			testkit.Check(t, (!exact || fmt.Sprint(n) == number) && n != 0,
				"%s: nccl-otf2 %s: %d times %s, want %s", line, run, n, pattern, want)
		}
	}
	testkit.Check(t, len(shown) >= 30, "results show %d lines", len(shown))
	for asked, cells := range lines {
		there, where := cells[0], cells[1]
		switch named := namedIn(t, where); {
		case there == "yes" && !shown[asked] && named == 0:
			t.Errorf("nothing shows, or says where it is: %s", asked)
		case there == "no" && len(where) < 40:
			t.Errorf("nothing says why: %s", asked)
		case there != "yes" && there != "no":
			t.Errorf("%q is neither yes nor no: %s", there, asked)
		}
	}
}

// conformanceLines are the lines of the page: whether what was asked for is there, and where, or why not.
func conformanceLines(t *testing.T) map[string][2]string {
	t.Helper()
	text := testkit.Value(os.ReadFile("conformance.md"))(t)
	lines := make(map[string][2]string)
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 3 || strings.TrimSpace(cells[0]) == "asked for" || strings.HasPrefix(cells[0], "---") {
			continue
		}
		lines[strings.TrimSpace(cells[0])] = [2]string{strings.TrimSpace(cells[1]), strings.TrimSpace(cells[2])}
	}
	return lines
}

// namedIn counts the files and tests that a text names, which must exist.
func namedIn(t *testing.T, text string) (named int) {
	t.Helper()
	for _, m := range regexp.MustCompile("`([^` ]+)`").FindAllStringSubmatch(text, -1) {
		switch {
		case strings.HasPrefix(m[1], "Test"):
			named++
			if exec.Command("git", "-C", "..", "grep", "-q", "^func "+m[1]+"(", "--", "*_test.go").Run() != nil {
				t.Errorf("there is no %s: %s", m[1], text)
			}
		case strings.Contains(m[1], "/"):
			named++
			_, err := os.Stat(filepath.Join("..", m[1]))
			testkit.Check(t, err == nil, "%v: %s", err, text)
		}
	}
	return named
}

// conformanceTool gives what the tool prints, a record and its attributes on one line.
func conformanceTool(t *testing.T, settings []string, args ...string) string {
	t.Helper()
	cmd := exec.Command(builtFile(t, "nccl-otf2"), args...)
	cmd.Env = append(os.Environ(), settings...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("nccl-otf2 %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return regexp.MustCompile(`\n +ADDITIONAL ATTRIBUTES`).ReplaceAllString(string(out), " ADDITIONAL ATTRIBUTES")
}

// textBelow is the text of a file, or of all files in a folder; "" if there is neither.
func textBelow(t *testing.T, path string) string {
	t.Helper()
	var all strings.Builder
	_ = filepath.WalkDir(path, func(file string, e os.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			text, readErr := os.ReadFile(file)
			all.Write(text)
			return readErr
		}
		return nil
	})
	return all.String()
}
