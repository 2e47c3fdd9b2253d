// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/atomicfile"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/regions"
	"github.com/nccl-otf2/nccl-otf2/scorep/files"
	"github.com/nccl-otf2/nccl-otf2/scorep/measurement"
)

// MergeOptions are the options of Merge; nil means the zero value.
type MergeOptions struct {
	UnifyOptions
	// KeepForwarded keeps, unmarked, the rows of threads whose calls Score-P recorded, too.
	KeepForwarded bool
}

// MergeResult is the outcome of Merge.
type MergeResult struct {
	Archive string `json:"archive"` // path of its anchor
	Timer   string `json:"timer"`   // Score-P's timer, as SCOREP_TIMER names it

	Paired     int `json:"paired"`      // processes that both sides recorded
	ScorepOnly int `json:"scorep_only"` // processes that only Score-P recorded
	NCCLOnly   int `json:"nccl_only"`   // processes that only NCCL's side recorded

	ScorepLocations int    `json:"scorep_locations"`
	Locations       int    `json:"locations"` // added to them
	ScorepEvents    uint64 `json:"scorep_events"`
	Events          uint64 `json:"events"` // added to them
	Communicators   int    `json:"communicators"`

	// Rows of threads left out because Score-P has all their calls, and rows kept with the calls that Score-P also has
	// marked.
	ThreadsLeftOut int `json:"threads_left_out"`
	ThreadsMarked  int `json:"threads_marked"`

	Linked    int  `json:"linked"`    // hard-linked event files, of both sides
	Copied    int  `json:"copied"`    // copied event files: no hard link was possible, or the process had not finished
	Rewritten int  `json:"rewritten"` // copied files that were rewritten into chunks of Score-P's size
	Extended  bool `json:"extended"`  // our events begin before, or end after, those of Score-P

	Problems []string `json:"problems,omitempty"`
}

// forwardedMark is appended to the names of regions that Score-P has, too.
const forwardedMark = " (forwarded)"

// Merge writes one archive into the folder out: the trace of a Score-P measurement, and what the processes of the same
// job recorded in the experiment directory dir. If out already contains an archive of Merge, it is replaced.
//
// Score-P's definitions come first, byte for byte, and keep their ids; its event files and local definitions are
// linked. Our definitions get ids after those. Our local definition files map our ids and clocks to the merged
// archive's. So no events are read, except the first one of each Score-P thread, which identifies the thread.
//
// Errors: experiment.ErrBusy if the directory is being unified; otherwise one line about what is wrong with the input.
func Merge(measurementDir, dir, out string, opts *MergeOptions) (*MergeResult, error) {
	opts = cmp.Or(opts, new(MergeOptions))
	m, err := measurement.Open(measurementDir)
	if err != nil {
		return nil, err
	}
	if err := mayReplace(out); err != nil {
		return nil, err
	}
	unifyOpts := opts.UnifyOptions
	unifyOpts.ownParadigm = true
	runs, left, release, err := readRuns(dir, &unifyOpts)
	if err != nil {
		return nil, err
	}
	defer release()
	into, r, more, err := pairRuns(m, runs)
	if err != nil {
		return nil, err
	}
	into.keepForwarded = opts.KeepForwarded
	res, err := into.write(r, out, &unifyOpts)
	if err != nil {
		return nil, fmt.Errorf("merge into %s: %w", out, err)
	}
	res.Problems = slices.Concat(left.Problems, more, res.Problems)
	return res, nil
}

// SameJob reports whether any process of an experiment directory is also in a Score-P measurement, by host and process
// id. The error is fs.ErrNotExist if the measurement has no trace.
func SameJob(measurementDir, dir string) (bool, error) {
	if _, err := os.Stat(filepath.Join(measurementDir, files.ArchiveName+".otf2")); err != nil {
		return false, err
	}
	m, err := measurement.Open(measurementDir)
	if err != nil {
		return false, err
	}
	parts, _, err := jobs.Read(dir, 2, time.Now())
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(parts, func(p *jobs.Process) bool { return len(m.Candidates(p)) > 0 }), nil
}

