// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/config"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/regular"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// ShmFolder is where the plugin puts memory that is to outlive job and collector.
const ShmFolder = "/dev/shm"

// Orphan is a file of such memory that nobody uses any more: the process has ended, and its collector.
type Orphan struct {
	Path       string
	Bytes      int64  // that it takes
	PID        int    // of the process, as it saw itself
	Experiment string // the directory that it was recorded in; "" if that was never settled, and so nothing recorded

	header shm.Header
}

// Orphans lists the files of this user in a folder (ShmFolder) that are orphans. It touches none.
func Orphans(folder string) []Orphan {
	var out []Orphan
	for _, path := range regular.Matches(folder, fmt.Sprintf("nccl-otf2-%d-*", os.Geteuid())) {
		if o, ok := orphan(path); ok {
			out = append(out, o)
		}
	}
	return out
}

func orphan(path string) (Orphan, bool) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return Orphan{}, false
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	var st unix.Stat_t
	var uid, pid int
	var tag uint16
	var start uint64
	if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || int(st.Uid) != os.Geteuid() {
		return Orphan{}, false
	}
	if _, err := fmt.Sscanf(filepath.Base(path), "nccl-otf2-%d-%d-%x-%d", &uid, &pid, &tag, &start); err != nil {
		return Orphan{}, false
	}
	// Numbers of processes mean something else in containers: of them the lock tells, which goes with this descriptor.
	if began, err := shm.ProcessStart(pid); err == nil && began == start ||
		unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) != nil {
		return Orphan{}, false
	}
	o := Orphan{Path: path, Bytes: st.Blocks * 512, PID: pid}
	if h, err := shm.ReadHeader(f); err == nil {
		o.header, o.Experiment = h, placeOf(&h)
	}
	return o, true
}

// placeOf is the experiment directory of a process's memory. A plugin without a collector says which raw file it
// writes.
func placeOf(h *shm.Header) string {
	place := h.Directory()
	if strings.HasSuffix(place, experiment.SpoolSuffix) {
		return filepath.Dir(filepath.Dir(place))
	}
	return place
}

// salvageUnlisted saves what orphans of an experiment hold of which no shard tells.
func salvageUnlisted(directory string, entries []experiment.Entry, deadline time.Time) (saved int, problems []error) {
	known := make(map[string]bool)
	for _, e := range entries {
		if e.Process != nil {
			known[e.Process.Memory.Path] = true
		}
	}
	own, err := os.Stat(directory)
	if err != nil {
		return 0, nil
	}
	for _, o := range Orphans(ShmFolder) {
		info, err := os.Stat(o.Experiment)
		if o.Experiment == "" || err != nil || known[o.Path] || !os.SameFile(own, info) ||
			o.header.Boot() != experiment.BootID() {
			continue
		}
		p := &experiment.Process{PID: o.PID, PIDStart: o.header.PIDStart, Tag: uint16(o.header.Tag),
			BootID: o.header.Boot(), Host: o.header.Host(),
			Memory: experiment.Memory{Kind: memoryShm, Path: o.Path}, Settings: statedSettings(&o.header),
			Launcher: experiment.Launcher{Rank: -1, Size: -1}}
		if spools(directory, p) {
			continue // goes with the raw file, see Convert
		}
		if done, err := salvage(p, false, directory, deadline); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", o.Path, err))
		} else if done {
			saved++
		}
	}
	return saved, problems
}

// statedSettings are the settings that a header tells of.
func statedSettings(h *shm.Header) map[string]string {
	return map[string]string{"EVENTS": config.EventList(h.RecordMask), "METRICS": "on", "CLOCK": h.ClockSource.String()}
}
