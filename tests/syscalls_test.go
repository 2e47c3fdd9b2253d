// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/check"
	"github.com/nccl-otf2/nccl-otf2/internal/collector"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/tests/collectors"
)

// failure is a system call of the collector that fails from some time on, or for a while.
type failure struct {
	call  string // its name, or a kind of them, as faults/inject has it
	errno syscall.Errno
	skip  int // calls that succeed before
	times int // so many calls fail; 0: all further ones
}

// rule is how faults/inject takes it.
func (f failure) rule() string {
	return fmt.Sprintf("%s %d %d %d;", f.call, f.skip+1, f.times, int(f.errno))
}

func writing(errno syscall.Errno, skip int) []failure {
	return []failure{{call: "write", errno: errno, skip: skip}, {call: "pwrite64", errno: errno, skip: skip},
		{call: "pwritev", errno: errno, skip: skip}}
}

func creating(errno syscall.Errno, skip int) []failure {
	return []failure{{call: "creates", errno: errno, skip: skip}}
}

func renaming(errno syscall.Errno, skip int) []failure {
	return []failure{{call: "renameat", errno: errno, skip: skip}, {call: "renameat2", errno: errno, skip: skip}}
}

// effect is what a failure is to lead to, in each process of the job.
type effect int

const (
	harmless  effect = iota // everything is recorded, nothing said
	refused                 // nothing is recorded, and nothing left in the directory
	cut                     // what was recorded before is an archive that is not complete
	spooled                 // the collector cannot even run; the plugin itself writes everything
	whichever               // one of these, depending on the call that fails
)

// systemFault is a case of failing system calls.
type systemFault struct {
	name     string
	failures []failure
	env      []string
	effect   effect
	says     string // part of the plugin's only line
}

// sweep is how many numbers of calls are tried, of each kind, as the first that fails.
const sweep = 10

// systemFaults are the cases. The loader opens so many files before the collector runs.
func systemFaults(opened int) []systemFault {
	const cannot, ends, instead = "nothing can be recorded in", "cannot be written: what is recorded waits",
		"raw files are written instead"
	cases := []systemFault{
		{name: "no room", failures: writing(unix.ENOSPC, 0), effect: refused, says: cannot},
		{name: "no quota", failures: writing(unix.EDQUOT, 0), effect: refused, says: cannot},
		{name: "broken disk", failures: writing(unix.EIO, 0), effect: refused, says: cannot},
		{name: "no room later", failures: writing(unix.ENOSPC, 2), effect: cut, says: ends},
		{name: "no quota later", failures: writing(unix.EDQUOT, 2), effect: cut, says: ends},
		{name: "disk breaks", failures: writing(unix.EIO, 2), effect: cut, says: ends},
		{name: "no files", failures: creating(unix.EACCES, 0), effect: refused, says: cannot},
		{name: "no descriptors", failures: creating(unix.EMFILE, 0), effect: refused, says: cannot},
		{name: "no files later", failures: creating(unix.EACCES, 3), effect: cut, says: ends},
		{name: "no descriptors later", failures: creating(unix.EMFILE, 3), effect: cut, says: ends},
		{name: "no renaming", failures: renaming(unix.EIO, 0), effect: refused, says: cannot},
		{name: "no renaming later", failures: renaming(unix.EIO, 2), effect: cut, says: ends},
		{name: "no folders", failures: []failure{{call: "mkdirat", errno: unix.EROFS}}, effect: refused, says: cannot},
		{name: "no folders later", failures: []failure{{call: "mkdirat", errno: unix.EROFS, skip: 1}}, effect: refused,
			says: cannot},
		{name: "no locks", failures: []failure{{call: "flock", errno: unix.ENOLCK}}},
		{name: "no pidfd", failures: []failure{{call: "pidfd_open", errno: unix.ENOSYS}}},
		{name: "no size of the file system", failures: []failure{{call: "statfs", errno: unix.EIO}}},
		{
			name: "no binding", failures: []failure{{call: "sched_setaffinity", errno: unix.EPERM}},
			env: []string{"NCCL_OTF2_CPUS=0"}, effect: refused, says: "NCCL_OTF2_CPUS",
		},
		{name: "no room for a recording", failures: writing(unix.ENOSPC, 0), env: []string{"NCCL_OTF2_MODE=record"},
			effect: refused, says: cannot},
		{name: "no files for a recording", failures: creating(unix.EACCES, 0), env: []string{"NCCL_OTF2_MODE=record"},
			effect: refused, says: cannot},
		{name: "no descriptors at all", failures: []failure{{call: "openat", errno: unix.EMFILE, skip: opened}},
			effect: refused, says: cannot},
		{
			name:     "no threads",
			failures: []failure{{call: "clone", errno: unix.EAGAIN}, {call: "clone3", errno: unix.EAGAIN}},
			effect:   spooled, says: instead,
		},
		{name: "no event queues", failures: []failure{{call: "epoll_create1", errno: unix.EMFILE}}, effect: spooled,
			says: instead},
	}
	// Whichever call it is that fails first, also one of the archive's making.
	for skip := range sweep {
		for _, f := range []struct {
			name     string
			failures []failure
		}{{"write", writing(unix.ENOSPC, 1+3*skip)}, {"create", creating(unix.ENOSPC, 1+4*skip)},
			{"rename", renaming(unix.EIO, 1+2*skip)}} {
			cases = append(cases, systemFault{
				name: fmt.Sprintf("%s %d", f.name, f.failures[0].skip), failures: f.failures,
				env: []string{"NCCL_OTF2_UNIFY=auto"}, effect: whichever,
			})
		}
	}
	return cases
}

