// SPDX-License-Identifier: Apache-2.0

package export

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/matrix"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/atomicfile"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/naming"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// JSONL writes one file per process into a folder, which it creates if needed, in the schema of NCCL's minimal
// profiler: event records for what has a duration, state records for what happens in between, and lifecycle records for
// communicator ranks. Values that the archive does not have are null in the members start, stop, pid, tid and commId;
// other members are omitted.
//
// Files are named trace_<job or unix time>_pid<PID>.jsonl. If processes of different hosts have the same PID, ".2"
// follows the job in the second one's name. If the archive has no PIDs, proc<place in world order> replaces pid<PID>.
func JSONL(a *otf2.Archive, dir string, opts *Options) (*Result, error) {
	e := newExporter(a, opts)
	id := e.opts.Job
	if id == "" {
		id = strconv.FormatInt(e.rows.clock.since1970(otf2.Timestamp(e.rows.clock.Offset))/1_000_000_000, 10)
	}
	if strings.ContainsAny(id, "/\x00") {
		return nil, fmt.Errorf("job %q cannot be part of a file's name", id)
	}
	if err := atomicfile.MakeFolder(dir); err != nil {
		return nil, err
	}
	taken := make(map[string]bool)
	for _, p := range e.rows.processes {
		events := uint64(0)
		for _, l := range p.rows {
			events += l.events
		}
		if events == 0 {
			e.countLeftOut("processes without data")
			continue
		}
		who := fmt.Sprintf("proc%d", p.number)
		if p.pid != 0 {
			who = fmt.Sprintf("pid%d", p.pid)
		}
		name := fmt.Sprintf("trace_%s_%s.jsonl", id, who)
		for n := 2; taken[name]; n++ {
			name = fmt.Sprintf("trace_%s.%d_%s.jsonl", id, n, who)
		}
		taken[name] = true
		if err := e.writeProcess(p, filepath.Join(dir, name)); err != nil {
			return nil, err
		}
	}
	return &e.result, nil
}

func (e *exporter) writeProcess(p *process, path string) error {
	f, err := createFile(path)
	if err != nil {
		return err
	}
	defer f.abandon()
	l := newLines(e, p, newJSONWriter(f))
	l.readProcess()
	if err := errors.Join(l.out.flush(), f.commit()); err != nil {
		return err
	}
	e.result.Files = append(e.result.Files, path)
	return nil
}

// openEvent is an open region: its event's id (0: unknown) and the number of its Enter event.
type openEvent struct{ event, entered uint64 }

// lines writes the records of one process.
type lines struct {
	*exporter
	process *process
	out     *jsonWriter
	parts   *operations.PartReader

	transfers  *matrix.TransferReader
	open       map[otf2.LocationRef][]openEvent
	raw        bool // the archive has raw events, which replace all other records
	rawOpen    map[otf2.LocationRef]rawOpen
	made       uint64              // number of ids generated
	says       property.Properties // of the archive
	incomplete bool                // the archive may lack operations, or a selection is exported

	// The communicator of a call may become known only when an operation names the call as its parent. Until then, or
	// until there are too many calls, calls are held here by the id of their group call.
	held   map[uint64]*heldGroup
	groups []uint64          // in order of arrival
	calls  map[uint64]uint64 // group call of each held call
}

func newLines(e *exporter, p *process, out *jsonWriter) *lines {
	l := &lines{
		exporter: e, process: p, out: out, open: make(map[otf2.LocationRef][]openEvent),
		held: make(map[uint64]*heldGroup), calls: make(map[uint64]uint64),
		raw: e.rows.hasRaw(), rawOpen: make(map[otf2.LocationRef]rawOpen),
	}
	l.transfers = matrix.NewTransferReader(e.archive)
	l.parts = operations.NewPartReader(e.archive, true, l.writeOperation)
	l.parts.Selection = e.opts.Selection
	r := l.parts.Reader()
	r.Enter, r.Leave, r.Life, r.Sums = l.enterRegion, l.leaveRegion, l.writeLife, e.countNetSums
	l.says = property.Read(e.archive.Anchor)
	l.incomplete = lacksOperations(l.says) || e.opts.Selection != nil
	return l
}

