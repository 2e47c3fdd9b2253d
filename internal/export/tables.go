// SPDX-License-Identifier: Apache-2.0

package export

import (
	"errors"
	"io"
	"strconv"

	"github.com/parquet-go/parquet-go/compress"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/phases"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/placement"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/selfreport"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/membership"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
)

// PhaseRow is a row of the table of phases: one time that the application ran through a phase on one thread.
type PhaseRow struct {
	Run      string `parquet:"run,dict"`
	Phase    string `parquet:"phase,dict"` // with those around it: "step 17 / forward"
	Kind     string `parquet:"kind,dict"`  // "step * / forward"
	Depth    int32  `parquet:"depth"`      // phases around it
	RankName string `parquet:"rank_name,dict"`
	Host     string `parquet:"host,dict"`
	Begin    int64  `parquet:"begin_ns"`
	End      int64  `parquet:"end_ns"`
	Duration int64  `parquet:"duration_ns"`
	NCCL     int64  `parquet:"nccl_ns"` // of that, in NCCL's API
	Location uint64 `parquet:"location"`
}

// RunRow is the row of the table of runs: what the archive is of.
type RunRow struct {
	Run       string  `parquet:"run"`
	Job       *string `parquet:"job,optional"`
	Begin     int64   `parquet:"begin_ns"`
	Duration  int64   `parquet:"duration_ns"`
	Processes int32   `parquet:"processes"` // with data
	Ranks     int32   `parquet:"ranks"`     // of the job, those without data included
	Hosts     int32   `parquet:"hosts"`
	Clocks    *int64  `parquet:"clocks_ns,optional"` // what the clocks of hosts may differ by
	Complete  bool    `parquet:"complete"`
}

// runName names the archive in all tables, so that those of several can be read as one.
func (e *exporter) runName() string { return strconv.FormatUint(e.archive.Anchor.TraceID, 16) }

func (e *exporter) writePhases(w io.Writer, codec compress.Codec) error {
	t := newTable[PhaseRow](e, w, "phases", codec)
	clock := &e.rows.clock
	var err error
	problems := phases.Each(e.archive, func(o *phases.Occurrence) {
		row := e.rows.of[o.Location]
		if err != nil || row == nil || !e.opts.Selection.At(o.Location, o.Begin) {
			return
		}
		p := PhaseRow{
			Run: e.runName(), Phase: o.Path, Kind: o.Kind, Depth: int32(o.Depth), RankName: row.process.name,
			Host:  row.process.host,
			Begin: clock.since1970(o.Begin), End: clock.since1970(o.End), NCCL: clock.nanoseconds(int64(o.NCCL)),
			Location: uint64(o.Location),
		}
		p.Duration = p.End - p.Begin
		err = t.add(p)
	})
	e.addProblems(problems)
	return errors.Join(err, t.close())
}

// writeRuns writes what the archive is of; it follows waits.
func (e *exporter) writeRuns(w io.Writer, codec compress.Codec) error {
	t := newTable[RunRow](e, w, "runs", codec)
	a, c := e.archive, &e.rows.clock
	hosts := make(map[string]bool)
	for _, p := range e.rows.processes {
		hosts[p.host] = true
	}
	ranks, _ := placement.Ranks(a.Defs, membership.Communicators(a.Defs))
	ps := property.Read(a.Anchor)
	missing, _ := ps.Number(property.ProcessesMissing)
	row := RunRow{
		Run: e.runName(), Job: textOrNone(e.opts.Job), Begin: c.since1970(e.span.Begin),
		Duration:  c.nanoseconds(int64(e.span.Last - e.span.First)),
		Processes: int32(len(e.rows.processes)), Ranks: int32(len(ranks)), Hosts: int32(len(hosts)),
		Complete: !ps.Incomplete(),
	}
	if missing > 0 { // the node of those whose host is not known
		row.Hosts--
		row.Processes -= int32(selfreport.AbsentGroups(a.Defs, missing))
	}
	if hc := property.HostClocksOf(a.Anchor); hc != nil {
		row.Clocks = valueIfKnown(int64(hc.Most), hc.Groups <= 1)
	}
	return errors.Join(t.add(row), t.close())
}
