// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/facts"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// MatrixReport tells who sent how much to whom: what went over the network, where transfers were recorded, and of
// the other communicators what their operations amount to.
type MatrixReport struct {
	// Networks are the transfers of each communicator that has any recorded, by rank in it.
	Networks []NetworkMatrix `json:"networks"`
	// Ranks, Hosts and Channels sum up the transfers of all communicators.
	Ranks    []Flow        `json:"ranks"`
	Hosts    []Flow        `json:"hosts"`
	Channels []ChannelFlow `json:"channels"`
	// Nominal and NominalHosts are of communicators without recorded transfers: what each rank would send every other
	// if all operations were done without intermediaries. NCCL's algorithms move the bytes on other ways.
	Nominal      []Flow `json:"nominal"`
	NominalHosts []Flow `json:"nominal_hosts"`
	// Remarks say what is not in it.
	Remarks  []string `json:"remarks"`
	Problems []string `json:"problems"`
}

// Flow is what one rank or host sent another. Of nominal ones Transfers are operations, and there are no times.
type Flow struct {
	From     string `json:"from"`
	FromHost string `json:"from_host"`
	To       string `json:"to"`
	ToHost   string `json:"to_host"`
	Traffic
	// Busy is the time during which at least one of the transfers was under way, Bandwidth (GB/s) the bytes by that; of
	// transfers whose end is not there neither is known.
	Busy      uint64  `json:"busy_ns"`
	Bandwidth float64 `json:"bandwidth"`
}

// ChannelFlow is what went over one channel of a communicator, all ranks together.
type ChannelFlow struct {
	Communicator string       `json:"communicator"`
	Comm         otf2.CommRef `json:"comm"`    // of the network
	Channel      int          `json:"channel"` // −1: not told
	Traffic
	Busy      uint64  `json:"busy_ns"`
	Bandwidth float64 `json:"bandwidth"`
}

// Matrix reads all events and sums up what ranks sent each other. Files that cannot be read to their end are named in
// Problems; what was read of them counts.
func Matrix(a *otf2.Archive) *MatrixReport {
	m := newMatrix(a.Defs)
	lanes := lanesOf(a.Defs)
	readers := make([]*matrixLane, len(lanes))
	for i := range readers {
		readers[i] = m.lane()
	}
	problems := readLanes(a, lanes, func(i int, ev *otf2.Event, done []transfer) []transfer {
		return readers[i].event(ev, done)
	}, m.add)
	for _, r := range readers {
		for _, put := range r.open { // without an end: bytes, but no time
			put.end = put.begin
			m.add(&put)
			m.unended++
		}
		m.nominal.absorb(r.nominal)
	}
	r := m.result(propertiesOf(a.Anchor))
	r.Problems = append(r.Problems, problems...)
	return r
}

// transfer is one RmaPut.
type transfer struct {
	network    *networkCount
	from, to   int // ranks of the communicator; from −1: not told
	channel    int
	begin, end otf2.Timestamp
	bytes      uint64

	location otf2.LocationRef // of the sender
	step, qp int              // −1: not told
	parent   uint64           // event of the operation; 0: not told
	ended    bool             // its end is there
}

type putKey struct {
	location otf2.LocationRef
	window   otf2.RmaWinRef
	matching uint64
}

// matrix sums up transfers.
type matrix struct {
	defs     *otf2.Definitions
	windows  map[otf2.RmaWinRef]*facts.Communicator
	ranks    map[otf2.LocationRef]int
	networks map[otf2.CommRef]*networkCount
	rows     map[otf2.CommRef]*facts.Communicator // of the networks
	comms    map[otf2.CommRef]*facts.Communicator
	world    []worldRank
	worldOf  map[otf2.LocationRef]int
	flows    map[[2]int]*flow // by index in world; −1: a rank of which nothing is known
	hosts    map[[2]string]*flow
	channels map[channelKey]*flow
	ids      transferIDs
	qp       attributeID
	nominal  *nominal
	unended  uint64
}

type channelKey struct {
	network otf2.CommRef
	channel int
}

type flow struct {
	Traffic
	busy union
}

func (f *flow) take(t *transfer) {
	f.add(t.bytes)
	f.busy.add(t.begin, t.end)
}

