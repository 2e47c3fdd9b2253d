// SPDX-License-Identifier: Apache-2.0

// Package takeover defines with which state a collector continues that takes over from a dead one.
package takeover

// State is the state of a process, beside Process.Pending, with which a collector that takes over continues.
type State struct {
	Threads []int   `json:"threads,omitempty"` // tids of the rings' owners
	Groups  []Group `json:"groups,omitempty"`  // those of calls that are open
	Calls   []Call  `json:"calls,omitempty"`   // those whose operations were not seen
	Plans   []Plan  `json:"plans,omitempty"`   // plans in no file, of each communicator rank in order
}

// MarkSize is the number of bytes of an operation in Plan.
const MarkSize = 4

// Group is a group of calls, in the words of NCCL's GroupApi events.
type Group struct {
	Ring   int    `json:"ring"` // of the thread that makes it
	Handle uint64 `json:"handle,string"`
	Number int64  `json:"number"`
	Graph  bool   `json:"graph,omitempty"`
}

// Plan is a launch, or several that follow each other, with operations that are in no file, by the keys of
// Comm.Sequences: MarkSize bytes for each, of a hash of what all members have in common. They are lost if the collector
// dies; their ordinals are not.
type Plan struct {
	Comm  int               `json:"comm"` // index into Process.Comms
	Ops   map[string][]byte `json:"ops,omitempty"`
	Gone  map[string][]byte `json:"gone,omitempty"`  // lost before, with collectors that died
	Group int64             `json:"group,omitempty"` // the latest one of their calls

	// Of one that is being enqueued:
	Open     bool   `json:"open,omitempty"`
	Captured bool   `json:"captured,omitempty"` // into a graph: it does not run
	Handle   uint64 `json:"handle,omitempty,string"`
	Start    uint64 `json:"start,omitempty"`
	Copied   string `json:"copied,omitempty"` // the function, where copy engines carry it out
	Ring     int    `json:"ring,omitempty"`   // of the thread that makes such a call
}

// Call is a call of the application, in the words of NCCL's CollApi and P2pApi events.
type Call struct {
	Comm     int    `json:"comm"` // index into Process.Comms
	Handle   uint64 `json:"handle,string"`
	Parent   uint64 `json:"parent,string"`
	P2P      bool   `json:"p2p,omitempty"`
	Function string `json:"function"`
	Count    uint64 `json:"count"`
	Datatype string `json:"datatype"`
	Root     int32  `json:"root"`
	Stream   uint64 `json:"stream,string"`
	Tag      uint64 `json:"tag,string"`
	Start    uint64 `json:"start"`
	Stop     uint64 `json:"stop"`  // Start: it had not ended
	Group    int64  `json:"group"` // number of its group, in order of time; 0: it had none
	// Open is set if its group had not ended. Its region would have been written then, and is missing.
	Open bool `json:"open,omitempty"`
}
