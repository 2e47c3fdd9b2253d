// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/nccl-otf2/nccl-otf2/analysis"
	"github.com/nccl-otf2/nccl-otf2/internal/printable"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// reportSection is a part of the report that is made on request.
type reportSection struct {
	name, help string
	make       func(*reportInput) (part, error)
}

// part is a section that has been made: its tables, and what it is in JSON.
type part struct {
	document *analysis.Document
	json     any
	problems []string
}

// reportSections are the sections, in the order in which they are printed. The names are those of flags and of
// members of the JSON form.
var reportSections = []reportSection{
	{"waits", "who waited for whom: by cause, rank, GPU, host, communicator, operation, phase; transfers", makeWaits},
	{"tally", "time by name, as iprof tabulates: calls, operations, transfers, phases", makeTally},
	{"matrix", "bytes and bandwidth from rank to rank, from host to host, by channel", makeMatrix},
	{"overlap", "how much communication was hidden behind computation, where kernels were recorded", makeOverlap},
	{"hang", "operations that are not complete, and who is missing: while the job runs, or when it has died", makeHang},
}

// reportInput is what sections are made of.
type reportInput struct {
	arg        string
	archive    *otf2.Archive // open once a section needs it
	damage     error         // of its definitions
	operations *analysis.Report
	progress   *progress
}

// open opens the archive. Damaged definitions are no error here: what is there is reported on.
func (in *reportInput) open() (*otf2.Archive, error) {
	if in.archive == nil {
		a, err := openArchive(in.arg)
		if a == nil {
			return nil, err
		}
		in.archive, in.damage = a, err
	}
	return in.archive, nil
}

func (in *reportInput) close() {
	if in.archive != nil {
		in.archive.Close()
	}
}

// read makes the report of operations, for all sections that are part of it.
func (in *reportInput) read() (*analysis.Report, error) {
	if in.operations != nil {
		return in.operations, nil
	}
	a, err := in.open()
	if err != nil {
		return nil, err
	}
	defer in.working(a)()
	in.operations, err = analysis.Operations(a)
	return in.operations, err
}

func (in *reportInput) working(a *otf2.Archive) (stop func()) {
	return in.progress.working("reading " + a.Path())
}

func makeWaits(in *reportInput) (part, error) {
	r, err := in.read()
	if err != nil {
		return part{}, err
	}
	return part{r.WaitStates.Document(), r.WaitStates, r.Problems}, nil
}

func makeTally(in *reportInput) (part, error) {
	a, err := in.open()
	if err != nil {
		return part{}, err
	}
	defer in.working(a)()
	r := analysis.Tally(a)
	return part{r.Document(), r, r.Problems}, nil
}

func makeMatrix(in *reportInput) (part, error) {
	a, err := in.open()
	if err != nil {
		return part{}, err
	}
	defer in.working(a)()
	r := analysis.Matrix(a)
	return part{r.Document(), r, r.Problems}, nil
}

func makeOverlap(in *reportInput) (part, error) {
	a, err := in.open()
	if err != nil {
		return part{}, err
	}
	defer in.working(a)()
	r := analysis.FindOverlap(a)
	return part{r.Document(), r, r.Problems}, nil
}

// makeHang looks at the shards, not at the archive: there may be none.
func makeHang(in *reportInput) (part, error) {
	dir := in.arg
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		dir = filepath.Dir(dir)
	}
	if _, err := os.Stat(filepath.Join(dir, "shards")); err != nil {
		if _, err := os.Stat(filepath.Join(dir, "..", "shards")); err == nil {
			dir = filepath.Join(dir, "..") // of one run of several
		}
	}
	r, err := analysis.Hang(dir, time.Now())
	if errors.Is(err, fs.ErrNotExist) {
		return part{}, fmt.Errorf("%s has no shards: what is under way is only in the experiment directory of a job", in.arg)
	}
	if err != nil {
		return part{}, err
	}
	return part{r.Document(), r, r.Problems}, nil
}

