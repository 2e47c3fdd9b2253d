// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/provenance"
	"github.com/nccl-otf2/nccl-otf2/internal/export/tracetest"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

// What the second process in twoClocks takes for the time when the job begins is so much later, and its real-time clock
// has been slewed by so much since, ns.
const (
	aheadBy  = 40_000_000
	slewedBy = 250_000
)

// twoClocks is a job of two processes, in containers of one machine with names of their own, before the second of which
// the real-time clock was stepped.
func twoClocks(t *testing.T) (anchor string) {
	const ms = 1_000_000
	return jobtest.Make(t, 2, 1, func(r int, p *shardtest.Process) {
		ahead, slewed := uint64(r)*aheadBy, uint64(r)*slewedBy
		p.Shard.BootID = "boot" // so by how much their times differ is known exactly
		c := &p.Shard.Clock
		c.AnchorReal += ahead
		for k := range uint64(41) {
			c.Tuples = append(c.Tuples, provenance.ClockTuple{Ticks: k * ms, Raw: c.AnchorRaw + k*ms, Mono: k * ms,
				Real: c.AnchorReal + k*ms + slewed})
		}
		t0 := shardtest.Epoch + ms + ahead
		world := p.Comm(description.Comm{ID: 7, NRanks: 2, Rank: r, NNodes: 2, InitTime: t0})
		for i := range uint64(30) {
			p.Call("ncclAllReduce", t0+i*ms, t0+i*ms+5_000)
			p.AllReduce(world, t0+i*ms+10_000, t0+i*ms+400_000, 1<<20)
		}
	})
}

// Traces of other tools come into one file with the archive's, on its clock, whatever the clocks of their hosts show.
func TestExportMergesTraces(t *testing.T) {
	anchor := twoClocks(t)
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		content := []byte(text)
		if strings.HasSuffix(name, ".gz") {
			var b bytes.Buffer
			z := gzip.NewWriter(&b)
			_, err := z.Write(content)
			testkit.Must(t, errors.Join(err, z.Close()))
			content = b.Bytes()
		}
		testkit.Must(t, os.WriteFile(path, content, 0o644))
		return path
	}
	const base = shardtest.Epoch - 1_000_000_000
	torch := `{"schemaVersion": 1, "traceEvents": [` + strings.Repeat(" ", 3<<20) +
		`{"ph": "X", "ts": 12.5, "dur": 1, "pid": 1, "tid": 1, "name": "aten::mm"}], "baseTimeNanoseconds": ` +
		fmt.Sprint(int64(base)) + `}`
	absolute := fmt.Sprintf(
		`{"traceEvents": [{"ph": "M", "ts": 0, "pid": 1, "name": "process_name"}, {"ph": "X", "ts": %d.5, "pid": 1, "tid": 1, "name": "x"}]}`, int64(shardtest.Epoch)/1000)
	ours := filepath.Join(dir, "ours.pftrace")
	exported(t, "export", anchor, "--perfetto", "-o", ours)
	merged := filepath.Join(dir, "merged.tar")
	exported(t, "export", anchor, "--perfetto", "-o", merged,
		"--with", write("rank0.json", torch)+"@node0", "--with", write("rank1.json.gz", torch)+"@node1", "--with",
		write("old.json", absolute)+"@node1", "--with", ours+"@node1")
	files, names := untar(t, merged)
	want := []string{"perfetto_manifest.json", "nccl-otf2.pftrace", "node0/rank0.json", "node1/rank1.json",
		"node1/old.json", "node1/ours.pftrace"}
	testkit.Require(t, slices.Equal(names, want), "files %q", names)
	testkit.Check(t, string(files["node1/rank1.json"]) == torch &&
		bytes.Equal(files["nccl-otf2.pftrace"], testkit.Read(t, ours)), "a trace is not what it was")
	_, err := tracetest.Read(files["nccl-otf2.pftrace"])
	testkit.Check(t, err == nil, "%v", err)
	type reference struct {
		File, Clock string
		TS          int64
	}
	var m struct {
		Manifest struct {
			Version   int
			TraceTime reference `json:"trace_time"`
			Files     []struct {
				Path    string
				Machine struct{ Name string }
				Clocks  struct {
					Clock  string
					TS     int64
					Offset int64 `json:"offset_ns"`
					Is     reference
				}
			}
		} `json:"perfetto_manifest"`
	}
	testkit.Must(t, json.Unmarshal(files[names[0]], &m))
	of := m.Manifest.Files
	testkit.Require(t, m.Manifest.Version == 1 &&
		m.Manifest.TraceTime == (reference{"nccl-otf2.pftrace", "REALTIME", 0}) && len(of) == 5, "%s", files[names[0]])
	shift := of[1].Clocks.Is.TS - base // of node0's clock to the archive's times
	for i, want := range []struct {
		path, host, clock  string
		offset, difference int64
	}{
		{"node0/rank0.json", "node0", "", 0, 0},
		{"node1/rank1.json", "node1", "", 0, -aheadBy - slewedBy},
		{"node1/old.json", "node1", "", 0, -aheadBy - slewedBy},
		{"node1/ours.pftrace", "node1", "REALTIME", -aheadBy - slewedBy, 0},
	} {
		f := of[i+1]
		testkit.Check(t, f.Path == want.path && f.Machine.Name == want.host && f.Clocks.Clock == want.clock &&
			f.Clocks.Is.File == "nccl-otf2.pftrace" && f.Clocks.Is.Clock == "REALTIME", "%+v", f)
		got, expected := f.Clocks.Offset, want.offset+shift
		if want.clock == "" {
			begin := f.Clocks.TS
			if begin == 0 {
				begin = base
			}
			got, expected = f.Clocks.Is.TS-begin, want.difference+shift
		}
		testkit.Check(t, got >= expected-1000 && got <= expected+1000,
			"%s is moved by %d ns, want %d", f.Path, got, expected)
	}
}

