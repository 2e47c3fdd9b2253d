// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/selection"
	"github.com/nccl-otf2/nccl-otf2/internal/export"
	"github.com/nccl-otf2/nccl-otf2/internal/printable"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/sql"
)

// exportForm is an export format.
type exportForm struct {
	name, help string
	output     string // default name of the file or folder beside the archive
	folder     bool
	write      func(a *otf2.Archive, path string, stdout io.Writer, opts *export.Options, codec string) (
		*export.Result, error)
}

// exportForms are the export formats by flag.
var exportForms = []exportForm{
	{"jsonl", "records in the schema of the minimal profiler, a file per process", "jsonl", true,
		func(a *otf2.Archive, path string, _ io.Writer, opts *export.Options, _ string) (*export.Result, error) {
			return export.JSONL(a, path, opts)
		}},
	{"perfetto", "the timeline in Perfetto's own format, with waits and causes", "trace.pftrace", false,
		func(a *otf2.Archive, path string, stdout io.Writer, opts *export.Options, _ string) (*export.Result, error) {
			return export.Perfetto(a, path, stdout, opts)
		}},
	{"parquet", "tables of operations, transfers, waits, phases for DuckDB, Spark, pandas", sql.FolderName, true,
		func(a *otf2.Archive, path string, _ io.Writer, opts *export.Options, codec string) (*export.Result, error) {
			return export.Parquet(a, path, codec, opts)
		}},
	{"prometheus", "metrics for the node exporter's textfile collector, named as NCCL Inspector's", "nccl_otf2.prom",
		false,
		func(a *otf2.Archive, path string, stdout io.Writer, opts *export.Options, _ string) (*export.Result, error) {
			return export.Prometheus(a, path, stdout, opts)
		}},
	{"chakra", "execution traces of MLCommons Chakra, which ASTRA-sim plays, a file per rank", "chakra", true,
		func(a *otf2.Archive, path string, _ io.Writer, opts *export.Options, _ string) (*export.Result, error) {
			return export.Chakra(a, path, opts)
		}},
	{"program", "what the ranks called of NCCL, as a program that calls it again", "program.txt", false,
		func(a *otf2.Archive, path string, stdout io.Writer, opts *export.Options, _ string) (*export.Result, error) {
			return export.Program(a, path, stdout, opts)
		}},
}

