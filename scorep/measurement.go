// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/regular"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// measurement is the trace of a Score-P measurement, or of another tool that writes the same: what it says of its
// processes, and where its definitions end. Its event files are looked into as far as their first events only.
type measurement struct {
	dir       string // of the anchor
	archive   *otf2.Archive
	processes []*measured
	byPID     map[int][]*measured // those whose process id is known
	timer     timer               // unknownTimer if no file says which
	numbers   uint32              // the upper halves of its location ids are below
	groups    otf2.LocationGroupRef
	root      otf2.SystemTreeNodeRef
	hosts     map[otf2.SystemTreeNodeRef]bool // nodes whose processes share memory
	regions   map[string]bool                 // names of the regions that were forwarded from here
}

// measured is one of its processes.
type measured struct {
	group   otf2.LocationGroupRef
	name    string
	host    string // "" if the system tree does not say
	node    otf2.SystemTreeNodeRef
	pid     int // 0 if no event says
	threads []*measuredThread
	clock   []otf2.ClockOffset // corrections of its times
}

// measuredThread is a thread's location.
type measuredThread struct {
	location otf2.LocationRef
	name     string
	tid      int // 0 if no event says
}

func (m *measured) id() string {
	if m.pid == 0 {
		return fmt.Sprintf("%s (%s, process id unknown)", m.name, m.host)
	}
	return fmt.Sprintf("%s (%s:%d)", m.name, m.host, m.pid)
}

// Attributes by which Score-P tells its processes and threads: on PROGRAM_BEGIN and on THREAD_BEGIN.
const (
	attributeProcess = "ProcessId"
	attributeThread  = "ThreadId"
)

// forwardedFile is the source file of the regions that the plugin has Score-P define (plugin/scorep.c).
const forwardedFile = "NCCL"

// openMeasurement reads a Score-P experiment directory. Errors say what the directory lacks.
func openMeasurement(dir string) (*measurement, error) {
	anchor := filepath.Join(dir, archiveName+".otf2")
	if _, err := os.Stat(anchor); errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(filepath.Join(dir, "profile.cubex")); err == nil {
			return nil, fmt.Errorf("%s holds a profile and no trace: measure with SCOREP_ENABLE_TRACING=true", dir)
		}
		return nil, fmt.Errorf("%s is no Score-P experiment directory with a trace: there is no %s.otf2", dir, archiveName)
	}
	// Small windows: of most locations only the first event is read.
	a, err := otf2.Open(anchor, &otf2.ReadOptions{Memory: 1})
	if err != nil {
		return nil, fmt.Errorf("read Score-P's trace: %w", err)
	}
	for _, p := range a.Anchor.Properties {
		if strings.HasPrefix(p.Name, facts.PropertyPrefix) {
			return nil, fmt.Errorf("%s holds an archive of nccl-otf2, not one of Score-P", dir)
		}
	}
	if a.Defs.ParadigmDef(regions.ParadigmNCCL) != nil {
		return nil, fmt.Errorf("%s: its paradigm %d is taken", anchor, regions.ParadigmNCCL)
	}
	m := &measurement{
		dir: dir, archive: a, timer: configuredTimer(filepath.Join(dir, "scorep.cfg")),
		root: otf2.UndefinedSystemTreeNode, regions: make(map[string]bool), byPID: make(map[int][]*measured),
	}
	if err := m.readProcesses(); err != nil {
		return nil, fmt.Errorf("read Score-P's trace: %w", err)
	}
	for _, n := range a.Defs.SystemTreeNodes {
		if n.Parent == otf2.UndefinedSystemTreeNode {
			m.root = n.Self
			break
		}
	}
	for _, r := range a.Defs.Regions {
		if r.SourceFile != otf2.UndefinedString && a.Defs.String(r.SourceFile) == forwardedFile {
			m.regions[a.Defs.String(r.Name)] = true
		}
	}
	return m, nil
}

