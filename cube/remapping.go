// SPDX-License-Identifier: Apache-2.0

package cube

import "bytes"

// RemappingFile is the member of a profile that says how cube_remap2, and with it `scalasca -examine` and square, are
// to arrange the metrics of a report. Where a profile has none they take Score-P's.
const RemappingFile = "remapping.spec"

// Remapping makes the text of such a member from the metrics as they are to be, in the order of their tree. Those that
// the profile has, by their unique names, get its values; derived ones are evaluated; all others have none. The
// profile's metrics that are not among them come behind, below those that they were below.
func Remapping(metrics []Metric) ([]byte, error) {
	if err := (&Definitions{Metrics: metrics}).checkMetrics(); err != nil {
		return nil, err
	}
	for i := range metrics {
		switch m := &metrics[i]; {
		case len(m.Attributes) > 0:
			return nil, invalid("metric %d %q has attributes: cube_remap2 takes them from the profile only", i,
				m.UniqueName)
		case m.Hidden && m.Parent != None:
			return nil,
				invalid("metric %d %q is hidden and below another: cube_remap2 -d writes it several times, and no "+
					"tool reads that", i, m.UniqueName)
		}
	}
	var out bytes.Buffer
	x := newXMLWriter(&out)
	x.metrics(metrics, "", func(_ int, m *Metric) []Attribute { return []Attribute{{"type", m.Kind.String()}} })
	if err := x.Flush(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
