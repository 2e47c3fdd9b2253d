// SPDX-License-Identifier: Apache-2.0

// Package fakegpu says what the fake CUPTI of tests/fakecupti runs beside the calls of a recording, and reads what it
// ran.
package fakegpu

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/replay/descriptor"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// Kernel is a kernel that the GPU ran, as the fake CUPTI of tests/fakecupti knows it: what really happened, whatever
// reached the plugin. Times are ns on CUPTI's clock. See tests/fakecupti/truth.c.
type Kernel struct {
	Correlation uint32             `json:"correlation"` // of the call that launched it; one for all kernels of a graph launch
	External    descriptor.Pointer `json:"external"`    // external id (CUSTOM2) of the launching thread at the launch, 0: none
	Captured    descriptor.Pointer `json:"captured"`    // of a graph's kernel: that when its node was captured
	// Event is the KernelLaunch that it belongs to, also if it came with a graph: Event.Index; 0: none of NCCL's, or
	// one that NCCL reports no launch of. Handle is what the plugin gave for that event.
	Event  int                `json:"event"`
	Handle descriptor.Pointer `json:"handle"`
	Thread int                `json:"thread"`
	Device int                `json:"device"`
	Stream uint32             `json:"stream"`
	Name   string             `json:"name"`
	Start  uint64             `json:"start"`
	End    uint64             `json:"end"`
	Graph  uint32             `json:"graph"` // id of the executable graph, 0: launched by itself
	Node   uint64             `json:"node"`
	Source uint64             `json:"source"` // the node that Node was made from
	// Fate is "delivered", "zeroed" (delivered without times), "dropped" (and counted by CUPTI), "hidden" (behind what
	// cannot be read in a buffer), "pending" (never given back) or "off" (not asked for).
	Fate string `json:"fate"`
}

// Truth is what the fake CUPTI of one process did.
type Truth struct {
	Kernels     []Kernel          `json:"-"`         // in order of launch
	Memory      []Memory          `json:"-"`         // in the order in which it was reported
	Delivered   map[uint32]uint64 `json:"delivered"` // records that the plugin could read, by activity kind
	Dropped     uint64            `json:"dropped"`   // records that CUPTI dropped
	Unreadable  uint64            `json:"unreadable"`
	Buffers     uint64            `json:"buffers"`
	Outstanding uint64            `json:"outstanding"` // buffers that were never given back
}

// Ran reads what the fake CUPTI of a process wrote; nil if it wrote nothing, as where the process was killed.
func Ran(t testing.TB, p *replay.ProcessResult) *Truth {
	t.Helper()
	truth := new(Truth)
	for line := range bytes.Lines(p.GPU) {
		var err error
		switch {
		case bytes.HasPrefix(line, []byte(`{"delivered"`)):
			if err = json.Unmarshal(line, truth); err == nil {
				return truth
			}
		case bytes.HasPrefix(line, []byte(`{"memory"`)):
			truth.Memory = append(truth.Memory, Memory{})
			err = json.Unmarshal(line, &truth.Memory[len(truth.Memory)-1])
		default:
			truth.Kernels = append(truth.Kernels, Kernel{})
			err = json.Unmarshal(line, &truth.Kernels[len(truth.Kernels)-1])
		}
		testkit.Require(t, err == nil, "process %d: what CUPTI ran: %v", p.Rank, err)
	}
	testkit.Require(t, p.GPU == nil, "process %d: what CUPTI ran is cut off", p.Rank)
	return nil
}

// A plan is one kernel that a communicator rank launched: from the Group event of its plan and the reference of what
// the GPU ran.
type plan struct {
	group, launch *replay.Event // launch: the KernelLaunch; of a replayed graph, that of the capture
	channels      map[int]int   // work items by channel
	funcs         map[string]bool
	name          string
	start, end    uint64 // recorded time, 0: unknown
}

// Callback ids of CUPTI: what launches kernels and graphs.
const (
	driverDomain, runtimeDomain   = 1, 2
	cuLaunchKernel                = 307
	cuLaunchKernelEx              = 652
	cudaLaunchKernel              = 211
	cuGraphLaunch                 = 514
	cudaGraphLaunch               = 311
	firstStream, applicationQueue = 13, 7
)

