// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/nccl-otf2/nccl-otf2/internal/collector"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/rawfiles"
	"github.com/nccl-otf2/nccl-otf2/internal/printable"
	"github.com/nccl-otf2/nccl-otf2/internal/replay/record"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
	"github.com/nccl-otf2/nccl-otf2/scorep"
)

func unifyCommand() *cobra.Command {
	var f choice
	var want wanted
	sync, noSync := true, false
	cmd := &cobra.Command{
		Use:   "unify DIR",
		Short: "Make the archive of an experiment directory",
		Long: `Makes the archive from what the processes of a job have written to the experiment directory DIR. You can do this while
the job runs (the archive then contains what is on disk so far), after a crash, and again at any time. Collectors of
processes that have ended are waited for as long as they make progress. Jobs that shared the directory get an archive
each, in run-1, run-2, ….

For a job in profile mode (NCCL_OTF2_MODE=profile) it makes DIR/profile.cubex and DIR/profile.json instead, and for a
job that was recorded for replay (NCCL_OTF2_MODE=record) DIR/recording. If processes and their collectors were killed
with NCCL_OTF2_RING=shm, it first saves what they left in /dev/shm; run it on the machine where they ran.

If a job ran on more than one host, their clocks are aligned (--sync), because no collective can end before its last
rank has entered it, and no message can arrive before it was sent. The result is written as clock offsets beside the
event files, for readers to apply; the event files are not changed. This step reads the events of communicators that
span hosts (some seconds for ten million), and needs some 100 MiB of memory. --no-sync leaves the clocks as they are,
and undoes an earlier correction.

NCCL stamps the ends of some operations (trees, NVLS, several messages) when a part of them is done. If there
are any, unify moves them to the times that other ranks' stamps prove (docs/gpu.md), which means reading events, too.
--no-ends leaves them where NCCL stamped them.

--tables also writes the archive's Parquet tables, for which there is "nccl-otf2 query" (docs/tables.md). With
NCCL_OTF2_TABLES=on they are written without any command when the job has ended.

Processes whose data is damaged are named and left out, and the exit code is 1; the archive is made from the others.`,
		Example: `  nccl-otf2 unify nccl-otf2-20260131-101500-4711
  nccl-otf2 unify exp1 --format json
  nccl-otf2 unify exp1 --no-sync
  nccl-otf2 unify exp1 --tables && nccl-otf2 query exp1 waits`,
		Args: exactArgs("an experiment directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			want.sync = sync && !noSync
			res, err := unifyDirectory(args[0], want)
			if err != nil {
				return err
			}
			return writeResult(cmd.OutOrStdout(), f, res, func(w io.Writer) { printUnified(w, res) },
				res.isIncomplete())
		},
	}
	addFormat(cmd, &f)
	cmd.Flags().BoolVar(&sync, "sync", sync, "align the clocks of several hosts")
	cmd.Flags().BoolVar(&noSync, "no-sync", noSync, "leave the hosts' clocks as they are")
	cmd.MarkFlagsMutuallyExclusive("sync", "no-sync")
	cmd.Flags().BoolVar(&want.stamped, "no-ends", false, "leave ends of operations where NCCL stamped them")
	cmd.Flags().BoolVar(&want.tables, "tables", false,
		"also write the archive's Parquet tables, as 'nccl-otf2 export --parquet' does")
	return cmd
}

// wanted holds the options for what to make from an experiment directory.
type wanted struct {
	sync    bool // synchronize the clocks of several hosts
	stamped bool // leave the ends of operations where NCCL stamped them
	tables  bool // also write the tables of each archive
}

// makeArchives converts raw files, which processes without a collector wrote, then unifies. The tool and the last
// collector of a job both use it.
func makeArchives(dir string, p *progressLine) (*scorep.Result, error) {
	return new(madeTables).makeArchives(dir, wanted{sync: true}, p)
}

