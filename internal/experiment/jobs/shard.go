// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/rawfiles"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// State is the progress of a process's data.
type State string

const (
	Finished State = "finished" // all that the process left is in its files
	Running  State = "running"  // a collector still writes them
	Crashed  State = "crashed"  // not written any more, and not finished
)

// Process is one process's shard as found on disk.
type Process struct {
	dir   string
	Shard *description.Process
	State State
	Life  Lifespan // on its own clock

	Pieces []*Piece // the shards of several collectors, in order; nil: one wrote it

	Offset int64              // nanoseconds to add to its times, see alignClocks
	lead   int64              // of its machine's clock, see measureLeads; for telling jobs apart only
	tied   bool               // the lead was measured
	Knots  []otf2.ClockOffset // and then these, see synchronize; nil: none
	// instead of both, maps its own times to those of another archive, see transfer; nil: none
	Onto  []otf2.ClockOffset
	Index int    // of its location group in the archive
	Base  uint32 // added to the numbers of its locations there
	Name  string
}

// ID names the process in messages.
func (p *Process) ID() string { return fmt.Sprintf("%s:%d", p.Shard.Host, p.Shard.PID) }

// Cut reports whether only the described part of the shard's event files may be used: what follows may need missing
// definitions.
func (p *Piece) Cut() bool { return p.Shard.Instead != nil && p.State != Finished }

// CutBack reports the same of a shard whose writer's disk failed until the end: further content of its files counts as
// lost.
func (p *Piece) CutBack() bool { return p.State == Finished && !p.Shard.Finished }

// substituted names the file from which the process's description was taken, if not the regular one.
func (p *Process) substituted() string {
	instead := p.Shard.Instead
	if instead == nil {
		return ""
	}
	text := fmt.Sprintf("%s (shard %s): %s was used in place of %s, which cannot be (%s); ", p.ID(),
		filepath.Base(p.dir), instead.File, experiment.ProcessFile, instead.Why)
	if p.Shard.Finished {
		return text + "it says the same, nothing is missing"
	}
	return text + "what was recorded after " + p.lastSeen() + " is missing"
}

// Uncounted states why more of the process is missing than its losses count, by an unknown amount; "" if that is not
// so.
func (p *Process) Uncounted() string {
	why := p.Shard.Counts.Uncounted
	// else its collector has counted to the end
	if p.State == Crashed && !slices.ContainsFunc(p.Shards(), (*Piece).CutBack) {
		why = append(slices.Clone(why), "what was in memory when its recording broke off is lost")
	}
	if len(why) == 0 {
		return ""
	}
	return p.ID() + ": " + strings.Join(why, "; ")
}

// lastSeen is the time of the last event that the description speaks of.
func (p *Process) lastSeen() string {
	return time.Unix(0, int64(p.Shard.LastTime)).UTC().Format("2006-01-02 15:04:05.000 UTC")
}

// Unused lists what could not be used of an experiment directory.
type Unused struct {
	Problems []string // one line each
	Damaged  []string // of them: shards or raw files with unreadable content
}

// Add adds a problem. damaged: recorded data cannot be read.
func (u *Unused) Add(damaged bool, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	u.Problems = append(u.Problems, text)
	if damaged {
		u.Damaged = append(u.Damaged, text)
	}
}

// Err returns the problems as one error; nil if there are none.
func (u *Unused) Err() error {
	if len(u.Problems) == 0 {
		return nil
	}
	return errors.New(strings.Join(u.Problems, "\n"))
}

// Read reads the description of every shard below dir. Unreadable shards are problems, not errors, as long as one can
// be read.
func Read(dir string, workers int, now time.Time) (parts []*Process, left Unused, err error) {
	root := filepath.Join(dir, experiment.Folder)
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, left, fmt.Errorf("read experiment directory: %w", err)
	}
	var dirs []string
	for _, e := range entries {
		if e.IsDir() {
			dirs = append(dirs, filepath.Join(root, e.Name()))
		}
	}
	parts = make([]*Process, len(dirs))
	failures := make([]error, len(dirs))
	_ = ForEach(len(dirs), workers, func(i int) error {
		parts[i], failures[i] = readShard(dirs[i], now)
		return nil
	})
	for i, err := range failures {
		if err != nil {
			left.Add(!errors.Is(err, errUndescribed) && !errors.Is(err, errEarly), "shard %s is left out: %v",
				filepath.Base(dirs[i]), err)
		} else if text := parts[i].substituted(); text != "" {
			left.Add(true, "%s", text)
		}
	}
	parts = slices.DeleteFunc(parts, func(p *Process) bool { return p == nil })
	if len(parts) == 0 {
		if slices.ContainsFunc(failures, func(err error) bool { return errors.Is(err, errEarly) }) {
			return nil, left, fmt.Errorf(
				"the job in %s is being recorded, and no process has described itself yet: try again in a moment", dir)
		}
		if len(left.Problems) > 0 {
			return nil, left, fmt.Errorf("no usable shard in %s: %s", root, left.Problems[0])
		}
		return nil, left, fmt.Errorf("no shards in %s: %w", root, fs.ErrNotExist)
	}
	slices.SortFunc(parts, func(a, b *Process) int { return strings.Compare(a.Shard.UUID, b.Shard.UUID) })
	return parts, left, nil
}

// errEarly reports a running process whose description is not complete yet.
var errEarly = errors.New("its process is being recorded, and has not described itself yet")

// errUndescribed: errUndescribed reports a shard without a description so far.
var errUndescribed = errors.New("no " + experiment.ProcessFile)

// states maps the states of shards to those of this package.
var states = map[experiment.State]State{experiment.Done: Finished, experiment.Writing: Running,
	experiment.Dead: Crashed}

