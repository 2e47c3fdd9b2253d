// SPDX-License-Identifier: Apache-2.0

package cubex

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/cube"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/scorep"
)

// keptProperties are the archive properties that a profile keeps as attributes: what is missing, and how the job was
// recorded.
var keptProperties = []facts.Property{
	facts.PropProcesses, facts.PropRanksMissing, facts.PropRanksUnsized, facts.PropLibrary, facts.PropLibraryVersion,
	facts.PropLost, facts.PropUncounted, facts.PropPaused, facts.PropNullHandles, facts.PropOddities,
	facts.PropDiffer, facts.PropGaps, facts.PropGapsDiffer,
}

// Keep keeps the properties that concern a profile.
func (p *Profile) Keep(all ...otf2.Property) {
	for _, property := range all {
		own, ok := strings.CutPrefix(property.Name, facts.PropertyPrefix)
		head, _, _ := strings.Cut(own, "::")
		if property.Name == facts.CompleteProperty || ok &&
			(slices.Contains(keptProperties, facts.Property(head)) ||
				strings.HasPrefix(head, string(facts.PropProcesses)+"_")) {
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

func (p *Profile) propertyNumber(name facts.Property) uint64 {
	n, _ := strconv.ParseUint(p.property(name.Key()), 10, 64)
	return n
}

// complete reports whether, as far as known, all operations of the job are in the profile.
func (p *Profile) complete() bool { return p.property(facts.CompleteProperty) != "false" }

// Lost returns the number of events that were not recorded.
func (p *Profile) Lost() uint64 { return p.propertyNumber(facts.PropLost) }

// LostUncounted names the processes that lost an unknown number of further events.
func (p *Profile) LostUncounted() (lines []string) {
	for _, a := range p.properties {
		if strings.HasPrefix(a.Key, facts.PropUncounted.Below("").Key()) {
			lines = append(lines, a.Value)
		}
	}
	return lines
}

// LostBy returns how many of Lost were lost for a reason, a key of experiment.Counts.Lost.
func (p *Profile) LostBy(reason string) (n uint64) {
	head := scorep.PropertyOfLoss(reason).Key() + "::"
	for _, a := range p.properties {
		if strings.HasPrefix(a.Key, head) {
			count, _ := strconv.ParseUint(a.Value, 10, 64)
			n += count
		}
	}
	return n
}
