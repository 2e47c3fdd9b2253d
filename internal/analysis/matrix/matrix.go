// SPDX-License-Identifier: Apache-2.0

// Package matrix finds who sent how much to whom: the network traffic if transfers were recorded, and otherwise what
// the operations amount to.
package matrix

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/placement"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/selection"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/selfreport"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/membership"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Report says who sent how much to whom: the network traffic of communicators with recorded transfers, and what the
// operations of the others amount to.
type Report struct {
	// Networks has the transfers of each communicator with recorded transfers, by its ranks.
	Networks []NetworkMatrix `json:"networks"`
	// Ranks, Hosts and Channels sum up the transfers of all communicators.
	Ranks    []Flow        `json:"ranks"`
	Hosts    []Flow        `json:"hosts"`
	Channels []ChannelFlow `json:"channels"`
	// Nominal and NominalHosts cover the communicators without recorded transfers: what each rank would send to every
	// other if all operations were done without intermediaries. NCCL's algorithms route the bytes differently.
	Nominal      []Flow `json:"nominal"`
	NominalHosts []Flow `json:"nominal_hosts"`
	// Summed counts the transfers that were not recorded individually.
	Summed uint64 `json:"-"`
	// Remarks say what the report leaves out.
	Remarks  []string `json:"remarks"`
	Problems []string `json:"problems"`
}

// Flow is what one rank or host sent to another. In nominal flows Transfers counts operations, and there are no times.
type Flow struct {
	From     string `json:"from"`
	FromHost string `json:"from_host"`
	To       string `json:"to"`
	ToHost   string `json:"to_host"`
	Traffic
	// Busy is the time during which at least one of the transfers was under way, and Bandwidth (GB/s) is the bytes
	// divided by that. Both are unknown for transfers without an end.
	Busy      uint64  `json:"busy_ns"`
	Bandwidth float64 `json:"bandwidth"`
}

// ChannelFlow is the traffic on one channel of a communicator, all ranks together.
type ChannelFlow struct {
	Communicator string       `json:"communicator"`
	Comm         otf2.CommRef `json:"comm"`    // of the network
	Channel      int          `json:"channel"` // −1: unknown
	Traffic
	Busy      uint64  `json:"busy_ns"`
	Bandwidth float64 `json:"bandwidth"`
}

// Read reads all events and sums up what ranks sent each other. Files that cannot be read to their end are named in
// Problems; what was read from them counts.
//
// It covers the selected transfers and operations; transfers are selected by where and when they were handed to the
// network.
func Read(a *otf2.Archive, selected *selection.Selection) *Report {
	m := newMatrix(a.Defs)
	m.selected = selected
	lanes := analysis.LanesOf(a.Defs)
	readers := make([]*matrixLane, len(lanes))
	for i := range readers {
		readers[i] = m.lane()
		readers[i].operations.Sums = readers[i].sums
	}
	problems := analysis.ReadLanes(a, lanes, func(i int, ev *otf2.Event, done []transfer) []transfer {
		return readers[i].event(ev, done)
	}, m.add)
	for _, r := range readers {
		r.done = nil
		for _, t := range r.operations.Unended() { // they have bytes but no time
			if selected.At(t.Location, t.Begin) {
				r.transfer(&t)
				m.unended++
			}
		}
		for i := range r.done {
			m.add(&r.done[i])
		}
		m.nominal.addLane(r.nominal)
		m.addSums(r.summed)
	}
	r := m.result(selfreport.PropertiesOf(a.Anchor))
	r.Problems = append(r.Problems, problems...)
	return r
}

// transfer is a transfer that has ended, or will never end.
type transfer struct {
	facts.Transfer
	network *networkCount
	from    int // rank of the communicator; −1: unknown
}

// matrix sums up transfers.
type matrix struct {
	defs     *otf2.Definitions
	windows  map[otf2.RmaWinRef]*membership.Communicator
	ranks    map[otf2.LocationRef]int
	networks map[otf2.CommRef]*networkCount
	rows     map[otf2.CommRef]*membership.Communicator // communicators of the networks
	comms    map[otf2.CommRef]*membership.Communicator
	world    []placement.Rank
	worldOf  map[otf2.LocationRef]int
	flows    map[[2]int]*flow // by index in world; −1: an unknown rank
	hosts    map[[2]string]*flow
	channels map[channelKey]*flow
	nominal  *nominal
	unended  uint64
	summed   uint64 // transfers that were recorded as sums
	selected *selection.Selection
}

type channelKey struct {
	network otf2.CommRef
	channel int
}

type flow struct {
	Traffic
	busy   union  // of individual transfers
	single uint64 // number of them
	parts  int    // pairs of row and peer with recorded sums, and how long these were busy
	summed uint64
}

