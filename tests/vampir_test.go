// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"path/filepath"
	"testing"
	"unicode/utf8"

	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// What docs/vampir.md says of an archive, chart by chart: each row has a short name and a place in the system tree, each region one group
// with a name, which is its color; messages have both their ends, and transfers a window; each counter a name, a unit and a mode.
func TestWhatVampirNeeds(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"02-allcoll-4p-net", "05-p2p-3p", "07-twocomms-streams"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, _ := play(t, recording(t, name))
			a := opened(t, filepath.Join(dir, "traces.otf2"))
			for _, l := range a.Defs.Locations {
				if name := a.Defs.String(l.Name); name == "" || utf8.RuneCountInString(name) > 24 {
					t.Errorf("row %d is called %q", l.Self, name)
				}
				if g := a.Defs.LocationGroup(l.Group); g == nil || a.Defs.SystemTreeNode(g.SystemTreeParent) == nil {
					t.Errorf("row %d has no place in the system tree", l.Self)
				}
			}
			colors := make(map[otf2.RegionRef]int)
			for _, g := range a.Defs.Groups {
				if g.Type != otf2.GroupTypeRegions {
					continue
				}
				if a.Defs.String(g.Name) == "" {
					t.Errorf("group %d of regions has no name", g.Self)
				}
				for _, r := range g.Members {
					colors[otf2.RegionRef(r)]++
				}
			}
			for _, r := range a.Defs.Regions {
				if n := colors[r.Self]; n != 1 {
					t.Errorf("region %s is in %d groups", a.Defs.String(r.Name), n)
				}
			}
			for _, m := range a.Defs.MetricMembers {
				if a.Defs.String(m.Name) == "" || a.Defs.String(m.Unit) == "" {
					t.Errorf("counter %d: name %q, unit %q", m.Self, a.Defs.String(m.Name), a.Defs.String(m.Unit))
				}
			}
			if sends := countOf(a, otf2.EventMpiIsend); sends == 0 || sends != countOf(a, otf2.EventMpiIsendComplete) || sends != countOf(a, otf2.EventMpiIrecv) {
				t.Errorf("%d messages are sent, %d received", sends, countOf(a, otf2.EventMpiIrecv))
			}
			if puts := countOf(a, otf2.EventRmaPut); puts != countOf(a, otf2.EventRmaOpCompleteNonBlocking) || puts > 0 && len(a.Defs.RmaWins) == 0 {
				t.Errorf("%d transfers, %d completed, in %d windows", puts, countOf(a, otf2.EventRmaOpCompleteNonBlocking), len(a.Defs.RmaWins))
			}
			if len(a.Defs.MetricMembers) == 0 || countOf(a, otf2.EventMetric) == 0 {
				t.Error("there are no counters")
			}
		})
	}
}
