// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/internal/atomicfile"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
	"github.com/nccl-otf2/nccl-otf2/internal/regular"
	"github.com/nccl-otf2/nccl-otf2/internal/replay/recording"
	"github.com/nccl-otf2/nccl-otf2/plugin/api"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// Folder is the folder in the experiment directory that processes in record mode write to.
const Folder = "recording"

// memberSize is the number of compressed bytes after which a member is written.
const memberSize = 1 << 20

// Transcript writes one process's callbacks.
type Transcript struct {
	file *os.File
	path string
	out  bytes.Buffer // the current member, compressed
	zip  *gzip.Writer
	line []byte
	held bool   // the current member has lines
	size uint64 // bytes in the file

	source shm.Source
	header shm.Header
	raw    func(t uint64) uint64 // converts the time line to CLOCK_MONOTONIC_RAW
	seq    uint64
	rings  []scribe
	begun  map[uint32]bool          // communicator entries with an init line
	blocks map[uint64]*[block]event // by the block of handles' numbers
	events uint32                   // events begun so far

	tally
	safe tally // state of what is in the file
}

// tally counts what has been written.
type tally struct {
	starts, stops [shm.TypeCount]uint64
	states        map[uint32]uint64
	first, last   uint64
	unknown       uint64 // references to events whose start is not in the file, or comes later
}

// scribe is the state of a ring's current owner.
type scribe struct {
	tid    int
	before uint64 // *eHandle before the next start
}

// Handle numbers come in blocks, one ring after the other. Events are kept in the same blocks.
const block = 4096

// event has what later lines need of an event.
type event struct {
	id    uint32 // from 1; 0: there is none
	stops uint32
}

// SettingBytes is the key of description.Process.Settings for the size in bytes of the transcript of all records taken
// so far.
const SettingBytes = "TRANSCRIPT_BYTES"

// Create makes the file of a process's callbacks, or continues the file of a collector that died, according to the
// shard's settings. The process's clock must have been read; source has its names and communicators.
func Create(directory string, p *description.Process, source shm.Source, h *shm.Header) (*Transcript, error) {
	folder := filepath.Join(directory, Folder)
	if err := os.Mkdir(folder, experiment.FolderMode); err != nil && !os.IsExist(err) {
		return nil, err
	}
	if st, err := os.Lstat(folder); err != nil || !st.IsDir() {
		return nil, fmt.Errorf("%s is not a directory itself", folder)
	} else if why := atomicfile.Foreign(st); why != "" {
		return nil, fmt.Errorf("%s %s: name another directory", folder, why)
	}
	t, err := newTranscript(Path(directory, p.UUID), p, source, h)
	if err != nil {
		return nil, err
	}
	if before := p.Settings[description.SettingContinues]; before != "" {
		if t.resume(Path(directory, before), p.Settings[SettingBytes]) == nil {
			return t, nil
		}
		// Without the earlier lines, the rest is still a recording.
		_ = os.Remove(t.path)
		if t, err = newTranscript(t.path, p, source, h); err != nil {
			return nil, err
		}
	}
	if err := t.open(unix.O_CREAT | unix.O_EXCL); err != nil {
		return nil, err
	}
	b := t.begin("open")
	b = number(b, "pid", int64(h.PID))
	b = number(b, "api", int64(h.APIVersion))
	b = number(b, "mask", int64(shm.KnownTypes(int(h.APIVersion))))
	b = unsigned(b, "t", h.Created.Raw)
	b = unsigned(b, "mono", h.Created.Mono)
	b = unsigned(b, "real", h.Created.Real)
	b = text(b, "host", h.Host())
	return t, t.end(text(b, "boot", h.Boot()))
}

// Path returns the file that a process writes until it is assembled.
func Path(directory, uuid string) string {
	return filepath.Join(directory, Folder, uuid+recording.CallsSuffix)
}

func newTranscript(path string, p *description.Process, source shm.Source, h *shm.Header) (*Transcript, error) {
	clock := p.Clock
	t := &Transcript{
		path: path, source: source, header: *h,
		raw:   func(t uint64) uint64 { return t - clock.AnchorReal + clock.AnchorRaw },
		begun: make(map[uint32]bool), blocks: make(map[uint64]*[block]event),
		tally: tally{states: make(map[uint32]uint64)},
	}
	var err error
	t.zip, err = gzip.NewWriterLevel(&t.out, gzip.BestSpeed)
	return t, err
}

