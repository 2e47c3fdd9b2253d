// SPDX-License-Identifier: Apache-2.0

package measurement

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/internal/regular"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// Trace is the trace of a Score-P measurement, or of another tool that writes the same format: its processes, and the
// end of its ranges of ids. Of its event files only the first events are read.
type Trace struct {
	Dir       string // folder of the anchor
	Archive   *otf2.Archive
	Processes []*Process
	byPID     map[int][]*Process // those whose process id is known
	timer     Timer              // unknownTimer if no file states it
	Numbers   uint32             // the upper halves of its location ids are lower
	Groups    otf2.LocationGroupRef
	Root      otf2.SystemTreeNodeRef
	hosts     map[otf2.SystemTreeNodeRef]bool // nodes whose processes share memory
	Regions   map[string]bool                 // names of the regions of forwarded NCCL calls
}

// Process is a process of a Trace.
type Process struct {
	Group   otf2.LocationGroupRef
	Name    string
	Host    string // "" if unknown
	Node    otf2.SystemTreeNodeRef
	pid     int // 0 if unknown
	Threads []*Thread
	clock   []otf2.ClockOffset // corrections of its times
}

// Thread is a thread of a Process.
type Thread struct {
	Location otf2.LocationRef
	Name     string
	tid      int // 0 if unknown
}

func (m *Process) id() string {
	if m.pid == 0 {
		return fmt.Sprintf("%s (%s, process id unknown)", m.Name, m.Host)
	}
	return fmt.Sprintf("%s (%s:%d)", m.Name, m.Host, m.pid)
}

// archiveName is the name of a Score-P trace in its experiment directory, without suffix.
const archiveName = "traces"

// Names of the attributes that identify a process or thread: on the events PROGRAM_BEGIN and THREAD_BEGIN.
const (
	attributeProcess = "ProcessId"
	attributeThread  = "ThreadId"
)

// ForwardedFile is the source file of the regions that the plugin defines in Score-P (plugin/scorep.c).
const ForwardedFile = "NCCL"

// Forwarded reports whether the plugin defined this region of a measurement.
func Forwarded(defs *otf2.Definitions, r *otf2.Region) bool {
	return r.SourceFile != otf2.UndefinedString && defs.String(r.SourceFile) == ForwardedFile
}

// Open reads the definitions of a Score-P experiment directory. Errors state what the directory lacks.
func Open(dir string) (*Trace, error) {
	anchor := filepath.Join(dir, archiveName+".otf2")
	if _, err := os.Stat(anchor); errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(filepath.Join(dir, "profile.cubex")); err == nil {
			return nil, fmt.Errorf("%s holds a profile and no trace: measure with SCOREP_ENABLE_TRACING=true", dir)
		}
		return nil, fmt.Errorf("%s is not a Score-P experiment directory with a trace: there is no %s.otf2", dir,
			archiveName)
	}
	// Little memory is enough: of most locations only the first event is read.
	a, err := otf2.Open(anchor, &otf2.ReadOptions{Memory: 1})
	if err != nil {
		return nil, fmt.Errorf("read Score-P's trace: %w", err)
	}
	for _, p := range a.Anchor.Properties {
		if strings.HasPrefix(p.Name, property.Prefix) {
			return nil, fmt.Errorf("%s holds an archive of nccl-otf2, not one of Score-P", dir)
		}
	}
	if a.Defs.ParadigmDef(regions.ParadigmNCCL) != nil ||
		slices.ContainsFunc(a.Defs.Groups, func(g otf2.Group) bool { return g.Paradigm == regions.ParadigmNCCL }) {
		return nil, fmt.Errorf("%s: its paradigm %v is taken", anchor, regions.ParadigmNCCL)
	}
	m := &Trace{
		Dir: dir, Archive: a, timer: configuredTimer(filepath.Join(dir, "scorep.cfg")),
		Root: otf2.UndefinedSystemTreeNode, Regions: make(map[string]bool), byPID: make(map[int][]*Process),
	}
	if err := m.readProcesses(); err != nil {
		return nil, fmt.Errorf("read Score-P's trace: %w", err)
	}
	for _, n := range a.Defs.SystemTreeNodes {
		if n.Parent == otf2.UndefinedSystemTreeNode {
			m.Root = n.Self
			break
		}
	}
	for _, r := range a.Defs.Regions {
		if Forwarded(a.Defs, &r) {
			m.Regions[a.Defs.String(r.Name)] = true
		}
	}
	return m, nil
}

