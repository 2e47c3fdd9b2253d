// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
	"github.com/nccl-otf2/nccl-otf2/regions/cuda"
)

// Databases of rocprofv3 (rocpd, schema 3: rocpd_tables.sql in rocprofiler-sdk), one for each process, or merged. Names
// of tables end in the id of their database, within which ids in rows are unique. Times are ns since the host
// booted. The event of a kernel has the stack_id of the call that launched it.
var rocpdTables = []wantedTable{
	{Name: "rocpd_string_", Prefix: true, Columns: []string{"id", "string"}},
	{Name: "rocpd_info_node_", Prefix: true, Columns: []string{"id", "hostname"}},
	{Name: "rocpd_info_process_", Prefix: true, Columns: []string{"id", "nid", "pid"}},
	{Name: "rocpd_info_agent_", Prefix: true, Columns: []string{"id", "type_index"}},
	{Name: "rocpd_info_kernel_symbol_", Prefix: true, Columns: []string{"id", "kernel_name", "display_name"}},
	{Name: "rocpd_kernel_dispatch_", Prefix: true, Columns: []string{"start", "end", "pid", "agent_id", "kernel_id",
		"stream_id", "event_id"}},
	{Name: "rocpd_region_", Prefix: true, Columns: []string{"start", "end", "pid", "tid", "name_id", "event_id"}},
	{Name: "rocpd_event_", Prefix: true, Columns: []string{"id", "stack_id"}},
	{Name: "rocpd_arg_", Prefix: true, Columns: []string{"event_id", "name", "value"}},
}

// Places in rocpdTables.
const (
	rocpdStrings = iota
	rocpdNodes
	rocpdProcesses
	rocpdAgents
	rocpdSymbols
	rocpdKernels
	rocpdRegions
	rocpdEvents
	rocpdArguments
)

var rocpdLacks = append([]string{"date and time of day"}, torchLacks...)

var rocpdAdvice = uselessAdvice{
	kernels: "has no kernels of RCCL: record with `rocprofv3 --kernel-trace --rccl-trace --output-format rocpd`, on " +
		"ranks that use RCCL",
	calls: "no calls of RCCL, so it is not known which calls and communicators they are of: record with `rocprofv3 " +
		"--kernel-trace --rccl-trace --output-format rocpd`",
	comms: "it is not known which communicators of processes belong together: rocprofv3 records their addresses, and " +
		"they are told only if each rank's process makes one, while it records; give the databases of all ranks",
	ranks: "it is not known who is in their communicators: let rocprofv3 record from the start of the job",
}

// rocpdFile is a file that is being read, with one part for each database in it.
type rocpdFile struct {
	path   string
	parts  map[string]*rocpdPart
	order  []*rocpdPart
	stored int // bytes of texts
}

// rocpdPart is a database; its maps are by the ids of rows.
type rocpdPart struct {
	texts     [rocpdKernels]map[int64]string // strings, hosts, names of kernels
	nodes     map[int64]int64                // of processes
	pids      map[int64]int64
	devices   map[int64]int64 // of agents
	processes map[int64]*tracedProcess
	order     []*tracedProcess
	stacks    map[int64]int64        // of events of kernels and calls
	regions   map[int64]*rocpdRegion // calls of RCCL and launches, by events
}

// rocpdRegion is a call of RCCL, or a launch of a kernel, if it has no call.
type rocpdRegion struct {
	process *tracedProcess
	span    timeSpan
	call    *tracedCall
}

func newRocpdFile(path string) *rocpdFile {
	return &rocpdFile{path: path, parts: make(map[string]*rocpdPart)}
}

// partOf returns the part that a table belongs to.
func (f *rocpdFile) partOf(row *tableRow) *rocpdPart {
	return keyed.EntryMade(f.parts, strings.TrimPrefix(row.table, rocpdTables[row.place].Name), func() *rocpdPart {
		p := &rocpdPart{nodes: make(map[int64]int64), pids: make(map[int64]int64), devices: make(map[int64]int64),
			processes: make(map[int64]*tracedProcess), stacks: make(map[int64]int64),
			regions: make(map[int64]*rocpdRegion)}
		for i := range p.texts {
			p.texts[i] = make(map[int64]string)
		}
		f.order = append(f.order, p)
		return p
	})
}

// addRow adds a row.
func (f *rocpdFile) addRow(row *tableRow) error {
	p, c := f.partOf(row), row.cells
	switch {
	case c == nil:
		if row.place == rocpdKernels && !row.hasColumn("start") {
			return &uselessTrace{"is of another schema of rocpd than 3, which ROCm 7 writes: its kernels have no times"}
		}
		return nil
	case len(p.pids)+len(p.devices)+len(p.processes) > maxProfileNames:
		return fmt.Errorf("it has more than %d processes and devices", maxProfileNames)
	}
	switch row.place {
	case rocpdStrings, rocpdNodes, rocpdSymbols:
		text := cmp.Or(c[len(c)-1].text, c[1].text)
		if f.stored += len(text) + 64; f.stored > maxStringBytes {
			return fmt.Errorf("its names take more than %d bytes", maxStringBytes)
		}
		p.texts[row.place][c[0].number] = text
	case rocpdProcesses:
		p.nodes[c[0].number], p.pids[c[0].number] = c[1].number, c[2].number
	case rocpdAgents:
		p.devices[c[0].number] = c[1].number
	case rocpdKernels:
		name := p.texts[rocpdSymbols][c[4].number]
		if cuda.IsNCCLKernel(name) {
			p.stacks[c[6].number] = 0
		}
		return p.processOf(f.path, c[2].number).addKernel(name, p.devices[c[3].number], tracedKernel{
			stream: uint64(c[5].number), correlation: c[6].number,
			timeSpan: timeSpan{begin: c[0].number, end: c[1].number}})
	case rocpdRegions:
		p.addRegion(c)
	case rocpdEvents:
		if _, wanted := p.stacks[c[0].number]; wanted {
			p.stacks[c[0].number] = c[1].number
		}
	case rocpdArguments:
		if r := p.regions[c[0].number]; r != nil && r.call != nil && !r.call.addArgument(c[1].text, c[2].text) {
			r.process.seen.unreadable++
		}
	}
	return nil
}