// mayReplace returns an error if an archive must not be written into the folder. It may if the folder does not exist,
// is empty, or contains an archive of Merge.
func mayReplace(out string) error {
	if err := atomicfile.RefuseFolder(out); err != nil {
		return err
	}
	entries, err := os.ReadDir(out)
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0:
		return nil
	case err != nil:
		return err
	}
	if _, err := os.Lstat(filepath.Join(out, files.ArchiveName+".otf2")); err != nil ||
		files.MayReplace(out, property.Merged.Key()) != nil {
		return fmt.Errorf("%s exists and is not a merged archive: give a new folder", out)
	}
	return nil
}

// merger is the target of an archive that is merged into that of a measurement.
type merger struct {
	*measurement.Trace
	pairs         map[*jobs.Process]*measurement.Pairing
	keepForwarded bool

	threadsLeftOut, threadsMarked int
	extended                      bool
}

// pairRuns joins the runs that have processes in the measurement into one run. It returns lines about processes that
// were left out, and an error if no process matches.
func pairRuns(m *measurement.Trace, runs []*jobs.Run) (*merger, *jobs.Run, []string, error) {
	var all []*jobs.Process
	for _, r := range runs {
		all = append(all, r.Processes...)
	}
	pairs, reasons := measurement.Pair(all, m)
	var chosen *jobs.Run
	others := 0
	for _, r := range runs {
		switch {
		case !slices.ContainsFunc(r.Processes, func(p *jobs.Process) bool { return pairs[p] != nil }):
			others += len(r.Processes)
		case chosen == nil:
			chosen = r
		default:
			chosen.Join(r)
		}
	}
	if chosen == nil {
		return nil, nil, nil, measurement.NoPair(m, all, reasons)
	}
	chosen.Settle()
	if others > 0 {
		reasons = append(reasons, fmt.Sprintf("%s of other jobs in the directory left out",
			units.Plural(uint64(others), "process")))
	}
	return &merger{Trace: m, pairs: pairs}, chosen, reasons, nil
}

// assignPlaces assigns the processes of a world their places in the measurement, and sets the conversion of their times
// to its clock.
func (g *merger) assignPlaces(r *roster, d *definitions) {
	d.from = g.firstIDs()
	for _, s := range g.Archive.Defs.Strings {
		if _, known := d.refs[s.Text]; !known {
			d.refs[s.Text] = s.Self
		}
	}
	next := int(g.Groups)
	base := make(map[otf2.LocationGroupRef]uint32) // location numbers in use, by location group
	for _, pl := range r.world.Places {
		pl.Base = g.Numbers
		fit := g.pairs[pl.Process]
		if pl.Process == nil || fit == nil {
			pl.Index = next
			next++
		} else {
			pl.Index, pl.Name = int(fit.Group), fit.Name
			pl.Base += base[fit.Group]
			// The rows of a further shard of the same process are numbered after these, and after those that may be
			// needed for ranks without events.
			for _, l := range pl.Process.Shard.Locations {
				base[fit.Group] = max(base[fit.Group], pl.Base-g.Numbers+l.Number+1)
			}
			base[fit.Group] += uint32(len(pl.Process.Shard.Comms))
		}
		if pl.Process != nil {
			pl.Process.Index, pl.Process.Name, pl.Process.Base = pl.Index, pl.Name, pl.Base
		}
	}
	for _, p := range r.run.Processes {
		t := g.transferOf(p, r.run.Processes)
		p.Onto = t.Records(p.Life.Begin, max(p.Life.End, p.Shard.LastTime))
	}
}

// transferOf returns the conversion of the process's times to the measurement's clock. A process that the measurement
// does not have uses the conversion of another one, preferably on the same machine, whose clock it shares. Otherwise
// the result is only as accurate as the machines' real-time clocks.
func (g *merger) transferOf(p *jobs.Process, parts []*jobs.Process) *measurement.Transfer {
	if fit := g.pairs[p]; fit != nil {
		return fit.Transfer
	}
	var by *jobs.Process
	for _, q := range parts {
		if g.pairs[q] != nil && (by == nil || q.ClockName() == p.ClockName() && by.ClockName() != p.ClockName()) {
			by = q
		}
	}
	t := *g.pairs[by].Transfer
	t.Shift = p.Offset - by.Offset
	return &t
}

