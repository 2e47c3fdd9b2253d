// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// openTerminal gives both ends of a pseudo-terminal.
func openTerminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("SKIPPED: no pseudo-terminals here: %v", err)
	}
	t.Cleanup(func() { master.Close() })
	testkit.Must(t, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	n := testkit.Value(unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN))(t)
	slave = testkit.Value(os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0))(t)
	t.Cleanup(func() { slave.Close() })
	return master, slave
}

func TestColorsOnTerminalsOnly(t *testing.T) {
	_, terminal := openTerminal(t)
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	testkit.Equal(t, paint(terminal, red, "x"), "\x1b[31mx\x1b[0m", "on a terminal")
	testkit.Equal(t, paint(terminal, plain, "x"), "x", "without a color")
	testkit.Equal(t, paint(new(bytes.Buffer), red, "x"), "x", "in a buffer")
	file := testkit.Value(os.Create(t.TempDir() + "/out"))(t)
	defer file.Close()
	testkit.Equal(t, paint(file, red, "x"), "x", "in a file")
	t.Setenv("NO_COLOR", "1")
	testkit.Equal(t, paint(terminal, red, "x"), "x", "with NO_COLOR")
	t.Setenv("NO_COLOR", "")
	t.Setenv("TERM", "dumb")
	testkit.Equal(t, paint(terminal, red, "x"), "x", "with TERM=dumb")
}

func TestProgressShowsOneLineAndTakesItAway(t *testing.T) {
	master, terminal := openTerminal(t)
	p := &progressLine{w: terminal, start: time.Now()}
	p.showLine("too early %d", 1)
	p.start = time.Now().Add(-time.Minute)
	p.showLine("step %d", 2)
	p.clearLine()
	p.clearLine()
	fmt.Fprint(terminal, "end")
	var got strings.Builder
	buf := make([]byte, 256)
	for !strings.HasSuffix(got.String(), "end") {
		n := testkit.Value(master.Read(buf))(t)
		got.Write(buf[:n])
	}
	testkit.Equal(t, got.String(), "\r\x1b[Kstep 2\r\x1b[Kend", "got.String()")

	file := testkit.Value(os.Create(t.TempDir() + "/out"))(t)
	defer file.Close()
	p = &progressLine{w: file, start: time.Now().Add(-time.Minute)}
	p.showLine("step")
	p.showWorking("reading")()
	p.clearLine()
	st, err := file.Stat()
	testkit.Check(t, err == nil && st.Size() == 0, "a file got %d bytes of progress, %v", st.Size(), err)
}
