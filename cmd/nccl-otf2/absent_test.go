// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
	"github.com/nccl-otf2/nccl-otf2/tests/scoutrules"
)

// A job of many ranks of which few are recorded: every command reads what unify makes of it, says which ranks are not
// there, and writes no file for each of them.
func TestFewRecordedRanks(t *testing.T) {
	dir := t.TempDir()
	const size = 16384
	for _, r := range []int{0, 1, 9000, 16383} {
		p := shardtest.New(t, dir, fmt.Sprint("p", r)).On(fmt.Sprint("node", r/8), 1000+r).Launched("slurm", r, size)
		p.GPU(r%8, fmt.Sprint("GPU-", r), "")
		world := p.World()
		p.AllReduce(world, shardtest.Epoch+10_000_000, shardtest.Epoch+20_000_000, 64)
		p.Send(world, 5000, shardtest.Epoch+50_000_000, shardtest.Epoch+60_000_000, 8)
		p.Network(world)
		p.Put(world, 5000, shardtest.Epoch+51_000_000, shardtest.Epoch+52_000_000, 8)
		p.Put(world, 12000, shardtest.Epoch+53_000_000, shardtest.Epoch+54_000_000, 16)
		p.Finish()
	}
	seen := func(want string, args ...string) string {
		t.Helper()
		out := tool(t, args...)
		testkit.Contains(t, out, want)
		return out
	}
	out := filepath.Join(t.TempDir(), "out")
	const absent = "nothing was recorded of ranks 2-8999,9001-16382"
	seen("16380 processes of the job left nothing here", "unify", dir)
	seen(absent, "report", dir)
	seen("4 processes on 3 hosts, 16380 without data", "report", dir)
	seen("Rank 5000 (no data)", "report", dir, "--matrix")
	seen("Rank 12000 (no data)", "report", dir, "--matrix")
	text := seen("Rank 9000", "report", dir, "--waits")
	testkit.Check(t, !strings.Contains(text, "(no data)"), "%.2000s", text)
	seen("4 processes (0 running, 4 ended", "report", "--hang", dir)
	text = seen(`message(s) 0>5000 on "world" without receive`, "check", dir)
	testkit.Check(t, !strings.Contains(text, "error: "), "%v", text)
	seen(`"Ranks 2-8999 (no data)"`, "print", "-A", dir)
	seen("in 18 rows", "timeline", dir, "--output", out+".html")
	seen("processes", "profile", dir)
	seen("", "view", "--scalasca", dir, "--output", out+".view")
	found := testkit.Value(scoutrules.Check(filepath.Join(out+".view", "traces.otf2"), nil))(t)
	testkit.Check(t, found.Errors() == 0, "scout cannot analyze the view: %v", found.Findings)
	for _, form := range []string{"jsonl", "perfetto", "parquet", "prometheus"} {
		seen("", "export", "--"+form, dir, "--output", out+"."+form)
	}
	// What is exported and comes back has the same ranks.
	back := filepath.Join(t.TempDir(), "back")
	seen("", "import", out+".jsonl", "--output", back)
	seen(absent, "report", back)
	seen("Rank 9000", "top", "--once", dir)
	seen("", "diff", dir, dir)
	var report struct {
		Summary struct {
			Processes   int
			Ranks       int
			NotRecorded struct {
				Processes int
				Ranks     string
			} `json:"not_recorded"`
		}
	}
	testkit.Must(t, json.Unmarshal([]byte(tool(t, "report", dir, "--format", "json")), &report))
	s := report.Summary
	testkit.Check(t, s.Processes == 4 && s.Ranks == size && s.NotRecorded.Processes == size-4 &&
		s.NotRecorded.Ranks == "2-8999,9001-16382", "%+v", s)
	for _, folder := range []string{filepath.Join(dir, "traces"), out + ".view"} {
		files := 0
		testkit.Must(t, filepath.WalkDir(folder, func(_ string, d fs.DirEntry, err error) error {
			files++
			return err
		}))
		testkit.Check(t, files <= 48, "%s: %d files", folder, files)
	}
}

// What one line of an import says of the size of a communicator costs no files either, and more ranks than there can be
// are refused by name.
func TestImportOfLargeCommunicators(t *testing.T) {
	line := func(kind, name string, rank, ranks, at int) string {
		return fmt.Sprintf(
			`{"recordType":"event","type":"%s","func":"%s","gpuUuid":"","commId":77,"rank":%d,"start":{"ts":%d.0,"pid":9,"tid":9},"stop":{"ts":%d.0,"pid":9,"tid":9},"myPid":9,"details":{"nranks":%d,"eventMask":4095,"count":4,"dtype":"ncclFloat32","channel":0,"peer":200000}}`+"\n",
			kind, name, rank, at, at+1, ranks)
	}
	file := filepath.Join(t.TempDir(), "trace.jsonl")
	const rank, ranks = 150_000, 250_000
	write(t, file, line("ProfilerLifecycle", "ProfilerInit", rank, ranks, 5)+line("Coll", "AllReduce", rank, ranks, 10)+
		line("ProxyOp", "AllReduce", rank, ranks, 10)+line("Coll", "AllReduce", 1_000_000, ranks, 20))
	dir := filepath.Join(t.TempDir(), "out")
	testkit.Contains(t, tool(t, "import", file, "--output", dir),
		"trace.jsonl:4: rank 1000000: communicators have at most 262144 ranks")
	testkit.Contains(t, tool(t, "report", dir), "nothing was recorded of ranks 0-149999,150001-249999")
	files, err := filepath.Glob(filepath.Join(dir, "traces", "*"))
	testkit.Check(t, err == nil && len(files) != 0 && len(files) <= 16, "%d files, %v", len(files), err)
}
