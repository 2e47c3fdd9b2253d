// SPDX-License-Identifier: Apache-2.0

package export

import (
	"bufio"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/waits"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
)

// reportMetric is one of those that Inspector has not: what the report says.
type reportMetric struct {
	name, help string
	samples    func(r *operations.Report) []reportSample
}

type reportSample struct {
	labels [][2]string
	value  float64
}

// seconds are those of ns, to the last ns.
func seconds(ns float64) float64 { return ns / 1e9 }

// ofRanks is a metric of each rank that has data.
func ofRanks(value func(w *waits.Row) (ns float64, known bool)) func(r *operations.Report) []reportSample {
	return func(r *operations.Report) (all []reportSample) {
		if r.WaitStates.Total.Parts == 0 {
			return nil
		}
		for i := range r.WaitStates.Ranks {
			w := &r.WaitStates.Ranks[i]
			if ns, known := value(w); known && !w.NoData {
				all = append(all, reportSample{[][2]string{{"node", w.Host}, {"rank", w.Name}}, seconds(ns)})
			}
		}
		return all
	}
}

// reportMetrics are what the report says of the run, without start-up.
var reportMetrics = []reportMetric{
	{"nccl_otf2_run_duration_seconds", "From the run's first event to its last.",
		func(r *operations.Report) []reportSample {
			return []reportSample{{nil, seconds(float64(r.Summary.Duration))}}
		}},
	{"nccl_otf2_operations_seconds", "Time of a rank in operations whose members' times can be compared.",
		ofRanks(func(w *waits.Row) (float64, bool) { return float64(w.Time), true })},
	{"nccl_otf2_waited_seconds", "Of that, waiting for others.",
		ofRanks(func(w *waits.Row) (float64, bool) { return float64(w.Waited), true })},
	{"nccl_otf2_goes_back_seconds", "What others waited because of what a rank did itself.",
		ofRanks(func(w *waits.Row) (float64, bool) {
			if w.GoesBack == nil {
				return 0, false
			}
			return *w.GoesBack, true
		})},
	{"nccl_otf2_culprit_share", "Whom the verdict names: share of all waiting that goes back to it.",
		func(r *operations.Report) (all []reportSample) {
			for i := range r.Verdict.Culprits {
				c := &r.Verdict.Culprits[i]
				all = append(all, reportSample{[][2]string{{"node", c.Host}, {"rank", units.RankName(c.Rank)},
					{"kind", string(c.Kind)}}, c.Share})
			}
			return all
		}},
	{"nccl_otf2_lost_records", "Records that were lost, by why and of what; none has a sample of 0.",
		func(r *operations.Report) (all []reportSample) {
			for _, what := range slices.Sorted(maps.Keys(r.Summary.Lost)) {
				all = append(all, reportSample{[][2]string{{"reason", what}}, float64(r.Summary.Lost[what])})
			}
			if len(all) == 0 {
				all = []reportSample{{[][2]string{{"reason", "none"}}, 0}}
			}
			return all
		}},
}

// writeReport writes what the report says.
func (e *exporter) writeReport(w *bufio.Writer, r *operations.Report) {
	job := [2]string{"slurm_job_id", cmp.Or(e.opts.Job, "unknown")}
	for _, m := range reportMetrics {
		samples := m.samples(r)
		if len(samples) == 0 {
			continue
		}
		fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s gauge\n", m.name, m.help, m.name)
		for _, s := range samples {
			writeSample(w, m.name, append([][2]string{job}, s.labels...), s.value, -1)
			e.result.Records["samples"]++
		}
	}
}

// writeSample writes a line; digits: -1: as many as the value has.
func writeSample(w *bufio.Writer, name string, labels [][2]string, value float64, digits int) {
	fmt.Fprintf(w, "%s{", name)
	for i, l := range labels {
		if i > 0 {
			w.WriteByte(',')
		}
		fmt.Fprintf(w, "%s=\"%s\"", l[0], escapeLabel.Replace(strings.ToValidUTF8(l[1], "�")))
	}
	fmt.Fprintf(w, "} %s\n", strconv.FormatFloat(value, 'g', digits, 64))
}
