// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/check"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/replay/descriptor"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/scorep"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
)

// profiler plays the minimal profiler: it writes what that writes of the callbacks of a recorded process. Its events
// live in a small pool that hands out addresses in turn, but not those in use or named as a parent by an event in use.
type profiler struct {
	out     bytes.Buffer
	p       *replay.Process
	address map[*replay.Event]int // slot; 0: none
	used    map[int]bool
	parents map[int]int // events in use by their parents' slots
	turn    int
	reused  int // addresses handed out again
	given   map[int]bool
}

const slots = 96 // of the pool; enough for what is under way in the recordings

func (m *profiler) take(e *replay.Event) {
	for range slots {
		m.turn = m.turn%slots + 1
		if !m.used[m.turn] && m.parents[m.turn] == 0 {
			m.used[m.turn] = true
			m.address[e] = m.turn
			if m.given[m.turn] {
				m.reused++
			}
			m.given[m.turn] = true
			return
		}
	}
	panic("the pool is too small")
}

func (m *profiler) pointer(e *replay.Event) string {
	if e == nil {
		return "null"
	}
	return fmt.Sprintf("0x%x", 0x7f0000000000+256*m.address[e])
}

// micros3 writes a time as the profiler does: CLOCK_MONOTONIC in µs with three decimals.
func micros3(ns uint64) json.Number { return json.Number(fmt.Sprintf("%d.%03d", ns/1000, ns%1000)) }

func (m *profiler) line(v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	m.out.Write(append(b, '\n'))
}

type object = map[string]any

func (m *profiler) at(c *replay.Call) object {
	return object{"ts": micros3(c.T), "pid": m.p.PID, "tid": c.Thread.TID}
}

// dump writes the records of a process.
func dump(p *replay.Process) *profiler {
	m := &profiler{p: p, address: make(map[*replay.Event]int), used: make(map[int]bool), parents: make(map[int]int),
		given: make(map[int]bool)}
	calls := slices.Clone(p.Calls)
	slices.SortStableFunc(calls, func(a, b *replay.Call) int {
		return cmp.Or(cmp.Compare(a.Open, b.Open), cmp.Compare(a.T, b.T))
	})
	for _, c := range calls {
		switch c.Kind {
		case replay.CallInit, replay.CallFinalize:
			x := c.Context
			name, details := "ProfilerInit", object{"nranks": x.NRanks, "commName": x.Name(), "eventMask": 4095}
			if c.Kind == replay.CallFinalize {
				name, details = "ProfilerFinalize", object{"totalDuration": 1.5}
			}
			m.line(object{
				"recordType": "event", "type": lifecycle, "func": name, "gpuUuid": fmt.Sprintf("GPU-%d", x.Rank),
				"commId": x.CommID, "rank": x.Rank,
				"start": m.at(c), "stop": m.at(c), "duration": 0.0, "myPid": p.PID, "details": details,
			})
		case replay.CallStart:
			m.take(c.Event)
			if up := c.Event.Parent; up != nil {
				m.parents[m.address[up]]++
			}
		case replay.CallState:
			if c.Event == nil {
				continue
			}
			r := object{"recordType": "state", "eventAddr": m.pointer(c.Event), "ts": micros3(c.T),
				"name": c.State.String(), "id": int(c.State), "pid": p.PID, "tid": c.Thread.TID}
			if a := c.Args; a != nil {
				switch {
				case a.PTimer != nil:
					r["pTimer"] = *a.PTimer
				case a.TransSize != nil && (c.State == descriptor.StateProxyStepSendWait ||
					c.State == descriptor.StateProxyStepRecvFlushWait):
					r["transSize"] = *a.TransSize
				case a.AppendedProxyOps != nil:
					r["appendedProxyOps"] = *a.AppendedProxyOps
				}
			}
			m.line(r)
		case replay.CallStop:
			if e := c.Event; e != nil && e.Stop == c {
				m.stop(e)
			}
		}
	}
	return m
}

