// SPDX-License-Identifier: Apache-2.0

// Package clocks answers how the clocks of an archive's hosts run against each other. Its input is the operations and
// messages that the archive holds, as package facts reads them; its output ([Fitted]) is for each host a piecewise
// linear correction with its uncertainty. Two facts of causality carry the fit: no collective ends before its last rank
// has entered it, and no message arrives before it was sent. The package measures no clock and changes no archive:
// package scorep writes the corrections as clock offsets. exchange.go and transfer.go say what each operation proves,
// fit.go how the proofs are combined. All times are nanoseconds.
package clocks
