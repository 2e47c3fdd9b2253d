// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/internal/hidden"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// describeHidden adds the property that lists the traffic which the processes' libraries do not report.
func (r *roster) describeHidden(ps *properties) {
	var keys []string
	for _, t := range r.hidden() {
		keys = append(keys, t.Key)
	}
	if len(keys) > 0 {
		ps.add(property.Hidden, strings.Join(keys, ", "))
	}
}

// hidden returns the kinds of traffic that the libraries of the processes do not report, grave ones first.
func (r *roster) hidden() []hidden.Traffic {
	requests := false
	for _, p := range r.ordered() {
		requests = requests || p.Shard.Counts.Starts[shm.EventNetPlugin.String()] > 0
	}
	var grave, others []hidden.Traffic
	for _, p := range r.ordered() {
		if p.Shard.Import != nil {
			continue
		}
		for _, t := range hidden.Of(placeOf(p.Shard, requests)) {
			list := &others
			if t.Grave {
				list = &grave
			}
			if !slices.Contains(*list, t) {
				*list = append(*list, t)
			}
		}
	}
	return append(grave, others...)
}

// placeOf returns the facts about a process from which package hidden concludes what its library does not report.
// requests: at least one process has recorded requests of a network plugin.
func placeOf(p *description.Process, requests bool) hidden.Place {
	place := hidden.Place{
		Library: p.Library, Version: p.LibraryVersion, GPUs: p.Architectures,
		Network: !requests && p.Masks.Record&(1<<shm.EventNetPlugin) != 0,
		Calls:   callsUnseen(p),
		Graphs:  p.Counts.Oddities[regions.OddityCaptureOnly] > 0,
		Getenv:  func(name string) string { return p.LibrarySettings[name] },
	}
	for _, c := range p.Comms {
		if c.NNodes > 0 {
			place.NodeRanks = append(place.NodeRanks, (c.NRanks+c.NNodes-1)/c.NNodes)
		}
	}
	return place
}

// callsUnseen reports whether a process recorded collectives but no API calls, although its profiler API has them and
// they were to be recorded.
func callsUnseen(p *description.Process) bool {
	n := p.Counts.Starts
	return p.APIVersion > 4 && p.Masks.Record&(1<<shm.EventCollApi) != 0 && n[shm.EventColl.String()] > 0 &&
		n[shm.EventCollApi.String()]+n[shm.EventGroupApi.String()] == 0
}
