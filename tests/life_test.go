// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"bufio"
	"bytes"
	"cmp"
	"debug/elf"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/collector"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/need"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/scorep"
)

// lifeDir is where programs of life/ are compiled to.
var lifeDir = sync.OnceValues(func() (string, error) {
	dir, err := filepath.Abs(filepath.Join("..", "build", "life"))
	if err == nil {
		err = os.MkdirAll(dir, 0o777)
	}
	return dir, err
})

// lifeProgram compiles a program of life/.
func lifeProgram(name string, flags ...string) (string, error) {
	dir, err := lifeDir()
	if err != nil {
		return "", err
	}
	path, cc := filepath.Join(dir, name), cmp.Or(os.Getenv("CC"), "cc")
	args := append([]string{"-std=gnu11", "-O2", "-g", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-o", path,
		"life/" + name + ".c"}, flags...)
	if out, err := exec.Command(cc, args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", cc, err, out)
	}
	return path, nil
}

// lifeHost is the program of life/host.c, built once for all tests; with a C++ compiler it can throw exceptions.
var lifeHost = sync.OnceValues(func() (string, error) {
	dir, err := lifeDir()
	if err != nil {
		return "", err
	}
	flags, object := []string{"-pthread", "-rdynamic"}, filepath.Join(dir, "throw.o")
	if exec.Command("c++", "-O2", "-g", "-c", "-o", object, "life/throw.cc").Run() == nil {
		flags = append(flags, object, "-lstdc++")
	}
	return lifeProgram("host", append(flags, "-ldl")...)
})

// keeper is who takes the records out of the memory, and where that lies.
type keeper struct {
	name string
	env  []string
}

var (
	byCollector = keeper{"collector", nil}
	bySpool     = keeper{"spool", []string{"NCCL_OTF2_COLLECTOR=spool"}}
	inShm       = keeper{"shm", []string{"NCCL_OTF2_RING=shm"}}
)

// job is a host process under test.
type job struct {
	t         *testing.T
	dir       string // of the experiment
	cmd       *exec.Cmd
	stdin     io.WriteCloser
	stdout    *bufio.Reader
	stderr    bytes.Buffer
	pid       int // as the process itself sees it
	collector int
}

// begin starts a host that lives in the given way and waits until it has made its first calls.
func begin(t *testing.T, dir string, k keeper, count int, way string, further int, env ...string) *job {
	t.Helper()
	return beginUnder(t, nil, dir, k, count, way, further, env...)
}

// beginUnder starts it by another command, as unshare is one.
func beginUnder(t *testing.T, wrapper []string, dir string, k keeper, count int, way string, further int,
	env ...string) *job {
	t.Helper()
	j := startUnder(t, wrapper, dir, k, count, way, further, env...)
	j.ready()
	return j
}

// startUnder does not wait until its first calls have been made, as ready does.
func startUnder(t *testing.T, wrapper []string, dir string, k keeper, count int, way string, further int,
	env ...string) *job {
	t.Helper()
	host := testkit.Value(lifeHost())(t)
	j := &job{t: t, dir: dir}
	args := append(slices.Clone(wrapper), host, builtFile(t, "libnccl-profiler-otf2.so"), strconv.Itoa(count), way,
		strconv.Itoa(further))
	j.cmd = exec.Command(args[0], args[1:]...)
	j.cmd.Env = append(os.Environ(), "NCCL_OTF2_DIR="+dir, "NCCL_OTF2_EVENTS=all", "NCCL_OTF2_UNIFY=off",
		"NCCL_OTF2_START_LIMIT=60")
	j.cmd.Env = append(append(j.cmd.Env, k.env...), env...)
	j.cmd.Stderr = &j.stderr
	j.stdin = testkit.Value(j.cmd.StdinPipe())(t)
	stdout := testkit.Value(j.cmd.StdoutPipe())(t)
	j.stdout = bufio.NewReader(stdout)
	testkit.Must(t, j.cmd.Start())
	t.Cleanup(func() {
		if j.cmd.ProcessState == nil {
			_ = j.cmd.Process.Kill()
			_ = j.cmd.Wait()
		}
	})
	return j
}

