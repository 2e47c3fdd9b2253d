// SPDX-License-Identifier: Apache-2.0

// Package hidden is the table of what NCCL and RCCL carry out without telling a profiler plugin of it, by release and
// by settings of theirs. Doctor, run, unify, report and docs/hazards.md say what stands here.
package hidden

import (
	"slices"
	"strings"
)

// Place is a library, and what is known of where it runs.
type Place struct {
	Library string // "NCCL", "RCCL"; "": not known, which counts as NCCL
	// as ncclGetVersion gives it: 22907 is 2.29.7; 0: not known, nothing that came with a release is said
	Version int
	// NodeRanks are the numbers of ranks that communicators have on one node; none: not known.
	NodeRanks []int
	GPUs      []string // architectures of the GPUs, as "gfx942"; none: not known
	// Network tells that requests of network plugins are wanted, and that none have come so far.
	Network bool
	// Calls tells that calls of the application are wanted, and that none came with the operations that did.
	Calls bool
	// Graphs tells that operations were reported when CUDA graphs captured them only.
	Graphs bool
	// Getenv gives a variable of the job's environment, "" where it is not set or nothing is known of it.
	Getenv func(string) string
}

// Traffic is something that is not reported.
type Traffic struct {
	Key  string `json:"key"`            // its name in an archive's property
	What string `json:"what"`           // what is missing
	Why  string `json:"why"`            // where it comes from, and what is there instead
	Cure string `json:"cure,omitempty"` // what to do to see it; "" if nothing helps
	// Grave: what is missing belongs to every timeline, and this place makes it go. The rest is missing where it is
	// used.
	Grave bool `json:"grave"`
}

// String is what, why and the cure as one sentence.
func (t Traffic) String() string {
	s := t.What + ": " + t.Why
	if t.Cure != "" {
		s += " (" + t.Cure + ")"
	}
	return s
}

// row is a Traffic with where it occurs.
type row struct {
	Traffic
	library  string // "": both
	from     int    // release; 0: all
	variable string
	on       []string // values of variable with which it occurs, of an unknown release, too; nil: all but off
	off      []string
	nodes    int // ranks of a communicator on a node; 0: any
	gpus     []string
	network  bool // where Place.Network holds
	calls    bool // and where Place.Calls holds
	graphs   bool // and where Place.Graphs holds
}

var table = []row{
	{
		Traffic: Traffic{
			Key: "application-calls", What: "calls of the application", Grave: true,
			Why: "with NCCL_ENQUEUE_REARCH_ENABLE=1, NCCL does not report them; it reports operations, their GPU " +
				"times and transfers",
			Cure: "unset NCCL_ENQUEUE_REARCH_ENABLE",
		},
		library: "NCCL", from: 23100, variable: Rearch, on: []string{"1"}, calls: true,
	},
	{
		Traffic: Traffic{
			Key: "graph-replays", What: "replays of CUDA graphs inside a host", Grave: true,
			Why: "where it needs neither proxies nor GPU stamps, the library reports operations when a graph " +
				"captures them, but not when the graph runs",
			Cure: "ask for GPU times: NCCL_OTF2_EVENTS=gpu, with " + Unsafe + " and " + AllGatherV +
				"=0 in all processes",
		},
		graphs: true,
	},
	{
		Traffic: Traffic{
			Key: "dda", What: "AllReduce, AllGather, ReduceScatter and AlltoAll below about 64 MB", Grave: true,
			Why: "on nodes with 8 ranks on gfx942 or gfx950, RCCL can take its DDA path, which it does not report: " +
				"kernels without operations",
			Cure: "RCCL_DDA_ENABLE=0 turns that path off",
		},
		library: "RCCL", from: 23004, variable: "RCCL_DDA_ENABLE", off: []string{"0"}, nodes: 8,
		gpus: []string{"gfx942", "gfx950"},
	},
	{
		Traffic: Traffic{
			Key: "rccl-network-requests", What: "requests of the network plugin",
			Why:  "RCCL reports NetPlugin events only if it was built for that",
			Cure: "a library built with -DENABLE_NET_PROFILING=ON",
		},
		library: "RCCL", network: true,
	},
	{
		Traffic: Traffic{
			Key: "network-requests", What: "requests of the network plugin",
			Why:  "NCCL reports NetPlugin events only if it was built for that",
			Cure: "a library built with NET_PROFILER=1",
		},
		library: "NCCL", network: true,
	},
	{
		Traffic: Traffic{
			Key: "broadcast-times", What: "GPU times of Broadcast",
			Why:  "it takes the path of AllGatherV, of which only the call is reported, without kernel and transfers",
			Cure: "NCCL_ALLGATHERV_ENABLE=0 turns that path off",
		},
		library: "NCCL", from: 22900, variable: AllGatherV, off: []string{"0"},
	},
	{
		Traffic: Traffic{
			Key: "one-sided", What: "one-sided operations of the host",
			Why: "NCCL does not report ncclPutSignal, ncclSignal and ncclWaitSignal",
		},
		library: "NCCL", from: 22900,
	},
	{
		Traffic: Traffic{
			Key: "device-api", What: "communication that kernels start themselves",
			Why: "NCCL's device API, NVSHMEM and all-reduce kernels of frameworks communicate without a call of the " +
				"library",
			Cure: "on NVIDIA, NCCL_OTF2_CUPTI=on shows the kernels",
		},
	},
}

// Of tells what is not visible at a place: what is grave first.
func Of(p Place) (all []Traffic) {
	for i := range table {
		if r := &table[i]; r.at(&p) {
			all = append(all, r.Traffic)
		}
	}
	return all
}

// Keyed is the row of a key; of an unknown one, which a newer version wrote, nothing but the key is known.
func Keyed(key string) Traffic {
	for i := range table {
		if table[i].Key == key {
			return table[i].Traffic
		}
	}
	return Traffic{Key: key, What: key, Why: "not known to this version"}
}

func (r *row) at(p *Place) bool {
	library := p.Library
	if library == "" {
		library = "NCCL"
	}
	value := ""
	if p.Getenv != nil && r.variable != "" {
		value = p.Getenv(r.variable)
	}
	switch {
	case r.library != "" && r.library != library, r.network && !p.Network, r.graphs && !p.Graphs:
		return false
	case r.from > p.Version && (p.Version != 0 || r.on == nil):
		return false
	case r.on != nil && !slices.Contains(r.on, value) && !(r.calls && p.Calls), slices.Contains(r.off, value):
		return false
	case r.nodes != 0 && len(p.NodeRanks) > 0 && !slices.Contains(p.NodeRanks, r.nodes):
		return false
	}
	known := r.gpus == nil || len(p.GPUs) == 0
	return known || slices.ContainsFunc(p.GPUs, func(g string) bool { return slices.Contains(r.gpus, g) })
}

// Variables are the settings of the libraries that decide, which are noted with what a process records.
func Variables() (names []string) {
	for i := range table {
		if v := table[i].variable; v != "" && !slices.Contains(names, v) {
			names = append(names, v)
		}
	}
	return names
}

// Set is what settings alone make invisible, whatever release will be used: what `run` can say before a job.
func Set(getenv func(string) string) (all []Traffic) {
	for i := range table {
		if r := &table[i]; r.on != nil && slices.Contains(r.on, getenv(r.variable)) {
			all = append(all, r.Traffic)
		}
	}
	return all
}

// Used joins what is not visible where it is used, "" if there is nothing of the kind.
func Used(all []Traffic) string {
	var names []string
	for _, t := range all {
		if !t.Grave {
			names = append(names, t.What)
		}
	}
	return strings.Join(names, "; ")
}
