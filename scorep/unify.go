// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nccl-otf2/nccl-otf2/experiment"
	"github.com/nccl-otf2/nccl-otf2/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/hidden"
	"github.com/nccl-otf2/nccl-otf2/internal/regular"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// UnifyOptions says how to unify; nil means the zero value.
type UnifyOptions struct {
	// ConvertSpool turns a file of raw callbacks (shards/*.spool) into a shard of the experiment
	// directory. Without it such files are named as problems.
	ConvertSpool func(file, dir string) error
	// Paradigm200 gives communicators the paradigm regions.ParadigmNCCL instead of MPI: for archives that are
	// to be merged with one of Score-P.
	Paradigm200 bool
	// Sync, if set, compares the clocks of the hosts of a run that ran on more than one, from an archive made
	// without it; what it finds is written as clock offsets. It is all of unifying that reads events. Without it the
	// archive has what the hosts' clocks said.
	Sync    func(*SyncInput) (*SyncOutput, error)
	Creator string // of the archive; default "nccl-otf2"
	Workers int    // goroutines; default 2
	// Progress, if set, is told how much of a phase is done. It is called from several goroutines.
	Progress func(phase string, done, total int)

	clock func() time.Time // of tests
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
	if o.Creator != "" {
		return o.Creator
	}
	return "nccl-otf2"
}

// Result tells what Unify made.
type Result struct {
	Runs []RunResult `json:"runs"` // in the order of their begin; more than one if jobs shared the directory
	// Problems, one line each: what could not be used, or is not as it should be.
	Problems []string `json:"problems,omitempty"`
	// Damaged is how many shards, event files and raw files are missing, shorter or longer than they should be, or hold something that
	// cannot be read: they, or what follows the damage in them, are not in the archives. Each is named in a problem.
	Damaged int `json:"damaged,omitempty"`
}

// RunResult describes the archive of one job.
type RunResult struct {
	Archive       string       `json:"archive"` // path of its anchor
	Finished      int          `json:"finished"`
	Running       int          `json:"running"`
	Crashed       int          `json:"crashed"`
	Died          []string     `json:"died,omitempty"` // of those that did not end in order, in words, the first one first
	Missing       int          `json:"missing"`        // processes of which only their places in communicators are known
	MissingRanks  int          `json:"missing_ranks"`
	Hosts         int          `json:"hosts"`
	Locations     int          `json:"locations"`
	Communicators int          `json:"communicators"` // of more than one rank
	Events        uint64       `json:"events"`
	Lost          uint64       `json:"lost"`
	LostWith      uint64       `json:"lost_with_collectors,omitempty"` // of these: operations in the memory of collectors that died
	First         uint64       `json:"first"`                          // time of the first event, ns since 1970
	Last          uint64       `json:"last"`
	Linked        int          `json:"linked"`              // event files that were linked
	Copied        int          `json:"copied"`              // and copied
	Rewritten     int          `json:"rewritten,omitempty"` // of these: into chunks of the others' size
	Complete      bool         `json:"complete"`
	Differences   []Difference `json:"differences,omitempty"`
	Problems      []string     `json:"problems,omitempty"`
	ClockSync     *ClockSync   `json:"clock_sync,omitempty"` // nil: the hosts' clocks were left alone
	// Hidden is what is gravest of what the libraries did not tell.
	Hidden []hidden.Traffic `json:"hidden,omitempty"`

	LostFromDisk uint64 `json:"lost_from_disk,omitempty"` // of Lost: records of event files that are missing or damaged
	DamagedFiles int    `json:"damaged_files,omitempty"`  // event files that are missing, or not as long as they should be
}

// Processes is the number of processes with data.
func (r *RunResult) Processes() int { return r.Finished + r.Running + r.Crashed }

