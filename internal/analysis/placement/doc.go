// SPDX-License-Identifier: Apache-2.0

// Package placement finds the ranks of an archive, and where they ran: which process, host and GPU has a rank, and
// which places have a communicator's members?
package placement
