// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"context"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// submit puts a batch script into the queue, which runs a step whose tasks stop after 200 calls, and waits until they
// have.
func (j *job) submit(script string, args ...string) (id string) {
	j.t.Helper()
	testkit.Write(j.t, filepath.Join(j.dir, "script"), []byte("#!/bin/bash\n"+script))
	j.must("sbatch", append(append([]string{"--nodes=2", "--ntasks-per-node=2", "--output=%A.%a.out",
		"--open-mode=append"}, args...), "script")...)
	id = strconv.Itoa(j.first)
	j.stopped("nccl-otf2-"+id+".0", 4)
	return id
}

// says holds what the report of a directory says.
func (j *job) says(name string, want ...string) {
	j.t.Helper()
	text := j.must("nccl-otf2", "report", name)
	for _, w := range want {
		if !regexp.MustCompile(w).MatchString(text) {
			j.t.Errorf("%s: not in the report: %s\n%s%s", name, w, text, j.output())
		}
	}
}

const step = "TRAIN_STOP=200 srun nccl-otf2 run -- ./train\n"

// SIGTERM ends the tasks; then there is the time of KillWait for what they left, and the archive is made within.
func TestCancel(t *testing.T) {
	j := newJob(t)
	id := j.submit(step)
	// Slurm lets processes go on that have stopped, before it sends SIGTERM: with one that waits already they get no
	// further.
	j.must("scancel", "--signal=TERM", id+".0")
	j.must("scancel", id)
	j.gone()
	j.says("nccl-otf2-"+id+".0", "4 processes on 2 hosts",
		"Ranks 0-3 killed by SIGTERM|Rank . was the first to end.*: killed by SIGTERM")
	j.kept("nccl-otf2-" + id + ".0")
	for _, noise := range []string{"has not finished", "interrupted"} {
		testkit.Check(t, !strings.Contains(j.output(), noise), "%s: %s", noise, j.output())
	}
}

// Signals reach the program through `nccl-otf2 run`. Tasks that do not heed SIGTERM are killed, and run with them.
func TestCancelUnheeded(t *testing.T) {
	j := newJob(t)
	testkit.Write(t, filepath.Join(j.dir, "script"), []byte(`#!/bin/bash
srun nccl-otf2 run -- sh -c '
  trap "" TERM
  trap ": >warned.$SLURM_PROCID" USR1
  ./train
  : >"stays.$SLURM_PROCID"
  while :; do sleep 600 & wait; done'
`))
	j.must("sbatch", "--nodes=2", "--ntasks-per-node=2", "--output=%A.%a.out", "script")
	files := func(pattern string) func() bool {
		return func() bool {
			found, _ := filepath.Glob(filepath.Join(j.dir, pattern))
			return len(found) == 4
		}
	}
	j.until("the end of all processes that use NCCL", files("stays.*"))
	j.must("scancel", "--signal=USR1", strconv.Itoa(j.first)+".0")
	j.until("a signal in all tasks", files("warned.*"))
	j.must("scancel", strconv.Itoa(j.first))
	j.gone()
	j.holds(archive{"nccl-otf2-JOB.0", "aabb"})
}

// A node dies with all its processes, and with the collectors. What it had written is there, and the next attempt, on
// another node, has a directory of its own.
func TestNodeDies(t *testing.T) {
	j := newJob(t)
	id := j.submit("[ -n \"$SLURM_RESTART_COUNT\" ] || export TRAIN_STOP=200\nsrun nccl-otf2 run -- ./train\n",
		"--requeue")
	testkit.Must(t, cluster.Kill(j.ctx, 1))
	t.Cleanup(func() { testkit.Must(t, cluster.Revive(context.WithoutCancel(j.ctx), 1)) })
	j.gone()

	name := "nccl-otf2-" + id + ".0"
	j.must("nccl-otf2", "unify", name)
	j.says(name, "4 processes on 2 hosts")
	hosts := j.hosts(name)
	testkit.Check(t, strings.Join(hosts, " ") == "node1 node1 node2 node2", "ranks on %v", hosts)
	j.kept(name)
	again := name + ".1"
	hosts = j.hosts(again)
	testkit.Check(t, strings.Join(hosts, " ") == "node1 node1 node3 node3", "the second attempt's ranks on %v", hosts)
	testkit.Equal(t, j.must("nccl-otf2", "check", again), all(t), "the second attempt")
}

// The tasks of one node end, the others go on: nobody waits for them, and the archive is made when they have ended.
func TestOneNodeEndsEarlier(t *testing.T) {
	j := newJob(t)
	testkit.Write(t, filepath.Join(j.dir, "script"), []byte(`#!/bin/bash
srun sh -c '
  export TRAIN_STOP=200
  [ "$SLURM_NODEID" = 1 ] || TRAIN_STOP=never
  nccl-otf2 run -- ./train
  echo "$?" >>"ended.$SLURM_NODEID"'
`))
	j.must("sbatch", "--nodes=2", "--ntasks-per-node=2", "--output=%A.%a.out", "script")
	name := "nccl-otf2-" + strconv.Itoa(j.first) + ".0"
	j.until("the end of the first node's tasks while the others stand", func() bool {
		return string(j.read("ended.0")) == "0\n0\n"
	})
	testkit.Equal(t, string(j.read("ended.1")), "", "the other node's tasks have ended, too")
	found, _ := filepath.Glob(filepath.Join(j.dir, name, "traces.otf2"))
	testkit.Check(t, found == nil, "there is an archive before the job's end")
	j.until("the end of the other node's tasks", func() bool {
		// It fails where Slurm has no process of the step on the first node any more, and the other node gets the
		// signal all the same.
		_ = j.command("scancel", "--signal=CONT", strconv.Itoa(j.first)+".0").Run()
		return strings.TrimSpace(j.must("squeue", "--noheader")) == ""
	})
	j.says(name, "4 processes on 2 hosts")
	testkit.Check(t, !strings.Contains(j.output(), "has not finished"), "%v", j.output())
}

// Slurm warns a job before its time is over, then ends it like one that is canceled. It counts in minutes.
func TestTimeLimit(t *testing.T) {
	if !*long {
		t.Skip("SKIPPED, NOT TESTED: time limits and --signal, which take two minutes: make slurm-test does")
	}
	j := newJob(t)
	id := j.submit("trap 'echo warned >>warned' USR1\n"+strings.TrimSpace(step)+" &\nwait\nwait\n", "--time=1",
		"--signal=B:USR1@30")
	j.gone()
	testkit.Contains(t, j.must("scontrol", "show", "job", id), "JobState=TIMEOUT")
	testkit.Equal(t, string(j.read("warned")), "warned\n", "the script was not warned")
	j.says("nccl-otf2-"+id+".0", "4 processes on 2 hosts")
	j.kept("nccl-otf2-" + id + ".0")
}
