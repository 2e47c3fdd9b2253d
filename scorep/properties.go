// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/hang/waitfor"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// properties of an archive: facts about it beside the events. Under NCCL_OTF2:
//
//	PROCESSES, PROCESSES_FINISHED, PROCESSES_RUNNING, PROCESSES_CRASHED   processes with data, by state
//	PROCESSES_CONTINUED       how often another collector took over from one that had died
//	PROCESSES_DIED            of them, those that did not end in order; DIED::<n> tells how, and who was first
//	PROCESSES_MISSING         processes of which only their places in communicators are known
//	RANKS_MISSING             communicator ranks without data
//	COMMUNICATORS             of more than one rank, those of networks not counted
//	RANKS_OF_UNKNOWN_SIZE     ranks of communicators whose size NCCL never reported; there are no records of these
//	STARTS::<TYPE>, STOPS::<TYPE>, STATES::<STATE>, FILTERED::<TYPE>      NCCL's callbacks
//	PAUSED::<TYPE>            starts outside the window that was to be recorded
//	LOST, LOST::<REASON>::<TYPE>                                          events not recorded
//	LOST_BY_PROCESS::<n>      of them, those of process n (its location group)
//	LOST_UNCOUNTED            processes of which more is missing, and nobody knows how much; LOST_UNCOUNTED::<n> tells why
//	NULL_HANDLES              stops and states of events that were refused
//	ODDITIES::<KIND>          see package regions
//	TIMING::<SOURCE>          operations by the source of their times
//	NETWORK::<WHAT>           what went over the network, see package regions: PUTS, PUT_BYTES, RECEIVED_BYTES, …
//	CUPTI::<WHAT>             what CUPTI reported, see package regions: RECORDS, KERNELS, KERNELS_LINKED and, by reason, the other ones, …
//	SCOREP::<WHAT>            calls forwarded to Score-P (FORWARDED), or by why they were not: OTHER_THREADS, OUTSIDE, PAUSED, UNDEFINED, MEMORY
//	IMPORT::<WHAT>            of an imported archive, what became of the input: LINES, MALFORMED, TRUNCATED, EVENTS, and by kind what
//	                          could not be used, see package ingest
//	DAMAGED, DAMAGED::<n>     what of the data on the disk was missing or damaged: shards, event files
//	SEQUENCES_DIFFER          number of differences; SEQUENCES_DIFFER::<n> tells them (see Difference)
//	STOPPED, STOPPED::<n>     who kept the job from going on, or asked for what does not fit together: culprits of a verdict (JSON), see package waitfor
//	GAPS, GAPS::<n>           stretches of operations that were not recorded on request: comm 3 10-19 "name"; that could not be: comm 3 lost 10-19 "name"
//	GAPS_DIFFER, GAPS_DIFFER::<n>   communicators whose members paused at different operations
//	GPU_METRICS_LEFT_OUT      rows of measurements of a GPU that are not in the archive: another process's of the same GPU are
//	PARENTS, PARENTS::<n>     communicators that came from others, and how (facts.Birth): comm 5 of 2 split 1 color 0; comm 6 of 2 shrink
//	PXN, PXN_UNRESOLVED       communicator ranks whose network work another process did, and those of them
//	                          whose process is not certain
//	HIDDEN                    what the libraries did not tell: keys of package hidden, what is gravest first
//	TAG_COLLISIONS            processes of one machine with equal tags: ids of their events may be equal
//	CLOCK_SYNC                by what the clocks of the hosts were brought together; absent if they were not
//	CLOCK_SYNC::<WHAT>        HOSTS, EXCHANGES, BROKEN, UNCERTAINTY_MOST_NS, and hosts by state: REFERENCE, CORRECTED, ONE_SIDED, UNTIED
//	CLOCK_SYNC::HOST::<n>     what was found about a host's clock, see HostSync
//	MERGED                    the archive is of Score-P, too, by this creator; the counts here are those of our part
//	MERGED::PROCESSES         shards whose process is one of Score-P's
//	MERGED::THREADS_LEFT_OUT, MERGED::THREADS_MARKED   rows of threads, see docs/scorep.md
//	COST::<CALLBACK>::<TYPE>::SAMPLES, …::MEAN_NS, …::MOST_NS   what the plugin's callbacks took, measured by itself
//
// and what is equal in all processes or not: LIBRARY, LIBRARY_VERSION, LIBRARY_PATH, API_VERSION, EVENT_MASK,
// RECORD_MASK, CLOCK_SOURCE, MEMORY_KIND, and where CUPTI was asked for CUPTI_STATE ("ended": it was on; else why it
// was not, "failed: …") and CUPTI_VERSION; SCOREP_STATE where there is a Score-P in the process: "on" and how it sees
// threads, or why calls are not forwarded to it; IMPORTED_FROM and IMPORT_MISSING where a plugin other than ours
// recorded the data: its format, and what it does not tell. If all have one value, it is the property's. Otherwise
// there is NAME::<n> for each value, followed by the processes (location groups) that have it: "tsc: processes 0-3,7".
//
// Of OTF2's own there is MPI_COMMUNICATION_COMPLETE: whether every collective and message has all its
// parts, as far as is known here.
type properties []otf2.Property