func (l *lines) readProcess() {
	locations := make([]otf2.LocationRef, len(l.process.rows))
	for i, r := range l.process.rows {
		locations[i] = r.location
	}
	for ev, err := range l.archive.Events(&otf2.Selection{Locations: locations}) {
		if err != nil {
			l.addProblems([]string{err.Error()})
			continue
		}
		l.parts.Event(ev)
		if facts.TransferKinds.Has(ev.Kind) && !l.raw {
			if x := l.transfers.Event(ev); x != nil && l.opts.Selection.At(x.Location, x.Begin) {
				l.writeTransfer(x)
			}
		}
		if ev.Kind == otf2.EventMetric {
			l.countLeftOut("values of metrics")
		}
	}
	for len(l.groups) > 0 {
		l.releaseOldest()
	}
	for _, stack := range l.open {
		l.result.LeftOut["regions that were open at the end"] += uint64(len(stack))
	}
	l.result.LeftOut["transfers without an end"] += uint64(l.transfers.Unended())
	maps.DeleteFunc(l.result.LeftOut, func(_ string, n uint64) bool { return n == 0 })
}

func (l *lines) enterRegion(r *facts.Region) {
	if l.raw {
		l.rawEnter(r)
	}
	l.open[r.Location] = append(l.open[r.Location], openEvent{r.Event, r.Entered})
}

func (l *lines) leaveRegion(r *facts.Region) {
	at := facts.IndexOpen(l.open[r.Location], r, func(o *openEvent) uint64 { return o.entered })
	l.open[r.Location] = slices.Delete(l.open[r.Location], at, at+1)
	if !l.opts.Selection.At(r.Location, r.Begin) {
		return
	}
	if r.Lost {
		l.countLeftOut("regions that were open at the end")
		return
	}
	l.writeRegion(l.rows.of[r.Location], r, l.open[r.Location][:at])
}

// writeLife handles the start or end of a communicator rank.
func (l *lines) writeLife(ev *otf2.Event, comm otf2.CommRef, begins bool) {
	function := "ProfilerFinalize"
	if begins {
		function = "ProfilerInit"
	}
	l.writeLifecycle(function, l.rows.rowOn(ev.Location, comm), ev.Time)
}

// writeRegion writes the records of a region that has ended. outer lists the events of the regions around it.
func (l *lines) writeRegion(row *row, r *facts.Region, outer []openEvent) {
	name, group := l.rows.defs.RegionName(r.Region), l.rows.group[r.Region]
	one := record{row: row, begin: r.Begin, end: r.End, event: r.Event, parent: r.Parent}
	attributes := r.Attributes
	switch {
	case group == regions.GroupEvents:
		l.rawEvent(row, r)
	case group == regions.GroupStates:
		l.rawState(row, r)
	case l.raw && rawShown[group]: // raw records replace it
	case group == regions.GroupAPI:
		l.writeCall(&one, strings.TrimPrefix(name, regions.NameCall), r, outer)
	case group == regions.GroupEnqueue && name == regions.NameKernelLaunch:
		one.typ, one.function = "ncclProfileKernelLaunch", "KernelLaunch"
		stream, known := l.rows.attributes.Last(attributes, regions.AttrStream)
		one.details = func(j *jsonWriter) {
			if known {
				j.hex("stream", stream)
			}
		}
		if one.parent == 0 {
			l.writeEvent(&one)
			return
		}
		g := l.holdGroup(one.parent)
		g.launches = append(g.launches, one)
	case group == regions.GroupEnqueue:
		one.typ, one.function, one.of = "ncclProfileGroup", "Group", nil
		l.writeEvent(&one)
	case row.comm != nil: // an operation, see writeOperation
	case row.hasID && (group == regions.GroupCollectives || group == regions.GroupPointToPoint):
		l.countLeftOut("operations on communicators of one rank")
	case group == regions.GroupCollectives || group == regions.GroupPointToPoint:
		l.writeChannel(&one, name)
	case group == regions.GroupProxy:
		l.writeControl(&one, name, attributes)
	case group == regions.GroupNetwork:
		l.countLeftOut("phases of the network rows")
	default:
		l.countLeftOut("regions of " + cmp.Or(group, "no group"))
	}
}

