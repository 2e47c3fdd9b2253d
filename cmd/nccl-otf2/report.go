// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/bandwidth"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/hang"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/hang/ras"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/matrix"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/overlap"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/placement"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/selection"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/selfreport"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/tally"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/printable"
	"github.com/nccl-otf2/nccl-otf2/internal/report"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// reportSection is a part of the report that a flag selects.
type reportSection struct {
	name, help string
	make       func(*reportInput) (part, error)
}

// part is the result of a section: its tables, and its value in JSON.
type part struct {
	document *report.Document
	json     any
	problems []string
}

// reportSections are the sections in the order of the output. Their names are also those of flags and of members in
// JSON.
var reportSections = []reportSection{
	{"nccl-tests", "operations in the columns of nccl-tests: out of place beside in place, call times, devices",
		makeNCCLTests},
	{"waits", "who waited for whom: by cause, rank, GPU, host, communicator, operation, phase; transfers", makeWaits},
	{"path", "the critical path: what the run's length consists of, and how much shorter it would be if a rank were " +
		"faster", makePath},
	{"tally", "time by name, as iprof tabulates: calls, operations, transfers, phases",
		readPart(tally.Read, report.Tally, func(r *tally.Report) []string { return r.Problems })},
	{"matrix", "bytes and bandwidth from rank to rank, from host to host, by channel",
		readPart(matrix.Read, report.Matrix, func(r *matrix.Report) []string { return r.Problems })},
	{"overlap", "how much communication was hidden behind computation, where kernels were recorded",
		readPart(overlap.Read, report.Overlap, func(r *overlap.Report) []string { return r.Problems })},
	{"hang", "operations that are not complete, and who is missing: while the job runs, or after it has died",
		makeHang},
}

// reportInput is the input of sections.
type reportInput struct {
	arg        string
	archive    *otf2.Archive // opened when a section needs it
	damage     error         // of its definitions
	operations *operations.Report
	progress   *progressLine
	style      report.Style
	average    string // which time of an operation a table in nccl-tests' format shows
	first      bool   // operations of start-up count like others
	spec       selection.Spec
	selected   *selection.Selection // set when the archive is open
	absolute   bool                 // show points in time as times of day
	ras        string               // file or address of NCCL's RAS output; "": do not use RAS
}

// openArchive opens the archive. Damaged definitions are not an error: the report covers the readable part.
func (in *reportInput) openArchive() (*otf2.Archive, error) {
	if in.archive == nil {
		a, err := openArchive(in.arg)
		if a == nil {
			return nil, err
		}
		in.archive, in.damage = a, err
		stop := in.showProgress(a)
		in.selected, err = selection.Resolve(a, in.spec)
		stop()
		if err != nil {
			return nil, err
		}
	}
	return in.archive, nil
}

func (in *reportInput) close() {
	if in.archive != nil {
		in.archive.Close()
	}
}

// readOperations computes the report of operations for all sections that are part of it.
func (in *reportInput) readOperations() (*operations.Report, error) {
	if in.operations != nil {
		return in.operations, nil
	}
	a, err := in.openArchive()
	if err != nil {
		return nil, err
	}
	defer in.showProgress(a)()
	in.operations, err = operations.Observe(a, &operations.Observer{Selection: in.selected})
	return in.operations, err
}

func (in *reportInput) showProgress(a *otf2.Archive) (stop func()) {
	return in.progress.showWorking("reading " + a.Path())
}

func makeWaits(in *reportInput) (part, error) {
	r, err := in.readOperations()
	if err != nil {
		return part{}, err
	}
	clock := report.Clock{Begin: uint64(r.Summary.Begin), Absolute: in.absolute}
	return part{report.Waits(r.WaitStates, clock, selfreport.Differing(in.archive.Anchor)...), r.WaitStates,
		r.Problems}, nil
}

