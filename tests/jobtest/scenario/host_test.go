// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/replay/replaytest"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

func TestMain(m *testing.M) { replaytest.Main(m) }

// line is what the recording plugin wrote down of one call.
type line struct {
	F, Thread, Library, TypeName, StateName string
	TID                                     int
	Ctx, CommID, ParentObj, HandleBefore, H replay.Pointer
	API, Version, Mask, NRanks, Rank, State int
	CommName                                *string
	UnknownType                             uint64
	D                                       map[string]any
	Args                                    *struct {
		U64, U64at8, U64at16 uint64
		I32, I32at8          int32
	}
}

// heard is what came of a replay: the hosts' reports, and what each process's plugin heard, in order.
type heard struct {
	*replay.Result
	lines [][]*line
	t     testing.TB
}

// play plays a scenario with the recording plugin. The hosts must end well, without faults.
func play(t testing.TB, s *Scenario, opt replay.Options) *heard {
	t.Helper()
	dir := strings.TrimSuffix(opt.Host, replay.HostFile)
	if opt.Host == "" {
		dir = replaytest.Build(t, "")
	}
	rec, err := s.Load(t.TempDir())
	testkit.Must(t, err)
	out := t.TempDir()
	opt.Host = filepath.Join(dir, replay.HostFile)
	if opt.Plugin == "" {
		opt.Plugin = filepath.Join(dir, "librecorder.so")
	}
	opt.Env = append(opt.Env, "RECORDER_DIR="+out)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	res, err := replay.Run(ctx, rec, opt)
	testkit.Must(t, err)
	for i := range res.Processes {
		if p := &res.Processes[i]; p.Err() != nil {
			t.Fatalf("%v\n%s", p.Err(), p.Stderr)
		}
	}
	if sum := res.Total(); sum.Errors != 0 || sum.Unwritten != 0 {
		t.Fatalf("faults of the plugin: %+v", sum)
	}
	h := &heard{Result: res, t: t}
	for k := range rec.Processes {
		h.lines = append(h.lines, nil)
		text := testkit.Read(t, filepath.Join(out, fmt.Sprintf("p%d.jsonl", k)))
		for text := range bytes.Lines(text) {
			l := new(line)
			dec := json.NewDecoder(bytes.NewReader(text))
			dec.UseNumber()
			if err := dec.Decode(l); err != nil {
				t.Fatalf("%v in %s", err, text)
			}
			if l.F != "unload" {
				h.lines[k] = append(h.lines[k], l)
			}
		}
	}
	return h
}

// starts counts what was started, by type, in all processes.
func (h *heard) starts() map[string]int {
	n := map[string]int{}
	for _, lines := range h.lines {
		for _, l := range lines {
			if l.F == "start" {
				n[l.TypeName]++
			}
		}
	}
	return n
}

// of gives the starts of one type in one process.
func (h *heard) of(process int, typ replay.EventType) []*line {
	var all []*line
	for _, l := range h.lines[process] {
		if l.F == "start" && l.TypeName == typ.String() {
			all = append(all, l)
		}
	}
	return all
}

// states gives the states that a handle got.
func (h *heard) states(process int, handle replay.Pointer) []*line {
	var all []*line
	for _, l := range h.lines[process] {
		if l.F == "state" && l.H == handle {
			all = append(all, l)
		}
	}
	return all
}
