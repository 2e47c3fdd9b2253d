// SPDX-License-Identifier: Apache-2.0

// Package bandwidth makes nccl-tests' table of what was recorded: operations by communicator, function, size and
// further differences, with their times and bandwidths. Package facts defines how long an operation took, which ones
// count, and what the bandwidth is (Timing, Speed); this package groups operations of one kind into rows.
package bandwidth