// Unify makes the archive of the experiment directory dir from its shards: traces.otf2 in it, or
// run-1/traces.otf2, run-2/… if several jobs left their shards there. An older archive is replaced,
// its anchor last.
//
// Errors: ErrBusy if another process unifies the directory at the time; fs.ErrNotExist if there are
// no shards; else what kept the archive from being written. Shards that cannot be read do not keep
// the others from being unified; they are named in the result's problems.
func Unify(dir string, opts *UnifyOptions) (*Result, error) {
	if opts == nil {
		opts = new(UnifyOptions)
	}
	runs, left, unlock, err := readRuns(dir, opts)
	if err != nil {
		return nil, err
	}
	defer unlock()
	res := &Result{Problems: left.problems, Damaged: len(left.damaged)}
	if len(runs) > 1 {
		res.Problems = append(res.Problems, fmt.Sprintf("%d jobs have left data in %s; each gets an archive of its own, run-1 to run-%d", len(runs), dir, len(runs)))
	}
	for i, r := range runs {
		target := dir
		if len(runs) > 1 {
			target = filepath.Join(dir, fmt.Sprintf("run-%d", i+1))
			if err := ownFolder(target); err != nil {
				return nil, fmt.Errorf("unify %s: %w", dir, err)
			}
		}
		made, err := writeArchive(r, target, opts)
		if err != nil {
			return nil, fmt.Errorf("unify %s: %w", dir, err)
		}
		res.Runs = append(res.Runs, *made)
		res.Damaged += made.DamagedFiles
		for _, p := range r.parts {
			if n := p.process.Counts.Oddities[experiment.BrokenRings]; n > 0 {
				res.Damaged++
				res.Problems = append(res.Problems, fmt.Sprintf("%s: the records of %s are damaged, and are missing from there on", p.id(), plural(n, "thread")))
			}
		}
	}
	if len(runs) > 1 {
		// An archive of the time when there was one job holds nothing that run-1 does not, nor does one that was never finished.
		if err := errors.Join(removeArchive(dir), os.RemoveAll(filepath.Join(dir, newDir))); err != nil {
			res.Problems = append(res.Problems, fmt.Sprintf("remove the former archive: %v", err))
		}
	}
	for i := len(runs) + 1; i > 1; i++ {
		old := filepath.Join(dir, fmt.Sprintf("run-%d", i))
		if _, err := os.Stat(filepath.Join(old, archiveName+".otf2")); err != nil {
			break
		}
		res.Problems = append(res.Problems, fmt.Sprintf("%s is of an earlier time and has no shards any more; it was left alone", old))
	}
	return res, nil
}

// readRuns locks an experiment directory and finds the jobs in it, as far as they can be read.
func readRuns(dir string, opts *UnifyOptions) (runs []*run, left unused, unlock func(), err error) {
	if info, err := os.Lstat(filepath.Join(dir, shardsDir)); err != nil {
		return nil, left, nil, fmt.Errorf("%s is no experiment directory: %w", dir, err)
	} else if !info.IsDir() {
		return nil, left, nil, fmt.Errorf("%s is no experiment directory: %s is no folder", dir, shardsDir)
	}
	if unlock, err = lockExperiment(dir, opts.now()); err != nil {
		return nil, left, nil, err
	}
	left = convertSpools(dir, opts)
	parts, more, err := readShards(dir, opts)
	if err != nil {
		unlock()
		return nil, left, nil, errors.Join(err, left.error())
	}
	if parts = profiled(parts, false); len(parts) == 0 {
		unlock()
		return nil, left, nil, fmt.Errorf("%s was recorded in profile mode, without events: %w", dir, fs.ErrNotExist)
	}
	left = unused{append(left.problems, more.problems...), append(left.damaged, more.damaged...)}
	if runs, err = separateRuns(parts); err != nil {
		unlock()
		return nil, left, nil, err
	}
	for _, r := range runs {
		r.damaged = left.damaged
	}
	return runs, left, unlock, nil
}

// writeArchive writes one run's archive beside the present one in dir, then puts it in its place.
func writeArchive(r *run, dir string, opts *UnifyOptions) (*RunResult, error) {
	s, err := newStaging(filepath.Join(dir, newDir))
	if err != nil {
		return nil, err
	}
	defer s.Discard()
	staging, events := s.Path, filepath.Join(s.Path, archiveName)
	if err := os.Mkdir(events, regular.Folder); err != nil {
		return nil, err
	}

	a, err := newArchive(r, opts, nil)
	if err != nil {
		return nil, err
	}
	a.chunk = eventChunkSize(r)
	files, err := a.placeEvents(events)
	if err != nil {
		return nil, err
	}
	a.define()
	if err := a.write(staging, files); err != nil {
		return nil, err
	}
	if a.synchronize(filepath.Join(staging, archiveName+".otf2")) {
		if err := a.removeLocalDefs(events); err != nil {
			return nil, err
		}
		if err := a.write(staging, files); err != nil {
			return nil, err
		}
	}
	result := a.result(files)
	result.DamagedFiles = len(files.damaged)
	if err := s.Replace(dir); err != nil {
		return nil, err
	}
	result.Archive = filepath.Join(dir, archiveName+".otf2")
	return result, nil
}

