// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ncclotf2/shard"
)

// Options say how to import; nil means the zero value.
type Options struct {
	// SeparateClocks takes every process to have a clock of its own, where the input does not name hosts.
	SeparateClocks bool
	// Progress, if set, is told now and then what is being read, and how many files are done.
	Progress func(what string, done, total int)
}

// Result tells what was read.
type Result struct {
	Files     int               `json:"files"`
	Lines     uint64            `json:"lines"`
	Malformed uint64            `json:"malformed"` // lines that were skipped
	First     string            `json:"first_malformed,omitempty"`
	Truncated uint64            `json:"truncated"`          // files whose last line is cut off
	Processes int               `json:"processes"`          // shards made
	Records   map[string]uint64 `json:"records"`            // that were used, by kind
	NotUsed   map[string]uint64 `json:"not_used,omitempty"` // by why
	Missing   []string          `json:"missing"`            // what the formats do not tell
	// Problems, one line each: what keeps the archive from being as good as the input.
	Problems []string `json:"problems,omitempty"`
}

// used are the counts that tell what became of records that were used.
var used = []string{"EVENTS", "STATES", "OPERATIONS"}

// Extensions are those of the files that are taken from a folder.
var Extensions = []string{".jsonl", ".json", ".log"}

// Import reads files, and the files of folders, and leaves a shard per process in the experiment directory dir, which unify
// makes an archive of. dir must hold no shards. If nothing can be imported, or on an error, what was made is removed.
func Import(inputs []string, dir string, opts *Options) (*Result, error) {
	if opts == nil {
		opts = new(Options)
	}
	paths, err := files(inputs)
	if err != nil {
		return nil, err
	}
	root := filepath.Join(dir, shard.Folder)
	if _, err := os.Lstat(root); err == nil {
		return nil, fmt.Errorf("%s holds a recording: give another folder", dir)
	}
	im := &importer{
		opts: opts, dir: dir, unclaimed: make(map[string]uint64), inspectors: make(map[inspectedKey]*inspected), missing: make(map[string]bool),
		result: Result{Records: make(map[string]uint64), NotUsed: make(map[string]uint64)},
	}
	_, statErr := os.Lstat(dir)
	if err := im.run(paths); err != nil {
		os.RemoveAll(root)
		if errors.Is(statErr, fs.ErrNotExist) {
			os.Remove(dir)
		}
		return nil, err
	}
	return &im.result, nil
}