func (j *job) ready() {
	j.t.Helper()
	line, err := j.stdout.ReadString('\n')
	if err != nil {
		_ = j.cmd.Wait()
		j.t.Fatalf("the host is not ready: %v\n%s", err, j.stderr.String())
	}
	_, err = fmt.Sscanf(line, "ready %d %d", &j.pid, &j.collector)
	testkit.Require(j.t, err == nil, "the host says %q: %v", line, err)
}

// settle waits until the spool files have stopped growing: what comes after a sudden end is not promised, what
// was there before is.
func (j *job) settle() {
	j.t.Helper()
	last, same := int64(-1), 0
	eventually(j.t, "the spool file has everything", func() bool {
		var size int64
		files, _ := filepath.Glob(filepath.Join(j.dir, "shards", "*.spool"))
		for _, f := range files {
			if info, err := os.Stat(f); err == nil {
				size += info.Size()
			}
		}
		if size != last || size == 0 {
			last, same = size, 0
		} else {
			same++
		}
		return same >= 20
	})
}

// goOn lets the host do what its way is.
func (j *job) goOn() {
	j.t.Helper()
	testkit.Value(io.WriteString(j.stdin, "go on\n"))(j.t)
}

// end waits for the end of the process: its exit status, or minus the signal.
func (j *job) end() int {
	j.t.Helper()
	tooLong := time.AfterFunc(10*time.Minute, func() { _ = j.cmd.Process.Kill() })
	_ = j.cmd.Wait()
	if !tooLong.Stop() {
		j.t.Fatalf("after ten minutes the host had not ended\n%s", j.stderr.String())
	}
	status := j.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return -int(status.Signal())
	}
	return status.ExitStatus()
}

// eventually waits for a condition that is bound to come true.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Minute); !is(); time.Sleep(10 * time.Millisecond) {
		testkit.Require(t, !time.Now().After(deadline), "after ten minutes it is still not so: %s", what)
	}
}

// standStill stops a process, and waits until all of its threads stand: they go on until the one that takes the signal,
// which may be waiting for the disk, comes to it.
func standStill(t *testing.T, pid int) {
	t.Helper()
	testkit.Must(t, syscall.Kill(pid, syscall.SIGSTOP))
	eventually(t, fmt.Sprintf("process %d stands still", pid), func() bool {
		tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		return len(tasks) > 0 && !slices.ContainsFunc(tasks, func(path string) bool {
			stat, err := os.ReadFile(path)
			_, after, _ := strings.Cut(string(stat), ") ")
			return err == nil && !strings.HasPrefix(after, "T")
		})
	})
}

// gone waits until a process that is not ours has ended, and has let go of its files: the last of its threads does
// that, when the first is already shown as ended.
func gone(t *testing.T, pid int) {
	t.Helper()
	eventually(t, fmt.Sprintf("process %d has ended", pid), func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return true
		}
		_, after, _ := strings.Cut(string(stat), ") ")
		if !strings.HasPrefix(after, "Z") && !strings.HasPrefix(after, "X") {
			return false
		}
		tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
		return err != nil || len(tasks) <= 1
	})
}

// unlocked waits until nobody writes the shards any more, where their writers cannot be seen.
func unlocked(t *testing.T, dir string) {
	t.Helper()
	eventually(t, "the shards' writers have ended", func() bool {
		entries, err := experiment.List(dir)
		return err == nil && !slices.ContainsFunc(
			entries, func(e experiment.Entry) bool {
				return e.State == experiment.Starting || e.State == experiment.Writing
			})
	})
}