// openedByLoader is how many files are opened for the tool's libraries: each, and the loader's list of them. Without
// cgo it has none.
func openedByLoader(t *testing.T) int {
	file := testkit.Value(elf.Open(builtFile(t, "nccl-otf2")))(t)
	defer file.Close()
	libraries := testkit.Value(file.ImportedLibraries())(t)
	if len(libraries) == 0 {
		return 0
	}
	return 1 + len(libraries)
}

// Whatever system call of the collectors fails, and from when on: the job makes all its calls and is told of
// no error, the plugin says one line per process, and what is in the directory is an archive, or nothing.
func TestSystemCallsFail(t *testing.T) {
	rec := recording(t, "01-allreduce-2p")
	control := runFailing(t, rec, systemFault{})
	var calls []map[string]int
	for i := range control.result.Processes {
		calls = append(calls, callsOf(control.result.Processes[i].Report))
	}
	var reached atomic.Int64 // cases of the sweep in which so many calls were made
	t.Run("cases", func(t *testing.T) {
		for _, tc := range systemFaults(openedByLoader(t)) {
			t.Run(tc.name, func(t *testing.T) {
				t.Parallel()
				o := runFailing(t, rec, tc)
				if o.failed == 0 && tc.effect != whichever {
					t.Error("no call has failed")
				} else if tc.effect == whichever && o.failed > 0 {
					reached.Add(1)
				}
				lines := 0
				for i := range o.result.Processes {
					p := &o.result.Processes[i]
					testkit.Check(t, p.Report.Errors <= 0,
						"process %d: %d callbacks answered an error", p.Rank, p.Report.Errors)
					testkit.Equal(t, cmp.Diff(calls[i], callsOf(p.Report)), "",
						"process %d: calls without (−) and with the fault (+):\n", p.Rank)
					// How much is missing is told at the end, by those that still call after recording has stopped.
					counts := strings.Count(p.Stderr, "NCCL_OTF2: not recorded: ")
					testkit.Check(t, counts <= 1 && (counts != 1 || tc.effect == cut || tc.effect == whichever),
						"process %d: the plugin says %d times that events are missing: %s", p.Rank, counts, p.Stderr)
					said := strings.Count(p.Stderr, "NCCL_OTF2: ") - counts
					want := map[bool]int{true: 1}[tc.effect != harmless]
					testkit.Check(t, said <= 1 && (said == want || tc.effect == whichever),
						"process %d: the plugin says %d lines, want %d: %s", p.Rank, said, want, p.Stderr)
					testkit.Contains(t, p.Stderr, tc.says)
					lines += said
				}
				o.inspect(t, rec, tc.effect, lines)
			})
		}
	})
	n := reached.Load()
	testkit.Check(t, n >= 3*sweep/2, "only %d of %d cases of the sweep made a call fail", n, 3*sweep)
}

// failed is what came of a case.
type failed struct {
	dir    string
	result *replay.Result
	failed int // calls; some, if they are many
}

func runFailing(t *testing.T, rec *replay.Recording, tc systemFault) *failed {
	t.Helper()
	o := &failed{dir: filepath.Join(t.TempDir(), "experiment")}
	report := filepath.Join(t.TempDir(), "failed")
	rules := ""
	for _, f := range tc.failures {
		rules += f.rule()
	}
	o.result = run(t, rec, usual(t, o.dir, clock(replay.ClockLive), env(
		"NCCL_OTF2_MEMORY=16M", "NCCL_OTF2_COLLECTOR="+builtFile(t, "inject"),
		"INJECT_PROGRAM="+builtFile(t, "nccl-otf2"), "INJECT_RULES="+rules, "INJECT_LOG="+report,
	), env(tc.env...)))
	collectors.Await(t, o.dir)
	text, err := os.ReadFile(report)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // nothing has failed
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "call ") {
			o.failed++
		} else if strings.HasPrefix(line, "cannot") {
			t.Fatalf("inject: %s", line)
		}
	}
	return o
}