// defineSystemTree finds the nodes of the machines in the measurement's system tree.
func (g *merger) defineSystemTree(t *systemTree, w *jobs.World) {
	t.machine = g.Root
	for _, pl := range w.Places {
		if fit := g.pairs[pl.Process]; pl.Process != nil && fit != nil && fit.Node != otf2.UndefinedSystemTreeNode {
			t.nodes[hostKey(pl.Process)] = fit.Node
		}
	}
	taken := make(map[otf2.SystemTreeNodeRef]bool)
	for _, n := range t.nodes {
		taken[n] = true
	}
	for _, pl := range w.Places { // machines where no process is in both
		if pl.Process == nil {
			continue
		}
		if _, known := t.nodes[hostKey(pl.Process)]; known {
			continue
		}
		for _, q := range g.Processes {
			if !taken[q.Node] && q.Host != "" && measurement.SameHost(q.Host, pl.Process.Shard.Host) {
				t.nodes[hostKey(pl.Process)] = q.Node
				taken[q.Node] = true
				break
			}
		}
	}
}

// row returns how a location is included, and its name.
func (g *merger) row(p *jobs.Process, l *description.Location) (treatment, string) {
	fit := g.pairs[p]
	// without a single owner, it is not known which thread made which call
	if fit == nil || l.Kind != description.KindThread || l.TID == 0 || l.Shared() {
		return keepRow, rowName(l)
	}
	thread := fit.Thread(p, l.TID)
	if thread == nil {
		return keepRow, l.Name
	}
	name := thread.Name + " NCCL"
	switch {
	case g.keepForwarded || !g.forwards(p, l):
		return keepRow, name
	case p.Shard.Scorep.Points:
		return markRow, name
	case slices.ContainsFunc(p.Shard.Regions,
		func(r description.Region) bool { return r.Group == regions.GroupAPI && !g.isForwarded(&r) }):
		return markRow, name
	}
	return leaveRow, name
}

// forwards reports whether all calls of a thread were forwarded to Score-P and recorded by it. Calls that were not
// isForwarded are counted by process and reason, not by thread, so any such call makes it uncertain for every thread.
// An exception is the reason "other threads", which never applies to the main thread.
func (g *merger) forwards(p *jobs.Process, l *description.Location) bool {
	s, calls := p.Shard.Scorep, p.Shard.Counts.Scorep
	if s == nil || s.State != shm.ScorepOn.String() || calls[shm.ScorepForwarded] == 0 || len(g.Regions) == 0 {
		return false
	}
	main := l.TID == p.Shard.PID
	for reason, n := range calls {
		if n > 0 && reason != shm.ScorepForwarded && (reason != shm.ScorepOtherThreads || !main) {
			return false
		}
	}
	return main || s.Model == shm.ScorepCreateWait.String()
}

// isForwarded reports whether a region consists of NCCL calls that the measurement also has.
func (g *merger) isForwarded(r *description.Region) bool {
	return r.Group == regions.GroupAPI && g.Regions[r.Name]
}

// groupForwarded is the group of NCCL's calls on Score-P's rows. Score-P puts them in no group, and without one,
// readers color them as user regions. It differs from the group of our recorded calls, so that sums by group count each
// call once.
const groupForwarded = regions.GroupAPI + " (Score-P)"

func (g *merger) calls() (all []otf2.RegionRef) {
	defs := g.Archive.Defs
	grouped := make(map[otf2.RegionRef]bool)
	for _, x := range defs.Groups {
		if x.Type == otf2.GroupTypeRegions {
			for _, m := range x.Members {
				grouped[otf2.RegionRef(m)] = true
			}
		}
	}
	for _, r := range defs.Regions {
		if !grouped[r.Self] && measurement.Forwarded(defs, &r) {
			all = append(all, r.Self)
		}
	}
	return all
}

