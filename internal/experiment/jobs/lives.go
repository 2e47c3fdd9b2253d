// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/loss"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/provenance"
	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Piece is what one collector wrote of a process: a shard, whose ids are mapped to those of the whole process.
type Piece struct {
	Dir     string
	Shard   *description.Process
	State   State
	Numbers map[uint32]uint32 // of locations
	Maps    []*otf2.MappingTable
}

// joinLives joins the shards of each process in which a collector died and another took over.
func joinLives(parts []*Process) []*Process {
	byUUID := make(map[string]*Process)
	for _, p := range parts {
		byUUID[p.Shard.UUID] = p
	}
	before := func(p *Process) *Process {
		q := byUUID[p.Shard.Settings[description.SettingContinues]]
		if q == nil || q == p || LifeOf(q.Shard) != LifeOf(p.Shard) {
			return nil
		}
		return q
	}
	inside := make(map[*Process]bool) // another shard continues it
	for _, p := range parts {
		if q := before(p); q != nil {
			inside[q] = true
		}
	}
	var all []*Process
	for _, p := range parts {
		if inside[p] {
			continue
		}
		chain := []*Process{p}
		for q := before(p); q != nil && !slices.Contains(chain, q); q = before(q) {
			chain = append(chain, q)
		}
		slices.Reverse(chain)
		if len(chain) > 1 {
			p = joinLife(chain)
		}
		all = append(all, p)
	}
	return all
}

// joinLife joins the shards of one process, in their order.
func joinLife(chain []*Process) *Process {
	last := chain[len(chain)-1]
	j := newJoined(last.Shard)
	joined := &Process{dir: last.dir, State: last.State, Shard: &j.process}
	j.process.UUID = chain[0].Shard.UUID
	for _, p := range chain {
		joined.Pieces = append(joined.Pieces, j.add(p))
	}
	joined.Life = life(&j.process)
	return joined
}

// Shards returns what collectors wrote of the process, at least one shard.
func (p *Process) Shards() []*Piece {
	if p.Pieces == nil {
		return []*Piece{{Dir: p.dir, Shard: p.Shard, State: p.State}}
	}
	return p.Pieces
}

// Number maps the number of a location of the shard to its number in the process.
func (p *Piece) Number(own uint32) uint32 {
	if n, ok := p.Numbers[own]; ok {
		return n
	}
	return own
}

// joined is the description of a process under construction.
type joined struct {
	process   description.Process
	strings   map[string]int
	regions   map[description.Region]int
	gpus      map[string]int
	locations map[string]int
	threads   int
}

// newJoined begins with the last collector's knowledge: counts of the plugin, and all that is constant.
func newJoined(last *description.Process) *joined {
	j := &joined{
		process: *last,
		strings: make(map[string]int), regions: make(map[description.Region]int), gpus: make(map[string]int),
		locations: make(map[string]int),
	}
	p := &j.process
	p.FirstTime, p.LastTime, p.EventChunkSize, p.Instead = 0, 0, 0, nil
	p.Strings, p.Regions, p.GPUs, p.Comms, p.Locations, p.Metrics, p.Foreign, p.Wins = nil, nil, nil, nil, nil, nil,
		nil, nil
	p.Markers, p.Clock.Tuples, p.Counts = []description.Marker{}, nil,
		description.Counts{NullHandles: last.Counts.NullHandles}
	return j
}

// numberKey makes a key unique in a shard by adding its number.
func numberKey(seen map[string]int, key string) string {
	seen[key]++
	return fmt.Sprintf("%s\x00%d", key, seen[key])
}

