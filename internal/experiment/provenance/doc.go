// SPDX-License-Identifier: Apache-2.0

// Package provenance defines where and how a process was recorded: launcher, clock, memory, GPUs, CUPTI, Score-P, and
// what recording cost.
package provenance
