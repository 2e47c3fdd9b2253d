// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Reports say on which clocks times of several hosts are compared, and how well these are known, as the archive has it.
func TestReportsSayHowWellClocksAreKnown(t *testing.T) {
	for _, c := range []struct {
		name       string
		properties map[property.Name]string
		want       []string
	}{
		{"as recorded", nil, []string{"compared as recorded; errors of their clocks are contained in these figures."}},
		{"corrected", map[property.Name]string{property.SyncMost: "1500", property.SyncReference: "1",
			property.ClockSync.Below("CORRECTED"): "2"},
			[]string{"on corrected clocks, which may be off by up to 1.50 µs; this error is contained in these " +
				"figures."}},
		{"one-sided", map[property.Name]string{property.SyncMost: "1500", property.SyncReference: "1",
			property.SyncOneSided: "2"},
			[]string{"where they are bounded; for 2 clocks there is no bound. "}},
		{"untied", map[property.Name]string{property.SyncMost: "1500", property.SyncReference: "1",
			property.SyncUntied: "1"},
			[]string{"; nothing ties 1 host to the others. "}},
		{"groups", map[property.Name]string{property.SyncMost: "1500", property.SyncReference: "2"},
			[]string{"; nothing ties 2 groups of hosts to each other. "}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var anchor otf2.Anchor
			if c.properties != nil {
				anchor.Properties = append(anchor.Properties,
					otf2.Property{Name: property.ClockSync.Key(), Value: "made up"})
			}
			for p, v := range c.properties {
				anchor.Properties = append(anchor.Properties, otf2.Property{Name: p.Key(), Value: v})
			}
			text := clocksRemark(3, property.HostClocksOf(&anchor), false)
			for _, want := range append(c.want, "Times of 3 hosts are compared ") {
				testkit.Check(t, strings.Contains(text, want), "%q does not say %q", text, want)
			}
		})
	}
}
