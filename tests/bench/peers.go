// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/tests/bench/caller"
)

// peers lets the same storms of small operations go through plugins in turn: an empty one, ours, and those that the
// command line names.
type peers struct {
	*bench
	plugins    plugins
	ranks      numbers // of a process, one after the other
	operations int     // of each rank in a burst
	seconds    float64 // of what is paced
	events     string
}

func preparePeers(b *bench, flags *flag.FlagSet) func(context.Context) (*Page, error) {
	b.scale = 1
	p := &peers{bench: b, seconds: 2, ranks: numbers{2}}
	flags.IntVar(&b.rounds, "rounds", 5, "`number` of times that each plugin runs")
	flags.Var(&p.plugins, "plugin", pluginUsage)
	flags.IntVar(&p.operations, "operations", 10_000, "`number` of operations of each of two ranks in a burst")
	flags.Var(&p.ranks, "ranks", "`numbers` of ranks in the process, such as 2,1")
	flags.StringVar(&p.events, "events", "gpu", "`events` that ours records and the empty one asks for")
	return p.measure
}

// numbers is a flag: numbers of ranks, one after the other.
type numbers []int

var errNumbers = errors.New("numbers from 1 on wanted, with commas")

// String implements flag.Value.
func (n *numbers) String() string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint([]int(*n)), " ", ","), "[]")
}

// Set implements flag.Value.
func (n *numbers) Set(text string) error {
	*n = nil
	for part := range strings.SplitSeq(text, ",") {
		v, err := strconv.Atoi(part)
		if err != nil || v < 1 {
			return errNumbers
		}
		*n = append(*n, v)
	}
	return nil
}

// storm is how many ranks of one process call, and how fast operations come, of each rank.
type storm struct {
	name          string
	ranks         int
	rate, seconds float64
}

func (p *peers) storms() (all []storm) {
	for _, ranks := range p.ranks {
		of := fmt.Sprintf("%d ranks: ", ranks)
		if ranks == 1 {
			of = "1 rank: "
		}
		all = append(all,
			storm{of + "paced, 300 operations a second", ranks, 300, p.seconds},
			storm{of + "burst", ranks, 1e6, float64(p.operations) / 1e6})
	}
	return all
}

// stormRun is what one run took, of all that it called.
type stormRun struct {
	loop       float64 // µs per operation of a rank
	ratio      float64 // of that to the empty plugin's of the same round
	processor  float64 // µs of the job's threads per operation, init and finalize included
	init       float64 // ms, the first
	finalize   float64 // ms, of all ranks
	faults     float64 // page faults from the second operation of a thread on
	bytes      float64 // written, per operation
	collecting float64 // the collector's processor time per operation, µs, up to its end; 0: there is none
	job        float64 // the most memory with the rings, as far as it was seen, MiB
	collector  float64 // without them; 0: none was seen
	kept       float64 // part of the operations (ours: of the callbacks); -1: nobody can tell
}

var stormColumns = []column[stormRun]{
	medians("loop, µs/operation", digits, func(r *stormRun) float64 { return r.loop }),
	medians("ratio to empty", someRatio, func(r *stormRun) float64 { return r.ratio }),
	medians("job's processor, µs/operation", digits, func(r *stormRun) float64 { return r.processor }),
	medians("collector's, up to its end", some, func(r *stormRun) float64 { return r.collecting }),
	medians("first init, ms", digits, func(r *stormRun) float64 { return r.init }),
	medians("finalize, ms", digits, func(r *stormRun) float64 { return r.finalize }),
	{"best", func(runs []*stormRun) string {
		return digits(extreme(math.Min, runs, func(r *stormRun) float64 { return r.finalize }))
	}},
	medians("page faults", whole, func(r *stormRun) float64 { return r.faults }),
	{"job + collector, MiB", func(runs []*stormRun) string {
		return digits(median(runs, func(r *stormRun) float64 { return r.job })) + " + " +
			some(median(runs, func(r *stormRun) float64 { return r.collector }))
	}},
	medians("bytes/operation", whole, func(r *stormRun) float64 { return r.bytes }),
	medians("kept", part100, func(r *stormRun) float64 { return r.kept }),
}

// part100 writes a part in percent; -1: nobody can tell.
func part100(v float64) string {
	if v < 0 {
		return none
	}
	return fmt.Sprintf("%.1f %%", 100*v)
}

