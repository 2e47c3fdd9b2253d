// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/scenario"
)

// outcome is what came of a scenario: the shards that the collectors left, and the archive as the reference
// binding reads it.
type outcome struct {
	t       *testing.T
	dir     string
	result  *replay.Result
	shards  []*description.Process // in order of the processes' launcher ranks
	archive *archive
	said    string // by the plugin, to NCCL's log
}

// playScenario plays a scenario through plugin, collector and unify, and has the archive read by the
// reference tools: whatever NCCL did, the archive must be sound.
func playScenario(t *testing.T, s *scenario.Scenario, changes ...change) *outcome {
	t.Helper()
	rec := testkit.Value(s.Load(filepath.Join(t.TempDir(), s.Name)))(t)
	o := &outcome{t: t, dir: filepath.Join(t.TempDir(), "experiment")}
	o.result = run(t, rec, usual(t, o.dir, changes...))
	for i := range o.result.Processes {
		o.said += o.result.Processes[i].Stderr
	}
	waitDone(t, o.dir, len(rec.Processes))
	o.unify()
	return o
}

// unify makes the archive and reads everything.
func (o *outcome) unify() {
	t := o.t
	t.Helper()
	anchor := unified(t, o.dir)
	checkSound(t, anchor)
	o.archive = readArchive(t, anchor)
	o.readShards()
}

func (o *outcome) readShards() {
	o.shards = shardsOf(o.t, o.dir)
	slices.SortFunc(o.shards, func(a, b *description.Process) int { return a.Launcher.Rank - b.Launcher.Rank })
}

// entered counts the regions of a name that were entered, on locations whose names contain a part.
func (o *outcome) entered(region, location string) (n int) {
	for loc, events := range o.archive.events {
		if !strings.Contains(o.archive.locations[loc].Name, location) {
			continue
		}
		for _, e := range events {
			if e.Event == "Enter" && o.archive.regions[e.Region] == region {
				n++
			}
		}
	}
	return n
}

// operationsOf lists all operations of a function on all communicator ranks.
func (o *outcome) operationsOf(function string) (all []*operation) {
	for _, c := range o.archive.comms {
		if isNetwork(c) {
			continue
		}
		for _, loc := range c.Members {
			ops, err := o.archive.operations(loc)
			if err != nil {
				o.t.Errorf("%s: %v", o.archive.locations[loc].Name, err)
			}
			for _, key := range slices.Sorted(maps.Keys(ops)) {
				for _, op := range ops[key] {
					if op.Name == function {
						all = append(all, op)
					}
				}
			}
		}
	}
	return all
}

// isNetwork tells the network's communicators, whose members are the rows of transfers.
func isNetwork(c *communicator) bool { return strings.HasSuffix(c.Name, " network") }

// oddity sums a count of oddities over the processes.
func (o *outcome) oddity(name string) (n int) {
	for _, p := range o.shards {
		n += int(p.Counts.Oddities[name])
	}
	return n
}

// properties are the archive's own.
func (o *outcome) properties() map[string]string {
	a := testkit.Value(otf2.ReadAnchor(filepath.Join(o.dir, "traces.otf2")))(o.t)
	all := make(map[string]string)
	for _, p := range a.Properties {
		all[p.Name] = p.Value
	}
	return all
}

// markers counts the markers of a category.
func (o *outcome) markers(category string) (n int) {
	a := testkit.Value(otf2.Open(filepath.Join(o.dir, "traces.otf2"), nil))(o.t)
	defer a.Close()
	defs, all, err := a.Markers()
	if err != nil {
		o.t.Fatal(err)
	}
	for _, d := range defs {
		for _, m := range all {
			if d.Category == category && m.Marker == d.Self {
				n++
			}
		}
	}
	return n
}

// sum adds up a count per event type over the processes.
func (o *outcome) sum(of func(*description.Counts) map[string]uint64, typ string) (n int) {
	for _, p := range o.shards {
		n += int(of(&p.Counts)[typ])
	}
	return n
}

func starts(c *description.Counts) map[string]uint64 { return c.Starts }

// want compares a number, and says what it is.
func (o *outcome) want(what string, got, want int) {
	o.t.Helper()
	testkit.Equal(o.t, got, want, "%s", what)
}

// atLeast is want for numbers that may be larger.
func (o *outcome) atLeast(what string, got, least int) {
	o.t.Helper()
	if got < least {
		o.t.Errorf("%s: %d, want at least %d", what, got, least)
	}
}

// sources counts operations by where their interval comes from.
func sources(ops []*operation) map[string]int {
	n := make(map[string]int)
	for _, op := range ops {
		n[op.source]++
	}
	return n
}
