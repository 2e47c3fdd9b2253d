// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
	"github.com/nccl-otf2/nccl-otf2/internal/replay/descriptor"
)

// Compile makes the program of one process for the host: which calls to make, from which thread, and after which calls
// of other threads. The format is described in host/program.h; only this package and the host use it.
func Compile(rec *Recording, process int) ([]byte, error) {
	if process < 0 || process >= len(rec.Processes) {
		return nil, fmt.Errorf("recording %s: no process %d of %d", rec.Name, process, len(rec.Processes))
	}
	p := rec.Processes[process]
	release, err := parseRelease(rec.Run.NCCL)
	if err != nil {
		return nil, fmt.Errorf("recording %s: %w", rec.Name, err)
	}
	c := &compiler{
		p:       p,
		release: release,
		strings: map[string]int{},
		roots:   p.GroupRoots(),
		last:    map[*Thread]*Context{},
		known:   map[[2]*Thread]int{},
		touched: map[*Context]map[*Thread]*Call{},
		turns:   map[*Thread]*Call{},
		plans:   map[*Context]*Event{},
	}
	for _, call := range p.Calls {
		if err := c.call(call); err != nil {
			return nil, fmt.Errorf("recording %s: process %d: open %d, seq %d: %w", rec.Name, process, call.Open,
				call.Seq, err)
		}
	}
	meetings, _ := rec.meetings()
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
		m := meetings[x]
		fmt.Fprintf(&contexts, "context %x %s %d %d %d %d %d %d\n", x.CommID, name, x.NNodes, x.NRanks, x.Rank,
			rec.Device(p, x), m.number, m.members)
	}

	var out bytes.Buffer
	open := p.Opens[0]
	out.WriteString("replay-program 2\n")
	fmt.Fprintf(&out, "nccl %d %d %d %d\n", open.API, release.code(), p.PID, rec.beginning(p))
	fmt.Fprintf(&out, "anchor %d %d %d\n", open.T, open.Mono, open.Real)
	fmt.Fprintf(&out, "counts %d %d %d %d %d\n", len(c.order), len(p.Threads), len(p.Contexts), len(p.Events),
		len(p.Calls))
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

// meeting is a communicator of the recording, which ranks of several processes join.
type meeting struct{ number, members int }

// meetings returns the communicator of each communicator rank. Several communicators may have the same commId
// (docs/nccl-profiler-api.md §5.1): they have different sizes, or are not alive at the same time.
func (rec *Recording) meetings() (of map[*Context]*meeting, count int) {
	type place struct {
		commID             uint64
		open, nranks, rank int
	}
	type instance struct {
		place // with rank 0
		time  int
	}
	of = make(map[*Context]*meeting)
	times := make(map[place]int)
	all := make(map[instance]*meeting)
	for _, p := range rec.Processes {
		for _, x := range p.Contexts {
			at := place{x.CommID, x.Open, x.NRanks, x.Rank}
			key := instance{place{x.CommID, x.Open, x.NRanks, 0}, times[at]}
			times[at]++
			of[x] = keyed.EntryMade(all, key, func() *meeting { return &meeting{number: len(all)} })
			of[x].members++
		}
	}
	return of, len(all)
}

// seal appends the checksum to a program.
func seal(program []byte) []byte {
	sum := fnv.New64a()
	sum.Write(program)
	return fmt.Appendf(program, "end %x\n", sum.Sum64())
}

// release is an NCCL release: 2, 29, 7.
type release [3]int

// parseRelease reads "2.29.7" or "2.29".
func parseRelease(text string) (release, error) {
	var r release
	parts := strings.Split(text, ".")
	for i, part := range parts {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 || n > 99 || i >= len(r) {
			return r, fmt.Errorf("%q is not an NCCL release", text)
		}
		r[i] = n
	}
	if r[0] != 2 || r[1] < 23 {
		return r, fmt.Errorf("NCCL release %q has no profiler plugins (2.23 and later have)", text)
	}
	return r, nil
}

// code returns the number that ncclGetVersion reports: 22907.
func (r release) code() int { return r[0]*10000 + r[1]*100 + r[2] }

// VersionCode returns the number that ncclGetVersion reports for a release: 22907 for "2.29.7".
func VersionCode(nccl string) (int, error) {
	r, err := parseRelease(nccl)
	return r.code(), err
}

