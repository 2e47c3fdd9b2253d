// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/replay/descriptor"
	"github.com/nccl-otf2/nccl-otf2/internal/replay/recording"
)

// Write makes the recording's folder. It may be called again.
func (s *Scenario) Write(dir string) error {
	if s.err != nil {
		return s.err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("scenario %s: %w", s.Name, err)
	}
	api, err := NativeAPI(s.Release)
	if err != nil {
		return fmt.Errorf("scenario %s: %w", s.Name, err)
	}
	run := map[string]any{
		"name": s.Name, "what": s.What, "nccl": s.Release, "pluginApi": api, "processes": len(s.processes),
		"ranksPerProcess": s.ranksPerProcess(),
	}
	if s.Library != "" {
		run["library"] = s.Library
	}
	var files []map[string]any
	for _, p := range s.processes {
		w := &writer{p: p, api: api}
		text, err := w.process()
		if err != nil {
			return fmt.Errorf("scenario %s: process %d: %w", s.Name, p.index, err)
		}
		name := recording.Calls(p.index)
		if err := writeZipped(filepath.Join(dir, name), text); err != nil {
			return fmt.Errorf("scenario %s: %w", s.Name, err)
		}
		files = append(files, map[string]any{"file": name, "pid": p.pid, "lines": w.lines})
	}
	run["files"] = files
	text, err := json.MarshalIndent(run, "", " ")
	if err != nil {
		return fmt.Errorf("scenario %s: %w", s.Name, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "run.json"), append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("scenario %s: %w", s.Name, err)
	}
	return nil
}

// Load writes the recording and reads it.
func (s *Scenario) Load(dir string) (*replay.Recording, error) {
	if err := s.Write(dir); err != nil {
		return nil, err
	}
	return replay.Load(dir)
}

func writeZipped(path string, text []byte) error {
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	// Cannot fail: it is written to memory.
	_, _ = zip.Write(text)
	_ = zip.Close()
	return os.WriteFile(path, out.Bytes(), 0o644)
}

// ranksPerProcess is the most ranks that any process has in one communicator.
func (s *Scenario) ranksPerProcess() int {
	most := 1
	for _, p := range s.processes {
		ranks := map[uint64]map[int]bool{}
		for _, c := range p.calls {
			if c.kind != replay.CallInit {
				continue
			}
			x := c.context.(*Context)
			if ranks[x.ID] == nil {
				ranks[x.ID] = map[int]bool{}
			}
			ranks[x.ID][x.Rank] = true
			most = max(most, len(ranks[x.ID]))
		}
	}
	return most
}

// writer makes the lines of one process.
type writer struct {
	p        *Process
	api      int
	out      bytes.Buffer
	lines    int
	seq      int
	open     int // 1, 2, …
	live     int // contexts not finalized
	contexts int // ids in this open
	events   int
	last     uint64
	known    map[*Thread]bool
	done     map[*Context]bool
}

// member is one member of a line.
type member struct {
	name  string
	value any
}

func (w *writer) line(members ...member) error {
	fmt.Fprintf(&w.out, `{"seq":%d`, w.seq)
	for _, m := range members {
		text, err := json.Marshal(m.value)
		if err != nil {
			return err
		}
		fmt.Fprintf(&w.out, ",%q:%s", m.name, text)
	}
	w.out.WriteString("}\n")
	w.seq++
	w.lines++
	return nil
}

func (w *writer) process() ([]byte, error) {
	calls := slices.Clone(w.p.calls)
	slices.SortStableFunc(calls, func(a, b *call) int { return cmp.Compare(a.t, b.t) })
	w.done = map[*Context]bool{}
	for _, c := range calls {
		if c.event != nil {
			c.event.id, c.event.stops = 0, 0
		}
		if x, ok := c.context.(*Context); ok && c.kind == replay.CallInit {
			x.id = 0
		}
	}
	for i, c := range calls {
		if err := w.call(c); err != nil {
			return nil, fmt.Errorf("call %d (%s at %.3f µs): %w", i, c.kind, float64(c.t-startRaw)/1000, err)
		}
	}
	if w.open == 0 {
		return nil, fmt.Errorf("no call")
	}
	return w.out.Bytes(), nil
}

