// SPDX-License-Identifier: Apache-2.0

package jobtest

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

const T0 = shardtest.Epoch + 1_000_000

// Microsecond is a microsecond.
const Microsecond = 1000

// Typical leaves a finished job of three processes that use everything the checks look at, lets
// change alter each before it is finished, and unifies it.
func Typical(t testing.TB, change func(rank int, p *shardtest.Process)) string {
	t.Helper()
	return Make(t, 3, 2, func(r int, p *shardtest.Process) {
		world := p.World()
		late := uint64(r) * 10 * Microsecond // rank 2 is last
		for i := range uint64(2) {
			p.Call("ncclAllReduce", T0+(100+i*100)*Microsecond, T0+(105+i*100)*Microsecond)
			p.AllReduce(world, T0+(110+i*100)*Microsecond+late, T0+(150+i*100)*Microsecond, 1000)
		}
		p.Broadcast(world, 1, T0+310*Microsecond, T0+330*Microsecond, 200, "enqueue")
		p.GatherAndScatter(world, T0+400*Microsecond+late, T0+440*Microsecond, 100)
		switch r {
		case 0:
			p.Send(world, 1, T0+500*Microsecond, T0+510*Microsecond, 4096)
			p.Send(world, 1, T0+520*Microsecond, T0+530*Microsecond, 64)
		case 1:
			p.Recv(world, 0, T0+500*Microsecond, T0+512*Microsecond, 4096)
			p.Recv(world, 0, T0+520*Microsecond, T0+532*Microsecond, 64)
			p.Send(world, 2, T0+540*Microsecond, T0+550*Microsecond, 100)
		case 2:
			p.Recv(world, 1, T0+540*Microsecond, T0+551*Microsecond, 100)
		}
		p.Destroy(world, T0+600*Microsecond)
		if change != nil {
			change(r, p)
		}
	})
}

// Thread is the location of a rank's thread in the archives of Typical.
func Thread(rank int) otf2.LocationRef { return otf2.LocationRef(rank) }

// Stream is the location of a rank's part in communicators.
func Stream(rank int) otf2.LocationRef { return 1<<32 | otf2.LocationRef(rank) }

// Sample is an archive in memory, to be altered and written again.
type Sample struct {
	t       testing.TB
	Anchor  otf2.Anchor
	Defs    *otf2.Definitions
	Events  map[otf2.LocationRef][]otf2.Event
	Markers []otf2.Marker
	Drop    map[otf2.LocationRef]bool // event files not to write
	raw     func(dir string)          // alters the written files
}

func Load(t testing.TB, path string) *Sample {
	t.Helper()
	a := Open(t, path)
	s := &Sample{
		t: t, Anchor: *a.Anchor, Defs: a.Defs, Events: make(map[otf2.LocationRef][]otf2.Event),
		Drop: make(map[otf2.LocationRef]bool),
	}
	for _, l := range a.Defs.Locations {
		for ev, err := range a.EventsOf(l.Self) {
			testkit.Must(t, err)
			s.Events[l.Self] = append(s.Events[l.Self], ev.Clone())
		}
	}
	return s
}

// Find returns the n-th event of a kind at a location.
func (s *Sample) Find(l otf2.LocationRef, kind otf2.EventKind, n int) *otf2.Event {
	return &s.Events[l][s.Index(l, kind, n)]
}

func (s *Sample) Index(l otf2.LocationRef, kind otf2.EventKind, n int) int {
	for i := range s.Events[l] {
		if s.Events[l][i].Kind == kind {
			if n == 0 {
				return i
			}
			n--
		}
	}
	s.t.Fatalf("location %d has no such %v", l, kind)
	return 0
}

// Remove takes events away; the definition's count follows.
func (s *Sample) Remove(l otf2.LocationRef, from, n int) {
	s.Events[l] = append(s.Events[l][:from:from], s.Events[l][from+n:]...)
	s.Recount()
}

func (s *Sample) Insert(l otf2.LocationRef, at int, ev otf2.Event) {
	ev.Location = l
	rest := append([]otf2.Event{ev}, s.Events[l][at:]...)
	s.Events[l] = append(s.Events[l][:at:at], rest...)
	s.Recount()
}

func (s *Sample) Recount() {
	for i := range s.Defs.Locations {
		l := &s.Defs.Locations[i]
		l.Events = uint64(len(s.Events[l.Self]))
	}
}

func (s *Sample) Property(name, value string) {
	for i := range s.Anchor.Properties {
		if s.Anchor.Properties[i].Name == name {
			s.Anchor.Properties[i].Value = value
			return
		}
	}
	s.Anchor.Properties = append(s.Anchor.Properties, otf2.Property{Name: name, Value: value})
}

