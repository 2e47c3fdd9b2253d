// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/rawfiles"
	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/internal/hidden"
	"github.com/nccl-otf2/nccl-otf2/internal/need"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
	"github.com/nccl-otf2/nccl-otf2/scorep/files"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

const t0 = shardtest.Epoch + 1_000_000

// job leaves the shards of a job with the given number of single-GPU processes on nodes of four, a
// world communicator, and ops AllReduces, begun 1 ms apart.
func job(t testing.TB, dir string, size, ops int, change func(rank int, p *shardtest.Process)) []*shardtest.Process {
	t.Helper()
	procs := make([]*shardtest.Process, size)
	for r := range size {
		p := shardtest.New(t, dir, fmt.Sprintf("uuid-%02d", r)).On(fmt.Sprintf("node%d", r/4), 1000+r).Launched(
			"slurm", r, size)
		p.GPU(0, fmt.Sprintf("GPU-%04d", r), fmt.Sprintf("0000:%02x:00.0", r%4))
		p.Comm(description.Comm{ID: 0xabcdef, Name: "world", NRanks: size, Rank: r, NNodes: 1 + (size-1)/4,
			InitTime: t0})
		for i := range uint64(ops) {
			p.Call("ncclAllReduce", t0+i*1_000_000, t0+i*1_000_000+5000)
			p.AllReduce(0, t0+i*1_000_000+10_000, t0+i*1_000_000+500_000, 1024)
		}
		if change != nil {
			change(r, p)
		}
		procs[r] = p
	}
	return procs
}

func finish(procs []*shardtest.Process) {
	for _, p := range procs {
		p.Destroy(0, uint64(p.Writer(p.Shard.Comms[0].Location).LastTime())+1000)
		p.Finish()
	}
}

func unify(t testing.TB, dir string, opts *UnifyOptions) *Result {
	t.Helper()
	res := testkit.Value(Unify(dir, opts))(t)
	return res
}

func open(t testing.TB, path string) *otf2.Archive {
	t.Helper()
	a := testkit.Value(otf2.Open(path, nil))(t)
	t.Cleanup(func() { a.Close() })
	return a
}

func propertyText(a *otf2.Archive, name string) string {
	for _, p := range a.Anchor.Properties {
		if p.Name == name {
			return p.Value
		}
	}
	return ""
}

// accept lets both reference readers read the archive to its end, warnings being errors, and returns
// what otf2-print says of the definitions.
func accept(t testing.TB, anchor string) string {
	t.Helper()
	print := func(what string) string {
		cmd := exec.Command(need.Reference(t, "otf2-print"), "-Werror", what, anchor)
		cmd.Env = append(os.Environ(), "TZ=UTC")
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil || stderr.Len() > 0 {
			t.Fatalf("otf2-print %s: %v\n%s\n%s", what, err, tail(out), stderr.String())
		}
		return string(out)
	}
	print("-A")
	const script = `
import sys, otf2
n = 0
with otf2.reader.open(sys.argv[1]) as trace:
    for location, event in trace.events:
        n += 1
print(n)
`
	out, err := exec.Command(need.Python(t), "-c", script, anchor).CombinedOutput()
	if err != nil {
		t.Fatalf("python3-otf2: %v\n%s", err, tail(out))
	}
	total := uint64(0)
	for _, l := range open(t, anchor).Defs.Locations {
		total += l.Events
	}
	if got := strings.TrimSpace(string(out)); got != strconv.FormatUint(total, 10) {
		t.Fatalf("python3-otf2 reads %s events, the definitions say %d", got, total)
	}
	return withoutStrings(print("-G"))
}

var stringID = regexp.MustCompile(`((?:Name|Class|Aka\.|Descr\.|Value|Unit): ?"[^"]*"|Aka\. "[^"]*") <\d+>`)

