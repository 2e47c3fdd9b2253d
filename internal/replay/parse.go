// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"reflect"

	"github.com/nccl-otf2/nccl-otf2/internal/regular"
	"github.com/nccl-otf2/nccl-otf2/internal/replay/descriptor"
	"github.com/nccl-otf2/nccl-otf2/internal/replay/recording"
)

// eachLine calls f with each line of a gzipped JSON-lines file, from line 1, and returns the number of lines. Errors
// name the file and the line.
func eachLine(path string, f func(line []byte) error) (int, error) {
	file, err := regular.Open(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	zip, err := regular.Gunzip(file, info.Size())
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, cutOff(err))
	}
	in := bufio.NewReaderSize(zip, 1<<16)
	for n := 0; ; n++ {
		line, err := regular.Line(in)
		switch {
		case err == io.EOF && len(line) == 0:
			return n, nil
		case err == io.EOF:
			return n, fmt.Errorf("%s: line %d: cut off in the middle", path, n+1)
		case err != nil:
			return n, fmt.Errorf("%s: line %d: %w", path, n+1, cutOff(err))
		}
		if err := f(bytes.TrimSuffix(line, []byte("\n"))); err != nil {
			return n, fmt.Errorf("%s: line %d: %w", path, n+1, err)
		}
	}
}

// cutOff replaces gzip's error for a truncated file by a plain one.
func cutOff(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return fmt.Errorf("the gzip file is cut off (%w)", err)
	}
	return err
}

// recLine has the members of all kinds of lines of a rec file.
type recLine struct {
	Seq           int                `json:"seq"`
	F             string             `json:"f"`
	T             uint64             `json:"t"`
	TID           int                `json:"tid"`
	PID           int                `json:"pid"`
	API           int                `json:"api"`
	Mask          int                `json:"mask"`
	Mono          uint64             `json:"mono"`
	Real          uint64             `json:"real"`
	Name          string             `json:"name"`
	Ctx           descriptor.Pointer `json:"ctx"`
	CtxID         *int               `json:"ctxId"`
	CommID        descriptor.Pointer `json:"commId"`
	MaskBefore    int                `json:"maskBefore"`
	CommName      *string            `json:"commName"`
	NNodes        int                `json:"nNodes"`
	NRanks        int                `json:"nranks"`
	Rank          int                `json:"rank"`
	Type          uint64             `json:"type"`
	TypeName      string             `json:"typeName"`
	ParentObj     descriptor.Pointer `json:"parentObj"`
	ParentID      *int               `json:"parentId"`
	ParentStopped int                `json:"parentStopped"`
	HandleBefore  descriptor.Pointer `json:"handleBefore"`
	D             json.RawMessage    `json:"d"`
	H             descriptor.Pointer `json:"h"`
	ID            *int               `json:"id"`
	State         *int               `json:"state"`
	Args          *Args              `json:"args"`
	// Only the plugin's own recordings have these.
	Host   string `json:"host"`
	Boot   string `json:"boot"`
	Device *int   `json:"device"`
	UUID   string `json:"uuid"`
	PCI    string `json:"pci"`
	// The recorder does not write these:
	Short      bool `json:"short"`
	Publish    *int `json:"publish"`
	CtxFrom    *int `json:"ctxFrom"`
	ParentFrom *int `json:"parentFrom"`
	HFrom      *int `json:"hFrom"`
}

// loader keeps what names refer to while a rec file is read. Context and event ids start again after each open;
// handles stay, because NCCL may hold one of a plugin that has been unloaded.
type loader struct {
	p        *Process
	threads  map[int]*Thread
	contexts map[int]*Context
	events   map[int]*Event
	handles  map[descriptor.Pointer]*Event
	names    map[int]string
	short    map[int]bool
	stops    map[*Event]int
	seq      int
}

func newLoader() *loader {
	return &loader{
		p:       new(Process),
		threads: map[int]*Thread{},
		handles: map[descriptor.Pointer]*Event{},
		names:   map[int]string{},
		short:   map[int]bool{},
		stops:   map[*Event]int{},
	}
}

func loadProcess(path string) (*Process, int, error) {
	l := newLoader()
	n, err := eachLine(path, l.line)
	if err != nil {
		return nil, 0, err
	}
	if len(l.p.Opens) == 0 {
		return nil, 0, fmt.Errorf("%s: no open line", path)
	}
	l.p.PID = l.p.Opens[0].PID
	return l.p, n, nil
}

