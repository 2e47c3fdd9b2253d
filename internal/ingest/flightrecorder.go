// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/provenance"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/sequence"
	"github.com/nccl-otf2/nccl-otf2/internal/ingest/pickle"
	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
	"github.com/nccl-otf2/nccl-otf2/internal/regular"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// Dumps of PyTorch's Flight Recorder, versions 2.0 to 2.10 (FlightRecorderDetail.hpp): one of each process, a pickle or
// an object of JSON with the last operations that it called, and how far these had come when it was written.
// Collectives of a group are numbered together, whatever their functions, from 1. Dumps tell when the host called an
// operation, not when it ran, and not when the dump was written.
type (
	recorderDump struct {
		Version string                   `json:"version"`
		Rank    *recorderInt             `json:"rank"`
		Groups  map[string]recorderGroup `json:"pg_config"` // by name
		Status  map[string]recorderState `json:"pg_status"` // by number, which each process gives by itself
		Entries []recorderEntry          `json:"entries"`
	}
	recorderGroup struct {
		Description string        `json:"desc"`
		Ranks       recorderRanks `json:"ranks"` // of the world
	}
	// recorderState has the numbers of the last operations of a group; messages have numbers of their own here, too.
	recorderState struct {
		Called    recorderInt `json:"last_enqueued_collective"`
		Completed recorderInt `json:"last_completed_collective"`
	}
	recorderEntry struct {
		ID       int64            `json:"record_id"`
		GroupID  int64            `json:"pg_id"`
		Group    []string         `json:"process_group"` // name and description
		Number   uint64           `json:"collective_seq_id"`
		Messages uint64           `json:"p2p_seq_id"`
		Name     string           `json:"profiling_name"` // "nccl:all_reduce", "nccl:send 0->3"
		State    string           `json:"state"`
		Inputs   recorderElements `json:"input_sizes"`
		Outputs  recorderElements `json:"output_sizes"`
		Types    []string         `json:"input_dtypes"`
		Called   uint64           `json:"time_created_ns"` // since 1970
		Took     measure          `json:"duration_ms"`
		CallSite recorderSite     `json:"frames"`
	}
)

// recorderInt is a number, in JSON dumps in quotes.
type recorderInt int64

// UnmarshalJSON reads both.
func (n *recorderInt) UnmarshalJSON(b []byte) error {
	v, err := strconv.ParseInt(strings.Trim(string(b), `"`), 10, 64)
	*n = recorderInt(v)
	return err
}

// recorderElements is the number of elements of tensors; 0 if it is not possible.
type recorderElements uint64

// UnmarshalJSON reads the sizes of each.
func (n *recorderElements) UnmarshalJSON(b []byte) error {
	var tensors [][]uint64
	err := json.Unmarshal(b, &tensors)
	for _, tensor := range tensors {
		elements := uint64(1)
		for _, size := range tensor {
			if size > maxOrdinal || elements*size > maxOrdinal {
				*n = 0
				return nil
			}
			elements *= size
		}
		*n += recorderElements(elements)
	}
	return err
}

// recorderSite is the innermost line of a stack outside of PyTorch: "train.py:212".
type recorderSite string

// UnmarshalJSON reads the stack, the innermost function first.
func (s *recorderSite) UnmarshalJSON(b []byte) error {
	var frames []struct {
		File string `json:"filename"`
		Line int    `json:"line"`
	}
	err := json.Unmarshal(b, &frames)
	for _, f := range frames {
		if !strings.Contains(f.File, "/torch/") && !strings.HasPrefix(f.File, "<") {
			*s = recorderSite(fmt.Sprintf("%s:%d", filepath.Base(f.File), f.Line))
			break
		}
	}
	return err
}

// recorderRanks are ranks as text: "[0, 1]".
type recorderRanks []int

// UnmarshalJSON reads the text.
func (r *recorderRanks) UnmarshalJSON(b []byte) error {
	text := cmp.Or(strings.Trim(string(b), `"`), "[]")
	if err := json.Unmarshal([]byte(text), (*[]int)(r)); err != nil {
		return fmt.Errorf("%.40q is not a list of ranks", text)
	}
	for _, rank := range *r {
		if rank < 0 || rank >= description.MaxRanks {
			return fmt.Errorf("rank %d: jobs have at most %d ranks", rank, description.MaxRanks)
		}
	}
	return nil
}

// maxDump bounds a dump, as a file and as JSON.
const maxDump = 128 << 20

// recorderKeys are members by which a dump in JSON is known.
var recorderKeys = [][]byte{[]byte(`"comm_lib_version"`), []byte(`"pg_config"`), []byte(`"collective_seq_id"`)}

