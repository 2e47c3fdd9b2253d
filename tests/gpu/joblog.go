// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
)

// message is one of a call's messages as job.py writes it: ["Send", peer, count].
type message struct {
	function string // "Send" or "Recv"
	peer     int
	count    uint64
}

func (m *message) UnmarshalJSON(text []byte) error {
	return json.Unmarshal(text, &[]any{&m.function, &m.peer, &m.count})
}

// call is something that a rank called, or a graph that it replayed. job.py says what the fields are.
// Times are ns of CLOCK_MONOTONIC_RAW.
type call struct {
	Comm     string
	Op       string
	Count    uint64
	Dtype    string
	Root     int // rank in the communicator, −1 for none
	Messages []message
	T0, T1   int64
	Done     int64 // everything of it had ended then; 0: not known
	EventNs  int64 `json:"event_ns"` // between CUDA events around it; 0: not measured
	Graph    *int  // captured into this graph, or a replay of it

	replay bool
}

// cost is what calls of one kind and size took.
type cost struct {
	Op      string
	Bytes   uint64
	Calls   int
	HostNs  []float64 `json:"host_ns"`
	GPUNs   []float64 `json:"gpu_ns"`
	Variant string    `json:"-"`
}

// jobLog is what one rank wrote.
type jobLog struct {
	Rank, Size             int
	Torch, NCCL, GPU, CUDA string
	comms                  []string // in the order in which they were made
	ranks                  map[string][]int
	calls                  []*call          // and replays, in order
	others                 map[string]int64 // by communicator: until then the framework made calls of its own
	phases                 map[string]int
	wrong                  []string
	costs                  []*cost
	profiled               int  // kernels of NCCL's that torch.profiler saw, −1: it was not used
	hanging                bool // it was about to wait for ever
	ended                  bool
}

// readJobLog reads a rank's log. A line that was cut off by the rank's death ends it.
func readJobLog(path string) (*jobLog, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	l := &jobLog{ranks: make(map[string][]int), others: make(map[string]int64), phases: make(map[string]int),
		profiled: -1}
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<22)
	for n := 1; sc.Scan(); n++ {
		if err := l.add(sc.Bytes()); err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", path, n, err)
		}
	}
	return l, sc.Err()
}

func (l *jobLog) add(line []byte) error {
	var head struct {
		F, Name, Comm, Text string
		Ranks               []int
		Until               int64
		Kernels             int
	}
	if err := json.Unmarshal(line, &head); err != nil {
		return err
	}
	switch head.F {
	case "start":
		return json.Unmarshal(line, l)
	case "comm":
		l.comms = append(l.comms, head.Name)
		l.ranks[head.Name] = head.Ranks
	case "call", "replay":
		c := &call{Root: -1, replay: head.F == "replay"}
		if err := json.Unmarshal(line, c); err != nil {
			return err
		}
		if l.ranks[c.Comm] == nil && !c.replay {
			return fmt.Errorf("communicator %q is not known", c.Comm)
		}
		l.calls = append(l.calls, c)
	case "others":
		l.others[head.Comm] = head.Until
	case "phase":
		l.phases[head.Name]++
	case "wrong":
		l.wrong = append(l.wrong, head.Text)
	case "profiler":
		l.profiled = head.Kernels
	case "cost":
		c := new(cost)
		l.costs = append(l.costs, c)
		return json.Unmarshal(line, c)
	case "hanging":
		l.hanging = true
	case "end":
		l.ended = true
	default:
		return fmt.Errorf("%q is no kind of line", head.F)
	}
	return nil
}

// expectation is an operation that the archive must show, and the call it comes from.
type expectation struct {
	function string
	count    uint64
	dtype    string
	root     int  // of collectives; the peer of messages
	optional bool // NCCL may have been asked for it or not
	call     *call
}

// is says whether the archive's operation is what was called.
func (e *expectation) is(o *operation) bool {
	return o.count == e.count && o.dtype == e.dtype && o.root == e.root
}

// key is what NCCL numbers operations by: the function, of messages with the peer.
func (e *expectation) key() string { return sequenceKey(e.function, e.root) }

func sequenceKey(function string, root int) string {
	if function == "Send" || function == "Recv" {
		return fmt.Sprintf("%s %d", function, root)
	}
	return function
}

// expected lists the operations of the rank on a communicator, in the order of its calls: those of captured calls
// come with each replay of their graph.
func (l *jobLog) expected(comm string) (all []expectation) {
	ranks := l.ranks[comm]
	me := indexOf(ranks, l.Rank)
	captured := make(map[int][]*call)
	for _, c := range l.calls {
		switch {
		case c.replay:
			for _, of := range captured[*c.Graph] {
				now := *of
				now.T0, now.T1, now.Done, now.EventNs, now.Graph = c.T0, c.T1, c.Done, 0, c.Graph
				all = append(all, operationsOf(&now, me, len(ranks))...)
			}
		case c.Comm != comm || c.T0 < l.others[comm]:
		case c.Graph != nil:
			captured[*c.Graph] = append(captured[*c.Graph], c)
		default:
			all = append(all, operationsOf(c, me, len(ranks))...)
		}
	}
	return all
}

func indexOf(ranks []int, rank int) int {
	for i, r := range ranks {
		if r == rank {
			return i
		}
	}
	return -1
}

// operationsOf gives what NCCL reports of a call on rank me of n. AlltoAll, Gather and Scatter are messages to it;
// those of a rank to itself the caller may replace by a copy.
func operationsOf(c *call, me, n int) (all []expectation) {
	add := func(function string, count uint64, peer int) {
		self := peer == me && c.Op != "Batch"
		all = append(all, expectation{function, count, c.Dtype, peer, self, c})
	}
	for peer := range n {
		send, recv := false, false
		switch c.Op {
		case "AlltoAll":
			send, recv = true, true
		case "Gather":
			send, recv = peer == c.Root, me == c.Root
		case "Scatter":
			send, recv = me == c.Root, peer == c.Root
		}
		if send {
			add("Send", c.Count, peer)
		}
		if recv {
			add("Recv", c.Count, peer)
		}
	}
	switch c.Op {
	case "AlltoAll", "Gather", "Scatter":
	case "Batch":
		for _, m := range c.Messages {
			add(m.function, m.count, m.peer)
		}
	default:
		all = append(all, expectation{c.Op, c.Count, c.Dtype, c.Root, false, c})
	}
	return all
}
