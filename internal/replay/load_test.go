// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/replay/descriptor"
	"github.com/nccl-otf2/nccl-otf2/internal/replay/recording"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

func TestEachRecordingLoads(t *testing.T) {
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			rec := load(t, name)
			testkit.Check(t, rec.Name == name && rec.Run.Name == name && len(rec.Processes) == rec.Run.Processes,
				"%q, %q, %d processes", rec.Name, rec.Run.Name, len(rec.Processes))
			calls, starts, states := map[string]int{}, map[string]int{}, map[string]int{}
			for i, p := range rec.Processes {
				calls["open"] += len(p.Opens)
				referenced := rec.Run.Program != "" // record mode writes no references
				testkit.Check(t, len(p.Contexts) != 0 && p.PID == rec.Run.Files[i].PID &&
					(len(p.Issues) > 0) == referenced && (len(p.Kernels) > 0) == (referenced && !onGPU(name)),
					"process %d: pid %d, %d contexts, %d issues, %d kernels", i, p.PID, len(p.Contexts), len(p.Issues),
					len(p.Kernels))
				for n, c := range p.Calls {
					calls[c.Kind.String()]++
					switch c.Kind {
					case CallStart:
						starts[c.Event.Type.String()]++
					case CallState:
						states[c.State.String()]++
					}
					testkit.Require(t, c.Index == n && c.T != 0 && c.Thread != nil,
						"process %d: call %d is %+v", i, n, c)
				}
				for n, e := range p.Events {
					testkit.Require(t, e.Index == n+1 && e.Context != nil && e.Stop != nil && e.Start.Event == e,
						"process %d: event %d is %+v", i, n, e)
					testkit.Check(t, e.Type == descriptor.TypeProxyCtrl || e.Type == descriptor.TypeGroup || e.Root() != nil,
						"process %d: %s %d belongs to no call", i, e.Type, e.ID)
				}
				for _, x := range p.Contexts {
					testkit.Check(t, x.Finalize != nil && x.CommID != 0 && x.Rank >= 0 && x.Rank < x.NRanks,
						"process %d: context %+v", i, x)
				}
			}
			// The number of thread lines is not kept: a thread introduced twice is still one.
			want := maps.Clone(rec.Run.Calls)
			delete(want, "thread")
			testkit.Check(t, maps.Equal(calls, want) && maps.Equal(starts, rec.Run.Starts) &&
				maps.Equal(states, rec.Run.States), "calls %v, starts %v, states %v; run.json: %v, %v, %v", calls,
				starts, states, want, rec.Run.Starts, rec.Run.States)
		})
	}
}

func TestDescriptorsAreTyped(t *testing.T) {
	rec := load(t, "02-allcoll-4p-net")
	p := rec.Processes[0]
	var coll, net, issued int
	for _, e := range p.Events {
		switch d := e.Descr.(type) {
		case *descriptor.Coll:
			coll++
			api, ok := e.Parent.Descr.(*descriptor.CollApi)
			testkit.Check(t, ok && api.Func == d.Func && d.Algo == "RING" && d.NChannels >= 1 && d.SendBuff != 0 &&
				e.Group.Type == descriptor.TypeGroup, "Coll %+v under %+v", d, e.Parent.Descr)
		case *descriptor.NetPlugin:
			net++
			testkit.Check(t, d.ID == 0x20001 && d.Sock != nil && d.Sock.Type == 1 && d.Sock.Op <= 1 && d.Sock.FD > 0,
				"NetPlugin %+v", d)
			op := e.Parent.Parent.Descr.(*descriptor.ProxyOp)
			testkit.Check(t, bool(op.IsSend) == (d.Sock.Op == 0), "NetPlugin %+v under %+v", d.Sock, op)
		case *descriptor.KernelCh:
			if a := e.States[0].Args; a == nil || a.PTimer == nil || *a.PTimer < d.PTimer {
				t.Errorf("KernelCh from %d to %+v", d.PTimer, a)
			}
		}
	}
	for _, i := range p.Issues {
		if i.T1 >= i.T0 && i.Op != "" {
			issued++
		}
	}
	testkit.Check(t, coll != 0 && net != 0 && issued == len(p.Issues),
		"%d Coll, %d NetPlugin, %d of %d issues", coll, net, issued, len(p.Issues))
	for _, k := range p.Kernels {
		testkit.Check(t, k.Func != "" && k.T1 >= k.T0 && len(k.PTimers) == k.Works, "kernel %+v", k)
	}
}

