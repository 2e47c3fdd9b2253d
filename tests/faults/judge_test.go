// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/check"
	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/replay/descriptor"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// operation is one that a process knows to have recorded: the start of its Coll or P2p returned with a handle.
type operation struct {
	handle   uint64
	function string
	kind     string // "COLL", "P2P"
	of       *replay.Context
	started  int // place among the calls
}

// acknowledged are all of them, in the order of the calls.
func (p *play) acknowledged() (all []operation) {
	for k, r := range p.res.Processes {
		for i, handle := range r.Returned {
			c := p.rec.Processes[k].Calls[i]
			if c.Kind != replay.CallStart || handle <= 1 || c.Event == nil || c.Event.Context == nil ||
				c.Event.Context.NRanks < 2 {
				continue
			}
			switch d := c.Event.Descr.(type) {
			case *descriptor.Coll:
				if c.Event.Parent != nil { // else a hazard
					all = append(all, operation{handle, d.Func, "COLL", c.Event.Context, i})
				}
			case *descriptor.P2p:
				if c.Event.Parent != nil {
					all = append(all, operation{handle, d.Func, "P2P", c.Event.Context, i})
				}
			}
		}
	}
	return all
}

// judge holds what there is against what was recorded.
func (p *play) judge(when string) {
	p.t.Helper()
	want := p.acknowledged()
	if !p.archived() {
		if len(want) > 0 && !p.mayMiss() {
			p.t.Errorf("%s: there is no archive, and %d operations were recorded", when, len(want))
		}
		return
	}
	if p.profile {
		p.judgeProfile(when, want)
		return
	}
	a, err := otf2.Open(p.anchor(), nil)
	if err != nil {
		p.t.Errorf("%s: %v", when, err)
		return
	}
	defer a.Close()
	got := p.operationsOf(a)
	missing := make(map[string]int) // by function
	kinds := make(map[string]string)
	for _, o := range want {
		switch n := got[o.handle]; {
		case n == 0:
			missing[o.function]++
			kinds[o.function] = o.kind
		case n > 1:
			p.t.Errorf("%s: %s %#x is there %d times", when, o.function, o.handle, n)
		}
	}
	lost := p.lost(a, when)
	p.started(a, when, lost)
	p.compare(when, missing, kinds, lost, want, got)
	p.sound(when, lost)
}

// operationsOf counts the operations of an archive by their events' handles.
func (p *play) operationsOf(a *otf2.Archive) map[uint64]int {
	got := make(map[uint64]int)
	var id, ordinal otf2.AttributeRef
	for _, attribute := range a.Defs.Attributes {
		switch a.Defs.String(attribute.Name) {
		case "EVENT_ID":
			id = attribute.Self
		case "ORDINAL": // of operations alone
			ordinal = attribute.Self
		}
	}
	for _, l := range a.Defs.Locations {
		for e, err := range a.EventsOf(l.Self) {
			if err != nil {
				p.t.Errorf("location %d: %v", l.Self, err)
				break
			}
			handle, operation := uint64(0), false
			for _, v := range e.Attributes {
				switch v.ID {
				case id:
					handle = v.Bits
				case ordinal:
					operation = true
				}
			}
			if operation && handle != 0 {
				got[handle]++
			}
		}
	}
	return got
}

// lost is what the archive counts as lost, "COLLECTOR_DIED::ALL_REDUCE".
func (p *play) lost(a *otf2.Archive, when string) map[string]int {
	lost := make(map[string]int)
	for _, property := range a.Anchor.Properties {
		if name, ok := strings.CutPrefix(property.Name, "NCCL_OTF2::LOST::"); ok {
			n, err := strconv.Atoi(property.Value)
			if err != nil {
				p.t.Errorf("%s: %s: %v", when, property.Name, err)
			}
			lost[name] = n
		}
	}
	return lost
}

