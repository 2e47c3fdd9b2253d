// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs"
	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// seat is an entry of the list of all locations (COMM_LOCATIONS). A location that stands for ranks without data has
// several entries, numbered by n.
type seat struct {
	location otf2.LocationRef
	n        int
}

// seats holds the slots of ranks without data, by communicator and rank.
type seats map[*jobs.Communicator][]jobs.Slot

// defineComms defines the communicators and the windows of their networks. COMM_LOCATIONS lists the
// locations of all communicator ranks by world rank and number in the process, then those that only
// networks have; a COMM_GROUP lists indices into it.
func (d *definer) defineComms() {
	members := make([][]seat, 0, len(d.instances)+len(d.networks.all)+1)
	var idle []seat
	for _, pl := range d.world.Places {
		if pl.Process == nil && pl != d.world.Unknown {
			idle = append(idle, seatsAt(pl)...)
		}
	}
	for _, in := range d.instances {
		members = append(members, d.seats.entriesOf(in))
	}
	list := appendNew(nil, append(members, idle))
	for _, n := range d.networks.all {
		members = append(members, d.networks.members(n))
	}
	if len(members) == 0 {
		return
	}
	list = appendNew(list, members[len(d.instances):])
	index := make(map[seat]uint64, len(list))
	ids := make([]uint64, len(list))
	for i, l := range list {
		index[l], ids[i] = uint64(i), uint64(l.location)
	}
	paradigm := d.commParadigm()
	d.group("", otf2.GroupTypeCommLocations, paradigm, ids)
	known := make(map[string]otf2.GroupRef)
	comm := func(name string, members []seat, parent otf2.CommRef, flags otf2.CommFlag) otf2.CommRef {
		ranks := make([]uint64, len(members))
		var key []byte
		for r, l := range members {
			ranks[r] = index[l]
			key = strconv.AppendUint(append(key, ' '), ranks[r], 36)
		}
		g := keyed.EntryMade(known, string(key),
			func() otf2.GroupRef { return d.group(name, otf2.GroupTypeCommGroup, paradigm, ranks) })
		ref := d.from.comm + otf2.CommRef(len(d.Comms))
		d.Comms = append(d.Comms, otf2.Comm{Self: ref, Name: d.text(name), Group: g, Parent: parent, Flags: flags})
		return ref
	}
	defined := make(map[*jobs.Communicator]bool, len(d.instances))
	for i, in := range d.instances {
		defined[in] = true
		parent := otf2.UndefinedComm
		if in.Parent != nil { // instances lists parents first
			parent = in.Parent.Ref
		}
		in.Ref = comm(in.Name, members[i], parent, otf2.CommFlagCreateDestroyEvents)
	}
	for i, n := range d.networks.all {
		parent := otf2.UndefinedComm
		if n.of != nil && defined[n.of] {
			parent = n.of.Ref
		}
		ref := comm(n.name, members[len(d.instances)+i], parent, otf2.CommFlagNone)
		n.ref = d.from.rmaWin + otf2.RmaWinRef(len(d.RmaWins))
		d.RmaWins = append(d.RmaWins, otf2.RmaWin{Self: n.ref, Name: d.text(n.name), Comm: ref,
			Flags: otf2.RmaWinFlagNone})
	}
}

// seatsAt returns all entries of a place without data.
func seatsAt(pl *jobs.Place) []seat {
	all := make([]seat, pl.Idle)
	for n := range all {
		all[n] = seat{placeLocation(pl), n}
	}
	return all
}

// entriesOf returns the entries of a communicator's ranks, in the order of the ranks.
func (s seats) entriesOf(in *jobs.Communicator) []seat {
	all := make([]seat, in.Nranks)
	for rank := range all {
		all[rank] = s.seatOf(in, rank)
	}
	return all
}

// seatOf returns the entry of one rank.
func (s seats) seatOf(in *jobs.Communicator, rank int) seat {
	if m := in.Members[rank]; m != nil {
		return seat{m.Location, 0}
	}
	slot := s[in][rank]
	return seat{placeLocation(slot.Place), slot.N}
}

// appendNew appends each entry of more that list does not have, once. The appended entries are sorted by number in the
// process, then by process.
func appendNew(list []seat, more [][]seat) []seat {
	known := make(map[seat]bool, len(list))
	for _, l := range list {
		known[l] = true
	}
	n := len(list)
	for _, group := range more {
		for _, l := range group {
			if !known[l] {
				known[l] = true
				list = append(list, l)
			}
		}
	}
	slices.SortFunc(list[n:], func(x, y seat) int {
		return cmp.Or(cmp.Compare(uint32(x.location), uint32(y.location)), cmp.Compare(x.location, y.location),
			cmp.Compare(x.n, y.n))
	})
	return list
}
