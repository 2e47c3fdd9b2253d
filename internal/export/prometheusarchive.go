// SPDX-License-Identifier: Apache-2.0

package export

import (
	"cmp"
	"io"
	"strconv"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/timing"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Prometheus writes a file for the node exporter's textfile collector, or to stdout if path is "-". Operations without
// GPU time are left out, as Inspector leaves them out, such as were launched together with different ones, which have
// no time of their own, and those of start-up.
func Prometheus(a *otf2.Archive, path string, stdout io.Writer, opts *Options) (*Result, error) {
	e := newExporter(a, opts)
	speeds := make(map[promKey]map[uint64]*sizeTimes[float64])
	problems, err := operations.EachPart(a, e.opts.Selection, analysis.Slice{}, func(p *operations.Part) error {
		duration := e.rows.clock.nanoseconds(int64(p.End - p.Begin))
		switch {
		case p.Source == "network" || p.Source == "enqueue":
			e.countLeftOut("operations without GPU time")
			return nil
		case !p.HasBandwidth():
			e.countLeftOut("operations launched together with others")
			return nil
		case p.StartUp:
			e.countLeftOut("operations of start-up")
			return nil
		case duration <= 0:
			e.countLeftOut("operations without length")
			return nil
		}
		k := e.promKey(p)
		s := sizeTimesOf(speeds, k, p.Size)
		if s.times.Count == 0 {
			*s = sizeTimes[float64]{float64(p.Size) * p.BusFactor, timing.NewSpeed().Times}
		}
		s.times.Add(float64(duration) / float64(max(p.Equal, 1)))
		e.countRecord("operations")
		return nil
	})
	e.addProblems(problems)
	if err != nil {
		return nil, err
	}
	report, err := operations.Observe(a, &operations.Observer{Selection: e.opts.Selection})
	if err != nil {
		return nil, err
	}
	e.addProblems(report.Problems)
	x := e.newExposition(speeds, report)
	err = e.writeFile(path, stdout, func(w io.Writer) (err error) {
		e.result.Records["samples"], err = x.write(w)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &e.result, nil
}

// newExposition gathers what is written of an archive.
func (e *exporter) newExposition(speeds map[promKey]map[uint64]*sizeTimes[float64],
	report *operations.Report) *exposition {
	x := &exposition{kind: archiveMetric, job: e.opts.Job, version: promVersion(e.archive.Anchor.Properties),
		buckets: make(map[promKey]promBucket), culprits: report.Verdict.Culprits, set: report.Verdict.Set,
		lost: report.Summary.Lost, duration: report.Summary.Duration}
	for k, sizes := range speeds {
		x.buckets[k] = sumSizes(sizes)
	}
	if report.WaitStates.Total.Parts == 0 {
		return x
	}
	for i := range report.WaitStates.Ranks {
		if w := &report.WaitStates.Ranks[i]; !w.NoData {
			x.ranks = append(x.ranks, &rankSums{node: w.Host, rank: w.Name, time: w.Time, waited: w.Waited,
				waitKnown: true, goesBack: w.GoesBack})
		}
	}
	return x
}

func (e *exporter) promKey(p *operations.Part) promKey {
	row := e.rows.of[p.Location]
	k := promKey{
		message: p.Message(), node: cmp.Or(row.process.host, "unknown"), gpu: promGPU(row.gpu),
		comm:  cmp.Or(p.Communicator, "unknown"),
		nodes: "unknown", ranks: p.Ranks, function: p.Function, size: lowerBound(p.Share),
	}
	if c := e.rows.comms[p.Comm]; c != nil && c.nodes > 0 {
		k.nodes = strconv.Itoa(c.nodes)
	}
	if !k.message {
		k.algoProto = cmp.Or(p.Algorithm, "unknown") + "_" + cmp.Or(p.Protocol, "unknown")
	}
	return k
}
