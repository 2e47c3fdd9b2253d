// SPDX-License-Identifier: Apache-2.0

// Package testkit has what tests of all folders do with errors and files, programs among them: they end the test where
// that fails.
package testkit

import (
	"os"
	"syscall"
	"testing"
)

// Must ends the test, or the case that rapid has drawn, if there is an error.
func Must(t interface {
	Helper()
	Fatal(args ...any)
}, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Value gives what a call returns beside its error, and ends the test if there is an error:
//
//	archive := testkit.Value(otf2.Open(anchor, nil))(t)
func Value[T any](value T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		Must(t, err)
		return value
	}
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
