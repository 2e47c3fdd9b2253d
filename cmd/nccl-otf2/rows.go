// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// defaultRows is the default number of rows of a table.
const defaultRows = 20

// rows is the value of --top: a number of rows, or −1 for all of them.
type rows int

func (r *rows) String() string {
	if *r < 0 {
		return "all"
	}
	return strconv.Itoa(int(*r))
}

func (r *rows) Set(text string) error {
	if text == "all" {
		*r = -1
		return nil
	}
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil || n == 0 {
		return errors.New(`must be a number of rows from 1, or "all"`)
	}
	*r = rows(n)
	return nil
}

func (r *rows) Type() string { return "N|all" }

// terminalWidth returns the width of the terminal, 0 if the output is not a terminal.
func terminalWidth(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok {
		return 0
	}
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return int(size.Col)
}
