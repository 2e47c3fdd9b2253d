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
//	Group (one kernel plan)
//	    └─ Coll, P2p                      what was enqueued: an operation, child of a call
//	          ├─ KernelCh ─ KernelPhase  what the GPU ran: child of an operation, one per channel
//	          └─ ProxyOp ─ ProxyStep     what the network carried: one per channel and peer, one per transfer
//	CeColl ─ CeSync, CeBatch              a collective of the copy engines
//
// and draws these kinds of locations:
//
//   - application threads: calls, the application's own phases and points, strictly nested;
//   - one "NCCL enqueue" per communicator rank: plans that NCCL's own threads enqueue. Up to API v4, where
//     no calls are reported, plans stand on the threads that enqueue them;
//   - the communicator rank itself: one region per plan, with the collectives and messages in it, and the
//     phases of symmetric kernels. Plans that NCCL makes of AlltoAll, Gather or Scatter bear that name and
//     count as one operation; their messages stay messages;
//   - on request, one per channel of a communicator rank: its kernel intervals;
//   - the network of a communicator rank, "net send" and "net recv": the phase of the oldest transfer under way as
//     regions, and each transfer that was sent as an RmaPut with its end. The window is a local id (the list
//     Wins); the remote rank is that of the communicator. Windows have no create and destroy events: the
//     traffic is not the application's, and readers do not ask for them. Transfers of other processes (PXN)
//     are drawn on "PXN <process tag>.<communicator index> send". What the proxy thread does beside, on request,
//     stands on "net send"; instants of its loop (idle, active) are one region for each run, with their number;
//     within a phase, which they would hide, such a region takes no time.
//
// Operations of a communicator rank are written in issue order, which all members share; an
// operation waits until everything that belongs to it is known, or until a limit has passed. Calls
// for which NCCL reports no operation (broadcasts since 2.29, symmetric kernels) become operations
// themselves once a later group's plan shows that nothing more will come.
//
// Nothing that NCCL leaves open is kept without bound: it ends with its communicator rank, with what shows that it
// is over, or when there is too much of it. What cannot be drawn truly is left out and counted; the names
// of the counts (oddities) and their meanings stand in oddity.go. An operation captured into a graph is drawn at each
// replay that NCCL reports, never at its capture.
//
// Times are nanoseconds of the process's time line (package experiment). GPU stamps are mapped onto it by
// the lower envelope of (callback time − stamp), see package gpuclock; a mapped interval that cannot be true
// is not used, and counted.
//
// A Model is used by one goroutine.
package regions