func (t *Transcript) open(how int) error {
	fd, err := unix.Open(t.path, unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC|how, uint32(experiment.FileMode))
	if err != nil {
		return &os.PathError{Op: "open", Path: t.path, Err: err}
	}
	t.file = os.NewFile(uintptr(fd), t.path)
	return nil
}

// resume continues the file of a collector that died, up to the size recorded in its shard, and restores the state of
// events from its lines.
func (t *Transcript) resume(path, size string) error {
	bytes, err := strconv.ParseInt(size, 10, 64)
	if err != nil {
		return err
	}
	if err := os.Rename(path, t.path); err != nil {
		return err
	}
	if err := t.open(0); err != nil {
		return err
	}
	if err := t.file.Truncate(bytes); err != nil {
		t.file.Close()
		return err
	}
	t.size = uint64(bytes)
	if err := EachLine(t.path, t.recall); err != nil {
		t.file.Close()
		return err
	}
	return nil
}

// recall restores the state from a line that is already in the file.
func (t *Transcript) recall(text []byte) error {
	var l struct {
		F     string  `json:"f"`
		Ring  *int    `json:"ring"`
		TID   int     `json:"tid"`
		CtxID *uint32 `json:"ctxId"`
		H     string  `json:"h"`
		ID    uint32  `json:"id"`
		State uint32  `json:"state"`
	}
	if err := json.Unmarshal(text, &l); err != nil {
		return err
	}
	t.seq++
	handle, err := strconv.ParseUint(l.H, 0, 64)
	if l.H != "" && err != nil {
		return err
	}
	switch l.F {
	case "thread":
		if l.Ring != nil && *l.Ring >= 0 && *l.Ring < shm.RingMax {
			t.ring(*l.Ring).tid = l.TID
		}
	case "init":
		if l.CtxID != nil {
			t.begun[*l.CtxID-1] = true
		}
	case "start":
		t.starts[shm.TypeOf(handle)]++
		t.events = l.ID
		t.learn(handle, l.ID)
	case "stop":
		t.stops[shm.TypeOf(handle)]++
		if e := t.lookup(handle); e != nil {
			e.stops++
		}
	case "state":
		t.states[l.State]++
	}
	return nil
}

func (t *Transcript) ring(i int) *scribe {
	for len(t.rings) <= i {
		t.rings = append(t.rings, scribe{})
	}
	return &t.rings[i]
}

// Remove removes what Create has made.
func (t *Transcript) Remove() {
	t.file.Close()
	_ = os.Remove(t.path)
}

// Close closes the file, without what has not been flushed.
func (t *Transcript) Close() error { return t.file.Close() }

// Path returns the path of the file.
func (t *Transcript) Path() string { return t.path }

// Size returns the size of the file in bytes.
func (t *Transcript) Size() uint64 { return t.size }

// Starts returns the numbers of events begun so far, by type.
func (t *Transcript) Starts() *[shm.TypeCount]uint64 { return &t.starts }

// begin starts a line.
func (t *Transcript) begin(kind string) []byte {
	b := append(t.line[:0], `{"seq":`...)
	b = strconv.AppendUint(b, t.seq, 10)
	b = append(b, `,"f":"`...)
	b = append(b, kind...)
	return append(b, '"')
}

// end completes a line.
func (t *Transcript) end(b []byte) error {
	b = append(b, '}', '\n')
	t.line = b
	t.seq++
	t.held = true
	if _, err := t.zip.Write(b); err != nil {
		return err
	}
	if t.out.Len() >= memberSize {
		return t.Flush()
	}
	return nil
}

// Flush writes the current member, and those that could not be written before. After an error the file is as before,
// and the members are kept.
func (t *Transcript) Flush() error {
	if t.held {
		if err := t.zip.Close(); err != nil {
			return err
		}
		t.zip.Reset(&t.out)
		t.held = false
	}
	if t.out.Len() > 0 {
		if t.file == nil {
			if err := t.open(0); err != nil {
				return err
			}
		}
		if _, err := t.file.WriteAt(t.out.Bytes(), int64(t.size)); err != nil {
			_ = t.file.Truncate(int64(t.size)) // the complete members are usable without the rest
			_ = t.Close()
			t.file = nil // the file may be unusable
			return err
		}
		t.size += uint64(t.out.Len())
		t.out.Reset()
	}
	t.safe = t.tally
	t.safe.states = maps.Clone(t.states)
	return nil
}

// call begins the line of a callback.
func (t *Transcript) call(kind string, time uint64, ring int) []byte {
	b := t.begin(kind)
	b = unsigned(b, "t", t.raw(time))
	return number(b, "tid", int64(t.rings[ring].tid))
}

