// SPDX-License-Identifier: Apache-2.0

// Package measurement reads what a Score-P measurement has left, as far as it must be known to put something beside it:
// the processes and threads of its trace (Open), which of ours are the same (Pair), and how a process's times become
// those of the measurement (Transfer).
package measurement
