// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/hidden"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// properties is what an archive says of itself. The names are listed in package facts, and explained in scorep.
type properties struct{ facts.Properties }

func propertiesOf(a *otf2.Anchor) properties { return properties{facts.PropertiesOf(a)} }

// diedPrefix begins the names, below LOST, of operations that died with collectors, by function.
const diedPrefix = "COLLECTOR_DIED::"

// hidden reads the property HIDDEN: key, key.
func (ps properties) hidden() []hidden.Traffic {
	all := []hidden.Traffic{}
	for key := range strings.SplitSeq(ps.Text(facts.PropHidden), ", ") {
		if key != "" {
			all = append(all, hidden.Keyed(key))
		}
	}
	return all
}

// merged tells whether there are processes and communicators of others in the archive, too.
func (ps properties) merged() bool { return ps.Has(facts.PropMerged) }

// stretch is a range of operations that the members of a communicator did not record alike, as
// unifying found. Comparing them would match the wrong ones.
type stretch struct {
	comm        otf2.CommRef
	function    string // "AllReduce", "Send 0>3"
	first, last uint64 // ordinals
}

// stretches reads the properties SEQUENCES_DIFFER::<n>: comm 3 AllReduce 64-127 "name": ….
func (ps properties) stretches() []stretch {
	var all []stretch
	for _, value := range ps.Numbered(facts.PropDiffer) {
		head, _, _ := strings.Cut(value, " \"")
		words := strings.Fields(head)
		if len(words) < 4 || words[0] != "comm" {
			continue
		}
		var s stretch
		comm, err := strconv.ParseUint(words[1], 10, 32)
		if err != nil {
			continue
		}
		if _, err := fmt.Sscanf(words[len(words)-1], "%d-%d", &s.first, &s.last); err != nil {
			continue
		}
		s.comm, s.function = otf2.CommRef(comm), strings.Join(words[2:len(words)-1], " ")
		all = append(all, s)
	}
	return all
}

// gaps reads the properties GAPS::<n>: comm 3 10-19 "name", comm 3 replayed 10- "name".
func (ps properties) gaps() []Gap {
	all := []Gap{}
	for _, value := range ps.Numbered(facts.PropGaps) {
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

// excluded tells whether an operation lies in one of the stretches.
func excluded(all []stretch, comm otf2.CommRef, function string, ordinal uint64) bool {
	for _, s := range all {
		if s.comm == comm && s.function == function && s.first <= ordinal && ordinal <= s.last {
			return true
		}
	}
	return false
}
