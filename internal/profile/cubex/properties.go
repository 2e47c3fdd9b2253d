// SPDX-License-Identifier: Apache-2.0

package cubex

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/cube"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/scorep"
)

// keptProperties are the archive properties that a profile keeps as attributes: what is missing, and how the job was
// recorded.
var keptProperties = []property.Name{
	property.Processes, property.RanksMissing, property.RanksUnsized, property.Library, property.LibraryVersion,
	property.Lost, property.Uncounted, property.Paused, property.NullHandles, property.Oddities,
	property.Differ, property.Gaps, property.GapsDiffer,
}

// Keep keeps the properties that concern a profile.
func (p *Profile) Keep(all ...otf2.Property) {
	for _, kept := range all {
		own, ok := strings.CutPrefix(kept.Name, property.Prefix)
		head, _, _ := strings.Cut(own, "::")
		if kept.Name == property.Complete || ok &&
			(slices.Contains(keptProperties, property.Name(head)) ||
				strings.HasPrefix(head, string(property.Processes)+"_")) {
			p.properties = append(p.properties, cube.Attribute{Key: clean(kept.Name), Value: clean(kept.Value)})
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

func (p *Profile) propertyNumber(name property.Name) uint64 {
	n, _ := strconv.ParseUint(p.property(name.Key()), 10, 64)
	return n
}

// isComplete reports whether, as far as known, all operations of the job are in the profile.
func (p *Profile) isComplete() bool { return p.property(property.Complete) != "false" }

// Lost returns the number of events that were not recorded.
func (p *Profile) Lost() uint64 { return p.propertyNumber(property.Lost) }

// LostUncounted names the processes that lost an unknown number of further events.
func (p *Profile) LostUncounted() (lines []string) {
	for _, a := range p.properties {
		if strings.HasPrefix(a.Key, property.Uncounted.Below("").Key()) {
			lines = append(lines, a.Value)
		}
	}
	return lines
}

// LostBy returns how many of Lost were lost for a reason, a key of description.Counts.Lost.
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