// isDump reports whether a file begins like a dump: as a pickled dict, or with a key of a dump in JSON.
func isDump(path string) (dump, pickled bool, err error) {
	file, err := regular.Open(path)
	if err != nil {
		return false, false, err
	}
	defer file.Close()
	begin, err := io.ReadAll(io.LimitReader(file, 1024))
	if len(begin) > 2 && begin[0] == '\x80' && (begin[2] == '}' || begin[2] == '\x95') {
		return true, true, err
	}
	object := bytes.HasPrefix(bytes.TrimSpace(begin), []byte("{"))
	return object && slices.ContainsFunc(recorderKeys, func(key []byte) bool { return bytes.Contains(begin, key) }),
		false, err
}

// recorded is a dump, with what is known of its process.
type recorded struct {
	recorderDump
	rank   int
	status map[string]recorderState // by name of the group
}

// dumpRank matches the rank in a dump's name.
var dumpRank = regexp.MustCompile(`(\d+)(?:\.[a-z]+)?$`)

// readDump reads a dump, to be written when all have been read.
func (im *importer) readDump(path string, pickled bool) error {
	im.result.Lines++
	d, err := parseDump(path, pickled)
	if err != nil {
		im.result.Malformed++
		im.result.First = cmp.Or(im.result.First, fmt.Sprintf("%s: %v", path, err))
		return nil
	}
	if slices.ContainsFunc(im.dumps, func(o *recorded) bool { return o.rank == d.rank }) {
		im.notUsed("REPEATED_DUMPS")
		return nil
	}
	im.dumps = append(im.dumps, d)
	return nil
}

func parseDump(path string, pickled bool) (*recorded, error) {
	data, err := regular.Read(path, maxDump)
	if err == nil && pickled {
		data, err = pickle.JSON(data, maxDump)
	}
	d := new(recorded)
	if err == nil {
		err = json.Unmarshal(data, &d.recorderDump)
	}
	name := dumpRank.FindStringSubmatch(filepath.Base(path))
	switch {
	case err != nil:
		return nil, err
	case !strings.HasPrefix(d.Version, "2."):
		return nil, fmt.Errorf("a dump of version %.20q: versions 2.0 to 2.10 are known", d.Version)
	case d.Rank != nil:
		d.rank = int(*d.Rank)
	case name == nil:
		return nil, errors.New("a dump of an unknown rank: give the file a name that ends in it, " +
			"such as nccl_trace_rank_0")
	default:
		d.rank, _ = strconv.Atoi(name[1])
	}
	member := len(d.Groups) == 0
	for _, g := range d.Groups {
		member = member || slices.Contains(g.Ranks, d.rank)
	}
	if !member {
		return nil, fmt.Errorf("a dump whose groups do not have its rank, %d by its name", d.rank)
	}
	d.nameGroups()
	d.joinCoalesced()
	return d, nil
}

// nameGroups completes names: of entries' groups, and of those that statuses are about.
func (d *recorded) nameGroups() {
	names := make(map[string]string)
	for i := range d.Entries {
		e := &d.Entries[i]
		if len(e.Group) < 2 {
			e.Group = []string{fmt.Sprint(e.GroupID), ""}
		}
		if _, known := d.Groups[e.Group[0]]; !known && len(d.Groups) == 1 && len(d.Status) == 1 {
			if only, unnamed := d.Groups[""]; unnamed { // gloo's world
				only.Description = cmp.Or(only.Description, e.Group[1])
				d.Groups = map[string]recorderGroup{e.Group[0]: only}
			}
		}
		names[fmt.Sprint(e.GroupID)] = e.Group[0]
	}
	d.status = make(map[string]recorderState)
	for id, name := range names {
		if s, known := d.Status[id]; known {
			d.status[name] = s
		}
	}
	// Both are numbered when a group is created, so they are in one order.
	byNumber := func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) }
	ids := slices.SortedFunc(maps.Keys(d.Status), byNumber)
	groups := slices.SortedFunc(maps.Keys(d.Groups), byNumber)
	agrees := len(ids) == len(groups)
	for i := 0; agrees && i < len(ids); i++ {
		_, err := strconv.Atoi(groups[i])
		agrees = err == nil && cmp.Or(names[ids[i]], groups[i]) == groups[i]
	}
	for i := 0; agrees && i < len(ids); i++ {
		d.status[groups[i]] = d.Status[ids[i]]
	}
}

// joinCoalesced gives operations that were called together the state of the entry that stands for all of them: only
// that one is kept up to date.
func (d *recorded) joinCoalesced() {
	type place struct {
		group            string
		number, messages uint64
	}
	states := make(map[place]*recorderEntry)
	for i := range d.Entries {
		if e := &d.Entries[i]; strings.HasSuffix(e.Name, ":coalesced") {
			states[place{e.Group[0], e.Number, e.Messages}] = e
		}
	}
	for i := range d.Entries {
		e := &d.Entries[i]
		if all := states[place{e.Group[0], e.Number, e.Messages}]; all != nil {
			e.State, e.Took = all.State, all.Took
		}
	}
}

