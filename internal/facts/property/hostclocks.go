// SPDX-License-Identifier: Apache-2.0

package property

import "github.com/nccl-otf2/nccl-otf2/otf2"

// HostClocks states how accurately the clocks of an archive's hosts were synchronized.
type HostClocks struct {
	// Most is the largest error (ns) of a corrected clock against its reference clock.
	Most     uint64 `json:"uncertainty_most_ns"`
	OneSided uint64 `json:"one_sided"` // hosts whose clocks are bounded from one side only
	Untied   uint64 `json:"untied"`    // hosts without common events with others; their clocks are as recorded
	Groups   uint64 `json:"groups"`    // of synchronized hosts; times of different groups do not compare
}

// HostClocksOf returns nil if the hosts' clocks are as recorded.
func HostClocksOf(a *otf2.Anchor) *HostClocks {
	ps := Read(a)
	if !ps.Has(ClockSync) {
		return nil
	}
	c := new(HostClocks)
	for p, to := range map[Name]*uint64{
		SyncMost: &c.Most, SyncOneSided: &c.OneSided, SyncUntied: &c.Untied, SyncReference: &c.Groups,
	} {
		*to, _ = ps.Number(p)
	}
	return c
}

// Bounded reports whether times of any two hosts compare to within Most.
func (c *HostClocks) Bounded() bool { return c.OneSided == 0 && c.Untied == 0 && c.Groups <= 1 }