// marksCallsOf reports whether any row of the process gets its forwarded calls marked.
func (g *merger) marksCallsOf(p *jobs.Process) bool {
	return slices.ContainsFunc(p.Shard.Locations, func(l description.Location) bool {
		do, _ := g.row(p, &l)
		return do == markRow
	})
}

// nextGroup returns the id that one more PROCESS location group would get.
func (g *merger) nextGroup(w *jobs.World) int {
	n := int(g.Groups)
	for _, pl := range w.Places {
		n = max(n, pl.Index+1)
	}
	return n
}

// hasProcess reports whether the measurement also has the process.
func (g *merger) hasProcess(p *jobs.Process) bool { return g.pairs[p] != nil }

// standsFor returns the location of the process's first thread in the measurement.
func (g *merger) standsFor(p *jobs.Process) otf2.LocationRef { return g.pairs[p].Threads[0].Location }

// countTreatment counts the rows that are left out or marked.
func (g *merger) countTreatment(do treatment) {
	switch do {
	case leaveRow:
		g.threadsLeftOut++
	case markRow:
		g.threadsMarked++
	}
}

// paradigm reports whether the measurement defines the paradigm.
func (g *merger) paradigm(p otf2.Paradigm) bool { return g.Archive.Defs.ParadigmDef(p) != nil }

// emptyTimeRange returns the measurement's own time range.
func (g *merger) emptyTimeRange(*jobs.Run) (first, last uint64) {
	c := g.Archive.Defs.Clock
	return c.Offset, c.Offset + c.Length
}

// clock widens x to the measurement's range. The measurement's clock definition is kept unless our events lie outside
// of its range.
func (g *merger) clock(x *extent) (otf2.ClockProperties, bool) {
	c := g.Archive.Defs.Clock
	end := c.Offset + c.Length
	g.extended = x.first < c.Offset || x.last > end
	x.first, x.last = min(x.first, c.Offset), max(x.last, end)
	return otf2.ClockProperties{Resolution: c.Resolution, Offset: x.first, Length: x.last - x.first,
		Realtime: c.Realtime}, g.extended
}

// write writes the archive into a staging folder in out, then moves it into place.
func (g *merger) write(r *jobs.Run, out string, opts *UnifyOptions) (*MergeResult, error) {
	if err := atomicfile.MakeFolder(out); err != nil {
		return nil, err
	}
	s, events, err := files.StageArchive(out)
	if err != nil {
		return nil, err
	}
	defer s.Discard()
	staging := s.Path

	a, err := newArchive(r, opts, g)
	if err != nil {
		return nil, err
	}
	a.chunk = g.Archive.Anchor.EventChunkSize
	theirs, err := g.linkFiles(opts, staging)
	if err != nil {
		return nil, err
	}
	ours, err := a.placeEvents(events)
	if err != nil {
		return nil, err
	}
	a.define()
	if err := g.writeDefinitions(a, staging); err != nil {
		return nil, err
	}
	if err := s.Replace(out); err != nil {
		return nil, err
	}
	res := g.result(a)
	res.Archive = filepath.Join(out, files.ArchiveName+".otf2")
	res.Linked, res.Copied, res.Rewritten = theirs.Linked+ours.Linked, theirs.Copied+ours.Copied, ours.Rewritten
	return res, nil
}