// add joins the description of a further shard.
func (j *joined) add(of *Process) *Piece {
	q, p := of.Shard, &j.process
	out := &Piece{Dir: of.dir, Shard: q, State: of.State, Numbers: make(map[uint32]uint32)}
	if q.FirstTime != 0 && (p.FirstTime == 0 || q.FirstTime < p.FirstTime) {
		p.FirstTime = q.FirstTime
	}
	p.LastTime, p.EventChunkSize = max(p.LastTime, q.LastTime), max(p.EventChunkSize, q.EventChunkSize)

	text := make([]uint64, len(q.Strings))
	for i, s := range q.Strings {
		text[i] = uint64(index(j.strings, &p.Strings, s, s))
	}
	regions := make([]uint64, len(q.Regions))
	for i, r := range q.Regions {
		regions[i] = uint64(index(j.regions, &p.Regions, r, r))
	}
	gpus := j.addGPUs(q)
	gpu := func(i int) int {
		if i < 0 || i >= len(gpus) {
			return i
		}
		return gpus[i]
	}
	foreign := j.addForeign(q)
	j.addLocations(q, out, gpu, foreign)
	j.addComms(q, out, gpu)
	wins := j.addWins(q, foreign)
	metrics := make([]uint64, len(q.Metrics))
	for i, m := range q.Metrics {
		metrics[i] = uint64(j.addMetric(m, out, gpu))
	}
	for _, m := range q.Markers {
		if m.Location >= 0 {
			m.Location = int(out.Numbers[uint32(m.Location)])
		}
		p.Markers = append(p.Markers, m)
	}
	for _, t := range q.Clock.Tuples {
		if n := len(p.Clock.Tuples); n == 0 || t.Ticks > p.Clock.Tuples[n-1].Ticks && t.Raw > p.Clock.Tuples[n-1].Raw {
			p.Clock.Tuples = append(p.Clock.Tuples, t)
		}
	}
	j.addCounts(&q.Counts)
	j.addScorepThreads(q.Scorep)
	out.Maps = []*otf2.MappingTable{
		otf2.OptimalMapping(otf2.MappingString, text), otf2.OptimalMapping(otf2.MappingRegion, regions),
		otf2.OptimalMapping(otf2.MappingRmaWin, wins), otf2.OptimalMapping(otf2.MappingMetric, metrics),
	}
	return out
}

// addGPUs joins a shard's GPUs, and gives their indices among all.
func (j *joined) addGPUs(q *description.Process) []int {
	p := &j.process
	seen := make(map[string]int)
	gpus := make([]int, len(q.GPUs))
	for i, g := range q.GPUs {
		gpus[i] = index(j.gpus, &p.GPUs, numberKey(seen, fmt.Sprint(g.Device, g.UUID, g.PCI)), g)
		if g.Facts != nil {
			p.GPUs[gpus[i]] = g
		}
	}
	return gpus
}

// addForeign joins a shard's communicators of other processes, and gives their indices among all.
func (j *joined) addForeign(q *description.Process) []int {
	p := &j.process
	type key struct {
		tag   uint16
		index int
	}
	known := make(map[key]int, len(p.Foreign))
	for i, f := range p.Foreign {
		known[key{f.Tag, f.Index}] = i
	}
	foreign := make([]int, len(q.Foreign))
	for i, f := range q.Foreign {
		foreign[i] = index(known, &p.Foreign, key{f.Tag, f.Index}, f)
	}
	return foreign
}

// addWins joins a shard's windows of transfers, and gives their indices among all.
func (j *joined) addWins(q *description.Process, foreign []int) []uint64 {
	p := &j.process
	type key struct{ comm, foreign int }
	known := make(map[key]int, len(p.Wins))
	for i, w := range p.Wins {
		known[key{w.Comm, w.Foreign}] = i
	}
	wins := make([]uint64, len(q.Wins))
	for i, w := range q.Wins {
		if w.Foreign >= 0 {
			w.Foreign = foreign[w.Foreign]
		}
		at := index(known, &p.Wins, key{w.Comm, w.Foreign}, w)
		p.Wins[at].Ranks = max(p.Wins[at].Ranks, w.Ranks)
		wins[i] = uint64(at)
	}
	return wins
}