// withoutStrings leaves strings, their ids, and the attributes out of otf2-print's text: package
// regions lists the latter, and all other ids would hide among the former.
func withoutStrings(defs string) string {
	var out []string
	for line := range strings.Lines(defs) {
		if !strings.HasPrefix(line, "STRING") && !strings.HasPrefix(line, "ATTRIBUTE") {
			out = append(out, stringID.ReplaceAllString(line, "$1"))
		}
	}
	return strings.Join(out, "")
}

func tail(b []byte) string {
	if len(b) > 3000 {
		b = b[len(b)-3000:]
	}
	return string(b)
}

func TestAFinishedJobBecomesAnArchive(t *testing.T) {
	dir := t.TempDir()
	finish(job(t, dir, 8, 3, nil))
	res := unify(t, dir, nil)
	testkit.Require(t, len(res.Runs) == 1 && len(res.Problems) == 0, "%+v", res)
	run := res.Runs[0]
	run.Archive = ""
	want := RunResult{
		Finished: 8, Hosts: 2, Locations: 16, Communicators: 1, Events: 8 * (3*2 + 2 + 3*4),
		First: t0, Last: t0 + 2_501_000, Linked: 16, Complete: true, Hidden: []hidden.Traffic{},
	}
	testkit.Same(t, want, run)
	golden.Text(t, "testdata/finished.defs.txt", accept(t, filepath.Join(dir, "traces.otf2")))
	a := open(t, res.Runs[0].Archive)
	testkit.Equal(t, propertyText(a, "OTF2::MPI_COMMUNICATION_COMPLETE"), "true", "communication complete")
	testkit.Equal(t, propertyText(a, "NCCL_OTF2::TIMING::GPU"), "24", "operations timed on the GPU")
	evt := testkit.Value(os.Stat(a.EventFile(1<<32 | 3)))(t)
	n := evt.Sys().(*syscall.Stat_t).Nlink
	testkit.Check(t, n == 2, "event file has %d links, want 2", n)
}

func archiveBytes(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || strings.Contains(path, "/shards/") {
			return err
		}
		b, err := os.ReadFile(path)
		all[strings.TrimPrefix(path, dir)] = string(b)
		return err
	})
	testkit.Must(t, err)
	return all
}

func TestUnifyingTwiceGivesTheSameArchive(t *testing.T) {
	dir := t.TempDir()
	procs := job(t, dir, 5, 2, nil)
	finish(procs[:4]) // one still runs
	procs[4].Flush()
	// The archive says for how long the running process has recorded nothing.
	now := time.Now()
	clock := func() time.Time { return now }
	unify(t, dir, &UnifyOptions{clock: clock})
	first := archiveBytes(t, dir)
	unify(t, dir, &UnifyOptions{Workers: 5, clock: clock})
	testkit.Same(t, first, archiveBytes(t, dir))
	if len(first) != 3+2*10 { // anchor, definitions, marker; two files per location
		t.Errorf("%d files", len(first))
	}
}

func TestARunningJobCanBeUnifiedAndAgainWhenItHasEnded(t *testing.T) {
	dir := t.TempDir()
	procs := job(t, dir, 2, 4, nil)
	for _, p := range procs {
		p.Flush()
	}
	// Events behind what the description tells: half a record more and the next flush's bytes.
	for _, p := range procs {
		p.AllReduce(0, t0+20_000_000, t0+21_000_000, 1024)
		testkit.Must(t, p.Writer(1).Flush())
	}
	res := unify(t, dir, nil)
	run := res.Runs[0]
	testkit.Check(t, run.Running == 2 && run.Linked == 0 && run.Copied == 4 && !run.Complete, "%+v", run)
	want := uint64(2 * (4*2 + 1 + 4*4))
	testkit.Check(t, run.Events == want, "%d events, want %d", run.Events, want)
	testkit.Check(t, run.Last == t0+3_500_000, "last event at %d", run.Last-t0)
	accept(t, run.Archive)
	got := propertyText(open(t, run.Archive), "NCCL_OTF2::PROCESSES_RUNNING")
	testkit.Check(t, got == "2", "%q processes run", got)

	finish(procs)
	run = unify(t, dir, nil).Runs[0]
	testkit.Check(t, run.Finished == 2 && run.Copied == 0 && run.Complete && run.Events == 2*(4*2+2+5*4), "%+v", run)
	accept(t, run.Archive)
}

