// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"strconv"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/hidden"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// properties is what an archive says of itself. The names are listed in package scorep.
type properties map[string]string

const prefix = "NCCL_OTF2::"

func propertiesOf(a *otf2.Anchor) properties {
	ps := make(properties, len(a.Properties))
	for _, p := range a.Properties {
		ps[p.Name] = p.Value
	}
	return ps
}

// diedPrefix begins the names, below LOST, of operations that died with collectors, by function.
const diedPrefix = "COLLECTOR_DIED::"

// number is the value of a counter; ok tells whether the archive has it.
func (ps properties) number(name string) (n uint64, ok bool) {
	n, err := strconv.ParseUint(ps[prefix+name], 10, 64)
	return n, err == nil
}

// below collects the counters of a kind, "TIMING" → {"GPU": 12}.
func (ps properties) below(kind string) map[string]uint64 {
	all := make(map[string]uint64)
	for name := range ps {
		key, ok := strings.CutPrefix(name, prefix+kind+"::")
		if !ok {
			continue
		}
		if n, ok := ps.number(kind + "::" + key); ok {
			all[key] = n
		}
	}
	return all
}

// incomplete tells whether the archive says that parts of the job's communication are not in it.
func (ps properties) incomplete() bool { return ps["OTF2::MPI_COMMUNICATION_COMPLETE"] == "false" }

// hidden reads the property HIDDEN: key, key.
func (ps properties) hidden() []hidden.Traffic {
	all := []hidden.Traffic{}
	for key := range strings.SplitSeq(ps[prefix+"HIDDEN"], ", ") {
		if key != "" {
			all = append(all, hidden.Keyed(key))
		}
	}
	return all
}

// merged tells whether there are processes and communicators of others in the archive, too.
func (ps properties) merged() bool {
	_, ok := ps[prefix+"MERGED"]
	return ok
}

// stretchesOf is what the archive's members did not record alike.
func stretchesOf(a *otf2.Anchor) []facts.Stretch {
	all, _ := facts.Stretches(a)
	return all
}

// gaps reads the properties GAPS::<n>: comm 3 10-19 "name", comm 3 replayed 10- "name".
func (ps properties) gaps() []Gap {
	all := []Gap{}
	for _, value := range ps.numbered("GAPS") {
		head, _, _ := strings.Cut(value, " \"")
		g := Gap{}
		rest, ok := strings.CutPrefix(head, "comm ")
		comm, rest, cut := strings.Cut(rest, " ")
		ref, err := strconv.ParseUint(comm, 10, 32)
		if !ok || !cut || err != nil {
			continue
		}
		g.Comm = otf2.CommRef(ref)
		rest, g.Lost = strings.CutPrefix(rest, "lost ")
		rest, g.Replayed = strings.CutPrefix(rest, "replayed ")
		first, last, _ := strings.Cut(rest, "-")
		if g.First, err = strconv.ParseUint(first, 10, 64); err != nil {
			continue
		}
		if last != "" {
			n, err := strconv.ParseUint(last, 10, 64)
			if err != nil {
				continue
			}
			g.Last = &n
		}
		g.Communicator, _ = strconv.Unquote(strings.TrimPrefix(value, head+" "))
		all = append(all, g)
	}
	return all
}
