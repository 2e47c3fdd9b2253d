// SPDX-License-Identifier: Apache-2.0

// Package scale asks about made-up jobs of many ranks: whether the answer is right, how long it is, and what it costs.
package scale

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
)

var (
	many = flag.String("ranks", "", "numbers of ranks to measure, such as 128,1024,4096,10000; disk: 0.25 MB each")
	page = flag.Bool("page", false, "put what was measured into docs/scale.md")
)

const command = "go test ./tests/scale -ranks 128,1024,4096,10000 -page"

// asked are the commands that are measured.
var asked = []struct {
	name string
	args []string
}{
	{"unify", []string{"unify", "DIR"}},
	{"unify --no-sync", []string{"unify", "DIR", "--no-sync"}},
	{"report", []string{"report", "DIR"}},
	{"report --waits", []string{"report", "DIR", "--waits"}},
	{"report --matrix", []string{"report", "DIR", "--matrix"}},
	{"check", []string{"check", "DIR"}},
	{"top --once", []string{"top", "DIR", "--once"}},
	{"profile", []string{"profile", "DIR"}},
	{"timeline", []string{"timeline", "DIR"}},
	{"export --parquet", []string{"export", "DIR", "--parquet"}},
}

// cost is what a command took.
type cost struct {
	cpu    time.Duration
	memory int64 // bytes
	lines  int
	out    string
}

func ask(t *testing.T, dir string, args ...string) cost {
	t.Helper()
	tool := testkit.Value(filepath.Abs("../../build/nccl-otf2"))(t)
	args = append([]string(nil), args...)
	for i, a := range args {
		if a == "DIR" {
			args[i] = dir
		}
	}
	cmd := exec.Command(tool, args...)
	out := testkit.Output(t, cmd)
	c := cost{cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), lines: bytes.Count(out, []byte{'\n'}),
		out: string(out)}
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		c.memory = usage.Maxrss << 10
	}
	return c
}

// The rank that is late is named among few and among many, and what is printed does not grow with them.
func TestLateRankAmongMany(t *testing.T) {
	var lines []int
	for _, ranks := range []int{192, 512} {
		dir, late := t.TempDir(), ranks/2+3
		jobtest.WriteTraining(t, dir, ranks, late)
		ask(t, dir, "unify", "DIR")
		var report struct {
			Verdict struct {
				Culprits []struct {
					Rank  int
					Share float64
					Kind  string
				}
			}
		}
		testkit.Must(t, json.Unmarshal([]byte(ask(t, dir, "report", "DIR", "--format", "json").out), &report))
		v := report.Verdict
		testkit.Check(t, len(v.Culprits) == 1 && v.Culprits[0].Rank == late && v.Culprits[0].Share >= 0.95 &&
			v.Culprits[0].Kind == "host_late", "%d ranks: %+v, Rank %d was late", ranks, v, late)
		out := ask(t, dir, "report", "DIR", "--matrix").out
		testkit.Equal(t, !strings.Contains(out, "leaves out 1 communicator of 512 or more ranks"), ranks < 512,
			"%d ranks: %s", ranks, out)
		n := 0
		for _, args := range [][]string{{"report", "DIR"}, {"report", "DIR", "--waits"}, {"report", "DIR", "--matrix"},
			{"top", "DIR", "--once"}} {
			n += ask(t, dir, args...).lines
		}
		lines = append(lines, n)
	}
	testkit.Check(t, lines[1] <= lines[0]+8, "%d lines of 512 ranks, %d of 192", lines[1], lines[0])
}

// With -ranks the commands are measured on jobs of so many ranks.
func TestScale(t *testing.T) {
	if *many == "" || *served {
		t.Log("nothing is measured without -ranks")
		return
	}
	head, rule := "| processor seconds, MiB, lines |", "|---|"
	rows := make([]string, len(asked)+1)
	for number := range strings.SplitSeq(*many, ",") {
		ranks := numberOf(t, number)
		dir := testkit.Value(os.MkdirTemp("", "scale"))(t)
		jobtest.WriteTraining(t, dir, ranks, ranks/2+3)
		head, rule = head+fmt.Sprintf(" %d ranks |", ranks), rule+"---|"
		for i, a := range asked {
			c := ask(t, dir, a.args...)
			t.Logf("%d ranks: %s: %.2f s, %d MiB, %d lines", ranks, a.name, c.cpu.Seconds(), c.memory>>20, c.lines)
			rows[i] += fmt.Sprintf(" %.2f s, %d, %d |", c.cpu.Seconds(), c.memory>>20, c.lines)
		}
		rows[len(asked)] += fmt.Sprintf(" %d |", entries(t, dir))
		err := os.RemoveAll(dir)
		testkit.Check(t, err == nil, "%v", err)
	}
	table := head + "\n" + rule + "\n"
	for i, a := range asked {
		table += "| `" + a.name + "` |" + rows[i] + "\n"
	}
	table += "| files and folders, the archive's and the shards' |" + rows[len(asked)] + "\n"
	t.Log("\n" + table)
	if *page {
		putSection(t, "scale", command, table)
	}
}

// numberOf is a number of ranks.
func numberOf(t *testing.T, number string) int {
	t.Helper()
	ranks, err := strconv.Atoi(number)
	testkit.Require(t, err == nil && ranks%jobtest.PerHost == 0, "%q is no multiple of %d", number, jobtest.PerHost)
	return ranks
}

// putSection puts a table into the page of the documentation.
func putSection(t *testing.T, name, command, table string) {
	t.Helper()
	_ = flag.Set("update", "true")
	golden.SectionMadeBy(t, "../../docs/scale.md", name, command, table)
}

// entries is how many files and folders there are.
func entries(t *testing.T, dir string) (n int) {
	err := filepath.WalkDir(dir, func(string, fs.DirEntry, error) error { n++; return nil })
	testkit.Check(t, err == nil, "%v", err)
	return n
}
