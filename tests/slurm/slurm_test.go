// SPDX-License-Identifier: Apache-2.0

// Package slurm runs jobs on a real Slurm of several nodes on one machine (bed).
package slurm

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/need"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/tests/slurm/bed"
)

// long also tests what takes minutes, because Slurm counts in them.
var long = flag.Bool("long", false, "time limits, too, which are of minutes")

// limit is far more than what any of this takes: it is for what hangs.
const limit = 10 * time.Minute

var (
	cluster  *bed.Bed
	notThere error  // why there is none
	build    string // the folder
	train    string // what jobs run
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(func() int {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		if err := begin(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "slurm:", err)
			return 1
		}
		if cluster != nil {
			defer cluster.Close()
		}
		return m.Run()
	}())
}

// begin starts the Slurm that all tests share, if it can be had. Without root, and without its packages, each test says
// so.
func begin(ctx context.Context) (err error) {
	if build, err = filepath.Abs("../../build"); err != nil || os.Geteuid() != 0 {
		return err
	}
	if missing := bed.Missing(); len(missing) > 0 {
		notThere = fmt.Errorf("not installed: %s", strings.Join(missing, ", "))
		return nil
	}
	if cluster, err = bed.Start(ctx, 3); err != nil {
		return err
	}
	if train, err = cluster.Application(build, recording); err != nil {
		cluster.Close()
	}
	return err
}

// recording is what jobs play: four processes, of which the third is late.
const recording = "../../testdata/nccl-callbacks/09-straggler-4p"

// job is a folder in which a job is started.
type job struct {
	t     *testing.T
	ctx   context.Context
	dir   string
	first int // number of the job that is started next
}

func newJob(t *testing.T) *job {
	t.Helper()
	need.Root(t, "start a Slurm with nodes that are machines of their own")
	need.NoError(t, "Slurm (Debian: slurm-wlm munge libpmix-dev)", notThere)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	j := &job{t: t, ctx: ctx, dir: t.TempDir()}
	testkit.Must(t, os.Symlink(train, filepath.Join(j.dir, "train")))
	j.idle() // so that this one's nodes are the first ones
	config := j.must("scontrol", "show", "config")
	_, next, _ := strings.Cut(config, "NEXT_JOB_ID")
	testkit.Value(fmt.Sscanf(next, " = %d", &j.first))(t)
	return j
}

// command is one in the folder, with the tool in PATH.
func (j *job) command(name string, args ...string) *exec.Cmd {
	c := cluster.Command(j.ctx, name, args...)
	c.Dir = j.dir
	c.Env = append(c.Env, "PATH="+build+":"+os.Getenv("PATH"))
	if name == "nccl-otf2" {
		c.Path, c.Err = filepath.Join(build, name), nil
	}
	return c
}

// must runs a command, which may not fail, and gives what it printed.
func (j *job) must(name string, args ...string) string {
	j.t.Helper()
	var out, said bytes.Buffer
	c := j.command(name, args...)
	c.Stdout, c.Stderr = &out, &said
	if err := c.Run(); err != nil {
		j.t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out.Bytes(), said.Bytes())
	}
	return out.String()
}