// muchLater is a time at which processes of other hosts that say nothing any more are given up.
var muchLater = &UnifyOptions{clock: func() time.Time { return time.Now().Add(2 * experiment.YoungFor) }}

func TestACrashedProcessGivesWhatIsWhole(t *testing.T) {
	enter := []byte{5, 1, 2, 3} // a time stamp cut off
	for _, c := range []struct {
		name    string
		rubbish []byte
		problem string
	}{
		{name: "nothing after the last flush"},
		{name: "half a record", rubbish: enter},
		{name: "bytes that are no record", rubbish: bytes.Repeat([]byte{0x0c, 9, 9, 9}, 4), problem: "damaged after"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			procs := job(t, dir, 3, 4, nil)
			finish(procs[:2])
			procs[2].Flush()
			at := 1
			if c.rubbish == nil {
				at = -1
			}
			procs[2].Crash(at, c.rubbish)
			flushed := time.Unix(1_700_000_000, 0)
			entries := testkit.Value(experiment.List(dir))(t)
			for _, e := range entries {
				checkpoint := filepath.Join(e.Path, experiment.CheckpointFile)
				testkit.Must(t, os.WriteFile(checkpoint, testkit.Read(t, filepath.Join(e.Path, experiment.ProcessFile)),
					0o600))
				testkit.Must(t, os.Chtimes(checkpoint, flushed, flushed))
			}
			run := unify(t, dir, muchLater).Runs[0]
			testkit.Check(t, len(run.Flushed) == 1 && run.Flushed[0].Equal(flushed),
				"last flushes %v, want %v", run.Flushed, flushed)
			testkit.Check(t, run.Finished == 2 && run.Crashed == 1 && !run.Complete && run.Copied == 2 &&
				run.Linked == 4, "%+v", run)
			want := uint64(3*(4*2+1+4*4) + 2)
			testkit.Check(t, run.Events == want, "%d events, want %d", run.Events, want)
			got := strings.Join(run.Problems, "\n")
			testkit.Check(t, (c.problem != "" || got == "") && strings.Contains(got, c.problem), "problems: %q", got)
			accept(t, run.Archive)
			_, markers, err := open(t, run.Archive).Markers()
			testkit.Must(t, err)
			testkit.Check(t, len(markers) != 0 &&
				strings.Contains(markers[0].Text+markers[len(markers)-1].Text, "Rank 2 (node0:1002)"), "markers: %+v",
				markers)
		})
	}
}

func TestAFinishedEventFileThatHasChangedIsScanned(t *testing.T) {
	dir := t.TempDir()
	procs := job(t, dir, 2, 4, nil)
	finish(procs)
	testkit.Must(t, os.Truncate(filepath.Join(procs[1].Dir, "1.evt"), 200))
	testkit.Must(t, os.Remove(filepath.Join(procs[0].Dir, "0.evt")))
	run := unify(t, dir, nil).Runs[0]
	testkit.Check(t, len(run.Problems) == 2 && !run.Complete, "%+v", run)
	accept(t, run.Archive)
}

