// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs"
)

// origins maps network work that one process did for another (PXN) to its originator.
//
// The executing process gets only the originator's context value from NCCL. The plugin builds that value from its
// process's tag and the number of the communicator, so it identifies the originator among the processes of one machine.
// In addition, the rank in NCCL's descriptor must be that communicator's, and the executing process must be one of its
// members. Process ids prove nothing: two containers on one machine may use the same ones.
type origins struct {
	of      map[owner]*jobs.Rank // only originators that are certain
	unknown []unresolved
	// collisions lists, for each machine and tag, simultaneous processes that drew the same tag.
	collisions [][]*jobs.Process
}

// unresolved is foreign work whose originator is not certain.
type unresolved struct {
	owner
	why string
}

// machineKey identifies the processes of one machine that have the same tag.
type machineKey struct {
	host, boot string
	tag        uint16
}

func findOrigins(r *jobs.Run) *origins {
	o := &origins{of: make(map[owner]*jobs.Rank)}
	byTag := make(map[machineKey][]*jobs.Process) // any host name, as containers have their own
	for _, p := range r.Processes {
		q := p.Shard
		byTag[machineKey{q.Host, q.BootID, q.Tag}] = append(byTag[machineKey{q.Host, q.BootID, q.Tag}], p)
		if q.BootID != "" {
			byTag[machineKey{"", q.BootID, q.Tag}] = append(byTag[machineKey{"", q.BootID, q.Tag}], p)
		}
	}
	in := make(map[owner]*jobs.Communicator)
	members := make(map[owner]*jobs.Rank)
	for _, i := range r.Communicators {
		for m := range i.Present() {
			in[owner{m.Process, m.Index, -1}], members[owner{m.Process, m.Index, -1}] = i, m
		}
	}
	for _, p := range r.Processes {
		for i, f := range p.Shard.Foreign {
			candidates := byTag[machineKey{p.Shard.Host, p.Shard.BootID, f.Tag}]
			if len(candidates) == 0 && p.Shard.BootID != "" {
				candidates = byTag[machineKey{"", p.Shard.BootID, f.Tag}]
			}
			why := ""
			var fits []*jobs.Rank
			lives := make(map[jobs.ProcessLife]bool)
			for _, q := range candidates {
				m := members[owner{q, f.Index, -1}]
				switch {
				case m == nil:
					why = fmt.Sprintf("%s, which has that tag, has no communicator %d", q.ID(), f.Index)
				case f.Rank >= 0 && m.Comm().Rank >= 0 && m.Comm().Rank != f.Rank:
					why = fmt.Sprintf("communicator %d of %s, which has that tag, is rank %d", f.Index, q.ID(),
						m.Comm().Rank)
				case !in[owner{q, f.Index, -1}].Holds(p):
					why = fmt.Sprintf("this process is not in communicator %d of %s, which has that tag", f.Index,
						q.ID())
				default:
					if l := jobs.LifeOf(q.Shard); !lives[l] { // a process may have several shards
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
	slices.SortFunc(o.collisions, func(a, b []*jobs.Process) int {
		return cmp.Compare(a[0].Shard.UUID, b[0].Shard.UUID)
	})
	return o
}

// collide adds to collisions those of parts that are different processes and were alive at the same time.
func (o *origins) collide(parts []*jobs.Process) {
	var same []*jobs.Process
	for _, p := range parts {
		if slices.ContainsFunc(parts, func(q *jobs.Process) bool {
			return q != p && jobs.LifeOf(q.Shard) != jobs.LifeOf(p.Shard) &&
				jobs.Lifespan{Begin: p.Begin(), End: p.End()}.Overlaps(jobs.Lifespan{Begin: q.Begin(), End: q.End()}, 0)
		}) {
			same = append(same, p)
		}
	}
	if len(same) > 0 {
		o.collisions = append(o.collisions, same)
	}
}
