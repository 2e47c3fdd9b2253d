// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"path/filepath"
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// What docs/vampir.md says of an archive, chart by chart: each row has a short name and a place in the system tree,
// each region one group with a name, which is its color; messages have both their ends, and transfers a window; each
// collective has a communicator with the row in it, and one of its ranks as root, the same as on the other members;
// each counter a name and a unit; each marker a kind, a text, a time within the run, and something defined that it is
// about.
func TestWhatVampirNeeds(t *testing.T) {
	t.Parallel()
	rows, messages, transfers := vampirRows, vampirMessages, vampirTransfers
	for name, charts := range map[string][]func(*testing.T, *otf2.Archive){
		"02-allcoll-4p-net":      {rows, messages, transfers, vampirCounters, vampirCollectives, vampirMarkers},
		"05-p2p-3p":              {rows, messages, transfers, vampirCounters, vampirMarkers},
		"07-twocomms-streams":    {rows, messages, transfers, vampirCounters, vampirCollectives},
		"c03-reduce-chain-4p":    {rows, vampirCollectives},
		"c10-missing-4p":         {rows, vampirMarkers},
		"c14-count-mismatch-3p":  {rows, vampirCollectives, vampirMarkers},
		"03-onethread-4r-groups": {rows, vampirCollectives},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folders, err := filepath.Glob("../testdata/nccl-*/" + name)
			testkit.Require(t, err == nil && len(folders) == 1, "%v %v", folders, err)
			rec := testkit.Value(replay.Load(folders[0]))(t)
			dir, _ := play(t, rec)
			a := opened(t, filepath.Join(dir, "traces.otf2"))
			for _, chart := range charts {
				chart(t, a)
			}
		})
	}
}

// maxRowName is as much as a communicator without a name, of a hundred thousand ranks, needs: "comm 722dde9f r99999 net
// send".
const maxRowName = 29

// vampirRows is for timelines and their legend.
func vampirRows(t *testing.T, a *otf2.Archive) {
	for _, l := range a.Defs.Locations {
		name := a.Defs.String(l.Name)
		testkit.Check(t, name != "" && utf8.RuneCountInString(name) <= maxRowName, "row %d is called %q", l.Self, name)
		if g := a.Defs.LocationGroup(l.Group); g == nil || a.Defs.SystemTreeNode(g.SystemTreeParent) == nil {
			t.Errorf("row %d has no place in the system tree", l.Self)
		}
	}
	colors := make(map[otf2.RegionRef]int)
	for _, g := range a.Defs.Groups {
		if g.Type != otf2.GroupTypeRegions {
			continue
		}
		testkit.Check(t, a.Defs.String(g.Name) != "", "group %d of regions has no name", g.Self)
		for _, r := range g.Members {
			colors[otf2.RegionRef(r)]++
		}
	}
	for _, r := range a.Defs.Regions {
		if n := colors[r.Self]; n != 1 {
			t.Errorf("region %s is in %d groups", a.Defs.String(r.Name), n)
		}
	}
}

// vampirMessages is for the message summary and the communication matrix.
func vampirMessages(t *testing.T, a *otf2.Archive) {
	if sends := countOf(a, otf2.EventMpiIsend); sends == 0 || sends != countOf(a, otf2.EventMpiIsendComplete) ||
		sends != countOf(a, otf2.EventMpiIrecv) {
		t.Errorf("%d messages are sent, %d received", sends, countOf(a, otf2.EventMpiIrecv))
	}
}

// vampirTransfers is for those over the network, which recordings need not have.
func vampirTransfers(t *testing.T, a *otf2.Archive) {
	if puts := countOf(a, otf2.EventRmaPut); puts != countOf(a, otf2.EventRmaOpCompleteNonBlocking) || puts > 0 &&
		len(a.Defs.RmaWins) == 0 {
		t.Errorf("%d transfers, %d completed, in %d windows", puts, countOf(a, otf2.EventRmaOpCompleteNonBlocking),
			len(a.Defs.RmaWins))
	}
}

// vampirCounters is for the counter timeline.
func vampirCounters(t *testing.T, a *otf2.Archive) {
	for _, m := range a.Defs.MetricMembers {
		if a.Defs.String(m.Name) == "" || a.Defs.String(m.Unit) == "" {
			t.Errorf("counter %d: name %q, unit %q", m.Self, a.Defs.String(m.Name), a.Defs.String(m.Unit))
		}
	}
	testkit.Check(t, len(a.Defs.MetricMembers) != 0 && countOf(a, otf2.EventMetric) != 0, "there are no counters")
}