func TestShardsThatCannotBeReadAreNamed(t *testing.T) {
	dir := t.TempDir()
	finish(job(t, dir, 2, 1, nil))
	for name, text := range map[string]string{
		"broken": "{", "newer": `{"version": 99}`,
		"odd": `{"version":2,"eventChunkSize":262144,"locations":[{"number":0,"comm":5}]}`, "empty": "",
	} {
		d := filepath.Join(dir, "shards", name)
		testkit.Must(t, os.MkdirAll(d, 0o777))
		if text != "" {
			testkit.Write(t, filepath.Join(d, "shard.json"), []byte(text))
		}
	}
	res := unify(t, dir, nil)
	got := strings.Join(res.Problems, "\n")
	for _, want := range []string{"broken", "version 99, this program reads 2", "communicator 5 of 0",
		"before it described itself"} {
		testkit.Check(t, strings.Contains(got, want), "problems do not say %q:\n%s", want, got)
	}
	accept(t, res.Runs[0].Archive)
}

func TestWhatIsNoExperimentIsRefused(t *testing.T) {
	dir := t.TempDir()
	_, err := Unify(dir, nil)
	testkit.Check(t, errors.Is(err, fs.ErrNotExist), "no shards folder: %v", err)
	testkit.Must(t, os.Mkdir(filepath.Join(dir, "shards"), 0o777))
	_, err = Unify(dir, nil)
	testkit.Check(t, errors.Is(err, fs.ErrNotExist), "no shards: %v", err)
}

func TestOnlyOneUnifiesAtATime(t *testing.T) {
	dir := t.TempDir()
	finish(job(t, dir, 1, 1, nil))
	hold, err := experiment.Lock(dir)
	testkit.Must(t, err)
	_, err = Unify(dir, nil)
	testkit.Check(t, errors.Is(err, experiment.ErrBusy) &&
		strings.Contains(err.Error(), "pid "+strconv.Itoa(os.Getpid())), "got %v", err)
	hold.Release()
	unify(t, dir, nil)
}

func TestRawFilesThatWereNotConvertedAreNamed(t *testing.T) {
	dir := t.TempDir()
	testkit.Must(t, os.MkdirAll(filepath.Join(dir, "shards"), 0o777))
	spool := filepath.Join(dir, "shards", "1234.spool")
	testkit.Write(t, spool, nil)
	_, err := Unify(dir, nil)
	testkit.Check(t, errors.Is(err, fs.ErrNotExist), "got %v", err)
	finish(job(t, dir, 1, 1, nil))
	res := unify(t, dir, nil)
	testkit.Check(t, len(res.Problems) == 1 && strings.Contains(res.Problems[0], "was not converted") &&
		res.Damaged == 0, "%d damaged: %+v", res.Damaged, res.Problems)
	res = unify(t, dir, &UnifyOptions{Raw: []rawfiles.File{{Path: spool}}})
	testkit.Check(t, res.Runs[0].Finished == 1 && len(res.Problems) == 0, "%+v", res)
	res = unify(t, dir, &UnifyOptions{Raw: []rawfiles.File{{Path: spool, Err: errors.New("no such thing")}}})
	testkit.Check(t, len(res.Problems) == 1 && strings.Contains(res.Problems[0], "no such thing") && res.Damaged == 1,
		"%d damaged: %+v", res.Damaged, res.Problems)
}

func TestWithoutHardLinksFilesAreCopied(t *testing.T) {
	files.Link = func(string, string) error { return syscall.EPERM }
	defer func() { files.Link = os.Link }()
	dir := t.TempDir()
	finish(job(t, dir, 2, 2, nil))
	run := unify(t, dir, nil).Runs[0]
	testkit.Check(t, run.Linked == 0 && run.Copied == 4 && run.Complete, "%+v", run)
	accept(t, run.Archive)
}

