// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/flock"
)

// ErrBusy is returned (wrapped, with the holder named) by Lock if the directory is being unified already.
var ErrBusy = errors.New("experiment directory is being unified")

// Hold is the exclusive right to unify an experiment directory, and to convert raw files in it.
type Hold struct {
	Dir  string // the experiment directory
	file *os.File
}

// Release gives up the right.
func (h *Hold) Release() { _ = flock.Unlock(h.file) }

// Lock keeps others from unifying an experiment directory, or from converting raw files in it, until Release is called:
// it takes shards/unify.lock. The lock is flock's, so it ends with its holder; the file stays, because removing it
// would let two processes hold locks on two files with that name. Its content names the holder, for people.
func Lock(dir string) (*Hold, error) {
	path := filepath.Join(dir, Folder, UnifyLock)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, FileMode)
	if err != nil {
		return nil, fmt.Errorf("lock experiment directory: %w", err)
	}
	// Its text will be replaced, so it must be the lock and no other file.
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() || info.Sys().(*syscall.Stat_t).Nlink != 1 {
		f.Close()
		return nil, fmt.Errorf("lock experiment directory: %s is not a file itself", path)
	}
	switch err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
	case errors.Is(err, unix.EWOULDBLOCK):
		holder, _ := io.ReadAll(io.LimitReader(f, 512))
		f.Close()
		return nil, fmt.Errorf("%w by %s (%s)", ErrBusy, strings.TrimSpace(string(holder)), path)
	case flock.IsUnsupported(err):
		// No locks here. Two unifiers at once waste work and the later rename wins.
	case err != nil:
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	host, _ := os.Hostname()
	_ = f.Truncate(0)
	_, _ = fmt.Fprintf(f, "host %s pid %d since %s\n", host, os.Getpid(), time.Now().UTC().Format(time.RFC3339))
	return &Hold{Dir: dir, file: f}, nil
}