// Write puts the archive into a new directory and returns the path of its anchor.
func (s *Sample) Write() string {
	s.t.Helper()
	must := func(err error) {
		s.t.Helper()
		testkit.Must(s.t, err)
	}
	dir := s.t.TempDir()
	must(os.Mkdir(filepath.Join(dir, "traces"), 0o777))
	d := s.Defs
	w, err := otf2.CreateGlobalDefWriter(filepath.Join(dir, "traces.def"), s.Anchor.DefChunkSize)
	must(err)
	must(w.ClockProperties(d.Clock.Resolution, d.Clock.Offset, d.Clock.Length, d.Clock.Realtime))
	for _, x := range d.Strings {
		must(w.String(x.Self, x.Text))
	}
	for _, x := range d.Paradigms {
		must(w.Paradigm(x.Paradigm, x.Name, x.Class))
	}
	for _, x := range d.Attributes {
		must(w.Attribute(x.Self, x.Name, x.Type, x.Description))
	}
	for _, x := range d.SystemTreeNodes {
		must(w.SystemTreeNode(x.Self, x.Name, x.Class, x.Parent))
	}
	for _, x := range d.SystemTreeNodeDomains {
		must(w.SystemTreeNodeDomain(x.Node, x.Domain))
	}
	for _, x := range d.LocationGroups {
		must(w.LocationGroup(x.Self, x.Name, x.Type, x.SystemTreeParent, x.Creator))
	}
	for _, x := range d.Locations {
		must(w.Location(x.Self, x.Name, x.Type, x.Events, x.Group))
	}
	for _, x := range d.LocationProperties {
		must(w.LocationProperty(x.Location, x.Name, x.Type, x.Value))
	}
	for _, x := range d.Regions {
		must(w.Region(x.Self, x.Name, x.CanonicalName, x.Description, x.Role, x.Paradigm, x.Flags, x.SourceFile,
			x.BeginLine, x.EndLine))
	}
	for _, x := range d.Groups {
		must(w.Group(x.Self, x.Name, x.Type, x.Paradigm, x.Flags, x.Members))
	}
	for _, x := range d.Comms {
		must(w.Comm(x.Self, x.Name, x.Group, x.Parent, x.Flags))
	}
	for _, x := range d.RmaWins {
		must(w.RmaWin(x.Self, x.Name, x.Comm, x.Flags))
	}
	for _, x := range d.MetricMembers {
		must(w.MetricMember(x.Self, x.Name, x.Description, x.Type, x.Mode, x.ValueType, x.Base, x.Exponent, x.Unit))
	}
	for _, x := range d.MetricClasses {
		must(w.MetricClass(x.Self, x.Members, x.Occurrence, x.RecorderKind))
	}
	for _, x := range d.MetricInstances {
		must(w.MetricInstance(x.Self, x.MetricClass, x.Recorder, x.MetricScope, x.Scope))
	}
	if s.Anchor.GlobalDefs != 12345 { // a number that a test set
		s.Anchor.GlobalDefs = w.Count()
	}
	must(w.Close())
	for _, l := range d.Locations {
		path := filepath.Join(dir, "traces", strconv.FormatUint(uint64(l.Self), 10))
		must(otf2.WriteLocalDefs(path+".def", nil, nil, s.Anchor.DefChunkSize))
		if s.Drop[l.Self] {
			continue
		}
		s.Drop[l.Self] = true // a test may define it twice
		w, err := otf2.CreateEventWriter(path+".evt", &otf2.EventWriterOptions{ChunkSize: s.Anchor.EventChunkSize})
		must(err)
		for i := range s.Events[l.Self] {
			ev := &s.Events[l.Self][i]
			var a otf2.AttributeList
			for _, v := range ev.Attributes {
				a.Add(v.ID, v.Type, v.Value())
			}
			must(w.Write(ev.Kind, ev.Time, &a, ev.Args))
		}
		must(w.Close())
	}
	if len(s.Markers) > 0 {
		w, err := otf2.CreateMarkerWriter(filepath.Join(dir, "traces.marker"), s.Anchor.DefChunkSize)
		must(err)
		must(w.DefMarker(0, "test", "test", otf2.MarkerSeverityLow))
		for _, m := range s.Markers {
			must(w.Marker(m.Time, m.Duration, m.Marker, m.ScopeType, m.Scope, m.Text))
		}
		must(w.Close())
	}
	if s.raw != nil {
		s.raw(dir)
	}
	anchor := filepath.Join(dir, "traces.otf2")
	must(otf2.WriteAnchor(anchor, &s.Anchor))
	return anchor
}

// Patch alters a location's event file.
func (s *Sample) Patch(l otf2.LocationRef, change func(b []byte) []byte) {
	s.raw = func(dir string) {
		path := filepath.Join(dir, "traces", strconv.FormatUint(uint64(l), 10)+".evt")
		b, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, change(b), 0o666)
		}
		testkit.Must(s.t, err)
	}
}

func (s *Sample) Group(typ otf2.GroupType) *otf2.Group {
	for i := range s.Defs.Groups {
		if s.Defs.Groups[i].Type == typ {
			return &s.Defs.Groups[i]
		}
	}
	s.t.Fatalf("no group of type %v", typ)
	return nil
}

func (s *Sample) Location(l otf2.LocationRef) *otf2.Location {
	for i := range s.Defs.Locations {
		if s.Defs.Locations[i].Self == l {
			return &s.Defs.Locations[i]
		}
	}
	s.t.Fatalf("no location %d", l)
	return nil
}

// With is an event like the n-th of a kind, but of another kind and with other fields.
func (s *Sample) With(l otf2.LocationRef, kind otf2.EventKind, n int, other otf2.EventKind, args ...uint64) otf2.Event {
	ev := s.Find(l, kind, n).Clone()
	ev.Kind, ev.Args = other, args
	return ev
}

// Operations are what an analysis finds in an archive.
func Operations(t testing.TB, path string) *operations.Report {
	t.Helper()
	r := testkit.Value(operations.Observe(Open(t, path), new(operations.Observer)))(t)
	return r
}
