// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/cmd/nccl-otf2/internal/doctor"
	"github.com/nccl-otf2/nccl-otf2/config"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/hidden"
	"github.com/nccl-otf2/nccl-otf2/internal/installed"
	"github.com/nccl-otf2/nccl-otf2/internal/printable"
	"github.com/nccl-otf2/nccl-otf2/scorep"
)

// collectorsLimit is how long to wait after the end of a command for collectors that make no progress, and for other
// processes that make the archive.
const collectorsLimit = 60 * time.Second

// Exit codes of `run` if the command could not be started, as in shells and env(1).
const (
	exitCannotRun = 126
	exitNotFound  = 127
)

type runOptions struct {
	dir, events, config string
	unify               bool
}

func runCommand() *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run [flags] -- COMMAND [ARGUMENT…]",
		Short: "Run a job and record what NCCL does in it",
		Long: `Runs COMMAND with the plugin switched on (NCCL_PROFILER_PLUGIN and NCCL_OTF2_DIR are set for it), makes
one archive of what its processes recorded, and exits as COMMAND did: with its exit code, with 128+n if signal n ended
it, or with 127 or 126 if it could not be found or started. If the plugin cannot be loaded, because its file is
damaged, say, the command runs all the same, and a line says that nothing will be recorded.

With ` + hidden.Unsafe + `, GPU times need ` + hidden.AllGatherV + `=0. Unless you have set this variable yourself, it
is set if GPU times are to be recorded, and if nothing indicates that the job has processes on other hosts, which
would not get it.

If a launcher starts it once per rank (srun nccl-otf2 run -- …), the last process to end makes the archive. One rank
prints where the archive is, or which rank it is still waiting for because that has recorded nothing.

If variables of Score-P (SCOREP_…) are set, the experiment directory is moved into the one that Score-P has made, as
its folder ` + ncclFolder + `; ` + "`nccl-otf2 merge`" + ` then makes one archive of both. Score-P also loads a
plugin, so that its pauses apply to NCCL's archive, too: ` +
			substrateName + ` is added to ` + substratePlugins +
			`, unless that is set and empty, and the tool's folder to ` +
			libraryPath + `.`,
		Example: `  nccl-otf2 run -- torchrun --nproc-per-node 8 train.py
  nccl-otf2 run --dir exp1 --events light -- mpirun -np 4 ./all_reduce_perf -b 8 -e 128M
  srun -N 2 nccl-otf2 run --dir exp2 -- python train.py`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("run needs a command: nccl-otf2 run -- COMMAND …")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return run(&o, args) },
	}
	cmd.Flags().SetInterspersed(false)
	cmd.Flags().StringVar(
		&o.dir, "dir", "", "experiment directory (default: NCCL_OTF2_DIR, else a new nccl-otf2-<time>-<pid>)")
	cmd.Flags().StringVar(&o.events, "events", "",
		"what to record: light, gpu, net, net-sums, all, or a list of event names (default: NCCL_OTF2_EVENTS, else "+
			"gpu)")
	cmd.Flags().StringVar(&o.config, "config", "", "settings file (default: NCCL_OTF2_CONFIG)")
	cmd.Flags().BoolVar(&o.unify, "unify", true,
		"make the archive after the command; --unify=false leaves it to 'nccl-otf2 unify'")
	return cmd
}

func run(o *runOptions, args []string) error {
	env, settings, err := o.makeEnvironment()
	if err != nil {
		return err
	}
	// Slurm sends SIGTERM twice when it ends a job, and SIGKILL some time later: collectors use the time in between.
	if !signal.Ignored(unix.SIGTERM) {
		signal.Notify(make(chan os.Signal, 1), unix.SIGTERM)
	}
	plugin, err := findPlugin()
	if err != nil {
		printable.Fprintf(os.Stderr, "nccl-otf2: nothing will be recorded: %s\n", oneLine(err.Error()))
		removePlugin(env)
		code, _, err := runChild(args, env.list())
		return exitError(code, err)
	}
	env.set(pluginVariable, plugin)
	// Started per rank by a launcher, all ranks must agree on the directory, and the last one that is
	// done makes the archive: the collectors do so, and this tool waits for it, because launchers kill
	// what is left when their processes have ended.
	member := startedPerRank(env)
	dir, err := o.makeDirectory(env, settings, member)
	if err != nil {
		return err
	}
	want := ending{archive: o.unify && settings.Unify, tables: settings.Tables, member: member,
		command: filepath.Base(args[0])}
	if !member || !want.archive {
		env.set("NCCL_OTF2_UNIFY", "off")
	}
	prepareRun(settings, env, args)

	began := time.Now()
	code, child, err := runChild(args, env.list())
	if err != nil {
		return exitError(code, err)
	}
	dirs := []string{dir}
	if dir == "" {
		dirs = namedAfterCommunicators(began)
	}
	for _, dir := range dirs {
		concludeRun(dir, env, want, began, child)
	}
	return exitCode(code)
}

