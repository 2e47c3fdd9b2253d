// SPDX-License-Identifier: Apache-2.0

package facts

import "github.com/nccl-otf2/nccl-otf2/otf2"

// HostClocks says how well the corrected clocks of an archive's hosts are known.
type HostClocks struct {
	// Most is by how much a corrected clock may be off against the one that it was brought to, ns.
	Most     uint64 `json:"uncertainty_most_ns"`
	OneSided uint64 `json:"one_sided"` // hosts whose clocks are bounded from one side only
	Untied   uint64 `json:"untied"`    // hosts that nothing ties to others; their clocks are as recorded
	Groups   uint64 `json:"groups"`    // of hosts that are tied together: times of several do not compare
}

// HostClocksOf is nil where the clocks of hosts are as recorded.
func HostClocksOf(a *otf2.Anchor) *HostClocks {
	ps := PropertiesOf(a)
	if !ps.Has(PropClockSync) {
		return nil
	}
	c := new(HostClocks)
	for p, to := range map[Property]*uint64{
		PropSyncMost: &c.Most, PropSyncOneSided: &c.OneSided, PropSyncUntied: &c.Untied, PropSyncReference: &c.Groups,
	} {
		*to, _ = ps.Number(p)
	}
	return c
}

// Bounded tells whether times of any two hosts compare to within what Most says.
func (c *HostClocks) Bounded() bool { return c.OneSided == 0 && c.Untied == 0 && c.Groups <= 1 }
