// SPDX-License-Identifier: Apache-2.0

// Package schedule keeps the operations of a run with what they depended on, and plays them again with changes.
//
// A rank comes to an operation when the operation before it has ended and the rank has done its own work in between. A
// collective ends some time after the members that it waits for have come, and so does a launch of messages after the
// other ends that it waits for. Recorder writes both down in the order in which package causes analyzes operations:
// each after everything before it on its members. Replay reads that back and calculates, for several scenarios at once,
// how much earlier each rank would have come and ended. Played without a change, every operation keeps its recorded
// times.
//
// A scenario changes the work of a set of ranks: it becomes that of the ranks that have the same role, at the same
// place of their sequence of operations (class, places). So what is compared is the same iteration, and what is late
// with the set, because it waits for the set, gains nothing by itself. Where all ranks of the role are in the set,
// ranks that call the same functions are taken, and otherwise the work is scaled to what the other ranks work in total.
//
// Recorded operations are in a temporary file and are read in blocks. Memory grows with ranks and scenarios.
package schedule