// until waits for something to become so.
func (j *job) until(what string, so func() bool) {
	j.t.Helper()
	for !so() {
		select {
		case <-j.ctx.Done():
			queue, _ := cluster.Command(context.Background(), "squeue").CombinedOutput()
			j.t.Fatalf("this does not come: %s\n%s%s", what, queue, j.output())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// read gives the text of a file in the folder, nothing of one that is not there.
func (j *job) read(name string) []byte {
	text, _ := os.ReadFile(filepath.Join(j.dir, name))
	return text
}

// gone waits until no job is in the queue.
func (j *job) gone() {
	j.t.Helper()
	j.until("the end of all jobs", func() bool { return strings.TrimSpace(j.must("squeue", "--noheader")) == "" })
}

// idle waits until no job is in the queue, and all nodes are free. One that Slurm has drained, as processes of a step
// had not ended a minute after they were killed, is said, and given back.
func (j *job) idle() {
	j.t.Helper()
	j.gone()
	j.until("nodes that are all idle", func() bool {
		idle := true
		for line := range strings.Lines(j.must("sinfo", "--noheader", "--Node", "--format=%N %T %E")) {
			name, said, _ := strings.Cut(strings.TrimSpace(line), " ")
			state, reason, _ := strings.Cut(said, " ")
			if state == "drained" {
				j.t.Logf("%s was drained: %s", name, reason)
				j.must("scontrol", "update", "NodeName="+name, "State=RESUME")
			}
			idle = idle && state == "idle"
		}
		return idle
	})
}

// some is fewer events than a process makes in 200 calls, which are not all of its first thread's.
const some = 4

// stopped waits until processes of a step have stopped, and some of what they did is on the disk.
func (j *job) stopped(name string, processes int) {
	j.t.Helper()
	j.until("the events of processes that have stopped", func() bool {
		entries := testkit.Value(experiment.List(filepath.Join(j.dir, name)))(j.t)
		n := 0
		for _, e := range entries {
			var events uint64
			if process, err := experiment.ReadCheckpoint(e.Path); err == nil {
				for _, l := range process.Locations {
					events += l.Events
				}
			}
			if events >= some {
				n++
			}
		}
		return n == processes
	})
}

// events are how many an archive has of each of its processes, by rank.
func (j *job) events(name string) (count []uint64) {
	j.t.Helper()
	a := testkit.Value(otf2.Open(filepath.Join(j.dir, name, "traces.otf2"), nil))(j.t)
	of := map[otf2.LocationGroupRef]int{} // ranks, of processes and of their GPUs
	for _, g := range a.Defs.LocationGroups {
		if g.Type == otf2.LocationGroupTypeProcess {
			of[g.Self] = len(count)
			count = append(count, 0)
		}
	}
	for _, g := range a.Defs.LocationGroups {
		if rank, ok := of[g.Creator]; ok {
			of[g.Self] = rank
		}
	}
	for _, l := range a.Defs.Locations {
		count[of[l.Group]] += l.Events
	}
	return count
}

// kept holds that an archive has some of what each process of a step did that has stopped.
func (j *job) kept(name string) {
	j.t.Helper()
	for rank, events := range j.events(name) {
		if events < some {
			j.t.Errorf("%s: rank %d has %d events, want %d at least", name, rank, events, some)
		}
	}
}

// archive is what there has to be of a step.
type archive struct {
	name   string // of the directory
	placed string // which ranks are on one node: a letter for each, "aabb" for two on each of two
}

// placement tells which ranks are on one node. Which nodes these are is Slurm's choice: while a job's end is being
// completed the next one gets others.
func (j *job) placement(hosts []string) string {
	j.t.Helper()
	letters := map[string]byte{}
	var placed []byte
	for _, host := range hosts {
		if !slices.Contains(cluster.Nodes, host) {
			j.t.Errorf("%s is no node", host)
		}
		if _, seen := letters[host]; !seen {
			letters[host] = 'a' + byte(len(letters))
		}
		placed = append(placed, letters[host])
	}
	return string(placed)
}

// holds looks at all archives in the folder: these and no others, each with all processes in order of their ranks, and
// everything that they did. JOB in a name is the number of the first job, NEXT that of the one after it.
func (j *job) holds(want ...archive) {
	j.t.Helper()
	number := strings.NewReplacer("JOB", strconv.Itoa(j.first), "NEXT", strconv.Itoa(j.first+1))
	names := map[string]bool{}
	for _, w := range want {
		name := number.Replace(w.name)
		names[name] = true
		// Without run a collector makes it, after the job's end.
		j.until("archive "+name, func() bool {
			_, err := os.Stat(filepath.Join(j.dir, name, "traces.otf2"))
			return err == nil
		})
		hosts := j.hosts(name)
		testkit.Check(j.t, j.placement(hosts) == w.placed, "%s: ranks on %v, want %s", name, hosts, w.placed)
		testkit.Equal(j.t, j.must("nccl-otf2", "check", name), all(j.t), "%s", name)
	}
	entries := testkit.Value(os.ReadDir(j.dir))(j.t)
	for _, e := range entries {
		if e.IsDir() && !names[e.Name()] {
			j.t.Errorf("there is also %s, want %v", e.Name(), names)
		}
	}
}

// hosts are those of an archive's processes, which are named by their ranks.
func (j *job) hosts(name string) (hosts []string) {
	j.t.Helper()
	a := testkit.Value(otf2.Open(filepath.Join(j.dir, name, "traces.otf2"), nil))(j.t)
	nodes := map[otf2.SystemTreeNodeRef]string{}
	for _, n := range a.Defs.SystemTreeNodes {
		nodes[n.Self] = a.Defs.String(n.Name)
	}
	for _, g := range a.Defs.LocationGroups {
		if g.Type != otf2.LocationGroupTypeProcess {
			continue
		}
		name, want := a.Defs.String(g.Name), fmt.Sprintf("Rank %d", len(hosts))
		testkit.Check(j.t, name == want, "process %q, want %q", name, want)
		hosts = append(hosts, nodes[g.SystemTreeParent])
	}
	return hosts
}

// all is what check says of an archive with everything that the recording has.
var all = func() func(t *testing.T) string {
	var said string
	return func(t *testing.T) string {
		if said == "" {
			dir := t.TempDir()
			tool := filepath.Join(build, "nccl-otf2")
			if out, err := exec.Command(tool, "replay", recording, "--clock", "recorded", "--events", "gpu", "--dir",
				dir).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			out := testkit.Output(t, exec.Command(tool, "check", dir))
			said = string(out)
		}
		return said
	}
}()