// Program makes what the host plays on the fake GPU beside the calls of a process: one line each, in order of the
// call of the program after which it is to be done, by the thread that makes that call.
//
//	CALL launch DOMAIN CBID EVENT DEVICE STREAM START END NAME
//	CALL begin                       capture what this thread launches
//	CALL end                         … until here; graphs count from 0
//	CALL graph DOMAIN CBID GRAPH N { START END }…
//	CALL memory OPERATION KIND ADDRESS BYTES TIME
//
// EVENT is the KernelLaunch, 0 if it belongs to none; times are recorded ones, ns.
func Program(rec *replay.Recording, process int) ([]byte, error) {
	p := rec.Processes[process]
	k := &kernels{rec: rec, p: p, streams: map[descriptor.Pointer]int{}, roots: p.GroupRoots(),
		planOf: map[*replay.Event]*plan{}}
	for _, x := range p.Contexts {
		if err := k.context(x); err != nil {
			return nil, fmt.Errorf("recording %s: process %d: %w", rec.Name, process, err)
		}
	}
	k.unannounced()
	k.application()
	k.memory(process)
	slices.SortStableFunc(k.actions, func(a, b action) int {
		return cmp.Or(cmp.Compare(a.call, b.call), cmp.Compare(a.order, b.order))
	})
	var out bytes.Buffer
	for _, a := range k.actions {
		fmt.Fprintf(&out, "%d %s\n", a.call, a.text)
	}
	return out.Bytes(), nil
}

type action struct {
	call  int
	order uint64 // among those of one call
	text  string
}

type kernels struct {
	rec     *replay.Recording
	p       *replay.Process
	streams map[descriptor.Pointer]int
	roots   map[*replay.Event]*replay.Event
	actions []action
	used    map[*replay.Kernel]bool
	graphs  int
	planOf  map[*replay.Event]*plan // by Group
	capture [][2]uint64             // times between which launches are captured
}

func (k *kernels) add(call int, order uint64, format string, args ...any) {
	k.actions = append(k.actions, action{call, order, fmt.Sprintf(format, args...)})
}

// stream is CUPTI's id for a stream.
func (k *kernels) stream(s descriptor.Pointer) int {
	id, ok := k.streams[s]
	if !ok {
		id = firstStream + len(k.streams)
		k.streams[s] = id
	}
	return id
}

// mangled is the name that CUPTI gives for an NCCL kernel.
func mangled(function string) string {
	name := "ncclDevKernel_" + function
	return fmt.Sprintf("_Z%d%s24ncclDevKernelArgsStorageILm4096EE", len(name), name)
}

// context adds the kernels of one communicator rank.
func (k *kernels) context(x *replay.Context) error {
	plans, err := k.plans(x)
	if err != nil {
		return err
	}
	if err := k.times(x, plans); err != nil {
		return err
	}
	for _, pl := range plans {
		k.planOf[pl.group] = pl
	}
	var replayed []*plan
	for _, pl := range plans {
		if captured(pl.launch) {
			replayed = append(replayed, pl)
			continue
		}
		k.launch(x, pl)
	}
	return k.replays(x, replayed)
}

// captured tells a launch that made a node of a graph.
func captured(launch *replay.Event) bool {
	root := launch.Root()
	return root != nil && bool(root.Descr.(*descriptor.GroupApi).GraphCaptured)
}

func (k *kernels) launch(x *replay.Context, pl *plan) {
	k.add(pl.launch.Start.Index, 1, "launch %d %d %d %d %d %d %d %s", driverDomain, cuLaunchKernelEx, pl.launch.Index,
		k.rec.Device(k.p, x), k.stream(pl.launch.Descr.(*descriptor.KernelLaunch).Stream), pl.start, pl.end, pl.name)
}

// plans are the kernels of a communicator rank in their order, with the launch of each. Both come in one order, by
// the call that they belong to; those of a captured call come again at each replay.
func (k *kernels) plans(x *replay.Context) ([]*plan, error) {
	launches := map[*replay.Event][]*replay.Event{} // by GroupApi
	var plans []*plan
	of := map[*replay.Event]*plan{}
	for _, e := range k.p.Events {
		if e.Context != x {
			continue
		}
		switch e.Type {
		case descriptor.TypeKernelLaunch:
			launches[e.Root()] = append(launches[e.Root()], e)
		case descriptor.TypeGroup:
			pl := &plan{group: e, channels: map[int]int{}, funcs: map[string]bool{}}
			plans = append(plans, pl)
			of[e] = pl
		case descriptor.TypeColl:
			if pl := of[e.Group]; pl != nil {
				pl.funcs[e.Descr.(*descriptor.Coll).Func] = true
			}
		case descriptor.TypeP2p:
			if pl := of[e.Group]; pl != nil {
				pl.funcs["SendRecv"] = true
			}
		case descriptor.TypeKernelCh:
			if e.Parent == nil || of[e.Parent.Group] == nil {
				continue
			}
			pl := of[e.Parent.Group]
			n := 0
			if e.Parent.Type == descriptor.TypeColl {
				n = 1 // a send and a receive share one
			}
			pl.channels[e.Descr.(*descriptor.KernelCh).ChannelID] += n
		}
	}
	turn := map[*replay.Event]int{}
	for _, pl := range plans {
		root := k.roots[pl.group]
		if root == nil || len(launches[root]) == 0 {
			return nil, fmt.Errorf("a plan (event %d) has no KernelLaunch", pl.group.Index)
		}
		pl.launch = launches[root][turn[root]%len(launches[root])]
		turn[root]++
	}
	return plans, nil
}