// exitError returns the exit code of a command; it prints the error if the command could not be started.
func exitError(code int, err error) error {
	if err != nil {
		printable.Fprintln(os.Stderr, "nccl-otf2:", oneLine(err.Error()))
	}
	return exitCode(code)
}

// pluginVariable names NCCL's profiler plugin.
const pluginVariable = "NCCL_PROFILER_PLUGIN"

// findPlugin returns the absolute path of this installation's plugin, or an error if no process can load it.
func findPlugin() (string, error) {
	plugin, err := ownLibrary(doctor.PluginName)
	if err != nil {
		return "", err
	}
	if _, err := doctor.CheckPlugin(plugin); err != nil {
		return "", fmt.Errorf("%s %w: install it anew (`nccl-otf2 doctor` looks at the rest)", plugin, err)
	}
	return plugin, nil
}

// removePlugin keeps a command from loading our plugin, which would kill it. The plugin of another profiler stays set.
func removePlugin(env *environment) {
	if strings.Contains(env.get(pluginVariable), "nccl-profiler-otf2") {
		env.set(pluginVariable, "none")
	}
}

// makeEnvironment returns the environment of the command with the values of flags, and the resulting settings.
func (o *runOptions) makeEnvironment() (*environment, *config.Settings, error) {
	env := newEnvironment(os.Environ())
	if o.events != "" {
		env.set("NCCL_OTF2_EVENTS", o.events)
	}
	if o.config != "" {
		path, err := filepath.Abs(o.config)
		if err != nil {
			return nil, nil, err
		}
		env.set("NCCL_OTF2_CONFIG", path)
	}
	settings, err := jobSettings(env)
	if err != nil {
		return nil, nil, settingsFault(err, o.events)
	}
	return env, settings, nil
}