// readProcesses lists the PROCESS location groups with what their first events say.
func (m *measurement) readProcesses() error {
	defs := m.archive.Defs
	m.hosts = make(map[otf2.SystemTreeNodeRef]bool)
	for _, d := range defs.SystemTreeNodeDomains {
		if d.Domain == otf2.SystemTreeDomainSharedMemory {
			m.hosts[d.Node] = true
		}
	}
	byGroup := make(map[otf2.LocationGroupRef]*measured)
	for _, g := range defs.LocationGroups {
		m.groups = max(m.groups, g.Self+1)
		if g.Type != otf2.LocationGroupTypeProcess {
			continue
		}
		p := &measured{group: g.Self, name: defs.String(g.Name)}
		p.host, p.node = m.hostOf(g.SystemTreeParent)
		byGroup[g.Self] = p
		m.processes = append(m.processes, p)
	}
	for _, l := range defs.Locations {
		m.numbers = max(m.numbers, uint32(uint64(l.Self)>>32)+1)
		p := byGroup[l.Group]
		if p == nil || l.Type != otf2.LocationTypeCPUThread {
			continue
		}
		t := &measuredThread{location: l.Self, name: defs.String(l.Name)}
		if len(p.threads) == 0 {
			_, clock, err := m.archive.LocalDefs(l.Self)
			if err != nil {
				return err
			}
			p.clock = clock
		}
		p.threads = append(p.threads, t)
		pid, tid, err := m.identify(l.Self)
		if err != nil {
			return err
		}
		if pid != 0 {
			p.pid = pid
			if tid == 0 {
				tid = pid // a program begins on its main thread
			}
		}
		t.tid = tid
	}
	for _, p := range m.processes {
		if p.pid != 0 {
			m.byPID[p.pid] = append(m.byPID[p.pid], p)
		}
	}
	return nil
}

// identify reads the process id and the thread id from a location's first event; 0 is unknown.
func (m *measurement) identify(l otf2.LocationRef) (pid, tid int, err error) {
	for e, err := range m.archive.Events(&otf2.Selection{Locations: []otf2.LocationRef{l}}) {
		if err != nil {
			return 0, 0, err
		}
		for _, v := range e.Attributes {
			a := m.archive.Defs.Attribute(v.ID)
			if a == nil || v.Type != otf2.TypeUint64 || v.Bits > 1<<31 {
				continue
			}
			switch m.archive.Defs.String(a.Name) {
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

// hostOf finds the node of a machine above, or at, a node of the system tree: the next one with shared memory.
func (m *measurement) hostOf(n otf2.SystemTreeNodeRef) (name string, node otf2.SystemTreeNodeRef) {
	defs := m.archive.Defs
	for range defs.SystemTreeNodes { // not for ever if the tree is damaged
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

// configuredTimer reads which timer Score-P was set to from the copy of its settings in the experiment directory.
func configuredTimer(path string) timer {
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

// behind is the id behind those of all definitions of a kind.
func behind[D any, Ref ~uint32](definitions []D, self func(*D) Ref) (id Ref) {
	for i := range definitions {
		id = max(id, self(&definitions[i])+1)
	}
	return id
}

// firstIDs are the ids behind those of the measurement's definitions.
func (m *measurement) firstIDs() firstIDs {
	d := m.archive.Defs
	return firstIDs{
		text:          behind(d.Strings, func(x *otf2.String) otf2.StringRef { return x.Self }),
		attribute:     behind(d.Attributes, func(x *otf2.Attribute) otf2.AttributeRef { return x.Self }),
		node:          behind(d.SystemTreeNodes, func(x *otf2.SystemTreeNode) otf2.SystemTreeNodeRef { return x.Self }),
		locationGroup: m.groups,
		region:        behind(d.Regions, func(x *otf2.Region) otf2.RegionRef { return x.Self }),
		group:         behind(d.Groups, func(x *otf2.Group) otf2.GroupRef { return x.Self }),
		comm: max(
			behind(d.Comms, func(x *otf2.Comm) otf2.CommRef { return x.Self }),
			behind(d.InterComms, func(x *otf2.InterComm) otf2.CommRef { return x.Self })),
		rmaWin:       behind(d.RmaWins, func(x *otf2.RmaWin) otf2.RmaWinRef { return x.Self }),
		metricMember: behind(d.MetricMembers, func(x *otf2.MetricMember) otf2.MetricMemberRef { return x.Self }),
		metric: max(
			behind(d.MetricClasses, func(x *otf2.MetricClass) otf2.MetricRef { return x.Self }),
			behind(d.MetricInstances, func(x *otf2.MetricInstance) otf2.MetricRef { return x.Self })),
	}
}
