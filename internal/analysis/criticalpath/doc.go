// SPDX-License-Identifier: Apache-2.0

// Package criticalpath determines what a run's length consists of, and what would be saved if a rank were faster.
//
// The critical path is the chain of activities, without waiting, that leads to the run's end: each nanosecond of the
// run belongs to one activity of one rank, or to an operation. A rank that waits takes over the path of the rank that
// it waited for. So the path is found forward, in one pass: the engine of package causes reports each operation after
// everything that precedes it on its members, and each member leaves the operation with a path. The paths share most
// of their past, so they are kept as a tree of sums (tree), in which a part that belongs to a single path is a single
// node. Memory therefore grows with ranks and kinds of activities, not with events.
//
// What would be saved if ranks were as fast as others comes from package schedule, which plays the run again (Changes).
package criticalpath
