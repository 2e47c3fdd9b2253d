// SPDX-License-Identifier: Apache-2.0

// Package causes charges every wait to what made others wait.
//
// Who came last to an operation is not who made the others wait: it may have waited itself, for somebody on another
// communicator. So two questions are asked of each operation. Whom did its members wait for: at each instant all
// members that have not come are to blame, in equal parts. And why were those late: each is compared with one that came
// early, from when both last met on this communicator. What the late one did longer by itself is its own (its
// application, NCCL's call, its GPU); what it waited longer elsewhere has causes that are known already, and is passed
// on. So there is no inherited waiting in the result, every wait has an origin.
//
// A rank's time is told by a chain: an operation begins on it some time after the last one before it has ended (Local).
// This time is its own, and divided by when the operation was called. Along the chain own times, transfers and waits by
// their causes are added up (state); differences of two ranks' sums since they last met say why one came later.
//
// The first operations on each communicator show who started late and what connecting took (facts.StartUps). Their
// waits, and what they cause later, are start-up.
//
// It is streaming: kept are operations of which an earlier one on a member is not known yet, some parts of each rank,
// and for each member of a communicator what its sums were at the last operation. An Engine is for one goroutine.
package causes
