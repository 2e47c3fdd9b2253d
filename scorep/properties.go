// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ncclotf2/otf2"
	"ncclotf2/shard"
)

// properties of an archive: what a reader should know of it beside the events. Under NCCL_OTF2:
//
//	PROCESSES, PROCESSES_FINISHED, PROCESSES_RUNNING, PROCESSES_CRASHED   processes with data, by state
//	PROCESSES_MISSING         processes of which only their places in communicators are known
//	RANKS_MISSING             communicator ranks without data
//	COMMUNICATORS             of more than one rank
//	STARTS::<TYPE>, STOPS::<TYPE>, STATES::<STATE>, FILTERED::<TYPE>      NCCL's callbacks
//	LOST, LOST::<REASON>::<TYPE>                                          events not recorded
//	ODDITIES::<KIND>          see package regions
//	TIMING::<SOURCE>          operations by the source of their times
//	SEQUENCES_DIFFER          number of differences; SEQUENCES_DIFFER::<n> tells them (see Difference)
//
// and of OTF2's own MPI_COMMUNICATION_COMPLETE: whether every collective and message has all its
// parts, as far as is known here.
type properties []otf2.Property

func (ps *properties) add(name, value string) {
	*ps = append(*ps, otf2.Property{Name: name, Value: clean(value)})
}

func (ps *properties) number(name string, n uint64) { ps.add(prefix+name, strconv.FormatUint(n, 10)) }

const prefix = "NCCL_OTF2::"

// describe fills the archive's properties.
func (a *archive) describe() {
	ps := &a.properties
	var states [3]uint64
	sum := newCounts()
	for _, p := range a.run.parts {
		states[slices.Index([]State{Finished, Running, Crashed}, p.state)]++
		sum.add(&p.process.Counts)
	}
	missingRanks := 0
	for _, in := range a.instances {
		missingRanks += len(in.missing())
	}
	ps.number("PROCESSES", uint64(len(a.run.parts)))
	ps.number("PROCESSES_FINISHED", states[0])
	ps.number("PROCESSES_RUNNING", states[1])
	ps.number("PROCESSES_CRASHED", states[2])
	ps.number("PROCESSES_MISSING", uint64(a.missingProcesses()))
	ps.number("RANKS_MISSING", uint64(missingRanks))
	ps.number("COMMUNICATORS", uint64(len(a.instances)))
	ps.number("LOST", sum.lostTotal())
	sum.list(ps)
	ps.number("SEQUENCES_DIFFER", uint64(len(a.differences)))
	for i, d := range a.differences[:min(len(a.differences), maxDifferences)] {
		ps.add(fmt.Sprintf("%sSEQUENCES_DIFFER::%d", prefix, i), d.String())
	}
	ps.add("OTF2::MPI_COMMUNICATION_COMPLETE", strconv.FormatBool(a.complete(sum)))
}

func (a *archive) missingProcesses() int {
	n := 0
	for _, pl := range a.world.places {
		if pl.part == nil {
			n++
		}
	}
	return n
}

// complete tells whether all that belongs to the job's communication is in the archive, as far as
// definitions tell.
func (a *archive) complete(sum *counts) bool {
	for _, p := range a.run.parts {
		if p.state != Finished {
			return false
		}
	}
	for _, in := range a.instances {
		if len(in.missing()) > 0 {
			return false
		}
	}
	return sum.lostTotal() == 0 && len(a.differences) == 0 && len(a.problems) == 0
}

// counts are the sums over processes, by the name of the property.
type counts struct{ byName map[string]uint64 }

func newCounts() *counts { return &counts{make(map[string]uint64)} }

func (c *counts) add(of *shard.Counts) {
	for _, kind := range []struct {
		name string
		n    map[string]uint64
	}{
		{"STARTS", of.Starts}, {"STOPS", of.Stops}, {"STATES", of.States}, {"FILTERED", of.Filtered},
		{"ODDITIES", of.Oddities}, {"TIMING", of.Timing},
	} {
		for key, n := range kind.n {
			c.byName[kind.name+"::"+component(key)] += n
		}
	}
	for reason, types := range of.Lost {
		for typ, n := range types {
			c.byName["LOST::"+component(reason)+"::"+component(typ)] += n
		}
	}
}

func (c *counts) lostTotal() uint64 {
	total := uint64(0)
	for name, n := range c.byName {
		if strings.HasPrefix(name, "LOST::") {
			total += n
		}
	}
	return total
}

func (c *counts) list(ps *properties) {
	names := make([]string, 0, len(c.byName))
	for name := range c.byName {
		names = append(names, name)
	}
	slices.SortFunc(names, cmp.Compare)
	for _, name := range names {
		ps.number(name, c.byName[name])
	}
}

// component turns a name such as "ProxyStep" or "ring full" into a part of a property's name:
// PROXY_STEP, RING_FULL. OTF2 allows letters, digits and underscores.
func component(s string) string {
	out := make([]byte, 0, len(s)+4)
	for i := range len(s) {
		c := s[i]
		switch {
		case 'A' <= c && c <= 'Z':
			// A capital begins a word after a small letter, or as the last of several (KernelCh, NETPlugin).
			if i > 0 && (isLower(s[i-1]) || isUpper(s[i-1]) && i+1 < len(s) && isLower(s[i+1])) {
				out = append(out, '_')
			}
			out = append(out, c)
		case isLower(c):
			out = append(out, c-'a'+'A')
		case '0' <= c && c <= '9':
			out = append(out, c)
		case len(out) > 0 && out[len(out)-1] != '_':
			out = append(out, '_')
		}
	}
	if len(out) == 0 {
		return "UNKNOWN"
	}
	return string(out)
}

func isLower(c byte) bool { return 'a' <= c && c <= 'z' }
func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }
