// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"fmt"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/causes"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/criticalpath"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/hang/waitfor"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/placement"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/schedule"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/selfreport"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/transfers"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/verdict"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/attribute"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/lateness"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/membership"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// causing passes operations to the engine that attributes waits to their causes. A nil causing does nothing.
type causing struct {
	engine   *causes.Engine
	path     *criticalpath.Path
	schedule *schedule.Recorder
	saved    []int64 // by which the last operation of each rank would have ended earlier on an ideal network, ns
	lanes    *causes.Lanes
	shared   []placement.SharedGPU
	sharing  causes.Sharing // the same as shared, in the form of package causes
	ranks    []placement.Rank
	unstated bool // the archive does not state sources of times
	members  []causes.Member
}

// newCausing returns what passes an archive's operations on. whole: the analysis covers the whole run, so that it can
// be played again.
func newCausing(defs *otf2.Definitions, comms map[otf2.CommRef]*membership.Communicator, whole bool) *causing {
	ranks, of := placement.Ranks(defs, comms)
	processes := placement.Processes(defs)
	engine, path := causes.NewEngine(len(ranks)), criticalpath.New(len(ranks))
	engine.AddFollower(path)
	recorder := schedule.NewRecorder(len(ranks))
	if whole {
		engine.AddFollower(recorder)
	}
	shared := placement.SharedGPUs(defs, comms, ranks, of)
	on := make([][]int, len(shared))
	for i := range shared {
		on[i] = shared[i].Ranks
	}
	sharing := causes.NewSharing(len(ranks), on)
	engine.SetGPUSharing(sharing)
	return &causing{
		shared: shared, sharing: sharing,
		schedule: recorder, engine: engine, path: path, ranks: ranks,
		unstated: !attribute.Find(defs).Has(regions.AttrTimingSource),
		lanes:    causes.NewLanes(defs, of, func(l otf2.LocationRef) otf2.LocationGroupRef { return processes[l] }),
	}
}

// part takes each member's part of an operation when it has ended, before the parts are brought together.
func (c *causing) part(op *analysis.Operation) {
	if c != nil {
		c.engine.AddPart(&op.Local)
	}
}

// alone takes an operation that is not compared with others.
func (c *causing) alone(op *analysis.Operation) {
	if c != nil {
		c.engine.AddUncompared(&op.Local, op.Since, op.End)
	}
}

// message takes one end of a message; paired reports whether its other end will follow.
func (c *causing) message(op *analysis.Operation, paired bool) {
	if c == nil {
		return
	}
	c.engine.Message(&causes.End{
		Member: c.member(op), Comm: op.Communicator.Ref, Members: op.Communicator.Size(), Function: op.Function,
		Ordinal: op.Ordinal, Last: op.Last, Paired: paired, Follows: op.Follows,
	})
}

func (c *causing) member(m *analysis.Operation) causes.Member {
	return causes.Member{
		Arrival: lateness.Arrival{Rank: m.Rank, Begin: m.Since, End: m.End, Source: m.Source,
			Root:    int64(m.Root) == int64(m.Rank),
			Certain: m.Certain()},
		There:       m.Begin,
		Uncertainty: m.Uncertainty, Stated: m.Stated, Local: m.Local,
	}
}

// collective takes a collective that all its members have ended, and the charges for what made it longer. Of several
// operations in one launch only the first counts.
func (c *causing) collective(members []analysis.Operation, slowed []transfers.Charge) {
	if c == nil {
		return
	}
	op := &members[0]
	c.members = c.members[:0]
	for i := range members {
		m := &members[i]
		if !m.Leads {
			return
		}
		c.members = append(c.members, c.member(m))
	}
	c.engine.Collective(&causes.Operation{
		Comm: op.Communicator.Ref, Members: op.Communicator.Size(), Function: op.Function, Ordinal: op.Ordinal,
		Kind: lateness.WaitKindOf(op.Collective), Unstated: c.unstated,
		Slow: slowBy(slowed),
	}, c.members)
}

// slowBy converts charges to the form of package causes. It leaves out charges that nobody is known to be responsible
// for.
func slowBy(charges []transfers.Charge) (all []causes.Slow) {
	for i := range charges {
		if kind, known := slowCauses[charges[i].Kind]; known {
			all = append(all, causes.Slow{Rank: int32(charges[i].Rank), Kind: kind, Excess: charges[i].Excess,
				Steps: charges[i].Steps})
		}
	}
	return all
}

// abandoned takes a collective that not all members have ended.
func (c *causing) abandoned(members []analysis.Operation) {
	for i := range members {
		if members[i].Leads {
			c.alone(&members[i])
		}
	}
}

// restsOn says what the verdict on an archive rests on that was made from files of a profiler.
var restsOn = map[string]string{
	description.FromTorch:  " (From PyTorch traces: times of kernels and of calls, in the steps that were profiled.)",
	description.FromNsight: " (From Nsight Systems: times of kernels and of calls, while it recorded.)",
	description.FromROCpd:  " (From rocprofv3: times of kernels and of calls, while it recorded.)",
}

