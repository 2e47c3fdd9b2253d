// SPDX-License-Identifier: Apache-2.0

package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// FileName is the name of the control file in the experiment directory. StatusFile is that of a status in a shard.
const (
	FileName   = "control"
	StatusFile = "status.json"
)

// Version is the version of the control file's format.
const Version = 1

const most = 16 << 20 // maximum size of a control file in bytes

// File is the content of the control file.
type File struct {
	Version int      `json:"version"`
	Job     []string `json:"job"`   // the shards of the job that it applies to
	Ask     uint64   `json:"ask"`   // incremented for each status request
	Order   uint64   `json:"order"` // incremented for each order; 0: no order yet
	// Settle requests that all complete operations be in the shards before the answers.
	Settle bool `json:"settle,omitempty"`

	// Windows, New and Events are the last order.
	Windows []Window    `json:"windows,omitempty"`
	New     *shm.Window `json:"new,omitempty"`    // for future communicators
	Events  *uint32     `json:"events,omitempty"` // event types (bits) to record, of those that NCCL was asked for
}

// Window is the window of a communicator for all its members. If NCCL did not report the communicator's identity, it is
// the window of one communicator rank.
type Window struct {
	ID     uint64 `json:"id,string"`
	NRanks int    `json:"nranks"`
	Shard  string `json:"shard,omitempty"` // together with Index: only this rank
	Index  int    `json:"index,omitempty"`
	First  uint64 `json:"first,string"`
	Last   uint64 `json:"last,string"`
}

// Read reads the control file of an experiment directory. It refuses a file that another user could have written.
func Read(directory string) (*File, error) {
	path := filepath.Join(directory, FileName)
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		if errors.Is(err, unix.ELOOP) {
			err = errors.New("it is a symbolic link")
		}
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	file := os.NewFile(uintptr(fd), path)
	defer file.Close()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return nil, fmt.Errorf("%s: it is not a file", path)
	case int(st.Uid) != os.Geteuid():
		return nil, fmt.Errorf("%s: it belongs to user %d, the job to user %d", path, st.Uid, os.Geteuid())
	case st.Mode&0o022 != 0:
		return nil, fmt.Errorf("%s: others may write it (mode %#o)", path, st.Mode&0o777)
	case st.Size > most:
		return nil, fmt.Errorf("%s: %d bytes", path, st.Size)
	}
	text, err := io.ReadAll(io.LimitReader(file, most))
	if err != nil {
		return nil, err
	}
	c := new(File)
	if err := json.Unmarshal(text, c); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if c.Version != Version {
		return nil, fmt.Errorf("%s has version %d, this program reads %d", path, c.Version, Version)
	}
	return c, nil
}

// Means reports whether the window applies to a communicator entry of a shard.
func (w *Window) Means(shard string, i int, c *shm.Comm) bool {
	if w.Shard != "" {
		return w.Shard == shard && w.Index == i
	}
	return w.ID == c.ID && w.NRanks == c.NRanks
}