// id is the id of a group's communicator.
func (g *recorderGroup) id(name string) uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, name, g.Description, g.Ranks)
	return h.Sum64()
}

// recorderTotals are what the dumps of a job tell together.
type recorderTotals struct {
	world     int
	begin     uint64                     // when the first operation was called
	messages  map[uint64]bool            // groups with messages, whose numbers statuses may have
	functions map[uint64]map[string]bool // collectives, by group
}

// recorderLacks lists what such data does not contain.
var recorderLacks = []string{
	"when operations ran: only when they were called, and how far they had come", "kernel launches", "network", "roots",
	"GPUs", "names of hosts", "sizes of AlltoAll", "which message of one rank is which of another",
}

// writeDumps writes the shards of the dumps.
func (im *importer) writeDumps() error {
	all := recorderTotals{begin: maxSpan, messages: make(map[uint64]bool), functions: make(map[uint64]map[string]bool)}
	for _, d := range im.dumps {
		all.world = max(all.world, d.rank+1)
		for _, g := range d.Groups {
			all.world = max(all.world, slices.Max(append(g.Ranks, 0))+1)
		}
		for i := range d.Entries {
			e := &d.Entries[i]
			e.Called = max(minTime, min(e.Called, maxSpan))
			all.begin = min(all.begin, e.Called)
			g := d.Groups[e.Group[0]]
			id := g.id(e.Group[0])
			if function, _, _ := e.function(); function != "" {
				keyed.Map(all.functions, id)[function] = true
			}
			all.messages[id] = all.messages[id] || e.Messages > 0
		}
	}
	for i, d := range im.dumps {
		im.progress("dumps of the Flight Recorder", i, len(im.dumps))
		if err := im.writeDump(d, &all); err != nil {
			return err
		}
	}
	return nil
}

// sequenceOf is a sequence of a communicator, see description.Comm.
type sequenceOf struct {
	comm int
	key  string
}

// dumpWriter writes the shard of a dump.
type dumpWriter struct {
	*processWriter
	*recorded
	comms map[string]int        // by name of the group
	next  map[sequenceOf]uint64 // the next ordinals
}

func (im *importer) writeDump(d *recorded, all *recorderTotals) error {
	const mask = 1<<shm.EventGroup | 1<<shm.EventColl | 1<<shm.EventP2p
	p, err := newProcessWriter(im.dir, fmt.Sprint("flight recorder ", d.rank), units.UnknownHost, "import", 0,
		"dumps of PyTorch's Flight Recorder", recorderLacks, mask)
	if err != nil {
		return err
	}
	p.process.Launcher = provenance.Launcher{Name: "imported", Rank: d.rank, Size: all.world}
	p.process.Import.Snapshot = true
	p.startModel(mask, minimalAPI)
	w := &dumpWriter{processWriter: p, recorded: d, comms: make(map[string]int), next: make(map[sequenceOf]uint64)}
	w.addGroups(all)
	time := all.begin
	for i := range d.Entries {
		e := &d.Entries[i]
		time = max(time, e.Called)
		if err := w.writeEntry(e, time); err != nil {
			return err
		}
	}
	return im.finish(p, true)
}

// addGroups adds the communicators of the rank.
func (w *dumpWriter) addGroups(all *recorderTotals) {
	called := make(map[string]uint64)
	for i := range w.Entries {
		e := &w.Entries[i]
		called[e.Group[0]] = max(called[e.Group[0]], e.Number+1)
	}
	whole := len(w.Entries) > 0 && w.Entries[0].ID == 0 && w.Entries[len(w.Entries)-1].ID == int64(len(w.Entries)-1)
	for _, name := range slices.Sorted(maps.Keys(w.Groups)) {
		g := w.Groups[name]
		id, rank := g.id(name), slices.Index(g.Ranks, w.rank)
		if all.messages[id] {
			delete(w.status, name)
		}
		s, stated := w.status[name]
		_, some := called[name]
		if rank < 0 {
			continue
		}
		if stated && s.Called < maxOrdinal {
			called[name] = max(called[name], uint64(max(s.Called, 0))+1)
		}
		text := g.Description
		if text != "default_pg" {
			text = strings.TrimSpace(fmt.Sprintf("%s (%s)", text, name))
		}
		w.comms[name] = len(w.processWriter.comms)
		w.processWriter.called = append(w.processWriter.called, calledUntil{called[name], all.functions[id]})
		w.processWriter.comms = append(w.processWriter.comms, description.Comm{ID: id, Name: text, NRanks: len(g.Ranks),
			Rank: rank, InitTime: all.begin, Unpaired: true, Unseen: !some && !stated && !whole})
	}
}

