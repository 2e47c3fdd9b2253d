// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/analysis/check"
	"github.com/nccl-otf2/nccl-otf2/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/need"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/scorep/shardtest"
)

// grownJob leaves a job whose archive is older than what it has recorded since.
func grownJob(t *testing.T, tool string) (dir string, old, young uint64) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "experiment")
	host, err := os.Hostname()
	need.NoError(t, "the name of this machine", err)
	events := func() uint64 {
		if out, err := exec.Command(tool, "unify", dir).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return wholeArchive(t, dir)
	}
	var processes []*shardtest.Process
	for r := range 2 {
		p := shardtest.New(t, dir, fmt.Sprint("p", r)).On(host, 100+r).Launched("slurm", r, 2)
		world := p.Comm(experiment.Comm{ID: 7, Name: "world", NRanks: 2, Rank: r, InitTime: shardtest.Epoch + 1000})
		p.AllReduce(world, shardtest.Epoch+2000, shardtest.Epoch+3000, 8)
		p.Flush()
		processes = append(processes, p)
	}
	old = events()
	for _, p := range processes {
		p.AllReduce(0, shardtest.Epoch+5000, shardtest.Epoch+6000, 8)
		p.Finish()
	}
	copied := filepath.Join(t.TempDir(), "copy")
	testkit.Must(t, os.CopyFS(copied, os.DirFS(dir)))
	young = events()
	return copied, old, young
}

// wholeArchive is how many events the archive of a directory has, which must be whole.
func wholeArchive(t *testing.T, dir string) uint64 {
	t.Helper()
	res, err := check.Archive(filepath.Join(dir, "traces.otf2"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range res.Findings {
		if f.Severity == check.Error {
			t.Errorf("the archive is not whole: %v", f)
		}
	}
	return res.Events
}

// The disk refuses a sync of unify's: then the old archive is there, whole, or the new one, and unify says which. (Renames:
// scorep.TestADiskThatFailsLeavesAnArchive.)
func TestUnifyOnADiskThatFails(t *testing.T) {
	strace, err := straceWorks()
	need.NoError(t, "strace, which injects errors", err)
	tool, err := filepath.Abs("../build/nccl-otf2")
	need.NoError(t, "what make build makes", err)
	original, old, young := grownJob(t, tool)
	if old >= young {
		t.Fatalf("%d events, then %d", old, young)
	}
	refused := 0
	for n := 1; ; n++ { // of each thread
		dir := filepath.Join(t.TempDir(), "experiment")
		testkit.Must(t, os.CopyFS(dir, os.DirFS(original)))
		cmd := exec.Command(strace, "-f", "-o", os.DevNull, "-e", "trace=fsync,fdatasync", "-e", "inject=fsync,fdatasync:error=EIO:when="+strconv.Itoa(n), tool, "unify", dir)
		out, err := cmd.CombinedOutput()
		got := wholeArchive(t, dir)
		if err == nil {
			if got != young {
				t.Errorf("%d: %d events, the job has %d: %s", n, got, young, out)
			}
			break
		}
		refused++
		if said := strings.Contains(string(out), "the new archive is in its place"); !strings.Contains(string(out), "input/output error") || said != (got == young) || !said && got != old {
			t.Errorf("%d: %d events; the old archive has %d, the new one %d: %s", n, got, old, young, out)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) > 0 {
			t.Errorf("%d: left behind: %v", n, left)
		}
		if _, err := os.Stat(filepath.Join(dir, "traces.new")); err == nil {
			t.Errorf("%d: traces.new is left behind", n)
		}
	}
	if refused < 2 {
		t.Errorf("refused %d times only", refused)
	}
}
