// SPDX-License-Identifier: Apache-2.0

// Package transfers finds what made operations take long once all their members had come: which link between two ranks,
// or which GPU, was slow, and what that cost.
//
// It decides by what operations say of their own transfers (facts.Details: Link, GPUHeld), which is there where NCCL's
// ProxySteps were recorded. The rank that waits for data is never the one that is slow: only a rank that sends, and a
// GPU that had data and room, can be.
//
//  1. A link is slow in an operation if sending on it took at least 1.25 times as long for each transfer as on the median of the operation's other
//     links of its kind (within a node or between nodes, transfers of about the same size), and the difference is at least a tenth of what the
//     operation took from its last arrival to its end. What the receiving GPU held up is not the link's.
//  2. A GPU is slow in an operation by the same two rules, of how long it held each step up. The links' part comes first: a rank behind a slow
//     link has nothing to work on.
//  3. Where too few others are in the operation (messages, communicators of two), what the others took before is what it is held against.
//  4. An operation that took twice as long as operations of its kind usually do, for no reason above, is slow for an unknown one. That is all that
//     is known without ProxySteps.
//
// One operation proves nothing. Somebody is named who was slow more often than the others' rate of it explains
// (binomial test, corrected for the number of those who might have been named), and whose slowness was a hundredth of
// all that operations took. Only times that others were slow by a quarter as much, about, count. What all do alike is
// nobody's.
//
// Memory grows with ranks, links and kinds of operations, not with operations.
package transfers