// callsOf counts what a host called, or would have called with another mask, by event type.
func callsOf(r *replay.Report) map[string]int {
	sum := make(map[string]int)
	for _, part := range []map[string]int{r.Delivered.Starts, r.Delivered.Declined, r.Suppressed.Starts} {
		for typ, n := range part {
			sum[typ] += n
		}
	}
	return sum
}

// inspect looks at what is left.
func (o *failed) inspect(t *testing.T, rec *replay.Recording, e effect, lines int) {
	t.Helper()
	// What was put off is on the disk, so nobody has to be told that its events are not: `unify` makes them, and begins
	// with this.
	testkit.Value(collector.Salvage(o.dir))(t)
	entries := testkit.Value(experiment.List(o.dir))(t)
	if e == refused {
		testkit.Check(t, len(entries) == 0, "left behind: %v", entries)
		return
	}
	finished := 0
	delivered, recorded := make(map[int]map[string]int), make(map[int]map[string]int)
	for i := range o.result.Processes {
		p := &o.result.Processes[i]
		delivered[p.PID] = p.Report.Delivered.Starts
	}
	for _, entry := range entries {
		p := entry.Process
		if p == nil {
			continue // which is named in the archive's problems
		}
		if p.Finished {
			finished++
		}
		if recorded[p.PID] == nil {
			recorded[p.PID] = make(map[string]int)
		}
		for typ, n := range p.Counts.Starts {
			recorded[p.PID][typ] += int(n)
		}
	}
	for pid, starts := range recorded {
		for typ, n := range starts {
			testkit.Check(t, n <= delivered[pid][typ],
				"process %d: %d events %s, but %d were delivered", pid, n, typ, delivered[pid][typ])
		}
	}
	switch {
	case e == harmless:
		compareCounts(t, o.dir, o.result)
		testkit.Equal(t, finished, len(rec.Processes), "processes have finished")
	case e == cut && finished > 0:
		t.Errorf("%d processes are said to be complete", finished)
	case e == whichever && finished < len(rec.Processes) && lines == 0 &&
		!maps.EqualFunc(recorded, delivered, maps.Equal):
		t.Errorf("nothing is said of what is missing: recorded %v, delivered %v", recorded, delivered)
	}
	u, err := unifyAll(o.dir)
	if errors.Is(err, fs.ErrNotExist) && e == whichever && lines == len(rec.Processes) {
		return // nothing has been recorded, and that was said
	}
	testkit.Must(t, err)
	testkit.Check(t, len(u.Problems) == 0 || e == whichever, "problems: %v", u.Problems)
	if e == spooled {
		compareCounts(t, o.dir, o.result)
	}
	checkSound(t, filepath.Join(o.dir, "traces.otf2"), check.Note)
}

// A system call that fails once, or a few times, and then works again: nothing is lost, and nothing is said in the
// job's log.
func TestSystemCallsFailForAWhile(t *testing.T) {
	rec := recording(t, "01-allreduce-2p")
	for _, mode := range []string{"trace", "record", "profile"} {
		var reached, reported atomic.Int64
		t.Run(mode, func(t *testing.T) {
			for _, tc := range passingFaults() {
				t.Run(tc.name, func(t *testing.T) {
					t.Parallel()
					if mode != "trace" {
						tc.env = append(tc.env, "NCCL_OTF2_MODE="+mode)
					}
					o := runFailing(t, rec, tc)
					if o.failed > 0 {
						reached.Add(1)
					}
					for i := range o.result.Processes {
						p := &o.result.Processes[i]
						testkit.Check(t, !strings.Contains(p.Stderr, "NCCL_OTF2: "), "process %d: %s", p.Rank, p.Stderr)
						testkit.Check(t, p.Report.Errors == 0,
							"process %d: %d callbacks answered an error", p.Rank, p.Report.Errors)
					}
					compareCounts(t, o.dir, o.result)
					entries := testkit.Value(experiment.List(o.dir))(t)
					errors := uint64(0)
					for _, e := range entries {
						if e.Process == nil || !e.Process.Finished || e.State != experiment.Done ||
							len(e.Process.Counts.Lost) > 0 {
							t.Errorf("%s: state %v, %+v", e.Path, e.State, e.Err)
							continue
						}
						errors += e.Process.Counts.Oddities["DISK_ERRORS"]
					}
					if errors > 0 {
						reported.Add(1)
					}
					if mode != "trace" {
						return
					}
					u := testkit.Value(unifyAll(o.dir))(t)
					testkit.Check(t, len(u.Problems) == 0, "problems: %v", u.Problems)
					checkSound(t, filepath.Join(o.dir, "traces.otf2"), check.Note)
				})
			}
		})
		// What fails after a shard has been described for the last time is not told, nor what the language tries again
		// by itself (EINTR).
		if n, all := reached.Load(), len(passingFaults()); int(n) < all/3 || reported.Load() < n/2 {
			t.Errorf("%s: only %d of %d cases made a call fail, %d of them are told of", mode, n, all, reported.Load())
		}
	}
}

