// SPDX-License-Identifier: Apache-2.0

// Package hidden is the table of operations that NCCL and RCCL do not report to profiler plugins, by release and
// setting. The commands doctor, run, unify and report and docs/hazards.md use it.
package hidden

import (
	"cmp"
	"slices"
	"strings"
)

// Place is a library and the conditions under which it runs, as far as known.
type Place struct {
	Library string // "NCCL", "RCCL"; "": unknown, treated as NCCL
	// As ncclGetVersion returns it: 22907 is 2.29.7. 0: unknown; entries limited to releases do not apply.
	Version int
	// NodeRanks are the numbers of ranks of communicators on one node; empty: unknown.
	NodeRanks []int
	GPUs      []string // architectures of the GPUs, such as "gfx942"; empty: unknown
	// Network is set if network plugin events are enabled but none were received so far.
	Network bool
	// Calls is set if API calls are enabled but the operations came without them.
	Calls bool
	// Graphs is set if operations in CUDA graphs were reported only at capture.
	Graphs bool
	// Getenv returns a variable of the job's environment, "" if it is unset or unknown.
	Getenv func(string) string
}

// Traffic is a kind of operation that is not reported.
type Traffic struct {
	Key  string `json:"key"`            // name in the archive's property
	What string `json:"what"`           // what is missing
	Why  string `json:"why"`            // the cause, and what is recorded instead
	Cure string `json:"cure,omitempty"` // how to make it visible; "" if that is impossible
	// Grave marks losses that affect every timeline recorded at this place; others matter only where the feature is
	// used.
	Grave bool `json:"grave"`
}

// String returns what, why and cure as one sentence.
func (t Traffic) String() string {
	s := t.What + ": " + t.Why
	if t.Cure != "" {
		s += " (" + t.Cure + ")"
	}
	return s
}

// row is a Traffic with the conditions under which it occurs.
type row struct {
	Traffic
	library  string // "": both
	from     int    // release; 0: all
	variable string
	on       []string // values of variable with which it occurs, also for an unknown release; nil: all but off
	off      []string
	nodes    int // ranks of a communicator on a node; 0: any
	gpus     []string
	network  bool // requires Place.Network
	calls    bool // requires Place.Calls
	graphs   bool // requires Place.Graphs
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

// Of returns what is not reported at a place, grave losses first.
func Of(p Place) (all []Traffic) {
	for i := range table {
		if r := &table[i]; r.appliesTo(&p) {
			all = append(all, r.Traffic)
		}
	}
	return all
}

// Keyed returns the entry of a key; for a key of a newer version only the key is known.
func Keyed(key string) Traffic {
	for i := range table {
		if table[i].Key == key {
			return table[i].Traffic
		}
	}
	return Traffic{Key: key, What: key, Why: "not known to this version"}
}

func (r *row) appliesTo(p *Place) bool {
	library := cmp.Or(p.Library, "NCCL")
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

// Variables returns the deciding settings of the libraries; each process records their values.
func Variables() (names []string) {
	for i := range table {
		if v := table[i].variable; v != "" && !slices.Contains(names, v) {
			names = append(names, v)
		}
	}
	return names
}

// Settings returns the deciding settings of the libraries that an environment has.
func Settings(lookup func(name string) (value string, set bool)) map[string]string {
	settings := make(map[string]string)
	for _, name := range Variables() {
		if value, ok := lookup(name); ok {
			settings[name] = value
		}
	}
	return settings
}

// Set returns what settings alone hide, whatever the release, so that `run` can report it before a job.
func Set(getenv func(string) string) (all []Traffic) {
	for i := range table {
		if r := &table[i]; r.on != nil && slices.Contains(r.on, getenv(r.variable)) {
			all = append(all, r.Traffic)
		}
	}
	return all
}

// Used joins the losses that matter only where the feature is used; "" if there are none.
func Used(all []Traffic) string {
	var names []string
	for _, t := range all {
		if !t.Grave {
			names = append(names, t.What)
		}
	}
	return strings.Join(names, "; ")
}
