// SPDX-License-Identifier: Apache-2.0

package control

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

	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
)

// watchPause is the time between two questions of Watch.
const watchPause = 200 * time.Millisecond

// Watch makes the collectors of a running job write all complete records to their shards, for somebody who looks at the
// job: what they hold in memory, and what they have postponed (setting BACKLOG), which they write at once and for some
// seconds from now on. It waits for that up to patience, and returns how many bytes of records are still not in the
// shards; the error names collectors that do not answer. Without patience it only asks those that have postponed
// something. If no job runs, it does nothing; if the job ends meanwhile, everything is in the shards.
func (c *Controller) Watch(ctx context.Context, patience time.Duration) (behind uint64, err error) {
	asked := collects
	if patience == 0 {
		asked = putsOff
	}
	entries, err := experiment.List(c.Dir)
	if err != nil || !slices.ContainsFunc(entries, asked) {
		return 0, nil // who looks at it says what is wrong
	}
	unlock, err := c.lock(max(patience, lockPatience))
	if err != nil {
		return 0, err
	}
	defer unlock()
	for deadline := time.Now().Add(patience); ; {
		if patience == 0 {
			err = c.request()
		} else {
			behind, err = c.behind(ctx, patience)
		}
		if errors.Is(err, ErrNoJob) || errors.Is(err, errEnded) || errors.Is(err, fs.ErrNotExist) {
			return 0, nil
		}
		if err != nil || behind == 0 || !time.Now().Before(deadline) {
			return behind, err
		}
		select {
		case <-ctx.Done():
			return behind, ctx.Err()
		case <-time.After(watchPause):
		}
	}
}

// collects reports whether a shard has a collector that works.
func collects(e experiment.Entry) bool {
	return e.State == experiment.Writing && !e.Process.IsSpooled()
}

// putsOff reports whether such a collector has put off records, or did.
func putsOff(e experiment.Entry) bool {
	if !collects(e) {
		return false
	}
	_, err := os.Lstat(filepath.Join(e.Path, experiment.BacklogFile))
	return err == nil
}

// request asks without waiting for answers.
func (c *Controller) request() error {
	entries, err := c.live()
	if err != nil {
		return err
	}
	return c.send(&File{}, false, entries)
}

// mostSilent is how many collectors without an answer are named.
const mostSilent = 4

// behind has the collectors write down what is complete, and asks how many bytes they have put off.
func (c *Controller) behind(ctx context.Context, patience time.Duration) (n uint64, err error) {
	patient := Controller{Dir: c.Dir, Timeout: cmp.Or(c.Timeout, patience)}
	answers, silent, err := patient.ask(ctx, &File{Settle: true}, false)
	for i := range answers {
		n += answers[i].Backlog
	}
	if err == nil && len(silent) > 0 {
		further := ""
		if n := len(silent) - mostSilent; n > 0 {
			silent, further = silent[:mostSilent], fmt.Sprintf(" and %d more", n)
		}
		err = fmt.Errorf("there is no answer from %s%s", strings.Join(silent, ", "), further)
	}
	return n, err
}