// unifyOptions locks the directory, converts its raw files, and returns the options for all archives made from it. The
// caller must release options.Hold after making the archive, so that no other process interferes.
func unifyOptions(dir string, progress func(phase string, done, total int)) (*scorep.UnifyOptions, error) {
	hold, err := experiment.Lock(dir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return &scorep.UnifyOptions{Hold: hold, Raw: collector.ConvertAll(hold), Creator: creator(), Progress: progress},
		nil
}

// unified is the result of unifying an experiment directory.
type unified struct {
	*scorep.Result          // nil if no process recorded a timeline
	Recordings     []string `json:"recordings,omitempty"`      // folders for `nccl-otf2 replay` made by this call
	Kept           []string `json:"recordings_kept,omitempty"` // such folders of an earlier call, if this made none
	// processes whose records were saved from shared memory or backlogs
	Saved    int      `json:"saved,omitempty"`
	Unsaved  []string `json:"unsaved,omitempty"`  // why other processes' records could not be saved
	Behind   string   `json:"behind,omitempty"`   // records that collectors have put off and not yet processed
	Recorded int      `json:"recorded,omitempty"` // running processes in record mode

	Profiles []madeProfile `json:"profiles,omitempty"` // profiles of jobs in profile mode, made by this call
	madeTables
}

// isIncomplete reports whether recorded data could not be read.
func (u *unified) isIncomplete() bool {
	return u.Result != nil && u.Damaged > 0 || u.tablesError() != nil ||
		slices.ContainsFunc(u.Profiles, func(m madeProfile) bool { return m.damaged })
}

// unifyDirectory makes the archives and profiles of an experiment directory, and the recordings of jobs in record mode.
// It shows its progress.
func unifyDirectory(dir string, want wanted) (*unified, error) {
	if err := requireFolder(dir, "the experiment directory of a job"); err != nil {
		return nil, err
	}
	if !isDir(filepath.Join(dir, experiment.Folder)) {
		if text := recordedForReplay(dir); text != "" {
			return nil, errors.New(text)
		}
		return nil, noShardsError(dir)
	}
	experiment.Tidy(dir)
	u := new(unified)
	waiting := newProgress()
	// the result names those that are late
	waitForCollectors(context.Background(), dir, experiment.Await{}, waiting)
	waiting.clearLine()
	found, err := u.prepareShards(dir)
	if err != nil {
		return nil, err
	}
	profiles := func() (err error) {
		if !found.profiles {
			return nil
		}
		// fs.ErrNotExist: all data are in the archive by now
		if u.Profiles, err = makeProfiles(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("profile of %s: %w", dir, err)
		}
		return nil
	}
	if u.Recorded = found.recorded; !found.traces {
		if err := profiles(); err != nil {
			return nil, err
		}
		if len(u.Recordings) == 0 {
			u.Kept = recordingFolders(dir)
		}
		return u, nil
	}
	p := newProgress()
	defer p.clearLine()
	res, err := u.makeArchives(dir, want, p)
	// Profiles need the converted raw files, which supply what a collector had summed up but not completed.
	if err := profiles(); err != nil {
		return nil, err
	}
	switch {
	case errors.Is(err, experiment.ErrBusy):
		return nil, tryLaterError(err)
	case errors.Is(err, fs.ErrNotExist) && found.profiles: // other processes died before they were described
		return u, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s holds nothing to unify: %w", dir, err)
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("%w: unify as a user who may write %s", err, dir)
	case err != nil:
		return nil, err
	}
	u.Result = res
	return u, nil
}

// prepareShards saves records that processes left in shared memory, assembles the recordings of processes in record
// mode, and returns which modes the directory contains. It lists the shards only once if it can, because there may be
// many.
func (u *unified) prepareShards(dir string) (found foundModes, err error) {
	if behind, err := watchJob(context.Background(), dir, watchPatience); behind > 0 || err != nil {
		u.Behind = behindText(behind, err)
	}
	entries, err := experiment.List(dir)
	if err != nil {
		return found, err
	}
	if u.Saved, err = collector.SalvageOf(dir, entries); err != nil {
		u.Unsaved = append(u.Unsaved, strings.Split(err.Error(), "\n")...)
	}
	if u.Recordings, err = record.Assemble(dir); err != nil {
		return found, fmt.Errorf("recording in %s: %w", dir, err)
	}
	if u.Saved > 0 { // saving made new shards
		if entries, err = experiment.List(dir); err != nil {
			return found, err
		}
	}
	return modesOfEntries(dir, entries), nil
}

// foundModes states which modes of recording an experiment directory contains.
type foundModes struct {
	traces   bool // processes with events
	profiles bool // processes in profile mode
	recorded int  // number of running processes in record mode
}

// findModes reads the modes of a directory's shards. It ignores unreadable ones; unify reports them.
func findModes(dir string) (found foundModes, err error) {
	entries, err := experiment.List(dir)
	if err != nil {
		return found, err
	}
	return modesOfEntries(dir, entries), nil
}

// modesOfEntries returns the modes of a directory whose shards have been listed.
func modesOfEntries(dir string, entries []experiment.Entry) (found foundModes) {
	others := 0
	for _, e := range entries {
		switch {
		case e.Process.IsProfile():
			found.profiles = true
		case !record.IsRecording(e.Process):
			found.traces = true
			continue
		case e.State == experiment.Writing:
			found.recorded++
		}
		others++
	}
	found.traces = found.traces || len(rawfiles.Find(dir)) > 0 || others == 0
	return found
}

// lastFlushes describes the times of the last flush of processes that ended without completing; "" if there are none.
func lastFlushes(at []time.Time) string {
	if len(at) == 0 {
		return ""
	}
	first, last := slices.MinFunc(at, time.Time.Compare), slices.MaxFunc(at, time.Time.Compare)
	text := last.Format(time.DateTime)
	if earlier := first.Format(time.DateTime); earlier != text {
		text = "between " + earlier + " and " + text
	}
	return fmt.Sprintf(" (last flushed %s, %v ago)", text, time.Since(last).Round(time.Second))
}

// printUnified prints what was made and what is missing in it.
func printUnified(w io.Writer, u *unified) {
	for _, folder := range append(u.Recordings, u.Kept...) {
		printable.Fprintf(w, "%s\n  play it: nccl-otf2 replay %s --clock recorded\n",
			paint(w, bold, relativePath(folder)), relativePath(folder))
	}
	for i := range u.Profiles {
		u.Profiles[i].print(w)
	}
	if u.Recorded > 0 {
		printable.Fprintf(w, "%s %s still recorded for replay: unify again when the job has ended\n",
			paint(w, yellow, "!"), count(u.Recorded, "process is", "processes are"))
	}
	if u.Saved > 0 {
		printSaved(w, u.Saved)
	}
	if u.Behind != "" {
		printable.Fprintf(w, "%s %s\n", paint(w, yellow, "!"), u.Behind)
	}
	for _, problem := range u.Unsaved {
		printable.Fprintf(w, "%s left behind: %s\n", paint(w, yellow, "!"), problem)
	}
	if u.Result != nil {
		printArchives(w, u.Result)
	}
	u.print(w)
}

// maxDifferences is the maximum number of differences between ranks printed per archive.
const maxDifferences = 16

// printArchives prints which archives were made and what is missing in them.
func printArchives(w io.Writer, res *scorep.Result) {
	for i := range res.Runs {
		r := &res.Runs[i]
		printable.Fprintln(w, paint(w, bold, relativePath(r.Archive)))
		printable.Fprintf(w, "  %s on %s, %s, %s, %s", count(r.Processes(), "process", "processes"),
			count(r.Hosts, "host", "hosts"),
			count(r.Communicators, "communicator", "communicators"), count(r.Locations, "location", "locations"),
			count(r.Events, "event", "events"))
		if r.Last > r.First {
			printable.Fprintf(w, " over %s", units.Duration(uint64(r.Last-r.First), 10*time.Microsecond))
		}
		printable.Fprintln(w)
		warn := func(format string, args ...any) {
			printable.Fprintf(w, "  %s %s\n", paint(w, yellow, "!"), fmt.Sprintf(format, args...))
		}
		if r.ClockSync != nil {
			printClocks(w, r.ClockSync, warn)
		}
		for _, t := range r.Hidden {
			if t.Grave {
				warn("not recorded: %s", t)
			}
		}
		if r.Events == 0 {
			warn("no events: NCCL made communicators but no operations of more than one rank")
		}
		if r.Running > 0 {
			warn("%s still recorded: unify again later for the rest", count(r.Running, "process is", "processes are"))
		}
		if r.Crashed > 0 {
			warn("%s ended without completing: what had reached the disk is in the archive%s",
				count(r.Crashed, "process", "processes"), lastFlushes(r.Flushed))
		}
		for _, line := range r.Died {
			warn("%s", line)
		}
		if r.Missing > 0 {
			warn("%s left nothing here", count(r.Missing, "process of the job", "processes of the job"))
		}
		if r.MissingRanks > 0 {
			warn("%s without data", count(r.MissingRanks, "communicator rank is", "communicator ranks are"))
		}
		for _, line := range (losses{all: r.Lost, fromDisk: r.LostFromDisk, withCollector: r.LostWith,
			beforeImport: r.LostBefore, uncounted: r.Uncounted}).formatLines(true) {
			warn("%s", line)
		}
		said := 0
		for _, d := range r.Differences {
			if d.Died { // counted above
				continue
			}
			if said++; said <= maxDifferences {
				warn("ranks differ: %s", d)
			}
		}
		if more := said - maxDifferences; more > 0 {
			warn("ranks differ in %s", count(more, "further stretch of operations", "further stretches of operations"))
		}
		for _, p := range r.Problems {
			warn("%s", p)
		}
	}
	for _, p := range res.Problems {
		printable.Fprintf(w, "%s %s\n", paint(w, yellow, "!"), p)
	}
}

// count formats a number with its noun.
func count[T int | uint64](n T, one, many string) string {
	if n == 1 {
		many = one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// unifyAndSummarize makes the archives and prints a summary on w.
func unifyAndSummarize(w io.Writer, dir string) error {
	res, err := unifyDirectory(dir, wanted{sync: true})
	if err == nil {
		printSummary(w, res)
	}
	return err
}

// printSummary prints what was made and what to do next.
func printSummary(w io.Writer, u *unified) {
	printUnified(w, u)
	if u.Result == nil {
		return
	}
	for _, r := range u.Runs {
		printable.Fprintf(w, "  report: nccl-otf2 report %s\n", relativePath(filepath.Dir(r.Archive)))
	}
}

// relativePath shortens a path, for commands shown to the user, if it is below the working directory.
func relativePath(path string) string {
	wd, err := os.Getwd()
	if err != nil {
		return path
	}
	if r, err := filepath.Rel(wd, path); err == nil && filepath.IsLocal(r) {
		return r
	}
	return path
}

func noShardsError(dir string) error {
	return fmt.Errorf("%s holds no recording (no shards): give the experiment directory of a job", dir)
}

// tryLaterError adds a hint to the error that another process is making the archive.
func tryLaterError(err error) error { return fmt.Errorf("%w: try again when it is done", err) }

func printSaved(w io.Writer, processes int) {
	printable.Fprintf(w, "saved what %s had left behind\n", count(processes, "process", "processes"))
}