func TestRunsThatShareADirectoryAreSeparated(t *testing.T) {
	dir := t.TempDir()
	finish(job(t, dir, 2, 1, nil))
	unify(t, dir, nil)
	// The same job again, an hour later: the same ranks and even the same commId.
	const hour = 3_600_000_000_000
	for r := range 2 {
		p := shardtest.New(t, dir, fmt.Sprintf("again-%d", r)).On("node0", 2000+r).Launched("slurm", r, 2)
		p.Shard.Clock.AnchorReal += hour
		p.Shard.Clock.AnchorRaw += hour
		p.GPU(0, fmt.Sprintf("GPU-%04d", r), "")
		p.Comm(description.Comm{ID: 0xabcdef, Name: "world", NRanks: 2, Rank: r, InitTime: t0 + hour})
		p.AllReduce(0, t0+hour+10, t0+hour+20, 1)
		p.Destroy(0, t0+hour+30)
		p.Finish()
	}
	res := unify(t, dir, nil)
	testkit.Require(t, len(res.Runs) == 2, "%+v", res)
	for i, run := range res.Runs {
		testkit.Equal(t, run.Archive, filepath.Join(dir, fmt.Sprintf("run-%d", i+1), "traces.otf2"), "run %d in", i)
		testkit.Check(t, run.Finished == 2 && run.Complete && run.Communicators == 1, "%+v", run)
		accept(t, run.Archive)
	}
	testkit.Equal(t, res.Runs[1].First, t0+hour, "second run begins at")
	testkit.Check(t, len(res.Problems) == 2 && strings.Contains(res.Problems[0], "2 jobs") &&
		strings.Contains(res.Problems[1], "is replaced by these"), "problems: %q", res.Problems)
	_, err := os.Stat(filepath.Join(dir, "traces.otf2"))
	testkit.Check(t, errors.Is(err, fs.ErrNotExist), "the archive of one run is still there: %v", err)
}

func TestMissingMembersKeepTheirPlaces(t *testing.T) {
	dir := t.TempDir()
	procs := job(t, dir, 4, 2, func(rank int, p *shardtest.Process) {
		p.Comm(description.Comm{ID: 0x77, Name: "dp", NRanks: 2, Rank: rank / 2,
			InitTime: t0 + 100_000_000 + uint64(rank%2)}) // 0,2 and 1,3: same id
	})
	// Different instances have different ids here, so that the pairs are certain.
	for r, p := range procs {
		p.Shard.Comms[1].ID = uint64(0x77 + r%2)
	}
	for r, p := range procs {
		if r == 2 {
			testkit.Must(t, os.RemoveAll(p.Dir))
			continue
		}
		p.Finish()
	}
	res := unify(t, dir, nil)
	run := res.Runs[0]
	testkit.Check(t, run.Finished == 3 && run.Missing == 1 && run.MissingRanks == 2 && !run.Complete, "%+v", run)
	golden.Text(t, "testdata/missing.defs.txt", accept(t, run.Archive))
	a := open(t, run.Archive)
	testkit.Check(t, propertyText(a, "NCCL_OTF2::PROCESSES_MISSING") == "1" &&
		propertyText(a, "NCCL_OTF2::RANKS_MISSING") == "2", "properties: %+v", a.Anchor.Properties)
	_, markers, err := a.Markers()
	testkit.Must(t, err)
	var texts []string
	for _, m := range markers {
		texts = append(texts, m.Text)
	}
	testkit.Same(t, []string{"world: no data of rank 2 of 4", "dp: no data of rank 1 of 2"}, texts)
}

func TestSeveralRanksPerProcess(t *testing.T) {
	dir := t.TempDir()
	for proc := range 2 {
		p := shardtest.New(t, dir, fmt.Sprintf("p%d", proc)).On("node0", 50-proc) // pid order is not rank order
		for d := range 2 {
			gpu := p.GPU(d, "", "")
			p.Comm(description.Comm{ID: 1, NRanks: 4, Rank: proc*2 + d, GPU: gpu, InitTime: t0})
		}
		p.Comm(description.Comm{ID: 2, NRanks: 1, Rank: 0, GPU: 0, InitTime: t0 + 1000})
		for c := range 2 {
			p.AllReduce(c, t0+10_000, t0+20_000, 10)
		}
		p.Collective(2, shardtest.Op{Function: "AllReduce", Begin: t0 + 30_000, End: t0 + 40_000, Count: 5})
		p.Finish()
	}
	run := unify(t, dir, nil).Runs[0]
	testkit.Check(t, run.Communicators == 1 && run.Finished == 2 && run.Complete, "%+v", run)
	golden.Text(t, "testdata/several.defs.txt", accept(t, run.Archive))
}

