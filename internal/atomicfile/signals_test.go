// SPDX-License-Identifier: Apache-2.0

package atomicfile

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

const inFolder = "ATOMICFILE_TEST_FOLDER"

// TestMain is also the program that is interrupted while it writes.
func TestMain(m *testing.M) {
	if dir := os.Getenv(inFolder); dir != "" {
		RemoveOnSignals()
		f, err := Create(filepath.Join(dir, "file"), 0o600)
		if err != nil {
			panic(err)
		}
		p := Temporary(filepath.Join(dir, "folder"))
		defer p.Forget()
		if err := os.MkdirAll(filepath.Join(dir, "folder", "inside"), 0o700); err != nil {
			panic(err)
		}
		fmt.Fprintln(os.Stdout, f.Name())
		time.Sleep(time.Minute)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestSignalsRemoveWhatIsUnfinished(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		dir := t.TempDir()
		// Under nohup a signal is ignored, by children, too; one that is handled here is by default there.
		handled := make(chan os.Signal, 1)
		signal.Notify(handled, s)
		defer signal.Stop(handled)
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), inFolder+"="+dir)
		out := testkit.Value(cmd.StdoutPipe())(t)
		testkit.Must(t, cmd.Start())
		line := testkit.Value(bufio.NewReader(out).ReadString('\n'))(t)
		got := names(t, dir)
		testkit.Check(t, len(got) == 2, "while it writes: %v (%s)", got, line)
		testkit.Must(t, cmd.Process.Signal(s))
		_ = cmd.Wait()
		status := cmd.ProcessState.Sys().(syscall.WaitStatus)
		testkit.Check(t, status.Signaled() && status.Signal() == s, "%v: it ended with %v", s, cmd.ProcessState)
		got = names(t, dir)
		testkit.Check(t, len(got) == 0, "%v left %v", s, got)
	}
}

func TestWhatMustNotBeInterruptedIsNot(t *testing.T) {
	p := Temporary(filepath.Join(t.TempDir(), "folder"))
	defer p.Forget()
	began, ended := make(chan bool), make(chan bool)
	go func() {
		_ = p.Uninterrupted(func() error { began <- true; <-ended; return nil })
		ended <- true
	}()
	<-began
	testkit.Check(t, !pending.TryLock(), "a signal would remove it meanwhile")
	ended <- true
	<-ended
}