// Take writes the line of a record; time is its time on the time line.
func (t *Transcript) Take(ring int, time uint64, r *shm.Record) error {
	if t.first == 0 {
		t.first = time
	}
	t.last = max(t.last, time)
	s := t.ring(ring)
	switch r.Kind {
	case shm.RecordThread:
		*s = scribe{tid: int(r.TID)}
		b := t.begin("thread")
		b = number(b, "ring", int64(ring))
		b = number(b, "tid", int64(r.TID))
		return t.end(text(b, "name", r.ThreadName))
	case shm.RecordInit:
		return t.init(ring, time, r.Aux)
	case shm.RecordFinalize:
		if err := t.init(ring, time, r.Aux); err != nil {
			return err
		}
		return t.end(t.context(t.call("finalize", time, ring), r.Aux))
	case shm.RecordBefore:
		s.before = r.Arg
	case shm.RecordStart:
		return t.start(ring, time, r)
	case shm.RecordStop:
		return t.stop(ring, time, r)
	case shm.RecordState:
		return t.state(ring, time, r)
	}
	return nil
}

// init writes a communicator's init line, once. NCCL up to 2.26 describes the communicator only later, or never.
func (t *Transcript) init(ring int, time uint64, comm uint32) error {
	if comm == shm.None || t.begun[comm] {
		return nil
	}
	t.begun[comm] = true
	c := t.comm(comm)
	b := t.context(t.call("init", time, ring), comm)
	b = pointer(b, "commId", c.ID)
	b = number(b, "maskBefore", 0)
	b = number(b, "mask", int64(shm.KnownTypes(int(t.header.APIVersion))))
	b = text(b, "commName", c.Name)
	b = number(b, "nNodes", int64(c.NNodes))
	b = number(b, "nranks", int64(c.NRanks))
	b = number(b, "rank", int64(c.Rank))
	b = number(b, "device", int64(c.Device))
	b = text(b, "uuid", c.UUID)
	return t.end(text(b, "pci", c.PCI))
}

// comm returns a communicator entry, empty if it is unknown.
func (t *Transcript) comm(i uint32) shm.Comm {
	c, _ := t.source.Comm(int(i))
	return c
}

// context writes the context of a communicator entry.
func (t *Transcript) context(b []byte, comm uint32) []byte {
	value := uint64(t.header.Tag)<<shm.TagShift | shm.TypeMask<<shm.TypeShift | shm.ContextBit | uint64(comm)
	b = pointer(b, "ctx", value)
	return number(b, "ctxId", int64(comm)+1)
}

// lookup returns the event with a handle; nil if its start has not been seen.
func (t *Transcript) lookup(handle uint64) *event {
	if uint32(shm.Tag(handle)) != t.header.Tag || handle&shm.ContextBit != 0 {
		return nil
	}
	n := handle & shm.NumberMask
	if e := t.blocks[n/block]; e != nil && e[n%block].id != 0 {
		return &e[n%block]
	}
	return nil
}

// refer writes the id of the event behind a handle.
func (t *Transcript) refer(b []byte, name string, handle uint64) ([]byte, *event) {
	e := t.lookup(handle)
	if e == nil {
		if handle != 0 && uint32(shm.Tag(handle)) == t.header.Tag {
			t.unknown++
		}
		return append(member(b, name), "null"...), nil
	}
	return number(b, name, int64(e.id)), e
}

func (t *Transcript) start(ring int, time uint64, r *shm.Record) error {
	if r.Aux != shm.None {
		if err := t.init(ring, time, r.Aux); err != nil {
			return err
		}
	}
	t.starts[r.Type]++
	b := t.call("start", time, ring)
	if r.Aux != shm.None {
		b = t.context(b, r.Aux)
	} else {
		b = pointer(b, "ctx", r.Context)
		b = append(b, `,"ctxId":null`...)
	}
	b = number(b, "type", 1<<r.Type)
	b = text(b, "typeName", r.Type.String())
	b = pointer(b, "parentObj", r.Arg)
	b, parent := t.refer(b, "parentId", r.Arg)
	if parent != nil {
		b = number(b, "parentStopped", int64(parent.stops))
	}
	b = number(b, "rank", int64(r.Rank))
	b = pointer(b, "handleBefore", t.rings[ring].before)
	t.rings[ring].before = 0
	b = append(b, `,"d":{"_":0`...)
	for i := range descriptors[r.Type] {
		if m := &descriptors[r.Type][i]; m.Delivered(int(t.header.APIVersion)) {
			b = t.member(b, m, r)
		}
	}
	b = append(b, '}')
	b = pointer(b, "h", r.Handle)

	t.events++
	t.learn(r.Handle, t.events)
	return t.end(number(b, "id", int64(t.events)))
}

