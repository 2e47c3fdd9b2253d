// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/nccl-otf2/nccl-otf2/config"
	"github.com/nccl-otf2/nccl-otf2/internal/collector/control"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/printable"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// ctlOptions holds the options that all subcommands of ctl share.
type ctlOptions struct {
	format  choice
	lead    time.Duration
	timeout time.Duration
}

func ctlCommand() *cobra.Command {
	var o ctlOptions
	cmd := &cobra.Command{
		Use:   "ctl",
		Short: "Start and stop the recording of a running job, and show its status",
		Long: `Controls the collectors of a running job through its experiment directory DIR. The default is the directory that NCCL_OTF2_DIR or the job step names, else the one in this folder in which a job is
being recorded. Only the user who runs the job can do this.`,
		Example: `  nccl-otf2 ctl status exp1
  nccl-otf2 ctl stop exp1
  nccl-otf2 ctl events light exp1`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("ctl has no command %q: there are start, stop, events and status", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(ctlRecord(&o, true), ctlRecord(&o, false), ctlEvents(&o), ctlStatus(&o))
	for _, c := range cmd.Commands() {
		addFormat(c, &o.format)
		c.Flags().DurationVar(&o.timeout, "timeout", 5*time.Second, "how long to wait for the collectors' answers")
	}
	return cmd
}

const ctlRecordLong = `On each communicator, the order takes effect at the same operation on all ranks, which lies so far ahead that all
collectors know of the order by then (see --lead). Communicators that are created later %s. Operations of replayed
graphs are counted separately from those that are called; for both, the order takes effect at the same number.`

func ctlRecord(o *ctlOptions, on bool) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "start [DIR]",
		Short: "Start recording, or resume it",
		Long: "Starts recording, or resumes it.\n\n" +
			fmt.Sprintf(ctlRecordLong, "are recorded from their beginning"),
		Example: "  nccl-otf2 ctl start exp1",
	}
	if !on {
		cmd.Use, cmd.Short, cmd.Example = "stop [DIR]", "Stop recording until it is started again",
			"  nccl-otf2 ctl stop exp1 --lead 5s"
		cmd.Long = "Stops recording for the time being. What has been recorded is kept, and the job goes on.\n\n" +
			fmt.Sprintf(ctlRecordLong, "are not recorded")
	}
	cmd.Args = maxArgs("an experiment directory", 1)
	cmd.Flags().DurationVar(&o.lead, "lead", 2*time.Second,
		"how far ahead the order takes effect, at the present rate of operations")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := o.controller(args)
		if err != nil {
			return err
		}
		change, err := c.Record(cmd.Context(), on)
		if err != nil {
			return ctlError(err)
		}
		if o.format.isJSON() {
			err = writeJSON(cmd.OutOrStdout(), change)
		} else {
			printChange(cmd.OutOrStdout(), change, on)
		}
		return confirmationError(change, err)
	}
	return cmd
}

// confirmationError returns err, or an exit code if not all processes confirmed a change.
func confirmationError(c *control.Change, err error) error {
	if err == nil && len(c.Silent)+len(c.Late) > 0 {
		err = exitCode(exitInput)
	}
	return err
}

func printChange(w io.Writer, c *control.Change, on bool) {
	for _, m := range c.Comms {
		name := m.Name
		if name == "" {
			name = fmt.Sprintf("0x%016x", m.ID)
		}
		what := "recorded"
		if !on {
			what = "not recorded"
		}
		ranks := count(m.Members, "rank", "ranks")
		if m.NRanks > m.Members {
			ranks = fmt.Sprintf("%d of %d ranks", m.Members, m.NRanks)
		}
		edge := m.First
		if !on {
			edge = m.Last
		}
		from := fmt.Sprintf("from operation %d on", edge)
		if !on && edge == 0 { // recording has not begun yet
			from = "from the next operation on"
		}
		printable.Fprintf(w, "communicator %s (%s): %s %s\n", name, ranks, what, from)
		if m.Mixed {
			printable.Fprintf(w, "  it has both calls and replayed graphs, which reach that number separately\n")
		}
	}
	if len(c.Comms) == 0 {
		printable.Fprintln(w, map[bool]string{true: "all communicators are recorded, including new ones",
			false: "no communicator is recorded, not even new ones"}[on])
	}
	printUnconfirmed(w, c)
}

