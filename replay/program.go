// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
)

// Compile makes the program of one process for the host: what to call, from which thread, and after
// which calls of other threads. The format is described in tests/fakenccl/program.h and private to
// the two.
func Compile(rec *Recording, process int) ([]byte, error) {
	if process < 0 || process >= len(rec.Processes) {
		return nil, fmt.Errorf("recording %s: no process %d of %d", rec.Name, process, len(rec.Processes))
	}
	p := rec.Processes[process]
	native, err := nativeAPI(rec.Run.NCCL)
	if err != nil {
		return nil, fmt.Errorf("recording %s: %w", rec.Name, err)
	}
	c := &compiler{
		p:       p,
		strings: map[string]int{},
		roots:   groupRoots(p),
		last:    map[*Thread]*Context{},
		known:   map[[2]*Thread]int{},
		touched: map[*Context]map[*Thread]*Call{},
		plans:   map[*Context]*Event{},
	}
	for _, call := range p.Calls {
		if err := c.call(call); err != nil {
			return nil, fmt.Errorf("recording %s: process %d: open %d, seq %d: %w", rec.Name, process, call.Open, call.Seq, err)
		}
	}
	meetings := rec.meetings()
	var threads, contexts bytes.Buffer
	for _, t := range p.Threads {
		main := 0
		if t.TID == p.PID {
			main = 1
		}
		fmt.Fprintf(&threads, "thread %d %d %s\n", c.intern(t.Name), main, spawn(p, t))
	}
	for _, x := range p.Contexts {
		name := "-"
		if x.CommName != nil {
			name = c.text(*x.CommName)
		}
		m := meetings[meetingKey{x.CommID, x.Open}]
		fmt.Fprintf(&contexts, "context %x %s %d %d %d %d %d %d\n", x.CommID, name, x.NNodes, x.NRanks, x.Rank, rec.Device(p, x), m.number, m.members)
	}

	var out bytes.Buffer
	open := p.Opens[0]
	out.WriteString("fakenccl-program 1\n")
	fmt.Fprintf(&out, "nccl %d %d %d %d\n", open.API, native, p.PID, rec.firstTime())
	fmt.Fprintf(&out, "anchor %d %d %d\n", open.T, open.Mono, open.Real)
	fmt.Fprintf(&out, "counts %d %d %d %d %d\n", len(c.order), len(p.Threads), len(p.Contexts), len(p.Events), len(p.Calls))
	for _, s := range c.order {
		out.WriteString("string ")
		for i := 0; i < len(s); i++ {
			if b := s[i]; b > ' ' && b <= '~' && b != '%' {
				out.WriteByte(b)
			} else {
				fmt.Fprintf(&out, "%%%02x", b)
			}
		}
		out.WriteByte('\n')
	}
	out.Write(threads.Bytes())
	out.Write(contexts.Bytes())
	out.Write(c.calls.Bytes())
	return seal(out.Bytes()), nil
}

// A meeting is a communicator of the recording, which ranks of several processes join.
type meeting struct{ number, members int }

type meetingKey struct {
	commID uint64
	open   int
}

func (rec *Recording) meetings() map[meetingKey]*meeting {
	all := make(map[meetingKey]*meeting)
	for _, p := range rec.Processes {
		for _, x := range p.Contexts {
			k := meetingKey{x.CommID, x.Open}
			if all[k] == nil {
				all[k] = &meeting{number: len(all)}
			}
			all[k].members++
		}
	}
	return all
}

// seal ends a program with its checksum.
func seal(program []byte) []byte {
	sum := fnv.New64a()
	sum.Write(program)
	return fmt.Appendf(program, "end %x\n", sum.Sum64())
}

// nativeAPI is the plugin API version that an NCCL release speaks without adapting.
func nativeAPI(release string) (int, error) {
	parts := strings.SplitN(release, ".", 3)
	if len(parts) == 3 {
		major, err1 := strconv.Atoi(parts[0])
		minor, err2 := strconv.Atoi(parts[1])
		if err1 == nil && err2 == nil && major == 2 {
			switch {
			case minor >= 31:
				return 7, nil
			case minor >= 29:
				return 6, nil
			case minor == 28:
				return 5, nil
			}
		}
	}
	return 0, fmt.Errorf("NCCL release %q: its plugin API is not known here (2.28 or later is)", release)
}

