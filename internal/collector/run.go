// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"runtime/debug"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/config"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/gpu"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// Options of Run.
type Options struct {
	// FD is the descriptor of the shared memory. Run takes it over.
	FD int
	// Profiles, if set, is sent the experiment directory each time that a profile of the running job is due: in the
	// collector of its first rank, at the setting PROFILE_INTERVAL. As long as nobody receives it is not due.
	Profiles chan<- string
	// Metrics, if set, is called with the experiment directory and a folder, in the collector of the job's first rank,
	// if the setting PROMETHEUS asks for metrics of the running job there. It must not block.
	Metrics func(experiment, folder string)
	// Processors is told how many processors the program should use at once at most: one as long as the job runs, as a
	// second one would be taken from the job and make the collector's work dearer, not shorter. Nil means that it is as
	// it is.
	Processors func(n int)
	// GPUs opens what knows the machine's GPUs; nil means gpu.Open. It is called in a goroutine of its own.
	GPUs func() (gpu.Library, error)
	// TimeService connects to what knows how far the machine's clock is off; nil means chronyd where it usually
	// listens.
	TimeService func() (net.Conn, error)
	// TimePatience is how long that may take for an answer; 0 means 200 ms.
	TimePatience time.Duration
	// Lookup gives the environment; nil means os.LookupEnv.
	Lookup config.Lookup
	// Log takes what the collector says of itself if the setting DEBUG is on; nil means os.Stderr.
	Log io.Writer
}

// mostProcessors is how many the collector uses at once when the job has ended.
const mostProcessors = 2

// Garbage is collected when the heap has grown by so many percent. When the job has ended its memory is free: what was
// put off is taken in a seventh less of the time.
const (
	garbage      = 100
	garbageAtEnd = 400
)

// heapBudget (bytes) is beyond which garbage is collected as often as it takes: what the model holds in memory has a
// bound far below (regions), chunks of events have 256 KiB a row.
const heapBudget = 192 << 20

// Outcome is what is left to be done when a process's shard is finished.
type Outcome struct {
	Experiment string // directory; "" if the collector could not begin
	// Unify: all processes of the job have finished, their archive is to be made (setting UNIFY), and they are few
	// enough for the collector that finds itself to be the last one. In record mode it is the recording.
	Unify  bool
	Record bool // the setting MODE is record
	Tables bool // the setting TABLES: of the archive, tables are to be written, too
	Debug  bool // the setting DEBUG
}

// Run is what the plugin starts beside each job process. It returns when the process has ended and
// its shard is finished, or at once, with an error, if it cannot work; the plugin then finds the
// reason in the shared memory. When ctx ends, it leaves the shard unfinished.
//
// It changes limits, CPU affinity and signal handling of the whole program.
func Run(ctx context.Context, o Options) (out Outcome, err error) {
	if o.Lookup == nil {
		o.Lookup = os.LookupEnv
	}
	if o.Log == nil {
		o.Log = os.Stderr
	}
	if o.GPUs == nil {
		o.GPUs = gpu.Open
	}
	if o.Processors == nil {
		o.Processors = func(int) {}
	}
	// A key at the terminal, or the end of a session, is for the job; the collector ends after it.
	signal.Ignore(unix.SIGINT, unix.SIGHUP, unix.SIGPIPE, unix.SIGXFSZ)
	term := make(chan os.Signal, 1)
	signal.Notify(term, unix.SIGTERM)
	defer signal.Stop(term)
	debug.SetGCPercent(garbage)
	debug.SetMemoryLimit(heapBudget)

	go experiment.PrepareDescriptions() // on another processor, if there is one, while the shard is made
	inode := inodeOf(o.FD)
	memory, err := shm.Map(o.FD)
	if err != nil {
		return out, err
	}
	defer memory.Close()
	c := &live{memory: memory, inode: inode, options: o, life: lifetime{term: term}, reported: make(map[string]bool)}
	if err := c.begin(o.Lookup); err != nil {
		memory.Post(err.Error())
		memory.SetState(shm.CollectorRefused)
		return out, err
	}
	// What the job does not wait for.
	o.Processors(1)
	defer o.Processors(mostProcessors)
	c.scarcity.processors = newProcessorWatch("/")
	if comm, ok := c.memory.Comm(0); ok && comm.NNodes > 0 {
		c.scarcity.expectRanks((comm.NRanks + comm.NNodes - 1) / comm.NNodes)
	}
	nudged := make(chan struct{})
	go func() { // a sleep does not outlast the process
		defer close(nudged)
		<-c.life.watch.over
		memory.Nudge()
	}()
	defer func() {
		c.life.watch.close()
		<-nudged
	}()
	c.gpus = newGPUWatch(c, o.GPUs)
	defer c.gpus.stop(0)
	c.service = newTimeWatch(c, o.TimeService, o.TimePatience)
	defer c.service.stop()
	c.startProfiles(o.Profiles)
	c.startMetrics(o.Metrics)
	out.Experiment, out.Record, out.Tables, out.Debug = c.experiment, c.settings.Record, c.settings.Tables,
		c.settings.Debug
	if err := c.run(ctx); err != nil {
		return out, err
	}
	if c.settings.Unify && c.life.ended {
		out.Unify, err = isLast(c.experiment)
	}
	return out, err
}

// pin binds all threads of this program to the CPUs, if there are any. Threads that begin later
// inherit it.
func pin(cpus config.NumberSet) error {
	if len(cpus) == 0 {
		return nil
	}
	var set unix.CPUSet
	for _, r := range cpus {
		for n := r.First; n <= r.Last && n < len(set)*64; n++ {
			set.Set(n)
		}
	}
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	for _, t := range threads {
		var tid int
		if _, err := fmt.Sscan(t.Name(), &tid); err != nil {
			continue
		}
		if err := unix.SchedSetaffinity(tid, &set); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("none of these CPUs may be used: %w", err)
		}
	}
	return nil
}
