// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/selection"
	"github.com/nccl-otf2/nccl-otf2/internal/printable"
	"github.com/nccl-otf2/nccl-otf2/internal/replay/recording"
	"github.com/nccl-otf2/nccl-otf2/internal/timeline"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/spf13/cobra"
)

// timelineFile is the default name of the page of an experiment directory.
const timelineFile = "timeline.html"

// timelineRequest holds the flags of a page.
type timelineRequest struct {
	output string
	serve  bool
	port   int
	spec   selection.Spec
}

func timelineCommand() *cobra.Command {
	var q timelineRequest
	cmd := &cobra.Command{
		Use:   "timeline ARCHIVE|DIR [OTHER]",
		Short: "Make a page that shows the run over time, or two runs",
		Long: `Makes one self-contained HTML file that shows the run over time. It opens from disk in any current browser, and can be
sent to others. In the page, press ? for help.

For archives of more than about ten million regions, use --serve: the tool then sends the page only what it shows, on
this machine only, at an address that contains a secret, until it is interrupted. The address is printed at once; until
the archive has been read, the page says how far that is, and then shows the timeline by itself.

With two archives, the page shows both, one below the other or side by side, and keeps them at the same place: in the
phase of the same name, or else at the same distance from the beginning of their steady part. It also has what
differs, as diff says it.

A recording of NCCL's calls (NCCL_OTF2_MODE=record) is played first, and the page shows the resulting archive; the
page is written beside the recording.

The tool keeps little of what it reads in memory. While it works, the rest is in the temporary folder (TMPDIR), and
takes about as much space as the archive.`,
		Example: `  nccl-otf2 timeline exp1
  nccl-otf2 timeline exp1 -o page.html
  nccl-otf2 timeline exp1 --serve
  nccl-otf2 timeline before after -o both.html
  nccl-otf2 timeline exp1 --phase 'step 7' --rank 0-3`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 {
				return nil
			}
			return exactArgs("an experiment directory or archive")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := q.checkFlags(len(args), cmd.Flags().Changed("port")); err != nil {
				return err
			}
			if len(args) == 2 {
				return timelinesBeside(cmd, &q, args)
			}
			return makeTimeline(cmd, &q, args[0])
		},
	}
	cmd.Flags().StringVarP(&q.output, "output", "o", "",
		"file to write (default: "+timelineFile+" beside the archive; for two archives "+besideFile+" beside the "+
			"first)")
	addSelection(cmd, &q.spec)
	cmd.Flags().BoolVar(&q.serve, "serve", false, "write no file; serve the page from this machine, until interrupted")
	cmd.Flags().IntVar(&q.port, "port", 0, "port for --serve (0: any free port)")
	return cmd
}

// checkFlags finds flags that contradict each other.
func (q *timelineRequest) checkFlags(runs int, port bool) error {
	switch {
	case q.serve && q.output != "":
		return usagef("--serve writes no file: omit --output")
	case !q.serve && port:
		return usagef("--port is for --serve")
	case q.serve && runs == 2:
		return usagef("--serve is for one run: leave it out, or serve each by itself")
	}
	if err := q.spec.Check(); err != nil {
		return usagef("%v", err)
	}
	return nil
}

// makeTimeline writes or serves the page of one run.
func makeTimeline(cmd *cobra.Command, q *timelineRequest, path string) error {
	a, damage := openArchive(path)
	if a == nil {
		return damage
	}
	defer a.Close()
	limitGarbage(len(a.Defs.Locations), timelineGarbage)
	if q.serve {
		return serveTimeline(cmd, a, damage, q)
	}
	p := newProgress()
	run, err := readRun(a, damage, q.spec, p)
	if err != nil {
		return err
	}
	defer run.Close()
	d, opts := run.Data, run.Options
	if err := emptyPageError(a, d, q.spec); err != nil {
		p.clearLine()
		return err
	}
	output := cmp.Or(q.output, filepath.Join(filepath.Dir(a.Path()), timelineFile))
	err = writeTimeline(d, output, opts)
	p.clearLine()
	if err != nil {
		return err
	}
	return announceTimeline(cmd.OutOrStdout(), d, output, q.spec)
}

// announceTimeline reports where the page is, and what it contains.
func announceTimeline(out io.Writer, d *timeline.Data, output string, spec selection.Spec) error {
	st, err := os.Stat(output)
	if err != nil {
		return err
	}
	printable.Fprintf(out, "%s\n  %s, %s: open it in a browser\n", paint(out, bold, relativePath(output)), d,
		units.Bytes(uint64(st.Size())))
	if !spec.Empty() {
		printable.Fprintf(out, "  selection: %s\n", spec.String())
	}
	return printDamage(out, d)
}

// printDamage reports what a page lacks of an archive, and what ranks recorded differently. Damage sets the exit code.
func printDamage(out io.Writer, of ...*timeline.Data) error {
	var err error
	for _, d := range of {
		for _, problem := range d.Problems() {
			printable.Fprintf(out, "  %s %s\n", paint(out, yellow, "!"), oneLine(problem))
			err = exitCode(exitInput)
		}
		for _, note := range d.Notes() {
			printable.Fprintf(out, "  %s %s\n", paint(out, yellow, "!"), oneLine(note))
		}
	}
	return cmp.Or(err, ignoreClosedPipe(nil))
}

// emptyPageError returns an error if a page of the archive would be empty although nothing was selected.
func emptyPageError(a *otf2.Archive, d *timeline.Data, spec selection.Spec) error {
	switch problems := d.Problems(); {
	case !spec.Empty() || !d.Empty():
		return nil
	case len(problems) > 0:
		return fmt.Errorf("%s: nothing of it can be shown: %s", a.Path(), strings.Join(problems, "; "))
	}
	return fmt.Errorf("%s holds no regions, transfers or metrics: there is nothing to show", a.Path())
}

// readTimeline reads the selected part of an archive.
func readTimeline(a *otf2.Archive, spec selection.Spec, tell func(what string, done, total uint64)) (
	*timeline.Data, error) {
	selected, err := selection.Resolve(a, spec)
	if err != nil {
		return nil, err
	}
	return timeline.ReadTelling(a, selected, tell)
}

// archiveTitle names an archive by its folder.
func archiveTitle(anchor string) string {
	if abs, err := filepath.Abs(anchor); err == nil {
		anchor = abs
	}
	if base := filepath.Base(anchor); base != anchorName && base != recording.RunFile {
		return base
	}
	return filepath.Base(filepath.Dir(anchor))
}

// writeTimeline replaces the file atomically, so that an open page stays valid.
func writeTimeline(d *timeline.Data, path string, opts timeline.Options) error {
	return writeOutput(path, "-o", func(w io.Writer) error { return d.WritePage(w, opts) })
}

// readRun reads the data of a page from an archive with the given damage, and returns it with the page's options.
func readRun(a *otf2.Archive, damage error, spec selection.Spec, p *progressLine) (timeline.ComparedRun, error) {
	stop := p.showWorking("reading " + a.Path())
	d, err := readTimeline(a, spec, nil)
	stop()
	if err != nil {
		return timeline.ComparedRun{}, err
	}
	d.Damage(damage)
	return timeline.ComparedRun{Data: d, Options: timeline.Options{
		Title: archiveTitle(a.Path()), Tool: creator(),
		Progress: func(done, total int) { p.showLine("writing: %d of %d", done, total) },
	}}, nil
}
