// SPDX-License-Identifier: Apache-2.0

// Package regions turns the records of NCCL's profiler events into a timeline: regions, collectives, messages and
// communicators on OTF2 locations.
//
// Input are the records of one process, ordered per ring, with times on the process's time line in nanoseconds (package
// experiment). Output are the events of each location, written to a [Sink], and the description of the process
// (description.Process) with its definitions, counts and pending operations.
//
// NCCL's events are not regions. A call (CollApi) ends before the work that it asks for (Coll) begins, the work "stops"
// when it has been enqueued, another thread reports the GPU's share (KernelCh) later and by another clock, and later
// events refer to handles of ended ones as their parents. [Model] follows that life cycle:
//
//	GroupApi ─┬─ CollApi, P2pApi …        what the application called, on its thread
//	          └─ KernelLaunch
//	Group (one kernel plan)
//	    └─ Coll, P2p                      what was enqueued: an operation, child of a call
//	          ├─ KernelCh ─ KernelPhase  what the GPU ran: child of an operation, one per channel
//	          └─ ProxyOp ─ ProxyStep     what the network carried: one per channel and peer, one per transfer
//	CeColl ─ CeSync, CeBatch              a collective of the copy engines
//
// and draws these kinds of locations:
//
//   - application threads: calls, the application's own phases and points, strictly nested;
//   - one "NCCL enqueue" per communicator rank: plans that NCCL's own threads enqueue. Up to API v4, which reports no
//     calls, plans stand on the threads that enqueue them;
//   - the communicator rank itself: one region per plan, with its collectives and messages, and the phases of symmetric
//     kernels. A plan that NCCL makes of AlltoAll, Gather or Scatter is named after that function and counts as one
//     operation; its messages stay messages;
//   - on request, one per channel of a communicator rank: its kernel intervals;
//   - the network of a communicator rank, "net send" and "net recv": the phase of the oldest transfer under way as
//     regions, and each sent transfer as an RmaPut with its end. The window is a local id (the list Wins); the remote
//     rank is that of the communicator. Windows have no create and destroy events: the traffic is not the
//     application's, and readers do not need them. Transfers of other processes (PXN) are drawn on "PXN <process
//     tag>.<communicator index> send". On request, "net send" has the other activities of the proxy thread; a run of
//     instants of its loop (idle, active) is one region with their number, without duration if it lies within a phase.
//
// Invariants: Operations of a communicator rank are written in issue order, which all members share; an operation waits
// until all its events have come, or until a limit. Calls without operations (broadcasts since 2.29, symmetric kernels)
// become operations when a plan of a later group shows that no event of them will come. An operation captured into a
// graph is drawn at each replay that NCCL reports, never at its capture. Memory is bounded: events that NCCL never ends
// are dropped with their communicator rank, by evidence that they are over, or by a limit. What cannot be drawn
// correctly is left out and counted; oddity.go explains the counts. GPU stamps are mapped by package gpuclock; an
// impossible interval is not used, and counted.
//
// A Model is for one goroutine.
package regions