func (f *flow) addTransfer(t *transfer) {
	f.Add(t.Bytes)
	f.single++
	f.busy.add(t.Begin, t.End)
}

// networkCount is the matrix of one communicator under construction.
type networkCount struct {
	NetworkMatrix
	cells  map[[2]int]*Traffic
	parent *membership.Communicator // nil: unknown
}

func (n *networkCount) cell(from, to int) *Traffic { return keyed.Entry(n.cells, [2]int{from, to}) }

func newMatrix(defs *otf2.Definitions) *matrix {
	comms := membership.Communicators(defs)
	m := &matrix{
		defs: defs, windows: membership.Windows(defs), ranks: property.NetworkRanks(defs),
		networks: make(map[otf2.CommRef]*networkCount), comms: comms,
		rows:  make(map[otf2.CommRef]*membership.Communicator),
		flows: make(map[[2]int]*flow), hosts: make(map[[2]string]*flow), channels: make(map[channelKey]*flow),
		nominal: newNominal(),
	}
	m.world, m.worldOf = placement.Ranks(defs, comms)
	for _, c := range m.windows {
		if !c.Network || m.networks[c.Ref] != nil {
			continue
		}
		n := &networkCount{
			NetworkMatrix: NetworkMatrix{Communicator: c.Name[:len(c.Name)-len(membership.NetworkSuffix)], Comm: c.Ref,
				Cells: []Cell{}},
			cells: make(map[[2]int]*Traffic), parent: comms[c.Parent],
		}
		if n.parent != nil {
			n.Communicator, n.Ranks = n.parent.Name, len(n.parent.Members)
		}
		m.networks[c.Ref], m.rows[c.Ref] = n, c
	}
	return m
}

// matrixLane finds the transfers in a lane, and adds up its operations.
type matrixLane struct {
	*matrix
	operations *analysis.OperationReader
	nominal    *nominal
	done       []transfer
	summed     map[summedKey]*summed
}

func (m *matrix) lane() *matrixLane {
	l := &matrixLane{matrix: m, nominal: newNominal(), summed: make(map[summedKey]*summed)}
	l.operations = analysis.NewOperationReader(m.defs, m.comms, func(o *analysis.Operation) {
		if m.selected.Operation(o) && m.selected.Shown(o.Location) {
			l.nominal.add(o)
		}
	})
	l.operations.Transfer = l.transfer
	return l
}

func (l *matrixLane) event(ev *otf2.Event, done []transfer) []transfer {
	l.done = done
	l.operations.Event(ev)
	return l.done
}

// transfer takes a transfer that has ended, unless its network is unknown.
func (l *matrixLane) transfer(t *facts.Transfer) {
	c := l.windows[t.Window]
	if c == nil || !c.Network || !l.selected.At(t.Location, t.Begin) {
		return
	}
	from, known := l.ranks[t.Location]
	if !known {
		from = -1
	}
	l.done = append(l.done, transfer{*t, l.networks[c.Ref], from})
}

// add adds a transfer that has ended.
func (m *matrix) add(t *transfer) {
	n := t.network
	n.Total.Add(t.Bytes)
	n.Ranks = max(n.Ranks, t.To+1, t.from+1)
	keyed.Entry(m.channels, channelKey{n.Comm, int(t.Channel)}).addTransfer(t)
	if t.from < 0 {
		n.UnknownSender.Add(t.Bytes)
	} else {
		n.cell(t.from, t.To).Add(t.Bytes)
	}
	from, to := m.place(n, t.from), m.place(n, t.To)
	keyed.Entry(m.flows, [2]int{from, to}).addTransfer(t)
	keyed.Entry(m.hosts, [2]string{m.host(from), m.host(to)}).addTransfer(t)
}

// place returns the index in world of a communicator's rank, −1 if unknown.
func (m *matrix) place(n *networkCount, rank int) int {
	if n.parent == nil || rank < 0 || rank >= len(n.parent.Members) {
		return -1
	}
	if i, ok := n.parent.WorldIndex(m.worldOf, rank); ok {
		return i
	}
	return -1
}

func (m *matrix) host(world int) string {
	if world < 0 {
		return units.Unknown
	}
	return m.world[world].Host
}

func (m *matrix) name(world int) string {
	if world < 0 {
		return units.Unknown
	}
	return m.world[world].Name
}

// rates returns how long at least one transfer was under way, and the bandwidth in that time. Both are 0 if unknown,
// as for several parts that may have been under way at the same time.
func (f *flow) rates() (busy uint64, bandwidth float64) {
	switch {
	case f.parts == 0:
		busy = f.busy.time()
	case f.parts == 1 && f.single == 0:
		busy = f.summed
	}
	if busy > 0 {
		bandwidth = float64(f.Bytes) / float64(busy) // bytes per ns are GB/s
	}
	return busy, bandwidth
}

