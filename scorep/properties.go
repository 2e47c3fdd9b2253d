// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/hang/waitfor"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// properties are an archive's properties: facts about it that events do not state. Under NCCL_OTF2:
//
//	PROCESSES, PROCESSES_FINISHED, PROCESSES_RUNNING, PROCESSES_CRASHED   processes with data, by state
//	PROCESSES_CONTINUED       how often a collector took over from one that had died
//	PROCESSES_DIED            processes that did not end in order; DIED::<n> states how, and which was first
//	SILENT                    since when ranks had recorded nothing, where processes died or run with nothing under
//	                          way, and that it is not known whom they wait for
//	PROCESSES_MISSING         processes known only from their ranks in communicators
//	RANKS_MISSING             communicator ranks without data
//	COMMUNICATORS             communicators of more than one rank, without those of networks
//	RANKS_OF_UNKNOWN_SIZE     ranks of communicators whose size NCCL never reported; the archive has no records of
//	                          them
//	STARTS::<TYPE>, STOPS::<TYPE>, STATES::<STATE>, FILTERED::<TYPE>      NCCL's callbacks
//	PAUSED::<TYPE>            starts outside the window that was to be recorded
//	LOST, LOST::<REASON>::<TYPE>                                          events not recorded
//	LOST_BY_PROCESS::<n>      lost events of process n (its location group)
//	LOST_UNCOUNTED            processes that lost more, by an unknown amount; LOST_UNCOUNTED::<n> states why
//	NULL_HANDLES              stops and states of events that were refused
//	ODDITIES::<KIND>          see package regions
//	TIMING::<SOURCE>          operations by the source of their times
//	NETWORK::<WHAT>           network traffic, see package regions: PUTS, PUT_BYTES, RECEIVED_BYTES, …
//	CUPTI::<WHAT>             what CUPTI reported, see package regions: RECORDS, KERNELS, KERNELS_LINKED and, by
//	                          reason, kernels that were not linked, …
//	SCOREP::<WHAT>            calls forwarded to Score-P (FORWARDED), or not forwarded, by reason: OTHER_THREADS,
//	                          OUTSIDE, PAUSED, UNDEFINED, MEMORY
//	IMPORT::<WHAT>            input of an imported archive: LINES, MALFORMED, TRUNCATED, EVENTS and, by kind, what
//	                          could not be used, see package ingest
//	DAMAGED, DAMAGED::<n>     missing or damaged data on the disk: shards, event files
//	SEQUENCES_DIFFER          number of differences; SEQUENCES_DIFFER::<n> describes them (see Difference)
//	STOPPED, STOPPED::<n>     members that kept the job from making progress, or requested operations that do not
//	                          match: culprits of a verdict (JSON), see package waitfor
//	GAPS, GAPS::<n>           ranges of operations not recorded on request: comm 3 10-19 "name"; or lost: comm 3
//	                          lost 10-19 "name"
//	GAPS_DIFFER, GAPS_DIFFER::<n>   communicators whose members paused at different operations
//	GPU_METRICS_LEFT_OUT      rows of GPU metrics left out because the archive has another process's for
//	                          the same GPU
//	PARENTS, PARENTS::<n>     communicators created from others, and how (property.Birth): comm 5 of 2 split 1 color
//	                          0; comm 6 of 2 shrink
//	PXN, PXN_UNRESOLVED       communicator ranks whose network work another process did, and those of them
//	                          whose process is not certain
//	HIDDEN                    traffic that the libraries do not report: keys of package hidden, gravest first
//	TAG_COLLISIONS            processes of one machine with equal tags: ids of their events may be equal
//	CLOCK_SYNC                method by which the hosts' clocks were synchronized; absent if they were not
//	CLOCK_SYNC::<WHAT>        HOSTS, EXCHANGES, BROKEN, UNCERTAINTY_MOST_NS, and hosts by state: REFERENCE,
//	                          CORRECTED, ONE_SIDED, UNTIED
//	CLOCK_SYNC::HOST::<n>     what was found about a host's clock, see HostSync
//	MERGED                    the archive also contains a Score-P trace, by this creator; the counts here are of
//	                          our part only
//	MERGED::PROCESSES         shards whose process Score-P has, too
//	MERGED::THREADS_LEFT_OUT, MERGED::THREADS_MARKED   rows of threads, see docs/scorep.md
//	COST::<CALLBACK>::<TYPE>::SAMPLES, …::MEAN_NS, …::MOST_NS   duration of the plugin's callbacks, as it
//	                          measured itself
//
// Further properties state how each process was recorded: LIBRARY, LIBRARY_VERSION, LIBRARY_PATH, API_VERSION,
// EVENT_MASK, RECORD_MASK, CLOCK_SOURCE, MEMORY_KIND; if CUPTI was requested, CUPTI_STATE ("ended": it was on;
// otherwise the reason, "failed: …") and CUPTI_VERSION; with Score-P in the process, SCOREP_STATE: "on" and the
// thread model, or the reason why calls are not forwarded; for data recorded by a plugin other than ours, IMPORTED_FROM
// (the format) and IMPORT_MISSING (what that format lacks). If all processes have the same value, it is the property's.
// Otherwise there is one NAME::<n> per value, followed by the processes (location groups) that have it: "tsc: processes
// 0-3,7".
//
// One property is OTF2's own, MPI_COMMUNICATION_COMPLETE: whether, by all that is known here, no part of a collective
// or message is missing.
type properties []otf2.Property

