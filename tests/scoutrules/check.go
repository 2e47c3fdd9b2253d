// SPDX-License-Identifier: Apache-2.0

// Package scoutrules says whether scout.mpi of Scalasca 2.6 can analyze an archive, by doing what it does: what its
// source demands, and a replay of the communication. Tests of the views for Scalasca use it in place of scout, which
// few machines have; TestRealScout compares the two.
package scoutrules

import (
	"path/filepath"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/check"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/membership"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// The rules that Check knows beside those of package check: what scout of Scalasca 2.6 needs. Breaking one ends its
// analysis, hangs it, or leaves the results empty. Each was tried with Scalasca 2.6, or read in its source; the
// file that the requirement stands in is named.
const (
	ruleScoutAnchor        check.Rule = "scout-anchor"         // name and version of the archive (TraceArchive.cpp)
	ruleScoutLocation      check.Rule = "scout-location"       // locations other than CPU threads (Otf2DefCallbacks.cpp)
	ruleScoutGroup         check.Rule = "scout-location-group" // location groups that are no processes, not numbered, empty (ReadTraceTask.cpp)
	ruleScoutSystem        check.Rule = "scout-system-tree"    // groups without a node; ids not numbered (ReportWriterTask.cpp, DefsFactory.cpp)
	ruleScoutParadigm      check.Rule = "scout-paradigm"       // lists of locations of a paradigm: two, or none (MutableGlobalDefs.cpp)
	ruleScoutCommunicator  check.Rule = "scout-communicator"   // not MPI's, or a parent that is not defined before (MpiEventFactory.cpp, DefsFactory.cpp)
	ruleScoutNesting       check.Rule = "scout-nesting"        // regions that are not left (pearl_base.cpp)
	ruleScoutCollective    check.Rule = "scout-collective"     // begin and end are no pair; operations of OTF2 3 (Event.cpp, Otf2TypeHelpers.cpp)
	ruleScoutProgram       check.Rule = "scout-program"        // ProgramBegin without its region (Otf2EvtCallbacks.cpp)
	ruleScoutRegion        check.Rule = "scout-region"         // regions that are to be MPI's, and are not named so (Region.cpp)
	ruleScoutInit          check.Rule = "scout-init"           // ranks without MPI_Init or MPI_Finalize (SynchpointHandler.cpp)
	ruleScoutReplay        check.Rule = "scout-replay"         // the replay would hang (MpiCommunicationHandler.cpp)
	ruleScoutMessage       check.Rule = "scout-message"        // messages that nobody receives (MpiCommunicationHandler.cpp)
	ruleScoutTag           check.Rule = "scout-tag"            // messages that scout takes for its own (MpiDelayOps.cpp)
	RuleScoutClock         check.Rule = "scout-clock"          // times that contradict each other
	ruleScoutPayload       check.Rule = "scout-payload"        // operations without bytes have no wait states
	ruleScoutTimeCorrected check.Rule = "scout-time-correct"   // what --time-correct needs (Location.cpp)
)

// Check holds an archive against what scout of Scalasca 2.6 needs. It reads all events once, in time order,
// and replays their communication as scout does. What scout bears, but without use, is a note.
//
// The error is that of opening the archive.
func Check(anchorPath string, opts *check.Options) (*check.Result, error) {
	a, fs, err := check.OpenForCheck(anchorPath, opts)
	if err != nil {
		return nil, err
	}
	defer a.Close()
	if name := filepath.Base(anchorPath); !strings.HasSuffix(name, ".otf2") {
		fs.General(ruleScoutAnchor, "the anchor's name, %s, does not end in .otf2", name)
	}
	if v := a.Anchor.Version; v[0] < 1 || v[0] == 1 && v[1] < 2 {
		fs.General(ruleScoutAnchor, "the archive is of OTF2 %d.%d; scout reads those of 1.2 and later", v[0], v[1])
	}
	c := newScoutCheck(fs, a)
	c.definitions()
	for ev, err := range a.Events(nil) {
		if err != nil {
			fs.General(check.RuleFile, "%v", err)
			continue
		}
		c.events++
		if t := c.tracks[ev.Location]; t != nil {
			c.event(t, ev)
		}
	}
	c.end()
	return fs.Result(c.events), nil
}

// scoutCheck follows the archive as scout reads it.
type scoutCheck struct {
	*check.Findings
	defs   *otf2.Definitions
	comms  map[otf2.CommRef]*membership.Communicator
	tracks map[otf2.LocationRef]*scoutTrack
	order  []*scoutTrack
	// canonical names without "MPI_", in small letters, of regions that scout takes for MPI's
	mpi    map[otf2.RegionRef]string
	events uint64
	replay *scoutReplay
	clock  *scoutClock
}

// scoutFrame is an open region.
type scoutFrame struct {
	region otf2.RegionRef
	at     otf2.Timestamp
}

// scoutTrack is one location, as scout follows it: the first of its location group.
type scoutTrack struct {
	location       otf2.LocationRef
	group          otf2.LocationGroupRef
	events         uint64
	time           otf2.Timestamp
	stack          []scoutFrame
	begun          bool // a collective
	began          otf2.Timestamp
	init, finalize bool
	replay         rankReplay
	notices        rankNotices
}

// entered is when the innermost region was entered.
func (t *scoutTrack) entered() otf2.Timestamp {
	if len(t.stack) == 0 {
		return t.time
	}
	return t.stack[len(t.stack)-1].at
}

func (t *scoutTrack) here() check.Place {
	return check.Place{Location: t.location, Event: t.events, Time: t.time}
}

func newScoutCheck(fs *check.Findings, a *otf2.Archive) *scoutCheck {
	c := &scoutCheck{
		Findings: fs, defs: a.Defs, comms: membership.AllCommunicators(a.Defs),
		tracks: make(map[otf2.LocationRef]*scoutTrack),
		mpi:    make(map[otf2.RegionRef]string), clock: newScoutClock(),
	}
	c.replay = newScoutReplay(c)
	return c
}

func (c *scoutCheck) definitions() {
	c.locations()
	c.systemTree()
	c.paradigms()
	for _, r := range c.defs.Regions {
		if c.defs.String(r.SourceFile) != "MPI" {
			continue
		}
		name := c.defs.String(r.CanonicalName)
		if len(name) < 4 {
			c.General(
				ruleScoutRegion,
				"region %d has source file MPI and the canonical name %q: it must have 4 characters at least", r.Self,
				name)
			continue
		}
		c.mpi[r.Self] = strings.ToLower(name[4:])
	}
}

func (c *scoutCheck) locations() {
	first := make(map[otf2.LocationGroupRef]otf2.LocationRef)
	more := 0
	for _, l := range c.defs.Locations {
		if l.Type != otf2.LocationTypeCPUThread {
			c.General(ruleScoutLocation, "location %d is of type %v: scout takes CPU_THREAD only", l.Self, l.Type)
		}
		if _, ok := first[l.Group]; ok {
			more++
			continue
		}
		first[l.Group] = l.Self
		t := &scoutTrack{location: l.Self, group: l.Group}
		c.tracks[l.Self] = t
		c.order = append(c.order, t)
	}
	if more > 0 {
		c.Add(check.Finding{Severity: check.Note, Rule: ruleScoutLocation,
			Text: "location groups have further locations, which scout.mpi does not look at"})
	}
	for i, g := range c.defs.LocationGroups {
		if g.Type != otf2.LocationGroupTypeProcess {
			c.General(ruleScoutGroup, "location group %d is of type %v: scout takes PROCESS only", g.Self, g.Type)
		}
		if uint64(g.Self) != uint64(i) {
			c.General(
				ruleScoutGroup,
				"location group %d stands at place %d: rank r of scout reads the group with id r, so ids must be 0, "+
					"1, 2, …", g.Self, i)
		}
		if _, ok := first[g.Self]; !ok {
			c.General(ruleScoutGroup, "location group %d has no location", g.Self)
		}
	}
	if len(c.defs.LocationGroups) == 0 {
		c.General(ruleScoutGroup, "there is no location group: scout has nothing to do")
	}
}

func (c *scoutCheck) systemTree() {
	numbered := func(kind string, n int, self func(i int) uint64) {
		for i := range n {
			if self(i) != uint64(i) {
				c.General(ruleScoutSystem, "%s %d stands at place %d: ids must be 0, 1, 2, …", kind, self(i), i)
				return
			}
		}
	}
	nodes := c.defs.SystemTreeNodes
	numbered("system tree node", len(nodes), func(i int) uint64 { return uint64(nodes[i].Self) })
	numbered("region", len(c.defs.Regions), func(i int) uint64 { return uint64(c.defs.Regions[i].Self) })
	known, classes := make(map[otf2.SystemTreeNodeRef]bool), make(map[string]bool)
	for _, n := range nodes {
		if n.Parent != otf2.UndefinedSystemTreeNode && !known[n.Parent] {
			c.General(ruleScoutSystem, "system tree node %d stands before its parent %d", n.Self, n.Parent)
		}
		known[n.Self] = true
		classes[c.defs.String(n.Class)] = true
	}
	for _, g := range c.defs.LocationGroups {
		if !known[g.SystemTreeParent] {
			c.General(ruleScoutSystem, "location group %d has no node in the system tree", g.Self)
		}
	}
	for _, class := range []string{"machine", "node"} {
		if !classes[class] {
			c.Add(check.Finding{Severity: check.Note, Rule: ruleScoutTimeCorrected,
				Text: "no node of the system tree is of class " + class + ": scout --time-correct ends with an error"})
		}
	}
}

// newestOfOTF2x is the last paradigm of OTF2 2.x; scout takes all later ones for "unknown".
const newestOfOTF2x = otf2.ParadigmSampling

func (c *scoutCheck) paradigms() {
	seenAs := func(p otf2.Paradigm) otf2.Paradigm {
		if p > newestOfOTF2x {
			return otf2.ParadigmUnknown
		}
		return p
	}
	lists := make(map[otf2.Paradigm]otf2.GroupRef)
	for _, g := range c.defs.Groups {
		if g.Type != otf2.GroupTypeCommLocations {
			continue
		}
		if other, twice := lists[seenAs(g.Paradigm)]; twice {
			c.General(ruleScoutParadigm, "groups %d and %d both list the locations of paradigm %v, as scout sees it",
				other, g.Self, seenAs(g.Paradigm))
		}
		lists[seenAs(g.Paradigm)] = g.Self
	}
	for _, g := range c.defs.Groups {
		if _, ok := lists[seenAs(g.Paradigm)]; g.Type == otf2.GroupTypeCommGroup && !ok {
			c.General(ruleScoutParadigm, "group %d is a communicator's of paradigm %v, which has no list of locations",
				g.Self, g.Paradigm)
		}
	}
	for _, d := range c.defs.Comms {
		g := c.defs.Group(d.Group)
		switch {
		case g == nil || g.Type != otf2.GroupTypeCommGroup && g.Type != otf2.GroupTypeCommSelf:
			c.General(ruleScoutCommunicator, "communicator %d has no group of members", d.Self)
			continue
		case d.Parent == otf2.UndefinedComm:
			continue
		}
		parent := c.defs.Comm(d.Parent)
		switch {
		case parent == nil || d.Parent >= d.Self:
			c.General(ruleScoutCommunicator, "communicator %d: its parent %d must be defined and have a smaller id",
				d.Self, d.Parent)
		case c.paradigmOf(parent) != g.Paradigm:
			c.General(ruleScoutCommunicator, "communicator %d is of paradigm %v, its parent %d of another", d.Self,
				g.Paradigm, d.Parent)
		}
	}
	for _, d := range c.defs.InterComms {
		c.General(ruleScoutCommunicator, "communicator %d is between two groups, which scout does not know", d.Self)
	}
}

func (c *scoutCheck) paradigmOf(d *otf2.Comm) otf2.Paradigm {
	if g := c.defs.Group(d.Group); g != nil {
		return g.Paradigm
	}
	return otf2.ParadigmUnknown
}

// event looks at the next event of a location.
func (c *scoutCheck) event(t *scoutTrack, ev *otf2.Event) {
	t.events++
	t.time = ev.Time
	switch ev.Kind {
	case otf2.EventEnter:
		region := otf2.RegionRef(ev.Args[0])
		t.stack = append(t.stack, scoutFrame{region, ev.Time})
		switch c.mpi[region] {
		case "init", "init_thread":
			t.init = true
		case "finalize":
			t.finalize = true
		}
	case otf2.EventLeave:
		n := len(t.stack)
		if n == 0 || t.stack[n-1].region != otf2.RegionRef(ev.Args[0]) {
			c.At(check.Error, t.here(), ruleScoutNesting, "leaves region %d, which is not the innermost", ev.Args[0])
			t.stack = nil
			return
		}
		c.replay.notices.leave(t, c.mpi[t.stack[n-1].region], ev.Time)
		t.stack = t.stack[:n-1]
	case otf2.EventProgramBegin:
		c.program(t, ev)
	case otf2.EventMpiCollectiveBegin:
		if t.begun {
			c.At(check.Error, t.here(), ruleScoutCollective, "a collective begins in another one")
		}
		t.begun, t.began = true, ev.Time
		c.inMPI(t)
	case otf2.EventMpiCollectiveEnd:
		if !t.begun {
			c.At(check.Error, t.here(), ruleScoutCollective, "a collective ends that has not begun")
		}
		t.begun = false
		c.inMPI(t)
		op := otf2.CollectiveOp(ev.Args[0])
		if op > otf2.CollectiveOpReduceScatterBlock {
			c.At(check.Error, t.here(), ruleScoutCollective, "scout does not know the collective operation %v", op)
		}
		if op != otf2.CollectiveOpBarrier && ev.Args[3] == 0 && ev.Args[4] == 0 && c.decides(t, ev) {
			c.At(check.Note, t.here(), ruleScoutPayload, "%v without bytes: it has no wait states", op)
		}
		c.replay.collective(t, ev)
	case otf2.EventMpiSend, otf2.EventMpiIsend:
		c.inMPI(t)
		if ev.Args[3] == 0 {
			c.At(check.Note, t.here(), ruleScoutPayload, "message without bytes")
		}
		c.replay.send(t, ev)
	case otf2.EventMpiRecv, otf2.EventMpiIrecv:
		c.inMPI(t)
		c.replay.receive(t, ev)
	case otf2.EventMpiIsendComplete:
		c.inMPI(t)
		c.replay.notices.sent(t, ev.Args[0])
	case otf2.EventMpiIrecvRequest:
		c.inMPI(t)
		c.replay.notices.request(t, ev.Args[0])
	}
}

// decides reports whether the bytes of this member decide on wait states: the root's, if there is one.
func (c *scoutCheck) decides(t *scoutTrack, ev *otf2.Event) bool {
	comm := c.comms[otf2.CommRef(ev.Args[1])]
	root := uint32(ev.Args[2])
	return comm == nil || root == otf2.CollectiveRootNone || int64(comm.RankOf(t.location)) == int64(root)
}

// inMPI checks that a record of MPI stands in a region that scout takes for MPI's.
func (c *scoutCheck) inMPI(t *scoutTrack) {
	n := len(t.stack)
	if n == 0 {
		c.At(check.Error, t.here(), ruleScoutRegion, "a record of MPI outside all regions")
		return
	}
	if _, ok := c.mpi[t.stack[n-1].region]; !ok {
		c.At(check.Error, t.here(), ruleScoutRegion,
			"a record of MPI in region %d, whose source file is not \"MPI\": its metrics would all be 0",
			t.stack[n-1].region)
	}
}

// program checks that a ProgramBegin has its region.
func (c *scoutCheck) program(t *scoutTrack, ev *otf2.Event) {
	words := []string{c.defs.String(otf2.StringRef(ev.Args[0]))}
	for _, a := range ev.Args[2:] {
		words = append(words, c.defs.String(otf2.StringRef(a)))
	}
	command := strings.Join(words, " ")
	for _, r := range c.defs.Regions {
		if r.Role == otf2.RegionRoleArtificial && r.Paradigm == otf2.ParadigmMeasurementSystem &&
			c.defs.String(r.Name) == filepath.Base(words[0]) && c.defs.String(r.CanonicalName) == command {
			return
		}
	}
	c.At(check.Error, t.here(), ruleScoutProgram,
		"ProgramBegin of %q, which has no region (ARTIFICIAL, MEASUREMENT_SYSTEM, named after the program)", command)
}

func (c *scoutCheck) end() {
	for _, t := range c.order {
		if len(t.stack) > 0 {
			c.At(check.Error, t.here(), ruleScoutNesting, "ends in region %d", t.stack[len(t.stack)-1].region)
		}
		if t.begun {
			c.At(check.Error, t.here(), ruleScoutCollective, "ends in a collective")
		}
		for _, need := range []struct {
			name string
			has  bool
		}{{"MPI_Init", t.init}, {"MPI_Finalize", t.finalize}} {
			if !need.has {
				c.At(check.Error, check.Place{Location: t.location}, ruleScoutInit,
					"rank %d has no region %s: the analysis of critical paths and root causes aborts", t.group,
					need.name)
			}
		}
	}
	c.replay.end()
	c.clock.end(c.Findings, c.defs.Clock.Resolution)
}
