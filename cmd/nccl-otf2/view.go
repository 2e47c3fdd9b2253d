// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/nccl-otf2/nccl-otf2/internal/printable"
	"github.com/nccl-otf2/nccl-otf2/internal/view"
)

// Folders for views in an experiment directory.
const (
	scalascaFolder = "scalasca"
	simpleFolder   = "simple"
)

// viewFlags holds the flags of `nccl-otf2 view`.
type viewFlags struct {
	format           choice
	scalasca, simple bool
	output           string
	opts             view.Options
}

func viewCommand() *cobra.Command {
	var f viewFlags
	cmd := &cobra.Command{
		Use:   "view --scalasca|--simple ARCHIVE|DIR",
		Short: "Make an archive for Scalasca, or for tools that understand few kinds of records",
		Long: `--scalasca makes an archive with the ranks' operations as MPI operations, one process and one location per rank.
scout.mpi of Scalasca 2.6 analyzes it: which rank waited in what, and why. It contains only what all ranks have
recorded, in an order that scout can replay; what is left out is counted. docs/scalasca.md says what the view keeps
and changes, and how to read the results. Start scout with as many processes as the view has: one for each rank, and
more where operations of a rank's communicators overlap. They may share a node and its cores.

--simple makes an archive of everything except metrics, for tools that understand few of OTF2's records, such as
pipit: it has only rows of processes, one process per rank, blocking collectives and messages, and no two events of a
row at the same time. docs/otf2-format.md lists the differences.`,
		Example: `  nccl-otf2 view --scalasca exp1
  mpirun -np 8 --oversubscribe scout.mpi exp1/scalasca/traces.otf2
  scalasca -examine exp1/scalasca

  nccl-otf2 view --scalasca exp1 --output /scratch/view --format json

  nccl-otf2 view --simple exp1
  python3 -c 'import pipit; print(pipit.Trace.from_otf2("exp1/simple").comm_matrix())'`,
		Args: exactArgs("an experiment directory or archive"),
		RunE: func(cmd *cobra.Command, args []string) error { return makeView(cmd, &f, args[0]) },
	}
	cmd.Flags().BoolVar(&f.scalasca, "scalasca", false, "make the view for Scalasca's scout.mpi")
	cmd.Flags().BoolVar(&f.simple, "simple", false,
		"make the view for tools that understand few kinds of records, such as pipit")
	cmd.Flags().StringVarP(&f.output, "output", "o", "",
		"folder for the view (default: "+scalascaFolder+" or "+simpleFolder+" beside the archive)")
	cmd.Flags().BoolVar(&f.opts.TimedOnly, "timed-only", false,
		"leave out collectives whose members' times cannot be compared (--scalasca)")
	cmd.Flags().BoolVar(&f.opts.OneProcess, "one-process", false,
		"one process per rank even where operations overlap; waiting is lost (--scalasca)")
	addFormat(cmd, &f.format)
	return cmd
}

// outputFolder returns the folder for the view: --output, or the named folder beside the archive.
func (f *viewFlags) outputFolder(name string) string {
	if f.output != "" {
		return f.output
	}
	folder := scalascaFolder
	if f.simple {
		folder = simpleFolder
	}
	return filepath.Join(filepath.Dir(name), folder)
}

func makeView(cmd *cobra.Command, f *viewFlags, archive string) error {
	if f.scalasca == f.simple {
		return usagef("say which view: --scalasca or --simple")
	}
	if f.simple && (f.opts.TimedOnly || f.opts.OneProcess) {
		return usagef("--timed-only and --one-process are of views for Scalasca")
	}
	anchor, name, err := findArchive(archive)
	if err != nil {
		return err
	}
	p := newProgress()
	f.opts.Creator = "nccl-otf2 " + toolVersion
	f.opts.Progress = func(phase string, done, total int) { p.showLine("%s: %d of %d", phase, done, total) }
	if f.simple {
		res, err := view.Simple(anchor, f.outputFolder(name), &f.opts)
		p.clearLine()
		if err != nil {
			return err
		}
		return writeResult(cmd.OutOrStdout(), f.format, res, func(w io.Writer) { printSimpleView(w, res) },
			len(res.Problems) > 0)
	}
	res, err := view.Scalasca(anchor, f.outputFolder(name), &f.opts)
	p.clearLine()
	if err != nil {
		return err
	}
	return writeResult(cmd.OutOrStdout(), f.format, res, func(w io.Writer) { printView(w, res) }, len(res.Problems) > 0)
}

