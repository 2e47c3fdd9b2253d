// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/need"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/realnccl/suite"
)

// connectLater makes communicators as NCCL makes them on GPUs with cuMem, which the bed does not have: they do not
// connect to the network's proxy when they are made, so that it is the plugin for whom their proxies get their memory.
// A debugger leaves the two calls out (2 is the number of the network's transport).
const connectLater = `set pagination off
set breakpoint pending on
set follow-fork-mode child
break ncclProxyConnect if $esi==2
commands
silent
set $rax=0
set $rip=*(long*)$rsp
set $rsp=$rsp+8
continue
end
break ncclProxyCallBlocking if $edx==2
commands
silent
set $rax=0
set $rip=*(long*)$rsp
set $rsp=$rsp+8
continue
end
run
`

// resultOfRank is what ncclrun says of a rank at the end.
var resultOfRank = regexp.MustCompile(`rank \d+: \d+ results, [0-9a-f]+`)

// However little room there is in /dev/shm, and whatever else keeps NCCL's proxies from having their memory, a job ends
// with our plugin as it does without one, and its results are the same.
func TestRealNCCLWithoutRoom(t *testing.T) {
	if *realBeds == "" {
		t.Skip("NOT CHECKED here: `make real-nccl` runs programs inside the real NCCL")
	}
	gdb := need.Program(t, "gdb", "Debian: gdb")
	need.Root(t, "mount a /dev/shm of its own")
	const one, several = "!ar:1000 sync",
		"!ar:1000 init:1 comm:1 !ar:100 sync init:2 comm:2 !ar:1000 comm:0 !ar:1000 sync"
	cases := []struct {
		name, setup, options, program string
		times                         bool // there is room for GPU times
	}{
		{"none", "mount -t tmpfs -o size=1m tmpfs /dev/shm", "-n 1 -g 2 -m threads", one, false},
		{"for less than one pool", "mount -t tmpfs -o size=32m tmpfs /dev/shm", "-n 1 -g 2 -m threads", one, false},
		{"a container's", "mount -t tmpfs -o size=64m tmpfs /dev/shm", "-n 1 -g 2 -m threads", one, false},
		{"enough", "mount -t tmpfs -o size=160m tmpfs /dev/shm", "-n 1 -g 2 -m threads", one, true},
		{"for the first communicator", "mount -t tmpfs -o size=160m tmpfs /dev/shm", "-n 1 -g 2 -m threads", several,
			true},
		{"for some that are made together", "mount -t tmpfs -o size=160m tmpfs /dev/shm", "-n 1 -g 2 -m threads -c 4",
			"comm:0 !ar:100 comm:1 !ar:100 comm:2 !ar:100 comm:3 !ar:100 sync", false},
		{"read-only", "mount -t tmpfs -o size=1g,ro tmpfs /dev/shm", "-n 1 -g 2 -m threads", one, false},
		{"of few files", "mount -t tmpfs -o size=1g,nr_inodes=2 tmpfs /dev/shm", "-n 1 -g 2 -m threads", one, false},
		{"in small files", "ulimit -f 66000; export NCCL_OTF2_MEMORY=4M", "-n 1 -g 2 -m threads", one, false},
		{"with few descriptors", "ulimit -n 110", "-n 1 -g 2 -m threads", one, false},
	}
	plugin := builtFile(t, "libnccl-profiler-otf2.so")
	for dir := range strings.SplitSeq(*realBeds, ":") {
		bed := testkit.Value(suite.Open(dir))(t)
		run := func(t *testing.T, setup, options, program string, env ...string) (
			status int, said string, results []string) {
			script := filepath.Join(t.TempDir(), "skip.gdb")
			testkit.Must(t, os.WriteFile(script, []byte(connectLater), 0o666))
			line := append([]string{"-c", "mount --make-rprivate / && " + setup + ` && exec "$@"`, "sh", gdb, "-q",
				"-batch", "-return-child-result", "-x", script, "--args",
				filepath.Join(bed.Dir, "ncclrun"), "-t", "120", "-o", t.TempDir()}, strings.Fields(options)...)
			c := exec.Command("sh", append(line, program)...)
			// GPUs copy to each other whatever processor this is: else NCCL would want room in /dev/shm itself.
			c.Env = append(c.Environ(), append(env, "NCCL_DEBUG=WARN", "NCCL_PROTO=Simple", "NCCL_P2P_LEVEL=SYS",
				"NCCL_ALLGATHERV_ENABLE=0")...)
			c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
			var out bytes.Buffer
			c.Stdout, c.Stderr = &out, &out
			_ = c.Run()
			// GDB's lines may be in front of them.
			results = resultOfRank.FindAllString(out.String(), -1)
			slices.Sort(results)
			return c.ProcessState.ExitCode(), out.String(), results
		}
		for _, c := range cases {
			t.Run(bed.Release+"/"+c.name, func(t *testing.T) {
				wantStatus, wantSaid, want := run(t, c.setup, c.options, c.program, "NCCL_PROFILER_PLUGIN=none")
				if len(want) != 2 {
					t.Fatalf("without a plugin it ends with %d:\n%s", wantStatus, tail(wantSaid))
				}
				experiment := filepath.Join(t.TempDir(), "experiment")
				status, said, results := run(t, c.setup, c.options, c.program,
					append(settings(experiment), "NCCL_OTF2_EVENTS=gpu", "NCCL_OTF2_COLLECTOR=spool",
						"NCCL_PROFILER_PLUGIN="+plugin)...)
				if status != wantStatus || !slices.Equal(results, want) {
					t.Fatalf("ends with %d, without a plugin with %d:\n%s", status, wantStatus, tail(said))
				}
				unified(t, experiment)
				for _, p := range shardsOf(t, experiment) {
					if times := p.Counts.Starts["KernelCh"] > 0; times != c.times {
						t.Errorf("KernelCh events: %s, want %s", strconv.FormatBool(times), strconv.FormatBool(c.times))
					}
				}
				const line = "no GPU times are recorded from here on"
				lines := strings.Count(said, line)
				if strings.Contains(c.setup, "size=160m") && c.program == one {
					lines++
				}
				testkit.Check(t, lines == 1, "said %d times: %s", lines, line)
			})
		}
	}
}