// DeviceOf returns the CUDA device of a communicator rank if the recording has it: as the plugin asked CUDA, or from
// the kernels that the rank ran.
func (rec *Recording) DeviceOf(p *Process, c *Context) (device int, known bool) {
	if c.Device != nil {
		return *c.Device, *c.Device >= 0
	}
	for _, k := range p.Kernels {
		if k.CommRank == c.Rank && k.NRanks == c.NRanks {
			return k.Dev, true
		}
	}
	return 0, false
}

// Device returns the CUDA device on which a communicator rank is played: its own, or one chosen by its rank in the
// whole job.
func (rec *Recording) Device(p *Process, c *Context) int {
	if device, known := rec.DeviceOf(p, c); known {
		return device
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

// beginning returns the time of the first call of all processes, on the clock of the host of one of them. The clocks of
// different hosts are compared by the time of day that each host had.
func (rec *Recording) beginning(of *Process) uint64 {
	ahead := make(map[string]uint64) // by boot id: of the first process's clock, modulo 2^64
	reference := &rec.Processes[0].Opens[0]
	first := ^uint64(0)
	for _, p := range rec.Processes {
		open := &p.Opens[0]
		by := keyed.EntryMade(ahead, open.Boot, func() uint64 {
			return open.T - reference.T - (open.Real - reference.Real)
		})
		for _, c := range p.Calls {
			first = min(first, c.T-by)
		}
	}
	return first + ahead[of.Opens[0].Boot]
}

// spawn returns the call after which a thread is created. Threads that initialize a communicator exist from the start,
// so that several can initialize concurrently; NCCL creates the others once there is a communicator.
func spawn(p *Process, t *Thread) string {
	first := t.Calls[0]
	switch {
	case t.Short && first.Index > 0:
		return strconv.Itoa(first.Index - 1)
	case t.TID == p.PID, first.Index == 0, first.Kind == CallInit && first.Open == 0:
		return "-"
	case first.Kind == CallStart && first.Context != nil:
		return strconv.Itoa(first.Context.Init.Index)
	}
	return strconv.Itoa(first.Index - 1)
}

// GroupRoots returns the GroupApi of each Group. A Group does not name it, so it is taken from the operations enqueued
// in the Group.
func (p *Process) GroupRoots() map[*Event]*Event {
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
	release release
	calls   bytes.Buffer
	strings map[string]int
	order   []string
	roots   map[*Event]*Event
	last    map[*Thread]*Context
	after   map[*Thread]*Call  // calls that the current call has to wait for: the latest of each other thread
	known   map[[2]*Thread]int // number of calls of the second thread that the first has waited for
	// touched has the latest call that each thread made for a context; nil: for no live context.
	touched map[*Context]map[*Thread]*Call
	turns   map[*Thread]*Call   // the latest init or finalize of each thread
	plans   map[*Context]*Event // the latest Group of each context
}

func (c *compiler) intern(s string) int {
	return keyed.EntryMade(c.strings, s, func() int {
		c.order = append(c.order, s)
		return len(c.order) - 1
	})
}

func (c *compiler) text(s string) string { return "s" + strconv.Itoa(c.intern(s)) }

func pointer(p descriptor.Pointer) string {
	if p == 0 {
		return "-"
	}
	return "x" + strconv.FormatUint(uint64(p), 16)
}

// wait makes the current call wait for an earlier one.
func (c *compiler) wait(call, earlier *Call) {
	if earlier == nil || earlier.Thread == call.Thread {
		return
	}
	if was := c.after[earlier.Thread]; was == nil || was.Index < earlier.Index {
		c.after[earlier.Thread] = earlier
	}
}

// handle returns the operand for another event's handle, and makes the call wait for that event. foreign is the number
// under which another process published the handle.
func (c *compiler) handle(call *Call, e *Event, recorded descriptor.Pointer, foreign *int) string {
	switch {
	case foreign != nil:
		return "p" + strconv.Itoa(*foreign)
	case e == nil:
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
		// The library is loaded again only after its last user is gone.
		for _, x := range c.p.Contexts {
			if x.Open < call.Open {
				c.wait(call, x.Finalize)
			}
		}
	case CallFinalize:
		c.calls.WriteString(c.context(context, call.ContextPointer, call.Foreign))
		for _, latest := range c.touched[context] {
			c.wait(call, latest)
		}
		for _, latest := range c.touched[nil] {
			c.wait(call, latest)
		}
	case CallStart:
		if err := c.start(call); err != nil {
			return err
		}
	case CallStop, CallState:
		if context == nil {
			// A NULL handle counts for the context that the thread used last.
			context = c.last[call.Thread]
		}
		if context == nil {
			c.calls.WriteString("- ")
		} else {
			fmt.Fprintf(&c.calls, "c%d ", context.Index)
		}
		c.calls.WriteString(c.handle(call, call.Event, call.Handle, call.Foreign))
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
		if call.Kind != CallFinalize {
			c.last[call.Thread] = context
		}
		c.touch(context, call)
	}
	own := call.Context
	if own == nil || own.Finalize != nil && own.Finalize.Index < call.Index {
		// The call has no live context to keep the plugin loaded, so it waits for the latest init or finalize of each
		// thread.
		for _, latest := range c.turns {
			c.wait(call, latest)
		}
		c.touch(nil, call)
	}
	if call.Kind == CallInit || call.Kind == CallFinalize {
		c.turns[call.Thread] = call
	}
	c.publish(call)
	c.finish(call)
	return nil
}

func (c *compiler) touch(context *Context, call *Call) {
	keyed.Map(c.touched, context)[call.Thread] = call
}

// publish records the number under which other processes refer to what the plugin returns.
func (c *compiler) publish(call *Call) {
	var number *int
	switch call.Kind {
	case CallInit:
		number = call.Context.Publish
	case CallStart:
		number = call.Event.Publish
	}
	if number != nil {
		fmt.Fprintf(&c.calls, " !%d", *number)
	}
}

// context returns the operand for a context.
func (c *compiler) context(x *Context, recorded descriptor.Pointer, foreign *int) string {
	switch {
	case foreign != nil:
		return "p" + strconv.Itoa(*foreign)
	case x == nil:
		return pointer(recorded)
	}
	return "c" + strconv.Itoa(x.Index)
}

// finish ends the call's line with the calls that it waits for, in the order of the threads, without those that the
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
	c.calls.WriteString(c.context(e.Context, e.ContextPointer, e.ForeignContext))
	root := e.Root()
	if e.Type == descriptor.TypeGroup {
		root = c.roots[e]
		// NCCL enqueues the plans of a communicator in one order, whichever threads do it: the order of its launches,
		// or the order of the stream's callbacks.
		if last := c.plans[e.Context]; last != nil {
			c.wait(call, last.Start)
			if last.Stop != nil && last.Stop.Index < call.Index {
				c.wait(call, last.Stop)
			}
		}
		c.plans[e.Context] = e
	}
	if root == nil && c.release[1] <= 27 {
		root = e.plan()
	}
	rootIndex := 0
	if root != nil && root != e {
		rootIndex = root.Index
		c.wait(call, root.Start)
	}
	fmt.Fprintf(&c.calls, " %d %d %d %s %s %d", e.Index, e.Type, rootIndex,
		c.handle(call, e.Parent, e.ParentObj, e.ForeignParent), c.handle(call, e.BeforeEvent, e.Before, nil), e.Rank)
	if e.Type == descriptor.TypeOther {
		fmt.Fprintf(&c.calls, " x%x", e.TypeBits)
	}
	for i, f := range descriptor.Types[e.Type].Fields {
		v, err := c.field(call, f, e.values[i])
		if err != nil {
			return fmt.Errorf("%s.%s: %w", e.Type, f.Name, err)
		}
		c.calls.WriteByte(' ')
		c.calls.WriteString(v)
	}
	return nil
}

// plan returns the Group event above an event. Up to NCCL 2.27 it is the root of all but ProxyCtrl.
func (e *Event) plan() *Event { return e.above(descriptor.TypeGroup) }

// stated returns what releases up to 2.26 write about the communicator into each operation.
func (e *Event) stated(c *compiler, name string) string {
	if e.Context == nil || c.release[1] > 26 {
		return "-"
	}
	switch name {
	case "name":
		if e.Context.CommName != nil {
			return c.text(*e.Context.CommName)
		}
	case "commHash":
		return pointer(descriptor.Pointer(e.Context.CommID))
	}
	return "-"
}

func (c *compiler) field(call *Call, f descriptor.Field, raw json.RawMessage) (string, error) {
	e := call.Event
	if raw == nil {
		if e.Type != descriptor.TypeColl && e.Type != descriptor.TypeP2p {
			return "-", nil
		}
		return e.stated(c, f.Name), nil
	}
	switch f.Kind {
	case descriptor.String:
		var s *string
		if err := json.Unmarshal(raw, &s); err != nil {
			return "", err
		}
		if s == nil {
			return "-", nil
		}
		return c.text(*s), nil
	case descriptor.Opaque, descriptor.Handle, descriptor.NetData:
		var p descriptor.Pointer
		if err := json.Unmarshal(raw, &p); err != nil {
			return "", err
		}
		if f.Kind == descriptor.Handle {
			return c.handle(call, e.Group, p, nil), nil
		}
		if net, ok := e.Descr.(*descriptor.NetPlugin); ok {
			return netOperand(net.ID, p, net.Sock, net.IB)
		}
		return pointer(p), nil
	case descriptor.PID:
		if e.ForeignPID != nil {
			return "a" + strconv.Itoa(*e.ForeignPID), nil
		}
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

// Network plugins whose descriptors a profiler plugin may read, from NCCL's profiler_net.h: kind in bits 16–31,
// version in bits 0–15.
const (
	netIB     = 0x10001
	netSocket = 0x20001
)

// netOperand returns the operand for a network plugin's data: the contents if they are known, otherwise an address
// that must not be read.
func netOperand(id int64, data descriptor.Pointer, sock *descriptor.Sock, ib *descriptor.IB) (string, error) {
	switch {
	case sock != nil:
		return fmt.Sprintf("k%d:%d:%d:%d", sock.Type, sock.FD, sock.Op, sock.Length), nil
	case ib != nil:
		return fmt.Sprintf("q%d:%d:%d:%d:%d:%d", ib.Type, ib.Device, ib.WrID, ib.Opcode, ib.QPNum, ib.Length), nil
	case data == 0:
		return "-", nil
	case id == netIB, id == netSocket:
		return "", fmt.Errorf("network plugin %#x: what its data pointed to is not recorded", id)
	}
	return "wild", nil
}

func (c *compiler) args(call *Call) (string, error) {
	a := call.Args
	switch {
	case a == nil:
		return "-", nil
	case a.Diag != nil:
		return fmt.Sprintf("d%d:%d:%d:%d", a.Diag.CounterKind, a.Diag.Flags, a.Diag.Value, a.Diag.Value2), nil
	case a.TransSize != nil && a.Steps != nil:
		return fmt.Sprintf("o%d:%d", *a.TransSize, *a.Steps), nil
	case a.TransSize != nil:
		return fmt.Sprintf("=%d", *a.TransSize), nil
	case a.AppendedProxyOps != nil:
		if int64(int32(*a.AppendedProxyOps)) != *a.AppendedProxyOps {
			return "", fmt.Errorf("appendedProxyOps %d is no int", *a.AppendedProxyOps)
		}
		return fmt.Sprintf("i%d", *a.AppendedProxyOps), nil
	case a.PTimer != nil:
		return fmt.Sprintf("=%d", *a.PTimer), nil
	case a.Sock != nil, a.IB != nil, a.Data != nil && *a.Data != 0:
		var id int64
		var data descriptor.Pointer
		if call.Event != nil {
			if net, ok := call.Event.Descr.(*descriptor.NetPlugin); ok {
				id = net.ID
			}
		}
		if a.Data != nil {
			data = *a.Data
		}
		return netOperand(id, data, a.Sock, a.IB)
	}
	return ".", nil
}

// publications returns how many numbers the processes publish or use.
func (rec *Recording) publications() int {
	n := 0
	for _, p := range rec.Processes {
		var all []*int
		for _, x := range p.Contexts {
			all = append(all, x.Publish)
		}
		for _, e := range p.Events {
			all = append(all, e.Publish, e.ForeignContext, e.ForeignParent, e.ForeignPID)
		}
		for _, c := range p.Calls {
			all = append(all, c.Foreign)
		}
		for _, number := range all {
			if number != nil {
				n = max(n, *number+1)
			}
		}
	}
	return n
}