func exportCommand() *cobra.Command {
	var f choice
	var output, job, parts string
	var spec selection.Spec
	codec := choice{export.Codecs()[0], export.Codecs()}
	every, beside := time.Duration(0), false
	var with []string
	wanted := make([]bool, len(exportForms))
	cmd := &cobra.Command{
		Use:   "export ARCHIVE|DIR",
		Short: "Write an archive's data in formats that other tools read",
		Long: `Writes the content of an archive in one of these formats:

  --jsonl        the records of the minimal profiler: a folder with a file per process; nccl-otf2 import reads them
  --perfetto     the timeline in Perfetto's own format (ui.perfetto.dev, trace_processor): tracks of hosts, processes,
                 GPUs, streams; operations with size, bandwidth, algorithm; who waited for whom, what made the ranks
                 wait; lines from calls to operations, through the parts of collectives, along messages and transfers;
                 metrics; gzip if the name ends in .gz
  --parquet      a folder of five tables (docs/tables.md), which the queries in sql/ read; with --parts, several CPUs or
                 machines write it at the same time
  --prometheus   a file for the node exporter's textfile collector, put in place when it is complete; with --every, of a
                 job that runs, as the setting NCCL_OTF2_PROMETHEUS keeps it
  --chakra       a folder with an execution trace of MLCommons Chakra for each rank, and the members of communicators,
                 as ASTRA-sim reads them: the operations that all members ended, with the work in between
  --program      a file with the same operations as calls, rank by rank, with the work before them as delays: a
                 program that calls NCCL again, to reproduce what a job did without its code

docs/export.md has the schemas, which are stable, and example queries. What a format cannot express, and what the
archive does not contain, is left out and never made up; the tool says how much was left out. Archives may be larger
than memory. The same archive always gives the same bytes.`,
		Example: `  nccl-otf2 export exp1 --perfetto
  nccl-otf2 export exp1 --perfetto -o - | gzip >/tmp/run.pftrace.gz
  nccl-otf2 export exp1 --parquet -o tables --compression snappy
  nccl-otf2 export exp1 --parquet --parts 16
  duckdb -c "SELECT function, count(*), median(busbw_gbs) FROM 'tables/operations.parquet' GROUP BY ALL"
  nccl-otf2 export exp1 --perfetto --phase 'step 7' --rank 0-3
  nccl-otf2 export exp1 --perfetto --with torch-0.json.gz@node1 --with torch-8.json.gz@node2
  nccl-otf2 export exp1 --jsonl --job $SLURM_JOB_ID -o minimal_profiler_dump
  nccl-otf2 export exp1 --prometheus -o /var/lib/node_exporter/nccl_otf2.prom
  nccl-otf2 export exp1 --chakra --phase 'step 7' -o /tmp/step7
  nccl-otf2 export exp1 --program --to 30s -o - | gzip >reproducer.txt.gz
  nccl-otf2 export exp1 --prometheus --every 15s -o /var/lib/node_exporter`,
		Args: exactArgs("an experiment directory or archive"),
		RunE: func(cmd *cobra.Command, args []string) error {
			i := slices.Index(wanted, true)
			if i < 0 || slices.Contains(wanted[i+1:], true) {
				return usagef("choose one format: --jsonl, --perfetto, --parquet, --prometheus, --chakra or --program")
			}
			if err := spec.Check(); err != nil {
				return usagef("%v", err)
			}
			form := &exportForms[i]
			if cmd.Flags().Changed("compression") && form.name != "parquet" {
				return usagef("--compression is for --parquet: a name that ends in .gz compresses --perfetto")
			}
			opts := export.Options{Job: job, Version: toolVersion}
			if parts != "" && form.name != "parquet" {
				return usagef("--parts is for --parquet")
			}
			if err := readParts(parts, &opts); err != nil {
				return err
			}
			if output == "-" && form.folder {
				return usagef("--%s makes several files: -o must name a folder", form.name)
			}
			if cmd.Flags().Changed("every") {
				switch {
				case form.name != "prometheus" || spec != (selection.Spec{}):
					return usagef("--every is for --prometheus, without a selection")
				case every < leastEvery || every > mostEvery:
					return usagef("--every must be between %v and %v, not %v", leastEvery, mostEvery, every)
				}
				return keepMetrics(cmd, args[0], output, cmp.Or(job, os.Getenv("SLURM_JOB_ID")), every, beside)
			}
			if len(with) > 0 {
				if form.name != "perfetto" || output == "-" {
					return usagef("--with is for --perfetto, and makes a file")
				}
				form = perfettoWith(form, with)
			}
			return runExport(cmd, form, args[0], output, codec.value, &opts, spec, f)
		},
	}
	for i, form := range exportForms {
		cmd.Flags().BoolVar(&wanted[i], form.name, false, form.help)
	}
	cmd.Flags().StringVarP(&output, "output", "o", "",
		"file or folder to write; - for standard output (default: jsonl, trace.pftrace, parquet, nccl_otf2.prom, "+
			"chakra or program.txt beside the archive)")
	cmd.Flags().StringVar(&job, "job", "", "id of the job, used in file names and labels")
	addSelection(cmd, &spec)
	cmd.Flags().DurationVar(&every, "every", 0,
		"with --prometheus: keep metrics of the job that runs in DIR, written anew after this time (1s to 1m), until "+
			"it ends")
	cmd.Flags().BoolVar(&beside, "beside", false, "with --every: a collector started it")
	_ = cmd.Flags().MarkHidden("beside")
	cmd.Flags().StringArrayVar(&with, "with", nil,
		"with --perfetto: another tool's trace (`FILE@HOST`: PyTorch's profiler, Perfetto), on the same clock; a tar file with all is made; may be repeated")
	cmd.Flags().StringVar(&parts, "parts", "",
		"split the large Parquet tables into N files, written in parallel; K/N: write only part K")
	addChoice(cmd, &codec, "compression", "compression of Parquet tables: zstd, snappy or none")
	addFormat(cmd, &f)
	return cmd
}