// networkCount is the matrix of one communicator in the making.
type networkCount struct {
	NetworkMatrix
	cells  map[[2]int]*Traffic
	parent *facts.Communicator // nil: not known
}

func newMatrix(defs *otf2.Definitions) *matrix {
	comms := facts.Communicators(defs)
	m := &matrix{
		defs: defs, windows: windows(defs), ranks: facts.NetworkRanks(defs), networks: make(map[otf2.CommRef]*networkCount), comms: comms,
		rows:  make(map[otf2.CommRef]*facts.Communicator),
		flows: make(map[[2]int]*flow), hosts: make(map[[2]string]*flow), channels: make(map[channelKey]*flow),
		ids: findTransferIDs(defs), qp: findAttribute(defs, regions.AttrQP), nominal: newNominal(),
	}
	m.world, m.worldOf = worldRanks(defs, comms)
	for _, c := range m.windows {
		if !c.Network || m.networks[c.Ref] != nil {
			continue
		}
		n := &networkCount{
			NetworkMatrix: NetworkMatrix{Communicator: c.Name[:len(c.Name)-len(facts.NetworkSuffix)], Comm: c.Ref, Cells: []Cell{}},
			cells:         make(map[[2]int]*Traffic), parent: comms[c.Parent],
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
	open       map[putKey]transfer
	operations *operationReader
	nominal    *nominal
}

func (m *matrix) lane() *matrixLane {
	l := &matrixLane{matrix: m, open: make(map[putKey]transfer), nominal: newNominal()}
	l.operations = newOperationReader(m.defs, m.comms, l.nominal.add)
	return l
}

func (l *matrixLane) event(ev *otf2.Event, done []transfer) []transfer {
	switch ev.Kind {
	case otf2.EventRmaPut:
		c := l.windows[otf2.RmaWinRef(ev.Args[0])]
		if c == nil || !c.Network {
			break
		}
		t := transfer{network: l.networks[c.Ref], from: -1, to: int(ev.Args[1]), channel: -1, step: -1, qp: -1, begin: ev.Time, end: ev.Time, bytes: ev.Args[2], location: ev.Location}
		if from, known := l.ranks[ev.Location]; known {
			t.from = from
		}
		for _, f := range [...]struct {
			id attributeID
			to *int
		}{{l.ids.channel, &t.channel}, {l.ids.step, &t.step}, {l.qp, &t.qp}} {
			if v, ok := f.id.of(ev); ok {
				*f.to = int(v)
			}
		}
		t.parent, _ = l.ids.parent.of(ev)
		key := putKey{ev.Location, otf2.RmaWinRef(ev.Args[0]), ev.Args[3]}
		if old, twice := l.open[key]; twice {
			done = append(done, old)
		}
		l.open[key] = t
	case otf2.EventRmaOpCompleteNonBlocking, otf2.EventRmaOpCompleteBlocking:
		key := putKey{ev.Location, otf2.RmaWinRef(ev.Args[0]), ev.Args[1]}
		if t, ok := l.open[key]; ok {
			delete(l.open, key)
			t.end, t.ended = ev.Time, true
			done = append(done, t)
		}
	default:
		l.operations.Event(ev)
	}
	return done
}

// at gives what a map has for a key, which is made if there is none.
func at[K comparable, V any](all map[K]*V, key K) *V {
	v := all[key]
	if v == nil {
		v = new(V)
		all[key] = v
	}
	return v
}

// add takes a transfer that has ended.
func (m *matrix) add(t *transfer) {
	n := t.network
	n.Total.add(t.bytes)
	n.Ranks = max(n.Ranks, t.to+1, t.from+1)
	at(m.channels, channelKey{n.Comm, t.channel}).take(t)
	if t.from < 0 {
		n.UnknownSender.add(t.bytes)
	} else {
		cell := n.cells[[2]int{t.from, t.to}]
		if cell == nil {
			cell = new(Traffic)
			n.cells[[2]int{t.from, t.to}] = cell
		}
		cell.add(t.bytes)
	}
	from, to := m.place(n, t.from), m.place(n, t.to)
	at(m.flows, [2]int{from, to}).take(t)
	at(m.hosts, [2]string{m.host(from), m.host(to)}).take(t)
}

// place is the index in world of a communicator's rank, −1 if it is not known.
func (m *matrix) place(n *networkCount, rank int) int {
	if n.parent == nil || rank < 0 || rank >= len(n.parent.Members) {
		return -1
	}
	if i, ok := n.parent.Place(m.worldOf, rank); ok {
		return i
	}
	return -1
}

func (m *matrix) host(world int) string {
	if world < 0 {
		return notKnown
	}
	return m.world[world].host
}

func (m *matrix) name(world int) string {
	if world < 0 {
		return notKnown
	}
	return m.world[world].name
}

func (f *flow) rates() (busy uint64, bandwidth float64) {
	if busy = f.busy.time(); busy > 0 {
		bandwidth = float64(f.Bytes) / float64(busy) // bytes per ns are GB/s
	}
	return busy, bandwidth
}

func (m *matrix) result(ps properties) *MatrixReport {
	r := &MatrixReport{Networks: []NetworkMatrix{}, Channels: []ChannelFlow{}, Remarks: []string{}, Problems: []string{}}
	covered := make(map[otf2.CommRef]bool)
	var unknown Traffic
	for _, n := range m.networks {
		for at, t := range n.cells {
			n.Cells = append(n.Cells, Cell{at[0], at[1], *t})
		}
		slices.SortFunc(n.Cells, func(a, b Cell) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To)) })
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
		c := ChannelFlow{Communicator: m.networks[key.network].Communicator, Comm: key.network, Channel: key.channel, Traffic: f.Traffic}
		c.Busy, c.Bandwidth = f.rates()
		r.Channels = append(r.Channels, c)
	}
	slices.SortFunc(r.Channels, func(a, b ChannelFlow) int {
		return cmp.Or(cmp.Compare(a.Comm, b.Comm), cmp.Compare(a.Channel, b.Channel))
	})

	nominal, tooLarge := m.expand(covered)
	r.Nominal = m.rankFlows(nominal)
	sums := make(map[[2]string]*flow)
	for pair, f := range nominal {
		sum := at(sums, [2]string{m.host(pair[0]), m.host(pair[1])})
		sum.Transfers += f.Transfers
		sum.Bytes += f.Bytes
	}
	r.NominalHosts = hostFlows(sums)

	remark := func(format string, args ...any) { r.Remarks = append(r.Remarks, fmt.Sprintf(format, args...)) }
	if len(r.Networks) > 0 {
		remark("Transfers of proxies over the network, with the padding of their protocols. What goes from GPU to GPU without (NVLink, PCIe, shared memory) is not in them.")
	}
	if len(r.Nominal) > 0 {
		remark("Nominal: of communicators without recorded transfers; what each rank would send every other if operations had no intermediaries.")
	}
	if unknown.Transfers > 0 {
		remark("Incomplete: of %d transfers, %s, the sender is not known.", unknown.Transfers, formatBytes(unknown.Bytes))
	}
	if m.unended > 0 {
		remark("Incomplete: %d transfers have no end; they are in no time.", m.unended)
	}
	if tooLarge > 0 {
		remark("Incomplete: the nominal matrix leaves out %d communicators of more than %d ranks.", tooLarge, maxNominalRanks)
	}
	if lost := counters(ps.Below(facts.PropLost)); lost != "none" {
		remark("Incomplete: events were lost: %s.", lost)
	}
	if paused := counters(ps.Below(facts.PropPaused)); paused != "none" {
		remark("Incomplete: not recorded on request: %s.", paused)
	}
	if missing, _ := ps.Number(facts.PropProcessesMissing); missing > 0 {
		remark("Incomplete: %s without data.", count(int(missing), "process", "processes"))
	}
	return r
}

func (m *matrix) rankFlows(all map[[2]int]*flow) []Flow {
	out := []Flow{}
	keys := make([][2]int, 0, len(all))
	for pair := range all {
		keys = append(keys, pair)
	}
	slices.SortFunc(keys, func(a, b [2]int) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	for _, pair := range keys {
		f := all[pair]
		one := Flow{From: m.name(pair[0]), FromHost: m.host(pair[0]), To: m.name(pair[1]), ToHost: m.host(pair[1]), Traffic: f.Traffic}
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
