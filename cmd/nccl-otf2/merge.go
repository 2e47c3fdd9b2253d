// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/printable"
	"github.com/nccl-otf2/nccl-otf2/scorep"
)

// ncclFolder is the folder in Score-P's experiment directory to which `run` moves its own.
const ncclFolder = "nccl"

func mergeCommand() *cobra.Command {
	var f choice
	var output string
	var keep bool
	cmd := &cobra.Command{
		Use:   "merge SCOREP_DIR [NCCL_DIR] --output DIR",
		Short: "Make one archive of a Score-P trace and a recording of NCCL",
		Long: `Merges the trace in the Score-P experiment directory SCOREP_DIR with what the same processes recorded in the
experiment directory NCCL_DIR (default: SCOREP_DIR/` + ncclFolder + `): the archive has Score-P's processes with their threads, MPI, OpenMP and CUDA, and in them the rows of NCCL, on
Score-P's clock. Both directories remain unchanged. Event files are shared through hard links, so the archive needs
little space, and merging takes a time that depends on definitions, not on events.

Two processes are taken to be the same if they have the same host and process id, and existed while Score-P measured.
Calls of NCCL that were forwarded to Score-P appear only on its threads' rows. docs/scorep.md describes what becomes
of each kind of data.`,
		Example: `  nccl-otf2 merge scorep-20260131_1015_4711 --output merged
  nccl-otf2 merge scorep-train nccl-otf2-4711 -o merged --keep-forwarded
  nccl-otf2 print merged`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 {
				return nil
			}
			return exactArgs("a Score-P experiment directory")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if output == "" {
				return usagef("merge needs a folder for the archive: --output DIR")
			}
			dir := filepath.Join(args[0], ncclFolder)
			if len(args) == 2 {
				dir = args[1]
			} else if !isDir(dir) {
				return usagef("merge needs the experiment directory of NCCL, as there is no %s: see %s --help", dir,
					cmd.CommandPath())
			}
			res, err := mergeArchives(args[0], dir, output, keep)
			if err != nil {
				return err
			}
			return writeResult(cmd.OutOrStdout(), f, res, func(w io.Writer) { printMerged(w, res) }, false)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "folder for the archive: a new one, or that of an earlier merge")
	cmd.Flags().BoolVar(&keep, "keep-forwarded", false, "also keep rows of threads whose calls Score-P has recorded")
	addFormat(cmd, &f)
	return cmd
}

// mergeArchives checks the folders that people mix up, and shows progress.
func mergeArchives(measurement, dir, output string, keep bool) (*scorep.MergeResult, error) {
	if err := requireFolder(measurement, "Score-P's experiment directory"); err != nil {
		return nil, err
	}
	if err := requireFolder(dir, "the experiment directory of NCCL"); err != nil {
		return nil, err
	}
	if !isDir(filepath.Join(dir, experiment.Folder)) {
		if isDir(filepath.Join(measurement, experiment.Folder)) {
			return nil, fmt.Errorf("%s holds no recording (no shards), %s does: Score-P's directory comes first", dir,
				measurement)
		}
		return nil, noShardsError(dir)
	}
	p := newProgress()
	defer p.clearLine()
	waitForCollectors(context.Background(), dir, experiment.Await{}, p)
	opts, err := unifyOptions(dir, func(phase string, done, total int) {
		p.showLine("%s: %d of %d", phase, done, total)
	})
	var res *scorep.MergeResult
	if err == nil {
		defer opts.Hold.Release()
		res, err = scorep.Merge(measurement, dir, output,
			&scorep.MergeOptions{UnifyOptions: *opts, KeepForwarded: keep})
	}
	switch {
	case errors.Is(err, experiment.ErrBusy):
		return nil, tryLaterError(err)
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("%w: merge as a user who may write %s and %s", err, dir, output)
	}
	return res, err
}

// printMerged reports the contents of a merged archive, and how rows were merged that both archives have.
func printMerged(w io.Writer, r *scorep.MergeResult) {
	printable.Fprintln(w, paint(w, bold, relativePath(r.Archive)))
	printable.Fprintf(w, "  %s of both, by Score-P's timer (%s)\n", count(r.Paired, "process", "processes"), r.Timer)
	printable.Fprintf(w, "  of Score-P: %s, %s\n", count(r.ScorepLocations, "location", "locations"),
		count(r.ScorepEvents, "event", "events"))
	printable.Fprintf(w, "  of NCCL: %s, %s, %s\n", count(r.Locations, "location", "locations"),
		count(r.Communicators, "communicator", "communicators"), count(r.Events, "event", "events"))
	note := func(n int, format string, args ...any) {
		if n > 0 {
			printable.Fprintf(w, "  "+format+"\n", args...)
		}
	}
	threads := func(n int) string { return count(n, "thread", "threads") }
	note(r.ThreadsLeftOut, "calls of %s are on Score-P's rows (--keep-forwarded shows ours, too)",
		threads(r.ThreadsLeftOut))
	note(r.ThreadsMarked,
		"calls of %s are on Score-P's rows and marked “(forwarded)” on ours, which have more than those",
		threads(r.ThreadsMarked))
	note(r.Rewritten, "%s rewritten in chunks of Score-P's size",
		count(r.Rewritten, "event file was", "event files were"))
	note(r.Copied-r.Rewritten, "%s copied, because hard links were not possible or a process had not finished",
		count(r.Copied-r.Rewritten, "event file was", "event files were"))
	warn := func(n int, format string, args ...any) {
		note(n, "%s "+format, append([]any{paint(w, yellow, "!")}, args...)...)
	}
	warn(r.ScorepOnly, "%s of Score-P left nothing of NCCL", count(r.ScorepOnly, "process", "processes"))
	warn(r.NCCLOnly,
		"%s not in Score-P's trace; where no other one of its machine is, times are by the real-time clock",
		count(r.NCCLOnly, "process of NCCL is", "processes of NCCL are"))
	if r.Extended {
		warn(1, "events of NCCL lie outside of Score-P's measurement, which was made longer")
	}
	for _, p := range r.Problems {
		warn(1, "%s", p)
	}
	printable.Fprintf(w, "  report: nccl-otf2 report %s\n", relativePath(filepath.Dir(r.Archive)))
}