// started wants the archive's counts of events to be those that got handles, and its processes and communicators to be
// no more than there were, however many collectors recorded them.
func (p *play) started(a *otf2.Archive, when string, lost map[string]int) {
	p.t.Helper()
	if p.mayMiss() {
		return
	}
	processes := 0
	for _, g := range a.Defs.LocationGroups {
		if g.Type == otf2.LocationGroupTypeProcess {
			processes++
		}
	}
	contexts := 0
	for _, r := range p.rec.Processes {
		contexts += len(r.Contexts)
	}
	if most := max(len(p.rec.Processes), contexts); processes > most { // of which some may have left nothing
		p.t.Errorf("%s: %d processes, of %d", when, processes, most)
	}
	made, counted := make(map[string]int), make(map[string]int)
	for k, r := range p.res.Processes {
		for i, handle := range r.Returned {
			if c := p.rec.Processes[k].Calls[i]; c.Kind == replay.CallStart && handle > 1 {
				made[strings.ReplaceAll(strings.ToUpper(component(c.Event.Type.String())), "_", "")]++
			}
		}
	}
	for _, property := range a.Anchor.Properties {
		if name, ok := strings.CutPrefix(property.Name, "NCCL_OTF2::STARTS::"); ok {
			counted[strings.ReplaceAll(name, "_", "")], _ = strconv.Atoi(property.Value)
		}
	}
	for name, n := range lost {
		_, what, _ := strings.Cut(name, "::")
		counted[strings.ReplaceAll(what, "_", "")] += n
	}
	for name, n := range made {
		if counted[name] < n {
			p.t.Errorf("%s: %d starts of %s, %d were made", when, counted[name], name, n)
		}
	}
}

// compare wants what is missing to be counted.
func (p *play) compare(when string, missing map[string]int, kinds map[string]string, lost map[string]int,
	want []operation, got map[uint64]int) {
	p.t.Helper()
	uncounted, ofKind := 0, make(map[string]int)
	for function, n := range missing {
		left := n - lost["COLLECTOR_DIED::"+component(function)]
		if left > 0 {
			ofKind[kinds[function]] += left
		}
	}
	for kind, n := range ofKind {
		for name, m := range lost {
			if strings.HasSuffix(name, "::"+kind) {
				n -= m
			}
		}
		uncounted += max(0, n)
	}
	switch {
	case uncounted == 0:
	case !p.mayMiss():
		p.t.Errorf("%s: %d of %d operations are missing and not counted: missing %v, lost %v%s", when, uncounted,
			len(want), missing, lost, p.where(want, got))
	default:
		testkit.Equal(p.t, onlyTheLast(want, got, lost), "", "%s: ; lost %v%s", when, lost, p.where(want, got))
	}
}

// component is a function's name as properties have it.
func component(function string) string {
	var out strings.Builder
	for i, c := range function {
		if i > 0 && 'A' <= c && c <= 'Z' && function[i-1] >= 'a' {
			out.WriteByte('_')
		}
		out.WriteRune(c)
	}
	return strings.ToUpper(out.String())
}

// where says which operations are missing.
func (p *play) where(want []operation, got map[uint64]int) string {
	var out strings.Builder
	n := 0
	for i, o := range want {
		if got[o.handle] == 0 {
			if n++; n <= 20 {
				fmt.Fprintf(&out, "\n  %d: %s %#x, call %d, rank %d of %#x", i, o.function, o.handle, o.started,
					o.of.Rank, o.of.CommID)
			}
		}
	}
	return out.String()
}

// onlyTheLast says which of the operations that are missing are neither the last ones of their communicator rank nor
// counted: those that a collector had in memory when it died, and another went on behind them.
func onlyTheLast(want []operation, got map[uint64]int, lost map[string]int) string {
	last := make(map[*replay.Context]int) // that is there
	for i, o := range want {
		if got[o.handle] > 0 {
			last[o.of] = i
		}
	}
	holes := make(map[string]int) // by function
	for i, o := range want {
		if behind, any := last[o.of]; got[o.handle] == 0 && any && i < behind {
			if holes[o.function]++; holes[o.function] > lost["COLLECTOR_DIED::"+component(o.function)] {
				next := want[behind]
				return fmt.Sprintf("%s %#x (call %d) is there, and %s %#x before it (call %d) is not", next.function,
					next.handle, next.started, o.function, o.handle, o.started)
			}
		}
	}
	return ""
}

