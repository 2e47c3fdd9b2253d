// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/check"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/need"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

// grownJob leaves a job whose archive is older than what it has recorded since.
func grownJob(t *testing.T, tool string) (dir string, old, young uint64) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "experiment")
	host, err := os.Hostname()
	need.NoError(t, "the name of this machine", err)
	events := func() uint64 {
		testkit.Output(t, exec.Command(tool, "unify", dir))
		return wholeArchive(t, dir)
	}
	var processes []*shardtest.Process
	for r := range 2 {
		p := shardtest.New(t, dir, fmt.Sprint("p", r)).On(host, 100+r).Launched("slurm", r, 2)
		world := p.Comm(description.Comm{ID: 7, Name: "world", NRanks: 2, Rank: r, InitTime: shardtest.Epoch + 1000})
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
	res := testkit.Value(check.Archive(filepath.Join(dir, "traces.otf2"), nil))(t)
	for _, f := range res.Findings {
		testkit.Check(t, f.Severity != check.Error, "the archive is not whole: %v", f)
	}
	return res.Events
}

// The disk refuses a sync of unify's: then the old archive is there, whole, or the new one, and unify says which.
// (Renames: scorep.TestADiskThatFailsLeavesAnArchive.)
func TestUnifyOnADiskThatFails(t *testing.T) {
	tool := builtFile(t, "nccl-otf2")
	original, old, young := grownJob(t, tool)
	testkit.Require(t, old < young, "%d events, then %d", old, young)
	refused := 0
	for n := 1; ; n++ {
		dir, log := filepath.Join(t.TempDir(), "experiment"), filepath.Join(t.TempDir(), "log")
		testkit.Must(t, os.CopyFS(dir, os.DirFS(original)))
		cmd := exec.Command(builtFile(t, "inject"), "unify", dir)
		rule := failure{call: "fsync,fdatasync", errno: unix.EIO, skip: n - 1, times: 1}.rule()
		cmd.Env = append(os.Environ(), "INJECT_PROGRAM="+tool, "INJECT_BELOW="+dir, "INJECT_RULES="+rule,
			"INJECT_LOG="+log)
		out, err := cmd.CombinedOutput()
		got := wholeArchive(t, dir)
		text, unread := os.ReadFile(log)
		testkit.Require(t, unread == nil || errors.Is(unread, fs.ErrNotExist), "%v", unread)
		if !strings.Contains(string(text), "call ") { // there are not so many
			testkit.Check(t, err == nil && got == young, "%v, %d events, the job has %d: %s", err, got, young, out)
			break
		}
		testkit.Check(t, err != nil, "%d: nothing is said: %s", n, out)
		refused++
		said := strings.Contains(string(out), "the new archive is in its place")
		testkit.Check(t, strings.Contains(string(out), "input/output error") && said == (got == young) &&
			(said || got == old), "%d: %d events; the old archive has %d, the new one %d: %s", n, got, old, young, out)
		left, _ := filepath.Glob(filepath.Join(dir, ".*"))
		testkit.Check(t, len(left) == 0, "%d: left behind: %v", n, left)
		_, err = os.Stat(filepath.Join(dir, "traces.new"))
		testkit.Check(t, err != nil, "%d: traces.new is left behind", n)
	}
	testkit.Check(t, refused >= 2, "refused %d times only", refused)
}
