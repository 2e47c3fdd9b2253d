// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/atomicfile"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobfolder"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/loss"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/rawfiles"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/internal/hidden"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/scorep/files"
)

// UnifyOptions are the options of Unify; nil means the zero value.
type UnifyOptions struct {
	// Hold is the lock on the directory, if the caller holds it since before it computed Raw; the caller must also have
	// waited for collectors (experiment.Await). nil: Unify waits, and locks the directory itself.
	Hold *experiment.Hold
	// Raw lists the results of converting the directory's raw files (collector.ConvertAll), which must precede
	// unifying. Raw files not listed are reported as problems.
	Raw []rawfiles.File
	// ownParadigm gives communicators the paradigm regions.ParadigmNCCL instead of MPI, for archives that are merged
	// with one of Score-P.
	ownParadigm bool
	// Sync synchronizes the clocks of the hosts of a run that ran on more than one (package clocks), by an archive
	// written without corrections, and writes the result as clock offsets. Without it, times are those of the hosts'
	// clocks.
	Sync bool
	// StampedEnds leaves the ends of operations where NCCL stamped them, even if the stamp is the end of only a part
	// (package ends).
	StampedEnds bool
	Creator     string // creator of the archive; default "nccl-otf2"
	Workers     int    // goroutines; default 2
	// Progress, if set, is called with the progress of each phase, from several goroutines.
	Progress func(phase string, done, total int)

	clock func() time.Time // for tests; nil: time.Now
}

func (o *UnifyOptions) workers() int {
	if o.Workers > 0 {
		return o.Workers
	}
	return 2
}

func (o *UnifyOptions) now() time.Time {
	if o.clock != nil {
		return o.clock()
	}
	return time.Now()
}

func (o *UnifyOptions) progress(phase string, done, total int) {
	if o.Progress != nil {
		o.Progress(phase, done, total)
	}
}

func (o *UnifyOptions) creator() string {
	return cmp.Or(o.Creator, "nccl-otf2")
}

// Result is the outcome of Unify.
type Result struct {
	Runs []RunResult `json:"runs"` // sorted by start; more than one if jobs shared the directory
	// Problems describes, one per line, what could not be used or is not as it should be.
	Problems []string `json:"problems,omitempty"`
	// Damaged is the number of shards, event files and raw files that are missing, have the wrong length, or contain
	// something unreadable. The archives lack them, or what follows the damage in them. Each is named in a problem.
	Damaged int `json:"damaged,omitempty"`
}

// RunResult describes the archive of one job.
type RunResult struct {
	Archive  string `json:"archive"` // path of its anchor
	Finished int    `json:"finished"`
	Running  int    `json:"running"`
	Crashed  int    `json:"crashed"`
	// times of the last flush of crashed processes; later data are missing
	Flushed []time.Time `json:"last_flushes,omitempty"`
	// how processes died, the first one first
	Died []string `json:"died,omitempty"`
	// processes known only from their ranks in communicators
	Missing       int    `json:"missing"`
	MissingRanks  int    `json:"missing_ranks"`
	Hosts         int    `json:"hosts"`
	Locations     int    `json:"locations"`
	Communicators int    `json:"communicators"` // of more than one rank
	Events        uint64 `json:"events"`
	Lost          uint64 `json:"lost"`
	// why processes lost more, by an unknown amount
	Uncounted []string `json:"lost_uncounted,omitempty"`
	// of Lost: operations in the memory of collectors that died
	LostWith    uint64            `json:"lost_with_collectors,omitempty"`
	First       uint64            `json:"first"` // time of the first event, ns since 1970
	Last        uint64            `json:"last"`
	Linked      int               `json:"linked"`              // hard-linked event files
	Copied      int               `json:"copied"`              // copied event files
	Rewritten   int               `json:"rewritten,omitempty"` // copied files that were rewritten, for their chunk size
	Complete    bool              `json:"complete"`
	Differences []jobs.Difference `json:"differences,omitempty"`
	Problems    []string          `json:"problems,omitempty"`
	ClockSync   *ClockSync        `json:"clock_sync,omitempty"` // nil: the hosts' clocks were not synchronized
	// Hidden lists the grave kinds of traffic that the libraries do not report.
	Hidden []hidden.Traffic `json:"hidden,omitempty"`

	// of Lost: records in event files that are missing or damaged
	LostFromDisk uint64 `json:"lost_from_disk,omitempty"`
	// of Lost: operations that the input of an import lacks
	LostBefore uint64 `json:"lost_before_import,omitempty"`
	// event files that are missing or damaged
	DamagedFiles int `json:"damaged_files,omitempty"`
}