func makeNCCLTests(in *reportInput) (part, error) {
	a, err := in.openArchive()
	if err != nil {
		return part{}, err
	}
	rows, problems := in.bandwidthRows(a)
	r := &report.NCCLTests{Archive: a.Path(),
		Devices: slices.DeleteFunc(placement.Devices(a.Defs),
			func(d placement.Device) bool { return !in.selected.Rank(d.Rank) }), Selection: in.selected.Describe(),
		Tests: bandwidth.Tests(rows)}
	return part{report.NCCLTestsDocument(r, in.average), r, problems}, nil
}

func makePath(in *reportInput) (part, error) {
	r, err := in.readOperations()
	if err != nil {
		return part{}, err
	}
	return part{report.CriticalPath(r.CriticalPath), r.CriticalPath, r.Problems}, nil
}

// readPart makes a section of what read reads of an archive by itself.
func readPart[R any](read func(*otf2.Archive, *selection.Selection) *R, show func(*R) *report.Document,
	problems func(*R) []string) func(*reportInput) (part, error) {
	return func(in *reportInput) (part, error) {
		a, err := in.openArchive()
		if err != nil {
			return part{}, err
		}
		defer in.showProgress(a)()
		r := read(a, in.selected)
		return part{show(r), r, problems(r)}, nil
	}
}

// makeHang reads the shards, because there may be no archive.
func makeHang(in *reportInput) (part, error) {
	dir, temporary := in.arg, false
	if anchor, name, err := findArchive(dir); err == nil && anchor != name { // of a recording, or imported
		dir, temporary = anchor, true
	} else if err := requirePath(dir, "the experiment directory of a job"); err != nil {
		return part{}, err
	}
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		dir = filepath.Dir(dir)
	}
	if _, err := os.Stat(filepath.Join(dir, "shards")); err != nil {
		if _, err := os.Stat(filepath.Join(dir, "..", "shards")); err == nil {
			dir = filepath.Join(dir, "..") // one run of several
		}
	}
	var status *ras.Status
	var unread error // the shards suffice without RAS
	if in.ras != "" {
		status, unread = ras.Read(in.ras)
	}
	p := newProgress()
	waitForCollectors(context.Background(), dir, experiment.Await{}, p)
	p.clearLine()
	behind, watching := watchJob(context.Background(), dir, watchPatience)
	r, err := hang.Find(dir, time.Now(), status)
	if errors.Is(err, fs.ErrNotExist) {
		return part{}, fmt.Errorf("%s has no shards: what is under way is only in the experiment directory of a job",
			in.arg)
	}
	if err != nil {
		return part{}, err
	}
	if temporary {
		r.Directory = in.arg
	}
	if unread != nil {
		r.Problems = append(r.Problems, "what RAS says is left out: "+oneLine(unread.Error()))
	}
	if behind > 0 || watching != nil {
		r.Problems = append(r.Problems, behindText(behind, watching))
	}
	return part{report.Hang(r), r, r.Problems}, nil
}

// reportRequest holds the flags of a report.
type reportRequest struct {
	format, by, average         choice
	self, absolute, first, page bool
	top                         rows
	wanted                      []bool // by index of reportSections
	ras, picture, output        string
	spec                        selection.Spec
}