func TestEventsRememberEarlierHandlesAcrossLoads(t *testing.T) {
	// NCCL's CollApi slot still holds the handle of a plugin that has been unloaded since.
	p := load(t, "07-twocomms-streams").Processes[0]
	found := false
	for _, e := range p.Events {
		if e.Open == 1 && e.BeforeEvent != nil && e.BeforeEvent.Open == 0 {
			found = true
			testkit.Check(t, e.Type == descriptor.TypeCollApi && e.BeforeEvent.Type == descriptor.TypeCollApi,
				"%s after %s", e.Type, e.BeforeEvent.Type)
		}
	}
	testkit.Check(t, found, "no event of the second loading has a handle of the first")
}

func TestFindKnowsRecordingsByName(t *testing.T) {
	for _, name := range []string{"04-threads-4r", "c10-missing-4p", filepath.Join(recordings, "04-threads-4r")} {
		dir, err := Find(name)
		if err != nil {
			t.Error(err)
			continue
		}
		_, err = os.Stat(filepath.Join(dir, "run.json"))
		testkit.Check(t, err == nil, "%v", err)
	}
	for _, name := range []string{"no-such", "../no-such", ""} {
		if dir, err := Find(name); err == nil {
			t.Errorf("%q was found in %q", name, dir)
		} else if !strings.Contains(err.Error(), ", 09-straggler-4p, ") {
			t.Errorf("%q: the error does not say what there is: %v", name, err)
		}
	}
}

// broken copies a recording, lets f change it, and loads the copy.
func broken(t *testing.T, f func(dir string)) error {
	t.Helper()
	dir := t.TempDir()
	testkit.Must(t, os.CopyFS(dir, os.DirFS(filepath.Join(recordings, "01-allreduce-2p"))))
	f(dir)
	_, err := Load(dir)
	testkit.Check(t, err == nil || !strings.Contains(err.Error(), "\n"), "the error has several lines: %q", err)
	return err
}

// rewrite changes the lines of a file in place.
func rewrite(t *testing.T, path string, f func(lines []string) []string) {
	t.Helper()
	text := testkit.Read(t, path)
	in := testkit.Value(gzip.NewReader(bytes.NewReader(text)))(t)
	plain := testkit.Value(io.ReadAll(in))(t)
	lines := f(strings.SplitAfter(string(plain), "\n"))
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	io.WriteString(zip, strings.Join(lines, ""))
	zip.Close()
	testkit.Must(t, os.WriteFile(path, out.Bytes(), 0o600))
}

