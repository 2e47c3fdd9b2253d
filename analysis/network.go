// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"cmp"
	"slices"

	"ncclotf2/otf2"
)

// rankProperty is the property of a network location that tells whose transfers it shows: a rank in the
// communicator whose network it is.
const rankProperty = prefix + "RANK"

// windows resolves the communicator of each RMA window; those without one are left out.
func windows(defs *otf2.Definitions) map[otf2.RmaWinRef]*communicator {
	comms := allCommunicators(defs)
	all := make(map[otf2.RmaWinRef]*communicator, len(defs.RmaWins))
	for _, w := range defs.RmaWins {
		if c := comms[w.Comm]; c != nil {
			all[w.Self] = c
		}
	}
	return all
}

// NetworkMatrix is what the ranks of one communicator sent each other over the network, as their
// proxies saw it: transfers of all protocols with their padding, and of collectives as well as of
// messages. Transfers within a machine that use no network are not in it.
type NetworkMatrix struct {
	Communicator string       `json:"communicator"` // that the network belongs to
	Comm         otf2.CommRef `json:"comm"`         // of the network
	// Ranks that any transfer names, or that the communicator is known to have.
	Ranks int    `json:"ranks"`
	Cells []Cell `json:"cells"` // by sender and receiver; only those with transfers
	// UnknownSender are transfers of senders whose rank was not told; they are in no cell.
	UnknownSender Traffic `json:"unknown_sender"`
	Total         Traffic `json:"total"`
}

// Cell is what one rank sent another.
type Cell struct {
	From int `json:"from"`
	To   int `json:"to"`
	Traffic
}

// Traffic is a number of transfers and their bytes together.
type Traffic struct {
	Transfers uint64 `json:"transfers"`
	Bytes     uint64 `json:"bytes"`
}

func (t *Traffic) add(bytes uint64) {
	t.Transfers++
	t.Bytes += bytes
}

// Network sums up the transfers (RmaPut) in the archive's networks, by communicator. It reads all
// events once. Files that cannot be read to their end are named in problems; what was read of them
// counts.
func Network(a *otf2.Archive) (matrices []NetworkMatrix, problems []string) {
	n := newNetworkCounter(a.Defs)
	for ev, err := range a.Events(nil) {
		if err != nil {
			problems = append(problems, err.Error())
			continue
		}
		n.event(ev)
	}
	return n.result(), problems
}

type networkCounter struct {
	windows map[otf2.RmaWinRef]*communicator
	ranks   map[otf2.LocationRef]int
	all     map[otf2.CommRef]*networkCount
}

// networkCount is a matrix in the making.
type networkCount struct {
	NetworkMatrix
	cells map[[2]int]*Traffic
}

func newNetworkCounter(defs *otf2.Definitions) *networkCounter {
	n := &networkCounter{
		windows: windows(defs), ranks: networkRanks(defs), all: make(map[otf2.CommRef]*networkCount),
	}
	for _, c := range n.windows {
		if !c.network || n.all[c.ref] != nil {
			continue
		}
		name, ranks := c.name[:len(c.name)-len(networkSuffix)], 0
		if parent := defs.Comm(c.parent); parent != nil {
			name = defs.String(parent.Name)
			if g := defs.Group(parent.Group); g != nil {
				ranks = len(g.Members)
			}
		}
		n.all[c.ref] = &networkCount{
			NetworkMatrix: NetworkMatrix{Communicator: name, Comm: c.ref, Ranks: ranks, Cells: []Cell{}},
			cells:         make(map[[2]int]*Traffic),
		}
	}
	return n
}

func (n *networkCounter) event(ev *otf2.Event) {
	if ev.Kind != otf2.EventRmaPut {
		return
	}
	c := n.windows[otf2.RmaWinRef(ev.Args[0])]
	if c == nil || !c.network {
		return
	}
	m, to, bytes := n.all[c.ref], int(ev.Args[1]), ev.Args[2]
	m.Total.add(bytes)
	m.Ranks = max(m.Ranks, to+1)
	from, known := n.ranks[ev.Location]
	if !known {
		m.UnknownSender.add(bytes)
		return
	}
	m.Ranks = max(m.Ranks, from+1)
	t := m.cells[[2]int{from, to}]
	if t == nil {
		t = new(Traffic)
		m.cells[[2]int{from, to}] = t
	}
	t.add(bytes)
}

func (n *networkCounter) result() []NetworkMatrix {
	all := make([]NetworkMatrix, 0, len(n.all))
	for _, m := range n.all {
		for at, t := range m.cells {
			m.Cells = append(m.Cells, Cell{at[0], at[1], *t})
		}
		slices.SortFunc(m.Cells, func(a, b Cell) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To)) })
		all = append(all, m.NetworkMatrix)
	}
	slices.SortFunc(all, func(a, b NetworkMatrix) int { return cmp.Compare(a.Comm, b.Comm) })
	return all
}