// exported runs the command, which must succeed.
func exported(t *testing.T, args ...string) {
	t.Helper()
	cmd := rootCommand()
	cmd.SetArgs(args)
	cmd.SetOut(io.Discard)
	testkit.Must(t, cmd.Execute())
}

func untar(t *testing.T, path string) (files map[string][]byte, names []string) {
	t.Helper()
	files = make(map[string][]byte)
	r := tar.NewReader(bytes.NewReader(testkit.Read(t, path)))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files, names
		}
		testkit.Must(t, err)
		text := testkit.Value(io.ReadAll(r))(t)
		files[h.Name], names = text, append(names, h.Name)
	}
}

// What cannot be put on the archive's clock is refused, with what to do.
func TestTracesThatCannotBeMerged(t *testing.T) {
	anchor := twoClocks(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "t.json")
	for _, c := range []struct{ content, with, want string }{
		{`{"traceEvents": [{"ts": 12}]}`, "@node0", "does not say what its times count from"},
		{"", "@node0", "it is empty"},
		{"hello", "@node0", "neither trace-event JSON nor Perfetto's own format"},
		{"{}", "", "say on which host it was recorded, as FILE@HOST: node0, node1"},
		{"{}", "@node7", "node0, node1"},
	} {
		testkit.Must(t, os.WriteFile(path, []byte(c.content), 0o644))
		cmd := rootCommand()
		cmd.SetArgs([]string{"export", anchor, "--perfetto", "-o", filepath.Join(dir, "m.tar"), "--with",
			path + c.with})
		cmd.SetOut(io.Discard)
		err := cmd.Execute()
		testkit.Check(t, err != nil && strings.Contains(err.Error(), c.want), "%q%s: %v", c.content, c.with, err)
		_, err = os.Stat(filepath.Join(dir, "m.tar"))
		testkit.Check(t, err != nil, "%q: there is a file", c.content)
	}
}