// passingFaults are errors that pass, of each kind of call and at each number of it.
func passingFaults() (cases []systemFault) {
	errnos := []syscall.Errno{unix.EIO, unix.ENOSPC, unix.EDQUOT, unix.ESTALE, unix.EINTR, unix.EROFS, unix.EMFILE,
		unix.ENOENT}
	for _, k := range []struct {
		name     string
		most     int // number of the call
		step     int
		failures func(errno syscall.Errno, skip int) []failure
	}{
		{"write", 12, 1, func(errno syscall.Errno, skip int) []failure {
			return []failure{{call: "write", errno: errno, skip: skip}}
		}},
		{"pwrite", 30, 2, func(errno syscall.Errno, skip int) []failure {
			return []failure{{call: "pwrite64", errno: errno, skip: skip}}
		}},
		{"create", 12, 1, creating},
		{"rename", 8, 1, func(errno syscall.Errno, skip int) []failure { return renaming(errno, skip)[:1] }},
		{"folder", 3, 1, func(errno syscall.Errno, skip int) []failure {
			return []failure{{call: "mkdirat", errno: errno, skip: skip}}
		}},
		{"truncate", 1, 1, func(errno syscall.Errno, skip int) []failure {
			return []failure{{call: "ftruncate", errno: errno, skip: skip}}
		}},
	} {
		for skip := 0; skip < k.most; skip += k.step {
			errno, times := errnos[len(cases)%len(errnos)], 1+skip%3
			failures := k.failures(errno, skip)
			for i := range failures {
				failures[i].times = times
			}
			cases = append(cases, systemFault{name: fmt.Sprintf(
				"%s %d %dx %s", k.name, skip, times, unix.ErrnoName(errno)), failures: failures})
		}
	}
	return cases
}

// Event files that cannot be written any more, from whichever write on: what was taken is in the archive or counted as
// lost, to the last event, and no file has fewer events than is said of it.
func TestEventFilesFailForGood(t *testing.T) {
	t.Parallel()
	rec := recording(t, "01-allreduce-2p")
	var reached atomic.Int64
	const most = 12
	t.Run("writes", func(t *testing.T) {
		for skip := range most {
			errno := []syscall.Errno{unix.ENOSPC, unix.EIO}[skip%2]
			t.Run(fmt.Sprintf("%d %s", 2*skip, unix.ErrnoName(errno)), func(t *testing.T) {
				t.Parallel()
				o := runFailing(t, rec, systemFault{failures: []failure{{call: "pwrite64", errno: errno,
					skip: 2 * skip}}})
				if o.failed == 0 {
					return
				}
				reached.Add(1)
				entries := testkit.Value(experiment.List(o.dir))(t)
				found := 0
				for _, e := range entries {
					p := e.Process
					for i := range o.result.Processes {
						host := &o.result.Processes[i]
						if p == nil || p.PID != host.PID {
							continue
						}
						found++
						for typ, n := range host.Report.Delivered.Starts {
							have := p.Counts.Starts[typ]
							for _, lost := range p.Counts.Lost {
								have += lost[typ]
							}
							testkit.Equal(t, have, uint64(n),
								"process %d: events %s recorded or lost, %d were delivered: %+v", host.Rank, typ, n,
								p.Counts)
						}
					}
					for i := range p.Locations {
						l := &p.Locations[i]
						file := filepath.Join(e.Path, fmt.Sprintf("%d.evt", l.Number))
						s, err := otf2.ScanEventFile(file, p.EventChunkSize)
						if err != nil || s.Events < l.Events {
							t.Errorf("%s: %+v, %v; announced: %d", file, s, err, l.Events)
						}
					}
				}
				testkit.Check(t, found == len(rec.Processes), "%d shards of %d processes", found, len(rec.Processes))
				u := testkit.Value(unifyAll(o.dir))(t)
				testkit.Check(t, !u.Runs[0].Complete, "the archive is said to be complete")
				checkSound(t, filepath.Join(o.dir, "traces.otf2"), check.Note)
			})
		}
	})
	n := reached.Load()
	testkit.Check(t, n >= most/2, "only %d of %d cases made a call fail", n, most)
}
