// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/internal/collector"
	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
)

const (
	mebibyte = 1 << 20
	gibibyte = 1 << 30
)

// Least amounts below which the doctor warns.
const (
	leastDirectory = gibibyte       // free bytes where archives go
	leastShared    = 256 * mebibyte // free bytes of /dev/shm; NCCL takes about 10 MB per pair of ranks on a node
	sharedTables   = 22 * mebibyte  // of a process's memory beside records
	enoughPools    = 16             // of proxies in /dev/shm: two communicators of eight ranks
	leastFiles     = 1024           // open files: the collector holds one per location
	leastProcesses = 64             // processes and threads left to the user: the collector has about ten
	// Address space of the collector beside the shared memory: its Go runtime reserves about 1 GiB.
	// With less the plugin falls back to raw files.
	leastAddress = gibibyte + 512*mebibyte
)

func freeBytes(path string) (uint64, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return 0, err
	}
	return fs.Bavail * uint64(fs.Bsize), nil
}

// CheckDirectory says whether an experiment directory can be made and written: whether the nearest parent of it
// that exists, which it returns, is a folder that may be written. Nothing is made.
func CheckDirectory(dir string) (parent string, err error) {
	for parent = dir; ; parent = filepath.Dir(parent) {
		st, err := os.Stat(parent)
		switch {
		case errors.Is(err, fs.ErrNotExist) && parent != filepath.Dir(parent):
			continue
		case err == nil && !st.IsDir(), errors.Is(err, unix.ENOTDIR):
			return parent, errors.New("a part of its path is not a folder")
		case err != nil:
			return parent, err
		}
		if err := unix.Access(parent, unix.W_OK|unix.X_OK); err != nil {
			return parent, fmt.Errorf("%s cannot be written: %w", parent, err)
		}
		return parent, nil
	}
}

// checkDirectory checks that a job started here can write its experiment directory.
func (e *examiner) checkDirectory() {
	const group, name = "directory", "experiment directory"
	if e.settingsErr != nil {
		return // the path is not known; the line about the settings explains why
	}
	dir, err := filepath.Abs(e.settings.Directory)
	if err != nil {
		e.add(group, name, Fail, err.Error(), "change to a folder that exists")
		return
	}
	parent, err := CheckDirectory(dir)
	if err != nil {
		e.add(group, name, Fail, fmt.Sprintf("%s: %v", dir, err), "set NCCL_OTF2_DIR to a path that you may write")
		return
	}
	free, err := freeBytes(parent)
	switch {
	case err != nil:
		e.add(group, name, Warn, fmt.Sprintf("%s: free space unknown: %v", dir, err),
			"make sure that there is room for the archive")
	case free < leastDirectory:
		e.add(group, name, Warn, fmt.Sprintf("%s: only %s free", dir, units.Bytes(free)),
			"make room, or set NCCL_OTF2_DIR to another file system")
	default:
		e.add(group, name, OK, fmt.Sprintf("%s: writable, %s free", dir, units.Bytes(free)), "")
	}
}

func (e *examiner) checkSharedMemory() {
	const group = "directory"
	shm := e.pathInRoot(collector.ShmFolder)
	free, err := freeBytes(shm)
	switch {
	case err != nil:
		e.add(group, "/dev/shm", Warn, fmt.Sprintf("cannot be read: %v", err),
			"NCCL needs it for ranks that share a node")
	case e.settings.Shared && free/4 < e.settings.Memory+sharedTables:
		e.add(group, "/dev/shm", Warn, fmt.Sprintf(
			"%s free; NCCL_OTF2_RING=shm takes %s of it for each process, and no more than a quarter for all",
			units.Bytes(free), units.Bytes(e.settings.Memory)),
			"lower NCCL_OTF2_MEMORY, or in a container raise --shm-size; processes for which there is not enough "+
				"room use memory that ends with them and their collectors")
	case e.settings.Shared:
		e.add(group, "/dev/shm", OK, fmt.Sprintf(
			"%s free; NCCL_OTF2_RING=shm takes %s of it for each process", units.Bytes(free),
			units.Bytes(e.settings.Memory)), "")
	case free < leastShared:
		e.add(group, "/dev/shm", Warn, units.Bytes(free)+" free; NCCL itself may need more",
			"in a container: --shm-size=1g or --ipc=host")
	default:
		e.add(group, "/dev/shm", OK, units.Bytes(free)+" free", "")
	}
	e.checkOrphans(shm)
	// The plugin's rings are in a memfd, which seccomp profiles of old containers forbid.
	fd, err := unix.MemfdCreate("nccl-otf2-doctor", unix.MFD_CLOEXEC)
	if err != nil {
		e.add(group, "memfd", Warn, "memfd_create: "+err.Error(),
			"the plugin uses memory in /dev/shm instead: make room there, or allow memfd_create in the container's "+
				"seccomp profile")
		return
	}
	unix.Close(fd)
	e.add(group, "memfd", OK, "memfd_create works", "")
}