// writeOperation writes the record of an operation that has ended.
func (l *lines) writeOperation(p *operations.Part) {
	if l.raw {
		return
	}
	row := l.rows.rowOn(p.Location, p.Comm)
	l.assignCall(p.Parent, row)
	one := record{typ: "ncclProfileColl", function: p.Function, row: row, of: row, begin: p.Begin, end: p.End,
		event: p.Event, parent: p.Parent}
	if _, copied := l.rows.attributes.Last(p.Attributes, regions.AttrSyncStrategy); copied {
		one.typ = "ncclProfileCeColl"
	}
	if p.Message() {
		one.typ = "ncclProfileP2p"
	}
	one.details = func(j *jsonWriter) {
		l.writeArguments(j, p)
		l.writeExtensions(j, p)
	}
	l.writeEvent(&one)
}

// writeArguments writes the details that the minimal profiler also writes.
func (l *lines) writeArguments(j *jsonWriter, p *operations.Part) {
	// attribute writes the last value of an attribute, if the operation has it.
	attribute := func(put func(name string, v uint64), name string, ref otf2.AttributeRef) {
		if v, has := l.rows.attributes.Last(p.Attributes, ref); has {
			put(name, v)
		}
	}
	text := func(name, v string) {
		if v != "" {
			j.text(name, v)
		}
	}
	j.text("func", p.Function)
	attribute(j.unsigned, "seq", regions.AttrSeq)
	text("algo", p.Algorithm)
	text("proto", p.Protocol)
	if p.Message() {
		j.integer("peer", int64(p.Peer))
	}
	if p.Channels > 0 {
		j.unsigned("channels", uint64(p.Channels))
	}
	attribute(j.unsigned, "warps", regions.AttrWarps)
	if p.Counted {
		j.unsigned("count", p.Count)
	}
	if p.Root >= 0 {
		j.integer("root", int64(p.Root))
	}
	text("dtype", p.Datatype)
	send, sends := l.rows.attributes.Last(p.Attributes, regions.AttrSendBuff)
	recv, receives := l.rows.attributes.Last(p.Attributes, regions.AttrRecvBuff)
	switch {
	case p.Message() && sends:
		j.hex("buff", send)
	case p.Message() && receives:
		j.hex("buff", recv)
	case sends && receives:
		j.hex("sendBuff", send)
		j.hex("recvBuff", recv)
	}
	attribute(j.hex, "stream", regions.AttrStream)
	attribute(j.unsigned, "userTag", regions.AttrUserTag)
	if variant, has := l.rows.attributes.Last(p.Attributes, regions.AttrKernelVariant); has {
		j.text("kernelVariant", l.rows.defs.String(otf2.StringRef(variant)))
	}
}

// writeExtensions writes details that the minimal profiler does not have.
func (l *lines) writeExtensions(j *jsonWriter, p *operations.Part) {
	j.unsigned("ordinal", p.Ordinal)
	if p.Source != "" {
		j.text("timingSource", p.Source)
	}
	if p.Stated {
		j.unsigned("uncertaintyNs", p.Uncertainty)
	}
	if p.Plan > 0 {
		j.unsigned("plan", p.Plan)
	}
	if p.Graph {
		j.boolean("graph", true)
	}
	if unfinished, _ := l.rows.attributes.Last(p.Attributes, regions.AttrUnfinished); unfinished&1 != 0 {
		j.boolean("unfinished", true)
	}
	l.writeCarried(j, p)
}

// writeCarried writes the attributes that do not follow from other members.
func (l *lines) writeCarried(j *jsonWriter, p *operations.Part) {
	carried := 0
	for i := range p.Attributes {
		ref, known := l.rows.attributes.Resolve(p.Attributes[i].ID)
		if !known || !regions.IsCarried(ref) {
			continue
		}
		if carried++; carried == 1 {
			j.object("attributes")
		}
		j.unsigned(regions.Attributes[ref].Name, p.Attributes[i].Bits)
	}
	if carried > 0 {
		j.raw("}")
	}
}

// writeChannel writes the record of a kernel on a channel's row.
func (l *lines) writeChannel(one *record, name string) {
	channel, ok := naming.Channel(one.row.name)
	if !ok {
		l.countLeftOut("regions of unknown channels")
		return
	}
	one.typ, one.function = "ncclProfileKernelCh", name
	one.details = func(j *jsonWriter) {
		j.integer("channel", int64(channel))
		j.text("timingSource", "gpu")
	}
	l.writeEvent(one)
}

// controls lists the regions of a proxy thread that stand for a single ProxyCtrl event, with its state.
var controls = map[string]string{regions.NameProxySleep: "ProxyCtrlSleep", regions.NameProxyAppend: "ProxyCtrlAppend"}

