// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// All commands say the same of who lives, where files can be locked, and where that fails for the job, for the reader,
// or for both: of a job that runs, one whose collector was killed with it, and one that has ended in order.
func TestCommandsAgreeOnWhoLives(t *testing.T) {
	t.Parallel()
	program := testkit.Value(sandboxed())(t)
	sandbox := func(errno unix.Errno) []string {
		return []string{program, fmt.Sprint(unix.SYS_FLOCK), fmt.Sprint(int(errno))}
	}
	for _, c := range []struct {
		name        string
		job, reader []string // what they run in
	}{
		{"locks", nil, nil},
		{"none for the job", sandbox(unix.ENOSYS), nil},
		{"none for the reader", nil, sandbox(unix.ENOSYS)},
		{"none for both", sandbox(unix.EPERM), sandbox(unix.ENOSYS)},
	} {
		for _, how := range []string{"runs", "killed", "ended"} {
			t.Run(strings.ReplaceAll(c.name+"/"+how, " ", "_"), func(t *testing.T) {
				t.Parallel()
				dir := filepath.Join(t.TempDir(), "experiment")
				j := beginUnder(t, c.job, dir, byCollector, 300, "finalize", 0)
				waitFlushed(t, dir, byCollector, 1)
				want := lifeCounts{Running: 1}
				switch how {
				case "killed":
					standStill(t, j.collector) // it is not to write that the process has ended
					_ = j.cmd.Process.Kill()
					_ = j.cmd.Wait()
					_ = unix.Kill(j.collector, unix.SIGKILL)
					gone(t, j.collector)
					want = lifeCounts{Crashed: 1}
				case "ended":
					j.goOn()
					testkit.Equal(t, j.end(), 0, "status of the host, which said\n%s\n", j.stderr.String())
					gone(t, j.collector)
					want = lifeCounts{Ended: 1}
				}
				var top lifeCounts
				asJSON(t, &top, c.reader, "top", dir, "--once", "--format", "json")
				testkit.Equal(t, top, want, "top")
				var hanging struct {
					Hang struct {
						Jobs []lifeCounts `json:"jobs"`
					} `json:"hang"`
				}
				asJSON(t, &hanging, c.reader, "report", "--hang", dir, "--format", "json")
				jobs := hanging.Hang.Jobs
				testkit.Check(t, len(jobs) == 1 && jobs[0] == want, "report --hang says %+v, want %+v", jobs, want)
				status := strings.Join(asJSON(t, nil, c.reader, "ctl", "status", dir, "--format", "json"), "")
				testkit.Equal(t, strings.Contains(status, `"records"`), want.Running == 1, "ctl status says %s", status)
				asJSON(t, nil, c.reader, "unify", dir)
				var found struct {
					Runs []struct {
						Ended   int `json:"finished"`
						Running int `json:"running"`
						Crashed int `json:"crashed"`
					} `json:"runs"`
				}
				asJSON(t, &found, c.reader, "unify", dir, "--format", "json")
				testkit.Check(t, len(found.Runs) == 1 && lifeCounts(found.Runs[0]) == want,
					"unify says %+v, want %+v", found.Runs, want)
				entries, err := experiment.List(dir)
				testkit.Require(t, err == nil && len(entries) == 1, "%v, %v", entries, err)
				states := map[lifeCounts]experiment.State{{Running: 1}: experiment.Writing,
					{Crashed: 1}: experiment.Dead, {Ended: 1}: experiment.Done}
				if got := entries[0]; got.State != states[want] || got.Guess {
					t.Errorf("the shard is in state %d (a guess: %v), want %d", got.State, got.Guess, states[want])
				}
				if how == "runs" {
					j.goOn()
					j.end()
					gone(t, j.collector)
				}
			})
		}
	}
}

// lifeCounts are processes by what became of them.
type lifeCounts struct {
	Ended   int `json:"ended"`
	Running int `json:"running"`
	Crashed int `json:"crashed"`
}

// asJSON runs the tool, in a wrapper perhaps, and reads what it says; it may end with 1.
func asJSON(t *testing.T, into any, wrapper []string, args ...string) (said []string) {
	t.Helper()
	line := append(append([]string{}, wrapper...), builtFile(t, "nccl-otf2"))
	line = append(line, args...)
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Env = append(os.Environ(), "NCCL_OTF2_DIR=")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if exit := new(exec.ExitError); err != nil && !(errors.As(err, &exit) && exit.ExitCode() == 1) {
		t.Fatalf("%v: %v\n%s", args, err, stderr.String())
	}
	if into != nil {
		err := json.Unmarshal(out, into)
		testkit.Require(t, err == nil, "%v: %v\n%s%s", args, err, out, stderr.String())
	}
	return []string{string(out), stderr.String()}
}