// line adds one line to the process.
func (l *loader) line(text []byte) error {
	var r recLine
	if err := json.Unmarshal(text, &r); err != nil {
		return fmt.Errorf("broken JSON: %w", err)
	}
	if r.F == "open" {
		l.p.Opens = append(l.p.Opens, Open{PID: r.PID, API: r.API, Mask: r.Mask, T: r.T, Mono: r.Mono, Real: r.Real,
			Host: r.Host, Boot: r.Boot})
		l.contexts = map[int]*Context{}
		l.events = map[int]*Event{}
		l.seq = 0
	}
	if len(l.p.Opens) == 0 {
		return errors.New("the first line is not open")
	}
	if r.Seq != l.seq {
		return fmt.Errorf("seq is %d where %d was expected: lines are missing", r.Seq, l.seq)
	}
	l.seq++
	switch r.F {
	case "open":
		return nil
	case "thread":
		l.names[r.TID] = r.Name
		l.short[r.TID] = r.Short
		return nil
	case "init":
		return l.init(&r)
	case "start":
		return l.start(&r)
	case "stop":
		return l.stop(&r)
	case "state":
		return l.state(&r)
	case "finalize":
		return l.finalize(&r)
	}
	return fmt.Errorf("%q is not a kind of line", r.F)
}

func (l *loader) call(kind CallKind, r *recLine) (*Call, error) {
	t := l.threads[r.TID]
	if t == nil {
		name, ok := l.names[r.TID]
		if !ok {
			return nil, fmt.Errorf("thread %d was not introduced", r.TID)
		}
		t = &Thread{Index: len(l.p.Threads), TID: r.TID, Name: name, Short: l.short[r.TID]}
		l.threads[r.TID] = t
		l.p.Threads = append(l.p.Threads, t)
	}
	c := &Call{Index: len(l.p.Calls), Kind: kind, Open: len(l.p.Opens) - 1, Seq: r.Seq, T: r.T, Thread: t, Handle: r.H}
	l.p.Calls = append(l.p.Calls, c)
	t.Calls = append(t.Calls, c)
	return c, nil
}

// context resolves ctxId. It returns nil for a context of another process.
func (l *loader) context(r *recLine) (*Context, error) {
	if r.CtxID == nil {
		return nil, nil
	}
	c := l.contexts[*r.CtxID]
	if c == nil {
		return nil, fmt.Errorf("context %d was not initialized", *r.CtxID)
	}
	return c, nil
}

func (l *loader) init(r *recLine) error {
	call, err := l.call(CallInit, r)
	if err != nil {
		return err
	}
	if r.CtxID == nil {
		return errors.New("init without ctxId")
	}
	c := &Context{
		Index: len(l.p.Contexts) + 1, Open: call.Open, ID: *r.CtxID, Pointer: r.Ctx, CommID: uint64(r.CommID),
		CommName: r.CommName, NNodes: r.NNodes, NRanks: r.NRanks, Rank: r.Rank,
		MaskBefore: r.MaskBefore, Mask: r.Mask, Init: call, Publish: r.Publish, Device: r.Device, UUID: r.UUID,
		PCI: r.PCI,
	}
	call.Context = c
	l.contexts[c.ID] = c
	l.p.Contexts = append(l.p.Contexts, c)
	return nil
}

func (l *loader) finalize(r *recLine) error {
	call, err := l.call(CallFinalize, r)
	if err != nil {
		return err
	}
	call.Context, err = l.context(r)
	if err != nil {
		return err
	}
	call.ContextPointer, call.Foreign = r.Ctx, r.CtxFrom
	switch {
	case call.Context == nil && r.Ctx == 0 && r.CtxFrom == nil:
		return errors.New("finalize without ctxId")
	case call.Context != nil && call.Context.Finalize == nil:
		call.Context.Finalize = call
	}
	return nil
}

