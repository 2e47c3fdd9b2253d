// SPDX-License-Identifier: Apache-2.0

// Package regions turns NCCL's profiler events into a timeline: regions, collectives, messages and
// communicators on OTF2 locations.
//
// NCCL's events are not regions. A call (CollApi) ends before the work it asks for (Coll) begins, the
// work "stops" when it has been enqueued, the GPU's share (KernelCh) is reported later by another
// thread in another clock, and handles of ended events keep coming back as parents. The model follows
// that life cycle:
//
//	GroupApi ─┬─ CollApi, P2pApi …        what the application called, on its thread
//	          └─ KernelLaunch
//	Group (one kernel plan) ─┬─ Coll, P2p  what was enqueued: an operation, child of a call
//	                         └─ KernelCh   what the GPU ran: child of an operation, one per channel
//
// and draws three kinds of locations: application threads (calls, strictly nested), one "NCCL
// enqueue" location per communicator rank (plans that NCCL's own threads enqueue), and the
// communicator rank itself (one region per plan, with the collectives and messages in it).
//
// Operations of a communicator rank are written in issue order, which all members share; an
// operation waits until everything that belongs to it is known, or until a limit has passed. Calls
// for which NCCL reports no operation (broadcasts since 2.29, symmetric kernels) become operations
// themselves once a later group's plan shows that nothing more will come.
//
// Times are nanoseconds of the process's time line (package shard). GPU stamps are mapped onto it by
// the lower envelope of (callback time − stamp), see gpuClock; a mapped interval that cannot be true
// is not used, and counted.
//
// A Model is used by one goroutine.
package regions