// Processes returns the number of processes with data.
func (r *RunResult) Processes() int { return r.Finished + r.Running + r.Crashed }

// Unify writes the archive of the experiment directory dir from its shards: traces.otf2 in it, or run-1/traces.otf2,
// run-2/… if several jobs left their shards there. It replaces an older archive. Unless UnifyOptions.Hold is set, it
// first waits for collectors of processes that have ended, as long as these make progress.
//
// Errors: experiment.ErrBusy if another process is unifying the directory; fs.ErrNotExist if there are no shards;
// otherwise the reason why the archive could not be written. Shards that cannot be read are left out, and named in the
// result's problems.
func Unify(dir string, opts *UnifyOptions) (*Result, error) {
	opts = cmp.Or(opts, new(UnifyOptions))
	runs, left, release, err := readRuns(dir, opts)
	if err != nil {
		return nil, err
	}
	defer release()
	res := &Result{Problems: left.Problems, Damaged: len(left.Damaged)}
	if len(runs) > 1 {
		res.Problems = append(res.Problems, fmt.Sprintf(
			"%d jobs have left data in %s; each gets an archive of its own, run-1 to run-%d", len(runs), dir,
			len(runs)))
	}
	for i, r := range runs {
		target := jobfolder.PathOf(dir, i, len(runs))
		if len(runs) > 1 {
			if err := files.OwnFolder(target); err != nil {
				return nil, fmt.Errorf("unify %s: %w", dir, err)
			}
		}
		if err := MayUnify(target); err != nil {
			return nil, err
		}
		made, err := writeArchive(r, target, opts)
		if err != nil {
			return nil, fmt.Errorf("unify %s: %w", dir, err)
		}
		res.Runs = append(res.Runs, *made)
		res.Damaged += made.DamagedFiles
		for _, p := range r.Processes {
			if n := p.Shard.Counts.Oddities[loss.BrokenRings]; n > 0 {
				res.Damaged++
				res.Problems = append(res.Problems, fmt.Sprintf(
					"%s: the records of %s are damaged, and are missing from there on", p.ID(),
					units.Plural(n, "thread")))
			}
		}
	}
	if len(runs) > 1 {
		// An archive from when there was only one job holds nothing that the jobs' archives do not. The same applies to
		// an unfinished one.
		former := filepath.Join(dir, files.ArchiveName+".otf2")
		if _, err := os.Stat(former); err == nil {
			res.Problems = append(res.Problems, fmt.Sprintf(
				"%s was of the time when there was one job, and is replaced by these: what is given %s reads the "+
					"newest, %s", former, dir, res.Runs[len(runs)-1].Archive))
		}
		if err := errors.Join(removeArchive(dir), os.RemoveAll(filepath.Join(dir, files.NewDir))); err != nil {
			res.Problems = append(res.Problems, fmt.Sprintf("remove the former archive: %v", err))
		}
	}
	for i := len(runs) + 1; i > 1; i++ {
		old := jobfolder.PathOf(dir, i-1, i)
		if _, err := os.Stat(filepath.Join(old, files.ArchiveName+".otf2")); err != nil {
			break
		}
		res.Problems = append(res.Problems, fmt.Sprintf(
			"%s is of an earlier time and has no shards any more; it was left alone", old))
	}
	return res, nil
}

// MayUnify returns an error if the folder contains an archive that Unify did not make (of another tool, a view, a
// merged one), or is part of an archive or a shard. An archive with an unreadable anchor may be replaced.
func MayUnify(dir string) error {
	if err := atomicfile.RefuseFolder(dir); err != nil {
		return err
	}
	a, err := otf2.ReadAnchor(filepath.Join(dir, files.ArchiveName+".otf2"))
	if err != nil {
		return nil
	}
	ours := false
	for _, p := range a.Properties {
		ours = ours || strings.HasPrefix(p.Name, property.Prefix)
		if p.Name == property.View.Key() || p.Name == property.Merged.Key() {
			ours = false
			break
		}
	}
	if !ours {
		return fmt.Errorf("%s holds another archive, which no recording may replace: name another folder", dir)
	}
	return nil
}

