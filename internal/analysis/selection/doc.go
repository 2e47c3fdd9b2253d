// SPDX-License-Identifier: Apache-2.0

// Package selection restricts the analysis to a part of an archive: a stretch of time, ranks, communicators, phases of
// the application. It defines the grammar of the flags --from, --to, --rank, --comm and --phase, and decides for
// everything that is read whether it is selected.
//
// An operation is selected by the time when its first member began it, and for a phase by the time when its first
// member called it. So either all its members are selected or none is: results that depend on its members are the same
// as without a selection, and the two parts of a run divided at a point in time add up to the whole. Other regions,
// and transfers, are selected by their own begin. Ranks select rows, and the operations that they are members of; how
// long an operation took, and who waited in it for whom, is determined from all its members.
package selection
