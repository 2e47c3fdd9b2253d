// SPDX-License-Identifier: Apache-2.0

// Package gpuclock brings NCCL's GPU stamps onto the host's clock, and decides which of them can be believed.
//
// In: pairs of a stamp, which a GPU took when a kernel (one channel's share of a plan: a KernelCh event) began or
// ended, and of the time at which NCCL reported it; and of each plan when it was launched and when its last report
// came. Out: when the plan ran, and what that may be off by; or that its stamps cannot be its own.
//
// Host times are nanoseconds of the process's time line. Stamps are in the GPU's own clock: NVIDIA's are nanoseconds
// (globaltimer), the unit of AMD's is found out.
//
//	Clock    of a GPU: stamp → host time, by the lower envelope of (report − stamp); clock.go, fit.go, jump.go, tick.go
//	Filter   of a communicator rank on it: plan → interval, unless its stamps cannot be true; filter.go. Stamps that were handed to later
//	         plans are given back where it is certain whose they are; realign.go
//
// Neither is for use by several goroutines. The facts are those of docs/nccl-profiler-api.md §7: where stamps come
// from, how late their reports are, and when NCCL hands out those of other kernels.
package gpuclock