func printUnconfirmed(w io.Writer, c *control.Change) {
	for _, name := range c.Late {
		printable.Fprintf(
			w, "%s %s learned of it too late: its recording changes at another operation than that of the others "+
				"(try --lead)\n", paint(w, yellow, "!"), name)
	}
	for _, name := range c.Silent {
		printable.Fprintf(w, "%s %s has not confirmed it\n", paint(w, yellow, "!"), name)
	}
}

func ctlEvents(o *ctlOptions) *cobra.Command {
	return &cobra.Command{
		Use:   "events LIST [DIR]",
		Short: "Choose which events are recorded",
		Long: `Records the events in LIST from now on: presets and names as in NCCL_OTF2_EVENTS. It takes effect
immediately, in each process separately. Only events that NCCL was asked for when the job began are available.`,
		Example: "  nccl-otf2 ctl events light exp1\n  nccl-otf2 ctl events gpu,ProxyOp exp1",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("ctl events needs a list of events: see nccl-otf2 ctl events --help")
			}
			return maxArgs("a list of events and an experiment directory", 2)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			mask, err := config.ParseEvents(args[0])
			if err != nil {
				return usageError{err}
			}
			c, err := o.controller(args[1:])
			if err != nil {
				return err
			}
			change, missing, err := c.Events(cmd.Context(), mask)
			if err != nil {
				return ctlError(err)
			}
			out := cmd.OutOrStdout()
			if o.format.isJSON() {
				err = writeJSON(out, struct {
					*control.Change
					Missing []string `json:"missing"`
				}{change, slices.Concat([]string{}, missing)})
				return confirmationError(change, err)
			}
			printable.Fprintf(out, "recorded from now on: %s\n", config.EventList(mask&^maskOfNames(missing)))
			if len(missing) > 0 {
				printable.Fprintf(
					out, "%s NCCL was not asked for %s when the job began: they are not available in this run\n",
					paint(out, yellow, "!"), strings.Join(missing, ", "))
			}
			printUnconfirmed(out, change)
			return confirmationError(change, nil)
		},
	}
}

func maskOfNames(names []string) (mask uint32) {
	for i, name := range shm.EventNames {
		if slices.Contains(names, name) {
			mask |= 1 << i
		}
	}
	return mask
}

// processStatus is a process in the JSON output of `ctl status`.
type processStatus struct {
	control.Status
	Rate float64 `json:"recordsPerSecond"`
}

func ctlStatus(o *ctlOptions) *cobra.Command {
	return &cobra.Command{
		Use:   "status [DIR]",
		Short: "Show the status of the recording",
		Long: `Shows the status of each collector: what it records, how much has been recorded and lost, memory and disk in use,
and how far each communicator is.`,
		Example: "  nccl-otf2 ctl status exp1\n  nccl-otf2 ctl status --format json",
		Args:    maxArgs("an experiment directory", 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.controller(args)
			if err != nil {
				return err
			}
			before, now, silent, err := c.Status(cmd.Context())
			if err != nil {
				return ctlError(err)
			}
			rows := make([]processStatus, len(now))
			for i := range now {
				rows[i].Status = now[i]
				for j := range before {
					if b := &before[j]; b.Shard == now[i].Shard && now[i].Time.After(b.Time) {
						rows[i].Rate = math.Round(float64(now[i].Records-b.Records) / now[i].Time.Sub(b.Time).Seconds())
					}
				}
			}
			out := cmd.OutOrStdout()
			if o.format.isJSON() {
				err = writeJSON(out, struct {
					Processes []processStatus `json:"processes"`
					Silent    []string        `json:"silent"`
				}{rows, slices.Concat([]string{}, silent)})
			} else {
				err = printStatus(out, rows, silent)
			}
			if err == nil && len(silent) > 0 {
				err = exitCode(exitInput)
			}
			return err
		},
	}
}