func (ps *properties) add(name property.Name, value string) {
	*ps = append(*ps, otf2.Property{Name: name.Key(), Value: clean(value)})
}

func (ps *properties) addNumber(name property.Name, n uint64) {
	ps.add(name, strconv.FormatUint(n, 10))
}

// positive adds a number unless it is 0.
func (ps *properties) positive(name property.Name, n uint64) {
	if n > 0 {
		ps.addNumber(name, n)
	}
}

// jobText makes the properties of an archive.
type jobText struct {
	*roster
	*findings
	repeated repeated
}

// properties returns all properties of the archive.
func (d *jobText) properties() (all properties) {
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
	ps.positive(property.MetricsLeft, d.repeated.rows())
	ps.positive(property.PXN, uint64(len(d.origins.of)+len(d.origins.unknown)))
	ps.positive(property.PXNUnresolved, uint64(len(d.origins.unknown)))
	d.describeSync(ps)
	ps.positive(property.EndsMoved, d.movedEnds)
	ps.positive(property.TagCollisions, uint64(len(slices.Concat(d.origins.collisions...))))
	*ps = append(*ps, otf2.Property{Name: property.Complete, Value: strconv.FormatBool(d.isComplete(sum))})
	return all
}

// describeProcesses adds the numbers of processes and communicators, and how processes died.
func (d *jobText) describeProcesses(ps *properties) {
	var states [3]uint64
	for _, p := range d.run.Processes {
		states[slices.Index([]jobs.State{jobs.Finished, jobs.Running, jobs.Crashed}, p.State)]++
	}
	ps.addNumber(property.Processes, uint64(len(d.run.Processes)))
	ps.addNumber(property.ProcessesFinished, states[0])
	ps.addNumber(property.ProcessesRunning, states[1])
	ps.addNumber(property.ProcessesCrashed, states[2])
	ps.positive(property.ProcessesContinued, d.continuedProcesses())
	dead := jobs.Deaths(d.ordered())
	ps.positive(property.ProcessesDied, uint64(len(dead)))
	for i, line := range jobs.DeathWords(dead) {
		ps.add(property.Died.Nth(i), line)
	}
	if d.silent != "" {
		ps.add(property.Silent, d.silent)
	}
	ps.addNumber(property.ProcessesMissing, uint64(d.missingProcesses()))
	ps.addNumber(property.RanksMissing, uint64(d.missingRanks()))
	ps.addNumber(property.Communicators, uint64(len(d.instances)))
}