// Device is the CUDA device of a communicator rank: that of the kernels it ran, else its rank in the
// whole job.
func (rec *Recording) Device(p *Process, c *Context) int {
	for _, k := range p.Kernels {
		if k.CommRank == c.Rank && k.NRanks == c.NRanks {
			return k.Dev
		}
	}
	for _, i := range p.Issues {
		if i.CommRank == c.Rank && i.NRanks == c.NRanks {
			return i.WorldRank
		}
	}
	if c.NRanks == rec.Run.Processes*rec.Run.RanksPerProcess {
		return c.Rank
	}
	return p.Index * rec.Run.RanksPerProcess
}

// firstTime is the time of the first call of all processes.
func (rec *Recording) firstTime() uint64 {
	first := ^uint64(0)
	for _, p := range rec.Processes {
		for _, c := range p.Calls {
			first = min(first, c.T)
		}
	}
	return first
}

// spawn says after which call a thread is created. Those that initialise a communicator exist from
// the start, so that several can at the same time; NCCL creates the others once there is a communicator.
func spawn(p *Process, t *Thread) string {
	first := t.Calls[0]
	switch {
	case t.TID == p.PID, first.Index == 0, first.Kind == CallInit && first.Open == 0:
		return "-"
	case first.Kind == CallStart && first.Context != nil:
		return strconv.Itoa(first.Context.Init.Index)
	}
	return strconv.Itoa(first.Index - 1)
}

// groupRoots finds the GroupApi behind each Group, which names none itself: it is that of the
// operations enqueued in it.
func groupRoots(p *Process) map[*Event]*Event {
	roots := map[*Event]*Event{}
	for _, e := range p.Events {
		if e.Group != nil && roots[e.Group] == nil {
			roots[e.Group] = e.Root()
		}
	}
	return roots
}

type compiler struct {
	p       *Process
	calls   bytes.Buffer
	strings map[string]int
	order   []string
	roots   map[*Event]*Event
	last    map[*Thread]*Context
	after   map[*Thread]*Call              // of the present call: the latest of each other thread to wait for
	known   map[[2]*Thread]int             // how many calls of the second thread the first has waited for
	touched map[*Context]map[*Thread]*Call // the latest call that each thread made for a context
	plans   map[*Context]*Event            // the latest Group of each context
}

func (c *compiler) intern(s string) int {
	i, ok := c.strings[s]
	if !ok {
		i = len(c.order)
		c.strings[s] = i
		c.order = append(c.order, s)
	}
	return i
}

func (c *compiler) text(s string) string { return "s" + strconv.Itoa(c.intern(s)) }

func pointer(p Pointer) string {
	if p == 0 {
		return "-"
	}
	return "x" + strconv.FormatUint(uint64(p), 16)
}

// wait notes that the present call comes after another.
func (c *compiler) wait(call, earlier *Call) {
	if earlier == nil || earlier.Thread == call.Thread {
		return
	}
	if was := c.after[earlier.Thread]; was == nil || was.Index < earlier.Index {
		c.after[earlier.Thread] = earlier
	}
}

// handle is the operand for another event's handle, and waits for it.
func (c *compiler) handle(call *Call, e *Event, recorded Pointer) string {
	if e == nil {
		return pointer(recorded)
	}
	c.wait(call, e.Start)
	return "e" + strconv.Itoa(e.Index)
}

func (c *compiler) call(call *Call) error {
	c.after = map[*Thread]*Call{}
	fmt.Fprintf(&c.calls, "%s %d %d ", call.Kind, call.Thread.Index, call.T)
	context := call.Context
	switch call.Kind {
	case CallInit:
		fmt.Fprintf(&c.calls, "%d", context.Index)
		// The library is loaded anew only when its last user is gone.
		for _, x := range c.p.Contexts {
			if x.Open < call.Open {
				c.wait(call, x.Finalize)
			}
		}
	case CallFinalize:
		fmt.Fprintf(&c.calls, "c%d", context.Index)
		for _, latest := range c.touched[context] {
			c.wait(call, latest)
		}
	case CallStart:
		if err := c.start(call); err != nil {
			return err
		}
	case CallStop, CallState:
		if context == nil {
			// A NULL handle: it belongs to whatever the thread is busy with.
			context = c.last[call.Thread]
		}
		if context == nil {
			c.calls.WriteString("- ")
		} else {
			fmt.Fprintf(&c.calls, "c%d ", context.Index)
		}
		c.calls.WriteString(c.handle(call, call.Event, call.Handle))
		if call.Kind == CallState {
			args, err := c.args(call)
			if err != nil {
				return err
			}
			fmt.Fprintf(&c.calls, " %d %s", call.State, args)
		}
	}
	if context != nil {
		c.wait(call, context.Init)
		c.last[call.Thread] = context
		if c.touched[context] == nil {
			c.touched[context] = map[*Thread]*Call{}
		}
		c.touched[context][call.Thread] = call
	}
	c.finish(call)
	return nil
}