func readShard(dir string, now time.Time) (*Process, error) {
	e := experiment.At(dir, now)
	p, state := e.Process, states[e.State]
	switch {
	case e.Err != nil:
		return nil, e.Err
	case e.State == experiment.Starting && !e.Guess:
		return nil, errEarly
	case p == nil:
		return nil, fmt.Errorf("its process ended before it described itself (%w)", errUndescribed)
	}
	if err := checkProcess(p); err != nil {
		if state == Running { // by a writer of another version
			return nil, fmt.Errorf("%w (%v)", errEarly, err)
		}
		return nil, fmt.Errorf("%s: %w", experiment.ProcessFile, err)
	}
	if p.UUID == "" {
		p.UUID = filepath.Base(dir)
	}
	if p.Instead != nil && !p.Finished && state == Finished {
		state = Crashed
	}
	return &Process{dir: dir, Shard: p, State: state, Life: life(p)}, nil
}

// maxLocation bounds the number of a location, as description.MaxRanks does ranks.
const maxLocation = 1 << 31

// checkProcess rejects descriptions with invalid indices: all later code relies on them.
func checkProcess(p *description.Process) error {
	if p.EventChunkSize < otf2.MinChunkSize || p.EventChunkSize > otf2.MaxChunkSize {
		return fmt.Errorf("event chunks of %d bytes", p.EventChunkSize)
	}
	numbers := make(map[uint32]bool, len(p.Locations))
	for i, l := range p.Locations {
		if numbers[l.Number] {
			return fmt.Errorf("location number %d occurs twice", l.Number)
		}
		numbers[l.Number] = true
		if l.Number >= maxLocation {
			return fmt.Errorf("location number %d", l.Number)
		}
		if l.Comm < -1 || l.Comm >= len(p.Comms) {
			return fmt.Errorf("location %d (%q) refers to communicator %d of %d", i, l.Name, l.Comm, len(p.Comms))
		}
		if last := l.Present(); last.Comm < -1 || last.Comm >= len(p.Comms) || l.Owners < 0 {
			return fmt.Errorf("location %d (%q) refers to communicator %d of %d, and has %d owners", i, l.Name,
				last.Comm, len(p.Comms), l.Owners)
		}
	}
	for i, l := range p.Locations {
		if ForeignWork(&l) && l.Foreign >= len(p.Foreign) {
			return fmt.Errorf("location %d (%q) refers to communicator rank %d of other processes, of %d", i, l.Name,
				l.Foreign, len(p.Foreign))
		}
	}
	for i, f := range p.Foreign {
		if f.Index < 0 || f.Rank >= description.MaxRanks {
			return fmt.Errorf("communicator rank %d of other processes: index %d, rank %d", i, f.Index, f.Rank)
		}
	}
	for i, w := range p.Wins {
		if w.Comm < -1 || w.Comm >= len(p.Comms) || w.Foreign < -1 || w.Foreign >= len(p.Foreign) ||
			(w.Comm < 0) == (w.Foreign < 0) {
			return fmt.Errorf("window %d is of communicator %d of %d and of %d of %d of other processes", i, w.Comm,
				len(p.Comms), w.Foreign, len(p.Foreign))
		}
		if w.Ranks < 0 || w.Ranks > description.MaxRanks {
			return fmt.Errorf("window %d has %d ranks, of at most %d", i, w.Ranks, description.MaxRanks)
		}
	}
	for i, c := range p.Comms {
		if unannounced(&c) {
			continue
		}
		if c.Location >= 0 && !numbers[uint32(c.Location)] {
			return fmt.Errorf("communicator %d refers to location %d, which is not there", i, c.Location)
		}
		if n := c.Network; n != nil && !(numbers[n.Send] && numbers[n.Recv]) {
			return fmt.Errorf("communicator %d refers to locations %d and %d, which are not there", i, n.Send, n.Recv)
		}
		if unsized(&c) {
			if c.Rank >= description.MaxRanks {
				return fmt.Errorf("communicator %d: rank %d, of at most %d ranks", i, c.Rank, description.MaxRanks)
			}
			continue
		}
		if c.NRanks < 1 || c.NRanks > description.MaxRanks || c.Rank < 0 || c.Rank >= c.NRanks {
			return fmt.Errorf("communicator %d: rank %d of %d (of at most %d)", i, c.Rank, c.NRanks,
				description.MaxRanks)
		}
	}
	return nil
}

// unannounced reports whether the process reserved the communicator's entry and never described it.
func unannounced(c *description.Comm) bool { return c.NRanks == 0 && c.InitTime == 0 }

// unsized reports whether NCCL never reported the size of the communicator (profiler API v1 to v3).
func unsized(c *description.Comm) bool { return c.NRanks == 0 && c.InitTime != 0 }

// ForeignWork reports whether the location shows network work for another process's communicator rank.
func ForeignWork(l *description.Location) bool {
	return l.Kind == description.KindNetSend && l.Comm < 0 && l.Foreign >= 0
}

// NotConverted names the raw files of a directory that have no shard; raw is the outcome of their conversion.
func NotConverted(dir string, raw []rawfiles.File) (left Unused) {
	tried := make(map[string]bool)
	for _, f := range raw {
		tried[filepath.Base(f.Path)] = true
		if errors.Is(f.Err, rawfiles.ErrNothingWritten) {
			left.Add(false, "%v", f.Err)
		} else if f.Err != nil {
			left.Add(true, "convert %s: %v", f.Path, f.Err)
		}
	}
	for _, file := range rawfiles.Find(dir) {
		if !tried[filepath.Base(file)] {
			left.Add(false, "%s holds raw data and was not converted", file)
		}
	}
	return left
}
