// SPDX-License-Identifier: Apache-2.0

package view

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/nccl-otf2/nccl-otf2/internal/atomicfile"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/scorep/files"
)

// Options say how to make a view; nil means the zero value.
type Options struct {
	// TimedOnly leaves out collectives whose members have no times that can be compared, instead of showing them
	// without wait states.
	TimedOnly bool
	// OneProcess shows each rank as one process, also where operations of its communicators overlap. Waiting is lost
	// then, see Result.Waits.
	OneProcess bool
	Creator    string // of the archive; default "nccl-otf2"
	Workers    int    // goroutines; default 2
	// Progress, if set, is told how much of a phase is done. It is called from several goroutines.
	Progress func(phase string, done, total int)
}

const archiveName = "traces"

// Scalasca makes the archive dir/traces.otf2 for scout.mpi from the native archive with the given anchor. An older
// view in dir is replaced when the new one is complete; dir is made if need be.
func Scalasca(anchor, dir string, opts *Options) (*Result, error) {
	a, o, err := opts.open(anchor, dir)
	if err != nil {
		return nil, err
	}
	defer a.Close()
	res := &Result{Archive: filepath.Join(dir, archiveName+".otf2"), Dropped: make(map[Reason]uint64)}
	j := newJob(a, res)
	if len(j.locations) == 0 {
		return nil, fmt.Errorf("%s has no communicator of more than one rank: there is nothing for Scalasca to analyze",
			anchor)
	}
	if err := j.read(o.Workers, stage(o, "reading locations")); err != nil {
		return nil, fmt.Errorf("%s: %w", anchor, err)
	}
	j.match()
	for _, r := range j.rows {
		r.fuse()
	}
	j.settle()
	if o.TimedOnly {
		j.dropUntimed()
	}
	res.Waits.Recorded, _ = j.waits()
	j.arrange(o)
	resolution := max(a.Defs.Clock.Resolution, 1)
	for _, l := range j.locations {
		cost := l.clip()
		res.Clipped.Operations += cost.units
		res.Clipped.ToNothing += cost.nothing
		res.Clipped.Moved += cost.moved
		res.Clipped.Time += uint64(float64(cost.ticks) * (1e9 / float64(resolution)))
	}
	j.untime()
	j.receivers()
	res.Waits.Shown, res.Waits.Masked = j.waits()
	if err := replace(dir, func(staging string) error { return j.write(staging, o) }); err != nil {
		return nil, err
	}
	return res, nil
}

// arrange puts the operations into an order that all ranks can carry out. Where there is none with one process for
// several rows each row gets its own, unless that is not wanted; only then operations are dropped.
func (j *job) arrange(o *Options) {
	tell := stage(o, "ordering operations")
	if o.OneProcess {
		j.count.Rows = len(j.locations)
		j.order(true, tell)
		return
	}
	j.spread(false)
	if !j.order(false, tell) {
		j.gather()
		j.spread(true)
		j.order(true, tell)
	}
}

// open opens the archive that a view in dir is made of, whose definitions must be whole, and completes the options.
func (opts *Options) open(anchor, dir string) (*otf2.Archive, *Options, error) {
	o, err := opts.ready(anchor, dir)
	if err != nil {
		return nil, nil, err
	}
	a, err := otf2.Open(anchor, nil)
	if a != nil && err != nil {
		a.Close()
		err = fmt.Errorf("definitions of %s: %w", anchor, err)
	}
	if err != nil {
		return nil, nil, err
	}
	return a, o, nil
}

// ready gives the options with what they leave open, unless the view would replace the archive itself.
func (opts *Options) ready(anchor, dir string) (*Options, error) {
	o := Options{}
	if opts != nil {
		o = *opts
	}
	if o.Workers <= 0 {
		o.Workers = 2
	}
	if o.Creator == "" {
		o.Creator = "nccl-otf2"
	}
	if o.Progress == nil {
		o.Progress = func(string, int, int) {}
	}
	if same, err := sameFolder(filepath.Dir(anchor), dir); err != nil {
		return nil, err
	} else if same {
		return nil, fmt.Errorf("the view would replace the archive %s itself: give another folder", anchor)
	}
	return &o, files.MayReplace(dir, facts.PropView.Key())
}

func stage(o *Options, name string) func(done, total int) {
	return func(done, total int) { o.Progress(name, done, total) }
}

func sameFolder(a, b string) (bool, error) {
	x, err := os.Stat(a)
	if err != nil {
		return false, err
	}
	y, err := os.Stat(b)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(x, y), err
}

// replace has an archive written beside the present one in dir, then puts it in its place.
func replace(dir string, write func(staging string) error) error {
	if err := atomicfile.MakeFolder(dir); err != nil {
		return err
	}
	if err := files.MayReplace(dir, facts.PropView.Key()); err != nil { // what a link leads to by now
		return err
	}
	staging, err := files.NewStaging(dir)
	if err != nil {
		return err
	}
	defer staging.Discard()
	if err := write(staging.Path); err != nil {
		return fmt.Errorf("write the view: %w", err)
	}
	return staging.Replace(dir)
}

// properties say on the archive what was made of what.
func (j *job) properties() []otf2.Property {
	r := j.count
	ps := []otf2.Property{{Name: facts.PropView.Key(), Value: "scalasca"}}
	number := func(name string, n uint64) {
		ps = append(ps, otf2.Property{Name: facts.PropView.Below(name).Key(), Value: strconv.FormatUint(n, 10)})
	}
	number("COLLECTIVES", r.Collectives)
	number("MESSAGES", r.Messages)
	number("WITHOUT_WAIT_STATES",
		r.Untimed.NoTimes+r.Untimed.Fused+r.Untimed.Moved+r.Untimed.Messages+r.Untimed.Receivers)
	number("WAITS_RECORDED", r.Waits.Recorded)
	number("WAITS_SHOWN", r.Waits.Shown)
	number("CLIPPED", r.Clipped.Operations)
	number("CLIPPED_TO_NOTHING", r.Clipped.ToNothing)
	number("DROPPED", r.Lost())
	number("MEMBERS_WITHOUT_DATA", uint64(r.MembersWithoutData))
	// Whatever is in the view has all its parts.
	return append(ps, otf2.Property{Name: facts.CompleteProperty, Value: "true"})
}