func TestOneCommIDForSeveralCommunicators(t *testing.T) {
	dir := t.TempDir()
	var procs []*shardtest.Process
	for r := range 4 {
		p := shardtest.New(t, dir, fmt.Sprintf("p%d", r)).On("node0", 10+r).Launched("pmix", r, 4)
		p.GPU(r, "", "")
		p.Comm(description.Comm{ID: 9, NRanks: 4, Rank: r, InitTime: t0})
		// Made and destroyed twice, one after the other, under one id.
		for i := range uint64(2) {
			c := p.Comm(description.Comm{ID: 5, NRanks: 4, Rank: 3 - r, InitTime: t0 + 1_000_000 + i*1_000_000})
			p.AllReduce(c, t0+1_100_000+i*1_000_000, t0+1_200_000+i*1_000_000, 10*(i+1))
			p.Destroy(c, t0+1_500_000+i*1_000_000)
		}
		// Two of two ranks each at the same time under one id, begun 100 µs apart.
		p.Comm(description.Comm{ID: 6, NRanks: 2, Rank: r % 2,
			InitTime: t0 + 5_000_000 + uint64(r/2)*100_000 + uint64(r)})
		procs = append(procs, p)
	}
	for _, p := range procs {
		p.Finish()
	}
	run := unify(t, dir, nil).Runs[0]
	testkit.Check(t, run.Communicators == 5 && len(run.Differences) == 0 && run.MissingRanks <= 0, "%+v", run)
	golden.Text(t, "testdata/instances.defs.txt", accept(t, run.Archive))
}

func TestClocksOfOneBootAreAligned(t *testing.T) {
	dir := t.TempDir()
	procs := job(t, dir, 2, 2, func(rank int, p *shardtest.Process) {
		if rank == 1 { // CLOCK_REALTIME was stepped by −40 µs between the two anchors
			p.Shard.Clock.AnchorRaw += 1_000_000
			p.Shard.Clock.AnchorReal += 1_000_000 - 40_000
		}
	})
	finish(procs)
	run := unify(t, dir, nil).Runs[0]
	a := open(t, run.Archive)
	for loc, want := range map[otf2.LocationRef]otf2.Timestamp{0: t0, 1 << 32: t0, 1: t0 + 40_000,
		1<<32 | 1: t0 + 40_000} {
		for ev, err := range a.EventsOf(loc) {
			testkit.Must(t, err)
			testkit.Equal(t, ev.Time, want, "location %d begins at", loc)
			break
		}
	}
	testkit.Check(t, run.Last == t0+1_501_000+40_000, "last %d", run.Last-t0)
	_, clocks, err := a.LocalDefs(1)
	testkit.Check(t, err == nil && len(clocks) == 2 && clocks[0].Offset == 40_000 && clocks[1].Time > clocks[0].Time,
		"clock offsets %+v, %v", clocks, err)
	accept(t, run.Archive)
}

// Beside MPI's, communicators of NCCL have a paradigm that OTF2 defines: of others the Python bindings cannot tell the
// name.
func TestParadigmOfItsOwn(t *testing.T) {
	dir := t.TempDir()
	finish(job(t, dir, 2, 1, nil))
	run := unify(t, dir, &UnifyOptions{ownParadigm: true}).Runs[0]
	defs := accept(t, run.Archive)
	testkit.Check(t, !strings.Contains(defs, "MPI") && !strings.Contains(defs, "INVALID") &&
		strings.Count(defs, `Paradigm: "NCCL" <11>`) == 3, "definitions:\n%s", defs)
	const script = `import otf2, sys
with otf2.reader.open(sys.argv[1]) as trace:
    for d in list(trace.definitions.groups) + list(trace.definitions.regions) + list(trace.definitions.paradigms):
        print(d.paradigm)
`
	out, err := exec.Command(need.Python(t), "-I", "-c", script, run.Archive).CombinedOutput()
	testkit.Require(t, err == nil, "%v\n%s", err, out)
	for _, name := range []string{"Paradigm.GASPI", "Paradigm.NONE", "Paradigm.USER", "Paradigm.CUDA"} {
		testkit.Check(t, strings.Contains(string(out), name), "no %s:\n%s", name, out)
	}
}