func (l *lines) writeControl(one *record, name string, attributes []otf2.AttributeValue) {
	state, ok := controls[name]
	if !ok {
		times, _ := l.rows.attributes.Last(attributes, regions.AttrTimes)
		l.result.LeftOut["turns of the proxy's loop"] += max(times, 1)
		return
	}
	one.typ, one.function, one.of = "ncclProfileProxyCtrl", state, one.row.proxyOf
	l.made++
	one.event = madeID | l.made
	l.writeState(one, state, "", 0)
	l.writeEvent(one)
}

// writeTransfer writes the step of a proxy for a transfer that has ended, from when it was handed to the network.
// Earlier waits are in the archive only as phases of the oldest step. Archives lack the ids of steps and of proxy
// operations: the step gets a generated id, and the operation is its parent.
func (l *lines) writeTransfer(x *matrix.Transfer) {
	row := l.rows.of[x.Location]
	one := record{typ: "ncclProfileProxyStep", function: "ProxyStep", row: row, begin: x.Begin, end: x.End,
		parent: x.Parent}
	if c := l.rows.comms[x.Comm]; c != nil && x.From >= 0 && x.From < len(c.Members) {
		one.of = l.rows.rowOn(c.Members[x.From], x.Comm)
	}
	one.details = func(j *jsonWriter) {
		for _, f := range [...]struct {
			name  string
			value int
		}{{"step", x.Step}, {"channel", x.Channel}, {"peer", x.To}, {"qp", x.QP}} {
			if f.value >= 0 {
				j.integer(f.name, int64(f.value))
			}
		}
		j.boolean("isSend", true)
	}
	l.made++
	one.event = madeID | l.made
	l.writeState(&one, "ProxyStepSendWait", "transSize", x.Bytes)
	l.writeEvent(&one)
}

// writeParent writes the communicator's parent, by name and commId, and how it was created from it.
func (l *lines) writeParent(j *jsonWriter, c *comm) {
	if c.parent == nil {
		return
	}
	j.text("parentCommName", c.parent.Name)
	for _, m := range c.parent.Members {
		if row := l.rows.rowOn(m, c.parent.Ref); row != nil && row.hasID {
			j.unsigned("parentCommId", row.commID)
			break
		}
	}
	if c.birth.Parent != c.parent.Ref || c.birth.Comm != c.Ref {
		return
	}
	j.integer("split", int64(c.birth.Split))
	if c.birth.Split > 0 {
		j.integer("color", int64(c.birth.Color))
	}
}

// timingSource returns the value of "source": this tool, and whether the records are raw events.
func (l *lines) timingSource() string {
	if l.raw {
		return "nccl-otf2 raw"
	}
	return "nccl-otf2"
}

// writeLifecycle writes the record of the start or end of a communicator rank.
func (l *lines) writeLifecycle(function string, row *row, t otf2.Timestamp) {
	if row.comm == nil {
		l.countLeftOut("ends of communicators that are not defined")
		return
	}
	one := record{typ: "ProfilerLifecycle", function: function, row: row, of: row, begin: t, end: t}
	if function == "ProfilerInit" {
		one.details = func(j *jsonWriter) {
			j.integer("nranks", int64(len(row.comm.Members)))
			j.text("commName", row.comm.Name)
			if n, err := strconv.ParseUint(l.says.Text(property.EventMask), 0, 32); err == nil {
				j.unsigned("eventMask", n)
			}
			// The minimal profiler does not have these members.
			j.text("host", l.process.host)
			if rank, size, ok := l.rows.worldOfProcess(l.process); ok {
				j.integer("worldRank", int64(rank))
				j.integer("worldSize", int64(size))
			}
			if n, ok := deviceNumber(row.gpu); ok {
				j.integer("cudaDevice", int64(n))
			}
			if row.comm.nodes > 0 {
				j.integer("nnodes", int64(row.comm.nodes))
			}
			l.writeParent(j, row.comm)
			if api := l.says.Text(property.APIVersion); api != "" {
				j.text("apiVersion", api)
			}
			j.micros("epoch", l.rows.clock.since1970(otf2.Timestamp(l.rows.clock.Offset)))
			j.text("source", l.timingSource())
			if l.incomplete {
				j.boolean("incomplete", true)
			}
			l.writeCounts(j)
		}
	}
	l.writeEvent(&one)
}