// recorderFunctions are the beginnings of functions' names, and NCCL's names for them. A barrier is an AllReduce.
var recorderFunctions = []struct{ begin, name string }{
	{"all_reduce", "AllReduce"}, {"allreduce", "AllReduce"}, {"barrier", "AllReduce"}, {"all_gather", "AllGather"},
	{"allgather", "AllGather"}, {"reduce_scatter", "ReduceScatter"}, {"all_to_all", "AlltoAll"},
	{"alltoall", "AlltoAll"}, {"broadcast", "Broadcast"}, {"reduce", "Reduce"}, {"gather", "Gather"},
	{"scatter", "Scatter"},
}

// recorderTypes are NCCL's names of PyTorch's element types.
var recorderTypes = map[string]string{
	"Byte": bytesType, "Char": "ncclInt8", "Bool": bytesType, "Int": "ncclInt32", "Long": "ncclInt64",
	"Half": "ncclFloat16", "BFloat16": "ncclBfloat16", "Float": "ncclFloat32", "Double": "ncclFloat64",
	"Float8_e4m3fn": "ncclFloat8e4m3", "Float8_e5m2": "ncclFloat8e5m2",
}

// function is the name of a collective, or the direction of a message; neither if the entry stands for others.
func (e *recorderEntry) function() (name string, pair sequence.Pair, message bool) {
	_, name, _ = strings.Cut(e.Name, ":")
	if n, _ := fmt.Sscanf(name, "send %d->%d", &pair.From, &pair.To); n == 2 {
		return "", pair, true
	}
	if n, _ := fmt.Sscanf(name, "recv %d<-%d", &pair.To, &pair.From); n == 2 {
		return "", pair, true
	}
	name = strings.ToLower(strings.TrimLeft(name, "_"))
	for _, f := range recorderFunctions {
		if strings.HasPrefix(name, f.begin) {
			return f.name, pair, false
		}
	}
	if name == "coalesced" {
		name = ""
	}
	return name, pair, false
}

// elements returns how many elements the call asks NCCL for, which follows from the sizes of its tensors; 0 if it does
// not, as those of an AlltoAll may differ from peer to peer.
func (e *recorderEntry) elements(function string) uint64 {
	switch function {
	case "AlltoAll":
		return 0
	case "ReduceScatter", "Scatter":
		return uint64(e.Outputs)
	}
	return uint64(e.Inputs)
}

// writeEntry writes an operation, called at a time.
func (w *dumpWriter) writeEntry(e *recorderEntry, time uint64) error {
	comm, known := w.comms[e.Group[0]]
	function, pair, message := e.function()
	switch {
	case !message && function == "":
		return nil
	case !known || e.Number > maxOrdinal || e.Took.value > maxMicros:
		w.count(unknownGroups, 1)
		return nil
	}
	c := &w.processWriter.comms[comm]
	s := sample{header: inspectorHeader{Rank: c.Rank}, function: function, message: message, number: e.Number,
		size: e.elements(function), begin: time, end: time, source: regions.TimingEnqueue,
		callSite: string(e.CallSite)}
	if len(e.Types) > 0 {
		s.datatype = recorderTypes[e.Types[0]]
	}
	if e.Took.known {
		s.end, s.source = time+uint64(e.Took.value*1e6), regions.TimingDuration
	}
	at, stream := sequenceOf{comm, function}, uint64(comm+1)
	if message {
		peer := pair.To
		s.function, at.key = "Send", pair.SendKey()
		if pair.To == c.Rank {
			peer, s.function, at.key = pair.From, "Recv", pair.RecvKey()
		}
		if peer < 0 || peer >= c.NRanks || peer == c.Rank {
			w.count(unknownGroups, 1)
			return nil
		}
		s.peer, s.number, stream = int32(peer), w.next[at], stream<<32+uint64(peer)
	}
	if s.number < w.next[at] {
		w.count(repeatedOperations, 1)
		return nil
	}
	w.next[at] = s.number + 1
	state, stated := w.status[e.Group[0]]
	if s.open = e.State != "completed" && (message || !stated || int64(e.Number) > int64(state.Completed)); s.open {
		// Operations of a group run on a stream of its own.
		open := description.Pending{Comm: comm, Function: at.key, Ordinal: e.Number, Since: time, State: "enqueued",
			Count: s.size, Datatype: s.datatype, Root: -1, Stream: stream, Begun: e.State == "started",
			CallSite: s.callSite}
		if open.Begun {
			open.State = "running"
		}
		if message {
			open.Ordinal = e.Messages
		}
		w.pending = append(w.pending, open)
	}
	return w.writeSample(&placed{s, comm})
}