// called reads the archive by the reference tools and returns how many elements each call had that the processes
// made, in order, by location group: 1, 2, 3 … if nothing is missing or twice.
func called(t *testing.T, anchor string) map[string][]int64 {
	t.Helper()
	otf2Print(t, anchor)
	a := readArchive(t, anchor)
	calls := make(map[string][]int64)
	for loc, events := range a.events {
		l := a.locations[loc]
		g := a.groups[l.Group]
		if !strings.Contains(l.Type, "CPU_THREAD") || g.Creator != nil {
			continue
		}
		for _, e := range events {
			if e.Event == "Enter" && a.regions[e.Region] == "ncclAllReduce" && e.number("COUNT") >= 0 {
				process := fmt.Sprintf("%s, location group %d", g.Name, g.ID) // containers' names can be equal
				calls[process] = append(calls[process], e.number("COUNT"))
			}
		}
	}
	for _, c := range calls {
		slices.Sort(c)
	}
	return calls
}

// oneToN checks that an archive of one process has calls 1 … n, each once.
func oneToN(t *testing.T, dir string, n int) {
	t.Helper()
	calls := called(t, unified(t, dir))
	testkit.Require(t, len(calls) == 1, "%d processes have made calls, want 1: %v", len(calls), calls)
	for process, c := range calls {
		holds(t, process, c, n)
	}
}

func holds(t *testing.T, process string, calls []int64, n int) {
	t.Helper()
	testkit.Equal(t, len(calls), n, "%s: calls are in the archive", process)
	for i, c := range calls {
		if c != int64(i)+1 {
			t.Errorf("%s: call %d of the archive is number %d", process, i+1, c)
			break
		}
	}
}

func shards(t *testing.T, dir string) []*description.Process {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(dir, "shards", "*", "shard.json"))
	var out []*description.Process
	for _, f := range files {
		p := testkit.Value(experiment.Read(filepath.Dir(f)))(t)
		out = append(out, p)
	}
	return out
}

// However a process ends, what it recorded is in the archive, once.
func TestEndsOfTheHost(t *testing.T) {
	const count, further = 500, 100
	ends := []struct {
		way      string
		status   int  // exit status, or minus the signal
		calls    int  // in the archive
		orderly  bool // the exit handlers run, so the spool has everything without being given time
		throwing bool
	}{
		{way: "return", calls: count, orderly: true},
		{way: "finalize", calls: count, orderly: true},
		{way: "exit", status: 3, calls: count, orderly: true},
		{way: "quick_exit", status: 4, calls: count},
		{way: "_exit", status: 5, calls: count},
		{way: "abort", status: -int(syscall.SIGABRT), calls: count},
		{way: "throw", status: -int(syscall.SIGABRT), calls: count, throwing: true},
		{way: "fault", status: -int(syscall.SIGSEGV), calls: count},
		{way: "terminated", status: -int(syscall.SIGTERM), calls: count},
		{way: "killed", status: -int(syscall.SIGKILL), calls: count},
		{way: "exec", calls: count},
		{way: "thread-exits", status: 6, calls: count + further, orderly: true},
		{way: "main-first", calls: count + further, orderly: true},
		{way: "go-on", calls: count + further, orderly: true},
		{way: "after-finalize", calls: count, orderly: true},
		{way: "lives", calls: count + 3*further, orderly: true},
		{way: "children", calls: count + 5*further, orderly: true},
	}
	for _, k := range []keeper{byCollector, bySpool, inShm} {
		for _, e := range ends {
			t.Run(k.name+"/"+e.way, func(t *testing.T) {
				if e.throwing {
					need.Program(t, "c++", "for a C++ exception that nobody catches")
				}
				t.Parallel()
				dir := filepath.Join(t.TempDir(), "experiment")
				j := begin(t, dir, k, count, e.way, further)
				if k.name == bySpool.name && !e.orderly {
					j.settle()
				}
				j.goOn()
				testkit.Equal(t, j.end(), e.status, "status of the host, which said\n%s\n", j.stderr.String())
				said, want := atEase(j.stderr.String()), ""
				if e.way == "children" { // 20 collectives of 4 events in each of five
					want = "NCCL_OTF2: not recorded: 400 events: in forked processes\n"
				}
				testkit.Check(t, strings.Contains(said, "NCCL_OTF2") == (want != "") && strings.Contains(said, want),
					"the plugin said %q, want %q", said, want)
				if k.name != bySpool.name {
					gone(t, j.collector)
				}
				oneToN(t, dir, e.calls)
				if e.way == "after-finalize" {
					for _, p := range shards(t, dir) {
						testkit.Equal(t, p.Counts.Starts["ProxyCtrl"], 1,
							"ProxyCtrl events after the end of their communicator")
					}
				}
				left := leftInShm(t, j.pid)
				testkit.Check(t, len(left) == 0, "%v is left behind", left)
			})
		}
	}
}

