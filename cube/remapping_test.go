// SPDX-License-Identifier: Apache-2.0

package cube

import (
	"errors"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// A specification lists metrics as a tree, with their texts escaped, and refuses what cube_remap2 would make a damaged
// profile of.
func TestRemappingOfMetrics(t *testing.T) {
	metrics := []Metric{
		{UniqueName: "time", Type: Double, Unit: "sec", Kind: Inclusive, Parent: None, Description: "a < b"},
		{UniqueName: "part", Type: Double, Unit: "sec", Kind: PostDerived, Parent: 0, Expression: "metric::x()",
			Ratio: true},
		{UniqueName: "visits", Type: Uint64, Unit: "occ", Kind: Exclusive, Parent: None},
		{UniqueName: "ghost", Type: Double, Unit: "sec", Kind: Exclusive, Parent: None, Hidden: true},
	}
	text := testkit.Value(Remapping(metrics))(t)
	var got []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "<metric ") ||
			strings.HasPrefix(line, "</metric>") || strings.HasPrefix(line, "<uniq") ||
			strings.Contains(line, "cubepl") || strings.Contains(line, "&") {
			got = append(got, line)
		}
	}
	want := `<metric type="INCLUSIVE">|<uniq_name>time</uniq_name>|<descr>a &lt; b</descr>|<metric type="POSTDERIVED" convertible="false">|<uniq_name>part</uniq_name>|<cubepl>metric::x()</cubepl>|</metric>|</metric>|` +
		`<metric type="EXCLUSIVE">|<uniq_name>visits</uniq_name>|</metric>|<metric type="EXCLUSIVE" viztype="GHOST">|<uniq_name>ghost</uniq_name>|</metric>`
	all := strings.Join(got, "|")
	testkit.Check(t, all == want, "got\n%s\nwant\n%s", all, want)
	for what, change := range map[string]func(m []Metric) []Metric{
		"a hidden metric below another": func(m []Metric) []Metric { m[3].Parent = 2; return m },
		"attributes": func(m []Metric) []Metric {
			m[0].Attributes = []Attribute{{"k", "v"}}
			return m
		},
		"no time":                              func(m []Metric) []Metric { return m[2:3] },
		"a ratio that is not derived":          func(m []Metric) []Metric { m[2].Ratio = true; return m },
		"a metric behind what it is not below": func(m []Metric) []Metric { m[3].Parent = 1; return m },
	} {
		_, err := Remapping(change(append([]Metric(nil), metrics...)))
		testkit.Check(t, errors.Is(err, ErrInvalid), "%s: %v", what, err)
	}
}
