// SPDX-License-Identifier: Apache-2.0

// Package cuda links what CUPTI recorded of a process, mainly kernels, to NCCL's calls, and orders it by stream.
//
// Input are CUPTI's activity records and readings of its clock, in any order, in bursts and late; NCCL's kernel
// launches (KernelLaunch events) and the kernel plans that graphs replayed. Output are the kernels of each plan with
// their times, and the activities of each stream in order of their begins, which a [Timeline] draws.
//
// All times except CUPTI's own (fields of its records) are nanoseconds of the process's time line. Memory is bounded:
// a record waits for the clock, its row or its plan up to a limit in time and number, and is counted if it is given up
// (counts.go).
//
//	launch.go   kernels to the KernelLaunch event that launched them, by correlation ids
//	replay.go   kernels of graphs to the plans of their replays, by times and order
//	clock.go    CUPTI's times on the process's time line (package cupti), and records not covered yet
//	row.go      streams: order, and rows for overlapping activities
//	memory.go   when memory was allocated, and its class
//
// A Recorder is for one goroutine. docs/gpu.md describes CUPTI's records and when they come.
package cuda