// begin writes the lines that come before a call, and moves equal times apart.
func (w *writer) begin(c *call) (uint64, error) {
	t := max(c.t, w.last+1)
	w.last = t
	// NCCL unloads the plugin with its last communicator, and loads it anew for the next.
	if w.open == 0 || c.kind == replay.CallInit && w.live == 0 {
		w.seq, w.contexts, w.events = 0, 0, 0
		w.open++
		w.known = map[*Thread]bool{}
		err := w.line(member{"f", "open"}, member{"pid", w.p.pid}, member{"api", w.api}, member{"mask", 65535},
			member{"t", t}, member{"mono", t - startRaw + startMono}, member{"real", t - startRaw + startReal})
		if err != nil {
			return 0, err
		}
	}
	if !w.known[c.thread] {
		w.known[c.thread] = true
		members := []member{{"f", "thread"}, {"tid", c.thread.tid}, {"name", c.thread.name}}
		if c.thread.short {
			members = append(members, member{"short", true})
		}
		return t, w.line(members...)
	}
	return t, nil
}

func (w *writer) call(c *call) error {
	t, err := w.begin(c)
	if err != nil {
		return err
	}
	m := []member{{"t", t}, {"tid", c.thread.tid}, {"f", c.kind.String()}}
	switch c.kind {
	case replay.CallInit:
		m = append(m, w.init(c.context.(*Context))...)
	case replay.CallFinalize:
		more, err := w.context(c.context)
		if err != nil {
			return err
		}
		if x, ok := c.context.(*Context); ok && !w.done[x] {
			w.done[x] = true
			w.live--
		}
		m = append(m, more...)
	case replay.CallStart:
		more, err := w.start(c)
		if err != nil {
			return err
		}
		m = append(m, more...)
	default:
		more, err := w.handle(c.handle)
		if err != nil {
			return err
		}
		m = append(m, more...)
		e, _ := c.handle.(*Event)
		if c.kind == replay.CallState {
			m = append(m, member{"state", c.state}, member{"stateName", c.state.String()}, member{"args", c.args})
		} else if e != nil {
			if e.stops > 0 {
				m = append(m, member{"alreadyStopped", e.stops})
			}
			e.stops++
		}
	}
	return w.line(m...)
}

func (x *Context) address() descriptor.Pointer {
	return descriptor.Pointer(0x55ff40000000 + x.p.index<<24 + x.number<<12)
}

func (e *Event) address() descriptor.Pointer {
	return descriptor.Pointer(0x7fc900000000 + e.p.index<<28 + e.number<<5)
}

func (w *writer) init(x *Context) []member {
	before := 65535
	if w.open == 1 && w.contexts == 0 {
		before = 0
	}
	w.contexts++
	w.live++
	x.id, x.open = w.contexts, w.open
	var name *string
	if x.Name != "" {
		name = &x.Name
	}
	m := []member{
		{"ctx", x.address()}, {"ctxId", x.id}, {"commId", descriptor.Pointer(x.ID)}, {"maskBefore", before},
		{"mask", 65535},
		{"commName", name}, {"nNodes", x.NNodes}, {"nranks", x.NRanks}, {"rank", x.Rank}, {"logfn", true},
	}
	if x.published != nil {
		m = append(m, member{"publish", *x.published})
	}
	return m
}

// context writes which context a call is for.
func (w *writer) context(ref Ref) ([]member, error) {
	switch x := ref.(type) {
	case *Context:
		if x.p != w.p || x.id == 0 || x.open != w.open {
			return nil, fmt.Errorf("the context is not initialized here: publish it, or initialize it first")
		}
		return []member{{"ctx", x.address()}, {"ctxId", x.id}}, nil
	case Raw:
		return []member{{"ctx", descriptor.Pointer(x)}, {"ctxId", nil}}, nil
	case Shared:
		return []member{{"ctx", nil}, {"ctxId", nil}, {"ctxFrom", x.number}}, nil
	}
	return nil, fmt.Errorf("%T is no context", ref)
}

// event checks that an event can be named.
func (w *writer) event(e *Event) error {
	if e.p != w.p || e.id == 0 || e.open != w.open {
		return fmt.Errorf("%s event %d is not started here: publish it, or start it first", e.typ, e.number)
	}
	return nil
}