// sound wants the archive to be without findings, but for what it says of itself, and what is lost to be named.
func (p *play) sound(when string, lost map[string]int) {
	p.t.Helper()
	checked, err := check.Archive(p.anchor(), nil)
	if err != nil {
		p.t.Errorf("%s: check: %v", when, err)
		return
	}
	named := ""
	for _, f := range checked.Findings {
		switch {
		case f.Severity == check.Note:
		default:
			p.t.Errorf("%s: check: %v", when, f)
		}
		if f.Rule == check.RuleLoss {
			named += f.Text
		}
	}
	says := map[string]string{"check": named}
	if p.number%8 == 0 {
		p.readByOthers(when)
		status, report := p.tool("report", p.dir)
		if status != 0 {
			p.t.Errorf("%s: report ended with %d:\n%s", when, status, report)
		}
		says["report"] = report
	}
	for name, n := range lost {
		reason, what, _ := strings.Cut(name, "::")
		words := strings.ToLower(reason + " " + what)
		if reason == "COLLECTOR_DIED" {
			words = strings.ToLower(what) + " with a collector that died"
		}
		words = fmt.Sprintf("%d %s", n, strings.ReplaceAll(words, "_", " "))
		for _, text := range says {
			testkit.Contains(p.t, text, words)
		}
	}
}

// readByOthers has the reference implementation read the archive.
func (p *play) readByOthers(when string) {
	p.t.Helper()
	path, err := exec.LookPath("otf2-print")
	if err != nil {
		return // TestFaults has said so
	}
	out, err := exec.Command(path, "-Werror", p.anchor()).CombinedOutput()
	if err != nil || bytes.Contains(out, []byte("INVALID")) || bytes.Contains(out, []byte("UNKNOWN <")) {
		p.t.Errorf("%s: otf2-print: %v", when, err)
	}
}

// judgeProfile compares numbers of operations, which is what profiles have.
func (p *play) judgeProfile(when string, want []operation) {
	p.t.Helper()
	text, err := os.ReadFile(p.summary())
	if errors.Is(err, fs.ErrNotExist) { // then all of it has to be in the trace
		text, err = []byte("{}"), nil
	}
	if err != nil {
		p.t.Error(err)
		return
	}
	var summary struct {
		Lost       int
		Operations []struct {
			Operation string
			Calls     int
		}
	}
	if err := json.Unmarshal(text, &summary); err != nil {
		p.t.Errorf("%s: %v", when, err)
		return
	}
	all := make(map[string]int)
	for _, o := range want {
		all[o.function]++
	}
	silent := p.withoutEvents()
	missing := 0
	traced, counted := p.traced(want, when)
	counted += summary.Lost
	for function, n := range all {
		n -= traced[function]
		for _, o := range summary.Operations {
			if o.Operation == function {
				n -= o.Calls
			}
		}
		missing += max(0, n)
		if n < -mostInFlight-silent[function] && !p.hazards {
			p.t.Errorf("%s: %d too many of %s, of %d: %+v", when, -n, function, all[function], summary.Operations)
		}
	}
	if missing > counted && !p.mayMiss() {
		p.t.Errorf("%s: %d of %d operations are missing, %d counted: %v, %+v", when, missing, len(want), counted, all,
			summary.Operations)
	}
}

// withoutEvents counts calls, by function, that NCCL carries out and has no event for (symmetric kernels, copy engines,
// Broadcasts in a queue of their own): a profile has them, and nobody acknowledges them.
func (p *play) withoutEvents() map[string]int {
	all := make(map[string]int)
	for _, process := range p.rec.Processes {
		followed := make(map[*replay.Event]bool)
		for i := range process.Calls {
			if e := process.Calls[i].Event; e != nil && process.Calls[i].Kind == replay.CallStart {
				if _, coll := e.Descr.(*descriptor.Coll); coll {
					followed[e.Parent] = true
				}
			}
		}
		for i := range process.Calls {
			if e := process.Calls[i].Event; e != nil && process.Calls[i].Kind == replay.CallStart && !followed[e] {
				if call, ok := e.Descr.(*descriptor.CollApi); ok {
					all[call.Func]++
				}
			}
		}
	}
	return all
}

// traced counts operations in an archive beside a profile: what the plugin wrote when collectors had died twice is a
// trace.
func (p *play) traced(want []operation, when string) (all map[string]int, lost int) {
	all = make(map[string]int)
	a, err := otf2.Open(p.anchor(), nil)
	if err != nil {
		return all, 0
	}
	defer a.Close()
	got := p.operationsOf(a)
	for _, o := range want {
		if got[o.handle] > 0 {
			all[o.function]++
		}
	}
	for _, n := range p.lost(a, when) {
		lost += n
	}
	return all, lost
}

// mostInFlight is how many calls of one function can be under way when a job is killed: one for each thread.
const mostInFlight = 12
