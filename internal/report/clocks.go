// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"

	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
)

// clocksRemark states how well the clocks of several hosts agree; inexact: the figures state an uncertainty, which does
// not include the clocks'.
func clocksRemark(hosts int, c *property.HostClocks, inexact bool) string {
	but := "."
	if inexact {
		but = ", but not in their stated uncertainty."
	}
	switch {
	case c == nil:
		return fmt.Sprintf(
			"Times of %d hosts are compared as recorded; errors of their clocks are contained in these figures%s",
			hosts, but)
	case c.Bounded():
		return fmt.Sprintf(
			"Times of %d hosts are compared on corrected clocks, which may be off by up to %s; this error is "+
				"contained in these figures%s", hosts, units.Time(float64(c.Most)), but)
	}
	text := fmt.Sprintf(
		"Times of %d hosts are compared on corrected clocks, which may be off by up to %s where they are bounded",
		hosts, units.Time(float64(c.Most)))
	if c.OneSided > 0 {
		text += fmt.Sprintf("; for %s there is no bound", units.Count(int(c.OneSided), "clock", "clocks"))
	}
	if c.Untied > 0 {
		text += fmt.Sprintf("; nothing ties %s to the others", units.Count(int(c.Untied), "host", "hosts"))
	}
	if c.Groups > 1 {
		text += fmt.Sprintf("; nothing ties %d groups of hosts to each other", c.Groups)
	}
	return text + fmt.Sprintf(". This error is contained in these figures%s", but)
}