// addScorepThreads joins the threads that Score-P measured. What was joined before stays as it is: others may refer to
// it.
func (j *joined) addScorepThreads(of *provenance.Scorep) {
	p := &j.process
	if of == nil || of.Substrate == nil || p.Scorep == nil || p.Scorep.Substrate == nil || of == p.Scorep {
		return
	}
	all := *p.Scorep
	substrate := *all.Substrate
	substrate.Threads = slices.Concat(of.Substrate.Threads, substrate.Threads)
	all.Substrate, p.Scorep = &substrate, &all
}

// index returns the index of a value in a list by its key, appending it if necessary.
func index[K comparable, V any](known map[K]int, list *[]V, key K, value V) int {
	return keyed.EntryMade(known, key, func() int {
		*list = append(*list, value)
		return len(*list) - 1
	})
}

// addLocations maps the rows of a shard to existing ones: threads by their ids, others by what they show.
func (j *joined) addLocations(q *description.Process, out *Piece, gpu func(int) int, foreign []int) {
	p := &j.process
	seen, ends := make(map[string]int), make(map[string]int)
	later := make(map[string]int) // rows by their last owners, for the shard that follows
	taken := make(map[int]bool)
	defer func() { maps.Copy(j.locations, later) }()
	for _, l := range q.Locations {
		l.GPU = gpu(l.GPU)
		if l.Foreign >= 0 && l.Foreign < len(foreign) {
			l.Foreign = foreign[l.Foreign]
		}
		// Where a row had several owners, the one that the earlier collector saw last is the one that the later one saw
		// first.
		keyOf := func(o description.Owner) string {
			if l.Kind == description.KindThread {
				return fmt.Sprintf("%s %d", l.Kind, o.TID)
			}
			return fmt.Sprintf("%s %q %d %d %d", l.Kind, o.Name, o.Comm, l.Foreign, l.GPU)
		}
		first, last := keyOf(description.Owner{Name: l.Name, Comm: l.Comm, TID: l.TID}), keyOf(l.Present())
		key := numberKey(seen, first)
		at, known := j.locations[key]
		known = known && !taken[at]
		if l.Kind == description.KindThread && !known && len(p.Locations) > 0 {
			switch first := &p.Locations[0]; { // it may have been made before its first event
			case l.TID == 0 && l.Events == 0:
				at, known = 0, true
			case first.TID == 0 && first.Events == 0:
				first.TID, at, known = l.TID, 0, true
			}
			j.locations[key] = at
		}
		if !known {
			at = len(p.Locations)
			j.locations[key] = at
			made := l
			made.Number, made.Events, made.Bytes = uint32(at), 0, 0
			if l.Kind == description.KindThread {
				made.Name = fmt.Sprintf("Thread %d", j.threads)
				j.threads++
			}
			p.Locations = append(p.Locations, made)
		}
		if l.Shared() {
			if known {
				row := &p.Locations[at]
				row.Owners, row.Last = max(row.Owners, 1)+l.Owners-1, l.Last
			}
			delete(j.locations, key)
			later[numberKey(ends, last)] = at
		}
		taken[at] = true
		out.Numbers[l.Number] = p.Locations[at].Number
		p.Locations[at].Events += l.Events
		p.Locations[at].Bytes += l.Bytes
	}
}

