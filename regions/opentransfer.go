// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"cmp"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
)

// The network state of an operation at a moment, from its open ProxySteps: it shows which transfer of a hanging job is
// stuck.

// maxPendingTransfers bounds the transfers listed for one operation; those whose phase began first are listed.
const maxPendingTransfers = 16

// openTransfers lists the first open transfer of each channel, peer and direction.
func (op *operation) openTransfers() (all []description.Transfer) {
	for _, o := range op.plan.net.proxies {
		var first *proxyStep
		for _, s := range o.steps {
			if s.phase != netNone && (first == nil || s.number < first.number) {
				first = s
			}
		}
		if o.op != op || first == nil {
			continue
		}
		all = append(all, description.Transfer{
			Peer: int(o.peer), Send: o.send, Channel: int(o.channel), Step: int(first.number),
			Phase: netPhases[first.phase].name,
			Bytes: uint64(max(first.bytes, 0)), Since: first.since,
		})
	}
	slices.SortStableFunc(all, func(a, b description.Transfer) int { return cmp.Compare(a.Since, b.Since) })
	return all[:min(len(all), maxPendingTransfers)]
}