// linkFiles links all files of the measurement's locations, and its thumbnails, into the folder staging. A location
// without a local definition file gets an empty one, because all locations of the merged archive must have one.
func (g *merger) linkFiles(opts *UnifyOptions, staging string) (*files.Events, error) {
	out := files.New(0)
	at := func(name string) (from, to string) { return filepath.Join(g.Dir, name), filepath.Join(staging, name) }
	all := g.Archive.Defs.Locations
	err := jobs.ForEach(len(all), opts.workers(), func(i int) error {
		for _, suffix := range []string{".evt", ".def", ".snap"} {
			from, to := at(filepath.Join(files.ArchiveName, files.Name(all[i].Self, suffix)))
			placed := files.New(0)
			if suffix == ".evt" {
				placed = out
			}
			err := placed.Link(from, to)
			if errors.Is(err, fs.ErrNotExist) {
				switch suffix {
				case ".def":
					if _, _, err = g.Archive.LocalDefs(all[i].Self); err == nil {
						err = otf2.WriteLocalDefs(to, nil, nil, g.Archive.Anchor.DefChunkSize)
					}
				case ".snap":
					err = nil
				}
			}
			if err != nil {
				return err
			}
		}
		opts.progress("Score-P's files", i+1, len(all))
		return nil
	})
	for i := uint32(0); i < g.Archive.Anchor.Thumbnails && err == nil; i++ {
		from, to := at(fmt.Sprintf("%s.%d.thumb", files.ArchiveName, i))
		err = files.New(0).Link(from, to)
	}
	return out, err
}

// writeDefinitions writes all files of the archive except event files.
func (g *merger) writeDefinitions(a *archive, staging string) error {
	path := func(suffix string) string { return filepath.Join(staging, files.ArchiveName+suffix) }
	anchor := *g.Archive.Anchor
	if need := a.chunkSizeFor(); need > anchor.DefChunkSize {
		if err := g.localDefsFit(); err != nil {
			return err
		}
		anchor.DefChunkSize = need
	}
	if err := a.tables.write(path(""), anchor.DefChunkSize, a.locations, a.opts.workers()); err != nil {
		return err
	}
	from := filepath.Join(g.Dir, files.ArchiveName+".def")
	count, err := a.definitions.write(path(".def"), anchor.DefChunkSize, func(w *otf2.GlobalDefWriter) error {
		if g.extended {
			return w.Copy(from, g.Archive.Anchor.DefChunkSize, otf2.DefClockProperties)
		}
		return w.Copy(from, g.Archive.Anchor.DefChunkSize)
	})
	if err != nil {
		return err
	}
	if err := g.writeMarkers(a.markers, path(".marker"), anchor.DefChunkSize); err != nil {
		return err
	}
	anchor.Version = [3]uint8{}
	anchor.Locations += uint64(len(a.locations))
	anchor.GlobalDefs = count
	anchor.Creator = fmt.Sprintf("%s, %s", g.Archive.Anchor.Creator, a.opts.creator())
	anchor.Properties = g.properties(a.properties)
	anchor.TraceID = g.traceID(a.run)
	return otf2.WriteAnchor(path(".otf2"), &anchor)
}

// writeMarkers writes the measurement's markers, then ours. It writes no file if there are none.
func (g *merger) writeMarkers(ours markers, path string, chunkSize uint64) error {
	defs, markers, err := g.Archive.Markers()
	if err != nil || len(defs)+len(ours) == 0 {
		return err
	}
	w, err := otf2.CreateMarkerWriter(path, chunkSize)
	if err != nil {
		return err
	}
	next := otf2.MarkerRef(0) // w keeps its first error and returns it from Close
	for _, d := range defs {
		next = max(next, d.Self+1)
		_ = w.DefMarker(d.Self, d.Group, d.Category, d.Severity)
	}
	for _, m := range markers {
		_ = w.Marker(m.Time, m.Duration, m.Marker, m.ScopeType, m.Scope, m.Text)
	}
	ours.addTo(w, next)
	if err := w.Close(); err != nil {
		return fmt.Errorf("write markers: %w", err)
	}
	return nil
}

// localDefsFit returns an error if larger definition chunks would make the measurement's local definitions unreadable.
// Files of a single chunk stay readable.
func (g *merger) localDefsFit() error {
	for _, l := range g.Archive.Defs.Locations {
		info, err := os.Stat(filepath.Join(g.Dir, files.ArchiveName, files.Name(l.Self, ".def")))
		if err == nil && uint64(info.Size()) > g.Archive.Anchor.DefChunkSize {
			return fmt.Errorf(
				"our definitions need chunks of more than %d bytes, and Score-P's of location %d take several of those",
				g.Archive.Anchor.DefChunkSize, l.Self)
		}
	}
	return nil
}

