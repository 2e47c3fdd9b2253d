// SPDX-License-Identifier: Apache-2.0

package cube

import (
	"errors"
	"fmt"
)

// Causes of errors; test with errors.Is.
var (
	ErrInvalid      = errors.New("invalid argument") // refused, nothing was written
	ErrTruncated    = errors.New("file is cut short")
	ErrCorrupt      = errors.New("malformed profile")
	ErrNotSupported = errors.New("not supported")
	ErrClosed       = errors.New("already closed")
)

// FormatError states where in a profile reading stopped. It wraps one of the causes above or an error of the operating
// system.
type FormatError struct {
	File   string // path of the profile, empty if it has none
	Member string // member of the tar file, empty if it is about the file as a whole
	Err    error
}

// Error implements error.
func (e *FormatError) Error() string {
	text := "cube: "
	for _, part := range []string{e.File, e.Member} {
		if part != "" {
			text += part + ": "
		}
	}
	return text + e.Err.Error()
}

// Unwrap returns the cause.
func (e *FormatError) Unwrap() error { return e.Err }

func invalid(format string, args ...any) error {
	return fmt.Errorf("cube: %w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}

func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrCorrupt, fmt.Sprintf(format, args...))
}

func truncated(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrTruncated, fmt.Sprintf(format, args...))
}

func unsupported(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrNotSupported, fmt.Sprintf(format, args...))
}