// describeLosses adds what was lost, by reason and by process, and what was damaged. sum has the counts of all
// processes.
func (d *jobText) describeLosses(ps *properties, sum *counts) {
	ps.addNumber(property.Lost, sum.total(property.Lost))
	sum.list(ps)
	losers := 0
	for _, p := range d.ordered() {
		own := newCounts()
		own.add(&p.Shard.Counts)
		if n := own.total(property.Lost); n > 0 && losers < maxDifferences {
			ps.addNumber(property.LostByProcess.Nth(p.Index), n)
			losers++
		}
	}
	uncounted := d.uncounted()
	ps.positive(property.Uncounted, uint64(len(uncounted)))
	for i, text := range uncounted[:min(len(uncounted), maxDifferences)] {
		ps.add(property.Uncounted.Nth(i), text)
	}
	ps.positive(property.RanksUnsized, d.ranksOfUnknownSize())
	damaged := slices.Concat(d.run.Damaged, d.damaged)
	ps.positive(property.Damaged, uint64(len(damaged)))
	for i, text := range damaged[:min(len(damaged), maxDifferences)] {
		ps.add(property.Damaged.Nth(i), text)
	}
}

// describeDifferences adds where members of communicators differ, and which members stopped the job.
func (d *jobText) describeDifferences(ps *properties) {
	ps.addNumber(property.Differ, uint64(len(d.differences)))
	for i, d := range d.differences[:min(len(d.differences), maxDifferences)] {
		ps.add(property.Differ.Nth(i), d.String())
	}
	ps.positive(property.Stopped, uint64(len(d.stopped)))
	for i, value := range waitfor.Values(d.stopped) {
		ps.add(property.Stopped.Nth(i), value)
	}
}

// describeGaps adds which operations were not recorded, and the communicators whose members differ in that.
func (d *jobText) describeGaps(ps *properties) {
	ps.positive(property.Gaps, uint64(len(d.pauses)))
	for i := range d.pauses[:min(len(d.pauses), maxDifferences)] {
		ps.add(property.Gaps.Nth(i), d.pauses[i].String())
	}
	parted := 0
	for _, in := range d.instances {
		if in.Parted != nil {
			if parted < maxDifferences {
				ps.add(property.GapsDiffer.Nth(parted),
					fmt.Sprintf("comm %d %q: %s", in.Ref, in.Name, in.Parted.Detail))
			}
			parted++
		}
	}
	ps.positive(property.GapsDiffer, uint64(parted))
}

// isComplete reports whether the archive contains all communication of the job, by definitions and counts alone.
func (d *jobText) isComplete(sum *counts) bool {
	for _, p := range d.run.Processes {
		if p.State != jobs.Finished || p.Shard.End.Died() || p.Shard.Import != nil && p.Shard.Import.Partial {
			return false
		}
	}
	return !slices.ContainsFunc(d.instances, func(in *jobs.Communicator) bool {
		return len(in.Missing()) > 0
	}) && sum.total(property.Lost) == 0 && len(d.uncounted()) == 0 && sum.total(property.Paused) == 0 &&
		len(d.pauses) == 0 &&
		len(d.differences) == 0 && len(d.problems) == 0 && len(d.origins.unknown) == 0 && d.ranksOfUnknownSize() == 0
}

// counts holds sums over processes, by property.
type counts struct{ byName map[property.Name]uint64 }

func newCounts() *counts { return &counts{make(map[property.Name]uint64)} }

func (c *counts) add(of *description.Counts) {
	for _, kind := range []struct {
		of property.Name
		n  map[string]uint64
	}{
		{property.Starts, of.Starts}, {property.Stops, of.Stops}, {property.States, of.States},
		{property.Filtered, of.Filtered},
		{property.Paused, of.Paused}, {property.Oddities, of.Oddities}, {property.Timing, of.Timing},
		{property.Ends, of.Ends}, {property.Network, of.Network}, {property.CUPTI, of.CUPTI},
		{property.Scorep, of.Scorep}, {property.Import, of.Import},
		{property.NullHandles, map[string]uint64{"": of.NullHandles}},
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
			c.byName[property.Lost.Below(component(reason)).Below(component(typ))] += n
		}
	}
}

// total returns the sum of all counts of a kind.
func (c *counts) total(kind property.Name) uint64 {
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

// component converts a name such as "ProxyStep" or "ring full" into a part of a property's name: PROXY_STEP, RING_FULL.
// OTF2 allows letters, digits and underscores.
func component(s string) string {
	out := make([]byte, 0, len(s)+4)
	for i := range len(s) {
		c := s[i]
		switch {
		case 'A' <= c && c <= 'Z':
			// A capital starts a word after a small letter, or as the last of several capitals (KernelCh, NETPlugin).
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