func TestBrokenRecordingsNameFileAndLine(t *testing.T) {
	const file = "p1.rec.jsonl.gz"
	line := func(n int, f func(string) string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			rewrite(t, filepath.Join(dir, file), func(lines []string) []string {
				lines[n-1] = f(lines[n-1])
				return lines
			})
		}
	}
	replace := func(from, to string) func(string) string {
		return func(s string) string {
			if !strings.Contains(s, from) {
				panic("the line has no " + from + ": " + s)
			}
			return strings.Replace(s, from, to, 1)
		}
	}
	for _, test := range []struct {
		name   string
		damage func(t *testing.T, dir string)
		want   []string
	}{
		{"the gzip file is cut off", func(t *testing.T, dir string) {
			path := filepath.Join(dir, file)
			testkit.Must(t, os.Truncate(path, 9000))
		}, []string{file, "line ", "cut off"}},
		{"the gzip file is cut off in its head", func(t *testing.T, dir string) {
			testkit.Must(t, os.Truncate(filepath.Join(dir, file), 5))
		}, []string{file, "cut off"}},
		{"the file is no gzip file", func(t *testing.T, dir string) {
			testkit.Must(t, os.WriteFile(filepath.Join(dir, file), []byte("{}\nsome text that is long enough"), 0o600))
		}, []string{file, "gzip"}},
		{"a line is broken", line(20, func(s string) string { return s[:len(s)/2] + "\n" }),
			[]string{file, "line 20", "broken JSON"}},
		{"the last line is cut off", line(837, func(s string) string { return s[:10] }),
			[]string{file, "line 837", "cut off"}},
		{"a line is missing", line(20, func(string) string { return "" }),
			[]string{file, "line 20", "seq is 20 where 19"}},
		{"the end is missing", func(t *testing.T, dir string) {
			rewrite(t, filepath.Join(dir, file), func(lines []string) []string { return lines[:500] })
		}, []string{file, "500 lines", "837"}},
		{"a state is no number", line(11, replace(`"state":23`, `"state":null`)), []string{file, "line 11", "state"}},
		{"a member is missing", line(12, replace(`"func"`, `"fun"`)), []string{file, "line 12", "func"}},
		{"a parent is unknown", line(12, replace(`"parentId":3`, `"parentId":999`)),
			[]string{file, "line 12", "event 999"}},
		{"a context is unknown", line(12, replace(`"ctxId":1`, `"ctxId":9`)), []string{file, "line 12", "context 9"}},
		{"a kind of line is unknown", line(13, replace(`"f":"stop"`, `"f":"halt"`)),
			[]string{file, "line 13", `"halt"`}},
		{"a reference is broken", func(t *testing.T, dir string) {
			rewrite(t, filepath.Join(dir, "p1.kernel.jsonl.gz"), func(lines []string) []string {
				lines[2] = "{]\n"
				return lines
			})
		}, []string{"p1.kernel.jsonl.gz", "line 3", "broken JSON"}},
		{"a process is missing", func(t *testing.T, dir string) { os.Remove(filepath.Join(dir, file)) },
			[]string{file}},
		{"run.json is broken", func(t *testing.T, dir string) {
			os.WriteFile(filepath.Join(dir, "run.json"), []byte("{"), 0o600)
		}, []string{"run.json"}},
		{"run.json has more processes than files", func(t *testing.T, dir string) {
			os.WriteFile(filepath.Join(dir, "run.json"), []byte(`{"processes":3}`), 0o600)
		}, []string{"run.json", "2 files for 3"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := broken(t, func(dir string) { test.damage(t, dir) })
			testkit.Require(t, err != nil, "it loads")
			for _, want := range test.want {
				testkit.Check(t, strings.Contains(err.Error(), want), "%q does not say %q", err, want)
			}
		})
	}
	// A user's own recording has only the required members.
	err := broken(t, func(dir string) {
		os.WriteFile(filepath.Join(dir, "run.json"), []byte(`{"nccl":"2.29.7"}`), 0o600)
	})
	testkit.Check(t, err == nil, "with the release alone in run.json: %v", err)
	// Events that the recording plugin declined have no id, and nothing refers to them.
	if err := broken(t, func(dir string) {
		declined := 0
		rewrite(t, filepath.Join(dir, file), func(lines []string) []string {
			for i, l := range lines {
				if l = regexp.MustCompile(`"id":13\b`).ReplaceAllString(l, `"id":null`); l != lines[i] {
					lines[i], declined = regexp.MustCompile(`"h":"[^"]*"`).ReplaceAllString(l, `"h":"0x0"`), declined+1
				}
			}
			return lines
		})
		testkit.Require(t, declined >= 2, "there is no such event")
		rec, err := Load(dir)
		if err != nil {
			return
		}
		_, err = Compile(rec, 1)
		testkit.Check(t, err == nil, "with an event that was declined: %v", err)
	}); err != nil {
		t.Errorf("with an event that was declined: %v", err)
	}
	// References may be absent.
	err = broken(t, func(dir string) {
		for k := range 2 {
			os.Remove(filepath.Join(dir, fmt.Sprintf("p%d.kernel.jsonl.gz", k)))
			os.Remove(filepath.Join(dir, fmt.Sprintf("p%d.issue.jsonl.gz", k)))
		}
	})
	testkit.Check(t, err == nil, "without references: %v", err)
}