// readProcesses reads the processes and threads, their ids from the first events, and the ranges of ids in use.
func (m *Trace) readProcesses() error {
	defs := m.Archive.Defs
	m.hosts = make(map[otf2.SystemTreeNodeRef]bool)
	for _, d := range defs.SystemTreeNodeDomains {
		if d.Domain == otf2.SystemTreeDomainSharedMemory {
			m.hosts[d.Node] = true
		}
	}
	byGroup := make(map[otf2.LocationGroupRef]*Process)
	for _, g := range defs.LocationGroups {
		m.Groups = max(m.Groups, g.Self+1)
		if g.Type != otf2.LocationGroupTypeProcess {
			continue
		}
		p := &Process{Group: g.Self, Name: defs.String(g.Name)}
		p.Host, p.Node = m.hostOf(g.SystemTreeParent)
		byGroup[g.Self] = p
		m.Processes = append(m.Processes, p)
	}
	for _, l := range defs.Locations {
		m.Numbers = max(m.Numbers, uint32(uint64(l.Self)>>32)+1)
		p := byGroup[l.Group]
		if p == nil || l.Type != otf2.LocationTypeCPUThread {
			continue
		}
		t := &Thread{Location: l.Self, Name: defs.String(l.Name)}
		if len(p.Threads) == 0 {
			_, clock, err := m.Archive.LocalDefs(l.Self)
			if err != nil {
				return err
			}
			p.clock = clock
		}
		p.Threads = append(p.Threads, t)
		pid, tid, err := m.identify(l.Self)
		if err != nil {
			return err
		}
		if pid != 0 {
			p.pid = pid
			if tid == 0 {
				tid = pid // a program starts on its main thread
			}
		}
		t.tid = tid
	}
	for _, p := range m.Processes {
		if p.pid != 0 {
			m.byPID[p.pid] = append(m.byPID[p.pid], p)
		}
	}
	return nil
}

// identify reads the process id and the thread id from a location's first event; 0 if unknown.
func (m *Trace) identify(l otf2.LocationRef) (pid, tid int, err error) {
	for e, err := range m.Archive.Events(&otf2.Selection{Locations: []otf2.LocationRef{l}}) {
		if err != nil {
			return 0, 0, err
		}
		for _, v := range e.Attributes {
			a := m.Archive.Defs.Attribute(v.ID)
			if a == nil || v.Type != otf2.TypeUint64 || v.Bits > 1<<31 {
				continue
			}
			switch m.Archive.Defs.String(a.Name) {
			case attributeProcess:
				pid = int(v.Bits)
			case attributeThread:
				tid = int(v.Bits)
			}
		}
		break
	}
	return pid, tid, nil
}

// hostOf returns the system tree node of the machine that node n belongs to: the nearest one with shared memory, from n
// upwards. It returns an undefined node if there is none.
func (m *Trace) hostOf(n otf2.SystemTreeNodeRef) (name string, node otf2.SystemTreeNodeRef) {
	defs := m.Archive.Defs
	for range defs.SystemTreeNodes { // a damaged tree must not cause an endless loop
		d := defs.SystemTreeNode(n)
		if d == nil {
			break
		}
		if m.hosts[n] {
			return defs.String(d.Name), n
		}
		n = d.Parent
	}
	return "", otf2.UndefinedSystemTreeNode
}

// configuredTimer reads the timer from the copy of Score-P's settings in the experiment directory.
func configuredTimer(path string) Timer {
	f, err := regular.Open(path)
	if err != nil {
		return unknownTimer
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		name, value, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(lines.Text()), "export "), "=")
		if !ok || strings.TrimSpace(name) != "SCOREP_TIMER" {
			continue
		}
		value = strings.TrimSpace(value)
		if v, err := strconv.Unquote(value); err == nil {
			value = v
		}
		switch strings.ToLower(strings.Trim(value, "'")) {
		case "tsc":
			return tickTimer
		case "clock_gettime":
			return rawTimer
		case "gettimeofday":
			return realTimer
		}
	}
	return unknownTimer
}

// Thread returns the thread with a thread id of our process p, or nil. It searches the ids of the measurement's events,
// then those noted by the substrate plugin, because Score-P may use a location for several threads in turn.
func (m *Process) Thread(p *jobs.Process, tid int) *Thread {
	for _, t := range m.Threads {
		if t.tid == tid {
			return t
		}
	}
	if s := p.Shard.Scorep; s != nil && s.Substrate != nil && s.Substrate.Rank >= 0 {
		for _, noted := range s.Substrate.Threads {
			at := otf2.LocationRef(noted.Location)<<32 | otf2.LocationRef(s.Substrate.Rank)
			for _, t := range m.Threads {
				if noted.TID == tid && t.Location == at {
					return t
				}
			}
		}
	}
	return nil
}