// printSimpleView prints what a simple view contains and what it leaves out.
func printSimpleView(w io.Writer, r *view.SimpleResult) {
	printable.Fprintln(w, paint(w, bold, relativePath(r.Archive)))
	printable.Fprintf(w, "  %s, %s, %s, %s, %s\n", count(r.Processes, "process", "processes"),
		count(r.Rows, "row", "rows"),
		count(r.Events, "event", "events"), count(r.Collectives, "record of a collective", "records of collectives"),
		count(r.Messages, "message", "messages"))
	note := func(n uint64, format string, args ...any) {
		if n > 0 {
			printable.Fprintf(w, "  "+format+"\n", args...)
		}
	}
	note(r.Transfers, "%s of them of the network", count(r.Transfers, "transfer", "transfers"))
	note(r.Covered, "%s no message: its communicator's transfers are", count(r.Covered, "Send is", "Sends are"))
	note(r.MaxShift, "events are at most %s later than recorded, so that no two of a row have one time",
		count(r.MaxShift, "tick", "ticks"))
	note(r.Metrics, "left out: %s of metrics", count(r.Metrics, "value", "values"))
	warn := func(n uint64, format string, args ...any) {
		note(n, "%s "+format, append([]any{paint(w, yellow, "!")}, args...)...)
	}
	warn(r.Others, "left out: %s that the view has no form for", count(r.Others, "event", "events"))
	warn(r.Unplaced, "left out: %s whose other end is not a known rank", count(r.Unplaced, "message", "messages"))
	for _, p := range slices.Concat(r.Differing, r.Problems) {
		warn(1, "%s", p)
	}
}

// dropWords describes the operations that are not in a view, by reason.
var dropWords = map[view.Reason]string{
	view.ReasonDiffers:   "that the ranks recorded differently",
	view.ReasonMissing:   "that not every member has",
	view.ReasonOrder:     "that the members have in another order",
	view.ReasonRoot:      "whose members name different roots, or one without data",
	view.ReasonUnmatched: "that are messages with one end only",
	view.ReasonUnplaced:  "without end or with an unknown peer",
	view.ReasonCycle:     "whose times contradict each other between ranks",
	view.ReasonUntimed:   "whose times cannot be compared",
	view.ReasonFused: "that are messages launched together with collectives: the launch's time is that of a " +
		"collective",
}

// printView prints what the view contains, what it leaves out, and what to do next.
func printView(w io.Writer, r *view.Result) {
	printable.Fprintln(w, paint(w, bold, relativePath(r.Archive)))
	printable.Fprintf(w, "  %s on %s, %s, %s, %s, %s\n", count(r.Ranks, "rank", "ranks"),
		count(r.Hosts, "host", "hosts"),
		count(r.Communicators, "communicator", "communicators"), count(r.Collectives, "collective", "collectives"),
		count(r.Messages, "message", "messages"), count(r.Events, "event", "events"))
	note := func(n uint64, format string, args ...any) {
		if n > 0 {
			printable.Fprintf(w, "  "+format+"\n", args...)
		}
	}
	collectives := func(n uint64) string { return count(n, "collective", "collectives") }
	note(uint64(r.Rows-r.Ranks),
		"%s for %s: operations of a rank's communicators overlap, and a process does one after the other",
		count(r.Rows, "process", "processes"), count(r.Ranks, "rank", "ranks"))
	note(r.Untimed.NoTimes, "%s without wait states: the members' times cannot be compared",
		collectives(r.Untimed.NoTimes))
	note(r.Untimed.Fused, "%s without wait states: launched together with another one, which has the time",
		collectives(r.Untimed.Fused))
	note(r.Untimed.Moved, "%s without wait states: begun later on some rank than recorded, to make room",
		collectives(r.Untimed.Moved))
	note(r.Untimed.Messages, "%s without wait states: begun later, to make room",
		count(r.Untimed.Messages, "message", "messages"))
	note(r.Untimed.Receivers, "%s not shown to wait for the receiver: the ranks' times contradict each other",
		count(r.Untimed.Receivers, "send", "sends"))
	if masked := r.Waits.Masked; masked > 0 {
		note(1, "%v that sends waited for receivers is not counted: in these launches receives waited, too, and "+
			"scout looks at them alone", time.Duration(masked))
	}
	note(r.Clipped.Operations,
		"%s on single ranks end earlier than recorded, because the next one overlaps: %v in all, %d without length",
		count(r.Clipped.Operations, "operation", "operations"), time.Duration(r.Clipped.Time), r.Clipped.ToNothing)
	warn := func(n uint64, format string, args ...any) {
		note(n, "%s "+format, append([]any{paint(w, yellow, "!")}, args...)...)
	}
	if lost := r.Waits.Recorded - min(r.Waits.Shown, r.Waits.Recorded); lost > 0 {
		warn(1, "%v of %v that ranks waited is not in the view", time.Duration(lost), time.Duration(r.Waits.Recorded))
	}
	for _, why := range slices.Sorted(maps.Keys(r.Dropped)) {
		warn(r.Dropped[why], "left out: %s %s", count(r.Dropped[why], "operation", "operations"), dropWords[why])
	}
	warn(uint64(r.MembersWithoutData), "%s no data: waits that they caused are not seen",
		count(r.MembersWithoutData, "communicator rank left", "communicator ranks left"))
	warn(r.UnknownSizes, "%s unknown: shown as one byte per rank",
		count(r.UnknownSizes, "operation's size on a rank is", "operations' sizes on ranks are"))
	for _, p := range r.Problems {
		warn(1, "%s", p)
	}
	printable.Fprintf(w, "  analyze: mpirun -np %d --oversubscribe scout.mpi %s\n  look:    scalasca -examine %s\n",
		r.Rows, relativePath(r.Archive), relativePath(filepath.Dir(r.Archive)))
}
