// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/loss"
	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
	"github.com/nccl-otf2/nccl-otf2/internal/mend"
	"github.com/nccl-otf2/nccl-otf2/internal/regular"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
)

// Options configure an import; nil means the zero value.
type Options struct {
	// SeparateClocks gives every process a clock of its own where the input does not name hosts.
	SeparateClocks bool
	// Tables reads SQLite files; nil: the program beside the tool does.
	Tables TableReader
	// Progress, if set, is called from time to time with the current file and the number of files done.
	Progress func(what string, done, total int)
}

// Result is what was read.
type Result struct {
	Files     int               `json:"files"`
	Lines     uint64            `json:"lines"`
	Malformed uint64            `json:"malformed"` // lines skipped
	First     string            `json:"first_malformed,omitempty"`
	Truncated uint64            `json:"truncated"`          // files whose last line is incomplete
	Processes int               `json:"processes"`          // shards written
	Records   map[string]uint64 `json:"records"`            // records used, by kind
	NotUsed   map[string]uint64 `json:"not_used,omitempty"` // records not used, by reason
	Missing   []string          `json:"missing"`            // what the formats do not contain
	// Problems, one line each: losses of the archive against the input.
	Problems []string `json:"problems,omitempty"`
}

// used are the counts that account for the records used.
var used = []string{"EVENTS", "STATES", "OPERATIONS"}

// Counts of operations that cannot be used, or not wholly.
const (
	unknownGroups      = "OPERATIONS_OF_UNKNOWN_GROUPS"
	repeatedOperations = "REPEATED_OPERATIONS"
	withoutRoot        = "OPERATIONS_WITHOUT_ROOT"
)

// ErrNoFiles says that a folder has nothing to import.
var ErrNoFiles = errors.New("holds no files")

// extensions are those of the files read from a folder.
var extensions = []string{".jsonl", ".json", ".log"}

// Import reads files, and the files of folders, and writes one shard per process into the experiment directory dir, of
// which unify makes an archive. dir must hold no shards. If nothing can be imported, or on an error, Import removes
// what it wrote.
func Import(inputs []string, dir string, opts *Options) (*Result, error) {
	opts = cmp.Or(opts, new(Options))
	paths, err := files(inputs)
	if err != nil {
		return nil, err
	}
	root := filepath.Join(dir, experiment.Folder)
	if _, err := os.Lstat(root); err == nil {
		return nil, fmt.Errorf("%s holds a recording: give another folder", dir)
	}
	im := &importer{
		opts: opts, dir: dir, unclaimed: make(map[string]uint64), inspectors: make(map[inspectedKey]*inspected),
		missing: make(map[string]bool),
		result:  Result{Records: make(map[string]uint64), NotUsed: make(map[string]uint64)},
	}
	_, statErr := os.Lstat(dir)
	if err := im.run(paths); err != nil {
		_ = os.RemoveAll(root)
		if errors.Is(statErr, fs.ErrNotExist) {
			_ = os.Remove(dir)
		}
		return nil, err
	}
	return &im.result, nil
}

