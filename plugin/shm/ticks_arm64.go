// SPDX-License-Identifier: Apache-2.0

package shm

const counterSource = ClockCNTVCT

// counter reads CNTVCT_EL0 between barriers.
func counter() uint64
