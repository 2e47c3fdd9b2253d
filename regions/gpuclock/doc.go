// SPDX-License-Identifier: Apache-2.0

// Package gpuclock maps NCCL's GPU stamps to the host's clock, and decides which of them can be believed.
//
// Input are pairs of a stamp, which a GPU took at the begin or end of a kernel (one channel's share of a plan: a
// KernelCh event), and the time at which NCCL reported it; and for each plan the times of its launch and of its last
// report. Output is when the plan ran, with the uncertainty, or that its stamps belong to other kernels.
//
// Host times are nanoseconds of the process's time line. Stamps are in the GPU's own clock: NVIDIA's are nanoseconds
// (globaltimer); the unit of AMD's is estimated.
//
//	Clock    of a GPU: stamp → host time, by the lower envelope of (report − stamp); clock.go, fit.go, jump.go, tick.go
//	Filter   of a communicator rank: plan → interval, unless its stamps are impossible; filter.go. Stamps that NCCL
//	         reported for later plans are returned to their own where that is certain; realign.go
//
// Neither may be shared by goroutines. docs/nccl-profiler-api.md §7 has the facts: where stamps come from, how late
// their reports are, and when NCCL reports those of other kernels.
package gpuclock