// checkOrphans names what processes that were killed have left there, by the directory that they were recorded in.
func (e *examiner) checkOrphans(folder string) {
	type left struct {
		files []string
		bytes uint64
	}
	found := make(map[string]*left)
	for _, o := range collector.Orphans(folder) {
		if !pathExists(o.Experiment) {
			o.Experiment = ""
		}
		l := keyed.Entry(found, o.Experiment)
		l.files, l.bytes = append(l.files, o.Path), l.bytes+uint64(o.Bytes)
	}
	for _, experiment := range slices.Sorted(maps.Keys(found)) {
		l := found[experiment]
		text := fmt.Sprintf("%s in %s of processes that were killed, and their collectors", units.Bytes(l.bytes),
			units.Plural(uint64(len(l.files)), "file"))
		if experiment == "" {
			e.add("directory", "left in /dev/shm", Warn, text+"; the directory of that recording no longer exists",
				"rm "+strings.Join(l.files, " "))
		} else {
			e.add("directory", "left in /dev/shm", Warn, text+", recorded in "+experiment,
				"nccl-otf2 unify "+experiment+" (saves what is in them, and removes them)")
		}
	}
}

// limit is a row of /proc/<pid>/limits that is relevant to recordings.
type limit struct {
	row, name string
	judge     func(e *examiner, soft, hard uint64) (Status, string)
}

const unlimited = ^uint64(0)

var limits = []limit{
	{"Max address space", "RLIMIT_AS", func(e *examiner, soft, _ uint64) (Status, string) {
		if soft < leastAddress+e.settings.Memory {
			return Warn, fmt.Sprintf(
				"the collector needs %s in addition to the shared memory of %s; without it, the plugin writes raw files for `unify`: raise `ulimit -v`",
				units.Bytes(leastAddress), units.Bytes(e.settings.Memory))
		}
		return OK, ""
	}},
	{"Max open files", "RLIMIT_NOFILE", func(_ *examiner, _, hard uint64) (Status, string) {
		if hard < leastFiles { // the collector raises the soft limit to the hard one
			return Warn, "the collector keeps one file open per location: raise `ulimit -Hn`"
		}
		return OK, ""
	}},
	{"Max processes", "RLIMIT_NPROC", func(e *examiner, soft, _ uint64) (Status, string) {
		if soft == unlimited {
			return OK, ""
		}
		if used := e.threadsOfUser(); used+leastProcesses > soft {
			return Warn, fmt.Sprintf(
				"%d of them are in use; if the collector cannot start, the plugin writes raw files for `unify`: raise `ulimit -u`", used)
		}
		return OK, ""
	}},
	{"Max file size", "RLIMIT_FSIZE", func(_ *examiner, soft, _ uint64) (Status, string) {
		if soft < gibibyte {
			return Warn, "event files of a long job are larger: raise `ulimit -f`"
		}
		return OK, ""
	}},
	{"Max locked memory", "RLIMIT_MEMLOCK", func(_ *examiner, _, _ uint64) (Status, string) {
		return Info, "" // the recording locks nothing; RDMA does, so people ask
	}},
}

