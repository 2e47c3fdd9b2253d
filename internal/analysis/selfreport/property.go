// SPDX-License-Identifier: Apache-2.0

package selfreport

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/internal/hidden"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Properties has the properties of an archive. Their names are listed in package facts, and explained in package
// scorep.
type Properties struct{ property.Properties }

// PropertiesOf reads an archive's properties.
func PropertiesOf(a *otf2.Anchor) Properties { return Properties{property.Read(a)} }

// diedPrefix begins the names, below LOST, of the counters of operations lost with collectors that died, by function.
const diedPrefix = "COLLECTOR_DIED::"

// Hidden reads the property HIDDEN: key, key.
func (ps Properties) Hidden() []hidden.Traffic {
	all := []hidden.Traffic{}
	for key := range strings.SplitSeq(ps.Text(property.Hidden), ", ") {
		if key != "" {
			all = append(all, hidden.Keyed(key))
		}
	}
	return all
}

// Merged reports whether the archive also contains processes and communicators of another tool.
func (ps Properties) Merged() bool { return ps.Has(property.Merged) }

// StretchesOf returns the operations that the archive's members recorded differently.
func StretchesOf(a *otf2.Anchor) []property.Stretch {
	all, _ := property.Stretches(a)
	return all
}

// Differing returns one line for each stretch of operations that the archive's members recorded differently. These
// operations are excluded from comparisons.
func Differing(a *otf2.Anchor) (lines []string) {
	const most = 16
	all, unnamed := property.Stretches(a)
	for _, s := range all[:min(len(all), most)] {
		lines = append(lines, "ranks differ: "+s.String())
	}
	if more := uint64(len(all)-len(lines)) + unnamed; more > 0 {
		lines = append(lines, fmt.Sprintf("ranks differ in %d further stretches of operations", more))
	}
	return lines
}

// Gaps reads the properties GAPS::<n>: comm 3 10-19 "name", comm 3 replayed 10- "name".
func (ps Properties) Gaps() []Gap {
	all := []Gap{}
	for _, value := range ps.Numbered(property.Gaps) {
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

// Gap is a run of a communicator's operations that, on request, were not recorded, or that could not be written.
type Gap struct {
	Communicator string       `json:"communicator"`
	Comm         otf2.CommRef `json:"comm"`
	Replayed     bool         `json:"replayed"`       // operations of replayed graphs, which are counted separately
	First        uint64       `json:"first"`          // ordinal on the communicator, from 0, over all functions
	Last         *uint64      `json:"last"`           // nil: up to the end
	Lost         bool         `json:"lost,omitempty"` // not on request
}

// ByRAS is the counter of operations missing because RAS changed NCCL's activation mask.
const ByRAS = "OPERATIONS_BY_RAS"

// CountersText formats counters in one line, ordered by name. Those of operations lost with collectors that died are
// marked after their function.
func CountersText(all map[string]uint64) string {
	names := make([]string, 0, len(all))
	for name, n := range all {
		if n > 0 {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "none"
	}
	slices.Sort(names)
	for i, name := range names {
		what, died := strings.CutPrefix(name, diedPrefix)
		names[i] = fmt.Sprintf("%d %s", all[name],
			strings.ToLower(strings.NewReplacer("::", " ", "_", " ").Replace(what)))
		if died {
			names[i] += " with a collector that died"
		}
	}
	return strings.Join(names, ", ")
}

// AbsentGroups returns how many location groups represent processes without data. missing is the number of such
// processes in the archive; an archive that does not mark the groups has one for each process.
func AbsentGroups(defs *otf2.Definitions, missing uint64) uint64 {
	if n := len(property.AbsentRanks(defs)); n > 0 {
		return uint64(n)
	}
	return missing
}
