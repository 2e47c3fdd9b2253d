// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/internal/printable"
	"github.com/nccl-otf2/nccl-otf2/internal/report"
)

// isTerminal reports whether a stream is a terminal.
func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// color is the code of a terminal for a text attribute.
type color string

const (
	plain  color = ""
	bold   color = "1"
	red    color = "31"
	green  color = "32"
	yellow color = "33"
)

// colored reports whether w is a terminal that shows colors.
func colored(w io.Writer) bool {
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && isTerminal(w)
}

// paint colors s if w is a terminal that shows colors; NO_COLOR and TERM=dumb disable them.
func paint(w io.Writer, c color, s string) printable.Raw {
	shown := printable.Raw(printable.Name(s))
	if c == plain || !colored(w) {
		return shown
	}
	return printable.Raw("\x1b["+string(c)+"m") + shown + "\x1b[0m"
}

// progressLine shows one line on a terminal during long work; it shows nothing on other outputs, and if it is nil. Its
// methods may be called from several goroutines.
type progressLine struct {
	w     *os.File
	start time.Time

	mu    sync.Mutex
	shown bool
}

func newProgress() *progressLine { return &progressLine{w: os.Stderr, start: time.Now()} }

// showLine replaces the line, beginning one second after the start.
func (p *progressLine) showLine(format string, args ...any) {
	if p == nil || time.Since(p.start) < time.Second || !isTerminal(p.w) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shown = true
	printable.Fprintf(p.w, "\r\x1b[K"+format, args...)
}

// showWorking shows a text and the elapsed time until stop is called, for work that reports no progress.
func (p *progressLine) showWorking(text string) (stop func()) {
	if !isTerminal(p.w) {
		return func() {}
	}
	ended, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		tick := time.NewTicker(500 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ended:
				return
			case <-tick.C:
				p.showLine("%s (%d s)", text, int(time.Since(p.start).Seconds()))
			}
		}
	}()
	return func() {
		close(ended)
		<-gone
		p.clearLine()
	}
}

// clearLine removes the line.
func (p *progressLine) clearLine() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.shown = false
	}
}

func writeJSON(w io.Writer, v any) error { return report.WriteJSON(w, v, "  ") }
