// SPDX-License-Identifier: Apache-2.0

// Package view makes other archives of a native one, for tools that want it otherwise. The native archive is only
// read.
//
// [Scalasca] makes an archive that scout.mpi of Scalasca 2.6 analyzes: NCCL's operations as MPI's, one process and one
// location per rank. scout carries the recorded communication out again with real MPI calls. So the view must hold
// only operations that all members have, in an order in which no rank waits for ever. And as scout computes waiting
// from any times, only operations whose begins can be compared may look like ones that ranks wait in.
//
//	read    operations of each communicator rank (56 bytes each), with the phases and calls they are of (90 bytes each), locations in parallel
//	match   what not every member has, or in another order, is dropped; messages get their other end
//	settle  which times can be compared
//	spread  operations of a rank that overlap go to processes of their own
//	order   one order for all communicators, see scheduler
//	clip    operations of a process that overlap all the same end when the next one begins
//	untime  what would look like waiting, but is not, is shown without
//	late    senders do not wait for receivers where scout would hang on it
//	write   one location after the other
//
// [Simple] makes an archive for readers that know few kinds of records; it copies rows one by one.
//
// Memory of the first grows with operations, not with events; time is linear in both.
package view
