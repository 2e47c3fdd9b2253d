// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/replay/descriptor"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// memorySink keeps the event files of a model in memory.
type memorySink struct {
	writers []*otf2.EventWriter
}

func (s *memorySink) Finished(uint32) {}

func (s *memorySink) EventWriter(description.Location) (EventWriter, error) {
	w := otf2.NewMemoryEventWriter(&otf2.EventWriterOptions{CheckNesting: true})
	s.writers = append(s.writers, w)
	return w, nil
}

func (s *memorySink) flush(t *testing.T) {
	t.Helper()
	for _, w := range s.writers {
		err := w.Flush()
		testkit.Check(t, err == nil, "%v", err)
	}
}

// feed gives the calls of a recorded process to a model, as the collector would after the plugin:
// in the order of their times, with the ids of this recording as handles.
func feed(m *Model, p *replay.Process) {
	calls := slices.Clone(p.Calls)
	slices.SortStableFunc(calls, func(a, b *replay.Call) int {
		return cmp.Or(cmp.Compare(a.Open, b.Open), cmp.Compare(a.T, b.T))
	})
	rings := make(map[*replay.Thread]int)
	for _, c := range calls {
		ring, ok := rings[c.Thread]
		if !ok {
			ring = len(rings)
			rings[c.Thread] = ring
			m.Record(ring, c.T, &shm.Record{Kind: shm.RecordThread, TID: int32(c.Thread.TID)})
		}
		if c.Kind == replay.CallInit {
			x := c.Context
			m.Comm(x.Index-1, description.Comm{ID: x.CommID, Name: x.Name(), NRanks: x.NRanks, Rank: x.Rank,
				NNodes: x.NNodes}, description.GPU{Device: x.Rank})
		}
		r, ok := recordOf(c)
		if !ok {
			continue
		}
		m.Record(ring, c.T, &r)
		m.Advance(c.T)
	}
}

func recordOf(c *replay.Call) (shm.Record, bool) {
	id := func(e *replay.Event) uint64 {
		if e == nil {
			return 0
		}
		switch d := e.Descr.(type) {
		case *descriptor.CollApi:
			if d.GraphCaptured {
				return uint64(e.Index) | shm.CapturedBit
			}
		case *descriptor.P2pApi:
			if d.GraphCaptured {
				return uint64(e.Index) | shm.CapturedBit
			}
		}
		return uint64(e.Index)
	}
	r := shm.Record{Ticks: c.T}
	if c.Context != nil {
		r.Aux = uint32(c.Context.Index - 1)
	}
	switch c.Kind {
	case replay.CallInit:
		r.Kind = shm.RecordInit
		return r, true
	case replay.CallFinalize:
		r.Kind = shm.RecordFinalize
		return r, true
	}
	if c.Event == nil {
		return r, false // NULL: the plugin does not record these
	}
	r.Handle, r.Type = id(c.Event), shm.EventType(c.Event.Type)
	switch c.Kind {
	case replay.CallStop:
		r.Kind = shm.RecordStop
		return r, true
	case replay.CallState:
		r.Kind, r.Aux = shm.RecordState, uint32(c.State)
		if a := c.Args; a != nil {
			switch {
			case a.PTimer != nil:
				r.Arg, r.Flags = *a.PTimer, shm.FlagHasArg
			case a.TransSize != nil && (c.State == descriptor.StateProxyStepSendWait ||
				c.State == descriptor.StateProxyStepRecvFlushWait):
				r.Arg, r.Flags = *a.TransSize, shm.FlagHasArg
			case a.AppendedProxyOps != nil && c.State == descriptor.StateProxyCtrlAppendEnd:
				r.Arg, r.Flags = uint64(*a.AppendedProxyOps), shm.FlagHasArg
			}
		}
		return r, true
	}
	r.Kind, r.Arg, r.ParentGroup = shm.RecordStart, id(c.Event.Parent), id(c.Event.Group)
	graph := func(captured descriptor.Flag) {
		if captured {
			r.Flags |= shm.FlagGraph
		}
	}
	switch d := c.Event.Descr.(type) {
	case *descriptor.GroupApi:
		r.GroupDepth = int32(d.GroupDepth)
		graph(d.GraphCaptured)
	case *descriptor.CollApi:
		r.Func, r.Count, r.Datatype, r.Root, r.Stream = d.Func, d.Count, d.Datatype, int32(d.Root), uint64(d.Stream)
		graph(d.GraphCaptured)
	case *descriptor.P2pApi:
		r.Func, r.Count, r.Datatype, r.Root, r.Stream = d.Func, d.Count, d.Datatype, -1, uint64(d.Stream)
		graph(d.GraphCaptured)
	case *descriptor.KernelLaunch:
		r.Stream = uint64(d.Stream)
	case *descriptor.Coll:
		r.Seq, r.Func, r.Count, r.Datatype, r.Root = d.SeqNumber, d.Func, d.Count, d.Datatype, int32(d.Root)
		r.SendBuff, r.RecvBuff, r.Algo, r.Proto = uint64(d.SendBuff), uint64(d.RecvBuff), d.Algo, d.Proto
		r.NChannels, r.NWarps = uint8(d.NChannels), uint8(d.NWarps)
	case *descriptor.P2p:
		r.Func, r.Count, r.Datatype, r.Peer, r.NChannels = d.Func, d.Count, d.Datatype, int32(d.Peer),
			uint8(d.NChannels)
		r.SendBuff = uint64(d.Buff)
	case *descriptor.KernelCh:
		r.Channel, r.PTimer = uint8(d.ChannelID), d.PTimer
	case *descriptor.ProxyOp:
		r.Channel, r.Peer, r.NSteps, r.ChunkSize = uint8(d.ChannelID), int32(d.Peer), int32(d.NSteps),
			int32(d.ChunkSize)
		if d.IsSend {
			r.Flags |= shm.FlagSend
		}
	case *descriptor.ProxyStep:
		r.Step = int32(d.Step)
	case *descriptor.CeColl:
		r.Seq, r.Func, r.Count, r.Datatype, r.Root = d.SeqNumber, d.Func, d.Count, d.Datatype, int32(d.Root)
		r.SendBuff, r.RecvBuff, r.Stream, r.SyncStrategy, r.NumBatches = uint64(d.SendBuff), uint64(d.RecvBuff),
			uint64(d.Stream), d.SyncStrategy, uint32(d.NumBatches)
	case *descriptor.NetPlugin:
		r.NetID = d.ID
		if d.Sock != nil {
			r.Length = uint64(d.Sock.Length)
			r.Flags |= shm.FlagKnownNet
		}
	}
	return r, true
}

