// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"ncclotf2/analysis"
)

func reportCommand() *cobra.Command {
	var f format
	cmd := &cobra.Command{
		Use:   "report ARCHIVE|DIR",
		Short: "Print bandwidths per operation and size, and which rank the others waited for",
		Long: `Reads the whole archive and prints what is in it, a table like that of nccl-tests (one row per
communicator, operation, datatype and size), and which rank the others waited for. Sizes and bandwidths
are counted as nccl-tests does. docs/report.md explains the columns and the fields of the JSON form.`,
		Example: `  nccl-otf2 report exp1
  nccl-otf2 report exp1 --format json`,
		Args: exactly("an experiment directory or archive"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := openArchive(args[0])
			if a == nil {
				return err
			}
			defer a.Close()
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
			if f == formatJSON {
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
	addFormat(cmd, &f)
	return cmd
}