// finish ends the call's line with what it comes after, in order of the threads, without what the
// thread has waited for before.
func (c *compiler) finish(call *Call) {
	for _, t := range c.p.Threads {
		if earlier := c.after[t]; earlier != nil {
			key := [2]*Thread{call.Thread, t}
			if earlier.Index+1 > c.known[key] {
				c.known[key] = earlier.Index + 1
				fmt.Fprintf(&c.calls, " @%d", earlier.Index)
			}
		}
	}
	c.calls.WriteByte('\n')
}

func (c *compiler) start(call *Call) error {
	e := call.Event
	if e.Context != nil {
		fmt.Fprintf(&c.calls, "c%d", e.Context.Index)
	} else {
		c.calls.WriteString(pointer(e.ContextPointer))
	}
	root := e.Root()
	if e.Type == TypeGroup {
		root = c.roots[e]
		// NCCL enqueues the plans of a communicator in one order, whichever threads do it: its own order of
		// launches, or the stream's order of callbacks.
		if last := c.plans[e.Context]; last != nil {
			c.wait(call, last.Start)
			if last.Stop != nil && last.Stop.Index < call.Index {
				c.wait(call, last.Stop)
			}
		}
		c.plans[e.Context] = e
	}
	rootIndex := 0
	if root != nil && root != e {
		rootIndex = root.Index
		c.wait(call, root.Start)
	}
	fmt.Fprintf(&c.calls, " %d %d %d %s %s %d", e.Index, e.Type, rootIndex,
		c.handle(call, e.Parent, e.ParentObj), c.handle(call, e.BeforeEvent, e.Before), e.Rank)
	for i, f := range eventTypes[e.Type].fields {
		v, err := c.field(call, f, e.values[i])
		if err != nil {
			return fmt.Errorf("%s.%s: %w", e.Type, f.name, err)
		}
		c.calls.WriteByte(' ')
		c.calls.WriteString(v)
	}
	return nil
}

func (c *compiler) field(call *Call, f field, raw json.RawMessage) (string, error) {
	e := call.Event
	switch f.kind {
	case fieldString:
		var s *string
		if err := json.Unmarshal(raw, &s); err != nil {
			return "", err
		}
		if s == nil {
			return "-", nil
		}
		return c.text(*s), nil
	case fieldPointer, fieldHandle, fieldNet:
		var p Pointer
		if err := json.Unmarshal(raw, &p); err != nil {
			return "", err
		}
		if f.kind == fieldHandle {
			return c.handle(call, e.Group, p), nil
		}
		if net, ok := e.Descr.(*NetPlugin); ok && net.Sock != nil {
			return net.Sock.operand(), nil
		}
		return pointer(p), nil
	case fieldPID:
		if string(raw) == strconv.Itoa(c.p.Opens[call.Open].PID) {
			return "self", nil
		}
	}
	var n json.Number
	if err := json.Unmarshal(raw, &n); err != nil {
		switch string(raw) {
		case "false":
			return "=0", nil
		case "true":
			return "=1", nil
		}
		return "", err
	}
	return "=" + n.String(), nil
}

func (s *Sock) operand() string { return fmt.Sprintf("k%d:%d:%d:%d", s.Type, s.FD, s.Op, s.Length) }

func (c *compiler) args(call *Call) (string, error) {
	a := call.Args
	switch {
	case a == nil:
		return "-", nil
	case a.TransSize != nil:
		return fmt.Sprintf("=%d", *a.TransSize), nil
	case a.AppendedProxyOps != nil:
		if call.Event == nil || call.Event.Type != TypeProxyCtrl {
			return "", fmt.Errorf("appendedProxyOps on an event other than ProxyCtrl")
		}
		return fmt.Sprintf("=%d", *a.AppendedProxyOps), nil
	case a.PTimer != nil:
		return fmt.Sprintf("=%d", *a.PTimer), nil
	case a.Sock != nil:
		return a.Sock.operand(), nil
	case a.Data != nil && *a.Data != 0:
		return pointer(*a.Data), nil
	}
	return ".", nil
}
