// SPDX-License-Identifier: Apache-2.0

// Package criticalpath tells what a run's length is made of, and what of it would go if a rank were faster.
//
// The critical path is the chain of activities, without waiting, that leads to the run's end: each nanosecond of the
// run is one activity of one rank on it, or an operation. Whoever waits takes over the path of whom it waited for. So
// the path is found forward, in one pass: the engine of package causes tells of each operation after what came before
// it on its members, and each member leaves it with a path. Paths have most of their past in common: they are a tree of
// sums (tree), in which whatever belongs to one path only is one node. So memory grows with ranks and kinds of
// activities, not with events.
//
// What would go if a rank were as fast as the others is found by replaying the same operations with times that are
// shorter by what the delay analysis says is the rank's own (gains): for each candidate, how much earlier each
// operation would have ended. Others may then be last: what fixing one rank brings is never more than what it cost, and
// often less.
package criticalpath