// atEase leaves out what is said of a machine that is too busy for its collectors.
func atEase(said string) string {
	return strings.Join(slices.DeleteFunc(strings.SplitAfter(said, "\n"), func(line string) bool {
		return strings.Contains(line, "did not answer within")
	}), "")
}

// A collector that is stopped, and one that gets next to no processor, cost the job one wait, whose length is bounded,
// and the archive nothing. How long the job waited for each answer does not say the machine's clock, but the plugin.
func TestCollectorIsHeldUp(t *testing.T) {
	const count, further = 500, 100
	longest := 4 * time.Second // what the plugin waits is a quarter of it; it has to get a processor itself
	begins := func(t *testing.T, k keeper) (*job, string) {
		dir := filepath.Join(t.TempDir(), "experiment")
		return begin(t, dir, k, count, "lives", further), dir
	}
	ends := func(t *testing.T, j *job, dir string) *description.Process {
		t.Helper()
		gone(t, j.collector)
		oneToN(t, dir, count+3*further)
		left := leftInShm(t, j.pid)
		testkit.Check(t, len(left) == 0, "%v is left behind", left)
		return shards(t, dir)[0]
	}
	for _, k := range []keeper{byCollector, inShm} {
		t.Run("stopped/"+k.name, func(t *testing.T) {
			t.Parallel()
			j, dir := begins(t, k)
			standStill(t, j.collector)
			t.Cleanup(func() { _ = syscall.Kill(j.collector, syscall.SIGCONT) })
			j.goOn()
			testkit.Equal(t, j.end(), 0, "status of the host, which said\n%s\n", j.stderr.String())
			said := j.stderr.String()
			testkit.Check(t, strings.Count(said, "\n") == 1 && strings.Contains(said, "did not answer within") &&
				strings.Contains(said, "it is stopped") &&
				strings.Contains(said, fmt.Sprintf("kill -CONT %d", j.collector)), "the plugin said %q", said)
			testkit.Must(t, syscall.Kill(j.collector, syscall.SIGCONT))
			p := ends(t, j, dir)
			if n := p.Counts.Oddities["UNANSWERED"]; n != 5 { // the ends of four lives, and that of the process
				t.Errorf("%d requests were not answered in time, want 5", n)
			}
			testkit.Check(t, p.Waited <= longest, "the job has waited for %v", p.Waited)
		})
		t.Run("starved/"+k.name, func(t *testing.T) {
			t.Parallel()
			j, dir := begins(t, k)
			niceness := func(value int) (err error) {
				threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", j.collector))
				for _, thread := range threads { // it is each thread's own; those that begin later inherit it
					tid, _ := strconv.Atoi(thread.Name())
					if e := syscall.Setpriority(syscall.PRIO_PROCESS, tid, value); e != nil && e != syscall.ESRCH {
						err = e
					}
				}
				return err
			}
			was, err := syscall.Getpriority(syscall.PRIO_PROCESS, j.collector) // 20 less its niceness
			testkit.Must(t, err)
			testkit.Must(t, niceness(19))
			busy := burnCPU(t, 8)
			j.goOn()
			testkit.Equal(t, j.end(), 0, "status of the host, which said\n%s\n", j.stderr.String())
			// The job is over: nobody waits for this collector any more, but this test.
			busy.pause(t)
			_ = niceness(20 - was) // only root can
			p := ends(t, j, dir)
			if p.Waited > 5*longest { // five requests, each answered or not
				t.Errorf("the job has waited for %v, %d of its requests were not answered in time", p.Waited,
					p.Counts.Oddities["UNANSWERED"])
			}
		})
	}
}