// stop writes an event's record and gives its place back.
func (m *profiler) stop(e *replay.Event) {
	r := object{
		"recordType": "event", "type": "ncclProfile" + e.Type.String(), "start": m.at(e.Start), "stop": m.at(e.Stop),
		"duration": float64(e.Stop.T-e.Start.T) / 1000,
		"myPid":    m.p.PID, "parentObj": m.pointer(e.Parent), "eventAddr": m.pointer(e),
	}
	if x := e.Context; x != nil {
		r["gpuUuid"], r["commId"], r["rank"], r["ctx"] = fmt.Sprintf("GPU-%d", x.Rank), x.CommID, x.Rank,
			fmt.Sprintf("0x%x", uint64(x.Pointer))
	} else {
		r["gpuUuid"], r["commId"], r["rank"], r["isPxn"] = "", 0, -1, true
	}
	hex := func(p descriptor.Pointer) string { return fmt.Sprintf("0x%x", uint64(p)) }
	d := object{}
	switch v := e.Descr.(type) {
	case *descriptor.GroupApi:
		d = object{"depth": v.GroupDepth, "graphCaptured": bool(v.GraphCaptured)}
	case *descriptor.CollApi:
		d = object{"func": v.Func, "count": v.Count, "dtype": v.Datatype, "root": v.Root, "stream": hex(v.Stream),
			"graphCaptured": bool(v.GraphCaptured)}
	case *descriptor.P2pApi:
		d = object{"func": v.Func, "count": v.Count, "dtype": v.Datatype, "stream": hex(v.Stream),
			"graphCaptured": bool(v.GraphCaptured)}
	case *descriptor.KernelLaunch:
		d = object{"stream": hex(v.Stream)}
	case *descriptor.Coll:
		d = object{
			"func": v.Func, "seq": v.SeqNumber, "algo": v.Algo, "proto": v.Proto, "channels": v.NChannels,
			"warps": v.NWarps, "count": v.Count, "root": v.Root,
			"dtype": v.Datatype, "sendBuff": hex(v.SendBuff), "recvBuff": hex(v.RecvBuff),
			"parentGroup": m.pointer(e.Group),
		}
	case *descriptor.P2p:
		d = object{"func": v.Func, "peer": v.Peer, "channels": v.NChannels, "count": v.Count, "dtype": v.Datatype,
			"buff": hex(v.Buff), "parentGroup": m.pointer(e.Group)}
	case *descriptor.ProxyOp:
		d = object{"channel": v.ChannelID, "peer": v.Peer, "steps": v.NSteps, "chunkSize": v.ChunkSize,
			"isSend": bool(v.IsSend), "eventPid": v.PID}
	case *descriptor.ProxyStep:
		d = object{"step": v.Step}
	case *descriptor.KernelCh:
		d = object{"channel": v.ChannelID, "pTimer": v.PTimer}
	case *descriptor.NetPlugin:
		d = object{"id": v.ID, "data": "null"}
	}
	r["func"] = cmp.Or(fmt.Sprint(d["func"]), "")
	r["details"] = d
	m.line(r)
	delete(m.used, m.address[e])
	if up := e.Parent; up != nil {
		m.parents[m.address[up]]--
	}
}

// unify makes the archive of what was imported, which must be sound. sync compares the clocks of hosts.
func unify(t testing.TB, dir string, sync bool) *otf2.Archive {
	t.Helper()
	res := testkit.Value(scorep.Unify(dir, &scorep.UnifyOptions{Sync: sync}))(t)
	testkit.Require(t, len(res.Runs) == 1, "%d archives: %v", len(res.Runs), res.Problems)
	checked := testkit.Value(check.Archive(res.Runs[0].Archive, nil))(t)
	for _, f := range checked.Findings {
		if f.Severity != check.Note || !strings.Contains(f.Text, "members differ") && f.Rule != check.RuleLoss &&
			f.Rule != check.RuleMessage { // which the tests ask the archive for
			t.Errorf("check: %v", f)
		}
	}
	a := jobtest.Open(t, res.Runs[0].Archive)
	return a
}

func property(a *otf2.Archive, name string) string {
	for _, p := range a.Anchor.Properties {
		if p.Name == "NCCL_OTF2::"+name {
			return p.Value
		}
	}
	return ""
}

