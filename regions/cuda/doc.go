// SPDX-License-Identifier: Apache-2.0

// Package cuda links what CUPTI recorded of a process, kernels above all, to NCCL's calls, and brings it in order.
//
// In: CUPTI's activity records and readings of its clock, in any order and late, as they come in bursts; NCCL's kernel
// launches (KernelLaunch events) and the kernel plans that graphs replayed. Out: which kernels are a plan's and when
// they ran; and each activity of a stream, in order of their beginnings, for a timeline to draw.
//
// All times but CUPTI's own (fields of its records) are nanoseconds of the process's time line. Nothing is kept without
// bound: what waits for the clock, for its row or for its plan does so up to a limit in time and number, and what is
// given up is counted (counts.go).
//
//	launch.go   kernels to the KernelLaunch event that they were launched under, by correlation ids
//	replay.go   kernels of graphs to the plans that replays brought, by times and order
//	clock.go    CUPTI's times on the process's time line (package cupti), and what waits until the clock covers them
//	row.go      streams: order, and rows for activities beside each other
//	memory.go   which memory was allocated when, and of what class it is
//
// A Recorder is used by one goroutine. What CUPTI's records hold and when they come stands in docs/gpu.md.
package cuda