// write writes all of the archive but the event files into the folder staging.
func (a *archive) write(staging string, files *placed) error {
	path := func(suffix string) string { return filepath.Join(staging, archiveName+suffix) }
	for _, suffix := range archiveParts[1:] {
		if err := removeFile(path(suffix)); err != nil {
			return err
		}
	}
	defChunk := a.chunkSizeFor()
	if err := a.writeLocalDefs(path(""), defChunk); err != nil {
		return err
	}
	count, err := a.definitions.write(path(".def"), defChunk, nil)
	if err != nil {
		return err
	}
	if len(a.markers) > 0 {
		if err := a.writeMarkers(path(".marker"), defChunk); err != nil {
			return err
		}
	}
	result := a.result(files)
	err = otf2.WriteAnchor(path(".otf2"), &otf2.Anchor{
		EventChunkSize: a.chunk, DefChunkSize: defChunk,
		Locations: uint64(len(a.locations)), GlobalDefs: count,
		MachineName: machineName(a.run), Creator: a.opts.creator(),
		Description: fmt.Sprintf("NCCL: %s on %s", plural(uint64(len(a.run.parts)), "process"), plural(uint64(result.Hosts), "host")),
		Properties:  a.properties, TraceID: a.traceID(),
	})
	return err
}

func (a *archive) result(files *placed) *RunResult {
	r := &RunResult{
		Missing: a.missingProcesses(), Locations: len(a.locations), Communicators: len(a.instances),
		First: a.first, Last: a.last, Linked: files.linked, Copied: files.copied, Rewritten: files.rewritten,
		Died: deathWords(deaths(a.ordered())), Differences: a.differences, Problems: slices.Concat(a.problems, a.syncProblems), ClockSync: a.sync,
		Hidden: slices.DeleteFunc(a.hidden(), func(t hidden.Traffic) bool { return !t.Grave }),
	}
	hosts := make(map[string]bool)
	sum := newCounts()
	for _, p := range a.run.parts {
		hosts[p.process.Host+"\x00"+p.process.BootID] = true
		sum.add(&p.process.Counts)
		switch p.state {
		case Finished:
			r.Finished++
		case Running:
			r.Running++
		case Crashed:
			r.Crashed++
		}
	}
	r.Hosts, r.Lost, r.Complete = len(hosts), sum.total(facts.PropLost), a.complete(sum)
	for _, in := range a.instances {
		r.MissingRanks += len(in.missing())
	}
	for _, l := range a.locations {
		r.Events += l.Events
	}
	for name, n := range sum.byName {
		switch {
		case strings.HasPrefix(string(name), lostWithCollector):
			r.LostWith += n
		case strings.HasPrefix(string(name), lostFromDisk):
			r.LostFromDisk += n
		}
	}
	return r
}

// lostWithCollector begins the properties that count operations which died with a collector.
var lostWithCollector = string(facts.PropLost.Below(component(experiment.LostWithCollector)).Below(""))

// lostFromDisk begins the one that counts records which were in event files.
var lostFromDisk = "LOST::" + component(experiment.LostFromDisk) + "::"

// eventChunkSize chooses the archive's: that of the most bytes in files of several chunks, as files of another size must
// be rewritten; one that is shorter than a chunk is readable with any size.
func eventChunkSize(r *run) uint64 {
	bytes := make(map[uint64]int64)
	best := uint64(0)
	for _, p := range r.parts {
		size := p.process.EventChunkSize
		for _, l := range p.process.Locations {
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

func machineName(r *run) string {
	name := r.parts[0].process.Host
	for _, p := range r.parts {
		if p.process.Host != name {
			return ""
		}
	}
	return name
}

func removeArchive(dir string) error {
	for _, suffix := range []string{".otf2", ".def", ".marker"} {
		if err := removeFile(filepath.Join(dir, archiveName+suffix)); err != nil {
			return err
		}
	}
	return os.RemoveAll(filepath.Join(dir, archiveName))
}

func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
