// SPDX-License-Identifier: Apache-2.0

// Package transfers finds out why operations took long after all their members had arrived: which link between two
// ranks or which GPU was slow, and how much time that cost.
//
// It uses the transfer times of operations (facts.Details: Link, GPUHeld), which are known if NCCL's ProxySteps were
// recorded. A rank that waits for data is never blamed: only a sending rank, or a GPU that had both data and free
// buffers, can be slow.
//
//  1. A link is slow in an operation if sending on it took at least 1.25 times as long for each transfer as on the median of the operation's other
//     links of its kind (within a node or between nodes, transfers of about the same size), and the difference is at least a tenth of what the
//     operation took from its last arrival to its end. Time that the receiving GPU held up does not count.
//  2. A GPU is slow in an operation by the same two rules, applied to the time that it held up each step. Links are charged first: a rank behind a slow
//     link has no data to work on.
//  3. If an operation has too few others to compare with (messages, communicators of two), the times of the others in earlier operations are used.
//  4. An operation that took twice as long as operations of its kind usually do, for none of the reasons above, is slow for an unknown reason. Without
//     ProxySteps, this is the only rule.
//
// One slow operation proves nothing. A link or GPU is named if it was slow more often than the rate of the others
// explains (binomial test, corrected for the number of candidates), and if its excess was at least a hundredth of the
// time of all operations. The rate of the others counts operations in which they were slow by at least a quarter as
// much. Slowness that all links or GPUs share is charged to none of them.
//
// Memory grows with the number of ranks, links and kinds of operations, not with the number of operations.
package transfers
