// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nccl-otf2/nccl-otf2/internal/ingest"
	"github.com/nccl-otf2/nccl-otf2/internal/printable"
	"github.com/nccl-otf2/nccl-otf2/scorep"
)

// imported is the result of an import.
type imported struct {
	*ingest.Result
	Unified *scorep.Result `json:"unified"`
}

func importCommand() *cobra.Command {
	var f choice
	var output string
	var opts ingest.Options
	cmd := &cobra.Command{
		Use:   "import FILE|DIR…",
		Short: "Make an archive from another profiler's files",
		Long: `Makes an experiment directory with an archive from the JSONL files of the minimal profiler, from those of nccl-otf2
export --jsonl, from NCCL Inspector's JSON files, from those of RCCL's accl-profiler, from traces of NCCL's example
plugin, from dumps of PyTorch's Flight Recorder (pickles or JSON), from traces of PyTorch's profiler (plain or .gz),
from SQLite exports of Nsight Systems, or from databases of rocprofv3 (rocpd), as far as these files allow. What a file
is shows in its content. In folders, it reads the dumps if there are any, or else the traces and SQLite files, or else
the files that end in .jsonl, .json and .log; each file may contain several processes, or be a merge of several files.
The archive is like any other: check, report, view, export and other tools work on it. Its properties say what it was
made from, and what such data does not contain.

Dumps of the Flight Recorder say which rank stopped a job (report --hang), from the order and the states of operations;
they have no times. Give those of all ranks.

Traces of PyTorch's profiler say who was late in the steps that were profiled: give the traces of the same steps of all
ranks. Profile with ProfilerActivity.CPU and ProfilerActivity.CUDA. Clocks are shared by ranks whose traces have the
same host in their names, or by those that use different GPUs of one machine; others are aligned by collectives.

Exports of Nsight Systems say who was late while it recorded: nsys profile -t cuda,nvtx from the start of the job, on
all ranks; nsys export --type sqlite --include-blobs=true; then give all files. Databases of rocprofv3 say the same of
RCCL: rocprofv3 --kernel-trace --rccl-trace --output-format rocpd, if each process makes one communicator. Both are read
by a separate program, nccl-otf2-query, which lies beside the tool ("make query" builds it).

Damaged lines are skipped and counted, the first one is named, and the exit code is 1. A last line that is cut off, as
dead jobs leave it, does not count as damage. docs/export.md says what is used of each record.

The minimal profiler writes neither dates nor names of hosts. Processes whose communicators were created at about the
same time are assumed to share a clock, and others to be on other hosts; with --separate-clocks, each is assumed to be
on a host of its own, also in traces of PyTorch's profiler that do not name hosts.`,
		Example: `  nccl-otf2 import minimal_profiler_dump-4711 -o exp1
  nccl-otf2 import trace_merged.jsonl
  nccl-otf2 import nccl-inspector-4711 -o exp2 && nccl-otf2 report exp2
  nccl-otf2 import trace_rank*.json.gz -o steps && nccl-otf2 report steps
  nccl-otf2 import node*.sqlite -o steps && nccl-otf2 report steps
  nccl-otf2 import /tmp/nccl_trace_rank_* -o stopped && nccl-otf2 report --hang stopped`,
		Args: minimumArgs("files or a folder"),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, arg := range args {
				if err := requirePath(arg, "what another profiler wrote: files, or the folder of them"); err != nil {
					return err
				}
			}
			dir := output
			if dir == "" {
				base := filepath.Base(filepath.Clean(args[0]))
				dir = strings.TrimSuffix(base, filepath.Ext(base)) + "-otf2"
			}
			if err := scorep.MayUnify(dir); err != nil {
				return err
			}
			p := newProgress()
			opts.Progress = func(what string, done, total int) { p.showLine("%s (%d of %d)", what, done, total) }
			read, err := ingest.Import(args, dir, &opts)
			if err != nil {
				p.clearLine()
				return err
			}
			made, err := makeArchives(dir, p)
			p.clearLine()
			if err != nil {
				return err
			}
			return writeResult(cmd.OutOrStdout(), f, imported{read, made},
				func(w io.Writer) { printImported(w, read, made) }, read.Malformed > 0)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "",
		"experiment directory to make (default: the first input's name with -otf2)")
	cmd.Flags().BoolVar(&opts.SeparateClocks, "separate-clocks", false,
		"assume that each process ran on a host of its own, where the input names no hosts")
	addFormat(cmd, &f)
	return cmd
}

// printImported reports what was read, what was left out, and the archive.
func printImported(w io.Writer, r *ingest.Result, made *scorep.Result) {
	printable.Fprintf(w, "%s, %s, %s\n", count(r.Files, "file", "files"), count(r.Lines, "line", "lines"),
		count(r.Processes, "process", "processes"))
	for _, kind := range slices.Sorted(maps.Keys(r.Records)) {
		printable.Fprintf(w, "  %d %s\n", r.Records[kind], kind)
	}
	printRemarks(w, r)
	printArchives(w, made)
}

// printRemarks reports what was left out.
func printRemarks(w io.Writer, r *ingest.Result) {
	for _, why := range slices.Sorted(maps.Keys(r.NotUsed)) {
		printable.Fprintf(w, "  %s not used: %d %s\n", paint(w, yellow, "!"), r.NotUsed[why],
			strings.ToLower(strings.ReplaceAll(why, "_", " ")))
	}
	for _, p := range r.Problems {
		printable.Fprintf(w, "  %s %s\n", paint(w, yellow, "!"), oneLine(p))
	}
	printable.Fprintf(w, "  such data does not contain: %s\n", strings.Join(r.Missing, "; "))
}
