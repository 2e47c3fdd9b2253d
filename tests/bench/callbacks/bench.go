// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"time"

	"github.com/nccl-otf2/nccl-otf2/tests/bench/caller"
	"github.com/nccl-otf2/nccl-otf2/tests/bench/measure"
)

// pacedRate is how many callbacks a second all threads of a paced case make together. The collector keeps up
// with it on one processor beside them.
const pacedRate = 600_000

// limit is how long a single run may take.
const limit = 5 * time.Minute

// bench runs everything.
type bench struct {
	host   *caller.Host
	dir    string // for what is recorded, removed by the caller
	rounds int
	scale  float64
	match  *regexp.Regexp
	log    io.Writer // may be nil
	mode   string    // NCCL_OTF2_MODE
	runs   int
}

func (b *bench) say(format string, args ...any) {
	if b.log != nil {
		fmt.Fprintf(b.log, format, args...)
	}
}

func (b *bench) run(ctx context.Context) (*result, error) {
	r := &result{Machine: measure.Machine(), Go: runtime.Version(), Rounds: b.rounds}
	ran := 0
	for i := range costCases {
		c := &costCases[i]
		if !b.match.MatchString(c.name()) {
			continue
		}
		b.say("%s ", c.name())
		row, err := b.cost(ctx, c, r)
		b.say("\n")
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name(), err)
		}
		r.Costs = append(r.Costs, *row)
		ran++
	}
	for _, part := range []struct {
		name string
		do   func(context.Context, *result) error
	}{{"start", b.start}, {"memory", b.memory}, {"sustained", b.sustained}} {
		if !b.match.MatchString(part.name) {
			continue
		}
		b.say("%s ", part.name)
		err := part.do(ctx, r)
		b.say("\n")
		if err != nil {
			return nil, fmt.Errorf("%s: %w", part.name, err)
		}
		ran++
	}
	if ran == 0 {
		return nil, fmt.Errorf("nothing matches %q", b.match)
	}
	return r, nil
}

// seconds scales a duration.
func (b *bench) seconds(s float64) float64 { return s * b.scale }

// experiment is a new directory to record in, and the settings that say so.
func (b *bench) experiment() (dir string, settings []string) {
	b.runs++
	dir = filepath.Join(b.dir, fmt.Sprintf("run-%d", b.runs))
	return dir, []string{"NCCL_OTF2_DIR=" + dir, "NCCL_OTF2_EVENTS=net", "NCCL_OTF2_MODE=" + b.mode}
}

// plugins are the two that are compared.
func (b *bench) plugins() [2]string { return [2]string{b.host.Empty, b.host.Plugin} }

const empty, ours = 0, 1

// call runs the program with one of the plugins, by itself, and waits until all is recorded.
func (b *bench) call(ctx context.Context, which int, into any, mode string, args ...any) (*caller.Recorded, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	dir, settings := b.experiment()
	// An archive is made of all members of the communicators; here there is one. Nothing is to run on after the
	// process.
	run, err := b.host.Start(ctx, b.plugins()[which], append(settings, "NCCL_OTF2_UNIFY=off"), mode, args...)
	if err != nil {
		return nil, err
	}
	if _, err := run.Wait(into); err != nil || which == empty {
		return nil, err
	}
	recorded, err := caller.Await(ctx, dir, 1)
	if err != nil {
		return nil, err
	}
	return recorded, os.RemoveAll(dir)
}