// addComms takes communicator ranks as the later shard has them: its ordinals and digests continue the earlier one's.
func (j *joined) addComms(q *description.Process, out *Piece, gpu func(int) int) {
	p := &j.process
	for i, c := range q.Comms {
		if i >= len(p.Comms) {
			p.Comms = append(p.Comms, description.Comm{Location: -1})
		}
		if unannounced(&c) {
			continue
		}
		was := p.Comms[i]
		c.GPU = gpu(c.GPU)
		if c.Location >= 0 {
			c.Location = int(out.Numbers[uint32(c.Location)])
		}
		if n := c.Network; n != nil {
			c.Network = &description.NetworkRows{Send: out.Numbers[n.Send], Recv: out.Numbers[n.Recv]}
		}
		if !unannounced(&was) {
			c.Gaps = slices.Concat(was.Gaps, c.Gaps)
			c.InitTime = min(c.InitTime, was.InitTime)
			c.FinalTime = cmp.Or(was.FinalTime, c.FinalTime)
			if c.Location < 0 {
				c.Location = was.Location
			}
			c.Network = cmp.Or(c.Network, was.Network)
		}
		p.Comms[i] = c
	}
}

func (j *joined) addMetric(m description.Metric, out *Piece, gpu func(int) int) int {
	p := &j.process
	m.GPU = gpu(m.GPU)
	if m.Location >= 0 {
		m.Location = int(out.Numbers[uint32(m.Location)])
	}
	rows := make([]uint32, len(m.Locations))
	for i, n := range m.Locations {
		rows[i] = out.Numbers[n]
	}
	m.Locations = rows
	for i := range p.Metrics {
		o := &p.Metrics[i]
		if o.Recorder == m.Recorder && o.Location == m.Location && o.GPU == m.GPU &&
			reflect.DeepEqual(o.Members, m.Members) {
			for _, n := range rows {
				if !slices.Contains(o.Locations, n) {
					o.Locations = append(o.Locations, n)
				}
			}
			return i
		}
	}
	p.Metrics = append(p.Metrics, m)
	return len(p.Metrics) - 1
}

// addCounts adds what each collector counted. The plugin counts from the begin of the process: the last value is the
// total.
func (j *joined) addCounts(q *description.Counts) {
	c := &j.process.Counts
	c.Uncounted = append(c.Uncounted, q.Uncounted...)
	for _, m := range []struct {
		to   *map[string]uint64
		from map[string]uint64
		most bool
	}{
		{&c.Starts, q.Starts, false}, {&c.Stops, q.Stops, false}, {&c.States, q.States, false},
		{&c.Oddities, q.Oddities, false},
		{&c.Timing, q.Timing, false}, {&c.Network, q.Network, false}, {&c.CUPTI, q.CUPTI, false},
		{&c.Import, q.Import, false},
		{&c.Filtered, q.Filtered, true}, {&c.Paused, q.Paused, true}, {&c.Scorep, q.Scorep, true},
	} {
		*m.to = sumCounts(*m.to, m.from, m.most)
	}
	for reason, n := range q.Lost {
		if c.Lost == nil {
			c.Lost = make(map[string]map[string]uint64)
		}
		c.Lost[reason] = sumCounts(c.Lost[reason], n, reason != loss.WithCollector &&
			reason != loss.Undrawn)
	}
}

// sumCounts adds counts by name, or takes the greater ones; the latter for irregularities that the plugin counts.
func sumCounts(a, b map[string]uint64, most bool) map[string]uint64 {
	out := maps.Clone(a)
	if out == nil {
		out = make(map[string]uint64, len(b))
	}
	for name, n := range b {
		if most || slices.Contains(loss.PluginOddities, name) {
			out[name] = max(out[name], n)
		} else {
			out[name] += n
		}
	}
	return out
}

// ProcessLife identifies one life of a process, across its collectors.
type ProcessLife struct {
	host, boot string
	pid        int
	start      uint64
	tag        uint16
}

// LifeOf returns the life that a shard belongs to.
func LifeOf(p *description.Process) ProcessLife {
	return ProcessLife{p.Host, p.BootID, p.PID, p.PIDStart, p.Tag}
}

// Holds reports whether a process has a rank of the communicator.
func (in *Communicator) Holds(p *Process) bool {
	for m := range in.Present() {
		if m.Process == p || LifeOf(m.Process.Shard) == LifeOf(p.Shard) {
			return true
		}
	}
	return false
}