func (m *matrix) result(ps selfreport.Properties) *Report {
	r := &Report{Networks: []NetworkMatrix{}, Channels: []ChannelFlow{}, Remarks: []string{}, Problems: []string{}}
	covered := make(map[otf2.CommRef]bool)
	var unknown Traffic
	for _, n := range m.networks {
		for at, t := range n.cells {
			n.Cells = append(n.Cells, Cell{at[0], at[1], *t})
		}
		slices.SortFunc(n.Cells, func(a, b Cell) int {
			return cmp.Or(
				cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
		})
		r.Networks = append(r.Networks, n.NetworkMatrix)
		if n.parent != nil {
			covered[n.parent.Ref] = true
		}
		unknown.Transfers += n.UnknownSender.Transfers
		unknown.Bytes += n.UnknownSender.Bytes
	}
	slices.SortFunc(r.Networks, func(a, b NetworkMatrix) int { return cmp.Compare(a.Comm, b.Comm) })
	r.Ranks = m.rankFlows(m.flows)
	r.Hosts = hostFlows(m.hosts)
	for key, f := range m.channels {
		c := ChannelFlow{Communicator: m.networks[key.network].Communicator, Comm: key.network, Channel: key.channel,
			Traffic: f.Traffic}
		c.Busy, c.Bandwidth = f.rates()
		r.Channels = append(r.Channels, c)
	}
	slices.SortFunc(r.Channels, func(a, b ChannelFlow) int {
		return cmp.Or(cmp.Compare(a.Comm, b.Comm), cmp.Compare(a.Channel, b.Channel))
	})

	nominal, tooLarge, least := m.expand(covered)
	r.Nominal = m.rankFlows(nominal)
	sums := make(map[[2]string]*flow)
	for pair, f := range nominal {
		sum := keyed.Entry(sums, [2]string{m.host(pair[0]), m.host(pair[1])})
		sum.Transfers += f.Transfers
		sum.Bytes += f.Bytes
	}
	r.NominalHosts = hostFlows(sums)

	remark := func(format string, args ...any) { r.Remarks = append(r.Remarks, fmt.Sprintf(format, args...)) }
	if len(r.Networks) > 0 {
		remark("Transfers that proxies made over the network, including the padding of their protocols. Data that " +
			"goes directly from GPU to GPU (NVLink, PCIe, shared memory) is not included.")
	}
	if r.Summed = m.summed; m.summed > 0 {
		remark("Recorded in sums (NCCL_OTF2_EVENTS=net-sums): channels are not known, and for how long there was " +
			"something under way only from rank to rank, in one communicator. Record with NCCL_OTF2_EVENTS=net for " +
			"the rest.")
	}
	if len(r.Nominal) > 0 {
		remark("Nominal: for communicators without recorded transfers, what each rank would send to every other if " +
			"operations had no intermediaries.")
	}
	if unknown.Transfers > 0 {
		remark("Incomplete: the sender of %d transfers, %s, is not known.", unknown.Transfers,
			units.Bytes(unknown.Bytes))
	}
	if m.unended > 0 {
		remark("Incomplete: %d transfers have no end; no time includes them.", m.unended)
	}
	if tooLarge > 0 {
		remark("Incomplete: the nominal matrix leaves out %s of %d or more ranks, which would have too many pairs.",
			units.Count(tooLarge, "communicator", "communicators"), least)
	}
	if lost := selfreport.CountersText(ps.Below(property.Lost)); lost != "none" {
		remark("Incomplete: events were lost: %s.", lost)
	}
	if paused := selfreport.CountersText(ps.Below(property.Paused)); paused != "none" {
		remark("Incomplete: not recorded on request: %s.", paused)
	}
	if missing, _ := ps.Number(property.ProcessesMissing); missing > 0 {
		remark("Incomplete: %s without data.", units.Count(int(missing), "process", "processes"))
	}
	return r
}

func (m *matrix) rankFlows(all map[[2]int]*flow) []Flow {
	out := []Flow{}
	keys := slices.SortedFunc(maps.Keys(all), func(a, b [2]int) int {
		return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]))
	})
	for _, pair := range keys {
		f := all[pair]
		one := Flow{From: m.name(pair[0]), FromHost: m.host(pair[0]), To: m.name(pair[1]), ToHost: m.host(pair[1]),
			Traffic: f.Traffic}
		one.Busy, one.Bandwidth = f.rates()
		out = append(out, one)
	}
	return out
}

func hostFlows(all map[[2]string]*flow) []Flow {
	out := []Flow{}
	for pair, f := range all {
		one := Flow{From: pair[0], FromHost: pair[0], To: pair[1], ToHost: pair[1], Traffic: f.Traffic}
		one.Busy, one.Bandwidth = f.rates()
		out = append(out, one)
	}
	slices.SortFunc(out, func(a, b Flow) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To)) })
	return out
}
