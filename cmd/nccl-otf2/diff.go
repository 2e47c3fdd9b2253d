// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/compare"
	"github.com/nccl-otf2/nccl-otf2/internal/printable"
	"github.com/nccl-otf2/nccl-otf2/internal/report"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/spf13/cobra"
)

// percentage is the value of a flag such as "5%" or "5", as a part of 1.
type percentage float64

func (p *percentage) String() string {
	return strconv.FormatFloat(100*float64(*p), 'g', -1, 64) + "%"
}
func (p *percentage) Type() string { return "percentage" }
func (p *percentage) Set(s string) error {
	number := strings.TrimSuffix(s, "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || v < 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return fmt.Errorf("%q is not a percentage such as 5%%", s)
	}
	*p = percentage(v / 100)
	return nil
}

// Defaults: what counts as a change, and from which operation of a kind on.
const (
	defaultChange = 0.01
	defaultWarmUp = 3
)

func diffCommand() *cobra.Command {
	f := choice{"table", []string{"table", "json", "csv", "markdown"}}
	limit, least := percentage(-1), percentage(defaultChange)
	warmUp := defaultWarmUp
	cmd := &cobra.Command{
		Use:   "diff A B",
		Short: "Compare two runs: what got slower, and where",
		Long: `Compares the operations of two runs, each given as an experiment directory or an archive. For each function and size,
on communicators of the same shape, it says how long operations took in A and in B, by how much this differs, and how
certain the difference is. It attributes a change to enqueueing (the call), skew (waiting for the last rank), or
transfer (the rest). docs/diff.md explains what is compared with what, the statistics, and the fields of the JSON
form.

With --fail-above, the exit code is 3 if an operation got slower by more than that. It is 1 if there is a problem with
the input, or if nothing in the two runs can be compared.`,
		Example: `  nccl-otf2 diff before after
  nccl-otf2 diff before after --fail-above 5%
  nccl-otf2 diff before after --format markdown`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usagef("diff needs two runs: nccl-otf2 diff A B")
			}
			return exactArgs("A", "B")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if warmUp < 0 {
				return usagef("--warm-up is a number of operations, not %d", warmUp)
			}
			opts := compare.Options{MinChange: float64(least), WarmUp: warmUp}
			if limit >= 0 {
				opts.MinChange = min(opts.MinChange, float64(limit))
			}
			return writeDiff(cmd.OutOrStdout(), args[0], args[1], opts, limit, f.value)
		},
	}
	fl := cmd.Flags()
	fl.Var(&limit, "fail-above", "exit with code 3 if an operation got slower by more than this")
	fl.Lookup("fail-above").DefValue = ""
	fl.Var(&least, "min-change", "the smallest change that is reported, as a percentage of the operation's time")
	fl.IntVar(&warmUp, "warm-up", warmUp, "operations of each kind to leave out at the beginning of each communicator")
	addChoice(cmd, &f, "format", "output: table, json, csv or markdown")
	return cmd
}

func writeDiff(w io.Writer, before, after string, opts compare.Options, limit percentage, format string) error {
	a, err := openUndamaged(before)
	if err != nil {
		return err
	}
	defer a.Close()
	b, err := openUndamaged(after)
	if err != nil {
		return err
	}
	defer b.Close()
	done := newProgress().showWorking("reading " + a.Path() + " and " + b.Path())
	c := compare.Runs(a, b, opts)
	done()
	if format == "json" {
		err = writeJSON(w, c)
	} else {
		err = writeDocument(w, report.Comparison(c, max(float64(limit), 0)), format, report.Style{})
	}
	if err != nil {
		return ignoreClosedPipe(err)
	}
	switch {
	case len(c.A.Problems)+len(c.B.Problems) > 0:
		if format == "csv" {
			for _, text := range append(c.A.Problems, c.B.Problems...) {
				printable.Fprintln(os.Stderr, "nccl-otf2:", oneLine(text))
			}
		}
		return exitCode(exitInput)
	case limit >= 0 && c.Compared == 0:
		return fmt.Errorf("--fail-above: nothing can be compared, so a slowdown cannot be ruled out")
	case limit >= 0 && c.Over(float64(limit)) > 0:
		return exitCode(exitExceeded)
	}
	return nil
}

// openUndamaged opens an archive; damaged definitions are an error.
func openUndamaged(arg string) (*otf2.Archive, error) {
	a, err := openArchive(arg)
	if err != nil && a != nil {
		a.Close()
	}
	return a, err
}
