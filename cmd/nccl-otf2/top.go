// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/live"
	"github.com/nccl-otf2/nccl-otf2/internal/printable"
	"github.com/nccl-otf2/nccl-otf2/internal/report"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// topShare is the maximum share of one processor's time that reading takes. If a reading takes long, so does the pause
// after it.
const topShare = 0.1

type topOptions struct {
	format           choice
	interval, window time.Duration
	once             bool
	most             rows // maximum rows of a table with --once
}

func topCommand() *cobra.Command {
	o := topOptions{interval: time.Second, window: 10 * time.Second, most: defaultRows}
	cmd := &cobra.Command{
		Use:   "top [DIR]",
		Short: "Watch a running job: operations per second, bandwidths, who waits, losses",
		Long: `Shows what a job is doing while it is recorded, from its experiment directory DIR (default: as for ctl): operations per
second, sizes and bandwidths, which ranks wait and for whom, what was lost. If the directory does not exist yet, it
waits for it. It ends when the job ends, or when you press q. It reads what the job's collectors write, a few seconds
after it happened, and does not disturb the job's processes. Collectors that postpone work (NCCL_OTF2_BACKLOG) catch up
when somebody looks. docs/top.md explains the columns and the fields of the JSON form.

If the output is not a terminal, or with --once, it prints the state of the job once: the first 20 rows of each table,
and of the ranks those that wait, or are waited for, the most. With --format json it prints one line for each update,
with all data.`,
		Example: `  nccl-otf2 top exp1
  nccl-otf2 top exp1 --once
  nccl-otf2 top exp1 --once --top all
  nccl-otf2 top exp1 --format json --interval 5s`,
		Args: maxArgs("an experiment directory", 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case o.interval < 100*time.Millisecond:
				return usagef("--interval must be at least 100ms, not %v", o.interval)
			case o.window < time.Second || o.window > time.Hour:
				return usagef("--window must be between 1s and 1h, not %v", o.window)
			}
			dir := ""
			if len(args) > 0 {
				dir = args[0]
			} else {
				var err error
				if dir, err = runningJob(); err != nil {
					return err
				}
			}
			if st, err := os.Stat(dir); err == nil && !st.IsDir() {
				return fmt.Errorf("%s is not a folder: give the experiment directory of a job", dir)
			}
			ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM, unix.SIGHUP)
			defer stop()
			t := &top{topOptions: o, live: live.New(dir, o.window), dir: dir}
			return ignoreClosedPipe(t.run(ctx, cmd.OutOrStdout()))
		},
	}
	fl := cmd.Flags()
	fl.DurationVar(&o.interval, "interval", o.interval,
		"time between updates; longer if an update takes more than a tenth of it")
	fl.DurationVar(&o.window, "window", o.window, "time over which rates are averaged")
	fl.Var(&o.most, "top", "with --once: number of rows of each table, or all")
	fl.BoolVar(&o.once, "once", false, "print the present state of the job, and exit")
	addFormat(cmd, &o.format)
	return cmd
}

type top struct {
	topOptions
	live *live.Follower
	dir  string
}

func (t *top) run(ctx context.Context, out io.Writer) error {
	terminal, _ := out.(*os.File)
	switch {
	case t.format.isJSON():
		return t.writeLines(ctx, out)
	case t.once || !isTerminal(out) || os.Getenv("TERM") == "dumb":
		v, err := t.readView(ctx, time.Now(), watchPatience)
		if err != nil {
			return err
		}
		if v.State == live.LiveWaiting {
			return t.noDataError(v)
		}
		return report.Live(v, int(t.most), int(t.most)).WriteText(out)
	}
	return t.showScreen(ctx, terminal)
}

// readView makes the collectors process the records that they have put off, for at most patience, and reads the job's
// state. What they still have not processed is a problem of the view.
func (t *top) readView(ctx context.Context, now time.Time, patience time.Duration) (*live.View, error) {
	behind, watching := watchJob(ctx, t.dir, patience)
	v, err := t.live.Look(now)
	if err == nil && (behind > 0 || watching != nil) {
		v.Problems = append(v.Problems, behindText(behind, watching))
	}
	return v, err
}

// noDataError returns the error for a single reading that finds no job.
func (t *top) noDataError(v *live.View) error {
	if len(v.Problems) > 0 {
		return fmt.Errorf("%s: no job can be seen yet: %s", t.dir, v.Problems[0])
	}
	return fmt.Errorf("%s: no job has been recorded in it yet", t.dir)
}

// pauseTime returns the time to wait before the next reading, if the last one began at began and has just ended.
func (t *top) pauseTime(began time.Time) time.Duration {
	took := time.Since(began)
	return max(t.interval-took, time.Duration(float64(took)/topShare)-took)
}

// writeLines prints one line per reading.
func (t *top) writeLines(ctx context.Context, out io.Writer) error {
	for {
		began := time.Now()
		patience := time.Duration(0)
		if t.once {
			patience = watchPatience
		}
		v, err := t.readView(ctx, began, patience)
		if err != nil {
			return err
		}
		if t.once && v.State == live.LiveWaiting {
			return t.noDataError(v)
		}
		if err := report.WriteJSON(out, v, ""); err != nil || t.once || v.Over {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(t.pauseTime(began)):
		}
	}
}

// showScreen updates the view on a terminal, and leaves the last one there at the end.
func (t *top) showScreen(ctx context.Context, terminal *os.File) error {
	s := openScreen(os.Stdin, terminal)
	var last *live.View
	err := func() error {
		defer s.close()
		for {
			began := time.Now()
			v, err := t.readView(ctx, began, 0)
			if err != nil {
				return err
			}
			last = v
			s.drawLines(t.formatPage(s, v))
			if v.Over {
				return nil
			}
			next := time.After(t.pauseTime(began))
			for waiting := true; waiting; {
				select {
				case <-ctx.Done():
					return nil
				case key := <-s.keys:
					if key == 'q' || key == 'Q' {
						return nil
					}
				case <-s.changed:
					s.drawLines(t.formatPage(s, v))
				case <-next:
					waiting = false
				}
			}
		}
	}()
	if err != nil || last == nil {
		return err
	}
	_, rows := s.size()
	for _, line := range topLines(last, rows) {
		if _, err := printable.Fprintln(terminal, line); err != nil {
			return err
		}
	}
	return nil
}

func (t *top) formatPage(s *screen, v *live.View) []string {
	columns, rows := s.size()
	lines := topLines(v, rows-1)
	const keys = "q: end"
	if room := columns - len([]rune(lines[0])) - len(keys); room > 1 {
		lines[0] += strings.Repeat(" ", room) + keys
	}
	return lines
}

// topLines formats a view in about the given number of rows. A third of the free rows is for operations, the rest for
// ranks.
func topLines(v *live.View, rows int) []string {
	write := func(operations, ranks int) []string {
		var b bytes.Buffer
		_ = report.Live(v, operations, ranks).WriteText(&b) // writing to a buffer cannot fail
		return strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
	}
	lines := write(0, 0)
	if len(lines) <= rows {
		return lines
	}
	free := rows - (len(lines) - len(v.Operations) - len(v.Ranks)) - 2 // two rows state how many are left out
	operations := min(len(v.Operations), max(free/3, free-len(v.Ranks), 1))
	return write(operations, max(free-operations, 1))
}
