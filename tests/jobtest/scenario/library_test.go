// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"path/filepath"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/replay"
)

func TestThePluginSeesWhichLibraryCalls(t *testing.T) {
	for _, test := range []struct {
		name, file string
		env        []string
		version    int
	}{
		{"", "replay-host", nil, 0},
		{"nccl", "libnccl.so.2", nil, 22907},
		{"rccl", "librccl.so.1", nil, 22907},
		{"rccl", "librccl.so.1", []string{"REPLAY_HOST_VERSION=22707"}, 22707},
	} {
		for _, says := range []string{"recording", "options"} {
			s := New("library", "2.29.7")
			opt := replay.Options{Env: test.env}
			if says == "recording" {
				s.Library = test.name
			} else {
				opt.Library = test.name
			}
			ranks := s.Job(1, Comm{ID: 1})
			Leave(ranks)
			h := play(t, s, opt)
			l := h.lines[0][0]
			if filepath.Base(l.Library) != test.file || l.Version != test.version {
				t.Errorf("%q by the %s: the logger is in %s, version %d", test.name, says, l.Library, l.Version)
			}
			if h.Total().Infos != 1 {
				t.Errorf("%q: %d lines were logged", test.name, h.Total().Infos)
			}
		}
	}
}

func TestRCCLsVersion6(t *testing.T) {
	s := New("rccl", "2.29.7")
	s.Library = "rccl"
	r := s.Job(1, Comm{ID: 1, NRanks: 1})[0]
	op := r.Progress.Start(r.Context, replay.ProxyOp{NSteps: 1, ChunkSize: 4096, IsSend: true, CommHash: 0xabcdef,
		OpCount:      -5,
		TraceFuncIdx: 3, TraceProtocol: 2, TracePattern: 1, TraceTotalBytes: 4096, ProxyNbytes: 4000,
		RawProxyNsteps: 7})
	diag := r.Progress.Start(r.Context, replay.ProxyDiag{}, Under(op))
	args := &replay.Args{Diag: &replay.Diag{CounterKind: 9, Flags: 0x1234, Value: -2, Value2: 1 << 40}}
	r.Progress.State(diag, replay.StateProxyDiagUpdate, args)
	r.Progress.State(op, replay.StateProxyDiagUpdate, args)
	r.Progress.Stop(diag)
	r.Progress.Stop(op)
	r.Leave()

	h := play(t, s, replay.Options{Env: []string{"RECORDER_RCCL=1"}})
	ops, diags := h.of(0, replay.TypeProxyOp), h.of(0, replay.TypeProxyDiag)
	if len(ops) != 1 || len(diags) != 1 {
		t.Fatalf("started %v", h.starts())
	}
	for name, want := range map[string]int{"chunkSize": 4096, "commHash": 0xabcdef, "opCount": -5, "traceFuncIdx": 3,
		"traceProtocol": 2,
		"tracePattern":  1, "traceTotalBytes": 4096, "proxyNbytes": 4000, "rawProxyNsteps": 7} {
		h.is(ops[0], name, want)
	}
	for _, handle := range []replay.Pointer{ops[0].H, diags[0].H} {
		st := h.states(0, handle)
		// The first word has the kind in byte 0 and the flags in bytes 2 and 3.
		if len(st) != 1 || st[0].State != 31 || st[0].Args.U64 != 9|0x1234<<16 || int64(st[0].Args.U64at8) != -2 ||
			st[0].Args.U64at16 != 1<<40 {
			t.Errorf("states %+v", st)
		}
	}

	// NCCL itself has no such type, and a plugin that does not ask for the bit is not told of it.
	if got := play(t, s, replay.Options{Library: "nccl"}).starts(); got["ProxyDiag"] != 0 || got["?"] != 0 ||
		got["ProxyOp"] != 1 {
		t.Errorf("NCCL started %v", got)
	}
	got := play(t, s, replay.Options{Env: []string{"RECORDER_RCCL=1", "RECORDER_MASK=32767"}}).starts()
	if got["ProxyDiag"] != 0 || got["ProxyOp"] != 1 {
		t.Errorf("without the bit: %v", got)
	}
}