// checkLimits reads the limits of the process that called the tool: the Go runtime raises its own
// limit of open files at start, so this process does not show what a job would get.
func (e *examiner) checkLimits() {
	const group = "limits"
	rows, err := readLimits(e.pathInRoot(fmt.Sprintf("/proc/%d/limits", os.Getppid())))
	if err != nil {
		rows, err = readLimits(e.pathInRoot("/proc/self/limits"))
	}
	if err != nil {
		e.add(group, "limits", Warn, "unknown: "+err.Error(), "check them with `ulimit -a`")
		return
	}
	for _, l := range limits {
		v, ok := rows[l.row]
		if !ok {
			continue
		}
		status, advice := l.judge(e, v[0], v[1])
		text := limitText(l.row, v[0])
		if v[0] != v[1] {
			text += " (can be raised to " + limitText(l.row, v[1]) + ")"
		}
		e.add(group, l.name, status, text, advice)
	}
}

func limitText(row string, v uint64) string {
	switch {
	case v == unlimited:
		return "unlimited"
	case row == "Max open files" || row == "Max processes":
		return strconv.FormatUint(v, 10)
	}
	return units.Bytes(v)
}

// readLimits gives the soft and hard value per row of a limits file. Its columns have fixed widths:
// 26 for the name, 21 for each value (fs/proc/base.c, proc_pid_limits).
func readLimits(path string) (map[string][2]uint64, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	out := map[string][2]uint64{}
	for line := range strings.Lines(string(b)) {
		if len(line) < 26 {
			continue
		}
		f := strings.Fields(line[26:])
		if len(f) < 2 {
			continue
		}
		var v [2]uint64
		ok := true
		for i := range v {
			if f[i] == "unlimited" {
				v[i] = unlimited
				continue
			}
			var err error
			v[i], err = strconv.ParseUint(f[i], 10, 64)
			ok = ok && err == nil
		}
		if ok {
			out[strings.TrimSpace(line[:26])] = v
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s has no rows of the expected form", path)
	}
	return out, nil
}

// threadsOfUser counts the threads of all processes of this user, which is what RLIMIT_NPROC limits.
func (e *examiner) threadsOfUser() uint64 {
	entries, err := os.ReadDir(e.pathInRoot("/proc"))
	if err != nil {
		return 0
	}
	uid := strconv.Itoa(os.Getuid())
	var n uint64
	for _, d := range entries {
		if _, err := strconv.Atoi(d.Name()); err != nil {
			continue
		}
		b, err := os.ReadFile(filepath.Join(e.pathInRoot("/proc"), d.Name(), "status"))
		if err != nil {
			continue
		}
		var owner string
		var threads uint64
		for line := range strings.Lines(string(b)) {
			key, value, _ := strings.Cut(line, ":")
			f := strings.Fields(value)
			switch {
			case len(f) == 0:
			case key == "Uid":
				owner = f[0]
			case key == "Threads":
				threads, _ = strconv.ParseUint(f[0], 10, 64)
			}
		}
		if owner == uid {
			n += threads
		}
	}
	return n
}

// checkClock reports which clock the plugin would use, by the plugin's own rule.
func (e *examiner) checkClock() {
	const group, name = "clock", "time stamps"
	if runtime.GOARCH == "arm64" {
		e.add(group, name, OK, "CNTVCT, the virtual counter", "")
		return
	}
	source := firstLine(e.pathInRoot("/sys/devices/system/clocksource/clocksource0/current_clocksource"))
	invariant := false
	if b, err := os.ReadFile(e.pathInRoot("/proc/cpuinfo")); err == nil {
		for line := range strings.Lines(string(b)) {
			if key, value, _ := strings.Cut(line, ":"); strings.TrimSpace(key) == "flags" {
				f := " " + strings.TrimSpace(value) + " "
				invariant = strings.Contains(f, " constant_tsc ") && strings.Contains(f, " nonstop_tsc ")
				break
			}
		}
	}
	switch {
	case invariant && source == "tsc":
		e.add(group, name, OK, "TSC: invariant, and the kernel's own clock source", "")
	case source == "tsc":
		e.add(group, name, Info, "CLOCK_MONOTONIC: the TSC is not said to be invariant here", "")
	case source == "":
		e.add(group, name, Info, "CLOCK_MONOTONIC: the kernel's clock source is unknown", "")
	default:
		e.add(group, name, Warn,
			fmt.Sprintf("CLOCK_MONOTONIC by the kernel's clock source %q, which may cost a system call per event",
				source), "expect a higher cost per event; on bare metal see why the kernel does not use tsc (dmesg)")
	}
}
