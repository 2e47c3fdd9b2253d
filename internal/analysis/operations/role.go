// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/placement"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/membership"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// CommunicatorRow describes a communicator and its likely purpose.
type CommunicatorRow struct {
	Communicator string       `json:"communicator"`
	Comm         otf2.CommRef `json:"comm"`
	Ranks        int          `json:"ranks"`
	Hosts        int          `json:"hosts"` // of the members
	// Members are the members' places among all ranks of the archive: "0-7", "0,4,8" or "0-28/4" (every 4th).
	Members string `json:"members"`
	// Role is a guess: "world", "tensor parallel", "data parallel", "pipeline parallel", …; "" for none.
	Role string `json:"role"`
	// Basis says what Role is derived from: "name", "members", or "" for none.
	Basis string `json:"role_basis"`
	// Parent is the communicator that it was split or shrunk from; nil: none is known.
	Parent *Parent `json:"parent,omitempty"`
}

// Parent identifies the communicator that another one was made from, and says how.
type Parent struct {
	Communicator string       `json:"communicator"`
	Comm         otf2.CommRef `json:"comm"`
	// How is "split", "shrink", or "" if unknown.
	How   string  `json:"how,omitempty"`
	Split uint32  `json:"split,omitempty"` // number of the split among the parent's splits, from 1
	Color *uint32 `json:"color,omitempty"` // color of the split
}

// parentOf describes a communicator's parent.
func parentOf(c *membership.Communicator, comms map[otf2.CommRef]*membership.Communicator,
	births map[otf2.CommRef]property.Birth) *Parent {
	of := comms[c.Parent]
	if of == nil || c.Calls {
		return nil
	}
	p := &Parent{Communicator: of.Name, Comm: of.Ref}
	if b, ok := births[c.Ref]; ok && b.Parent == of.Ref {
		if p.How = "shrink"; b.Split > 0 {
			p.How, p.Split, p.Color = "split", b.Split, &b.Color
		}
	}
	return p
}

// String returns the parent as in a table: "world, split 2, color 1".
func (p *Parent) String() string {
	switch {
	case p == nil:
		return ""
	case p.Color != nil:
		return fmt.Sprintf("%s, split %d, color %d", p.Communicator, p.Split, *p.Color)
	case p.How != "":
		return p.Communicator + ", " + p.How
	}
	return p.Communicator
}

// roleNames are words that frameworks put into the names of process groups (Megatron-LM's group_desc, the dimensions
// of PyTorch's DeviceMesh, DeepSpeed), in the order in which they are looked for. A name can contain several:
// TENSOR_AND_DATA_PARALLEL_GROUP.
var roleNames = []struct {
	role string
	word *regexp.Regexp
}{
	{"world", inWords("default_pg|world|default")},
	{"embedding", inWords("embedding|embd")},
	{"expert parallel", inWords("expert|ep|moe")},
	{"context parallel", inWords("context|cp")},
	{"sequence parallel", inWords("sequence|sp")},
	{"tensor parallel", inWords("tensor|tp")},
	{"pipeline parallel", inWords("pipeline|pipe|pp|stage")},
	{"data parallel", inWords("data|dp|ddp|fsdp|zero|shard|replicate|hsdp")},
	{"model parallel", inWords("model|mp")},
}