// vampirCollectives is for collective operations, which are matched by their order on each member of a communicator.
func vampirCollectives(t *testing.T, a *otf2.Archive) {
	begun, ended := countOf(a, otf2.EventMpiCollectiveBegin), countOf(a, otf2.EventMpiCollectiveEnd)
	testkit.Check(t, begun == ended, "%d collectives begin, %d end", begun, ended)
	asked, complete := countOf(a, otf2.EventNonBlockingCollectiveRequest),
		countOf(a, otf2.EventNonBlockingCollectiveComplete)
	testkit.Check(t, asked == complete, "%d collectives are asked for, %d complete", asked, complete)
	type collective struct {
		Op   otf2.CollectiveOp
		Root uint64
	}
	all := make(map[otf2.CommRef]map[otf2.LocationRef][]collective)
	for ev, err := range a.Events(&otf2.Selection{Kinds: otf2.Kinds(
		otf2.EventMpiCollectiveEnd, otf2.EventNonBlockingCollectiveComplete)}) {
		testkit.Must(t, err)
		c, comm := collective{otf2.CollectiveOp(ev.Args[0]), ev.Args[2]}, otf2.CommRef(ev.Args[1])
		members := membersOf(a, comm)
		testkit.Require(t, slices.Contains(members, uint64(ev.Location)),
			"row %d is no member of communicator %d (%v)", ev.Location, comm, members)
		switch c.Op {
		case otf2.CollectiveOpBcast, otf2.CollectiveOpScatter, otf2.CollectiveOpReduce, otf2.CollectiveOpGather:
			testkit.Check(t, c.Root < uint64(len(members)),
				"row %d: %v with root %d of %d", ev.Location, c.Op, c.Root, len(members))
		default:
			testkit.Equal(t, c.Root, uint64(otf2.CollectiveRootNone), "row %d: %v with root", ev.Location, c.Op)
		}
		if all[comm] == nil {
			all[comm] = make(map[otf2.LocationRef][]collective)
		}
		all[comm][ev.Location] = append(all[comm][ev.Location], c)
	}
	testkit.Check(t, len(all) != 0, "there are no collectives")
	for comm, rows := range all {
		testkit.Check(t, a.Defs.String(a.Defs.Comm(comm).Name) != "", "communicator %d has no name", comm)
		var first []collective
		for _, row := range membersOf(a, comm) {
			if own := rows[otf2.LocationRef(row)]; first == nil {
				first = own
			} else if diff := cmp.Diff(first, own); diff != "" {
				t.Errorf("communicator %d, row %d: %s", comm, row, diff)
			}
		}
	}
}

// membersOf lists the rows of a communicator, by rank.
func membersOf(a *otf2.Archive, comm otf2.CommRef) (rows []uint64) {
	c := a.Defs.Comm(comm)
	if c == nil {
		return nil
	}
	group := a.Defs.Group(c.Group)
	for _, list := range a.Defs.Groups {
		if list.Type == otf2.GroupTypeCommLocations && list.Paradigm == group.Paradigm {
			for _, m := range group.Members {
				rows = append(rows, list.Members[m])
			}
		}
	}
	return rows
}

// vampirMarkers is for the marker view, and for where timelines have them.
func vampirMarkers(t *testing.T, a *otf2.Archive) {
	defs, markers, err := a.Markers()
	testkit.Must(t, err)
	testkit.Check(t, len(markers) != 0, "there are no markers")
	first, last := ^otf2.Timestamp(0), otf2.Timestamp(0)
	for ev, err := range a.Events(nil) {
		testkit.Must(t, err)
		first, last = min(first, ev.Time), max(last, ev.Time)
	}
	for _, m := range markers {
		i := slices.IndexFunc(defs, func(d otf2.MarkerDef) bool { return d.Self == m.Marker })
		testkit.Check(t, i >= 0 && defs[i].Group != "" && defs[i].Category != "" &&
			defs[i].Severity <= otf2.MarkerSeverityHigh, "marker %q has no kind: %+v", m.Text, defs)
		testkit.Check(t, m.Text != "" && m.Time >= first && m.Time <= last && m.Duration <= uint64(last-m.Time),
			"marker %q is at %d for %d, events are at %d to %d", m.Text, m.Time, m.Duration, first, last)
		about := false
		switch m.ScopeType {
		case otf2.MarkerScopeGlobal:
			about = m.Scope == 1<<64-1
		case otf2.MarkerScopeLocation:
			about = a.Defs.Location(otf2.LocationRef(m.Scope)) != nil
		case otf2.MarkerScopeLocationGroup:
			about = a.Defs.LocationGroup(otf2.LocationGroupRef(m.Scope)) != nil
		case otf2.MarkerScopeComm:
			about = a.Defs.Comm(otf2.CommRef(m.Scope)) != nil
		}
		testkit.Check(t, about, "marker %q is about %v %d", m.Text, m.ScopeType, m.Scope)
	}
}
