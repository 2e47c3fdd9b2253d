// SPDX-License-Identifier: Apache-2.0

package analysis

import (
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

// stretchesOf is what the archive's members did not record alike.
func stretchesOf(a *otf2.Anchor) []facts.Stretch {
	all, _ := facts.Stretches(a)
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
