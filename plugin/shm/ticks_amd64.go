// SPDX-License-Identifier: Apache-2.0

package shm

const counterSource = ClockTSC

// counter reads the TSC between load fences.
func counter() uint64
