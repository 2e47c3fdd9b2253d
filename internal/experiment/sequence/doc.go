// SPDX-License-Identifier: Apache-2.0

// Package sequence defines the numbering of a communicator rank's operations: which sequence does an operation belong
// to, and what does a shard say of each?
package sequence
