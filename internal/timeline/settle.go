// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"encoding/binary"
	"math"
)

// finishReading derives what is known only after the last event.
func (r *reader) finishReading() {
	unknown := false
	deep := sorterBuffer{to: r.deep}
	for i := range r.rows {
		if b := r.rows[i].bars; b != nil {
			b.closeOpen(&deep)
			r.duration = max(r.duration, b.last)
			r.begin = min(r.begin, b.first)
		}
	}
	if r.begin > r.duration || r.selected == nil {
		r.begin = 0
	}
	r.endMetrics()
	deep.flush()
	r.found.flush()
	r.waited.flush()
	for _, l := range r.lanes {
		for _, f := range []*sorterBuffer{&l.deep, &l.kids, &l.asked, &l.ends, &l.names, &l.fallback} {
			f.flush()
		}
		unknown = unknown || l.unknown
	}
	r.lanes = nil
	r.resolveCauses()
	r.chooseCauses()
	r.locateResults()
	for _, s := range []*sorter{r.deep, r.kids, r.waits, r.operations, r.asked, r.ends, r.askers, r.parts, r.chargesOf,
		r.waitsInTime} {
		s.finish()
	}
	if unknown {
		r.regions = append(r.regions, region{"(not defined)", len(r.categories)})
		r.categories = append(r.categories, categoryOther)
	}
}

// resolveCauses finds the regions of the events named as causes. Ids are reused, so it chooses in this order: the last
// region of the same process with that id at the time; if the effect began earlier, the last region of all with that
// id; if there is none, as with PXN, where processes carry out transfers for each other, that of another process of the
// host, unless several have the id.
func (r *reader) resolveCauses() {
	type reference struct {
		key, kind, what, number uint64
	}
	type owner struct {
		process uint64
		at      address
	}
	claims, askers := sorterBuffer{to: r.claims}, sorterBuffer{to: r.askers}
	found := func(ref *reference, at address) {
		switch {
		case ref.kind == nameTransfer:
			askers.add(ref.what, 0, uint64(at))
		case uint64(at) != ref.what:
			claims.add(ref.what, ref.key, uint64(at), ref.number)
		}
	}
	var owners []owner // of an id, by process
	var early []reference
	r.names.finish()
	for m := r.names.sorted(); m.more; {
		owners, early = owners[:0], early[:0]
		for id := m.a; m.more && m.a == id; m.next() {
			process, last := m.b>>processShift, len(owners)-1
			known := last >= 0 && owners[last].process == process
			ref := reference{m.b, m.entry.readNumber(), m.entry.readNumber(), m.entry.readNumber()}
			switch {
			case ref.kind == nameGiven && known:
				owners[last].at = address(ref.what)
			case ref.kind == nameGiven:
				owners = append(owners, owner{process, address(ref.what)})
			case known:
				found(&ref, owners[last].at)
			default:
				early = append(early, ref)
			}
		}
		for i := range early {
			process := early[i].key >> processShift
			meant, matches := nowhere, 0
			for _, o := range owners {
				if o.process == process {
					meant, matches = o.at, 1
					break
				}
				if r.processes.hosts[o.process] == r.processes.hosts[process] {
					meant = o.at
					matches++
				}
			}
			if matches == 1 {
				found(&early[i], meant)
			}
		}
	}
	claims.flush()
	askers.flush()
	r.names.close()
}

// chooseCauses decides which region caused each region.
func (r *reader) chooseCauses() {
	kids := sorterBuffer{to: r.kids}
	last := uint64(0)
	r.claims.finish()
	for m := r.claims.sorted(); m.more; {
		child, own := m.a, m.b != math.MaxUint64
		parent, number := m.entry.readNumber(), m.entry.readNumber()
		kids.add(parent, numbered(address(child).row(), uint32(number)), child)
		if own {
			r.store.parents.writeNumber(child - last)
			r.store.parents.writeNumber(parent)
			r.store.parents.endRecord()
			last = child
		}
		for m.more && m.a == child {
			m.next()
		}
	}
	kids.flush()
	r.claims.close()
}

// locateResults finds the addresses of the regions in the analysis's results.
func (r *reader) locateResults() {
	operations, waits, parts := sorterBuffer{to: r.operations}, sorterBuffer{to: r.waits}, sorterBuffer{to: r.parts}
	var p *places
	r.found.to.finish()
	for m := r.found.to.sorted(); m.more; m.next() {
		row := uint32(m.a >> 32)
		b := r.rows[row].bars
		if p == nil || p.row != row {
			p = b.places()
		}
		at, ok := p.addressAt(uint32(m.a))
		if !ok {
			continue // an operation outside of regions
		}
		if m.entry.readNumber() == foundWait {
			from := len(waits.data)
			waits.data = append(waits.data, m.entry.unreadBytes()...)
			waits.endEntry(uint64(at), m.b, from)
			continue
		}
		instance, place, rank := m.entry.readNumber(), m.entry.readNumber(), m.entry.readNumber()
		parts.add(instance, place, rank, uint64(at))
		from := len(operations.data)
		operations.data = binary.AppendUvarint(operations.data, instance)
		operations.data = append(operations.data, m.entry.unreadBytes()...)
		operations.endEntry(uint64(at), m.b, from)
		b.operations++
	}
	for _, f := range []*sorterBuffer{&operations, &waits, &parts} {
		f.flush()
	}
	r.found.to.close()
}
