// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/compare"
	"github.com/nccl-otf2/nccl-otf2/internal/printable"
	"github.com/nccl-otf2/nccl-otf2/internal/report"
	"github.com/nccl-otf2/nccl-otf2/internal/timeline"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// besideFile is the default name of the page of two runs, which is written beside the first archive.
const besideFile = "timelines.html"

// timelinesBeside writes the page of two runs.
func timelinesBeside(cmd *cobra.Command, q *timelineRequest, args []string) error {
	p := newProgress()
	var runs [2]timeline.ComparedRun
	var archives [2]*otf2.Archive
	for i, arg := range args {
		a, damage := openArchive(arg)
		if a == nil {
			return damage
		}
		defer a.Close()
		run, err := readRun(a, damage, q.spec, p)
		if err != nil {
			return err
		}
		defer run.Close()
		if err := emptyPageError(a, run.Data, q.spec); err != nil {
			p.clearLine()
			return err
		}
		archives[i], runs[i] = a, run
	}
	text, err := diffText(archives)
	if err != nil {
		return err
	}
	output := cmp.Or(q.output, filepath.Join(filepath.Dir(archives[0].Path()), besideFile))
	err = writeOutput(output, "-o", func(w io.Writer) error { return timeline.WriteBeside(w, runs, text) })
	p.clearLine()
	if err != nil {
		return err
	}
	st, err := os.Stat(output)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	printable.Fprintf(out, "%s\n  %s; %s, %s: open it in a browser\n", paint(out, bold, relativePath(output)), runs[0],
		runs[1], units.Bytes(uint64(st.Size())))
	return printDamage(out, runs[0].Data, runs[1].Data)
}

// diffText returns the output of `diff` for two runs.
func diffText(runs [2]*otf2.Archive) (string, error) {
	var b bytes.Buffer
	err := report.Comparison(compare.Runs(runs[0], runs[1],
		compare.Options{MinChange: defaultChange, WarmUp: defaultWarmUp}), 0).WriteStyled(&b, report.Style{})
	return b.String(), err
}
