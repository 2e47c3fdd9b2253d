// SPDX-License-Identifier: Apache-2.0

// Package profile sums up timelines of NCCL: from the events of package regions, whether they are read from an archive
// or come from a collector that writes none, it makes values by call path and location, in memory that does not grow
// with the number of events.
//
// An [Aggregator] takes the events of any number of locations, each location's in order, and gives an [Aggregate]:
// plain tables, which are what a process in profile mode leaves on disk ([Aggregate.Write]). A [Writer] stands where an
// event file's writer would. Package internal/profile/cubex makes CUBE profiles of aggregates.
//
// # Trees
//
// The call tree is a forest, so that times of different kinds are never added up:
//
//	host          phase → … → call of NCCL → class of sizes     threads: time on the CPU
//	kernels       operation → algorithm and protocol → class of sizes; kernels of the application     times on the GPU
//	by network    the same operations where only their network traffic tells when they were
//	by duration   the same of imported data that tells their length alone
//	by enqueue    the same where only enqueueing is known: not how long they took
//	network       direction → phase of the oldest transfer; transfers
//
// Every operation is in one of the four trees of operations, as its TIMING_SOURCE says. Operations that were launched
// together have one time: it is that of the node "Group" (or of the function that NCCL makes of messages), and the
// operations stand below it with their bytes and without time. Kernels that CUPTI reports of NCCL are left out: their
// time is that of the operations.
//
// An Aggregator is for one goroutine.
package profile