// files lists the input files. Of folders they are those with the extensions, in the order of their names.
func files(inputs []string) ([]string, error) {
	var all []string
	for _, in := range inputs {
		info, err := os.Stat(in)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			all = append(all, in)
			continue
		}
		found := len(all)
		err = filepath.WalkDir(in, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() && slices.Contains(Extensions, filepath.Ext(path)) {
				all = append(all, path)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		if len(all) == found {
			return nil, fmt.Errorf("%s holds no files whose names end in %s", in, strings.Join(Extensions, ", "))
		}
	}
	return all, nil
}

// importer reads input and writes shards.
type importer struct {
	opts       *Options
	dir        string
	result     Result
	inspectors map[inspectedKey]*inspected
	order      []inspectedKey
	missing    map[string]bool
	unclaimed  map[string]uint64 // counts of files of which no shard has been made yet
}

type inspectedKey struct {
	host string
	pid  int
}

func (im *importer) run(paths []string) error {
	clocks, err := im.clocks(paths)
	if err != nil {
		return err
	}
	for i, path := range paths {
		im.progress(path, i, len(paths))
		if err := im.file(path, clocks); err != nil {
			return err
		}
		im.result.Files++
	}
	for i, k := range im.order {
		im.progress("Inspector's operations", i, len(im.order))
		if err := im.inspected(k, im.inspectors[k]); err != nil {
			return err
		}
	}
	if im.result.Processes == 0 {
		text := "no record of the minimal profiler or of NCCL Inspector in it"
		if im.result.First != "" {
			text += ": " + im.result.First
		}
		return fmt.Errorf("%s: %s", paths[0], text)
	}
	im.result.Missing = slices.Sorted(maps.Keys(im.missing))
	if im.result.Malformed > 0 {
		im.problem("%d lines could not be read, the first: %s", im.result.Malformed, im.result.First)
	}
	if im.result.Truncated > 0 {
		im.problem("%d files end in the middle of a line: their processes died, or still run", im.result.Truncated)
	}
	return nil
}

func (im *importer) progress(what string, done, total int) {
	if im.opts.Progress != nil {
		im.opts.Progress(what, done, total)
	}
}

func (im *importer) problem(format string, args ...any) {
	im.result.Problems = append(im.result.Problems, fmt.Sprintf(format, args...))
}

func (im *importer) notUsed(why string) { im.result.NotUsed[why]++ }

// file reads one file and writes the shards of the processes whose records of the minimal profiler are in it.
func (im *importer) file(path string, clocks *clocks) error {
	byPID := make(map[int64]*minimal)
	counts := make(map[string]uint64)
	var pids []int64
	err := eachLine(path, func(number int, text []byte, last bool) error {
		im.result.Lines++
		counts["LINES"]++
		var l line
		err := json.Unmarshal(text, &l)
		var kind lineKind
		if err == nil {
			kind, err = l.kind()
		}
		if err != nil {
			if last && !json.Valid(text) {
				im.result.Truncated++
				counts["TRUNCATED"]++
				return nil
			}
			im.result.Malformed++
			counts["MALFORMED"]++
			if im.result.First == "" {
				im.result.First = fmt.Sprintf("%s:%d: %s", path, number, describe(text, err))
			}
			return nil
		}
		why := ""
		switch kind {
		case lineInspector:
			im.inspect(&l)
			return nil
		case lineOther:
			why = "OTHER_RECORDS"
		default:
			pid := pidOf(&l)
			m := byPID[pid]
			if m == nil {
				m = &minimal{identity: fmt.Sprintf("%s %d", path, pid), pid: int(pid)}
				byPID[pid] = m
				pids = append(pids, pid)
			}
			if kind == lineState {
				why = m.addState(&l)
			} else {
				why = m.add(&l)
			}
		}
		if why != "" {
			im.notUsed(why)
			counts[why]++
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, pid := range pids {
		m := byPID[pid]
		if len(m.events) == 0 {
			im.result.NotUsed["STATES_WITHOUT_EVENT"] += uint64(len(m.states))
			continue
		}
		if err := im.minimal(path, m, clocks, counts); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		counts = nil // the file's own counts go to its first process
	}
	for what, n := range counts {
		im.unclaimed[what] += n
	}
	return nil
}

// describe says what is wrong with a line.
func describe(text []byte, err error) string {
	var syntax *json.SyntaxError
	switch {
	case text == nil:
		return fmt.Sprintf("a line of more than %d bytes", maxLine)
	case errors.As(err, &syntax):
		return fmt.Sprintf("no JSON at byte %d: %v", syntax.Offset, err)
	}
	return err.Error()
}

func pidOf(l *line) int64 {
	for _, p := range []*int64{l.StatePID, l.PID} {
		if p != nil {
			return *p
		}
	}
	for _, s := range []*stamp{l.Start, l.Stop} {
		if s != nil && s.PID != nil {
			return *s.PID
		}
	}
	return 0
}

func (im *importer) minimal(path string, m *minimal, clocks *clocks, counts map[string]uint64) error {
	c := clocks.of(processKey{path, int64(m.pid)})
	base := c.base
	if m.epoch.known {
		base = m.epoch.ns
	}
	first, last := m.span()
	if lowest := int64(minTime); base+first < lowest { // 0 means "no time"
		base = lowest - first
	}
	if base > math.MaxInt64-max(last, 0) || last-first > maxSpan {
		return errors.New("its times are centuries apart")
	}
	host, from := cmp.Or(m.host, c.host), "JSONL of the minimal profiler"
	boot := "import " + host
	if m.ours { // its times are of one clock already
		from, boot = "JSONL of nccl-otf2 export", "import"
	}
	mask := m.mask
	if mask == 0 {
		mask = m.seen
	}
	p, err := newProcessWriter(im.dir, m.identity, host, boot, m.pid, from, m.missing(), mask)
	if err != nil {
		return err
	}
	for what, n := range counts {
		p.count(what, n)
	}
	if err := m.write(p, uint64(base)); err != nil {
		return err
	}
	return im.finish(p, counts["MALFORMED"] > 0 || counts["TRUNCATED"] > 0)
}

// finish completes a shard and adds up what became of its input.
func (im *importer) finish(p *processWriter, partial bool) error {
	for what, n := range im.unclaimed { // of files before this one in which no process was found
		p.count(what, n)
	}
	clear(im.unclaimed)
	if err := p.finish(partial); err != nil {
		return err
	}
	for what, n := range p.counts {
		switch {
		case slices.Contains(used, what):
			im.result.Records[strings.ToLower(what)] += n
		case what == "STATES_WITHOUT_EVENT", what == "ENDS_OF_UNKNOWN_COMMUNICATORS":
			im.result.NotUsed[what] += n
		case what == "COMMUNICATORS_WITHOUT_INIT":
			im.problem("process %d: %d communicators without ProfilerInit: their size is not known, and their operations are not matched", p.process.PID, n)
		case what == "SEQUENCE_GAPS":
			im.problem("process %d: operations are missing in %d places, as Inspector numbers them", p.process.PID, n)
		case what == "OPERATIONS_WITHOUT_ROOT":
			im.problem("process %d: %d operations with a root that Inspector does not tell: they are regions only", p.process.PID, n)
		}
	}
	for _, m := range p.process.Import.Missing {
		im.missing[m] = true
	}
	im.result.Processes++
	return nil
}

// Times of imported data: not 0, and a span that OTF2's clocks and this program's arithmetic can hold.
const (
	minTime = 1_000_000_000
	maxSpan = math.MaxInt64 / 4
)

func (im *importer) inspect(l *line) {
	k := inspectedKey{l.Metadata.Host, l.Metadata.PID}
	in := im.inspectors[k]
	if in == nil {
		in = &inspected{host: k.host, pid: k.pid, version: l.Metadata.Version}
		im.inspectors[k] = in
		im.order = append(im.order, k)
	}
	in.samples = append(in.samples, newSample(l, len(in.samples)))
}

func (im *importer) inspected(k inspectedKey, in *inspected) error {
	const mask = 1<<0 | 1<<1 | 1<<2 // Group, Coll, P2p
	p, err := newProcessWriter(im.dir, fmt.Sprintf("inspector %s %d", k.host, k.pid), cmp.Or(k.host, "unknown host"), "import "+k.host, k.pid,
		strings.TrimSpace("JSON of NCCL Inspector "+in.version), in.missing(), mask)
	if err != nil {
		return err
	}
	p.begin(mask, minimalAPI)
	if err := in.records(p); err != nil {
		return err
	}
	return im.finish(p, true)
}

// processKey is a process of the minimal profiler: one file may hold several.
type processKey struct {
	path string
	pid  int64
}

// clocks says which processes share a clock, and what its time 0 is. The minimal profiler writes CLOCK_MONOTONIC, which the
// processes of one host share, and no names of hosts.
type clocks struct{ by map[processKey]hostClock }

type hostClock struct {
	host string
	base int64 // ns since 1970 of time 0, as far as anything tells
}

func (c *clocks) of(k processKey) hostClock {
	if h, ok := c.by[k]; ok {
		return h
	}
	return hostClock{host: unknownHost}
}

const unknownHost = "unknown host"

// initSlack is by how much the ranks of a communicator may differ in when they make it, on one clock.
const initSlack = 30_000_000_000

// initRecord is a communicator rank's ProfilerInit.
type initRecord struct {
	process processKey
	comm    uint64
	time    int64
}

// nameTime finds the time (s since 1970) in the name of a file without a job's id.
var nameTime = regexp.MustCompile(`^trace_(1[0-9]{9})(\.[0-9]+)?_`)

// clocks looks at the lifecycle records only. Processes whose ranks made a communicator at about the same time share a clock.
// Others get one each, which is shifted so that these times agree.
func (im *importer) clocks(paths []string) (*clocks, error) {
	var inits []initRecord
	var processes []processKey
	seen := make(map[processKey]bool)
	begin := int64(math.MaxInt64)
	for _, path := range paths {
		if m := nameTime.FindStringSubmatch(filepath.Base(path)); m != nil {
			s, _ := strconv.ParseInt(m[1], 10, 64)
			begin = min(begin, s*1_000_000_000)
		}
		err := eachLine(path, func(_ int, text []byte, _ bool) error {
			if !bytes.Contains(text, []byte(lifecycle)) {
				return nil
			}
			var l line
			if json.Unmarshal(text, &l) != nil || l.Func != "ProfilerInit" || l.Start == nil || !l.Start.Time.known || l.CommID == nil || l.Details != nil && l.Details.Host != "" {
				return nil
			}
			id, err := strconv.ParseUint(string(*l.CommID), 10, 64)
			if err != nil {
				return nil
			}
			k := processKey{path, pidOf(&l)}
			if !seen[k] {
				seen[k] = true
				processes = append(processes, k)
			}
			inits = append(inits, initRecord{k, id, l.Start.Time.ns})
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return im.arrange(processes, inits, begin), nil
}

// arrange groups processes by clock and shifts the clocks.
func (im *importer) arrange(processes []processKey, inits []initRecord, begin int64) *clocks {
	group := make(map[processKey]int)
	for i, k := range processes {
		group[k] = i
	}
	byComm := make(map[uint64][]initRecord)
	for _, r := range inits {
		byComm[r.comm] = append(byComm[r.comm], r)
	}
	merge := func(a, b int) {
		for k, g := range group {
			if g == b {
				group[k] = a
			}
		}
	}
	alike := func(a, b processKey) bool { return !im.opts.SeparateClocks && a.pid != b.pid }
	ids := slices.Sorted(maps.Keys(byComm))
	for _, id := range ids {
		all := byComm[id]
		for i := 1; i < len(all); i++ {
			a, b := all[0], all[i]
			for _, other := range all[:i] {
				if d := other.time - b.time; d < initSlack && d > -initSlack && alike(other.process, b.process) {
					a = other
					break
				}
			}
			if d := a.time - b.time; d < initSlack && d > -initSlack && alike(a.process, b.process) && group[a.process] != group[b.process] {
				merge(group[a.process], group[b.process])
			}
		}
	}
	shift := make(map[int]int64) // by group: ns to add
	for _, k := range processes {
		if len(shift) == 0 {
			shift[group[k]] = 0
		}
	}
	for changed := true; changed; { // from group to group by what they have in common
		changed = false
		for _, id := range ids {
			for _, a := range byComm[id] {
				sa, ok := shift[group[a.process]]
				if !ok {
					continue
				}
				for _, b := range byComm[id] {
					if _, known := shift[group[b.process]]; !known {
						shift[group[b.process]] = sa + a.time - b.time
						changed = true
					}
				}
			}
		}
	}
	first := int64(math.MaxInt64)
	for _, r := range inits {
		first = min(first, r.time+shift[group[r.process]])
	}
	base := int64(0)
	if begin != math.MaxInt64 && first != math.MaxInt64 {
		base = begin - first
	}
	out := &clocks{by: make(map[processKey]hostClock)}
	names := make(map[int]string)
	for _, k := range processes {
		g := group[k]
		if names[g] == "" {
			names[g] = unknownHost
			if len(names) > 1 {
				names[g] = fmt.Sprintf("%s %d", unknownHost, len(names))
			}
		}
		out.by[k] = hostClock{names[g], base + shift[g]}
	}
	if len(names) > 1 {
		im.problem("the input does not name hosts; its processes have %d different clocks, which were brought together by when communicators were made", len(names))
	}
	return out
}