// makeDirectory creates the experiment directory and passes it to the command; "" if the plugin will name it.
func (o *runOptions) makeDirectory(env *environment, settings *config.Settings, member bool) (string, error) {
	dir := cmp.Or(o.dir, settings.Dir)
	if dir == "" {
		if id := config.StepID(env.lookup); member && id != "" {
			dir = settings.Directory(env.lookup, 0)
		} else if !member {
			dir = newDirectory()
		}
	}
	if dir == "" {
		return "", nil
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	env.set("NCCL_OTF2_DIR", dir)
	return dir, requireWritable(dir)
}

// prepareRun completes the environment, and prints what the user should know before the command starts.
func prepareRun(settings *config.Settings, env *environment, args []string) {
	for _, text := range []string{ensureGPUTimes(settings, env, args), ensureSubstrate(env)} {
		if text != "" {
			printable.Fprintln(os.Stderr, "nccl-otf2:", text)
		}
	}
	for _, t := range hidden.Set(env.get) {
		fmt.Fprintf(os.Stderr, "nccl-otf2: not recorded: %s\n", t)
	}
}

// newDirectory returns the name of an experiment directory that does not exist yet.
func newDirectory() string {
	return fmt.Sprintf("nccl-otf2-%s-%d", time.Now().Format("20060102-150405"), os.Getpid())
}

// namedAfterCommunicators returns the directories in the working directory that contain data recorded since a time. The
// plugin names them after the first communicator if the launcher does not identify the job (MPICH).
func namedAfterCommunicators(since time.Time) (dirs []string) {
	found, _ := filepath.Glob("nccl-otf2-" + strings.Repeat("[0-9a-f]", 16))
	for _, dir := range found {
		if path, err := filepath.Abs(dir); err == nil && recordedSince(path, since) {
			dirs = append(dirs, path)
		}
	}
	return dirs
}

// ending holds what concludeRun needs to know about a command.
type ending struct {
	archive bool   // make the archive
	tables  bool   // write the archive's tables
	member  bool   // a launcher starts `run` once per rank
	command string // name of the command
}

// concludeRun makes the archive after the command has ended, and reports the result. It does not change the exit code,
// which is the command's.
func concludeRun(dir string, env *environment, o ending, began time.Time, child *os.ProcessState) {
	member, command := o.member, o.command
	say := func(format string, args ...any) {
		printable.Fprintf(os.Stderr, "nccl-otf2: "+format+"\n", args...)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	p := newProgress()
	late := waitForCollectors(ctx, dir, experiment.Await{Over: true, Here: member, Patience: collectorsLimit}, p)
	p.clearLine()
	wait, cancel := context.WithTimeout(ctx, collectorsLimit)
	defer cancel()
	if status, ok := child.Sys().(syscall.WaitStatus); ok {
		if err := experiment.RecordStatus(dir, child.Pid(), uint32(status)); err != nil {
			say("how %s ended was not noted: %s", command, oneLine(err.Error()))
		}
	}
	if !recordedSince(dir, began) {
		if member {
			announceSilent(wait, dir, command, env, say)
		} else {
			say("nothing was recorded: %s", explainNothing(command))
		}
		return
	}
	if ctx.Err() != nil {
		late = nil // the message below covers it
	}
	for _, s := range late {
		say("the collector of shard %s in %s has not finished: unify once more when it has", s, relativePath(dir))
	}
	switch {
	case !o.archive:
		announceRecorded(dir, env, member, began, say)
		return
	case ctx.Err() != nil:
		say("interrupted; make the archive with `nccl-otf2 unify %s`", relativePath(dir))
		return
	}
	complete, made := archiveState(dir, o.tables)
	switch {
	case member && made:
		announceMade(dir, env, say)
		return
	case member && !complete: // other processes of the job are not done, or have left no data
		announceSilent(wait, dir, command, env, say)
		return
	}
	if o.tables { // takes time in proportion to the number of events
		wait = ctx
	}
	result, elsewhere, err := unifyWhenFree(wait, dir, o)
	switch {
	case elsewhere:
		announceMade(dir, env, say)
		return
	case err != nil:
		say("%v", oneLine(err.Error()))
		return
	}
	first := !member || firstToAnnounce(dir, env)
	to, joined := joinScorep(dir, env, began, say)
	result.changeFolder(dir, to)
	if !first {
		return
	}
	printSummary(os.Stderr, result)
	if joined && isFile(filepath.Join(filepath.Dir(to), anchorName)) {
		printable.Fprintf(os.Stderr, "  with Score-P's trace: nccl-otf2 merge %s --output DIR\n",
			relativePath(filepath.Dir(to)))
	}
}

// announceRecorded reports how to make the archive if none was requested.
func announceRecorded(dir string, env *environment, member bool, began time.Time,
	say func(format string, args ...any)) {
	if !member {
		dir, _ = joinScorep(dir, env, began, say)
		say("recorded in %s; make the archive with `nccl-otf2 unify %s`", relativePath(dir), relativePath(dir))
	} else if firstToAnnounce(dir, env) {
		say("recorded in %s; when all ranks have ended make the archive with `nccl-otf2 unify %s`", relativePath(dir),
			relativePath(dir))
	}
}

// unifyWhenFree makes the archive. Another process may be unifying the directory: a collector, or `run` on another
// node, perhaps without this node's part. elsewhere reports that another member of the job has made the archive
// meanwhile.
func unifyWhenFree(wait context.Context, dir string, o ending) (result *unified, elsewhere bool, err error) {
	want := wanted{sync: true, tables: o.tables}
	// The job's last collector makes the archive; `run` makes it only if there is no collector, or if it fails.
	for o.member && collectorsLive(dir) && wait.Err() == nil {
		time.Sleep(20 * time.Millisecond)
	}
	if _, made := archiveState(dir, o.tables); o.member && made {
		return nil, true, nil
	}
	result, err = unifyDirectory(dir, want)
	for errors.Is(err, experiment.ErrBusy) && wait.Err() == nil {
		time.Sleep(100 * time.Millisecond)
		if _, made := archiveState(dir, o.tables); o.member && made {
			return nil, true, nil
		}
		result, err = unifyDirectory(dir, want)
	}
	return result, false, err
}

// collectorsLive reports whether a collector whose shard is complete still runs on this machine.
func collectorsLive(dir string) bool {
	entries, err := experiment.List(dir)
	return err == nil && slices.ContainsFunc(entries, func(e experiment.Entry) bool { return e.WriterLives() })
}

// joinScorep moves the experiment directory into Score-P's, if one is expected. It returns the new path, and reports
// why the directory was not moved.
func joinScorep(dir string, env *environment, began time.Time, say func(format string, args ...any)) (string, bool) {
	if !expectsScorep(env) {
		return dir, false
	}
	to, err := joinMeasurement(dir, env, began)
	if err != nil {
		say("%s stays where it is: %s", relativePath(dir), oneLine(err.Error()))
	}
	return to, err == nil
}

// runChild runs the command with the tool's standard streams, and returns its exit code and state. An error means that
// it did not start.
func runChild(args, env []string) (int, *os.ProcessState, error) {
	path, err := exec.LookPath(args[0])
	if err != nil {
		if errors.Is(err, os.ErrPermission) {
			return exitCannotRun, nil, fmt.Errorf("%s cannot be started: no permission to execute it", args[0])
		}
		return exitNotFound, nil, fmt.Errorf("%s: no such command", args[0])
	}
	child := exec.Command(path, args[1:]...)
	child.Args[0] = args[0]
	child.Env = env
	child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr

	// Signals that end or inform a job are passed to the command; the tool keeps running.
	signals := make(chan os.Signal, 16)
	for _, s := range []os.Signal{unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGHUP, unix.SIGUSR1, unix.SIGUSR2} {
		if !signal.Ignored(s) { // under nohup the command must keep ignoring SIGHUP
			signal.Notify(signals, s)
		}
	}
	defer signal.Stop(signals)
	if err := child.Start(); err != nil {
		return exitCannotRun, nil, fmt.Errorf("%s cannot be started: %w", args[0], err)
	}
	ended := make(chan struct{})
	go func() {
		for {
			select {
			case s := <-signals:
				// A key at the terminal signals the whole foreground group: the command has it already,
				// and a second one would make mpirun abort at once.
				if (s == unix.SIGINT || s == unix.SIGQUIT) && inForeground() {
					continue
				}
				_ = child.Process.Signal(s)
			case <-ended:
				return
			}
		}
	}()
	err = child.Wait()
	close(ended)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return exitCannotRun, nil, fmt.Errorf("wait for %s: %w", args[0], err)
	}
	if status, ok := child.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), child.ProcessState, nil
	}
	return child.ProcessState.ExitCode(), child.ProcessState, nil
}