func reportCommand() *cobra.Command {
	f := choice{"table", []string{"table", "json", "csv", "markdown"}}
	by := choice{"size", []string{"size", "class"}}
	var self bool
	wanted := make([]bool, len(reportSections))
	cmd := &cobra.Command{
		Use:   "report ARCHIVE|DIR",
		Short: "Print bandwidths per operation and size, and which rank made others wait",
		Long: `Reads the whole archive and prints what is in it, a table like that of nccl-tests (one row per
communicator, operation, datatype and size), what the phases took that the program marked, if it did, and
which rank the others waited for. Sizes and bandwidths are counted as nccl-tests does. docs/report.md explains the columns and the fields of the JSON form.

With flags for sections it prints these instead.

With --self it says how the archive was recorded: library, versions, event types, clock, what the
plugin's callbacks cost, and what was paused or lost. It looks at no events.`,
		Example: `  nccl-otf2 report exp1
  nccl-otf2 report exp1 --by class --format csv
  nccl-otf2 report exp1 --waits
  nccl-otf2 report exp1 --hang
  nccl-otf2 report exp1 --self
  nccl-otf2 report exp1 --format json`,
		Args: exactly("an experiment directory or archive"),
		RunE: func(cmd *cobra.Command, args []string) error {
			in := &reportInput{arg: args[0], progress: newProgress()}
			defer in.close()
			var sections []reportSection
			for i, on := range wanted {
				if on {
					sections = append(sections, reportSections[i])
				}
			}
			switch {
			case self && len(sections) > 0:
				return usagef("--self stands alone: report the other sections by another command")
			case by.value != "size" && (self || len(sections) > 0):
				return usagef("--by is for the table of operations")
			case self:
				return reportSelf(cmd.OutOrStdout(), in, f.value)
			case len(sections) > 0:
				return reportParts(cmd.OutOrStdout(), in, sections, f.value)
			}
			return reportAll(cmd.OutOrStdout(), in, by.value, f.value)
		},
	}
	for i, s := range reportSections {
		cmd.Flags().BoolVar(&wanted[i], s.name, false, s.help)
	}
	cmd.Flags().BoolVar(&self, "self", false, "say how the archive was recorded")
	cmd.Flags().Var(&by, "by", "rows of the table of operations: size, or class of sizes")
	cmd.Flags().Var(&f, "format", "output: table, json, csv or markdown")
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(f.of, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("by", cobra.FixedCompletions(by.of, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func reportSelf(w io.Writer, in *reportInput, format string) error {
	a, err := in.open()
	if err != nil {
		return err
	}
	s := analysis.SelfReport(a)
	write := map[string]func(io.Writer) error{"table": s.WriteText, "json": s.WriteJSON, "csv": s.WriteCSV, "markdown": s.WriteMarkdown}
	return readerGone(write[format](w))
}

// reportAll prints the summary, the operations, phases and waits.
func reportAll(w io.Writer, in *reportInput, by, format string) error {
	r, err := in.read()
	if err != nil {
		return err
	}
	if in.damage != nil { // definitions are damaged; what is there has been reported on
		r.Problems = append([]string{oneLine(in.damage.Error())}, r.Problems...)
	}
	if by == "class" {
		r.BySizeClass()
	}
	switch format {
	case "json":
		err = writeJSON(w, r)
	case "table":
		err = r.WriteText(w)
	default:
		err = writeDocument(w, r.Document(), format)
	}
	if err != nil {
		return readerGone(err)
	}
	if len(r.Problems) > 0 {
		return exitCode(exitInput)
	}
	return nil
}

func writeDocument(w io.Writer, d *analysis.Document, format string) error {
	switch format {
	case "csv":
		return d.WriteCSV(w)
	case "markdown":
		return d.WriteMarkdown(w)
	}
	return d.WriteText(w)
}

// reportParts prints the sections that were asked for.
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
		if format == "json" {
			all[s.name] = p.json
			continue
		}
		if i > 0 {
			if _, err := printable.Fprintln(w); err != nil {
				return readerGone(err)
			}
		}
		if err := writeDocument(w, p.document, format); err != nil {
			return readerGone(err)
		}
	}
	if in.damage != nil {
		problems = append([]string{oneLine(in.damage.Error())}, problems...)
	}
	if format == "json" {
		all["problems"] = append([]string{}, problems...)
		if err := writeJSON(w, all); err != nil {
			return readerGone(err)
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
