// SPDX-License-Identifier: Apache-2.0

// Package selection says which part of an archive is looked at: a stretch of time, ranks, communicators, phases of the
// application. It has the grammar of the flags --from, --to, --rank, --comm and --phase, and decides for all that is
// read whether it belongs to the selection.
//
// An operation belongs to it by when its first member began it, to a phase by when its first member called it, so that
// all its members do or none: what is worked out of its members is what it is without a selection, and the parts of a
// run that a point in time divides have together what the run has. Other regions, and transfers, belong to it by their
// own begin. Ranks choose operations that they are members of, and rows: how long an operation took, and who waited in
// it for whom, is of all its members.
package selection