// inForeground reports whether this process is in the foreground group of a terminal.
func inForeground() bool {
	tty, err := os.OpenFile("/dev/tty", os.O_RDONLY|unix.O_NOCTTY, 0)
	if err != nil {
		return false
	}
	defer tty.Close()
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// ownLibrary returns the absolute path of a library of this installation.
func ownLibrary(name string) (string, error) {
	tool, err := installed.Tool()
	if err != nil {
		return "", err
	}
	return installed.Library(tool, name)
}

// requireWritable returns an error if an experiment directory cannot be written, so that a job does not run for hours
// without being recorded.
func requireWritable(dir string) error {
	if _, err := doctor.CheckDirectory(dir); err != nil {
		return fmt.Errorf("experiment directory %s: %w: give another one with --dir", dir, err)
	}
	return scorep.MayUnify(dir)
}

// recordedSince reports whether a process has recorded in dir since a time.
func recordedSince(dir string, since time.Time) bool {
	entries, err := os.ReadDir(filepath.Join(dir, experiment.Folder))
	if err != nil {
		return false
	}
	for _, e := range entries {
		spool := filepath.Ext(e.Name()) == experiment.SpoolSuffix
		if !e.IsDir() && !spool {
			continue
		}
		// File systems keep coarser times than the clock has: allow for two seconds.
		if info, err := e.Info(); err == nil && info.ModTime().After(since.Add(-2*time.Second)) {
			return true
		}
	}
	return false
}
