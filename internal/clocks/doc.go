// SPDX-License-Identifier: Apache-2.0

// Package clocks fits the clocks of hosts to each other from an archive's operations and messages between them, as
// package facts reads them: no collective ends before its last rank has entered, no message arrives before it was sent.
// It measures nothing and changes nothing: package scorep writes what it finds as clock offsets. exchange.go and
// transfer.go say what operations bind, fit.go how the bounds are put together. Times are nanoseconds.
package clocks