// leftInShm are the files of a process in /dev/shm.
func leftInShm(t *testing.T, pid int) []string {
	t.Helper()
	return testkit.Value(filepath.Glob(fmt.Sprintf("/dev/shm/*nccl-otf2*-%d-*", pid)))(t)
}

// A collector that is killed is replaced, and what it had not saved is still in the memory.
func TestCollectorIsKilled(t *testing.T) {
	const count, further = 500, 300
	for _, k := range []keeper{byCollector, inShm} {
		for _, way := range []string{"go-on", "return", "finalize"} {
			t.Run(k.name+"/"+way, func(t *testing.T) {
				t.Parallel()
				dir := filepath.Join(t.TempDir(), "experiment")
				j := begin(t, dir, k, count, way, further)
				testkit.Must(t, syscall.Kill(j.collector, syscall.SIGKILL))
				gone(t, j.collector)
				j.goOn()
				testkit.Equal(t, j.end(), 0, "status of the host, which said\n%s\n", j.stderr.String())
				// At the exit NCCL's logger may be gone.
				testkit.Equal(t, strings.Contains(j.stderr.String(), "the collector ended; a new one is "+
					"started"), (way != "return"), "the plugin said %q", j.stderr.String())
				want := count
				if way == "go-on" {
					want += further
				}
				eventually(t, "the new collector has finished", func() bool {
					done, _ := filepath.Glob(filepath.Join(dir, "shards", "*", "done"))
					return len(done) > 0
				})
				oneToN(t, dir, want)
			})
		}
	}
}

// killBoth kills a job and its collector, in an order, and waits until they are gone.
func killBoth(t *testing.T, j *job, order string) {
	t.Helper()
	victims := []int{j.collector, j.cmd.Process.Pid}
	if order == "job first" {
		slices.Reverse(victims)
	}
	for _, pid := range victims {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && order == "collector first" {
			t.Fatal(err) // after the job's end the collector may have ended in order
		}
	}
	j.end()
	gone(t, j.collector)
}

// Job and collector killed: what is on disk is an archive. With the memory in /dev/shm nothing is missing.
func TestBothAreKilled(t *testing.T) {
	const count = 5000
	for _, order := range []string{"collector first", "job first"} {
		for _, k := range []keeper{byCollector, inShm} {
			t.Run(k.name+"/"+order, func(t *testing.T) {
				t.Parallel()
				dir := filepath.Join(t.TempDir(), "experiment")
				j := begin(t, dir, k, count, "killed", 0)
				killBoth(t, j, order)
				if k.name == inShm.name {
					oneToN(t, dir, count)
					left := leftInShm(t, j.pid)
					testkit.Check(t, len(left) == 0, "%v is left behind", left)
					return
				}
				if len(shards(t, dir)) == 0 {
					return // killed before its first second was over: there is nothing to read
				}
				for process, c := range called(t, unified(t, dir)) {
					holds(t, process, c, len(c)) // from the first on, without a gap
				}
			})
		}
	}
}

// allProcessors is how a host's job says that it has as many ranks here as there are processors: until there is better
// knowledge these count as scarce, so that a collector with the default settings puts off what it can.
func allProcessors() string { return fmt.Sprintf("LIFE_RANKS=%d", runtime.NumCPU()) }

// putsOff waits until a collector of an experiment directory puts off what it can.
func putsOff(t *testing.T, dir string) {
	t.Helper()
	eventually(t, "a collector puts off records", func() bool {
		files, _ := filepath.Glob(filepath.Join(dir, experiment.Folder, "*", experiment.BacklogFile))
		return len(files) > 0
	})
}