// learn stores the id of an event.
func (t *Transcript) learn(handle uint64, id uint32) {
	n := handle & shm.NumberMask
	keyed.Entry(t.blocks, n/block)[n%block] = event{id: id}
}

// event writes the event that a stop or state belongs to.
func (t *Transcript) event(b []byte, handle uint64) ([]byte, *event) {
	b = pointer(b, "h", handle)
	b, e := t.refer(b, "id", handle)
	if e != nil {
		b = text(b, "typeName", shm.TypeOf(handle).String())
	}
	return b, e
}

func (t *Transcript) stop(ring int, time uint64, r *shm.Record) error {
	t.stops[r.Type]++
	b, e := t.event(t.call("stop", time, ring), r.Handle)
	if e != nil {
		if e.stops > 0 {
			b = number(b, "alreadyStopped", int64(e.stops))
		}
		e.stops++
	}
	return t.end(b)
}

func (t *Transcript) state(ring int, time uint64, r *shm.Record) error {
	t.states[r.Aux]++
	b, _ := t.event(t.call("state", time, ring), r.Handle)
	b = number(b, "state", int64(r.Aux))
	b = text(b, "stateName", shm.StateName(r.Aux))
	b = append(b, `,"args":`...)
	if r.Flags&shm.FlagHasArg == 0 {
		return t.end(append(b, "null"...))
	}
	at := len(b)
	argument := api.StateArgument(r.Aux)
	switch argument {
	case api.None:
		return t.end(append(b, "{}"...))
	case api.GPUTimer:
		b = unsigned(b, argument.String(), r.Arg)
	case api.NetArg:
		b = pointer(b, argument.String(), r.Arg)
	case api.OpProgress:
		b = number(number(b, argument.String(), int64(r.Arg)), "steps", int64(r.Steps))
	default:
		b = number(b, argument.String(), int64(r.Arg))
	}
	b[at] = '{' // replaces the first member's comma
	return t.end(append(b, '}'))
}

// Describe updates the counts of a shard to what is in the file.
func (t *Transcript) Describe(p *description.Process) {
	p.Settings[SettingBytes] = strconv.FormatUint(t.size, 10)
	in := &t.safe
	p.FirstTime, p.LastTime = in.first, in.last
	p.Counts.Starts, p.Counts.Stops = shm.ByName(&in.starts), shm.ByName(&in.stops)
	p.Counts.States = make(map[string]uint64, len(in.states))
	for s, n := range in.states {
		p.Counts.States[shm.StateName(s)] = n
	}
	if in.unknown > 0 {
		p.Counts.Oddities["UNKNOWN_EVENTS"] = in.unknown
	}
}

// Members of a line. Each begins with a comma, because another member always precedes it.

func member(b []byte, name string) []byte {
	b = append(b, ',', '"')
	b = append(b, name...)
	return append(b, '"', ':')
}

func number(b []byte, name string, v int64) []byte { return strconv.AppendInt(member(b, name), v, 10) }

func unsigned(b []byte, name string, v uint64) []byte {
	return strconv.AppendUint(member(b, name), v, 10)
}

func boolean(b []byte, name string, v bool) []byte {
	if v {
		return append(member(b, name), '1')
	}
	return append(member(b, name), '0')
}

// pointer writes an opaque number in hex, NULL as null.
func pointer(b []byte, name string, v uint64) []byte {
	b = member(b, name)
	if v == 0 {
		return append(b, "null"...)
	}
	return append(strconv.AppendUint(append(b, `"0x`...), v, 16), '"')
}

// text writes a string, the empty one as null: the plugin records NULL as an empty string.
func text(b []byte, name, s string) []byte {
	b = member(b, name)
	if s == "" {
		return append(b, "null"...)
	}
	quoted, err := json.Marshal(s)
	if err != nil { // cannot happen for a string
		panic(err)
	}
	return append(b, quoted...)
}

// EachLine calls take with each line of a transcript.
func EachLine(path string, take func(line []byte) error) error {
	file, err := regular.OpenOwn(path)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	zip, err := regular.Gunzip(file, info.Size())
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	in := bufio.NewReaderSize(zip, 1<<16)
	for {
		line, err := regular.Line(in)
		if err == io.EOF && len(line) == 0 {
			return nil
		}
		if err == nil {
			err = take(line)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
}