func reportCommand() *cobra.Command {
	q := &reportRequest{
		format:  choice{"table", []string{"table", "json", "csv", "markdown"}},
		by:      choice{"size", []string{"size", "class"}},
		average: choice{report.Averages[0], report.Averages}, top: rows(defaultRows),
		wanted: make([]bool, len(reportSections)),
	}
	cmd := &cobra.Command{
		Use:   "report ARCHIVE|DIR|FILE…",
		Short: "Say what made ranks wait, and print bandwidths by operation and size",
		Long: `Reads the whole archive and prints a summary, a table like that of nccl-tests (one row per communicator, operation,
datatype and size), the times of the phases that the program marked, and what made ranks wait. Sizes and bandwidths
are computed as in nccl-tests. docs/report.md explains the columns and the fields of the JSON form.

With flags for sections, it prints those instead. Tables are sorted by what matters (time, waiting caused, bytes) and
show the first 20 rows, with a line about the others; on a terminal they fit its width. CSV and JSON contain
everything, in the order of the archive. The last line suggests what to look at next.

With --html it writes the report as one self-contained page without scripts, for a browser, an email or paper: the
answer, waiting over time, the operations that cost the most, efficiencies, bandwidth over size, and the tables.

With --self it says how the archive was recorded: library, versions, event types, clock, what the plugin's callbacks
cost, and what was paused or lost. This reads no events.

Instead of an archive, it takes a recording of NCCL's calls, or one or several files of other profilers: nccl-otf2
import --help lists them.`,
		Example: `  nccl-otf2 report exp1
  nccl-otf2 report exp1 --by class --format csv
  nccl-otf2 report exp1 --nccl-tests
  nccl-otf2 report exp1 --html
  nccl-otf2 report exp1 --html -o run.html --from 1.5s
  nccl-otf2 report exp1 --svg bandwidth.svg
  nccl-otf2 report exp1 --from 1.5s --to 2s --rank 0,4-7
  nccl-otf2 report exp1 --waits --comm 'tp*'
  nccl-otf2 report exp1 --waits
  nccl-otf2 report exp1 --waits --top all --absolute
  nccl-otf2 report exp1 --path
  nccl-otf2 report exp1 --hang
  nccl-otf2 report exp1 --hang --ras n1:28028
  nccl-otf2 report exp1 --self
  nccl-otf2 report trace_rank0.json.gz trace_rank1.json.gz
  nccl-otf2 report exp1 --format json`,
		Args: minimumArgs("an experiment directory or archive"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := q.checkFlags(cmd.Flags().Changed); err != nil {
				return err
			}
			arg, err := importSeveral(args)
			if err != nil {
				return err
			}
			return q.writeReport(cmd.OutOrStdout(), arg)
		},
	}
	q.addFlags(cmd)
	return cmd
}

func (q *reportRequest) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	for i, s := range reportSections {
		f.BoolVar(&q.wanted[i], s.name, false, s.help)
	}
	addSelection(cmd, &q.spec)
	f.StringVar(&q.ras, "ras", "",
		"with --hang: also use NCCL's RAS, from a file of what ncclras printed (JSON or text) or from the job's RAS "+
			"at HOST:PORT")
	f.BoolVar(&q.self, "self", false, "say how the archive was recorded")
	f.StringVar(&q.picture, "svg", "",
		"draw bus bandwidth over size into this SVG file instead of printing the report; - for standard output")
	f.BoolVar(&q.page, "html", false, "write the report as a page: one file without scripts, which prints well")
	f.StringVarP(&q.output, "output", "o", "",
		"with --html: file to write; - for standard output (default report.html beside the archive)")
	f.Var(&q.top, "top", "number of rows of each table in text, or all")
	f.BoolVar(&q.absolute, "absolute", false,
		"show points in time as times of day (UTC), not since the beginning of the run")
	f.BoolVar(
		&q.first, "first", false, "include the first operation of each communicator (start-up) in times and bandwidths")
	addChoice(cmd, &q.average, "average",
		"with --nccl-tests: how to combine an operation's times on its ranks, as its option -a: avg, rank0, min or max")
	addChoice(cmd, &q.by, "by", "rows of the table of operations: by size, or by class of sizes")
	addChoice(cmd, &q.format, "format", "output: table, json, csv or markdown")
}

// chosenSections returns the requested sections, in the order of reportSections.
func (q *reportRequest) chosenSections() (all []reportSection) {
	for i, on := range q.wanted {
		if on {
			all = append(all, reportSections[i])
		}
	}
	return all
}

