// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"

	"github.com/spf13/cobra"

	"ncclotf2/analysis"
)

func reportCommand() *cobra.Command {
	f := choice{"table", []string{"table", "json", "csv", "markdown"}}
	var self bool
	cmd := &cobra.Command{
		Use:   "report ARCHIVE|DIR",
		Short: "Print bandwidths per operation and size, and which rank the others waited for",
		Long: `Reads the whole archive and prints what is in it, a table like that of nccl-tests (one row per
communicator, operation, datatype and size), what the phases took that the program marked, if it did, and
which rank the others waited for. Sizes and bandwidths are counted as nccl-tests does. docs/report.md explains the columns and the fields of the JSON form.

With --self it says instead how the archive was recorded: library, versions, event types, clock, what the
plugin's callbacks cost, and what was paused or lost. It looks at no events.`,
		Example: `  nccl-otf2 report exp1
  nccl-otf2 report exp1 --self
  nccl-otf2 report exp1 --format json`,
		Args: exactly("an experiment directory or archive"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !self && (f.value == "csv" || f.value == "markdown") {
				return usagef("--format %s is for report --self", f.value)
			}
			a, err := openArchive(args[0])
			if a == nil {
				return err
			}
			defer a.Close()
			if self {
				s := analysis.SelfReport(a)
				write := map[string]func(io.Writer) error{"table": s.WriteText, "json": s.WriteJSON, "csv": s.WriteCSV, "markdown": s.WriteMarkdown}
				return readerGone(write[f.value](cmd.OutOrStdout()))
			}
			p := newProgress()
			stop := p.working("reading " + a.Path())
			r, opErr := analysis.Operations(a)
			stop()
			if opErr != nil {
				return opErr
			}
			if err != nil { // definitions are damaged; what is there has been reported on
				r.Problems = append([]string{oneLine(err.Error())}, r.Problems...)
			}
			if f.value == "json" {
				err = writeJSON(cmd.OutOrStdout(), r)
			} else {
				err = r.WriteText(cmd.OutOrStdout())
			}
			if err != nil {
				return readerGone(err)
			}
			if len(r.Problems) > 0 {
				return exitCode(exitInput)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&self, "self", false, "say how the archive was recorded")
	cmd.Flags().Var(&f, "format", "output: table or json; with --self also csv or markdown")
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(f.of, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}
