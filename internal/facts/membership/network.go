// SPDX-License-Identifier: Apache-2.0

package membership

import "github.com/nccl-otf2/nccl-otf2/otf2"

// Windows maps each RMA window to its communicator; windows without one are left out.
func Windows(defs *otf2.Definitions) map[otf2.RmaWinRef]*Communicator {
	comms := AllCommunicators(defs)
	all := make(map[otf2.RmaWinRef]*Communicator, len(defs.RmaWins))
	for _, w := range defs.RmaWins {
		if c := comms[w.Comm]; c != nil {
			all[w.Self] = c
		}
	}
	return all
}
