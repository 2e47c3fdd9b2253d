// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bufio"
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/selfreport"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/internal/printable"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
)

// section is a part of the report as a table.
type section struct {
	title string
	heads []string // in the form that newTable defines
	rows  [][]string
	note  string // below the table
}

// measuredCallbacks states which callbacks were measured: in short jobs, mainly the first ones (plugin/shm.h:
// NCCLOTF2_COST_PERIOD).
const measuredCallbacks = "measured: each thread's first event, with which its memory is set up, and every 256th " +
	"after it"

func recordingSections(s *selfreport.Report) []section {
	recording := section{"Recording", []string{"<what", "<value", "<processes"}, nil, ""}
	for _, v := range s.Recording {
		recording.rows = append(recording.rows, []string{plainWords(v.Name), v.Value, v.Processes})
	}
	costs := section{"Callbacks", []string{"<callback", "<event", "samples", "mean ns", "most ns"}, nil,
		measuredCallbacks}
	for _, c := range s.Costs {
		costs.rows = append(costs.rows, []string{plainWords(c.Callback), plainWords(c.Type),
			strconv.FormatUint(c.Samples, 10),
			strconv.FormatFloat(c.MeanNs, 'f', 1, 64), strconv.FormatFloat(c.MostNs, 'f', 1, 64)})
	}
	counts := section{"Counts", []string{"<of", "<what", "number"}, nil, ""}
	for _, c := range s.Counts {
		counts.rows = append(counts.rows, []string{plainWords(c.Kind), plainWords(c.Name),
			strconv.FormatUint(c.Count, 10)})
	}
	remarks := section{"Remarks", []string{"<of", "<text"}, nil, ""}
	for _, r := range s.Remarks {
		remarks.rows = append(remarks.rows, []string{plainWords(r.Kind), r.Text})
	}
	return []section{recording, costs, counts, remarks}
}

// plainWords turns the name of a property into words.
func plainWords(name string) string {
	return strings.ToLower(strings.NewReplacer("::", " ", "_", " ").Replace(name))
}

func recordingHeading(s *selfreport.Report) string {
	complete := "complete"
	if !s.Complete {
		complete = "parts of the communication are missing"
	}
	return fmt.Sprintf("%s: by %s, %s, %s", s.Archive, units.OrDash(s.Creator),
		units.Count(int(s.Processes), "process", "processes"), complete)
}

// WriteRecordingText writes the report as text.
func WriteRecordingText(s *selfreport.Report, w io.Writer) error {
	b := bufio.NewWriter(w)
	printable.Fprintln(b, recordingHeading(s))
	for _, part := range recordingSections(s) {
		if len(part.rows) == 0 {
			continue
		}
		printable.Fprintln(b)
		t := newTable(part.heads...)
		t.rows = part.rows
		_ = t.write(b) // a buffered writer keeps its error
		if part.note != "" {
			printable.Fprintln(b, part.note)
		}
	}
	return b.Flush()
}

// WriteRecordingMarkdown writes the report as Markdown, one table per section.
func WriteRecordingMarkdown(s *selfreport.Report, w io.Writer) error {
	m := newMarkdown(w)
	printable.Fprintln(m, m.escape.Replace(recordingHeading(s)))
	for _, part := range recordingSections(s) {
		if len(part.rows) > 0 {
			m.writeTable(part.title, part.heads, part.rows)
			if part.note != "" {
				printable.Fprintf(m, "\n%s\n", m.escape.Replace(part.note))
			}
		}
	}
	return m.Flush()
}

// WriteRecordingCSV writes the report as one table of comma-separated values: section, kind, name, processes,
// value. Kinds and names are those of the archive's properties; costs are three rows each.
func WriteRecordingCSV(s *selfreport.Report, w io.Writer) error {
	c := csv.NewWriter(w)
	row := func(cells ...string) {
		for i := range cells {
			cells[i] = printable.Cell(cells[i])
		}
		_ = c.Write(cells) // the writer keeps its error
	}
	row("section", "kind", "name", "processes", "value")
	row("archive", string(property.Processes), "", "all", strconv.FormatUint(s.Processes, 10))
	row("archive", "COMPLETE", "", "all", strconv.FormatBool(s.Complete))
	for _, v := range s.Recording {
		row("recording", v.Name, "", v.Processes, v.Value)
	}
	for _, k := range s.Costs {
		row("callbacks", k.Callback+"::SAMPLES", k.Type, "all", strconv.FormatUint(k.Samples, 10))
		row("callbacks", k.Callback+"::MEAN_NS", k.Type, "all", strconv.FormatFloat(k.MeanNs, 'f', -1, 64))
		row("callbacks", k.Callback+"::MOST_NS", k.Type, "all", strconv.FormatFloat(k.MostNs, 'f', -1, 64))
	}
	for _, n := range s.Counts {
		name, processes := n.Name, "all"
		if n.Kind == string(property.LostByProcess) {
			name, processes = "", n.Name
		}
		row("counts", n.Kind, name, processes, strconv.FormatUint(n.Count, 10))
	}
	for _, r := range s.Remarks {
		row("remarks", r.Kind, "", "all", r.Text)
	}
	c.Flush()
	return c.Error()
}

// WriteRecordingJSON writes the report as one JSON object.
func WriteRecordingJSON(s *selfreport.Report, w io.Writer) error {
	return WriteJSON(w, s, "  ")
}
