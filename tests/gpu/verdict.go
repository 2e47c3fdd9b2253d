// SPDX-License-Identifier: Apache-2.0

package main

import "fmt"

// verdict is what became of a case. Every check adds to it.
type verdict struct {
	failures []string
	skipped  []string // checks that could not be made
	notes    []string
	sources  map[string]int // operations by what their interval is
	compared int            // operations that were compared with calls
	more     int            // failures beyond the first ones
}

// mostFailures are listed of one case.
const mostFailures = 12

func (v *verdict) fail(format string, args ...any) {
	if len(v.failures) == mostFailures {
		v.more++
		return
	}
	v.failures = append(v.failures, fmt.Sprintf(format, args...))
}

func (v *verdict) skip(format string, args ...any) {
	v.skipped = append(v.skipped, fmt.Sprintf(format, args...))
}
func (v *verdict) note(format string, args ...any) {
	v.notes = append(v.notes, fmt.Sprintf(format, args...))
}
func (v *verdict) passed() bool { return len(v.failures) == 0 }
