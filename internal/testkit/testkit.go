// SPDX-License-Identifier: Apache-2.0

// Package testkit has what tests of all folders do with errors, values and files, programs among them. Comparisons and
// Check fail the test, which goes on; all else ends it where it fails.
package testkit

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// reporter is a test, or the case that rapid has drawn.
type reporter interface {
	Helper()
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// Must ends the test if there is an error.
func Must(t reporter, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Value gives what a call returns beside its error, and ends the test if there is an error:
//
//	archive := testkit.Value(otf2.Open(anchor, nil))(t)
func Value[T any](value T, err error) func(t reporter) T {
	return func(t reporter) T {
		t.Helper()
		Must(t, err)
		return value
	}
}

// Check fails the test, which goes on, unless ok. The format and its arguments say what was found.
func Check(t reporter, ok bool, format string, args ...any) {
	t.Helper()
	if !ok {
		t.Errorf(format, args...)
	}
}

// Require ends the test unless ok. The format and its arguments say what was found.
func Require(t reporter, ok bool, format string, args ...any) {
	t.Helper()
	if !ok {
		t.Fatalf(format, args...)
	}
}

// Equal compares a value with what it has to be. The format and its arguments say what it is.
func Equal[T comparable](t reporter, got, want T, format string, args ...any) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %q, want %q", fmt.Sprintf(format, args...), fmt.Sprint(got), fmt.Sprint(want))
	}
}

// Same compares values of any kind, and shows where they differ: − stands before what only the first one has.
func Same(t reporter, a, b any, options ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(a, b, options...); diff != "" {
		t.Errorf("(−first +second):\n%s", diff)
	}
}

// Contains looks for each of the parts in a text.
func Contains(t reporter, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing in:\n%s", part, text)
		}
	}
}

// Output runs a command and gives what it wrote to its standard output. If it fails, the test ends with all that it
// said.
func Output(t testing.TB, cmd *exec.Cmd) []byte {
	t.Helper()
	var said bytes.Buffer
	if cmd.Stderr == nil {
		cmd.Stderr = &said
	}
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", strings.Join(cmd.Args, " "), err, out, said.Bytes())
	}
	return out
}

// Read reads a file.
func Read(t testing.TB, path string) []byte {
	t.Helper()
	return Value(os.ReadFile(path))(t)
}

// Write writes a file, which is made if it is not there.
func Write(t testing.TB, path string, data []byte) {
	t.Helper()
	Must(t, os.WriteFile(path, data, 0o666))
}

// Script writes a program. No child is made meanwhile: one that another test starts would have the file open for
// writing until it runs its own program, and the system starts no file that somebody may write ("text file busy").
func Script(t testing.TB, path, text string) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	Must(t, os.WriteFile(path, []byte(text), 0o755))
}

// Watch looks at the files of folders that not the test itself reads but a program that it starts, as a compiler does.
// `go test` hands out the result of before for what a test has not opened: a change of these files would be tested by
// nobody.
func Watch(t testing.TB, folders ...string) {
	t.Helper()
	for _, folder := range folders {
		_, err := os.ReadDir(folder)
		Must(t, err)
	}
}