// properties returns the measurement's properties, then ours. A property that both have with different values becomes
// "false": it is true only if it holds for both parts.
func (g *merger) properties(ours properties) properties {
	all := slices.Clone(properties(g.Archive.Anchor.Properties))
	all.add(property.Merged, g.Archive.Anchor.Creator)
	all.addNumber(property.MergedPairs, uint64(len(g.pairs)))
	all.positive(property.MergedLeft, uint64(g.threadsLeftOut))
	all.positive(property.MergedMarked, uint64(g.threadsMarked))
	for _, p := range ours {
		i := slices.IndexFunc(all, func(q otf2.Property) bool { return q.Name == p.Name })
		switch {
		case i < 0:
			all = append(all, p)
		case p.Value != all[i].Value:
			all[i].Value = strconv.FormatBool(false)
		}
	}
	return all
}

func (g *merger) traceID(r *jobs.Run) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %d", g.Archive.Anchor.TraceID, traceID(r))
	return max(h.Sum64(), 1)
}

func (g *merger) result(a *archive) *MergeResult {
	r := &MergeResult{
		ScorepLocations: len(g.Archive.Defs.Locations), Locations: len(a.locations), Communicators: len(a.instances),
		ThreadsLeftOut: g.threadsLeftOut, ThreadsMarked: g.threadsMarked, Extended: g.extended, Problems: a.problems,
	}
	of := make(map[*measurement.Process]bool)
	for _, p := range a.run.Processes {
		if fit := g.pairs[p]; fit != nil {
			of[fit.Process] = true
			r.Timer = fit.Timer.String()
		} else {
			r.NCCLOnly++
		}
	}
	r.Paired, r.ScorepOnly = len(of), len(g.Processes)-len(of)
	for _, l := range g.Archive.Defs.Locations {
		r.ScorepEvents += l.Events
	}
	for _, l := range a.locations {
		r.Events += l.Events
	}
	return r
}

// nextFreeID returns the first id after those of all definitions of a kind.
func nextFreeID[D any, Ref ~uint32](definitions []D, self func(*D) Ref) (id Ref) {
	for i := range definitions {
		id = max(id, self(&definitions[i])+1)
	}
	return id
}

// firstIDs returns, for each kind of definition, the first id after the measurement's.
func (g *merger) firstIDs() firstIDs {
	d := g.Archive.Defs
	return firstIDs{
		text:      nextFreeID(d.Strings, func(x *otf2.String) otf2.StringRef { return x.Self }),
		attribute: nextFreeID(d.Attributes, func(x *otf2.Attribute) otf2.AttributeRef { return x.Self }),
		node: nextFreeID(d.SystemTreeNodes,
			func(x *otf2.SystemTreeNode) otf2.SystemTreeNodeRef { return x.Self }),
		locationGroup: g.Groups,
		region:        nextFreeID(d.Regions, func(x *otf2.Region) otf2.RegionRef { return x.Self }),
		group:         nextFreeID(d.Groups, func(x *otf2.Group) otf2.GroupRef { return x.Self }),
		comm: max(nextFreeID(d.Comms, func(x *otf2.Comm) otf2.CommRef { return x.Self }),
			nextFreeID(d.InterComms, func(x *otf2.InterComm) otf2.CommRef { return x.Self })),
		rmaWin:       nextFreeID(d.RmaWins, func(x *otf2.RmaWin) otf2.RmaWinRef { return x.Self }),
		metricMember: nextFreeID(d.MetricMembers, func(x *otf2.MetricMember) otf2.MetricMemberRef { return x.Self }),
		metric: max(nextFreeID(d.MetricClasses, func(x *otf2.MetricClass) otf2.MetricRef { return x.Self }),
			nextFreeID(d.MetricInstances, func(x *otf2.MetricInstance) otf2.MetricRef { return x.Self })),
	}
}
