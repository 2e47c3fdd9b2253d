// SPDX-License-Identifier: Apache-2.0

// Package causes charges every wait to the rank and the activity that caused it.
//
// The rank that arrives last at an operation did not necessarily make the others wait: it may itself have waited for a
// rank on another communicator. So the package answers two questions for each operation. First, whom did its members
// wait for? At each instant, all members that have not arrived are blamed in equal parts. Second, why were those late?
// Each late member is compared with one that arrived early, over the time since both last met on this communicator. The
// time by which the late member was busy longer is charged to the member itself (its application, NCCL's call, its
// GPU). The time by which it waited longer elsewhere has causes that are already known, and is passed on to them. The
// result therefore contains no inherited waiting: every wait has an origin.
//
// The operations of a rank form a chain: each begins some time after the previous one on that rank has ended (Local).
// That time is the rank's own, and is divided at the moment when the operation was called. Along the chain, the package
// adds up a rank's own times, its transfers, and its waits by cause (state). The differences between the sums of two
// ranks since they last met show why one of them arrived later.
//
// The first operations on each communicator show which ranks started late and how long connecting took
// (facts.StartUps). Their waits, and the later waits that these cause, count as start-up.
//
// The package works as a stream. It keeps operations until all earlier operations of their members are known, some
// state of each rank, and for each member of a communicator its sums at the last operation. An Engine is for one
// goroutine.
package causes