func (l *loader) start(r *recLine) error {
	call, err := l.call(CallStart, r)
	if err != nil {
		return err
	}
	if call.Context, err = l.context(r); err != nil {
		return err
	}
	e := &Event{
		Index: len(l.p.Events) + 1, Open: call.Open, Handle: r.H, Context: call.Context, ContextPointer: r.Ctx,
		ParentObj: r.ParentObj, ParentStopped: r.ParentStopped, Rank: r.Rank, Before: r.HandleBefore, Start: call,
		Type: descriptor.FindType(r.Type, r.TypeName), TypeBits: r.Type,
		Publish: r.Publish, ForeignContext: r.CtxFrom, ForeignParent: r.ParentFrom,
	}
	call.Event = e
	if e.Parent, err = l.event(r.ParentID); err != nil {
		return err
	}
	if e.Before != 0 {
		e.BeforeEvent = l.handles[e.Before]
	}
	if err := l.descr(e, r.D); err != nil {
		return err
	}
	if r.ID != nil { // otherwise the recording plugin declined it: the call is played, but nothing refers to it
		e.ID = *r.ID
		l.events[e.ID] = e
	}
	if e.Handle != 0 {
		l.handles[e.Handle] = e
	}
	l.p.Events = append(l.p.Events, e)
	return nil
}

// descr reads the descriptor twice: into the type's Go struct, and as raw members in the order of programs.
func (l *loader) descr(e *Event, text json.RawMessage) error {
	info := &descriptor.Types[e.Type]
	e.Descr = reflect.New(reflect.TypeOf(info.Descr)).Interface()
	if len(text) == 0 {
		return fmt.Errorf("%s without descriptor", e.Type)
	}
	if err := json.Unmarshal(text, e.Descr); err != nil {
		return fmt.Errorf("descriptor of %s: %w", e.Type, err)
	}
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal(text, &members); err != nil {
		return fmt.Errorf("descriptor of %s: %w", e.Type, err)
	}
	e.sock = members["sock"]
	if from, ok := members["pidFrom"]; ok {
		if err := json.Unmarshal(from, &e.ForeignPID); err != nil {
			return fmt.Errorf("descriptor of %s: pidFrom: %w", e.Type, err)
		}
	}
	for _, f := range info.Fields {
		v, ok := members[f.Name]
		if !ok && f.Optional {
			e.values = append(e.values, nil)
			continue
		}
		if !ok {
			return fmt.Errorf("descriptor of %s has no %s", e.Type, f.Name)
		}
		e.values = append(e.values, v)
		if f.Kind == descriptor.Handle {
			var id *int
			text, ok := members[f.Name+"Id"]
			if !ok {
				return fmt.Errorf("descriptor of %s has no %sId", e.Type, f.Name)
			}
			if err := json.Unmarshal(text, &id); err != nil {
				return fmt.Errorf("descriptor of %s: %sId: %w", e.Type, f.Name, err)
			}
			group, err := l.event(id)
			if err != nil {
				return err
			}
			e.Group = group
		}
	}
	return nil
}

func (l *loader) event(id *int) (*Event, error) {
	if id == nil {
		return nil, nil
	}
	e := l.events[*id]
	if e == nil {
		return nil, fmt.Errorf("event %d was not started", *id)
	}
	return e, nil
}

func (l *loader) stop(r *recLine) error {
	call, err := l.call(CallStop, r)
	if err != nil {
		return err
	}
	if call.Event, err = l.event(r.ID); err != nil {
		return err
	}
	call.Foreign = r.HFrom
	if e := call.Event; e != nil {
		call.Context = e.Context
		call.Again = l.stops[e]
		l.stops[e]++
		e.Stop = cmp.Or(e.Stop, call)
	}
	return nil
}

func (l *loader) state(r *recLine) error {
	call, err := l.call(CallState, r)
	if err != nil {
		return err
	}
	if call.Event, err = l.event(r.ID); err != nil {
		return err
	}
	call.Foreign = r.HFrom
	if r.State == nil || int64(*r.State) != int64(int32(*r.State)) {
		return errors.New("the state is missing, or no 32-bit number")
	}
	call.State = descriptor.State(*r.State)
	call.Args = r.Args
	if e := call.Event; e != nil {
		call.Context = e.Context
		e.States = append(e.States, call)
	}
	return nil
}

// loadReferences reads the reference files of process i, if there are any.
func loadReferences(p *Process, dir string, i int) error {
	if err := loadLines(filepath.Join(dir, recording.Issued(i)), &p.Issues); err != nil {
		return err
	}
	return loadLines(filepath.Join(dir, recording.Kernels(i)), &p.Kernels)
}

// loadLines appends the objects of a file. A missing file has none.
func loadLines[T any](path string, to *[]T) error {
	_, err := eachLine(path, func(line []byte) error {
		var v T
		if err := json.Unmarshal(line, &v); err != nil {
			return fmt.Errorf("broken JSON: %w", err)
		}
		*to = append(*to, v)
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
