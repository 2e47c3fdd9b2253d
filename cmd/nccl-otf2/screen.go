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

// screen is a terminal that is drawn upon as a whole, beside what was on it before. Keys come without Enter and are not
// shown. Signals that stop the tool for a while give the terminal back until it goes on.
type screen struct {
	in, out *os.File
	keys    chan byte
	changed chan struct{} // it is to be drawn anew: another size, or the tool goes on
	signals chan os.Signal

	mu    sync.Mutex // of what follows
	saved *unix.Termios
	open  bool
}

// openScreen takes the terminal; close must follow. in may be no terminal: then there are no keys.
func openScreen(in, out *os.File) *screen {
	s := &screen{in: in, out: out, keys: make(chan byte), changed: make(chan struct{}, 1),
		signals: make(chan os.Signal, 4)}
	s.enter()
	signal.Notify(s.signals, unix.SIGWINCH, unix.SIGTSTP, unix.SIGCONT)
	go s.heed()
	if s.saved != nil {
		go s.read()
	}
	return s
}

func (s *screen) enter() {
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
	fmt.Fprint(s.out, "\x1b[?1049h\x1b[?25l") // the other screen, without cursor
}

func (s *screen) leave() {
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

// close gives the terminal back as it was.
func (s *screen) close() {
	signal.Stop(s.signals)
	s.leave()
}

func (s *screen) heed() {
	for sig := range s.signals {
		switch sig {
		case unix.SIGTSTP:
			s.leave()
			_ = unix.Kill(os.Getpid(), unix.SIGSTOP)
			continue // SIGCONT follows
		case unix.SIGCONT:
			s.enter()
		}
		select {
		case s.changed <- struct{}{}:
		default:
		}
	}
}

func (s *screen) read() {
	b := make([]byte, 1)
	for {
		if n, err := s.in.Read(b); err != nil || n == 0 {
			return
		}
		s.keys <- b[0]
	}
}

// size is that of the terminal; 80 × 24 if it does not say.
func (s *screen) size() (columns, rows int) {
	if w, err := unix.IoctlGetWinsize(int(s.out.Fd()), unix.TIOCGWINSZ); err == nil && w.Col > 0 && w.Row > 0 {
		return int(w.Col), int(w.Row)
	}
	return 80, 24
}

// draw shows lines from the top, cut off where the terminal ends. Lines of what is out of order begin with "!".
func (s *screen) draw(lines []string) {
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
