// SPDX-License-Identifier: Apache-2.0

// Package bandwidth makes nccl-tests' table of what was recorded: operations by communicator, function, size and
// whatever else makes them differ, with their times and bandwidths. How long an operation took, which ones count, and
// what its bandwidth is says package facts (Timing, Speed); this package brings operations of one kind together and
// makes rows of them.
package bandwidth