// times finds when the kernels ran. The reference has a line for each channel and batch, and a channel's kernels are in
// the order of the plans. NCCL's stamps are no guide where its counters have parted, but where the reference cannot
// tell two communicators apart they are all there is.
func (k *kernels) times(x *replay.Context, plans []*plan) error {
	if k.used == nil {
		k.used = map[*replay.Kernel]bool{}
	}
	byChannel := map[int][]*replay.Kernel{}
	known := map[string]bool{}
	for _, pl := range plans {
		for f := range pl.funcs {
			known[f] = true
		}
	}
	alone := true
	for _, other := range k.p.Contexts {
		alone = alone && (other == x || other.Rank != x.Rank || other.NRanks != x.NRanks)
	}
	for i := range k.p.Kernels {
		line := &k.p.Kernels[i]
		if line.CommRank != x.Rank || line.NRanks != x.NRanks || !known[function(line)] || !alone &&
			!k.stamped(x, line) {
			continue
		}
		byChannel[line.Channel] = append(byChannel[line.Channel], line)
	}
	for channel, lines := range byChannel {
		slices.SortStableFunc(lines, func(a, b *replay.Kernel) int { return cmp.Compare(a.T0, b.T0) })
		for _, pl := range plans {
			works, ok := pl.channels[channel]
			if !ok {
				continue
			}
			for first := true; first || works > 0; first = false {
				if len(lines) == 0 || !pl.funcs[function(lines[0])] {
					return fmt.Errorf("channel %d of rank %d: no kernel for the plan of event %d", channel, x.Rank,
						pl.group.Index)
				}
				pl.ran(lines[0])
				k.used[lines[0]] = true
				works -= lines[0].Works
				lines = lines[1:]
			}
		}
		if len(lines) > 0 {
			return fmt.Errorf("channel %d of rank %d: %d kernels more than plans", channel, x.Rank, len(lines))
		}
	}
	for _, pl := range plans {
		if pl.start == 0 {
			return fmt.Errorf("no kernel for the plan of event %d", pl.group.Index)
		}
		if pl.start < pl.launch.Start.T {
			return fmt.Errorf("the kernel for the plan of event %d ran before its launch", pl.group.Index)
		}
	}
	return nil
}

func function(line *replay.Kernel) string {
	name, _, _ := strings.Cut(line.Func, "_")
	return name
}

func (pl *plan) ran(line *replay.Kernel) {
	if pl.start == 0 || line.T0 < pl.start {
		pl.start = line.T0
		pl.name = mangled(line.Func)
	}
	pl.end = max(pl.end, line.T1)
}

// stamped reports whether NCCL reported the stamps of a batch for an operation of a communicator rank.
func (k *kernels) stamped(x *replay.Context, line *replay.Kernel) bool {
	for _, e := range k.p.Events {
		if e.Type != descriptor.TypeKernelCh || e.Context != x {
			continue
		}
		ch := e.Descr.(*descriptor.KernelCh)
		for _, stamps := range line.PTimers {
			if stamps != nil && ch.ChannelID == line.Channel && ch.PTimer == stamps[0] {
				return true
			}
		}
	}
	return false
}

// replays adds the captured launches of a communicator rank, and the launches of the graphs that they are in: launches
// that were captured before anything was replayed again are one graph.
func (k *kernels) replays(x *replay.Context, replayed []*plan) error {
	var graph []*replay.Event // launches
	for _, launch := range capturedLaunches(replayed) {
		if len(graph) > 0 && replayedBetween(replayed, graph[0].Start.T, launch.Start.T) {
			if err := k.graph(x, graph, replayed); err != nil {
				return err
			}
			graph = nil
		}
		graph = append(graph, launch)
	}
	if len(graph) == 0 {
		return nil
	}
	return k.graph(x, graph, replayed)
}

// capturedLaunches are the launches of plans, each once, in the order in which they were made.
func capturedLaunches(replayed []*plan) (launches []*replay.Event) {
	seen := map[*replay.Event]bool{}
	for _, pl := range replayed {
		if !seen[pl.launch] {
			seen[pl.launch] = true
			launches = append(launches, pl.launch)
		}
	}
	slices.SortFunc(launches, func(a, b *replay.Event) int { return cmp.Compare(a.Index, b.Index) })
	return launches
}

