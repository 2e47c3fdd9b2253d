// SPDX-License-Identifier: Apache-2.0

package cubex

import (
	"encoding/xml"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/cube"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// specMetric is a metric of a remapping specification, by a reader of its own.
type specMetric struct {
	Type       string       `xml:"type,attr"`
	Viztype    string       `xml:"viztype,attr"`
	Name       string       `xml:"uniq_name"`
	Display    string       `xml:"disp_name"`
	Unit       string       `xml:"uom"`
	Expression string       `xml:"cubepl"`
	Below      []specMetric `xml:"metric"`
}

// The arrangement has each metric of a profile once, makes the others of those below them, and shares the time out.
func TestRemapping(t *testing.T) {
	file, _ := profileArchive(t, makeJob(t, 1))
	p := testkit.Value(cube.Open(file))(t)
	defer p.Close()
	text := testkit.Value(p.ReadFile(cube.RemappingFile))(t)
	var spec struct {
		Metrics []specMetric `xml:"metric"`
	}
	testkit.Must(t, xml.Unmarshal(text, &spec))
	places := make(map[string]int)
	var walk func(list []specMetric)
	walk = func(list []specMetric) {
		for _, m := range list {
			places[m.Name]++
			var names []string
			for _, b := range m.Below {
				names = append(names, "metric::"+b.Name+"()")
			}
			i := indexOf(p.Metrics, m.Name)
			switch {
			case m.Viztype == "GHOST":
				testkit.Check(t, i < 0 && m.Expression == "", "%s is hidden", m.Name)
			case m.Name == "algbw" ||
				m.Name == "busbw": // of metrics of the profile, which readers of profiles would not know
				testkit.Check(t, i < 0 && m.Type == "POSTDERIVED" &&
					strings.Contains(m.Expression, "metric::nccl_busy_time()"), "%s is %+v", m.Name, m)
			case i < 0:
				testkit.Check(t, m.Type == "POSTDERIVED" && len(names) != 0 &&
					m.Expression == strings.Join(names, " + "), "%s is in no profile: %+v", m.Name, m)
			case m.Display != p.Metrics[i].DisplayName || m.Unit != p.Metrics[i].Unit ||
				m.Expression != p.Metrics[i].Expression:
				t.Errorf("%s is %+v, in the profile %+v", m.Name, m, p.Metrics[i])
			}
			walk(m.Below)
		}
	}
	walk(spec.Metrics)
	for _, m := range p.Metrics {
		testkit.Check(t, places[m.UniqueName] == 1, "%s is there %d times", m.UniqueName, places[m.UniqueName])
	}
	for name, n := range places {
		testkit.Check(t, n == 1, "%s is there %d times", name, n)
	}
	testkit.Equal(t, spec.Metrics[0].Name, "time", "the first metric")
	var under func(m *specMetric) []string
	under = func(m *specMetric) (list []string) {
		if m.Type != "POSTDERIVED" && m.Name != "time" {
			return []string{m.Name}
		}
		for i := range m.Below {
			list = append(list, under(&m.Below[i])...)
		}
		return list
	}
	got := under(&spec.Metrics[0])
	for _, name := range []string{shareApplication, shareKernels, shareEnqueue, shareOperation, shareUnplaced,
		shareNetwork, shareProxy, shareIdle} {
		n := strings.Count(" "+strings.Join(got, " ")+" ", " "+name+" ")
		testkit.Check(t, n == 1, "%s is %d times in the time: %v", name, n, got)
	}
	testkit.Check(t, len(got) == 8, "the time is made of %v", got)
}

func indexOf(metrics []cube.Metric, unique string) int {
	for i := range metrics {
		if metrics[i].UniqueName == unique {
			return i
		}
	}
	return -1
}
