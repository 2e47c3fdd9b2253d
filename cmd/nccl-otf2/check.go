// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/check"
	"github.com/nccl-otf2/nccl-otf2/internal/printable"
)

// checked is the JSON form of `nccl-otf2 check`.
type checked struct {
	Archive string `json:"archive"`
	*check.Result
	Errors int `json:"errors"` // findings that are errors, including those not shown
}

func checkCommand() *cobra.Command {
	var f choice
	var limit int
	cmd := &cobra.Command{
		Use:   "check ARCHIVE|DIR",
		Short: "Check that an archive is sound and that the ranks' recordings are consistent",
		Long: `Reads the whole archive and prints whatever tools that read it would stumble over, and where the recordings of ranks
are inconsistent: one finding per line, or "no findings". The exit code is 1 if there are errors. Notes are findings
that the archive itself explains, such as missing ranks.`,
		Example: `  nccl-otf2 check exp1
  nccl-otf2 check exp1/traces.otf2 --format json`,
		Args: exactArgs("an experiment directory or archive"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 1 {
				return usagef("--limit must be at least 1")
			}
			path, name, err := findArchive(args[0])
			if err != nil {
				return err
			}
			stop := newProgress().showWorking("reading " + name)
			res, err := check.Archive(path, &check.Options{Limit: limit})
			stop()
			if err != nil {
				return err
			}
			if res.Findings == nil {
				res.Findings = []check.Finding{}
			}
			return writeResult(cmd.OutOrStdout(), f, checked{name, res, res.Errors()},
				func(w io.Writer) { printFindings(w, res) }, res.Errors() > 0)
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 20, "findings to show for each rule; the others are only counted")
	addFormat(cmd, &f)
	return cmd
}

func printFindings(w io.Writer, res *check.Result) {
	for _, f := range res.Findings {
		c := plain
		if f.Severity == check.Error {
			c = red
		}
		printable.Fprintln(w, paint(w, c, f.String()))
	}
	for _, rule := range slices.Sorted(maps.Keys(res.Dropped)) {
		printable.Fprintf(w, "and %s of rule %s\n", count(res.Dropped[rule], "more finding", "more findings"), rule)
	}
	if len(res.Findings) == 0 {
		printable.Fprintf(w, "no findings (%s)\n", count(res.Events, "event", "events"))
	}
}
