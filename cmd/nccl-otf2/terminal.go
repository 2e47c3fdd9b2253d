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

// color is a terminal's code for a text attribute.
type color string

const (
	plain  color = ""
	bold   color = "1"
	red    color = "31"
	green  color = "32"
	yellow color = "33"
)

// colored reports whether w is a terminal that wants colors.
func colored(w io.Writer) bool {
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && isTerminal(w)
}

// paint colors s if w is a terminal that wants it (NO_COLOR and TERM=dumb do not).
func paint(w io.Writer, c color, s string) printable.Raw {
	shown := printable.Raw(printable.Name(s))
	if c == plain || !colored(w) {
		return shown
	}
	return printable.Raw("\x1b["+string(c)+"m") + shown + "\x1b[0m"
}

// progress shows one line on a terminal while something takes long; elsewhere it shows nothing. Its
// methods may be called from several goroutines. nil shows nothing.
type progress struct {
	w     *os.File
	start time.Time

	mu    sync.Mutex
	shown bool
}

func newProgress() *progress { return &progress{w: os.Stderr, start: time.Now()} }

// say replaces the line, at most from a second after the start on.
func (p *progress) say(format string, args ...any) {
	if p == nil || time.Since(p.start) < time.Second || !isTerminal(p.w) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shown = true
	printable.Fprintf(p.w, "\r\x1b[K"+format, args...)
}

// working shows text and the time passed until stop is called, for work that tells no progress.
func (p *progress) working(text string) (stop func()) {
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
				p.say("%s (%d s)", text, int(time.Since(p.start).Seconds()))
			}
		}
	}()
	return func() {
		close(ended)
		<-gone
		p.done()
	}
}

// done takes the line away.
func (p *progress) done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.shown = false
	}
}

func writeJSON(w io.Writer, v any) error { return report.WriteJSON(w, v, "  ") }
