// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/replay/descriptor"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// hear reads what the plugin of one process wrote, in order.
func hear(t testing.TB, dir string, rank int) []*heard {
	t.Helper()
	text := testkit.Read(t, filepath.Join(dir, fmt.Sprintf("p%d.jsonl", rank)))
	var all []*heard
	for line := range bytes.Lines(text) {
		h := new(heard)
		dec := json.NewDecoder(bytes.NewReader(line))
		dec.UseNumber()
		err := dec.Decode(h)
		testkit.Require(t, err == nil, "process %d: %v in %s", rank, err, line)
		all = append(all, h)
	}
	return all
}

// shape returns the parts of a call that are the same in recording and replay, whatever the handles. Handles are
// compared afterwards.
func (c *Call) shape(p *Process) string {
	switch c.Kind {
	case CallInit:
		x := c.Context
		return fmt.Sprintf("init %#x %q %d %d %d", x.CommID, x.Name(), x.NNodes, x.NRanks, x.Rank)
	case CallStart:
		e := c.Event
		s := fmt.Sprintf("start %s rank %d parent %t", e.Type, e.Rank, e.ParentObj != 0)
		for i, f := range descriptor.Types[e.Type].Fields {
			switch {
			case f.Kind == descriptor.Handle, f.Optional && e.values[i] == nil:
			case f.Kind == descriptor.PID && string(e.values[i]) == fmt.Sprint(p.PID):
				s += " pid=self"
			case f.Kind == descriptor.NetData && e.sock != nil:
				s += " sock=" + compact(e.sock)
			default:
				s += " " + f.Name + "=" + compact(e.values[i])
			}
		}
		return s
	case CallState:
		s := fmt.Sprintf("state %d", c.State)
		switch a := c.Args; {
		case a == nil:
			return s + " NULL"
		case a.TransSize != nil:
			return fmt.Sprintf("%s %d", s, *a.TransSize)
		case a.AppendedProxyOps != nil:
			return fmt.Sprintf("%s %d", s, *a.AppendedProxyOps)
		case a.PTimer != nil:
			return fmt.Sprintf("%s %d", s, *a.PTimer)
		}
		return s + " {}"
	}
	return c.Kind.String()
}

func compact(raw json.RawMessage) string {
	return strings.NewReplacer(" ", "", `"`, "").Replace(string(raw))
}

// shape returns the same for a call that the plugin heard.
func (h *heard) shape(pid int) string {
	switch h.F {
	case "init":
		name := ""
		if h.CommName != nil {
			name = *h.CommName
		}
		return fmt.Sprintf("init %#x %q %d %d %d", uint64(h.CommID), name, h.NNodes, h.NRanks, h.Rank)
	case "start":
		s := fmt.Sprintf("start %s rank %d parent %t", h.TypeName, h.Rank, h.ParentObj != 0)
		for _, t := range descriptor.Types {
			if t.Name != h.TypeName {
				continue
			}
			for _, f := range t.Fields {
				v := h.D[f.Name]
				text := fmt.Sprint(v)
				if v == nil {
					text = "null"
				}
				_, given := h.D[f.Name]
				switch {
				case f.Kind == descriptor.Handle, f.Optional && !given:
				case f.Kind == descriptor.PID && text == fmt.Sprint(pid):
					s += " pid=self"
				case f.Kind == descriptor.NetData && h.D["sock"] != nil:
					k := h.D["sock"].(map[string]any)
					s += fmt.Sprintf(" sock={type:%v,fd:%v,op:%v,length:%v}", k["type"], k["fd"], k["op"], k["length"])
				default:
					s += " " + f.Name + "=" + text
				}
			}
		}
		return s
	case "state":
		s := fmt.Sprintf("state %d", h.State)
		switch st := descriptor.State(h.State); {
		case h.Args == nil:
			return s + " NULL"
		case st >= descriptor.StateProxyCtrlIdle && st <= descriptor.StateProxyCtrlAppendEnd:
			return fmt.Sprintf("%s %d", s, h.Args.I32)
		case st == descriptor.StateProxyOpInProgress || st == descriptor.StateGroupStartApiStop || st == descriptor.StateGroupEndApiStart:
			return s + " {}"
		}
		return fmt.Sprintf("%s %d", s, h.Args.U64)
	}
	return h.F
}

// comparison pairs the calls of a recorded process with what the plugin heard.
type comparison struct {
	t        testing.TB
	p        *Process
	pid      int
	calls    []*heard // without the lines about unloading
	of       map[*Call]*heard
	position map[*heard]int // in calls
}

// compare fails the test unless each recorded thread's calls were made completely and in order by one thread of the
// same name, and all contexts and handles are the plugin's for the intended events.
func compare(t testing.TB, p *Process, pid int, all []*heard) *comparison {
	t.Helper()
	c := &comparison{t: t, p: p, pid: pid, of: map[*Call]*heard{}, position: map[*heard]int{}}
	byThread := map[int][]*heard{}
	var order []int
	for _, h := range all {
		if h.F == "unload" {
			continue
		}
		c.position[h] = len(c.calls)
		c.calls = append(c.calls, h)
		if byThread[h.TID] == nil {
			order = append(order, h.TID)
		}
		byThread[h.TID] = append(byThread[h.TID], h)
	}
	testkit.Require(t, len(c.calls) == len(p.Calls),
		"process %d: %d calls heard, %d recorded", p.Index, len(c.calls), len(p.Calls))
	taken := map[int]bool{}
	for _, th := range p.Threads {
		found, nearest, agreed := false, "", -1
		for _, tid := range order {
			if taken[tid] {
				continue
			}
			n, diff := c.agreement(th, byThread[tid])
			if diff == "" {
				taken[tid], found = true, true
				for i, call := range th.Calls {
					c.of[call] = byThread[tid][i]
				}
				break
			}
			if n > agreed {
				nearest, agreed = diff, n
			}
		}
		testkit.Require(t, found,
			"process %d: no thread made the calls of thread %d %q; the nearest: %s", p.Index, th.TID, th.Name, nearest)
	}
	c.handles()
	return c
}