// perfettoWith is Perfetto's form with traces of other tools.
func perfettoWith(form *exportForm, texts []string) *exportForm {
	f := *form
	f.output = "trace.tar"
	f.write = func(a *otf2.Archive, path string, _ io.Writer, opts *export.Options, _ string) (*export.Result, error) {
		others, err := parseWith(a, texts)
		if err != nil {
			return nil, err
		}
		return export.Merged(a, path, others, opts)
	}
	return &f
}

// readParts parses "8" (all parts) or "3/8" (one part).
func readParts(text string, opts *export.Options) error {
	if text == "" {
		return nil
	}
	one, of, single := strings.Cut(text, "/")
	var err error
	if single {
		if opts.Part, err = strconv.Atoi(one); err == nil && opts.Part < 1 {
			err = errors.New("parts are numbered from 1")
		}
	} else {
		of = one
	}
	if err == nil {
		opts.Parts, err = strconv.Atoi(of)
	}
	if err != nil || opts.Parts < 1 || opts.Part > opts.Parts || opts.Parts > export.MaxParts {
		return usagef("--parts %s: give a number of files, such as 8 (at most %d), or one of them, such as 3/8", text,
			export.MaxParts)
	}
	return nil
}

func runExport(cmd *cobra.Command, form *exportForm, arg, output, codec string, opts *export.Options,
	spec selection.Spec, f choice) error {
	a, damage := openArchive(arg)
	if a == nil {
		return damage
	}
	defer a.Close()
	if output == "" {
		output = filepath.Join(filepath.Dir(a.Path()), form.output)
	}
	p := newProgress()
	var err error
	if opts.Selection, err = selection.Resolve(a, spec); err != nil {
		return err
	}
	opts.Progress = func(what string, records uint64) { p.showLine("%s (%d written)", what, records) }
	res, err := form.write(a, output, cmd.OutOrStdout(), opts, codec)
	p.clearLine()
	if err != nil && damage != nil {
		return fmt.Errorf("%w; %w", err, damage)
	}
	if err != nil {
		return ignoreClosedPipe(err)
	}
	if form.folder && len(res.Files) == 0 && damage == nil {
		return fmt.Errorf("%s holds no events: there is nothing to export", a.Path())
	}
	if damage != nil {
		res.Problems = append([]string{oneLine(damage.Error())}, res.Problems...)
	}
	out := cmd.OutOrStdout()
	if output == "-" {
		out = os.Stderr
	}
	return writeResult(out, f, res, func(w io.Writer) { printExport(w, res) }, len(res.Problems) > 0)
}

// printExport reports what was written, and what was left out.
func printExport(w io.Writer, r *export.Result) {
	switch n := len(r.Files); {
	case n > 8:
		printable.Fprintf(w, "%s and %d more\n", paint(w, bold, relativePath(r.Files[0])), n-1)
	default:
		for _, f := range r.Files {
			printable.Fprintln(w, paint(w, bold, relativePath(f)))
		}
	}
	if r.Selection != nil {
		printable.Fprintf(w, "  selection: %s\n", r.Selection.Text)
	}
	for _, kind := range slices.Sorted(maps.Keys(r.Records)) {
		printable.Fprintf(w, "  %d %s\n", r.Records[kind], kind)
	}
	for _, what := range slices.Sorted(maps.Keys(r.LeftOut)) {
		printable.Fprintf(w, "  %s left out: %d %s\n", paint(w, yellow, "!"), r.LeftOut[what], what)
	}
	for _, p := range slices.Concat(r.Differing, r.Problems) {
		printable.Fprintf(w, "  %s %s\n", paint(w, yellow, "!"), oneLine(p))
	}
}