// checkFlags returns an error for flags that contradict each other; changed reports which were given.
func (q *reportRequest) checkFlags(changed func(flag string) bool) error {
	if err := q.spec.Check(); err != nil {
		return usagef("%v", err)
	}
	sections := q.chosenSections()
	asked := func(name string) bool {
		return slices.ContainsFunc(sections, func(s reportSection) bool { return s.name == name })
	}
	parts := q.self || len(sections) > 0
	for _, refused := range []struct {
		when bool
		why  string
	}{
		{q.ras != "" && !asked("hang"), "--ras is for --hang"},
		{changed("average") && !asked("nccl-tests"), "--average is for --nccl-tests"},
		{!q.spec.Empty() && (q.self || asked("hang") || asked("path")),
			"--from, --to, --rank, --comm and --phase select events: --self and --hang look at none, and --path is " +
				"of the whole run"},
		{q.self && len(sections) > 0, "--self stands alone: report the other sections by another command"},
		{q.picture != "" && (parts || q.by.value != "size" || changed("format")),
			"--svg is a picture of the table of operations: it goes with --first alone"},
		{q.page && (q.picture != "" || parts || changed("format")),
			"--html is the report as a page: it has all that the report has, and goes with no other form or section"},
		{q.output != "" && !q.page, "-o is for --html"},
		{q.by.value != "size" && parts, "--by is for the table of operations"},
		{q.first && parts && !asked("nccl-tests"), "--first is for the table of operations, and --nccl-tests"},
	} {
		if refused.when {
			return usagef("%s", refused.why)
		}
	}
	return nil
}

// writeReport writes the report of an archive or directory.
func (q *reportRequest) writeReport(w io.Writer, arg string) error {
	in := &reportInput{arg: arg, progress: newProgress(), absolute: q.absolute, ras: q.ras, average: q.average.value,
		first: q.first, spec: q.spec}
	in.style = report.Style{Top: int(q.top), Width: terminalWidth(w), Absolute: q.absolute, Color: colored(w)}
	defer in.close()
	switch sections := q.chosenSections(); {
	case q.picture != "":
		return reportPicture(w, in, q.picture)
	case q.self:
		return reportSelf(w, in, q.format.value)
	case len(sections) > 0:
		return reportParts(w, in, sections, q.format.value)
	case q.page:
		return reportPage(w, in, q.by.value, q.first, q.output)
	}
	return reportAll(w, in, q.by.value, q.first, q.format.value)
}

// reportPicture draws bandwidth over size into a file, or to w.
func reportPicture(w io.Writer, in *reportInput, file string) error {
	a, err := in.openArchive()
	if err != nil {
		return err
	}
	rows, problems := in.bandwidthRows(a)
	curves := bandwidth.Curves(rows)
	if len(curves) == 0 {
		return fmt.Errorf("%s has no operation with a bandwidth: record the job with NCCL_OTF2_EVENTS=gpu", a.Path())
	}
	title := a.Path() + ": medians"
	if !in.first {
		title += ", start-up left out"
	}
	if !in.spec.Empty() {
		title += "; " + in.spec.String()
	}
	draw := func(w io.Writer) error { return report.WriteCurves(w, title, curves) }
	if file == "-" {
		err = ignoreClosedPipe(draw(w))
	} else {
		err = writeOutput(file, "--svg", draw)
	}
	if err != nil || len(problems) == 0 {
		return err
	}
	for _, text := range problems {
		printable.Fprintln(os.Stderr, "nccl-otf2:", oneLine(text))
	}
	return exitCode(exitInput)
}

// reportPage writes the report as a page.
func reportPage(w io.Writer, in *reportInput, by string, first bool, output string) error {
	r, err := in.readReport(by, first)
	if err != nil {
		return err
	}
	if output == "" {
		output = filepath.Join(filepath.Dir(in.archive.Path()), "report.html")
	}
	write := func(w io.Writer) error {
		return report.WriteHTML(r, w, report.HTML{Style: in.style, Version: toolVersion})
	}
	if output == "-" {
		err = ignoreClosedPipe(write(w))
	} else if err = writeOutput(output, "-o", write); err == nil {
		printable.Fprintln(w, paint(w, bold, relativePath(output)))
	}
	if err == nil && len(r.Problems) > 0 {
		return exitCode(exitInput)
	}
	return err
}

