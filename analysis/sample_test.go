// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/scorep/jobtest"
	"github.com/nccl-otf2/nccl-otf2/scorep/shardtest"
)

const t0 = shardtest.Epoch + 1_000_000

// us is a microsecond.
const us = 1000

// makeJob leaves a finished job of three processes that use everything the checks look at, lets
// change alter each before it is finished, and unifies it.
func makeJob(t testing.TB, change func(rank int, p *shardtest.Process)) string {
	t.Helper()
	return jobtest.Make(t, 3, 2, func(r int, p *shardtest.Process) {
		world := p.World()
		late := uint64(r) * 10 * us // rank 2 is last
		for i := range uint64(2) {
			p.Call("ncclAllReduce", t0+(100+i*100)*us, t0+(105+i*100)*us)
			p.AllReduce(world, t0+(110+i*100)*us+late, t0+(150+i*100)*us, 1000)
		}
		p.Broadcast(world, 1, t0+310*us, t0+330*us, 200, "enqueue")
		p.GatherAndScatter(world, t0+400*us+late, t0+440*us, 100)
		switch r {
		case 0:
			p.Send(world, 1, t0+500*us, t0+510*us, 4096)
			p.Send(world, 1, t0+520*us, t0+530*us, 64)
		case 1:
			p.Recv(world, 0, t0+500*us, t0+512*us, 4096)
			p.Recv(world, 0, t0+520*us, t0+532*us, 64)
			p.Send(world, 2, t0+540*us, t0+550*us, 100)
		case 2:
			p.Recv(world, 1, t0+540*us, t0+551*us, 100)
		}
		p.Destroy(world, t0+600*us)
		if change != nil {
			change(r, p)
		}
	})
}

// Locations of makeJob's archives.
func thread(rank int) otf2.LocationRef { return otf2.LocationRef(rank) }
func stream(rank int) otf2.LocationRef { return 1<<32 | otf2.LocationRef(rank) }

// sample is an archive in memory, to be altered and written again.
type sample struct {
	t       testing.TB
	anchor  otf2.Anchor
	defs    *otf2.Definitions
	events  map[otf2.LocationRef][]otf2.Event
	markers []otf2.Marker
	drop    map[otf2.LocationRef]bool // event files not to write
	raw     func(dir string)          // alters the written files
}

func load(t testing.TB, path string) *sample {
	t.Helper()
	a, err := otf2.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	s := &sample{
		t: t, anchor: *a.Anchor, defs: a.Defs, events: make(map[otf2.LocationRef][]otf2.Event),
		drop: make(map[otf2.LocationRef]bool),
	}
	for _, l := range a.Defs.Locations {
		for ev, err := range a.EventsOf(l.Self) {
			if err != nil {
				t.Fatal(err)
			}
			s.events[l.Self] = append(s.events[l.Self], ev.Clone())
		}
	}
	return s
}

// find returns the n-th event of a kind at a location.
func (s *sample) find(l otf2.LocationRef, kind otf2.EventKind, n int) *otf2.Event {
	return &s.events[l][s.index(l, kind, n)]
}

func (s *sample) index(l otf2.LocationRef, kind otf2.EventKind, n int) int {
	for i := range s.events[l] {
		if s.events[l][i].Kind == kind {
			if n == 0 {
				return i
			}
			n--
		}
	}
	s.t.Fatalf("location %d has no such %v", l, kind)
	return 0
}

// remove takes events away; the definition's count follows.
func (s *sample) remove(l otf2.LocationRef, from, n int) {
	s.events[l] = append(s.events[l][:from:from], s.events[l][from+n:]...)
	s.recount()
}

func (s *sample) insert(l otf2.LocationRef, at int, ev otf2.Event) {
	ev.Location = l
	rest := append([]otf2.Event{ev}, s.events[l][at:]...)
	s.events[l] = append(s.events[l][:at:at], rest...)
	s.recount()
}

func (s *sample) recount() {
	for i := range s.defs.Locations {
		l := &s.defs.Locations[i]
		l.Events = uint64(len(s.events[l.Self]))
	}
}

func (s *sample) property(name, value string) {
	for i := range s.anchor.Properties {
		if s.anchor.Properties[i].Name == name {
			s.anchor.Properties[i].Value = value
			return
		}
	}
	s.anchor.Properties = append(s.anchor.Properties, otf2.Property{Name: name, Value: value})
}

// write puts the archive into a new directory and returns the path of its anchor.
func (s *sample) write() string {
	s.t.Helper()
	must := func(err error) {
		s.t.Helper()
		if err != nil {
			s.t.Fatal(err)
		}
	}
	dir := s.t.TempDir()
	must(os.Mkdir(filepath.Join(dir, "traces"), 0o777))
	d := s.defs
	w, err := otf2.CreateGlobalDefWriter(filepath.Join(dir, "traces.def"), s.anchor.DefChunkSize)
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
		must(w.Region(x.Self, x.Name, x.CanonicalName, x.Description, x.Role, x.Paradigm, x.Flags, x.SourceFile, x.BeginLine, x.EndLine))
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
	if s.anchor.GlobalDefs != 12345 { // a number that a test set
		s.anchor.GlobalDefs = w.Count()
	}
	must(w.Close())
	for _, l := range d.Locations {
		if s.drop[l.Self] {
			continue
		}
		s.drop[l.Self] = true // a test may define it twice
		path := filepath.Join(dir, "traces", strconv.FormatUint(uint64(l.Self), 10)+".evt")
		w, err := otf2.CreateEventWriter(path, &otf2.EventWriterOptions{ChunkSize: s.anchor.EventChunkSize})
		must(err)
		for i := range s.events[l.Self] {
			ev := &s.events[l.Self][i]
			var a otf2.AttributeList
			for _, v := range ev.Attributes {
				a.Add(v.ID, v.Type, v.Value())
			}
			must(w.Write(ev.Kind, ev.Time, &a, ev.Args))
		}
		must(w.Close())
	}
	if len(s.markers) > 0 {
		w, err := otf2.CreateMarkerWriter(filepath.Join(dir, "traces.marker"), s.anchor.DefChunkSize)
		must(err)
		must(w.DefMarker(0, "test", "test", otf2.MarkerSeverityLow))
		for _, m := range s.markers {
			must(w.Marker(m.Time, m.Duration, m.Marker, m.ScopeType, m.Scope, m.Text))
		}
		must(w.Close())
	}
	if s.raw != nil {
		s.raw(dir)
	}
	anchor := filepath.Join(dir, "traces.otf2")
	must(otf2.WriteAnchor(anchor, &s.anchor))
	return anchor
}

// patch alters a location's event file.
func (s *sample) patch(l otf2.LocationRef, change func(b []byte) []byte) {
	s.raw = func(dir string) {
		path := filepath.Join(dir, "traces", strconv.FormatUint(uint64(l), 10)+".evt")
		b, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, change(b), 0o666)
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
}
