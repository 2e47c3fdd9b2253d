// SPDX-License-Identifier: Apache-2.0

package matrix

import "github.com/nccl-otf2/nccl-otf2/otf2"

// NetworkMatrix is what the ranks of one communicator sent each other over the network, as their
// proxies saw it: transfers of all protocols with their padding, and of collectives as well as of
// messages. Transfers within a machine that use no network are not in it.
type NetworkMatrix struct {
	Communicator string       `json:"communicator"` // that the network belongs to
	Comm         otf2.CommRef `json:"comm"`         // of the network
	// Ranks that any transfer names, or that the communicator is known to have.
	Ranks int    `json:"ranks"`
	Cells []Cell `json:"cells"` // by sender and receiver; only those with transfers
	// UnknownSender are transfers of senders whose rank was not told; they are in no cell.
	UnknownSender Traffic `json:"unknown_sender"`
	Total         Traffic `json:"total"`
}

// Cell is what one rank sent another.
type Cell struct {
	From int `json:"from"`
	To   int `json:"to"`
	Traffic
}

// Traffic is a number of transfers and their bytes together.
type Traffic struct {
	Transfers uint64 `json:"transfers"`
	Bytes     uint64 `json:"bytes"`
}

// Add counts a transfer of so many bytes.
func (t *Traffic) Add(bytes uint64) {
	t.Transfers++
	t.Bytes += bytes
}
