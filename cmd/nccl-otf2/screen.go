// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// screen is a terminal in full-screen mode. Keys are read without Enter and are not echoed. The terminal is restored
// while the tool is suspended.
type screen struct {
	in, out *os.File
	keys    chan byte
	changed chan struct{} // redraw: the size has changed, or the tool was resumed
	signals chan os.Signal

	mu    sync.Mutex // guards the members below
	saved *unix.Termios
	open  bool
}

// openScreen enters full-screen mode; the caller must call close. If in is not a terminal, there are no keys.
func openScreen(in, out *os.File) *screen {
	s := &screen{in: in, out: out, keys: make(chan byte), changed: make(chan struct{}, 1),
		signals: make(chan os.Signal, 4)}
	s.enterScreen()
	signal.Notify(s.signals, unix.SIGWINCH, unix.SIGTSTP, unix.SIGCONT)
	go s.handleSignals()
	if s.saved != nil {
		go s.readKeys()
	}
	return s
}

func (s *screen) enterScreen() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open {
		return
	}
	s.open = true
	if t, err := unix.IoctlGetTermios(int(s.in.Fd()), unix.TCGETS); err == nil {
		s.saved = t
		keys := *t
		keys.Lflag &^= unix.ICANON | unix.ECHO
		keys.Cc[unix.VMIN], keys.Cc[unix.VTIME] = 1, 0
		_ = unix.IoctlSetTermios(int(s.in.Fd()), unix.TCSETS, &keys)
	}
	fmt.Fprint(s.out, "\x1b[?1049h\x1b[?25l") // the alternate screen, without a cursor
}

func (s *screen) leaveScreen() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.open {
		return
	}
	s.open = false
	fmt.Fprint(s.out, "\x1b[?25h\x1b[?1049l")
	if s.saved != nil {
		_ = unix.IoctlSetTermios(int(s.in.Fd()), unix.TCSETS, s.saved)
	}
}

// close restores the terminal.
func (s *screen) close() {
	signal.Stop(s.signals)
	s.leaveScreen()
}

func (s *screen) handleSignals() {
	for sig := range s.signals {
		switch sig {
		case unix.SIGTSTP:
			s.leaveScreen()
			_ = unix.Kill(os.Getpid(), unix.SIGSTOP)
			continue // SIGCONT follows
		case unix.SIGCONT:
			s.enterScreen()
		}
		select {
		case s.changed <- struct{}{}:
		default:
		}
	}
}

func (s *screen) readKeys() {
	b := make([]byte, 1)
	for {
		if n, err := s.in.Read(b); err != nil || n == 0 {
			return
		}
		s.keys <- b[0]
	}
}

// size returns the size of the terminal; 80 × 24 if it is not known.
func (s *screen) size() (columns, rows int) {
	if w, err := unix.IoctlGetWinsize(int(s.out.Fd()), unix.TIOCGWINSZ); err == nil && w.Col > 0 && w.Row > 0 {
		return int(w.Col), int(w.Row)
	}
	return 80, 24
}

// drawLines shows lines from the top, cut off at the edges of the terminal. Warnings begin with "!".
func (s *screen) drawLines(lines []string) {
	columns, rows := s.size()
	var b strings.Builder
	b.WriteString("\x1b[H")
	for i, line := range lines[:min(len(lines), rows)] {
		if i > 0 {
			b.WriteString("\r\n")
		}
		if r := []rune(line); len(r) > columns {
			line = string(r[:columns])
		}
		c := plain
		switch {
		case i == 0:
			c = bold
		case strings.HasPrefix(line, "!"):
			c = yellow
		}
		b.WriteString(string(paint(s.out, c, line)) + "\x1b[K")
	}
	b.WriteString("\x1b[J")
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open {
		fmt.Fprint(s.out, b.String())
	}
}
