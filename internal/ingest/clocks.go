// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

	"github.com/nccl-otf2/nccl-otf2/internal/units"
)

// processKey is a process of the minimal profiler: one file may hold several.
type processKey struct {
	path string
	pid  int64
}

// clocks gives each process its clock: which processes share one, and what its time 0 is. The minimal profiler writes
// CLOCK_MONOTONIC, which the processes of a host share, but no host names.
type clocks struct{ by map[processKey]hostClock }

type hostClock struct {
	host string
	base int64 // time 0 in ns since 1970, as far as known
}

func (c *clocks) hostClockOf(k processKey) hostClock {
	if h, ok := c.by[k]; ok {
		return h
	}
	return hostClock{host: units.UnknownHost}
}

// initSlack is how far apart the ranks of a communicator may create it, on one clock.
const initSlack = 30_000_000_000

// initRecord is a communicator rank's ProfilerInit.
type initRecord struct {
	process processKey
	comm    uint64
	time    int64
}

// nameTime matches the time (s since 1970) in the name of a file without a job's id.
var nameTime = regexp.MustCompile(`^trace_(1[0-9]{9})(\.[0-9]+)?_`)

// findClocks reads the lifecycle records alone. Processes whose ranks created a communicator at about the same time
// share a clock. Each other process gets a clock of its own, shifted so that these times agree.
func (im *importer) findClocks(paths []string) (*clocks, error) {
	var inits []initRecord
	var processes []processKey
	seen := make(map[processKey]bool)
	begin := int64(math.MaxInt64)
	for _, path := range paths {
		if m := nameTime.FindStringSubmatch(filepath.Base(path)); m != nil {
			s, _ := strconv.ParseInt(m[1], 10, 64)
			begin = min(begin, s*1_000_000_000)
		}
		err := eachLine(path, func(_ int, text []byte, _ bool) error {
			if !bytes.Contains(text, []byte(lifecycle)) {
				return nil
			}
			var l line
			if json.Unmarshal(text, &l) != nil || l.Func != "ProfilerInit" || l.Start == nil || !l.Start.Time.known ||
				l.CommID == nil || l.Details != nil && l.Details.Host != "" {
				return nil
			}
			id, err := strconv.ParseUint(string(*l.CommID), 10, 64)
			if err != nil {
				return nil
			}
			k := processKey{path, pidOf(&l)}
			if !seen[k] {
				seen[k] = true
				processes = append(processes, k)
			}
			inits = append(inits, initRecord{k, id, l.Start.Time.ns})
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return im.arrangeClocks(processes, inits, begin), nil
}

// arrangeClocks groups processes by clock and shifts the clocks.
func (im *importer) arrangeClocks(processes []processKey, inits []initRecord, begin int64) *clocks {
	out := &clocks{by: make(map[processKey]hostClock)}
	if len(processes) == 0 {
		return out
	}
	byComm := make(map[uint64][]initRecord)
	for _, r := range inits {
		byComm[r.comm] = append(byComm[r.comm], r)
	}
	group := im.sharedClocks(processes, byComm)
	shift := shifts(group[processes[0]], group, byComm)
	first := int64(math.MaxInt64)
	for _, r := range inits {
		first = min(first, r.time+shift[group[r.process]])
	}
	base := int64(0)
	if begin != math.MaxInt64 && first != math.MaxInt64 {
		base = begin - first
	}
	names := make(map[int]string)
	for _, k := range processes {
		g := group[k]
		if names[g] == "" {
			names[g] = units.UnknownHost
			if len(names) > 1 {
				names[g] = fmt.Sprintf("%s %d", units.UnknownHost, len(names))
			}
		}
		out.by[k] = hostClock{names[g], base + shift[g]}
	}
	if len(names) > 1 {
		im.problem(
			"the input does not name hosts; its processes have %d different clocks, which were brought together by "+
				"when communicators were made", len(names))
	}
	return out
}

// sharedClocks numbers the clocks of processes: those that created a communicator at about the same time share one.
func (im *importer) sharedClocks(processes []processKey, byComm map[uint64][]initRecord) map[processKey]int {
	group := make(map[processKey]int)
	for i, k := range processes {
		group[k] = i
	}
	near := func(a, b initRecord) bool {
		d := a.time - b.time
		return d < initSlack && d > -initSlack && !im.opts.SeparateClocks && a.process.pid != b.process.pid
	}
	for _, id := range slices.Sorted(maps.Keys(byComm)) {
		all := byComm[id]
		for i := 1; i < len(all); i++ {
			b := all[i]
			at := max(slices.IndexFunc(all[:i], func(other initRecord) bool { return near(other, b) }), 0)
			if a, from := all[at], group[b.process]; near(a, b) && group[a.process] != from {
				for k, g := range group {
					if g == from {
						group[k] = group[a.process]
					}
				}
			}
		}
	}
	return group
}

// shifts returns by how many ns each clock must move to agree with the first one; clocks are linked by the
// communicators that they have in common.
func shifts(first int, group map[processKey]int, byComm map[uint64][]initRecord) map[int]int64 {
	shift := map[int]int64{first: 0}
	ids := slices.Sorted(maps.Keys(byComm))
	for changed := true; changed; {
		changed = false
		for _, id := range ids {
			for _, a := range byComm[id] {
				sa, ok := shift[group[a.process]]
				if !ok {
					continue
				}
				for _, b := range byComm[id] {
					if _, known := shift[group[b.process]]; !known {
						shift[group[b.process]] = sa + a.time - b.time
						changed = true
					}
				}
			}
		}
	}
	return shift
}