// agreement compares a recorded thread with one that the plugin heard. It returns how many calls agree, and the first
// that does not.
func (c *comparison) agreement(th *Thread, made []*heard) (int, string) {
	main := th.TID == c.p.PID
	if (made[0].TID == c.pid) != main {
		return 0, "one is the main thread, the other is not"
	}
	if made[0].Thread != th.Name {
		return 0, fmt.Sprintf("name %q", made[0].Thread)
	}
	for i, call := range th.Calls {
		if i == len(made) {
			return i, fmt.Sprintf("only %d calls of %d", len(made), len(th.Calls))
		}
		if want, got := call.shape(c.p), made[i].shape(c.pid); want != got {
			return i, fmt.Sprintf("call %d: recorded %s, heard %s", i, want, got)
		}
	}
	if len(made) > len(th.Calls) {
		return len(th.Calls), fmt.Sprintf("%d calls instead of %d", len(made), len(th.Calls))
	}
	return len(made), ""
}

// handles checks that contexts and handles have the same meaning as in the recording.
func (c *comparison) handles() {
	handle := func(e *Event) descriptor.Pointer { return c.of[e.Start].H }
	context := func(x *Context) descriptor.Pointer { return c.of[x.Init].Ctx }
	addresses := map[string]string{} // of strings, by content
	for _, call := range c.p.Calls {
		h := c.of[call]
		check := func(what string, got, want descriptor.Pointer) {
			c.t.Helper()
			if got != want {
				c.t.Errorf("process %d, seq %d (%s): %s is %#x, want %#x", c.p.Index, call.Seq, call.Kind, what, got, want)
			}
		}
		switch call.Kind {
		case CallFinalize:
			check("context", h.Ctx, context(call.Context))
		case CallStop, CallState:
			if call.Event != nil {
				check("handle", h.H, handle(call.Event))
			} else {
				check("handle", h.H, 0)
			}
		case CallStart:
			e := call.Event
			check("context", h.Ctx, context(e.Context))
			parent, before := descriptor.Pointer(0), e.Before
			if e.Parent != nil {
				parent = handle(e.Parent)
			}
			if e.BeforeEvent != nil {
				before = handle(e.BeforeEvent)
			}
			check("parentObj", h.ParentObj, parent)
			check("*eHandle on entry", h.HandleBefore, before)
			if e.Group != nil {
				var group descriptor.Pointer
				testkit.Must(c.t, group.UnmarshalJSON(fmt.Appendf(nil, "%q", h.D["parentGroup"])))
				check("parentGroup", group, handle(e.Group))
			}
			for _, f := range descriptor.Types[e.Type].Fields {
				if f.Kind != descriptor.String {
					continue
				}
				content, at := fmt.Sprint(h.D[f.Name]), fmt.Sprint(h.D[f.Name+"@"])
				was, ok := addresses[content]
				testkit.Check(c.t, !ok || was == at, "string %q at %s and at %s", content, was, at)
				addresses[content] = at
			}
		}
	}
}

// inOrder checks that the calls came in the recorded order, each at its recorded time.
func (c *comparison) inOrder() {
	for i, call := range c.p.Calls {
		h := c.of[call]
		if c.position[h] != i {
			c.t.Fatalf("process %d: call %d (seq %d) came as number %d", c.p.Index, i, call.Seq, c.position[h])
		}
		if h.T != call.T {
			c.t.Fatalf("process %d, seq %d: the clock said %d, recorded is %d", c.p.Index, call.Seq, h.T, call.T)
		}
	}
}

// causal checks that no call came before one that it depends on.
func (c *comparison) causal() {
	after := func(later, earlier *Call) {
		c.t.Helper()
		if earlier != nil && c.position[c.of[later]] < c.position[c.of[earlier]] {
			c.t.Errorf("process %d: seq %d came before seq %d", c.p.Index, later.Seq, earlier.Seq)
		}
	}
	for _, call := range c.p.Calls {
		if call.Context != nil {
			after(call, call.Context.Init)
			if call.Kind != CallFinalize && call.Context.Finalize != nil {
				after(call.Context.Finalize, call)
			}
		}
		if e := call.Event; e != nil {
			after(call, e.Start)
			if call.Kind == CallStart {
				for _, earlier := range []*Event{e.Parent, e.Group, e.Root()} {
					if earlier != nil && earlier != e {
						after(call, earlier.Start)
					}
				}
			}
		}
		if call.Kind == CallInit {
			for _, x := range c.p.Contexts {
				if x.Open < call.Open {
					after(call, x.Finalize)
				}
			}
		}
	}
}
