// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/live"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

// runningShards makes the shards of a job that is being recorded; this process stands for its collectors.
func runningShards(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "exp")
	for r := range 2 {
		p := shardtest.New(t, dir, fmt.Sprint("p", r)).Launched("slurm", r, 2)
		p.GPU(r, fmt.Sprint("GPU-", r), "")
		begin := uint64(time.Now().Add(-3 * time.Second).UnixNano())
		world := p.Comm(description.Comm{ID: 1, Name: "world\x1b[31m", NRanks: 2, Rank: r, InitTime: begin})
		for i := range uint64(20) {
			at := begin + i*100_000_000
			p.AllReduce(world, at+uint64(r)*10_000_000, at+50_000_000, 1<<20)
		}
		p.Flush()
	}
	return dir
}

// terminalSession runs the tool on a terminal of some size.
type terminalSession struct {
	t      *testing.T
	master *os.File
	cmd    *exec.Cmd
	before unix.Termios
	drawn  chan string
}

func startOnTerminal(t *testing.T, columns, rows uint16, args ...string) *terminalSession {
	t.Helper()
	tool := testkit.Value(exec.LookPath("nccl-otf2"))(t)
	master, slave := openTerminal(t)
	s := &terminalSession{t: t, master: master, cmd: exec.Command(tool, args...), drawn: make(chan string, 1000)}
	s.resize(columns, rows)
	before := testkit.Value(unix.IoctlGetTermios(int(master.Fd()), unix.TCGETS))(t)
	s.before = *before
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = slave, slave, slave
	s.cmd.Env = append(os.Environ(), "TERM=xterm", "NO_COLOR=")
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	testkit.Must(t, s.cmd.Start())
	t.Cleanup(func() {
		if s.cmd.ProcessState == nil {
			s.cmd.Process.Kill()
			s.cmd.Wait()
		}
	})
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := master.Read(buf)
			if err != nil {
				return
			}
			s.drawn <- string(buf[:n])
		}
	}()
	return s
}

func (s *terminalSession) resize(columns, rows uint16) {
	s.t.Helper()
	testkit.Must(s.t, unix.IoctlSetWinsize(int(s.master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: rows}))
}

// until waits until the tool has drawn something, and gives all since the last call.
func (s *terminalSession) until(what string, holds func(drawn string) bool) string {
	s.t.Helper()
	limit := time.After(5 * time.Minute)
	drawn := ""
	for !holds(drawn) {
		select {
		case text := <-s.drawn:
			drawn += text
		case <-limit:
			s.t.Fatalf("no %s in %q", what, drawn)
		}
	}
	return drawn
}

// pageLines are the lines of the last whole page, without what is not text.
func pageLines(drawn string) []string {
	end := strings.LastIndex(drawn, "\x1b[J")
	if end < 0 {
		return nil
	}
	begin := strings.LastIndex(drawn[:end], "\x1b[H")
	if begin < 0 {
		return nil
	}
	return strings.Split(regexp.MustCompile(`\x1b\[[0-9;]*[A-Za-z]`).ReplaceAllString(
		strings.ReplaceAll(drawn[begin:end], "\r", ""), ""), "\n")
}

func (s *terminalSession) press(keys string) {
	s.t.Helper()
	testkit.Value(s.master.WriteString(keys))(s.t)
}

func TestTopOnATerminal(t *testing.T) {
	dir := runningShards(t)
	for _, end := range []string{"q", "\x03"} { // the key, and Ctrl-C
		s := startOnTerminal(t, 100, 30, "top", dir, "--interval", "100ms")
		page := s.until("whole page", func(drawn string) bool { return len(pageLines(drawn)) > 0 })
		testkit.Contains(t, page, "\x1b[?1049h\x1b[?25l", "\x1b[1m", "running, 2 processes on 1 host", "q: end",
			"AllReduce", "world\\x1b[31m", "Rank 1")
		s.resize(40, 9)
		s.until("page of 9 lines with 40 columns", func(drawn string) bool {
			lines := pageLines(drawn)
			return len(lines) == 9 && !slices.ContainsFunc(lines, func(l string) bool { return len([]rune(l)) > 40 })
		})
		s.resize(100, 30)
		s.until("full page again", func(drawn string) bool {
			return strings.Contains(strings.Join(pageLines(drawn), " "), "q: end")
		})
		// Stopped by Ctrl-Z it gives the terminal back, and takes it again when it goes on.
		s.press("\x1a")
		s.until("the terminal given back", func(drawn string) bool {
			return strings.Contains(drawn, "\x1b[?25h\x1b[?1049l")
		})
		for state, limit := "", time.Now().Add(5*time.Minute); state != "T" &&
			time.Now().Before(limit); time.Sleep(time.Millisecond) {
			text := testkit.Read(t, fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
			state = strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))[0]
		}
		testkit.Must(t, s.cmd.Process.Signal(unix.SIGCONT))
		s.until("page after going on", func(drawn string) bool {
			return strings.Contains(drawn, "\x1b[?1049h") &&
				strings.Contains(strings.Join(pageLines(drawn), " "), "q: end")
		})
		s.press("x" + end)
		left := s.until("last look", func(drawn string) bool { // it stays behind
			_, behind, found := strings.Cut(drawn, "\x1b[?1049l")
			return found && strings.Contains(behind, "Rank 1")
		})
		testkit.Contains(t, left, "\x1b[?25h")
		err := s.cmd.Wait()
		testkit.Check(t, err == nil, "ended by %q: %v", end, err)
		after, err := unix.IoctlGetTermios(int(s.master.Fd()), unix.TCGETS)
		testkit.Check(t, err == nil && *after == s.before,
			"the terminal is not as it was: %+v, %+v, %v", s.before, after, err)
	}
}

func TestTopFitsItsRows(t *testing.T) {
	v := &live.View{Directory: "exp", State: live.LiveRunning, Processes: 64, Hosts: 8, Window: 1e9, Compared: 1}
	for i := range 12 {
		v.Operations = append(v.Operations, live.Operation{Communicator: fmt.Sprint("c", i), Operation: "AllReduce",
			Ranks: 8})
	}
	for i := range 64 {
		v.Ranks = append(v.Ranks, live.Rank{Rank: fmt.Sprintf("Rank %d", i), State: "running"})
	}
	v.Ranks[50].Caused, v.Ranks[7].Waiting = 0.9, 0.5
	for _, rows := range []int{20, 24, 40, 60, 90, 200} {
		lines := topLines(v, rows)
		testkit.Check(t, len(lines) <= rows, "%d lines on %d rows", len(lines), rows)
		text := strings.Join(lines, "\n")
		testkit.Check(t, strings.Contains(text, "Rank 50 ") && (strings.Contains(text, "Rank 7 ") || rows <= 20),
			"on %d rows those that matter are left out:\n%s", rows, text)
	}
}
