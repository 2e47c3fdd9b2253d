// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
	"github.com/nccl-otf2/nccl-otf2/internal/atomicfile"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/scorep/files"
)

// Options configure a view; nil means the zero value.
type Options struct {
	// TimedOnly omits collectives without comparable times of all members, instead of showing them without wait states.
	TimedOnly bool
	// OneProcess shows each rank as one process, even where operations of its communicators overlap. This loses
	// waiting, see Result.Waits.
	OneProcess bool
	Creator    string // of the archive; default "nccl-otf2"
	Workers    int    // goroutines; default 2
	// Progress, if set, receives the progress of each phase. It is called from several goroutines.
	Progress func(phase string, done, total int)
}

const archiveName = "traces"

// Scalasca makes the archive dir/traces.otf2 for scout.mpi from the native archive with the given anchor. It creates
// dir if need be; an older view in dir is replaced once the new one is complete.
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
		r.markFused()
	}
	j.compareTimes()
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
	j.markUntimed()
	j.breakNotices()
	res.Waits.Shown, res.Waits.Masked = j.waits()
	if err := replaceView(dir, func(staging string) error { return j.write(staging, o) }); err != nil {
		return nil, err
	}
	return res, nil
}

// arrange puts the operations into an order that all ranks can carry out. If there is none with several rows on one
// process, each row gets its own process, unless OneProcess is set; only then are operations dropped.
func (j *job) arrange(o *Options) {
	tell := stage(o, "ordering operations")
	if o.OneProcess {
		j.count.Rows = len(j.locations)
		j.orderUnits(true, tell)
		return
	}
	j.splitRows(false)
	if !j.orderUnits(false, tell) {
		j.mergeRows()
		j.splitRows(true)
		j.orderUnits(true, tell)
	}
}

// open opens the archive for a view in dir and completes the options. It fails unless the definitions are complete.
func (opts *Options) open(anchor, dir string) (*otf2.Archive, *Options, error) {
	o, err := opts.withDefaults(anchor, dir)
	if err != nil {
		return nil, nil, err
	}
	a, err := analysis.Open(anchor, nil)
	if a != nil && err != nil {
		a.Close()
		err = fmt.Errorf("definitions of %s: %w", anchor, err)
	}
	if err != nil {
		return nil, nil, err
	}
	return a, o, nil
}

// withDefaults returns the options with defaults filled in; it fails if the view would replace the archive itself.
func (opts *Options) withDefaults(anchor, dir string) (*Options, error) {
	o := Options{}
	if opts != nil {
		o = *opts
	}
	if o.Workers <= 0 {
		o.Workers = 2
	}
	o.Creator = cmp.Or(o.Creator, "nccl-otf2")
	if o.Progress == nil {
		o.Progress = func(string, int, int) {}
	}
	if same, err := sameFolder(filepath.Dir(anchor), dir); err != nil {
		return nil, err
	} else if same {
		return nil, fmt.Errorf("the view would replace the archive %s itself: give another folder", anchor)
	}
	return &o, files.MayReplace(dir, property.View.Key())
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

// replaceView writes an archive beside the present one in dir, then replaces that one.
func replaceView(dir string, write func(staging string) error) error {
	if err := atomicfile.MakeFolder(dir); err != nil {
		return err
	}
	if err := files.MayReplace(dir, property.View.Key()); err != nil { // a link may lead elsewhere by now
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

// properties describe on the archive what the view holds and lacks.
func (j *job) properties() []otf2.Property {
	r := j.count
	ps := []otf2.Property{{Name: property.View.Key(), Value: "scalasca"}}
	number := func(name string, n uint64) {
		ps = append(ps, otf2.Property{Name: property.View.Below(name).Key(), Value: strconv.FormatUint(n, 10)})
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
	// Every operation in the view has all its parts.
	return append(ps, otf2.Property{Name: property.Complete, Value: "true"})
}