// readRuns locks an experiment directory, unless opts.Hold is set, and returns its jobs, and what could not be read. On
// success, the caller must call release.
func readRuns(dir string, opts *UnifyOptions) (runs []*jobs.Run, left jobs.Unused, release func(), err error) {
	if info, err := os.Lstat(filepath.Join(dir, experiment.Folder)); err != nil {
		return nil, left, nil, fmt.Errorf("%s is not an experiment directory: %w", dir, err)
	} else if !info.IsDir() {
		return nil, left, nil, fmt.Errorf("%s is not an experiment directory: %s is not a folder", dir,
			experiment.Folder)
	}
	release = func() {}
	if opts.Hold == nil {
		new(experiment.Await).Collectors(context.Background(), dir) // late collectors count as running
		hold, err := experiment.Lock(dir)
		if err != nil {
			return nil, left, nil, err
		}
		release = hold.Release
	}
	left = jobs.NotConverted(dir, opts.Raw)
	parts, more, err := jobs.Read(dir, opts.workers(), opts.now())
	if err != nil {
		release()
		return nil, left, nil, errors.Join(err, left.Err())
	}
	if parts = profiled(parts, false); len(parts) == 0 {
		release()
		return nil, left, nil, fmt.Errorf("%s was recorded in profile mode, without events: %w", dir, fs.ErrNotExist)
	}
	left = jobs.Unused{Problems: append(left.Problems, more.Problems...),
		Damaged: append(left.Damaged, more.Damaged...)}
	if runs, err = jobs.Separate(parts); err != nil {
		release()
		return nil, left, nil, err
	}
	ofAll := left.Damaged
	for _, r := range runs {
		r.Damaged = slices.Clone(ofAll)
		for _, p := range r.Processes {
			if text := p.Uncounted(); text != "" && p.State == jobs.Finished && !p.Shard.End.Died() {
				r.Damaged = append(r.Damaged, text)
				left.Damaged = append(left.Damaged, text) // reported with the archive
			}
		}
	}
	return runs, left, release, nil
}

// writeArchive writes one run's archive into a staging folder in dir, then moves it into place.
func writeArchive(r *jobs.Run, dir string, opts *UnifyOptions) (*RunResult, error) {
	s, events, err := files.StageArchive(dir)
	if err != nil {
		return nil, err
	}
	defer s.Discard()
	staging := s.Path

	a, err := newArchive(r, opts, emptyTarget{})
	if err != nil {
		return nil, err
	}
	a.chunk = eventChunkSize(r)
	placed, err := a.placeEvents(events)
	if err != nil {
		return nil, err
	}
	a.define()
	if err := a.write(staging, placed); err != nil {
		return nil, err
	}
	if a.synchronize(filepath.Join(staging, files.ArchiveName+".otf2")) {
		if err := a.write(staging, placed); err != nil {
			return nil, err
		}
	}
	if !opts.StampedEnds && a.moveEnds(filepath.Join(staging, files.ArchiveName+".otf2"), events, placed) {
		if err := a.write(staging, placed); err != nil {
			return nil, err
		}
	}
	result := a.result(placed)
	result.DamagedFiles = len(placed.Damaged)
	if err := s.Replace(dir); err != nil {
		return nil, err
	}
	result.Archive = filepath.Join(dir, files.ArchiveName+".otf2")
	return result, nil
}