func TestEventChunkSizeIsThatOfMost(t *testing.T) {
	big := func(p *shardtest.Process, bytes int64) *jobs.Process {
		p.Shard.Locations[0].Bytes = bytes
		q := p.Shard
		return &jobs.Process{Shard: &q}
	}
	dir := t.TempDir()
	for _, c := range []struct {
		name           string
		sizeA, sizeB   uint64
		bytesA, bytesB int64
		want           uint64
	}{
		{"alike", 1 << 18, 1 << 18, 1 << 20, 100, 1 << 18},
		{"small files fit any", 1 << 18, 1 << 20, 1000, 1000, 1 << 20},
		{"the long file decides", 1 << 18, 1 << 20, 1 << 19, 1000, 1 << 18},
		{"the larger chunk's file is too long", 1 << 18, 1 << 20, 1 << 19, 300_000, 1 << 18},
		{"two long ones", 1 << 18, 1 << 20, 1 << 19, 1 << 21, 1 << 20},
	} {
		a, b := shardtest.New(t, dir, c.name+"a"), shardtest.New(t, dir, c.name+"b")
		a.Shard.EventChunkSize, b.Shard.EventChunkSize = c.sizeA, c.sizeB
		got := eventChunkSize(&jobs.Run{Processes: []*jobs.Process{big(a, c.bytesA), big(b, c.bytesB)}})
		testkit.Check(t, got == c.want, "%s: %d", c.name, got)
	}
}

// Processes whose chunks have another size than those of most are in the archive all the same.
func TestUnifyRewritesChunksOfAnotherSize(t *testing.T) {
	dir := t.TempDir()
	p, q := shardtest.New(t, dir, "p").On("node0", 1), shardtest.New(t, dir, "q").On("node0", 2)
	q.Shard.EventChunkSize = 1 << 20
	q.Location(description.KindThread, otf2.LocationTypeCPUThread, "Thread 1", -1) // with the new size, unlike its first
	p.Comm(description.Comm{ID: 1, NRanks: 2, Rank: 0, InitTime: t0})
	q.Comm(description.Comm{ID: 1, NRanks: 2, Rank: 1, InitTime: t0})
	const calls = 20_000
	w := q.Writer(1)
	r := q.Region("ncclAllReduce", regions.GroupAPI, otf2.RegionRoleFunction)
	for i := range uint64(calls) {
		p.Call("ncclAllReduce", t0+i*10, t0+i*10+5)
		for range 4 {
			testkit.Must(t, errors.Join(w.Enter(otf2.Timestamp(t0+i*10), nil, r),
				w.Leave(otf2.Timestamp(t0+i*10), nil, r)))
		}
	}
	p.Finish()
	q.Finish()
	run := unify(t, dir, nil).Runs[0]
	accept(t, run.Archive)
	testkit.Check(t, run.Rewritten == 1 && run.Copied == 1 && run.Events == 10*calls+2 && len(run.Problems) == 0,
		"%+v", run)
}

func TestResultIsJSON(t *testing.T) {
	b, err := json.Marshal(Result{Runs: []RunResult{{Archive: "x", Finished: 1}}})
	testkit.Check(t, err == nil && strings.Contains(string(b), `"missing_ranks":0`), "%s, %v", b, err)
}