// What the minimal profiler writes of real NCCL jobs becomes archives with the operations that NCCL reported, timed by
// the GPU's stamps.
func TestDumpsOfTheMinimalProfiler(t *testing.T) {
	for _, name := range []string{"08-v5-nccl228-3p", "07-twocomms-streams"} {
		t.Run(name, func(t *testing.T) {
			rec := testkit.Value(replay.Load(filepath.Join("../../testdata/nccl-callbacks", name)))(t)
			in := t.TempDir()
			type operation struct {
				function   string
				comm       uint64
				rank, peer int
			}
			want := make(map[operation]int)
			longest := make(map[string]uint64) // of the stamps of a launch, by function
			reused := 0
			for _, p := range rec.Processes {
				m := dump(p)
				reused += m.reused
				testkit.Must(t, os.WriteFile(filepath.Join(in, fmt.Sprintf("trace_1760000000_pid%d.jsonl", p.PID)),
					m.out.Bytes(), 0o666))
				for _, e := range p.Events {
					if e.Stop == nil || e.Context == nil || e.Context.NRanks < 2 {
						continue
					}
					switch v := e.Descr.(type) {
					case *descriptor.Coll:
						want[operation{v.Func, e.Context.CommID, e.Context.Rank, -1}]++
					case *descriptor.P2p:
						want[operation{v.Func, e.Context.CommID, e.Context.Rank, v.Peer}]++
					case *descriptor.KernelCh:
						for _, c := range e.States {
							if c.Args != nil && c.Args.PTimer != nil && e.Parent != nil {
								if f, ok := e.Parent.Descr.(*descriptor.Coll); ok {
									longest[f.Func] = max(longest[f.Func], *c.Args.PTimer-v.PTimer)
								}
							}
						}
					}
				}
			}
			testkit.Require(t, reused >= 100, "only %d addresses were used again", reused)
			dir := filepath.Join(t.TempDir(), "made")
			res := testkit.Value(Import([]string{in}, dir, nil))(t)
			testkit.Check(t, res.Malformed+res.Truncated <= 0 && len(res.NotUsed) == 0 && len(res.Problems) == 0 &&
				res.Processes == len(rec.Processes), "%+v", res)
			a := unify(t, dir, false)
			ids := make(map[otf2.LocationRef]uint64)
			for _, p := range a.Defs.LocationProperties {
				if a.Defs.String(p.Name) == "NCCL_OTF2::COMM_ID" {
					ids[p.Location] = uint64(p.Value)
				}
			}
			got := make(map[operation]int)
			gpu := 0
			if _, err := operations.EachPart(a, nil, analysis.Slice{}, func(p *operations.Part) error {
				if p.Event == 0 { // a call for which NCCL reports no operation
					return nil
				}
				got[operation{p.Function, ids[p.Location], p.Rank, p.Peer}]++
				if p.Source == "gpu" && !p.Grouped && !p.Message() {
					gpu++
					// a clock known from a few stamps
					if d := uint64(p.End - p.Begin); d > longest[p.Function]+longest[p.Function]/100+2000 {
						t.Errorf("%s %d of rank %d took %d ns; the longest by the GPU's stamps is %d", p.Function,
							p.Ordinal, p.Rank, d, longest[p.Function])
					}
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			for o, n := range want {
				testkit.Equal(t, got[o], n, "%+v", o)
			}
			testkit.Check(t, len(got) == len(want) && gpu >= 10,
				"%d kinds of operations, want %d; %d with GPU time", len(got), len(want), gpu)
			testkit.Check(t, property(a, "IMPORTED_FROM") == "JSONL of the minimal profiler" &&
				strings.Contains(property(a, "IMPORT_MISSING"), "names of hosts") &&
				property(a, "ODDITIES::LATE_CHILDREN") == "", "properties %v", a.Anchor.Properties)
			begin := int64(a.Defs.Clock.Realtime) / 1e9
			testkit.Check(t, begin == 1760000000 || begin == 1759999999, "the archive begins at %d", begin)
		})
	}
}
