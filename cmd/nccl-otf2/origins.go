// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"

	"github.com/nccl-otf2/nccl-otf2/config"
	"github.com/nccl-otf2/nccl-otf2/internal/collector"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/provenance"
	"github.com/nccl-otf2/nccl-otf2/internal/hidden"
	"github.com/nccl-otf2/nccl-otf2/internal/replay"
)

// recordedEvents returns the environment variable that selects the events that a recording holds, where the user has
// selected none: the variable gives way to NCCL_OTF2_EVENTS and to the settings file.
func recordedEvents(rec *replay.Recording) []string {
	mask := uint32(0)
	for _, p := range rec.Processes {
		mask |= p.Mask()
	}
	if mask == 0 || os.Getenv(config.MaskVariable) != "" {
		return nil
	}
	return []string{fmt.Sprintf("%s=%d", config.MaskVariable, mask)}
}

// restoreOrigins replaces what the shards of a replay say of this machine by what the recording says of its own:
// hosts, processes, threads, GPUs and the library. It is for replays with recorded times, which are times of those
// hosts' clocks. It changes only shards of processes that were played just now and have all their data, and converts
// raw files first; what cannot be converted stays for unify, which says why.
func restoreOrigins(dir string, rec *replay.Recording, played *replay.Result) error {
	hold, err := experiment.Lock(dir)
	if err != nil {
		return err
	}
	defer hold.Release()
	collector.ConvertAll(hold)
	entries, err := experiment.List(dir)
	if err != nil {
		return err
	}
	r := restorer{rec, played, make(map[int]int)}
	for k := range played.Processes {
		r.processes[played.Processes[k].PID] = k
	}
	for _, e := range entries {
		p := e.Process
		if e.State != experiment.Done || p == nil || p.Clock.Source != jobs.HostClock ||
			p.BootID != experiment.BootID() || p.PIDStart == unknownStart {
			continue
		}
		k, ok := r.processes[p.PID]
		if !ok {
			continue
		}
		if err := r.restore(p, k); err != nil {
			return err
		}
		if err := experiment.Rewind(e.Path, p); err != nil {
			return err
		}
	}
	return nil
}

// unknownStart is the start time of recorded processes, which recordings lack. Shards with it are not restored again.
const unknownStart = 0

// restorer changes descriptions of shards.
type restorer struct {
	rec       *replay.Recording
	played    *replay.Result
	processes map[int]int // by the number of the process that played it
}

// restore makes a description that of process k of the recording.
func (r *restorer) restore(p *description.Process, k int) error {
	recorded := r.rec.Processes[k]
	origin, err := r.rec.Origin(recorded)
	if err != nil {
		return err
	}
	p.Host, p.BootID, p.PID, p.PIDStart, p.Executable = origin.Host, origin.BootID, recorded.PID, unknownStart, ""
	p.Library, p.LibraryVersion, p.LibraryPath = origin.Library.String(), origin.LibraryVersion, ""
	p.LibrarySettings, p.Architectures = hidden.Settings(func(name string) (string, bool) {
		value, set := r.rec.Run.Env[name]
		return value, set
	}), nil
	p.Launcher = provenance.Launcher{Name: "recording", Rank: k, Size: len(r.rec.Processes)}
	p.Costs, p.Waited = nil, 0 // those of this machine
	for i := range p.Foreign {
		if of, ok := r.processes[p.Foreign[i].PID]; ok {
			p.Foreign[i].PID = r.rec.Processes[of].PID
		}
	}
	r.restoreThreads(p.Locations, k)
	r.restoreGPUs(p, recorded)
	return nil
}

// restoreThreads gives locations the numbers that the threads had. A number that the system gave to several threads
// one after the other is that of the first.
func (r *restorer) restoreThreads(locations []description.Location, k int) {
	tids := make(map[int]int)
	if report := r.played.Processes[k].Report; report != nil {
		for i, tid := range report.TIDs {
			if _, known := tids[tid]; !known {
				tids[tid] = r.rec.Processes[k].Threads[i].TID
			}
		}
	}
	for i := range locations {
		l := &locations[i]
		l.TID = tids[l.TID]
		if l.Last != nil {
			l.Last.TID = tids[l.Last.TID]
		}
	}
}

// restoreGPUs gives the GPUs of a process what the recording says of them. Communicators are in the order of their
// init in both.
func (r *restorer) restoreGPUs(p *description.Process, recorded *replay.Process) {
	for i := range p.GPUs {
		p.GPUs[i] = description.GPU{Device: -1}
	}
	for i, x := range recorded.Contexts {
		if i >= len(p.Comms) || p.Comms[i].GPU >= len(p.GPUs) {
			break
		}
		if device, known := r.rec.DeviceOf(recorded, x); known {
			p.GPUs[p.Comms[i].GPU] = description.GPU{Device: device, UUID: x.UUID, PCI: x.PCI}
		}
	}
}
