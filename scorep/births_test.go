// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

// The definitions of communicators name their parents, beside those of Score-P, too, and properties say how they came
// from them.
func TestCommunicatorsHaveTheirParents(t *testing.T) {
	// What NCCL makes of the id 0xabcdef, which is the world's.
	made := []struct {
		id       uint64
		name     string
		ranks    []int
		parent   string
		how      string
		earliest uint64 // after the world, ns
	}{
		{0x435e404045d495d, "shrunk", []int{0, 1, 2}, "world", "shrink", 7e6},
		{0xd62abea4d5712e, "even", []int{0, 2}, "world", "split 2 color 0", 8e6},
		{0xa782f28ed1e0a2c3, "odd", []int{1, 3}, "world", "split 2 color 1", 8e6},
		{0xb9bfd9cbb114518d, "odder", []int{3, 1}, "odd", "split 1 color 7", 9e6},
		{0x1234567812345678, "made alone", []int{0, 1, 2, 3}, "", "", 9e6},
	}
	dir := mpiTSC.job(t, func(rank int, p *shardtest.Process) {
		for _, c := range made {
			if r := slices.Index(c.ranks, rank); r >= 0 {
				p.Comm(description.Comm{ID: c.id, Name: c.name, NRanks: len(c.ranks), Rank: r, NNodes: 1,
					InitTime: p.Shard.Comms[0].InitTime + c.earliest + uint64(rank)})
			}
		}
	})
	want := map[string][2]string{"world": {}}
	for _, c := range made {
		want[c.name] = [2]string{c.parent, c.how}
	}
	unified := testkit.Value(Unify(dir, &UnifyOptions{}))(t)
	merged, _ := merge(t, linkable(t, mpiTSC.dir), dir, nil)
	for name, anchor := range map[string]string{"unified": unified.Runs[0].Archive, "merged": merged.Archive} {
		t.Run(name, func(t *testing.T) {
			a, printed := open(t, anchor), accept(t, anchor)
			births := property.Births(a.Anchor)
			testkit.Check(t, len(births) == len(made)-1, "%d births: %v", len(births), births)
			names := make(map[otf2.CommRef]string)
			seen := 0
			for i, d := range a.Defs.Comms {
				names[d.Self] = a.Defs.String(d.Name)
				w, ours := want[names[d.Self]]
				if !ours || a.Defs.Group(d.Group).Paradigm != a.Defs.Group(
					a.Defs.Comms[len(a.Defs.Comms)-1].Group).Paradigm {
					continue // Score-P's
				}
				seen++
				testkit.Check(t, d.Parent == otf2.UndefinedComm ||
					slices.ContainsFunc(a.Defs.Comms[:i], func(o otf2.Comm) bool { return o.Self == d.Parent }),
					"%s is before its parent", names[d.Self])
				text := "UNDEFINED"
				if w[0] != "" {
					text = fmt.Sprintf("%q <%d>", w[0], d.Parent)
				}
				line := regexp.MustCompile(fmt.Sprintf(`(?m)^COMM +%d +Name: %q.*$`, d.Self, names[d.Self])).FindString(
					printed)
				testkit.Check(t, names[d.Parent] == w[0] && strings.Contains(line, "Parent: "+text+","),
					"%s: parent %q, want %q: %s", names[d.Self], names[d.Parent], w[0], line)
				if b, ok := births[d.Self]; ok != (w[1] != "") || ok && (b.Words() != w[1] || b.Parent != d.Parent) {
					t.Errorf("%s came to be by %+v (%v), want %q", names[d.Self], b, ok, w[1])
				}
			}
			testkit.Check(t, seen == len(want), "%d communicators, want %d", seen, len(want))
		})
	}
}
