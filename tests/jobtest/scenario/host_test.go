// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/replay/descriptor"
	"github.com/nccl-otf2/nccl-otf2/internal/replay/replaytest"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// line is what the recording plugin wrote down of one call.
type line struct {
	F, Thread, Library, TypeName            string
	Ctx, CommID, ParentObj, HandleBefore, H descriptor.Pointer
	API, Version, NRanks, Rank, State       int
	CommName                                *string
	UnknownType                             uint64
	D                                       map[string]any
	Args                                    *struct{ U64, U64at8, U64at16 uint64 }
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
	rec := testkit.Value(s.Load(t.TempDir()))(t)
	out := t.TempDir()
	opt.Host = filepath.Join(dir, replay.HostFile)
	if opt.Plugin == "" {
		opt.Plugin = filepath.Join(dir, "librecorder.so")
	}
	opt.Env = append(opt.Env, "RECORDER_DIR="+out)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	res := testkit.Value(replay.Run(ctx, rec, opt))(t)
	for i := range res.Processes {
		p := &res.Processes[i]
		testkit.Require(t, p.Err() == nil, "%v\n%s", p.Err(), p.Stderr)
	}
	sum := res.Total()
	testkit.Require(t, sum.Errors == 0 && sum.Unwritten == 0, "faults of the plugin: %+v", sum)
	h := &heard{Result: res, t: t}
	for k := range rec.Processes {
		h.lines = append(h.lines, nil)
		text := testkit.Read(t, filepath.Join(out, fmt.Sprintf("p%d.jsonl", k)))
		for text := range bytes.Lines(text) {
			l := new(line)
			dec := json.NewDecoder(bytes.NewReader(text))
			dec.UseNumber()
			err := dec.Decode(l)
			testkit.Require(t, err == nil, "%v in %s", err, text)
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
func (h *heard) of(process int, typ descriptor.Type) []*line {
	var all []*line
	for _, l := range h.lines[process] {
		if l.F == "start" && l.TypeName == typ.String() {
			all = append(all, l)
		}
	}
	return all
}

// states gives the states that a handle got.
func (h *heard) states(process int, handle descriptor.Pointer) []*line {
	var all []*line
	for _, l := range h.lines[process] {
		if l.F == "state" && l.H == handle {
			all = append(all, l)
		}
	}
	return all
}

// transcript is what a process's plugin heard, a line for each call, thread by thread. Events are named by their type
// and thread, and addresses and times are left out, so that it is the same whatever the clock.
func (h *heard) transcript(process int) string {
	names, counted := map[descriptor.Pointer]string{0: "NULL"}, map[string]int{}
	name := func(p descriptor.Pointer, what string, l *line) {
		what = l.Thread + "/" + what
		names[p] = fmt.Sprintf("%s#%d", what, counted[what])
		counted[what]++
	}
	called := func(p descriptor.Pointer) string { return cmp.Or(names[p], fmt.Sprintf("%#x", uint64(p))) }
	var threads []string
	said := map[string]string{}
	for _, l := range h.lines[process] {
		if !slices.Contains(threads, l.Thread) {
			threads = append(threads, l.Thread)
		}
		text := l.F + " "
		switch l.F {
		case "init":
			name(l.Ctx, "context", l)
			text += fmt.Sprintf("%s v%d id %#x rank %d of %d", called(l.Ctx), l.API, uint64(l.CommID), l.Rank, l.NRanks)
			if l.CommName != nil {
				text += " " + *l.CommName
			}
		case "start":
			if l.H != 0 {
				name(l.H, cmp.Or(l.TypeName, fmt.Sprintf("type %#x", l.UnknownType)), l)
			}
			text += fmt.Sprintf("%s in %s below %s", called(l.H), called(l.Ctx), called(l.ParentObj))
			if l.HandleBefore != 0 {
				text += " before " + called(l.HandleBefore)
			}
			for _, member := range slices.Sorted(maps.Keys(l.D)) {
				text += h.member(process, member, l.D[member], called)
			}
		case "state":
			text += fmt.Sprintf("%s %d", called(l.H), l.State)
			if a := l.Args; a == nil {
				text += " NULL"
			} else if a.U64 >= 1<<40 {
				text += " …"
			} else {
				text += fmt.Sprintf(" %#x %#x %#x", a.U64, a.U64at8, a.U64at16)
			}
		case "finalize":
			text += called(l.Ctx)
		default:
			text += called(l.H)
		}
		said[l.Thread] += text + "\n"
	}
	sum := h.Total()
	out := fmt.Sprintf("%d loads, %d inits, %d finalizes; %d raw handles, %d NULL; %d lines logged; mask %#x\n", sum.Loads,
		sum.Inits, sum.Finalizes, sum.RawHandles, sum.NullHandles, sum.Infos, sum.Mask)
	slices.Sort(threads)
	for _, thread := range threads {
		out += thread + ":\n" + said[thread]
	}
	return out
}

// member is one of a descriptor, where it is not NULL, and no address.
func (h *heard) member(process int, name string, value any, called func(descriptor.Pointer) string) string {
	switch text := fmt.Sprint(value); {
	case value == nil || name == "_" || name == "data" || strings.HasSuffix(name, "@"):
		return ""
	case name == "pTimer":
		return " pTimer"
	case name == "pid":
		return fmt.Sprintf(" pid:%t", text == fmt.Sprint(h.Processes[process].PID))
	case name == "parentGroup":
		n, _ := strconv.ParseUint(text, 0, 64)
		return " parentGroup:" + called(descriptor.Pointer(n))
	default:
		return " " + name + ":" + text
	}
}

// shapes counts the calls that are alike but for their number.
func shapes(transcript string) string {
	count := map[string]int{}
	for line := range strings.Lines(regexp.MustCompile(`#\d+`).ReplaceAllString(transcript, "")) {
		count[line]++
	}
	out := ""
	for _, line := range slices.Sorted(maps.Keys(count)) {
		out += fmt.Sprintf("%3d %s", count[line], line)
	}
	return out
}