// processOf returns a process by its id.
func (p *rocpdPart) processOf(path string, id int64) *tracedProcess {
	return keyed.EntryMade(p.processes, id, func() *tracedProcess {
		made := newTraced(path, description.FromROCpd, rocpdLacks, &rocpdAdvice)
		made.host, made.seen.pid = p.texts[rocpdNodes][p.nodes[id]], int(max(p.pids[id], 0))
		p.order = append(p.order, made)
		return made
	})
}

// addRegion adds a call of RCCL or a launch of a kernel.
func (p *rocpdPart) addRegion(c []cell) {
	owner := p.processes[c[2].number]
	name := p.texts[rocpdStrings][c[4].number]
	function, isRCCL := strings.CutPrefix(name, "nccl")
	if owner == nil || !isRCCL && !strings.Contains(name, "Launch") {
		return
	}
	if len(p.stacks) >= 4*maxProfileRows {
		owner.seen.surplus++
		return
	}
	event := c[5].number
	region := &rocpdRegion{process: owner, span: timeSpan{c[0].number, c[1].number, int32(c[3].number)}}
	if isRCCL {
		region.call = &tracedCall{function: function, rank: -1, peer: -1, root: -1, timeSpan: region.span}
	}
	p.stacks[event], p.regions[event] = 0, region
}

// rcclTypes are the datatypes in the order of their numbers.
var rcclTypes = []string{"ncclInt8", bytesType, "ncclInt32", "ncclUint32", "ncclInt64", "ncclUint64", "ncclFloat16",
	"ncclFloat32", "ncclFloat64", "ncclBfloat16", "ncclFloat8e4m3", "ncclFloat8e5m2"}

// addArgument adds an argument of a call. It returns false if its value cannot be.
func (c *tracedCall) addArgument(name, value string) bool {
	v, err := strconv.ParseUint(value, 0, 64)
	switch name {
	case "datatype":
		if err == nil && v < uint64(len(rcclTypes)) {
			c.datatype = rcclTypes[v]
		} else if slices.Contains(rcclTypes, value) {
			c.datatype = value
		}
		return true
	case "comm":
		if !strings.HasPrefix(c.function, "Comm") { // otherwise it is where the address was to be stored
			c.comm = v
		}
		return err == nil
	case "count", "sendcount", "recvcount":
		c.bytes = min(v, maxOrdinal)
		return err == nil && v <= maxOrdinal
	}
	to := map[string]*int{"nranks": &c.size, "rank": &c.rank, "peer": &c.peer, "root": &c.root}[name]
	if to == nil {
		return true
	}
	if err != nil || v > description.MaxRanks {
		return false
	}
	*to = int(v)
	return true
}

// closeFile returns the file's processes.
func (f *rocpdFile) closeFile(*importer) (all []*tracedProcess, err error) {
	for _, part := range f.order {
		for _, event := range slices.Sorted(maps.Keys(part.regions)) {
			r := part.regions[event]
			r.process.addLaunch(part.stacks[event], r.span)
			if r.call != nil {
				r.process.addCall(r.call)
			}
		}
		for _, p := range part.order {
			for i := range p.kernels {
				p.kernels[i].correlation = part.stacks[p.kernels[i].correlation]
			}
			p.guessComm()
			all = append(all, p)
		}
	}
	if len(all) == 0 {
		return nil, &uselessTrace{rocpdAdvice.kernels}
	}
	return all, nil
}

// guessComm gives calls an id of their communicator, which is the same in all processes, if the process made one alone
// and calls of one alone were recorded. Other communicators are not known.
func (p *tracedProcess) guessComm() {
	handles, made := make(map[uint64]bool), 0
	size := 0
	for i := range p.calls {
		if c := &p.calls[i]; c.makesComm() {
			made, size = made+1, c.size
		} else if c.isOperation() {
			handles[c.comm] = true
		}
	}
	if made == 1 && len(handles) == 1 && !handles[0] {
		p.guessed = uint64(size)<<1 | 1
	}
	for i := range p.calls {
		p.calls[i].comm = p.guessed
	}
}

// checkGuesses takes back what guessComm has guessed of processes that are not as many as their communicator has ranks,
// each with another rank.
func (im *importer) checkGuesses() {
	of := make(map[uint64][]*tracedProcess)
	for _, p := range im.traced {
		if p.guessed != 0 {
			of[p.guessed] = append(of[p.guessed], p)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(of)) {
		processes := of[id]
		ranks := make(map[int]bool)
		for _, p := range processes {
			at := slices.IndexFunc(p.calls, func(c tracedCall) bool { return c.makesComm() })
			ranks[p.calls[at].rank] = true
		}
		if uint64(len(ranks)) == id>>1 && len(processes) == len(ranks) {
			im.problem("rocprofv3 does not name communicators: the only one of each of %d processes is taken to be "+
				"the same, as size and ranks fit", len(ranks))
			continue
		}
		for _, p := range processes {
			for i := range p.calls {
				p.calls[i].comm = 0
			}
		}
	}
}
