// SPDX-License-Identifier: Apache-2.0

package matrix

import "github.com/nccl-otf2/nccl-otf2/otf2"

// NetworkMatrix is what the ranks of one communicator sent each other over the network, as their proxies saw it:
// transfers of all protocols with their padding, for collectives and messages. It does not contain transfers within a
// machine that bypass the network.
type NetworkMatrix struct {
	Communicator string       `json:"communicator"` // the one that the network belongs to
	Comm         otf2.CommRef `json:"comm"`         // of the network
	// Ranks counts the ranks that a transfer names, or that the communicator is known to have.
	Ranks int    `json:"ranks"`
	Cells []Cell `json:"cells"` // by sender and receiver; only cells with transfers
	// UnknownSender sums up the transfers whose sender is unknown. They are in no cell.
	UnknownSender Traffic `json:"unknown_sender"`
	Total         Traffic `json:"total"`
}

// Cell is what one rank sent another.
type Cell struct {
	From int `json:"from"`
	To   int `json:"to"`
	Traffic
}

// Traffic is a number of transfers and their total bytes.
type Traffic struct {
	Transfers uint64 `json:"transfers"`
	Bytes     uint64 `json:"bytes"`
}

// Add counts a transfer of the given size.
func (t *Traffic) Add(bytes uint64) {
	t.Transfers++
	t.Bytes += bytes
}