func printStatus(w io.Writer, rows []processStatus, silent []string) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	printable.Fprintln(t, printable.Raw("rank\thost\tpid\trecording\trecords\trecords/s\tlost\tpaused\tmemory\tdisk\t"))
	for i := range rows {
		s := &rows[i]
		lost := uint64(0)
		for _, n := range s.Lost {
			lost += n
		}
		disk := units.Bytes(s.DiskUsed)
		if s.DiskLimit > 0 {
			disk += " of " + units.Bytes(s.DiskLimit)
		}
		printable.Fprintf(t, "%s\t%s\t%d\t%s\t%d\t%.0f\t%d\t%d\t%s of %s\t%s\t\n", orDash(s.Rank), s.Host, s.PID,
			recordingWord(&s.Status),
			s.Records, s.Rate, lost, s.Paused, units.Bytes(s.MemoryUsed), units.Bytes(s.MemoryTotal), disk)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	printable.Fprintln(w)
	t = tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	printable.Fprintln(t, printable.Raw("rank\tcommunicator\tits rank\tcollectives\tmessages\treplayed\trecorded\t"))
	for i := range rows {
		for _, c := range rows[i].Comms {
			name := c.Name
			if name == "" {
				name = fmt.Sprintf("0x%016x", c.ID)
			}
			printable.Fprintf(t, "%s\t%s\t%d of %d\t%d\t%d\t%d\t%s\t\n", orDash(rows[i].Rank), name, c.Rank, c.NRanks,
				c.Collectives, c.Messages, c.Replayed, windowWord(&c))
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for i := range rows {
		if s := &rows[i]; s.Stopped != "" {
			printable.Fprintf(w, "%s %s:%d records nothing new: %s\n", paint(w, yellow, "!"), s.Host, s.PID, s.Stopped)
		}
	}
	for _, name := range silent {
		printable.Fprintf(w, "%s %s does not answer\n", paint(w, yellow, "!"), name)
	}
	return nil
}

func orDash(rank int) string {
	if rank < 0 {
		return "–"
	}
	return fmt.Sprint(rank)
}

func recordingWord(s *control.Status) string {
	all, some := s.Recording()
	switch {
	case s.Stopped != "":
		return "stopped"
	case len(s.Recorded) == 0:
		return "nothing"
	case all:
		return map[string]string{"trace": "on", "record": "on, for replay"}[s.Mode]
	case some:
		return "in part"
	}
	return "paused"
}

// windowWord describes which operations are recorded.
func windowWord(c *control.CommStatus) string {
	switch {
	case c.First >= c.Last:
		return "none"
	case c.First == 0 && c.Last == math.MaxUint64:
		return "all"
	case c.Last == math.MaxUint64:
		return fmt.Sprintf("from %d", c.First)
	}
	return fmt.Sprintf("%d to %d", c.First, c.Last-1)
}

// controller returns the controller of the job.
func (o *ctlOptions) controller(args []string) (*control.Controller, error) {
	dir := ""
	if len(args) > 0 {
		dir = args[0]
	} else {
		var err error
		if dir, err = runningJob(); err != nil {
			return nil, err
		}
	}
	if err := requireFolder(dir, "the experiment directory of a running job"); err != nil {
		return nil, err
	}
	return &control.Controller{Dir: dir, Timeout: o.timeout, Lead: o.lead}, nil
}

// runningJob returns the experiment directory of the job that is being recorded: the one named in the environment, or
// else the only one in the working directory with a running collector.
func runningJob() (string, error) {
	env := newEnvironment(os.Environ())
	s, err := config.Load(env.lookup)
	if err != nil {
		return "", err
	}
	if s.Dir != "" || config.StepID(env.lookup) != "" {
		return s.Directory(env.lookup, 0), nil
	}
	dirs, _ := filepath.Glob("nccl-otf2-*")
	var running []string
	for _, d := range dirs {
		entries, err := experiment.List(d)
		if err == nil && slices.ContainsFunc(entries,
			func(e experiment.Entry) bool { return e.State == experiment.Writing }) {
			running = append(running, d)
		}
	}
	switch len(running) {
	case 0:
		return "", errors.New("no job is being recorded in this folder: give its experiment directory")
	case 1:
		return running[0], nil
	}
	return "", fmt.Errorf("%d jobs are being recorded here: name one of %s", len(running), strings.Join(running, ", "))
}

func ctlError(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w: only the user who runs the job can control it", err)
	}
	return err
}

// maxArgs permits up to n positional arguments.
func maxArgs(what string, n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > n {
			return usagef("%s takes %s, and no %q: see %s --help", cmd.CommandPath(), what, args[n], cmd.CommandPath())
		}
		return nil
	}
}
