// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobfolder"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs/progress"
	"github.com/nccl-otf2/nccl-otf2/internal/export"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// hostClock relates a host's real-time clock to an archive's times.
type hostClock struct{ shift, middle int64 }

// parseWith parses the values of --with: traces of other tools as FILE@HOST, or FILE if the job ran on one host.
func parseWith(a *otf2.Archive, texts []string) (all []export.OtherTrace, err error) {
	hosts, err := hostClocks(a)
	if err != nil {
		return nil, err
	}
	names := slices.Sorted(maps.Keys(hosts))
	for _, text := range texts {
		b := export.OtherTrace{Path: text}
		if file, host, found := cutLast(text, "@"); found {
			b.Path, b.Host = file, host
		} else if len(names) == 1 {
			b.Host = names[0]
		}
		clock, known := hosts[b.Host]
		if !known {
			return nil, usagef("--with %s: say on which host it was recorded, as FILE@HOST: %s", text,
				strings.Join(names, ", "))
		}
		b.Shift, b.Middle = clock.shift, clock.middle
		all = append(all, b)
	}
	return all, nil
}

// cutLast is strings.Cut at the last separator.
func cutLast(text, separator string) (before, after string, found bool) {
	if at := strings.LastIndex(text, separator); at >= 0 {
		return text[:at], text[at+len(separator):], true
	}
	return text, "", false
}

// hostClocks returns the clocks of the archive's hosts, as recorded in its shards.
func hostClocks(a *otf2.Archive) (map[string]hostClock, error) {
	dir := filepath.Dir(a.Path())
	if jobfolder.IsOne(dir) { // one of several jobs in a directory
		if names, err := experiment.Names(dir); err != nil || len(names) == 0 {
			dir = filepath.Dir(dir)
		}
	}
	list, _, err := progress.List(dir)
	if err != nil {
		return nil, fmt.Errorf(
			"--with needs what the job's processes wrote, beside the archive: there it stands what their hosts' "+
				"clocks showed: %w", err)
	}
	rows := processRows(a)
	hosts := make(map[string]hostClock)
	for _, j := range list {
		for _, comm := range j.Communicators {
			for _, rank := range comm.Ranks {
				if rank == nil || len(rank.Parts) == 0 {
					continue
				}
				row, there := rows[rank.Process.Name]
				if clock, ok := relateClock(a, row, rank.Parts[0].Shard); ok && there {
					hosts[rank.Process.Host] = cmp.Or(hosts[rank.Process.Host], clock)
				}
			}
		}
	}
	if len(hosts) == 0 {
		return nil, fmt.Errorf(
			"--with: no process in %s read its host's real-time clock while the archive's events were recorded",
			relativePath(dir))
	}
	return hosts, nil
}

// processRows maps the name of each process to one of its locations.
func processRows(a *otf2.Archive) map[string]otf2.LocationRef {
	rows := make(map[string]otf2.LocationRef)
	for _, l := range a.Defs.Locations {
		if g := a.Defs.LocationGroup(l.Group); g != nil {
			rows[a.Defs.String(g.Name)] = l.Self
		}
	}
	return rows
}

// relateClock relates the real-time clock of a process's host to the archive's times, by the clock reading that is
// closest to the middle of the archive; false if there is no reading in it, because the process belongs to another job.
func relateClock(a *otf2.Archive, row otf2.LocationRef, p *description.Process) (hostClock, bool) {
	c, of := &p.Clock, a.Defs.Clock
	_, corrections, err := a.LocalDefs(row)
	if err != nil || c.AnchorReal == 0 || c.AnchorRaw == 0 {
		return hostClock{}, false
	}
	closest, clock := of.Length/2+1, hostClock{}
	for i := range c.Tuples {
		t := &c.Tuples[i]
		common := otf2.Corrected(corrections, c.AnchorReal+t.Raw-c.AnchorRaw)
		off := max(common, of.Offset+of.Length/2) - min(common, of.Offset+of.Length/2)
		if t.Real != 0 && off < closest {
			closest, clock = off, hostClock{int64(common + of.Realtime - of.Offset - t.Real), int64(t.Real)}
		}
	}
	return clock, clock != hostClock{}
}