// What the model makes of each recording: locations, communicators, sequences, counts, markers.
func TestRecordings(t *testing.T) {
	dirs, _ := filepath.Glob("../testdata/nccl-callbacks/*/run.json")
	testkit.Require(t, len(dirs) == 13, "%d recordings found, want 13", len(dirs))
	for _, d := range dirs {
		rec := testkit.Value(replay.Load(filepath.Dir(d)))(t)
		t.Run(rec.Name, func(t *testing.T) {
			var out bytes.Buffer
			sent, received := uint64(0), uint64(0)
			for i, p := range rec.Processes {
				description := &description.Process{}
				sink := &memorySink{}
				m := New(sink, description, &Options{RecordMask: 0xffff})
				feed(m, p)
				err := m.Finish()
				testkit.Check(t, err == nil, "%v", err)
				sink.flush(t)
				m.Snapshot()
				fmt.Fprintf(&out, "process %d\n", i)
				summarize(&out, description, m.Network())
				sent += m.Network()["PUT_BYTES"]
				received += m.Network()["RECEIVED_BYTES"]
				n := len(m.net.steps) + len(m.net.proxies) + m.ops.kernels.Len() + len(m.ops.calls)
				testkit.Check(t, n == 0, "process %d: %d events are kept at the end", i, n)
			}
			testkit.Check(t, sent == received, "%d bytes were sent, %d received", sent, received)
			golden.Text(t, filepath.Join("testdata", rec.Name+".txt"), out.String())
		})
	}
}

// summarize writes one line for each definition and count.
func summarize(out *bytes.Buffer, p *description.Process, network map[string]uint64) {
	line := func(kind string, v any) {
		b, _ := json.Marshal(v) // these types can always be marshaled
		fmt.Fprintf(out, "  %s %s\n", kind, b)
	}
	for _, l := range p.Locations {
		l.Bytes = 0
		line("location", l)
	}
	for _, r := range p.Regions {
		fmt.Fprintf(out, "  region %q %v %v %q\n", r.Name, r.Role, r.Paradigm, r.Group)
	}
	for _, c := range p.Comms {
		line("communicator", c)
	}
	for _, k := range p.Markers {
		line("marker", k)
	}
	line("timing", p.Counts.Timing)
	line("oddities", p.Counts.Oddities)
	line("starts", p.Counts.Starts)
	line("network", network)
	line("windows", p.Wins)
	line("pending", p.Pending)
	line("cupti", p.Counts.CUPTI)
	line("GPUs", p.GPUs)
	line("metrics", p.Metrics)
	line("foreign", p.Foreign)
}
