// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"ncclotf2/analysis"
	"ncclotf2/otf2"
	"ncclotf2/replay"
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
			if c.Kind != replay.CallStart || handle <= 1 || c.Event == nil || c.Event.Context == nil || c.Event.Context.NRanks < 2 {
				continue
			}
			switch d := c.Event.Descr.(type) {
			case *replay.Coll:
				if c.Event.Parent != nil { // else a hazard
					all = append(all, operation{handle, d.Func, "COLL", c.Event.Context, i})
				}
			case *replay.P2p:
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
		if len(want) > 0 && !p.unwritten && !p.lasting {
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
	p.compare(when, missing, kinds, lost, want, got)
	p.sound(when)
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

// lost is what the archive counts as lost, "COLLECTOR_DIED::ALL_REDUCE". check and report must name each.
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

// compare wants what is missing to be counted.
func (p *play) compare(when string, missing map[string]int, kinds map[string]string, lost map[string]int, want []operation, got map[uint64]int) {
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
	case !p.unwritten && !p.lasting:
		p.t.Errorf("%s: %d of %d operations are missing and not counted: missing %v, lost %v%s", when, uncounted, len(want), missing, lost, p.where(want, got))
	default:
		p.onlyTheLast(when, want, got)
	}
	for name, n := range lost {
		if function, ok := strings.CutPrefix(name, "COLLECTOR_DIED::"); ok {
			m := 0
			for f, k := range missing {
				if component(f) == function {
					m = k
				}
			}
			if n > m && !p.unwritten && !p.lasting {
				p.t.Logf("%s: %s: %d counted, %d missing", when, name, n, m)
			}
		}
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
				fmt.Fprintf(&out, "\n  %d: %s %#x, call %d, rank %d of %#x", i, o.function, o.handle, o.started, o.of.Rank, o.of.CommID)
			}
		}
	}
	return out.String()
}

// onlyTheLast wants only the last operations of each communicator rank to be missing.
func (p *play) onlyTheLast(when string, want []operation, got map[uint64]int) {
	missing := make(map[*replay.Context]*operation)
	for i, o := range want {
		switch first := missing[o.of]; {
		case got[o.handle] == 0 && first == nil:
			missing[o.of] = &want[i]
		case got[o.handle] > 0 && first != nil:
			p.t.Errorf("%s: %s %#x (call %d) is there, and %s %#x before it (call %d) is not", when, o.function, o.handle, o.started, first.function, first.handle, first.started)
			return
		}
	}
}

// sound wants the archive to be without findings, but for what it says of itself.
func (p *play) sound(when string) {
	p.t.Helper()
	checked, err := analysis.Check(p.anchor(), nil)
	if err != nil {
		p.t.Errorf("%s: check: %v", when, err)
		return
	}
	for _, f := range checked.Findings {
		if f.Severity != analysis.Note {
			p.t.Errorf("%s: check: %v", when, f)
		}
	}
	if p.number%8 != 0 {
		return
	}
	if path, err := exec.LookPath("otf2-print"); err == nil {
		out, err := exec.Command(path, "-Werror", p.anchor()).CombinedOutput()
		if err != nil || strings.Contains(string(out), "INVALID") || strings.Contains(string(out), "UNKNOWN <") {
			p.t.Errorf("%s: otf2-print: %v", when, err)
		}
	}
	for _, args := range [][]string{{"check", p.dir}, {"report", p.dir}} {
		if status, said := p.tool(args...); status != 0 {
			p.t.Errorf("%s: %v ended with %d:\n%s", when, args, status, said)
		}
	}
}

// judgeProfile compares the numbers of collectives, which profiles have.
func (p *play) judgeProfile(when string, want []operation) {
	text, err := os.ReadFile(filepath.Join(p.dir, "profile.json"))
	if err != nil {
		p.t.Error(err)
		return
	}
	var summary struct {
		Lost       int
		Operations []struct {
			Operation string
			Grouped   bool
			Count     int
		}
	}
	if err := json.Unmarshal(text, &summary); err != nil {
		p.t.Errorf("%s: %v", when, err)
		return
	}
	n := 0
	for _, o := range summary.Operations {
		n += o.Count
	}
	p.t.Logf("%s: profile: %d operations, %d lost, %d wanted: %+v", when, n, summary.Lost, len(want), summary.Operations)
	_ = slices.Sort[[]int]
}
