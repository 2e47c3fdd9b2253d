// SPDX-License-Identifier: Apache-2.0

// Package profile sums up NCCL timelines by call path and location. Its input is the events of package regions, read
// from an archive or passed on by a collector that writes none; its memory does not grow with the number of events.
//
// An [Aggregator] reads the events of any number of locations, each location's in order, and returns an [Aggregate]:
// plain tables, which a process in profile mode leaves on disk ([Aggregate.Write]). A [Writer] replaces the writer of
// an event file. Package internal/profile/cubex makes CUBE profiles of aggregates.
//
// # Trees
//
// The call tree is a forest, so that times of different kinds are never added up:
//
//	host          phase → … → call of NCCL → class of sizes     threads: time on the CPU
//	kernels       operation → algorithm and protocol → class of sizes; kernels of the application     times on the GPU
//	by network    the same operations, where only their network traffic has times
//	by duration   the same, for imported data with durations only
//	by enqueue    the same, where only the enqueueing has times, and durations are unknown
//	network       direction → phase of the oldest transfer; transfers
//
// Each operation is in the tree of operations that its TIMING_SOURCE selects. Operations launched together share one
// time. It belongs to the node "Group" (or to the function for which NCCL makes messages); the operations are below
// that node with their bytes and without time. Kernels that CUPTI reports of NCCL are left out, because the operations
// have their time.
//
// An Aggregator must be used by one goroutine at a time.
package profile