func TestPrograms(t *testing.T) {
	rec := load(t, "07-twocomms-streams")
	first := testkit.Value(Compile(rec, 1))(t)
	again, err := Compile(load(t, "07-twocomms-streams"), 1)
	testkit.Check(t, err == nil && bytes.Equal(first, again), "two compilations differ (%v)", err)
}

// FuzzRecLines: any rec file is either loaded or refused, and what is loaded compiles.
func FuzzRecLines(f *testing.F) {
	text := testkit.Read(f, filepath.Join(recordings, "05-p2p-3p", "p0.rec.jsonl.gz"))
	in := testkit.Value(gzip.NewReader(bytes.NewReader(text)))(f)
	plain := testkit.Value(io.ReadAll(in))(f)
	lines := strings.SplitAfter(string(plain), "\n")
	f.Add(strings.Join(lines[:60], ""))
	f.Add(strings.Join(lines[:16], "") + lines[0] + lines[1])
	f.Add(lines[0] + `{"seq":1,"f":"stop","tid":1,"h":null,"id":null}` + "\n")
	f.Fuzz(func(t *testing.T, text string) {
		l := newLoader()
		for line := range strings.Lines(text) {
			if l.line([]byte(line)) != nil {
				return
			}
		}
		if len(l.p.Opens) == 0 {
			return
		}
		rec := &Recording{Run: recording.Run{NCCL: "2.30.7"}, Processes: []*Process{l.p}}
		program, err := Compile(rec, 0)
		testkit.Check(t, err != nil || bytes.HasSuffix(program, []byte("\n")), "the program has no end")
	})
}

// FuzzRun: with any run.json, the recording is either refused or can be compiled.
func FuzzRun(f *testing.F) {
	from := filepath.Join(recordings, "01-allreduce-2p")
	text := testkit.Read(f, filepath.Join(from, recording.RunFile))
	f.Add(text)
	f.Add(text[:len(text)/2])
	for _, run := range []string{
		`{}`, `{"nccl":"2.30.7","processes":-1}`, `{"nccl":"2.30.7","ranksPerProcess":9223372036854775807}`,
		`{"nccl":"99.99999999999999999999"}`,
		`{"nccl":"2.30.7","processes":1,"files":[{"file":"../p0.rec.jsonl.gz","lines":-1}]}`,
		`{"nccl":"2.30.7","processes":1,"files":[{"file":""}]}`,
		`{"nccl":"2.30.7","pTimers":[null,[18446744073709551615,0]]}`,
	} {
		f.Add([]byte(run))
	}
	f.Fuzz(func(t *testing.T, run []byte) {
		dir := t.TempDir()
		for _, name := range []string{"p0.rec.jsonl.gz", "p1.rec.jsonl.gz"} {
			path, err := filepath.Abs(filepath.Join(from, name))
			if err == nil {
				err = os.Symlink(path, filepath.Join(dir, name))
			}
			testkit.Must(t, err)
		}
		testkit.Must(t, os.WriteFile(filepath.Join(dir, recording.RunFile), run, 0o600))
		rec, err := Load(dir)
		testkit.Require(t, (rec == nil) != (err == nil), "%v, %v", rec, err)
		if err != nil {
			return
		}
		for k := range rec.Processes {
			program, err := Compile(rec, k)
			testkit.Check(t, err != nil || bytes.HasSuffix(program, []byte("\n")), "the program has no end")
		}
	})
}

// Hosts began to count at different times, so the same moment is another number on each; a replay at the recorded pace
// begins on all of them at the same time.
func TestProgramsOfSeveralHostsBeginTogether(t *testing.T) {
	rec := load(t, "01-allreduce-2p")
	began := rec.beginning(rec.Processes[0])
	testkit.Equal(t, rec.beginning(rec.Processes[1]), began, "on one host")
	const ahead = 1 << 50 // ns: 13 days
	other := rec.Processes[1]
	other.Opens[0].Boot = "another"
	other.Opens[0].T += ahead
	for _, c := range other.Calls {
		c.T += ahead
	}
	testkit.Equal(t, rec.beginning(rec.Processes[0]), began, "on the first of two hosts")
	apart := int64(rec.beginning(other) - began - ahead)
	testkit.Check(t, max(apart, -apart) < 1_000_000, "on the second of two hosts: %d ns off", apart)
}
