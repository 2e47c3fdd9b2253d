// SPDX-License-Identifier: Apache-2.0

// Package suite is what is run inside the real NCCL on a machine without a GPU: named programs, and the beds in which
// they run.
package suite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Bed is a release of NCCL, ready to run: a folder that `make real-nccl-bed` makes. Its driver sets what every run
// needs.
type Bed struct {
	Dir       string // absolute
	Release   string // of NCCL
	Published bool   // the library is one that was published as a binary
}

// given begins the names of folders for libraries that were built by hand.
const given = "given-"

// Open looks at a folder.
func Open(dir string) (*Bed, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	release, byHand := strings.CutPrefix(filepath.Base(dir), given)
	if _, err := os.Stat(filepath.Join(dir, "ncclrun")); err != nil {
		return nil, fmt.Errorf("%w: `make real-nccl-bed` makes it", err)
	}
	return &Bed{Dir: dir, Release: release, Published: !byHand}, nil
}

// Result is what became of a run.
type Result struct {
	Exit    int  // of the driver; minus the signal that ended it
	Hung    bool // it had not ended when its time was over
	Output  string
	Results []string // of what was checked, a line for each rank
	Took    time.Duration
}

// Limit is, if it is not 0, the limit of time of every program.
var Limit time.Duration

// grace is what the driver has beyond its own limit of time to end its processes.
const grace = 15 * time.Second

// timeIsOver is how the driver exits when it has ended its processes because their time was over.
const timeIsOver = 124

// Run runs a program, with further variables in its environment, and leaves the driver's logs in folder logs. On a hang
// only processes of this run are ended. The error is that of starting it.
func (b *Bed) Run(ctx context.Context, p *Program, logs string, env ...string) (*Result, error) {
	if err := os.MkdirAll(logs, 0o777); err != nil {
		return nil, err
	}
	limit := p.limit()
	args := append([]string{"-o", logs, "-t", strconv.Itoa(int(limit.Seconds())), "-N", "world"}, p.Args...)
	ctx, cancel := context.WithTimeout(ctx, limit+grace)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(b.Dir, "ncclrun"), append(args, p.Text)...)
	cmd.Env = append(append(foreign(), p.Env...), env...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // whose end would be taken for ours
	defer runtime.UnlockOSThread()
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second // who inherited the streams may live on
	began := time.Now()
	err := cmd.Run()
	if cmd.ProcessState == nil {
		return nil, err
	}
	r := &Result{Output: said.String(), Took: time.Since(began)}
	r.Results = slices.Sorted(strings.Lines(out.String()))
	if st := cmd.ProcessState.Sys().(syscall.WaitStatus); st.Signaled() {
		r.Exit = -int(st.Signal())
	} else {
		r.Exit = st.ExitStatus()
	}
	r.Hung = r.Exit == timeIsOver || errors.Is(ctx.Err(), context.DeadlineExceeded)
	return r, nil
}

// foreign is the environment without what would change NCCL, the plugin or a launcher's numbering.
func foreign() (env []string) {
	for _, kv := range os.Environ() {
		ours := false
		for _, prefix := range []string{"NCCL_", "SLURM_", "PMI", "OMPI_", "RANK=", "WORLD_SIZE=", "LOCAL_RANK=",
			"TORCHELASTIC_", "REALNCCL"} {
			ours = ours || strings.HasPrefix(kv, prefix)
		}
		if !ours {
			env = append(env, kv)
		}
	}
	return env
}

// Says is the run in one line.
func (r *Result) Says() string {
	switch {
	case r.Hung:
		return "hang"
	case r.Exit < 0:
		return "signal " + strconv.Itoa(-r.Exit)
	case r.Exit != 0:
		return "exit " + strconv.Itoa(r.Exit)
	}
	return "ok"
}