// files lists the input files. Of a folder these are dumps of the Flight Recorder, whose names have no extension, or
// else traces of PyTorch's profiler and SQLite files, or else the files with the extensions, in the order of their
// names.
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
		var named, dumps, traces []string
		err = filepath.WalkDir(in, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			if slices.Contains(extensions, filepath.Ext(path)) {
				named = append(named, path)
			}
			if isTorchTrace(path) || isSQLite(path) {
				traces = append(traces, path)
			} else if dump, _, err := isDump(path); err == nil && dump {
				dumps = append(dumps, path)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		switch { // what else there is is of other programs
		case len(dumps) > 0:
			named = dumps
		case len(traces) > 0:
			named = traces
		}
		if len(named) == 0 {
			return nil, fmt.Errorf("%s %w whose names end in %s", in, ErrNoFiles, strings.Join(extensions, ", "))
		}
		all = append(all, named...)
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
	traces     []*exampleTrace
	dumps      []*recorded
	profiles   []*profile
	traced     []*tracedProcess  // of SQLite files
	useless    string            // why the first trace without anything to import has nothing; "": none
	unclaimed  map[string]uint64 // counts of files that yielded no shard yet
}

type inspectedKey struct {
	host string
	pid  int
	path string // where the process is unknown
}

func (im *importer) run(paths []string) error {
	clocks, err := im.findClocks(paths)
	if err != nil {
		return err
	}
	for i, path := range paths {
		im.progress(path, i, len(paths))
		if err := im.readFile(path, clocks); err != nil {
			return err
		}
		im.result.Files++
	}
	base := im.firstMessage()
	for i, k := range im.order {
		im.inspectors[k].base = base
		im.progress("operations", i, len(im.order))
		if err := im.writeInspected(k, im.inspectors[k]); err != nil {
			return err
		}
	}
	im.joinTraced()
	if err := errors.Join(im.writeExamples(), im.writeDumps(), im.writeTraces()); err != nil {
		return err
	}
	if im.result.Processes == 0 && im.useless != "" && im.result.First == "" {
		return errors.New(im.useless)
	}
	if im.result.Processes == 0 {
		text := "no record that import knows in it (docs/export.md lists them)"
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

// input is the content of one file.
type input struct {
	*importer
	path   string
	byPID  map[int64]*minimal
	pids   []int64 // in the order of their first lines
	counts map[string]uint64
	marker line // Inspector's last line with a header
	accl   *acclFile
	trace  *exampleTrace
}

// readFile reads one file and writes the shards of the processes with records of the minimal profiler in it.
func (im *importer) readFile(path string, clocks *clocks) error {
	if isSQLite(path) {
		return im.readSQLite(path)
	}
	if isTorchTrace(path) {
		return im.readTrace(path)
	}
	if dump, pickled, err := isDump(path); dump || err != nil {
		return errors.Join(err, im.readDump(path, pickled))
	}
	in := &input{importer: im, path: path, byPID: make(map[int64]*minimal), counts: make(map[string]uint64)}
	if err := eachLine(path, in.addLine); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if in.trace != nil {
		in.countUnused(in.trace.closeFrom(0, micros{}))
	}
	for _, pid := range in.pids {
		m := in.byPID[pid]
		if len(m.events) == 0 {
			im.result.NotUsed["STATES_WITHOUT_EVENT"] += uint64(len(m.states))
			continue
		}
		if err := im.writeMinimal(m, clocks.hostClockOf(processKey{path, int64(m.pid)}), in.counts); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		in.counts = nil // the file's own counts go to its first process
	}
	for what, n := range in.counts {
		im.unclaimed[what] += n
	}
	return nil
}

// addLine adds a line of the file.
func (in *input) addLine(number int, text []byte, last bool) error {
	in.result.Lines++
	in.counts["LINES"]++
	if number == 1 && bytes.HasPrefix(text, []byte(gzipMagic)) {
		in.malformed(number, text, false, errors.New("in gzip, and no trace of PyTorch's profiler: unpack it first"))
		return io.EOF
	}
	if text = in.unframe(number, text); len(text) == 0 {
		return nil
	}
	var l line
	err := decode(text, &l)
	var kind lineKind
	if err == nil {
		l.inherit(&in.marker)
		if kind, err = l.kind(); err == errNoKind && in.marker.Header != nil { // of the last line with a header
			kind, err = lineOther, nil
		}
	}
	if err == nil && kind == lineAccl {
		err = in.addACCL(text)
	}
	if err != nil {
		in.malformed(number, text, last, err)
		return nil
	}
	why := ""
	switch kind {
	case lineAccl:
	case lineInspector:
		in.inspectorOf(inspectedKey{host: l.Metadata.Host, pid: l.Metadata.PID},
			strings.TrimSpace("JSON of NCCL Inspector "+l.Metadata.Version), inspectorLacks).add(&l)
	case lineExample:
		why = in.addExample(&l)
	case lineOther:
		why = "OTHER_RECORDS"
	case lineState:
		why = in.process(&l).addState(&l)
	default:
		why = in.process(&l).add(&l)
	}
	in.countUnused(why)
	return nil
}

// countUnused counts a record that cannot be used, by reason; "" counts nothing.
func (in *input) countUnused(why string) {
	if why != "" {
		in.notUsed(why)
		in.counts[why]++
	}
}

// unframe removes the frame around the objects of a trace, one per line, and the empty object at its end.
func (in *input) unframe(number int, text []byte) []byte {
	text = bytes.TrimSpace(bytes.TrimSuffix(text, []byte(",")))
	if number == 1 && bytes.HasPrefix(text, []byte("[")) {
		text = bytes.TrimSpace(text[1:])
	}
	if in.trace == nil {
		return text
	}
	if text = bytes.TrimSpace(bytes.TrimSuffix(text, []byte("]"))); string(text) == "{}" {
		return nil
	}
	return text
}

// malformed counts a damaged line; the last line may be incomplete instead.
func (in *input) malformed(number int, text []byte, last bool, err error) {
	if last && (len(bytes.Trim(text, "\x00")) == 0 || !json.Valid(mend.JSON(text))) { // cut off, or never written
		in.result.Truncated++
		in.counts["TRUNCATED"]++
		return
	}
	in.result.Malformed++
	in.counts["MALFORMED"]++
	if in.result.First == "" {
		in.result.First = fmt.Sprintf("%s:%d: %s", in.path, number, describe(text, err))
	}
}

// process returns the process of a line and adds it if need be.
func (in *input) process(l *line) *minimal {
	pid := pidOf(l)
	return keyed.EntryMade(in.byPID, pid, func() *minimal {
		in.pids = append(in.pids, pid)
		return &minimal{identity: fmt.Sprintf("%s %d", in.path, pid), pid: int(pid)}
	})
}

// describe returns what is wrong with a line.
func describe(text []byte, err error) string {
	var syntax *json.SyntaxError
	switch {
	case text == nil:
		return fmt.Sprintf("a line of more than %d bytes", regular.MaxLine)
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

// writeMinimal writes the shard of a process. c is its clock, for what its records do not state.
func (im *importer) writeMinimal(m *minimal, c hostClock, counts map[string]uint64) error {
	base := c.base
	if m.epoch.known {
		base = m.epoch.ns
	}
	first, last := m.span()
	if lowest := int64(minTime); base+first < lowest { // time 0 stands for none
		base = lowest - first
	}
	if base > math.MaxInt64-max(last, 0) || last-first > maxSpan {
		return errors.New("its times are centuries apart")
	}
	host, from := cmp.Or(m.host, c.host), "JSONL of the minimal profiler"
	if m.format != nil {
		from = m.format.from
	}
	boot := "import " + host
	if m.ours { // its times are on one clock already
		from, boot = "JSONL of nccl-otf2 export", "import"
	}
	mask := cmp.Or(m.mask, m.seen)
	p, err := newProcessWriter(im.dir, m.identity, host, boot, m.pid, from, m.missing(), mask)
	if err != nil {
		return err
	}
	for what, n := range counts {
		p.count(what, n)
	}
	if m.format != nil && m.format.whole {
		n := m.countAbsent()
		p.countLost(loss.FromInput, "Coll", n)
		p.count("ABSENT_OPERATIONS", n)
	}
	if m.counted != nil && m.ours {
		p.stated = m.counted
		for what, n := range m.counted.Lost {
			reason, typ, _ := strings.Cut(what, "::")
			p.countLost(strings.ToLower(strings.ReplaceAll(reason, "_", " ")), typ, n)
		}
	}
	if err := m.write(p, uint64(base)); err != nil {
		return err
	}
	return im.finish(p, !m.ours || m.partial || counts["MALFORMED"] > 0 || counts["TRUNCATED"] > 0)
}

// finish completes a shard and adds up the counts of its input.
func (im *importer) finish(p *processWriter, partial bool) error {
	for what, n := range im.unclaimed { // of earlier files in which no process was found
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
			im.problem("process %d: %s whose size nothing tells: their operations are not matched", p.process.PID,
				units.Count(int(min(n, math.MaxInt32)), "communicator", "communicators"))
		case what == droppedCollectives, what == droppedMessages:
			im.problem("process %d: the profiler dropped %d %s, as it had no room for them", p.process.PID, n,
				strings.ToLower(strings.TrimPrefix(what, "DROPPED_")))
		case what == "PROXY_RECORDS":
			im.result.NotUsed[what] += n
		case what == "ABSENT_OPERATIONS":
			im.problem("process %d: %s not in the input, as its numbers show", p.process.PID,
				units.Count(int(min(n, math.MaxInt32)), "operation is", "operations are"))
		case what == repeatedOperations, what == unknownGroups, slices.Contains(profileUnused, what):
			im.result.NotUsed[what] += n
		case what == withoutRoot:
			im.problem("process %d: %d operations with a root that is not told: they are regions only", p.process.PID,
				n)
		}
	}
	for _, m := range p.process.Import.Missing {
		im.missing[m] = true
	}
	im.result.Processes++
	return nil
}

// Bounds of imported times: not 0, and a span that OTF2's clocks and this program's arithmetic can hold.
const (
	minTime = 1_000_000_000
	maxSpan = math.MaxInt64 / 4
)

// firstMessage is the number that Inspector gives to the first message of a communicator rank: 0 if any message has it,
// otherwise 1.
func (im *importer) firstMessage() uint64 {
	for _, in := range im.inspectors {
		if slices.ContainsFunc(in.samples, func(s sample) bool { return s.message && s.number == 0 }) {
			return 0
		}
	}
	return 1
}

// inspectorOf returns the process whose operations have durations, and adds it if need be.
func (im *importer) inspectorOf(k inspectedKey, from string, lacks []string) *inspected {
	return keyed.EntryMade(im.inspectors, k, func() *inspected {
		im.order = append(im.order, k)
		return &inspected{host: k.host, pid: k.pid, from: from, lacks: lacks}
	})
}

// writeInspected writes the shard of such a process.
func (im *importer) writeInspected(k inspectedKey, in *inspected) error {
	const mask = 1<<0 | 1<<1 | 1<<2 // Group, Coll, P2p
	p, err := newProcessWriter(im.dir, fmt.Sprintf("inspector %s %d %s", k.host, k.pid, filepath.Base(k.path)),
		cmp.Or(k.host, units.UnknownHost), "import "+k.host, k.pid, in.from, in.missing(), mask)
	if err != nil {
		return err
	}
	p.startModel(mask, minimalAPI)
	if err := in.writeRecords(p); err != nil {
		return err
	}
	return im.finish(p, true)
}
