// SPDX-License-Identifier: Apache-2.0

package caller

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
)

// Recorded is what the shards of an experiment directory say of the callbacks.
type Recorded struct {
	Calls   uint64 // starts, stops and states that were taken
	Lost    uint64 // that were not, for whatever reason
	Reasons map[string]uint64
	Bytes   int64  // of event files
	Events  uint64 // in them
	Clock   string // of the records
}

// Await waits until the collectors have finished their shards, of so many processes, and returns what is in them.
func Await(ctx context.Context, directory string, processes int) (*Recorded, error) {
	for {
		entries, err := experiment.List(directory)
		if err != nil {
			return nil, err
		}
		done := 0
		for _, e := range entries {
			if e.State == experiment.Done {
				done++
			}
		}
		if done == processes && len(entries) == processes {
			return sum(entries)
		}
		if len(entries) > processes {
			return nil, fmt.Errorf("%s has %d shards of %d processes", directory, len(entries), processes)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%s: %d of %d shards were finished: %w", directory, done, processes, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func sum(entries []experiment.Entry) (*Recorded, error) {
	r := &Recorded{Reasons: make(map[string]uint64)}
	for _, e := range entries {
		if e.Err != nil {
			return nil, e.Err
		}
		p := e.Process
		for _, by := range []map[string]uint64{p.Counts.Starts, p.Counts.Stops, p.Counts.States} {
			for _, n := range by {
				r.Calls += n
			}
		}
		for reason, by := range p.Counts.Lost {
			for _, n := range by {
				r.Lost += n
				r.Reasons[reason] += n
			}
		}
		for _, l := range p.Locations {
			r.Bytes += l.Bytes
			r.Events += l.Events
		}
		r.Clock = p.Clock.Source
	}
	return r, nil
}

// products are what the job's last collector makes, by the mode.
var products = map[string]string{"trace": "traces.otf2", "profile": "profile.cubex"}

// awaitArchive waits for the archive that the job's last collector makes.
func awaitArchive(ctx context.Context, directory string) (anchor string, err error) {
	return AwaitProduct(ctx, directory, "trace")
}

// AwaitProduct waits for what the job's last collector makes in a mode: archive or profile.
func AwaitProduct(ctx context.Context, directory, mode string) (path string, err error) {
	path = filepath.Join(directory, products[mode])
	for {
		if _, err = os.Stat(path); err == nil || !errors.Is(err, fs.ErrNotExist) {
			return path, err
		}
		select {
		case <-ctx.Done():
			return path, fmt.Errorf("%s was not made: %w", path, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}
