// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/internal/atomicfile"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/printable"
	"github.com/nccl-otf2/nccl-otf2/internal/regular"
	"github.com/nccl-otf2/nccl-otf2/internal/replay"
)

type replayOptions struct {
	clock, pace choice
	dir, events string
	spool, keep bool
}

func replayCommand() *cobra.Command {
	o := replayOptions{
		clock: choice{"live", []string{"recorded", "live"}},
		pace:  choice{"fast", []string{"recorded", "fast"}},
	}
	cmd := &cobra.Command{
		Use:   "replay RECORDING",
		Short: "Play a recording of NCCL's calls through the plugin, and make its archive",
		Long: `Starts a host program for each recorded process. It loads the plugin as NCCL does and makes the calls that the real
NCCL made, so everything from callback to archive works without a GPU and without NCCL. RECORDING is a folder that
contains run.json, or the name of a recording that came with the tool: an installation has those of the tutorials, a
checkout all of testdata. An unknown name lists them.`,
		Example: `  nccl-otf2 replay 09-straggler-4p --clock recorded --dir demo
  nccl-otf2 replay testdata/nccl-callbacks/02-allcoll-4p-net --events all --pace recorded`,
		Args: exactArgs("a recording"),
		RunE: func(cmd *cobra.Command, args []string) error { return runReplay(cmd.OutOrStdout(), &o, args[0]) },
	}
	fl := cmd.Flags()
	addChoice(cmd, &o.clock, "clock",
		"recorded: times, hosts, processes and GPUs are those of the recording; live: those of the replay")
	addChoice(cmd, &o.pace, "pace", "recorded: keep the time between the recorded calls; fast: as fast as possible")
	fl.StringVar(&o.dir, "dir", "", "experiment directory (default: NCCL_OTF2_DIR, else a new nccl-otf2-<time>-<pid>)")
	fl.StringVar(&o.events, "events", "", "what to record: light, gpu, net, net-sums, all, or a list of event names "+
		"(default: NCCL_OTF2_EVENTS, else what the recording holds with --clock recorded, else gpu)")
	fl.BoolVar(&o.spool, "spool", false, "record without a collector, into raw files")
	fl.BoolVar(&o.keep, "keep", false,
		"keep what the host programs play, as DIR/replay/p<k>.program ("+replay.HostFile+" plays one by itself)")
	return cmd
}

func runReplay(out io.Writer, o *replayOptions, name string) error {
	folder, err := replay.Find(name)
	if err != nil {
		return err
	}
	rec, err := replay.Load(folder)
	if err != nil {
		return err
	}
	plugin, err := findPlugin()
	if err != nil {
		return err
	}
	host, err := replay.FindHost()
	if err != nil {
		return err
	}
	env := newEnvironment(os.Environ())
	set := []string{"NCCL_OTF2_UNIFY=off", "NCCL_OTF2_START_LIMIT=60"} // no job waits for it
	if o.events != "" {
		set = append(set, "NCCL_OTF2_EVENTS="+o.events)
		env.set("NCCL_OTF2_EVENTS", o.events)
	}
	settings, err := jobSettings(env)
	if err != nil {
		return settingsFault(err, o.events)
	}
	dir := cmp.Or(o.dir, settings.Dir)
	if dir == "" {
		dir = newDirectory()
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	if err := requireWritable(dir); err != nil {
		return err
	}
	set = append(set, "NCCL_OTF2_DIR="+dir)
	if o.clock.value == string(replay.ClockRecorded) {
		set = append(set, recordedEvents(rec)...)
	}

	if o.keep {
		if err := writePrograms(rec, filepath.Join(dir, "replay")); err != nil {
			return err
		}
	}
	began := time.Now()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM)
	defer stop()
	res, err := replay.Run(ctx, rec, replay.Options{
		Host: host, Plugin: plugin, Clock: replay.Clock(o.clock.value), Pace: replay.Pace(o.pace.value),
		Env: set, Spool: o.spool, Stderr: os.Stderr,
	})
	if err != nil {
		return err
	}
	if err := res.Err(); err != nil {
		return fmt.Errorf("replay of %s: %w", rec.Name, err)
	}
	starts := 0
	for _, n := range res.Total().Delivered.Starts {
		starts += n
	}
	printable.Fprintf(out, "replayed %s: NCCL %s, %s, %s\n", rec.Name, rec.Run.NCCL,
		count(len(res.Processes), "process", "processes"), count(starts, "event", "events")+" of NCCL")
	if err := awaitReplay(ctx, dir, began); err != nil {
		return err
	}
	if o.clock.value == string(replay.ClockRecorded) {
		if err := restoreOrigins(dir, rec, res); err != nil {
			return fmt.Errorf("replay of %s: what it says of hosts and GPUs: %w", rec.Name, err)
		}
	}
	return unifyAndSummarize(out, dir)
}

func writePrograms(rec *replay.Recording, dir string) error {
	if err := atomicfile.MakeFolder(dir); err != nil {
		return err
	}
	for k := range rec.Processes {
		program, err := replay.Compile(rec, k)
		if err != nil {
			return err
		}
		if err := atomicfile.Write(filepath.Join(dir, fmt.Sprintf("p%d.program", k)), regular.File, program,
			atomicfile.Volatile); err != nil {
			return err
		}
	}
	return nil
}

// awaitReplay waits until the collectors have finished.
func awaitReplay(ctx context.Context, dir string, began time.Time) error {
	p := newProgress()
	late := waitForCollectors(ctx, dir, experiment.Await{Over: true, Patience: collectorsLimit}, p)
	p.clearLine()
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("interrupted; make the archive with `nccl-otf2 unify %s`", relativePath(dir))
	}
	if len(late) > 0 {
		return fmt.Errorf("%s not finished, nor got any further in %v: see what they do with NCCL_OTF2_DEBUG=on",
			count(len(late), "collector has", "collectors have"), collectorsLimit)
	}
	if !recordedSince(dir, began) {
		return errors.New("nothing was recorded: run with NCCL_OTF2_DEBUG=on to see why")
	}
	return nil
}