func (ps *properties) add(name facts.Property, value string) {
	*ps = append(*ps, otf2.Property{Name: name.Key(), Value: clean(value)})
}

func (ps *properties) addNumber(name facts.Property, n uint64) {
	ps.add(name, strconv.FormatUint(n, 10))
}

// positive adds a number unless it is 0.
func (ps *properties) positive(name facts.Property, n uint64) {
	if n > 0 {
		ps.addNumber(name, n)
	}
}

// description makes the properties of an archive.
type description struct {
	*roster
	*findings
	repeated repeated
}

// properties are all of them.
func (d *description) properties() (all properties) {
	ps := &all
	sum := newCounts()
	for _, p := range d.run.Processes {
		sum.add(&p.Shard.Counts)
	}
	d.describeProcesses(ps)
	d.describeEvidence(ps)
	d.describeHidden(ps)
	d.describeLosses(ps, sum)
	d.describeDifferences(ps)
	d.describeGaps(ps)
	d.describeBirths(ps)
	ps.positive(facts.PropMetricsLeft, d.repeated.rows())
	ps.positive(facts.PropPXN, uint64(len(d.origins.of)+len(d.origins.unknown)))
	ps.positive(facts.PropPXNUnresolved, uint64(len(d.origins.unknown)))
	d.describeSync(ps)
	ps.positive(facts.PropEndsMoved, d.movedEnds)
	ps.positive(facts.PropTagCollisions, uint64(len(slices.Concat(d.origins.collisions...))))
	*ps = append(*ps, otf2.Property{Name: facts.CompleteProperty, Value: strconv.FormatBool(d.complete(sum))})
	return all
}

// describeProcesses adds the numbers of processes and communicators, and how the processes ended.
func (d *description) describeProcesses(ps *properties) {
	var states [3]uint64
	for _, p := range d.run.Processes {
		states[slices.Index([]jobs.State{jobs.Finished, jobs.Running, jobs.Crashed}, p.State)]++
	}
	ps.addNumber(facts.PropProcesses, uint64(len(d.run.Processes)))
	ps.addNumber(facts.PropProcessesFinished, states[0])
	ps.addNumber(facts.PropProcessesRunning, states[1])
	ps.addNumber(facts.PropProcessesCrashed, states[2])
	ps.positive(facts.PropProcessesContinued, d.continuedProcesses())
	dead := jobs.Deaths(d.ordered())
	ps.positive(facts.PropProcessesDied, uint64(len(dead)))
	for i, line := range jobs.DeathWords(dead) {
		ps.add(facts.PropDied.Nth(i), line)
	}
	ps.addNumber(facts.PropProcessesMissing, uint64(d.missingProcesses()))
	ps.addNumber(facts.PropRanksMissing, uint64(d.missingRanks()))
	ps.addNumber(facts.PropCommunicators, uint64(len(d.instances)))
}

// describeLosses adds what was not recorded, of which processes, and what could not be read. sum has the counts of all
// processes.
func (d *description) describeLosses(ps *properties, sum *counts) {
	ps.addNumber(facts.PropLost, sum.total(facts.PropLost))
	sum.list(ps)
	losers := 0
	for _, p := range d.ordered() {
		own := newCounts()
		own.add(&p.Shard.Counts)
		if n := own.total(facts.PropLost); n > 0 && losers < maxDifferences {
			ps.addNumber(facts.PropLostByProcess.Nth(p.Index), n)
			losers++
		}
	}
	uncounted := d.uncounted()
	ps.positive(facts.PropUncounted, uint64(len(uncounted)))
	for i, text := range uncounted[:min(len(uncounted), maxDifferences)] {
		ps.add(facts.PropUncounted.Nth(i), text)
	}
	ps.positive(facts.PropRanksUnsized, d.ranksOfUnknownSize())
	damaged := slices.Concat(d.run.Damaged, d.damaged)
	ps.positive(facts.PropDamaged, uint64(len(damaged)))
	for i, text := range damaged[:min(len(damaged), maxDifferences)] {
		ps.add(facts.PropDamaged.Nth(i), text)
	}
}

