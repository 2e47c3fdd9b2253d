// SPDX-License-Identifier: Apache-2.0

package control

import (
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// How often a collector looks for orders. Where looking is a message to a server, seldom: there may be thousands of
// collectors.
const (
	pollNear = 100 * time.Millisecond
	pollFar  = time.Second
)

// Types of file systems whose attributes are in memory (statfs(2)).
var nearFileSystems = []int64{
	0xef53,           // ext2, ext3, ext4
	unix.TMPFS_MAGIC, // tmpfs
	unix.OVERLAYFS_SUPER_MAGIC,
	unix.BTRFS_SUPER_MAGIC,
	unix.XFS_SUPER_MAGIC,
}

// pollInterval is the time between two looks of a collector at the control file of an experiment directory.
func pollInterval(dir string) time.Duration {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) == nil && slices.Contains(nearFileSystems, int64(st.Type)) {
		return pollNear
	}
	return pollFar
}

// Near reports whether the directory's file system is in this machine: to look at a file costs no message to a server.
func (l *Listener) Near() bool { return l.Interval == pollNear }

// Listener follows the control file for one collector.
type Listener struct {
	Interval time.Duration // between two looks
	path     string
	next     time.Time
	seen     unix.Stat_t // of the file looked at last
}

// Listen begins to follow the control file of an experiment directory.
func Listen(directory string) Listener {
	return Listener{path: filepath.Join(directory, FileName), Interval: pollInterval(directory)}
}

// Changed reports whether the control file is another than at the last look.
func (l *Listener) Changed() bool {
	now := time.Now()
	if now.Before(l.next) {
		return false
	}
	l.next = now.Add(l.Interval)
	var st unix.Stat_t
	if unix.Lstat(l.path, &st) != nil {
		return false
	}
	if st.Ino == l.seen.Ino && st.Mtim == l.seen.Mtim && st.Size == l.seen.Size && st.Dev == l.seen.Dev {
		return false
	}
	l.seen = st
	return true
}
