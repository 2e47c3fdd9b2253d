// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// system are files as the system shows them, below a folder.
type system struct {
	t    *testing.T
	root string
}

func (s system) write(name, text string) {
	s.t.Helper()
	path := filepath.Join(s.root, name)
	testkit.Must(s.t, os.MkdirAll(filepath.Dir(path), 0o777))
	testkit.Must(s.t, os.WriteFile(path, []byte(text), 0o666))
}

const (
	fourIdle = "cpu  10 0 10 4000 400 0 0 0 0 0\ncpu0 5 0 5 1000 100 0 0 0 0 0\ncpu1 5 0 5 1000 100 0 0 0 0 0\n" +
		"cpu2 0 0 0 1000 100 0 0 0 0 0\ncpu3 0 0 0 1000 100 0 0 0 0 0\nintr 1 2 3\n"
	// A second later: CPU 0 was idle all the time, in part waiting for a disk, 1 for half of it, 2 and 3 never.
	later = "cpu  10 0 10 4150 400 0 0 0 0 0\ncpu0 5 0 5 1070 130 0 0 0 0 0\ncpu1 55 0 5 1050 100 0 0 0 0 0\n" +
		"cpu2 100 0 0 1000 100 0 0 0 0 0\ncpu3 100 0 0 1000 100 0 0 0 0 0\nintr 1 2 3\n"
)

// Of processors counts what is idle of those in the mask, and what the collector takes itself; a quota has as much room
// as has not been used of it, in whatever group above the process it is.
func TestRoom(t *testing.T) {
	for _, c := range []struct {
		name          string
		mask          []int // nil: all
		own           time.Duration
		before, after map[string]string
		usable, spare float64
	}{
		{"all", nil, 0, nil, nil, 4, 1.5},
		{"pinned where there is room", []int{0}, 0, nil, nil, 1, 1},
		{"pinned where there is none", []int{2, 3}, 0, nil, nil, 2, 0},
		{"on a processor that the collector takes", []int{2, 3}, 700 * time.Millisecond, nil, nil, 2, 0.7},
		{"quota of version 2", nil, 0, map[string]string{
			"proc/self/cgroup":                  "0::/job/step\n",
			groupsFolder + "/job/cpu.max":       "200000 100000\n",
			groupsFolder + "/job/cpu.stat":      "usage_usec 5000000\nuser_usec 1\n",
			groupsFolder + "/job/step/cpu.max":  "max 100000\n",
			groupsFolder + "/job/step/cpu.stat": "usage_usec 5000000\n",
		}, map[string]string{groupsFolder + "/job/cpu.stat": "usage_usec 6750000\nuser_usec 1\n"}, 2, 0.25},
		{"quota of a container, whose groups have other names inside", nil, 0, map[string]string{
			"proc/self/cgroup":        "0::/far/away\n",
			groupsFolder + "/cpu.max": "150000 50000\n", groupsFolder + "/cpu.stat": "usage_usec 0\n",
		}, map[string]string{groupsFolder + "/cpu.stat": "usage_usec 2000000\n"}, 3, 1},
		{"quota that is far away", nil, 0, map[string]string{
			"proc/self/cgroup":        "0::/\n",
			groupsFolder + "/cpu.max": "6400000 100000\n", groupsFolder + "/cpu.stat": "usage_usec 0\n",
		}, map[string]string{groupsFolder + "/cpu.stat": "usage_usec 2000000\n"}, 4, 1.5},
		{"quota of version 1", nil, 0, map[string]string{
			"proc/self/cgroup":                          "4:memory:/x\n3:cpu,cpuacct:/job\n0::/\n",
			groupsFolder + "/cpu/job/cpu.cfs_quota_us":  "100000\n",
			groupsFolder + "/cpu/job/cpu.cfs_period_us": "50000\n",
			groupsFolder + "/cpuacct/job/cpuacct.usage": "1000000000\n",
			groupsFolder + "/cpu/cpu.cfs_quota_us":      "-1\n",
			groupsFolder + "/cpu/cpu.cfs_period_us":     "100000\n",
			groupsFolder + "/cpuacct/cpuacct.usage":     "9000000000\n",
		}, map[string]string{groupsFolder + "/cpuacct/job/cpuacct.usage": "2900000000\n"}, 2, 0.1},
		{"what cannot be read", nil, 0, map[string]string{
			"proc/self/cgroup":        "0::/\nnonsense\n",
			groupsFolder + "/cpu.max": "many 0\n",
		}, nil, 4, 1.5},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := system{t, t.TempDir()}
			s.write("proc/stat", fourIdle)
			for name, text := range c.before {
				s.write(name, text)
			}
			r := newProcessorWatch(s.root)
			r.mask = nil
			if c.mask != nil {
				r.mask = new(unix.CPUSet)
				for _, n := range c.mask {
					r.mask.Set(n)
				}
			}
			own := time.Duration(0)
			r.itself = func() time.Duration { return own }
			n, ok := r.usable()
			testkit.Check(t, ok && n == c.usable, "%v processors are usable, %v, want %v", n, ok, c.usable)
			now := time.Now()
			_, ok = r.spare(now)
			testkit.Check(t, !ok, "it tells of a time that nobody has seen")
			s.write("proc/stat", later)
			for name, text := range c.after {
				s.write(name, text)
			}
			own = c.own
			if n, ok := r.spare(now.Add(time.Second)); !ok || math.Abs(n-c.spare) > 1e-9 {
				t.Errorf("%v processors are unused, %v, want %v", n, ok, c.spare)
			}
			_, ok = r.spare(now.Add(time.Minute))
			testkit.Check(t, !ok, "it tells a mean over a minute")
		})
	}
}

// Where the system tells nothing, nothing is said; what it tells of this machine can be true.
func TestRoomIsKnown(t *testing.T) {
	s := system{t, t.TempDir()}
	for _, text := range []string{"", "cpu0 1 2\n", "cpu0 1 2 3 x 5\n", "intr 1\n"} {
		s.write("proc/stat", text)
		r := newProcessorWatch(s.root)
		r.mask = nil
		n, ok := r.usable()
		testkit.Check(t, !ok, "%q: %v processors", text, n)
		n, ok = r.spare(time.Now())
		testkit.Check(t, !ok, "%q: %v are unused", text, n)
	}
	r := newProcessorWatch("/")
	n, ok := r.usable()
	testkit.Check(t, ok && n > 0, "%v processors of this machine are usable, %v", n, ok)
}
