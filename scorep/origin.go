// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/experiment"
)

// origins tells whose network work a process did for another one (PXN).
//
// NCCL hands the executing process nothing but the originator's context value. The plugin made it of
// its process's tag and the number of the communicator, so it names the originator among the processes
// of one machine; the rank in NCCL's descriptor must be that communicator's, and the executing process
// one of its members. Process ids tell nothing: two containers on one machine may use the same ones.
type origins struct {
	of      map[owner]*member // originator, nil if it is not certain
	unknown []unresolved
	// collisions are the processes of one machine that drew the same tag, per machine and tag.
	collisions [][]*part
}

// unresolved is foreign work whose originator is not certain.
type unresolved struct {
	owner
	why string
}

// processLife names one life of a process, whatever became of its collectors.
type processLife struct {
	host, boot string
	pid        int
	start      uint64
	tag        uint16
}

func lifeOf(p *experiment.Process) processLife {
	return processLife{p.Host, p.BootID, p.PID, p.PIDStart, p.Tag}
}

// machineKey is what processes must have alike to have shared memory.
type machineKey struct {
	host, boot string
	tag        uint16
}

func findOrigins(r *run) *origins {
	o := &origins{of: make(map[owner]*member)}
	byTag := make(map[machineKey][]*part) // host "": whatever the container calls itself
	for _, p := range r.parts {
		q := p.process
		byTag[machineKey{q.Host, q.BootID, q.Tag}] = append(byTag[machineKey{q.Host, q.BootID, q.Tag}], p)
		if q.BootID != "" {
			byTag[machineKey{"", q.BootID, q.Tag}] = append(byTag[machineKey{"", q.BootID, q.Tag}], p)
		}
	}
	in := make(map[owner]*instance)
	members := make(map[owner]*member)
	for _, i := range r.instances {
		for m := range i.present() {
			in[owner{m.part, m.comm, -1}], members[owner{m.part, m.comm, -1}] = i, m
		}
	}
	for _, p := range r.parts {
		for i, f := range p.process.Foreign {
			candidates := byTag[machineKey{p.process.Host, p.process.BootID, f.Tag}]
			if len(candidates) == 0 && p.process.BootID != "" {
				candidates = byTag[machineKey{"", p.process.BootID, f.Tag}]
			}
			why := ""
			var fits []*member
			lives := make(map[processLife]bool)
			for _, q := range candidates {
				m := members[owner{q, f.Index, -1}]
				switch {
				case m == nil:
					why = fmt.Sprintf("%s, which has that tag, has no communicator %d", q.id(), f.Index)
				case f.Rank >= 0 && m.shard().Rank >= 0 && m.shard().Rank != f.Rank:
					why = fmt.Sprintf("communicator %d of %s, which has that tag, is rank %d", f.Index, q.id(), m.shard().Rank)
				case !in[owner{q, f.Index, -1}].holds(p):
					why = fmt.Sprintf("this process is not in communicator %d of %s, which has that tag", f.Index, q.id())
				default:
					if l := lifeOf(q.process); !lives[l] { // a life in several shards is one process
						lives[l] = true
						fits = append(fits, m)
					}
				}
			}
			switch {
			case len(fits) == 1:
				o.of[owner{p, -1, i}] = fits[0]
				continue
			case len(fits) > 1:
				why = fmt.Sprintf("%d processes of this machine have that tag", len(fits))
			case len(candidates) == 0:
				why = "no process of this machine that left data has that tag"
			}
			o.unknown = append(o.unknown, unresolved{owner{p, -1, i}, why})
		}
	}
	for key, parts := range byTag {
		if (key.host == "") == (key.boot != "") {
			o.collide(parts)
		}
	}
	slices.SortFunc(o.collisions, func(a, b []*part) int { return cmp.Compare(a[0].process.UUID, b[0].process.UUID) })
	return o
}

// collide notes processes that are not the same and were alive together.
func (o *origins) collide(parts []*part) {
	var alike []*part
	for _, p := range parts {
		if slices.ContainsFunc(parts, func(q *part) bool {
			return q != p && lifeOf(q.process) != lifeOf(p.process) &&
				lifespan{p.begin(), p.end()}.meets(lifespan{q.begin(), q.end()}, 0)
		}) {
			alike = append(alike, p)
		}
	}
	if len(alike) > 0 {
		o.collisions = append(o.collisions, alike)
	}
}

// holds tells whether a process has a rank of the communicator.
func (in *instance) holds(p *part) bool {
	for m := range in.present() {
		if m.part == p || lifeOf(m.part.process) == lifeOf(p.process) {
			return true
		}
	}
	return false
}