// readReport computes the report of operations with the requested options.
func (in *reportInput) readReport(by string, first bool) (*operations.Report, error) {
	r, err := in.readOperations()
	if err != nil {
		return nil, err
	}
	if in.damage != nil { // damaged definitions: the readable part has been reported
		r.Problems = append([]string{oneLine(in.damage.Error())}, r.Problems...)
	}
	if first {
		r.KeepFirst()
	}
	if by == "class" {
		r.BySizeClass()
	}
	return r, nil
}

// bandwidthRows reads only the rows of an archive's operations.
func (in *reportInput) bandwidthRows(a *otf2.Archive) (rows []bandwidth.Row, problems []string) {
	defer in.showProgress(a)()
	return bandwidth.Read(a, in.first, in.selected)
}

func reportSelf(w io.Writer, in *reportInput, format string) error {
	a, err := in.openArchive()
	if err != nil {
		return err
	}
	s := selfreport.Read(a)
	write := map[string]func(*selfreport.Report, io.Writer) error{
		"table": report.WriteRecordingText, "json": report.WriteRecordingJSON, "csv": report.WriteRecordingCSV,
		"markdown": report.WriteRecordingMarkdown,
	}
	return ignoreClosedPipe(write[format](s, w))
}

// reportAll prints the summary, the operations, phases and waits.
func reportAll(w io.Writer, in *reportInput, by string, first bool, format string) error {
	r, err := in.readReport(by, first)
	if err != nil {
		return err
	}
	switch format {
	case "json":
		err = writeJSON(w, r)
	case "table":
		err = report.WriteStyled(r, w, in.style)
	default:
		err = writeDocument(w, report.Operations(r), format, in.style)
	}
	if err != nil {
		return ignoreClosedPipe(err)
	}
	if len(r.Problems) > 0 {
		return exitCode(exitInput)
	}
	return nil
}

func writeDocument(w io.Writer, d *report.Document, format string, style report.Style) error {
	switch format {
	case "csv":
		return d.WriteCSV(w)
	case "markdown":
		return d.WriteMarkdown(w)
	}
	return d.WriteStyled(w, style)
}

// reportParts prints the requested sections.
func reportParts(w io.Writer, in *reportInput, sections []reportSection, format string) error {
	all := make(map[string]any)
	var problems []string
	seen := make(map[string]bool)
	for i, s := range sections {
		p, err := s.make(in)
		if err != nil {
			return err
		}
		for _, text := range p.problems {
			if !seen[text] {
				seen[text] = true
				problems = append(problems, text)
			}
		}
		p.document.DescribeSelection(in.selected.Describe())
		if format == "json" {
			all[strings.ReplaceAll(s.name, "-", "_")] = p.json
			continue
		}
		if i > 0 {
			if _, err := printable.Fprintln(w); err != nil {
				return ignoreClosedPipe(err)
			}
		}
		if err := writeDocument(w, p.document, format, in.style); err != nil {
			return ignoreClosedPipe(err)
		}
	}
	if in.damage != nil {
		problems = append([]string{oneLine(in.damage.Error())}, problems...)
	}
	if format == "json" {
		if d := in.selected.Describe(); d != nil {
			all["selection"] = d
		}
		all["problems"] = append([]string{}, problems...)
		if err := writeJSON(w, all); err != nil {
			return ignoreClosedPipe(err)
		}
	}
	if len(problems) == 0 {
		return nil
	}
	if format != "json" {
		for _, text := range problems {
			printable.Fprintln(os.Stderr, "nccl-otf2:", oneLine(text))
		}
	}
	return exitCode(exitInput)
}