// describeDifferences says where members did not record the same, and which stopped.
func (d *description) describeDifferences(ps *properties) {
	ps.addNumber(facts.PropDiffer, uint64(len(d.differences)))
	for i, d := range d.differences[:min(len(d.differences), maxDifferences)] {
		ps.add(facts.PropDiffer.Nth(i), d.String())
	}
	ps.positive(facts.PropStopped, uint64(len(d.stopped)))
	for i, value := range waitfor.Values(d.stopped) {
		ps.add(facts.PropStopped.Nth(i), value)
	}
}

// describeGaps says where nothing was recorded, and on which communicators ranks differ in that.
func (d *description) describeGaps(ps *properties) {
	ps.positive(facts.PropGaps, uint64(len(d.pauses)))
	for i := range d.pauses[:min(len(d.pauses), maxDifferences)] {
		ps.add(facts.PropGaps.Nth(i), d.pauses[i].String())
	}
	parted := 0
	for _, in := range d.instances {
		if in.Parted != nil {
			if parted < maxDifferences {
				ps.add(facts.PropGapsDiffer.Nth(parted),
					fmt.Sprintf("comm %d %q: %s", in.Ref, in.Name, in.Parted.Detail))
			}
			parted++
		}
	}
	ps.positive(facts.PropGapsDiffer, uint64(parted))
}

// complete reports whether the archive has all of the job's communication, as far as definitions show.
func (d *description) complete(sum *counts) bool {
	for _, p := range d.run.Processes {
		if p.State != jobs.Finished || p.Shard.End.Died() || p.Shard.Import != nil && p.Shard.Import.Partial {
			return false
		}
	}
	for _, in := range d.instances {
		if len(in.Missing()) > 0 {
			return false
		}
	}
	return sum.total(facts.PropLost) == 0 && len(d.uncounted()) == 0 && sum.total(facts.PropPaused) == 0 &&
		len(d.pauses) == 0 &&
		len(d.differences) == 0 && len(d.problems) == 0 && len(d.origins.unknown) == 0 && d.ranksOfUnknownSize() == 0
}

// counts are the sums over processes, by the name of the property.
type counts struct{ byName map[facts.Property]uint64 }

func newCounts() *counts { return &counts{make(map[facts.Property]uint64)} }

func (c *counts) add(of *experiment.Counts) {
	for _, kind := range []struct {
		of facts.Property
		n  map[string]uint64
	}{
		{facts.PropStarts, of.Starts}, {facts.PropStops, of.Stops}, {facts.PropStates, of.States},
		{facts.PropFiltered, of.Filtered},
		{facts.PropPaused, of.Paused}, {facts.PropOddities, of.Oddities}, {facts.PropTiming, of.Timing},
		{facts.PropEnds, of.Ends}, {facts.PropNetwork, of.Network}, {facts.PropCUPTI, of.CUPTI},
		{facts.PropScorep, of.Scorep}, {facts.PropImport, of.Import},
		{facts.PropNullHandles, map[string]uint64{"": of.NullHandles}},
	} {
		for key, n := range kind.n {
			name := kind.of
			if key != "" {
				name = name.Below(component(key))
			}
			if n > 0 {
				c.byName[name] += n
			}
		}
	}
	for reason, types := range of.Lost {
		for typ, n := range types {
			c.byName[facts.PropLost.Below(component(reason)).Below(component(typ))] += n
		}
	}
}

// total is the sum of the counts of a kind.
func (c *counts) total(kind facts.Property) uint64 {
	total := uint64(0)
	for name, n := range c.byName {
		if strings.HasPrefix(string(name), string(kind.Below(""))) {
			total += n
		}
	}
	return total
}

func (c *counts) list(ps *properties) {
	for _, name := range slices.Sorted(maps.Keys(c.byName)) {
		ps.addNumber(name, c.byName[name])
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