// Launchers and containers kill all that is left when the job's last process ends. What was recorded up to its last
// finalize is on disk, also where the collector has put off the rest of its work, as it does by itself where processors
// are scarce.
func TestAllAreKilledBehindTheLastFinalize(t *testing.T) {
	const count = 3000
	for _, order := range []string{"collector first", "job first"} {
		t.Run(order, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "experiment")
			j := begin(t, dir, byCollector, count, "finalize-and-wait", 0, allProcessors())
			putsOff(t, dir)
			j.goOn()
			j.ready() // behind the finalize
			killBoth(t, j, order)
			oneToN(t, dir, count)
		})
	}
}

// Whoever makes the archive right after the job's end has all of it: what collectors have put off is waited for.
func TestArchivesRightBehindTheEnd(t *testing.T) {
	const count = 20000
	for name, unify := range map[string]func(t *testing.T, dir string) string{
		"the tool": unified,
		"package scorep": func(t *testing.T, dir string) string {
			res := testkit.Value(scorep.Unify(dir, nil))(t)
			testkit.Check(t, res.Runs[0].Running <= 0, "%d processes are still recorded", res.Runs[0].Running)
			return res.Runs[0].Archive
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "experiment")
			j := begin(t, dir, byCollector, count, "finalize", 0, allProcessors())
			putsOff(t, dir)
			j.goOn()
			testkit.Equal(t, j.end(), 0, "status of the host, which said\n%s\n", j.stderr.String())
			for process, c := range called(t, unify(t, dir)) {
				holds(t, process, c, count)
			}
		})
	}
}

// What a killed process left in /dev/shm is found also where no shard tells of it, as long as nobody uses it.
func TestOrphansInShm(t *testing.T) {
	const count = 50 // too few for a chunk of memory to come back to the plugin
	dir := filepath.Join(t.TempDir(), "experiment")
	j := begin(t, dir, inShm, count, "killed", 0)
	of := func(pid int) (found []collector.Orphan) {
		for _, o := range collector.Orphans(collector.ShmFolder) {
			if o.PID == pid {
				found = append(found, o)
			}
		}
		return found
	}
	if found := of(j.pid); found != nil {
		t.Errorf("of a living process: %+v", found)
	}
	testkit.Must(t, syscall.Kill(j.collector, syscall.SIGKILL))
	gone(t, j.collector)
	if found := of(j.pid); found != nil {
		t.Errorf("of a process without a collector: %+v", found)
	}
	j.goOn()
	j.end()
	found := of(j.pid)
	testkit.Require(t, len(found) == 1 && found[0].Bytes >= 256<<20 && found[0].Experiment == dir &&
		found[0].Path == leftInShm(t, j.pid)[0], "%+v", found)
	was, _ := filepath.Glob(filepath.Join(dir, "shards", "*-*"))
	testkit.Require(t, len(was) == 1, "shards %v", was)
	testkit.Must(t, os.RemoveAll(was[0]))
	n, err := collector.Salvage(t.TempDir())
	testkit.Check(t, n == 0 && err == nil, "into another directory: %d, %v", n, err)
	oneToN(t, dir, count)
	left := leftInShm(t, j.pid)
	testkit.Check(t, len(left) == 0, "%v is left behind", left)
}

