// SPDX-License-Identifier: Apache-2.0

package cubex

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/cube"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Properties of an archive, or of what would be one, that a profile has as attributes: what is missing, and what it was recorded
// with. Package scorep lists them.
const (
	ownProperty      = "NCCL_OTF2::"
	completeProperty = "OTF2::MPI_COMMUNICATION_COMPLETE"
)

var keptProperties = []string{
	"PROCESSES", "RANKS_MISSING", "RANKS_OF_UNKNOWN_SIZE", "LIBRARY", "LIBRARY_VERSION", "LOST", "PAUSED", "NULL_HANDLES", "ODDITIES",
	"SEQUENCES_DIFFER", "GAPS", "GAPS_DIFFER",
}

// keepProperties takes over what is to be known of the job.
func (p *Profile) keepProperties(all []otf2.Property) {
	for _, property := range all {
		own, ok := strings.CutPrefix(property.Name, ownProperty)
		head, _, _ := strings.Cut(own, "::")
		if property.Name == completeProperty || ok && (slices.Contains(keptProperties, head) || strings.HasPrefix(head, "PROCESSES_")) {
			p.properties = append(p.properties, cube.Attribute{Key: clean(property.Name), Value: clean(property.Value)})
		}
	}
	slices.SortFunc(p.properties, func(a, b cube.Attribute) int { return cmp.Compare(a.Key, b.Key) })
	p.properties = slices.CompactFunc(p.properties, func(a, b cube.Attribute) bool { return a.Key == b.Key })
}

func (p *Profile) property(name string) string {
	if i := slices.IndexFunc(p.properties, func(a cube.Attribute) bool { return a.Key == name }); i >= 0 {
		return p.properties[i].Value
	}
	return ""
}

func (p *Profile) number(name string) uint64 {
	n, _ := strconv.ParseUint(p.property(ownProperty+name), 10, 64)
	return n
}

// Complete tells that all operations of the job are in the profile, as far as is known.
func (p *Profile) Complete() bool { return p.property(completeProperty) != "false" }

// Lost is the number of events that were not recorded.
func (p *Profile) Lost() uint64 { return p.number("LOST") }