// write writes all files of the archive except event files into the folder staging.
func (a *archive) write(staging string, placed *files.Events) error {
	path := func(suffix string) string { return filepath.Join(staging, files.ArchiveName+suffix) }
	for _, suffix := range files.Parts[1:] {
		if err := files.Remove(path(suffix)); err != nil {
			return err
		}
	}
	defChunk := a.chunkSizeFor()
	if err := a.tables.write(path(""), defChunk, a.locations, a.opts.workers()); err != nil {
		return err
	}
	count, err := a.definitions.write(path(".def"), defChunk, nil)
	if err != nil {
		return err
	}
	if len(a.markers) > 0 {
		if err := a.markers.write(path(".marker"), defChunk); err != nil {
			return err
		}
	}
	result := a.result(placed)
	err = otf2.WriteAnchor(path(".otf2"), &otf2.Anchor{
		EventChunkSize: a.chunk, DefChunkSize: defChunk,
		Locations: uint64(len(a.locations)), GlobalDefs: count,
		MachineName: machineName(a.run), Creator: a.opts.creator(),
		Description: fmt.Sprintf("NCCL: %s on %s", units.Plural(uint64(len(a.run.Processes)), "process"),
			units.Plural(uint64(result.Hosts), "host")),
		Properties: a.properties, TraceID: traceID(a.run),
	})
	return err
}

func (a *archive) result(placed *files.Events) *RunResult {
	r := &RunResult{
		Missing: a.missingProcesses(), Locations: len(a.locations), Communicators: len(a.instances),
		First: a.first, Last: a.last, Linked: placed.Linked, Copied: placed.Copied, Rewritten: placed.Rewritten,
		Died: jobs.DeathWords(jobs.Deaths(a.ordered())), Differences: a.differences,
		Problems: slices.Concat(a.problems, a.syncProblems), ClockSync: a.sync,
		Hidden: slices.DeleteFunc(a.hidden(), func(t hidden.Traffic) bool { return !t.Grave }),
	}
	hosts := make(map[string]bool)
	sum := newCounts()
	for _, p := range a.run.Processes {
		hosts[p.Shard.Host+"\x00"+p.Shard.BootID] = true
		sum.add(&p.Shard.Counts)
		switch p.State {
		case jobs.Finished:
			r.Finished++
		case jobs.Running:
			r.Running++
		case jobs.Crashed:
			r.Crashed++
			pieces := p.Shards()
			if at := experiment.LastFlush(pieces[len(pieces)-1].Dir); !at.IsZero() {
				r.Flushed = append(r.Flushed, at)
			}
		}
	}
	r.Uncounted = a.uncounted()
	r.Hosts, r.Lost, r.Complete = len(hosts), sum.total(property.Lost),
		(&jobText{roster: a.roster, findings: a.findings}).isComplete(sum)
	r.MissingRanks = a.missingRanks()
	for _, l := range a.locations {
		r.Events += l.Events
	}
	r.LostWith, r.LostFromDisk = sum.total(PropertyOfLoss(loss.WithCollector)),
		sum.total(PropertyOfLoss(loss.FromDisk))
	r.LostBefore = sum.total(PropertyOfLoss(loss.ByWriter)) +
		sum.total(PropertyOfLoss(loss.FromInput))
	return r
}

// PropertyOfLoss returns the common prefix of the properties that count losses for a reason, a key of
// description.Counts.Lost.
func PropertyOfLoss(reason string) property.Name { return property.Lost.Below(component(reason)) }

// eventChunkSize returns the event chunk size of the archive, in bytes: the size with the most bytes in files of
// several chunks, because files with another size must be rewritten. Files of a single chunk are readable with any
// size.
func eventChunkSize(r *jobs.Run) uint64 {
	bytes := make(map[uint64]int64)
	best := uint64(0)
	for _, p := range r.Processes {
		size := p.Shard.EventChunkSize
		for _, l := range p.Shard.Locations {
			if uint64(l.Bytes) > size {
				bytes[size] += l.Bytes
			}
		}
		if bytes[size] > bytes[best] || bytes[size] == bytes[best] && size > best {
			best = size
		}
	}
	return best
}

func machineName(r *jobs.Run) string {
	name := r.Processes[0].Shard.Host
	for _, p := range r.Processes {
		if p.Shard.Host != name {
			return ""
		}
	}
	return name
}

func removeArchive(dir string) error {
	for _, suffix := range []string{".otf2", ".def", ".marker"} {
		if err := files.Remove(filepath.Join(dir, files.ArchiveName+suffix)); err != nil {
			return err
		}
	}
	return os.RemoveAll(filepath.Join(dir, files.ArchiveName))
}