// replayedBetween reports whether a plan began after one time and before the other.
func replayedBetween(replayed []*plan, after, before uint64) bool {
	return slices.ContainsFunc(replayed, func(pl *plan) bool {
		return pl.group.Start.T > after && pl.group.Start.T < before
	})
}

// graph adds the capture of a graph's launches, and each time that it was launched.
func (k *kernels) graph(x *replay.Context, graph []*replay.Event, replayed []*plan) error {
	number := k.graphs
	k.graphs++
	k.add(graph[0].Start.Index, 0, "begin")
	for _, launch := range graph {
		var name string
		for _, pl := range replayed {
			if pl.launch == launch {
				name = pl.name
			}
		}
		k.launch(x, &plan{launch: launch, name: name})
	}
	last := graph[len(graph)-1]
	if last.Stop == nil {
		return fmt.Errorf("the capture of event %d has no end", last.Index)
	}
	k.add(last.Stop.Index, 0, "end")
	k.capture = append(k.capture, [2]uint64{graph[0].Start.T, last.Stop.T})
	for i := range replayed {
		if replayed[i].launch != graph[0] {
			continue
		}
		if i+len(graph) > len(replayed) {
			return fmt.Errorf("the last replay of a graph (event %d) is not whole", replayed[i].group.Index)
		}
		begin, text, err := replayOf(graph, replayed[i:])
		if err != nil {
			return err
		}
		domain, cbid := driverDomain, cuGraphLaunch
		if i%2 == 1 {
			domain, cbid = runtimeDomain, cudaGraphLaunch
		}
		k.add(k.callBefore(last.Stop.Thread, begin, last.Stop), begin, "graph %d %d %d %d%s", domain, cbid, number,
			len(graph), text)
	}
	return nil
}

// replayOf gives the begin of a replay of a graph, and when its kernels ran, as text. Its plans stand first.
func replayOf(graph []*replay.Event, plans []*plan) (begin uint64, text string, err error) {
	begin = math.MaxUint64
	for n, launch := range graph {
		pl := plans[n]
		if pl.launch != launch {
			return 0, "", fmt.Errorf("a replay of a graph (event %d) is out of order", pl.group.Index)
		}
		begin = min(begin, pl.start, pl.group.Start.T)
		text += fmt.Sprintf(" %d %d", pl.start, pl.end)
	}
	return begin, text, nil
}

// callBefore is the last call of a thread up to a time, not before `least`, after which no launch of NCCL's is open.
func (k *kernels) callBefore(t *replay.Thread, time uint64, least *replay.Call) int {
	at := least.Index
	for _, c := range t.Calls {
		if c.T > time {
			break
		}
		open := c.Kind == replay.CallStart && c.Event != nil && c.Event.Type == descriptor.TypeKernelLaunch
		if c.Index > at && !open {
			at = c.Index
		}
	}
	return at
}

// unannounced adds the kernels that NCCL launched without saying so, such as those of ncclBroadcast from 2.29 on.
func (k *kernels) unannounced() {
	for i := range k.p.Kernels {
		line := &k.p.Kernels[i]
		if k.used[line] {
			continue
		}
		for _, x := range k.p.Contexts {
			if x.Rank == line.CommRank && x.NRanks == line.NRanks {
				k.add(k.callBefore(x.Init.Thread, line.T0, x.Init), line.T0, "launch %d %d 0 %d %d %d %d %s",
					driverDomain,
					cuLaunchKernelEx, line.Dev, firstStream, line.T0, line.T1, mangled(line.Func))
				break
			}
		}
	}
}

// application adds kernels of the application's own: behind each launch, on a stream that NCCL has nothing to do with.
func (k *kernels) application() {
	domain, cbid := driverDomain, cuLaunchKernel
	for _, e := range k.p.Events {
		if e.Type != descriptor.TypeKernelLaunch || e.Stop == nil || k.inCapture(e.Stop.T) {
			continue
		}
		k.add(e.Stop.Index, 0, "launch %d %d 0 %d %d %d %d _Z9vectorAddPKfS0_Pfi", domain, cbid,
			k.rec.Device(k.p, e.Context),
			applicationQueue, e.Stop.T+5000, e.Stop.T+15000)
		if domain == driverDomain {
			domain, cbid = runtimeDomain, cudaLaunchKernel
		} else {
			domain, cbid = driverDomain, cuLaunchKernel
		}
	}
}

func (k *kernels) inCapture(t uint64) bool {
	for _, c := range k.capture {
		if c[0] <= t && t <= c[1] {
			return true
		}
	}
	return false
}
