// SPDX-License-Identifier: Apache-2.0

package description

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// End is how and when the job process ended.
type End struct {
	// Time is when the system had ended the process, on its own time line; 0 if that was not observed. With the clock
	// "host" it is the program's last clock value.
	Time uint64 `json:"time"`
	// Status is what waitpid(2) returned to the process's parent; nil if it is unknown: only the parent knows it for
	// certain, and what the system reports to others depends on its version.
	Status *uint32 `json:"status,omitempty"`
	// Called is set if its exit handlers have begun, so that it called exit, or returned from main.
	Called bool `json:"called"`
}

// Signal returns the signal that ended the process; 0 if none is known.
func (e *End) Signal() unix.Signal {
	if e == nil || e.Status == nil || !unix.WaitStatus(*e.Status).Signaled() {
		return 0
	}
	return unix.WaitStatus(*e.Status).Signal()
}

// Died reports whether the process did not end in order: by a signal, with another exit code than 0, or in an unknown
// way without a call of exit.
func (e *End) Died() bool {
	switch {
	case e == nil:
		return false
	case e.Status != nil:
		return *e.Status != 0
	}
	return !e.Called
}

// String describes how the process ended, as in "Rank 3: killed by SIGSEGV"; "" if nothing is known.
func (e *End) String() string {
	switch {
	case e == nil:
		return ""
	case e.Signal() != 0:
		if name := unix.SignalName(e.Signal()); name != "" {
			return "killed by " + name
		}
		return fmt.Sprintf("killed by signal %d", int(e.Signal()))
	case e.Status != nil && *e.Status != 0:
		return fmt.Sprintf("exited with code %d", unix.WaitStatus(*e.Status).ExitStatus())
	case e.Status == nil && !e.Called:
		return "ended without exit (killed, or by _exit)"
	}
	return "exited"
}