// Containers have equal process ids and, where nobody cares, equal names; they share a folder. Two of them are
// two processes of one job.
func TestContainersWithEqualNames(t *testing.T) {
	const count = 300
	name := testkit.Value(os.Hostname())(t)
	wrapper := []string{"unshare", "--pid", "--fork", "--mount", "--mount-proc", "--uts", "--kill-child"}
	if os.Geteuid() != 0 {
		wrapper = append(wrapper, "--user", "--map-root-user")
	}
	if out, err := exec.Command(wrapper[0], append(slices.Clone(wrapper[1:]), "true")...).CombinedOutput(); err != nil {
		testkit.Require(t, os.Geteuid() != 0 || os.Getenv("CI") != "true",
			"root cannot make namespaces: %v\n%s", err, out)
		t.Skipf("NOT TESTED IN CONTAINERS: no namespaces can be made here: %v\n%s", err, out)
	}
	for _, k := range []keeper{byCollector, bySpool, inShm} {
		for _, way := range []string{"finalize", "return", "killed"} {
			t.Run(k.name+"/"+way, func(t *testing.T) {
				t.Parallel()
				dir := filepath.Join(t.TempDir(), "experiment")
				var jobs []*job
				meet := t.TempDir()
				for rank := range 2 {
					jobs = append(jobs, startUnder(t, wrapper, dir, k, count, way, 0, "LIFE_HOSTNAME="+name,
						"LIFE_RANKS=2",
						fmt.Sprintf("LIFE_RANK=%d", rank), "LIFE_MEET="+meet))
				}
				for _, j := range jobs {
					j.ready()
				}
				for _, j := range jobs {
					testkit.Require(t, j.pid == jobs[0].pid, "process ids %d and %d are not equal", jobs[0].pid, j.pid)
				}
				if way == "killed" && k.name != inShm.name {
					// The first process of a container takes all others with it, also the collector.
					waitFlushed(t, dir, k, 2)
				}
				for _, j := range jobs {
					if way == "killed" { // a container's first process cannot do it itself
						_ = j.cmd.Process.Kill()
					} else {
						j.goOn()
					}
				}
				for _, j := range jobs {
					if got, killed := j.end(), way == "killed"; (got == 0) == killed {
						t.Errorf("the host ended with %d\n%s", got, j.stderr.String())
					}
				}
				unlocked(t, dir)
				anchor := unified(t, dir)
				// who is it that shards tell of: where a collector was killed, a further one tells of what it had
				described := make(map[int]bool)
				for _, p := range shards(t, dir) {
					described[int(p.Tag)] = true
				}
				testkit.Check(t, len(described) == 2, "the shards are of %d processes, want 2", len(described))
				a := readArchive(t, anchor)
				processes, members := 0, 0
				for _, g := range a.groups {
					if g.Creator == nil {
						processes++
					}
				}
				for _, c := range a.comms {
					if !isNetwork(c) {
						members = max(members, len(c.Members))
					}
				}
				testkit.Check(t, processes == 2 && members == 2,
					"the archive has %d processes and a communicator of %d, want 2 and 2", processes, members)
				calls := called(t, anchor)
				testkit.Check(t, len(calls) == 2, "%d processes have made calls, want 2", len(calls))
				for process, c := range calls {
					holds(t, process, c, count)
				}
			})
		}
	}
}

// waitFlushed waits until what the processes have recorded so far is on disk without being asked for.
func waitFlushed(t *testing.T, dir string, k keeper, processes int) {
	t.Helper()
	if k.name == bySpool.name {
		(&job{t: t, dir: dir}).settle()
		return
	}
	eventually(t, "everything is on disk", func() bool {
		n := 0
		// The checkpoint is written when the events are.
		files, _ := filepath.Glob(filepath.Join(dir, "shards", "*", "checkpoint.json"))
		for _, f := range files {
			var p description.Process
			if text, err := os.ReadFile(f); err == nil && json.Unmarshal(text, &p) == nil &&
				p.Counts.Stops["GroupApi"] == 300 {
				n++
			}
		}
		return n == processes
	})
}

// A wait until an instant of the real-time clock takes as long as the clock is put back meanwhile.
func TestNoWaitGoesByAClockThatCanBeSet(t *testing.T) {
	for _, library := range []string{"libnccl-profiler-otf2.so", "libscorep_substrate_nccl_otf2.so"} {
		file := testkit.Value(elf.Open(builtFile(t, library)))(t)
		symbols, err := file.ImportedSymbols()
		file.Close()
		testkit.Require(t, err == nil && len(symbols) != 0, "%s imports %d symbols: %v", library, len(symbols), err)
		for _, s := range symbols {
			if s.Name == "sigtimedwait" { // takes a time span
				continue
			}
			testkit.Check(t, !strings.Contains(s.Name, "timedwait") && !strings.Contains(s.Name, "timedlock") &&
				!strings.Contains(s.Name, "timedrdlock") && !strings.Contains(s.Name, "timedwrlock") &&
				!strings.Contains(s.Name, "timedjoin"), "%s waits by %s", library, s.Name)
		}
	}
}
