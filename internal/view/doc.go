// SPDX-License-Identifier: Apache-2.0

// Package view converts a native archive for tools that cannot read it as it is. The native archive is only read.
//
// [Scalasca] makes an archive that scout.mpi of Scalasca 2.6 analyzes: NCCL's operations as MPI's, with one process and
// one location per rank. scout replays the recorded communication with real MPI calls, so the view holds only
// operations that all members have, in an order that cannot deadlock. scout derives waiting from any times, so only
// operations whose begins can be compared are shown such that ranks may wait in them. The steps are:
//
//	read          operations of each communicator rank (56 bytes each) and their phases and calls (90 bytes each)
//	match         drops what some member lacks or has in another order; pairs the ends of messages
//	compareTimes  decides which times can be compared
//	splitRows     gives overlapping operations of a rank processes of their own
//	orderUnits    finds one order for all communicators, see scheduler
//	clip          ends an operation of a process where the next one begins
//	markUntimed   removes apparent waiting that is none
//	breakNotices  removes waiting for receivers where scout would hang on it
//	write         writes one location after the other
//
// [Simple] makes an archive for readers that know few kinds of records; it copies rows one by one. Both take time
// linear in the number of events; the memory of [Scalasca] grows with the number of operations.
package view
