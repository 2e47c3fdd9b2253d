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
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/provenance"
	"github.com/nccl-otf2/nccl-otf2/internal/regular"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// ShmFolder is where the plugin creates memory that must outlive job and collector.
const ShmFolder = "/dev/shm"

// Orphan is a file of shared memory that is no longer used, because its process and its collector have ended.
type Orphan struct {
	Path       string
	Bytes      int64  // bytes occupied
	PID        int    // process id in the process's own namespace
	Experiment string // experiment directory; "" if it was never chosen, so that nothing was recorded

	header shm.Header
}

// Orphans returns this user's orphans in a folder (ShmFolder). It does not change them.
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
	// In containers, process ids have another meaning. Then the file's lock shows whether it is used.
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

// placeOf returns the experiment directory of a process's memory. Without a collector, the header has the path of the
// raw file instead.
func placeOf(h *shm.Header) string {
	place := h.Directory()
	if strings.HasSuffix(place, experiment.SpoolSuffix) {
		return filepath.Dir(filepath.Dir(place))
	}
	return place
}

// salvageUnlisted saves the data of orphans of an experiment that no shard describes.
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
		p := &description.Process{PID: o.PID, PIDStart: o.header.PIDStart, Tag: uint16(o.header.Tag),
			BootID: o.header.Boot(), Host: o.header.Host(),
			Memory: provenance.Memory{Kind: memoryShm, Path: o.Path}, Settings: statedSettings(&o.header),
			Launcher: provenance.Launcher{Rank: -1, Size: -1}}
		if spools(directory, p) {
			continue // convert handles it with the raw file
		}
		if done, err := salvage(p, false, directory, deadline); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", o.Path, err))
		} else if done {
			saved++
		}
	}
	return saved, problems
}

// statedSettings returns the settings that a header contains.
func statedSettings(h *shm.Header) map[string]string {
	return map[string]string{"EVENTS": config.EventList(h.RecordMask), "METRICS": "on", "CLOCK": h.ClockSource.String()}
}