// handle writes which event a stop or state is for.
func (w *writer) handle(ref Ref) ([]member, error) {
	switch x := ref.(type) {
	case *Event:
		return []member{{"h", x.address()}, {"id", x.id}, {"typeName", x.typ.String()}}, w.event(x)
	case *Context:
		return []member{{"h", x.address()}, {"id", nil}},
			fmt.Errorf("a context is no handle: publish it to pass it as one")
	case Raw:
		return []member{{"h", descriptor.Pointer(x)}, {"id", nil}}, nil
	case Shared:
		return []member{{"h", nil}, {"id", nil}, {"hFrom", x.number}}, nil
	}
	return nil, fmt.Errorf("%T is no handle", ref)
}

// parent writes a start's parent.
func (w *writer) parent(ref Ref) ([]member, error) {
	switch x := ref.(type) {
	case nil:
		return []member{{"parentObj", nil}, {"parentId", nil}}, nil
	case *Event:
		return []member{{"parentObj", x.address()}, {"parentId", x.id}, {"parentStopped", x.stops}}, w.event(x)
	case Raw:
		return []member{{"parentObj", descriptor.Pointer(x)}, {"parentId", nil}}, nil
	case Shared:
		return []member{{"parentObj", nil}, {"parentId", nil}, {"parentFrom", x.number}}, nil
	}
	return nil, fmt.Errorf("%T is no parent", ref)
}

// plain gives the value and id of a handle that cannot be another process's.
func (w *writer) plain(what string, ref Ref) (descriptor.Pointer, *int, error) {
	switch x := ref.(type) {
	case nil:
		return 0, nil, nil
	case *Event:
		return x.address(), &x.id, w.event(x)
	case Raw:
		return descriptor.Pointer(x), nil, nil
	}
	return 0, nil, fmt.Errorf("%T is no %s", ref, what)
}

func (w *writer) start(c *call) ([]member, error) {
	e, st := c.event, c.start
	m, err := w.context(c.context)
	if err != nil {
		return nil, err
	}
	parent, err := w.parent(st.parent)
	if err != nil {
		return nil, fmt.Errorf("parent: %w", err)
	}
	before, _, err := w.plain("earlier handle", st.before)
	if err != nil {
		return nil, fmt.Errorf("*eHandle: %w", err)
	}
	descr, err := w.descr(st)
	if err != nil {
		return nil, err
	}
	w.events++
	e.id, e.open = w.events, w.open
	m = append(m, member{"type", st.bits}, member{"typeName", e.typ.String()})
	m = append(m, parent...)
	m = append(m, member{"rank", st.rank}, member{"handleBefore", before}, member{"d", json.RawMessage(descr)},
		member{"h", e.address()}, member{"id", e.id})
	if e.published != nil {
		m = append(m, member{"publish", *e.published})
	}
	return m, nil
}

// descr writes a descriptor with the ids that belong to it.
func (w *writer) descr(st *start) ([]byte, error) {
	own := reflect.New(reflect.Indirect(reflect.ValueOf(st.descr)).Type())
	own.Elem().Set(reflect.Indirect(reflect.ValueOf(st.descr)))
	group, id, err := w.plain("group", st.group)
	if err != nil {
		return nil, fmt.Errorf("parentGroup: %w", err)
	}
	var more []member
	switch d := own.Interface().(type) {
	case *descriptor.Coll:
		d.ParentGroup = cmp.Or(group, d.ParentGroup)
		more = []member{{"parentGroupId", id}}
	case *descriptor.P2p:
		d.ParentGroup = cmp.Or(group, d.ParentGroup)
		more = []member{{"parentGroupId", id}}
	case *descriptor.ProxyOp:
		d.PID = cmp.Or(d.PID, w.p.pid)
		if st.pid != nil {
			more = []member{{"pidFrom", st.pid.number}}
		}
	}
	text, err := marshalDescr(own.Interface())
	if err != nil {
		return nil, err
	}
	text = text[:len(text)-1]
	for _, m := range more {
		v, err := json.Marshal(m.value)
		if err != nil {
			return nil, err
		}
		text = fmt.Appendf(text, ",%q:%s", m.name, v)
	}
	return append(text, '}'), nil
}
