// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/nccl-otf2/nccl-otf2/internal/collector"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/printable"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// recovered is the JSON output of `nccl-otf2 recover`.
type recovered struct {
	*otf2.RecoverResult
	DryRun bool `json:"dryRun"`
}

func recoverCommand() *cobra.Command {
	var f choice
	var opts otf2.RecoverOptions
	cmd := &cobra.Command{
		Use:   "recover ARCHIVE|DIR",
		Short: "Repair the files of an archive whose writer was killed",
		Long: `Cuts event and snapshot files after their last complete record and terminates them properly, keeps the complete
records of damaged definition files, corrects counts, and creates a missing anchor file. Originals of changed files
are kept as <file>.orig. Nothing is invented: what is lost is reported. This repairs archives of any OTF2 writer; none
may write to them at the same time. If an experiment directory has no archive, it makes one first, as "nccl-otf2
unify" does.

It prints a line for each file that was changed or cannot be repaired, and then what is missing. The exit code is 1 if
files could not be repaired.`,
		Example: `  nccl-otf2 recover --dry-run exp1
  nccl-otf2 recover exp1/traces.otf2`,
		Args: exactArgs("an experiment directory or archive"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if filepath.Ext(args[0]) != ".otf2" && !isDir(args[0]) { // the anchor may be missing
				_, err := anchorPath(args[0])
				return err
			}
			if !opts.DryRun && isDir(filepath.Join(args[0], experiment.Folder)) {
				if err := makeMissing(cmd.ErrOrStderr(), args[0]); err != nil {
					return err
				}
			}
			stop := newProgress().showWorking("reading " + args[0])
			res, err := otf2.Recover(recoverPath(args[0]), &opts)
			stop()
			switch {
			case errors.Is(err, otf2.ErrInvalid):
				return usageError{err}
			case err != nil:
				return err
			}
			return writeResult(cmd.OutOrStdout(), f, recovered{res, opts.DryRun},
				func(w io.Writer) { printRecovered(w, res, opts.DryRun) }, res.Failed())
		},
	}
	cmd.Flags().BoolVarP(&opts.DryRun, "dry-run", "n", false, "say what would be done, but change nothing")
	cmd.Flags().BoolVar(&opts.DropOriginals, "no-originals", false, "do not keep changed files as <file>.orig")
	addFormat(cmd, &f)
	return cmd
}

// makeMissing makes the archive of an experiment directory, including data that killed processes left in shared memory,
// if there is such data or no archive. Archives that cannot be made from shards may still be repaired.
func makeMissing(w io.Writer, dir string) error {
	saved, err := collector.Salvage(dir)
	if err != nil {
		printable.Fprintln(w, "nccl-otf2:", oneLine(err.Error()))
	}
	if saved > 0 {
		printSaved(w, saved)
	} else if _, err := anchorPath(dir); err == nil {
		return nil
	}
	u, err := unifyDirectory(dir, wanted{sync: true})
	if err == nil {
		printUnified(w, u)
	} else if saved == 0 {
		return nil
	}
	return err
}

// recoverPath returns the anchor that an argument means, or the argument itself if there is no anchor.
func recoverPath(arg string) string {
	if path, err := anchorPath(arg); err == nil {
		return path
	}
	return arg
}

func printRecovered(w io.Writer, res *otf2.RecoverResult, dry bool) {
	whole := uint64(0)
	colors := map[otf2.RecoverAction]color{otf2.RecoverFailed: red, otf2.RecoverRepaired: yellow,
		otf2.RecoverCreated: yellow}
	for i := range res.Files {
		file := &res.Files[i]
		if file.Action == otf2.RecoverWhole {
			whole++
			continue
		}
		printable.Fprintln(w, paint(w, colors[file.Action], file.String()))
	}
	for _, lost := range res.Lost {
		printable.Fprintln(w, paint(w, red, "lost: "+lost))
	}
	end := ""
	if dry && res.Changed() {
		end = "; nothing was changed (--dry-run)"
	}
	printable.Fprintf(w, "%s whole%s\n", count(whole, "file is", "files are"), end)
}