// inWords returns an expression that matches any of some words between characters that are neither letters nor digits.
func inWords(any string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)(^|[^a-z0-9])(` + any + `)(\d*)($|[^a-z0-9])`)
}

// roleByName derives a role from a name; "" if there is none.
func roleByName(name string) string {
	// NCCL's own names, and numbered names of a split's children, contain no role.
	if strings.HasPrefix(name, "ncclComm ") {
		return ""
	}
	name = regexp.MustCompile(`([a-z])([A-Z])`).ReplaceAllString(name, "${1}_${2}")
	var found []string
	for _, r := range roleNames {
		if r.word.MatchString(name) {
			found = append(found, r.role)
		}
	}
	// Megatron's TENSOR_MODEL_PARALLEL and PIPELINE_MODEL_PARALLEL each name a single role.
	if len(found) > 1 && found[len(found)-1] == "model parallel" {
		found = found[:len(found)-1]
	}
	switch {
	case len(found) == 0:
		return ""
	case len(found) == 1:
		return found[0]
	}
	for i := range found {
		found[i] = strings.TrimSuffix(found[i], " parallel")
	}
	return strings.Join(found, " and ") + " parallel"
}

// family is a set of communicators of one size with equally spaced members: the groups of one kind of parallelism.
// Together they contain each rank at most once.
type family struct {
	size, stride int
	comms        []*memberList
	covered      int  // number of ranks in the communicators
	messages     bool // only messages were seen on them
	oneHost      bool // each has all its members on one host
}

// memberList has a communicator's members as places among all ranks.
type memberList struct {
	row      *CommunicatorRow
	places   []int // in the order of the communicator's ranks
	hosts    map[string]bool
	messages bool
}

// describeCommunicators lists the communicators of more than one rank with their likely purposes. births says which
// communicators others were made from; used has the functions seen on each.
func describeCommunicators(defs *otf2.Definitions, births map[otf2.CommRef]property.Birth,
	comms map[otf2.CommRef]*membership.Communicator, used map[otf2.CommRef]map[string]bool) []CommunicatorRow {
	world, of := placement.Ranks(defs, comms)
	rows := []CommunicatorRow{}
	for ref, c := range comms {
		if c.Size() > 1 {
			rows = append(rows, CommunicatorRow{Communicator: c.Name, Comm: ref, Ranks: c.Size(),
				Role: roleByName(c.Name), Parent: parentOf(c, comms, births)})
		}
	}
	slices.SortFunc(rows, func(a, b CommunicatorRow) int { return cmp.Compare(a.Comm, b.Comm) })
	var lists []*memberList
	for i := range rows {
		r := &rows[i]
		if r.Role != "" {
			r.Basis = "name"
		}
		m := &memberList{row: r, hosts: make(map[string]bool)}
		for rank := range comms[r.Comm].Members {
			if place, ok := comms[r.Comm].WorldIndex(of, rank); ok {
				m.places = append(m.places, place)
				m.hosts[world[place].Host] = true
			}
		}
		functions := used[r.Comm]
		m.messages = (functions["Send"] || functions["Recv"]) &&
			len(functions) == int(analysis.BoolCount(functions["Send"])+analysis.BoolCount(functions["Recv"]))
		r.Hosts, r.Members = len(m.hosts), placement.PlacesText(m.places)
		lists = append(lists, m)
	}
	suggest(lists, len(world))
	return rows
}

// suggest assigns roles by members to communicators whose names contain no role.
func suggest(lists []*memberList, ranks int) {
	families := make(map[[2]int]*family)
	for _, m := range lists {
		if len(m.places) == ranks && ranks > 1 {
			m.row.suggest("world")
			continue
		}
		d := placement.Stride(m.places)
		if d == 0 || len(m.places) != m.row.Ranks {
			continue
		}
		key := [2]int{len(m.places), d}
		f := keyed.EntryMade(families, key, func() *family {
			return &family{size: key[0], stride: d, messages: true, oneHost: true}
		})
		f.comms = append(f.comms, m)
		f.messages = f.messages && m.messages
		f.oneHost = f.oneHost && len(m.hosts) == 1
	}
	var all []*family
	for _, f := range families {
		seen := make(map[int]int)
		for _, m := range f.comms {
			for _, p := range m.places {
				seen[p]++
			}
		}
		f.covered = len(seen)
		// Several communicators can have the same members; groups that overlap in another way are not a family. A
		// family that does not cover every rank gives no clue, because it may be any group.
		if f.covered == ranks && ranks%(f.size*f.stride) == 0 && f.disjoint() {
			all = append(all, f)
		}
	}
	slices.SortFunc(all, func(a, b *family) int {
		return cmp.Or(
			cmp.Compare(a.stride, b.stride), cmp.Compare(a.size, b.size))
	})
	// The usual order of dimensions from the inside is tensor, data, pipeline: the members of each are as far apart as
	// the product of the sizes of the dimensions inside it.
	inside := func(f *family) bool { // whether a dimension fills the distance between the family's members
		return slices.ContainsFunc(all, func(o *family) bool { return o.size*o.stride == f.stride })
	}
	for _, f := range all {
		role := ""
		switch {
		case f.messages && f.stride > 1:
			role = "pipeline parallel"
		case f.stride == 1 && f.oneHost && slices.ContainsFunc(all, func(o *family) bool { return o.stride == f.size }):
			role = "tensor parallel"
		case f.stride > 1 && inside(f) && f.size*f.stride == ranks &&
			slices.ContainsFunc(all, func(o *family) bool { return o.size*o.stride == f.stride && o.stride > 1 }):
			role = "pipeline parallel"
		case f.stride > 1 && inside(f):
			role = "data parallel"
		}
		for _, m := range f.comms {
			m.row.suggest(role)
		}
	}
}

// disjoint reports whether any two communicators have either no member or all members in common.
func (f *family) disjoint() bool {
	first := make(map[int]int) // member → first member of its communicator
	for _, m := range f.comms {
		for _, p := range m.places {
			if at, known := first[p]; known && at != m.places[0] {
				return false
			}
			first[p] = m.places[0]
		}
	}
	return true
}

func (r *CommunicatorRow) suggest(role string) {
	if r.Role == "" && role != "" {
		r.Role, r.Basis = role, "members"
	}
}