func (p *peers) measure(ctx context.Context) (*Page, error) {
	page := &Page{Heading: fmt.Sprintf("%s; all ranks in one process, medians of %d alternating rounds", machine(),
		p.rounds)}
	if err := errors.Join(adopt(), p.buildHost()); err != nil {
		return nil, err
	}
	first, err := emptyPlugin(p.host, p.events)
	if err != nil {
		return nil, err
	}
	us := ourPlugin(p.host, p.events)
	first.name, us.name = "empty", "ours, "+p.events
	all := append([]*plugin{first, us}, p.plugins...)
	for _, s := range p.storms() {
		runs := make([][]*stormRun, len(all))
		for round := range p.rounds {
			for i := range all {
				say("%s, %s", s.name, all[i].name)
				one, err := p.run(ctx, all[i], s)
				if err != nil {
					return nil, fmt.Errorf("%s, %s: %w", s.name, all[i].name, err)
				}
				runs[i] = append(runs[i], one)
				one.ratio = one.loop / runs[0][round].loop
			}
		}
		t := newTable(s.name, stormColumns)
		for i := range all {
			add(t, all[i].name, stormColumns, runs[i])
		}
		page.Tables = append(page.Tables, t)
	}
	return page, nil
}

// run lets a storm go through a plugin.
func (p *peers) run(ctx context.Context, through *plugin, s storm) (*stormRun, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	dir := p.newRun()
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	r, err := p.host.Start(ctx, through.file, through.environment(dir), "job", s.ranks, 0, s.ranks, s.rate, s.seconds,
		0)
	if err != nil {
		return nil, err
	}
	one := &stormRun{kept: -1}
	seen := one.watch(r.PID())
	var job caller.Job
	if _, err := r.Wait(&job); err != nil {
		return nil, err
	}
	<-seen
	operations := float64(job.Operations)
	one.loop, one.faults = job.Seconds*1e6/(operations/float64(s.ranks)), float64(job.Faults)
	one.processor = float64(r.Processor().Nanoseconds()) / 1e3 / operations
	one.init, one.finalize = job.Init/1e6, job.Finalize/1e6
	if through.ours {
		recorded, err := caller.Await(ctx, dir, 1)
		if err != nil {
			return nil, err
		}
		one.bytes, one.kept = float64(recorded.Bytes)/operations,
			float64(recorded.Calls)/float64(recorded.Calls+recorded.Lost)
	} else {
		size, kept, err := through.left(dir)
		if err != nil {
			return nil, err
		}
		if one.bytes = float64(size) / operations; kept >= 0 {
			one.kept = float64(kept) / operations
		}
	}
	spent, err := reap()
	if err != nil {
		return nil, err
	}
	one.collecting = float64(spent.Nanoseconds()) / 1e3 / operations
	return one, removeAll(dir)
}

// between is how long nobody looks: looking takes the machine's time, too.
const between = 50 * time.Millisecond

// watch looks at a process while it runs, and at its collector. Plugins without a collector are watched the same way,
// so that this costs all of them the same.
func (r *stormRun) watch(job int) <-chan bool {
	done := make(chan bool)
	go func() {
		defer close(done)
		for r.look(job) {
			time.Sleep(between)
		}
	}()
	return done
}

func (r *stormRun) look(job int) bool {
	u, err := caller.UsageOf(job)
	if err != nil {
		return false
	}
	r.job = max(r.job, inMiB(u.Total()))
	if collector, err := caller.Collector(job, 0); err == nil {
		u, _ = caller.UsageOf(collector) // none, if it has ended since
		r.collector = max(r.collector, inMiB(u.Own))
	}
	return true
}

// adopt makes this process the parent of collectors whose jobs have ended.
func adopt() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// reap waits for the end of all children of this process, which are collectors once the job has been waited for, and
// tells how much time of processors they took.
func reap() (spent time.Duration, err error) {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return 0, err
	}
	for _, task := range tasks {
		text, err := os.ReadFile("/proc/self/task/" + task.Name() + "/children")
		if err != nil {
			continue // the thread has ended
		}
		for child := range strings.FieldsSeq(string(text)) {
			pid, err := strconv.Atoi(child)
			if err != nil {
				return spent, err
			}
			var took unix.Rusage
			for {
				if _, err = unix.Wait4(pid, nil, 0, &took); err != unix.EINTR {
					break
				}
			}
			if err != nil {
				return spent, err
			}
			spent += time.Duration(took.Utime.Nano() + took.Stime.Nano())
		}
	}
	return spent, nil
}