// findVerdict determines the causes of the waits and the verdict.
func (r *Report) findVerdict(a *otf2.Archive, o *operations) {
	r.Causes = o.causing.engine.Result()
	for _, l := range r.WaitStates.Slow.Longer {
		r.Causes.Ascribe(l.Rank, l.By, l.Part)
	}
	r.WaitStates.Explain(r.Causes)
	ev := &verdict.Evidence{
		MPI:    make(map[otf2.CommRef]bool),
		Causes: r.Causes, Begin: o.first, Duration: r.Summary.Duration, Stuck: waitfor.OfArchive(a.Anchor),
		Compared: r.WaitStates.Collectives + r.WaitStates.Messages, Enqueued: r.WaitStates.Enqueue.Collectives,
		Untimed: r.Summary.Untimed, Uncompared: r.WaitStates.Total.Parts+r.WaitStates.StartUp.Collectives == 0,
		Transfers: r.WaitStates.Slow.Seen > 0,
		Kernel:    regionNames(a.Defs),
	}
	for source, n := range r.Summary.Timing {
		ev.Launched += n
		if strings.EqualFold(source, regions.TimingEnqueue) {
			ev.OnlyLaunched = n
		}
	}
	if rank, ok := r.WaitStates.Enqueue.LastCaller(); ok {
		row := &r.WaitStates.Enqueue.Ranks[rank]
		ev.LastCaller = &verdict.LastCaller{Rank: rank, Times: row.Last, Of: row.Parts,
			Behind: float64(row.Behind) / float64(row.Parts)}
	}
	seen := make(map[otf2.CommRef]bool)
	for i := range r.Causes.Comms {
		seen[r.Causes.Comms[i].Ref] = true
	}
	if len(seen) > 1 {
		ev.Comm = o.commName
	}
	for _, n := range r.Summary.Lost {
		ev.Lost += n
	}
	for ref, c := range o.comms {
		if c.Calls {
			ev.MPI[ref] = true
		}
	}
	for _, rank := range o.causing.ranks {
		ev.Ranks = append(ev.Ranks, verdict.Place{Name: rank.Name, Host: rank.Host, GPU: rank.Gpu})
	}
	for _, g := range o.causing.shared {
		ev.Shared = append(ev.Shared, verdict.SharedGPU{Ranks: g.Ranks, Host: g.Host, GPU: g.GPU, UUID: g.UUID})
	}
	ev.Slow = r.slow(func(rank int) string { return ev.Ranks[rank].Name }, o.causing.sharing)
	imported := selfreport.PropertiesOf(a.Anchor)
	if n := imported.Below(property.Import)[description.KernelsWithoutGroup]; n > (n+ev.Launched)/mostWithoutGroup {
		ev.Hole = fmt.Sprintf("of %d of %d kernels of NCCL, the traces do not name the process group, so it is not "+
			"known for whom these waited", n, n+ev.Launched)
	}
	if n := r.Summary.NotRecorded; n != nil {
		ev.Unrecorded = n.Text()
	}
	r.Verdict = verdict.Judge(ev)
	r.Verdict.Text += restsOn[imported.Text(property.ImportedFrom)]
	r.WaitStates.Verdict = r.Verdict
	switch {
	case o.selected != nil: // the path covers the whole run
	case ev.Hole != "":
		o.causing.schedule.Close()
		r.CriticalPath = &criticalpath.Result{NotKnown: ev.Hole}
	default:
		r.CriticalPath = o.causing.critical(r, o)
	}
}

// mostWithoutGroup is of how many kernels of NCCL one may be of no known communicator for answers to be given.
const mostWithoutGroup = 100

// commName returns a communicator's name, "" if it is unknown.
func (o *operations) commName(ref otf2.CommRef) string {
	if comm := o.comms[ref]; comm != nil {
		return comm.Name
	}
	return ""
}

// regionNames returns a function that names an archive's regions.
func regionNames(defs *otf2.Definitions) func(otf2.RegionRef) string {
	return func(ref otf2.RegionRef) string {
		if r := defs.Region(ref); r != nil {
			return defs.String(r.Name)
		}
		return fmt.Sprintf("region %d", ref)
	}
}

// critical returns the critical path, and what would be saved if the transfers and ranks named by the verdict and by
// package transfers were as fast as others. It returns nil if there is no path.
func (c *causing) critical(r *Report, o *operations) *criticalpath.Result {
	name := func(rank int) (name, host string) { return c.ranks[rank].Name, c.ranks[rank].Host }
	p := c.path.Result(&criticalpath.Run{
		Begin: o.first, Duration: r.Summary.Duration, Name: name,
		Comm:   o.commName,
		Kernel: regionNames(o.defs),
	})
	together := criticalpath.Together{Roles: c.schedule.Roles(), Replicas: c.schedule.Replicas()}
	c.saved = criticalpath.NewChanges(r.Causes, r.Verdict, &together, name).Play(c.schedule, p)
	c.schedule.Close()
	if p == nil {
		return nil
	}
	for i := range r.WaitStates.Slow.Rows {
		if f := &r.WaitStates.Slow.Rows[i].Finding; !inTurns(f, c.sharing) {
			p.Slow(f, name)
		}
	}
	p.NameSet(r.Causes, r.Verdict, together.Roles)
	p.AddConfidence(r.Verdict) // a set that is named has a gain
	return p
}
