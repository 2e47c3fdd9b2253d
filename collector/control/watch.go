// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/nccl-otf2/nccl-otf2/experiment"
)

// watchPause is the time between two questions of Watch.
const watchPause = 200 * time.Millisecond

// Watch has the collectors of a running job take what they have put off (setting BACKLOG), for somebody who looks at the job: at once, and from
// now on for some seconds. It waits for that as long as patience says, and returns how many bytes of records are not in the shards even
// so. Where nobody has put anything off it does nothing, also where there is no job; of one that ends meanwhile all is there.
func (c *Controller) Watch(ctx context.Context, patience time.Duration) (behind uint64, err error) {
	entries, err := experiment.List(c.Dir)
	if err != nil || !slices.ContainsFunc(entries, putsOff) {
		return 0, nil // who looks at it says what is wrong
	}
	unlock, err := c.lock()
	if err != nil {
		return 0, err
	}
	defer unlock()
	for deadline := time.Now().Add(patience); ; {
		if patience == 0 {
			err = c.request()
		} else {
			behind, err = c.behind(ctx)
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

// Follow tells the collectors of a running job that somebody watches it: for the next ten seconds they write operations down as soon as
// these have ended, with provisional times (experiment.AheadFiles). It does not wait for answers. Where there is no job, or it is somebody
// else's, or the directory cannot be written, the error tells so.
func (c *Controller) Follow() error {
	entries, err := c.live()
	if err != nil {
		return err
	}
	unlock, err := c.lock()
	if err != nil {
		return err
	}
	defer unlock()
	return c.send(&File{Watch: true}, false, entries)
}

// putsOff tells that a shard's collector works, and has put off records, or did.
func putsOff(e experiment.Entry) bool {
	if e.State != experiment.Writing {
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

// behind asks how many bytes the collectors have put off; those that do not answer are left out.
func (c *Controller) behind(ctx context.Context) (n uint64, err error) {
	answers, _, err := c.ask(ctx, &File{}, false)
	for i := range answers {
		n += answers[i].Backlog
	}
	return n, err
}
