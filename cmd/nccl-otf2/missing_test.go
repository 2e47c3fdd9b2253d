// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

// lateJob leaves the archive of a job whose rank 1 makes the other one wait; what differs between processes are ids of
// regions, texts and times.
func lateJob(t *testing.T) (anchor string) {
	t.Helper()
	const t0, us = shardtest.Epoch + 1_000_000, 1000
	dir := t.TempDir()
	for r := range 2 {
		p := shardtest.New(t, dir, fmt.Sprint("p", r)).On(fmt.Sprint("node", r), 100+r).Launched("slurm", r, 2)
		if r == 1 {
			phase := p.Region("forward", "Application phases", otf2.RegionRoleUnknown)
			testkit.Must(t, p.Writer(0).Enter(t0+50*us, nil, phase))
			testkit.Must(t, p.Writer(0).Leave(t0+90*us, nil, phase))
		}
		world := p.Comm(description.Comm{ID: 7, Name: "world", NRanks: 2, Rank: r, NNodes: 2, InitTime: t0})
		for i := range uint64(20) {
			begin := t0 + 100*us + 100*us*i
			p.Call("ncclAllReduce", begin, begin+2*us)
			p.AllReduce(world, begin+uint64(60*r)*us, begin+80*us, 1<<20)
		}
		p.Shard.Markers = append(p.Shard.Markers,
			description.Marker{Time: t0 + 120*us, Severity: otf2.MarkerSeverityHigh, Category: "c", Text: "t",
				Location: -1})
		p.Finish()
	}
	tool(t, "unify", dir)
	return filepath.Join(dir, "traces.otf2")
}

// outcome is what a command says and writes.
type outcome struct {
	out, errs string
	code      int
	files     map[string]string
}

func outcomeOf(t *testing.T, args []string, out string) outcome {
	t.Helper()
	testkit.Must(t, os.RemoveAll(out))
	testkit.Must(t, os.MkdirAll(out, 0o777))
	p := outcome{files: make(map[string]string)}
	p.out, p.errs, p.code = runCaptured(t, args...)
	testkit.Must(t, filepath.WalkDir(out, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		p.files[path] = string(b)
		return err
	}))
	return p
}

// Whatever is damaged of an archive: a command gives the answer that it gives without the damage, or says which file it
// is and ends with exit code 1.
func TestDamageIsInEveryAnswer(t *testing.T) {
	anchor := lateJob(t)
	folder := strings.TrimSuffix(anchor, ".otf2")
	a := testkit.Value(otf2.Open(anchor, nil))(t)
	at := slices.IndexFunc(a.Defs.Locations, func(l otf2.Location) bool {
		tables, _, err := a.LocalDefs(l.Self)
		testkit.Must(t, err)
		return l.Events > 20 && len(tables) > 0
	})
	testkit.Require(t, at >= 0, "no location has mapping tables")
	number := fmt.Sprint(uint64(a.Defs.Locations[at].Self))
	cut := func(part int) func(string) error {
		return func(path string) error {
			info, err := os.Stat(path)
			return errors.Join(err, os.Truncate(path, info.Size()*int64(part)/4))
		}
	}
	nowhere := func(path string) error { return errors.Join(os.Remove(path), os.Symlink(path+" of nobody/x", path)) }
	folderInstead := func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o777)) }
	renamed := func(path string) error {
		return os.Rename(path, filepath.Join(filepath.Dir(path), "999"+filepath.Ext(path)))
	}
	zeros := func(path string) error {
		info, err := os.Stat(path)
		return errors.Join(err, os.WriteFile(path, make([]byte, info.Size()), 0o666))
	}
	kinds := map[string]func(path string) error{
		"missing": os.Remove, "empty": cut(0), "cut at a quarter": cut(1), "cut at three quarters": cut(3),
		"a link to nothing": nowhere,
		"a folder":          folderInstead, "named after another location": renamed, "zeros": zeros,
	}
	whole := t.TempDir()
	testkit.Must(t, os.CopyFS(whole, os.DirFS(filepath.Dir(anchor))))
	out := filepath.Join(t.TempDir(), "out")
	commands := append(readers(anchor, out), []string{"diff", filepath.Join(whole, "traces.otf2"), anchor})
	undamaged := make([]outcome, len(commands))
	for i, args := range commands {
		undamaged[i] = outcomeOf(t, args, out)
	}
	testkit.Require(t, strings.Contains(undamaged[2].out, "Rank 1"),
		"the undamaged archive shows no wait: %s", undamaged[2].out)
	for _, file := range []string{filepath.Join(folder, number+".def"), filepath.Join(folder, number+".evt"),
		folder + ".def", folder + ".marker"} {
		for _, kind := range slices.Sorted(maps.Keys(kinds)) {
			if strings.HasSuffix(file, ".marker") &&
				slices.Contains([]string{"missing", "a link to nothing", "named after another location"},
					kind) { // an archive without markers
				continue
			}
			content := testkit.Read(t, file)
			testkit.Must(t, kinds[kind](file))
			for i, args := range commands {
				got := outcomeOf(t, args, out)
				want := undamaged[i]
				if got.code == want.code && got.out == want.out && maps.Equal(got.files, want.files) {
					continue
				}
				if got.code != exitInput || !strings.Contains(got.out+got.errs, filepath.Base(file)) {
					t.Errorf("%s is %s: %q ends with exit code %d and differs without naming it: %.300s %.300s",
						filepath.Base(file), kind, args[:len(args)-1], got.code, got.errs, got.out)
				}
			}
			testkit.Must(t, os.RemoveAll(file))
			testkit.Must(t, os.RemoveAll(filepath.Join(folder, "999"+filepath.Ext(file))))
			testkit.Must(t, os.RemoveAll(filepath.Join(filepath.Dir(folder), "999"+filepath.Ext(file))))
			testkit.Must(t, os.WriteFile(file, content, 0o666))
		}
	}
	all := testkit.Value(filepath.Glob(filepath.Join(folder, "*.def")))(t)
	for _, file := range all {
		testkit.Must(t, os.Remove(file))
	}
	for _, args := range commands {
		if got := outcomeOf(t, args, out); got.code != exitInput || !strings.Contains(got.out+got.errs, ".def: ") {
			t.Errorf("without any local definitions, %q ends with exit code %d: %.300s %.300s", args[:len(args)-1],
				got.code, got.errs, got.out)
		}
	}
}

// The end of one call of MPI that is not in an archive: all products say which call it is, and check takes no later one
// for it.
func TestMissingCallIsInEveryAnswer(t *testing.T) {
	s := jobtest.Load(t, "../../scorep/testdata/mpi4-clock_gettime/traces.otf2")
	s.Remove(1, s.Index(1, otf2.EventMpiCollectiveEnd, 3), 1)
	anchor, out := s.Write(), filepath.Join(t.TempDir(), "out")
	const lost = "not in the archive of rank 1"
	for _, args := range readers(anchor, out) {
		got := outcomeOf(t, args, out)
		want, code := "Broadcast 0 of MPI_COMM_WORLD: "+lost, exitDone
		switch name := strings.Join(args[:2], " "); {
		case args[0] == "print": // what is there
			continue
		case name == "view --scalasca": // has operations of NCCL alone
			want, code = "made of archives that `nccl-otf2 unify` made", exitInput
		case name == "export --chakra" || name == "export --program": // have operations of NCCL alone
			want, code = "there is nothing to play", exitInput
		case name == "report --format":
			want = lost
		case args[0] == "diff":
			want = "3 left out: recorded differently by the members"
		case args[0] == "check":
			code = exitInput
			testkit.Check(t, !strings.Contains(got.out, "Broadcast 1") && !strings.Contains(got.out, "Broadcast 2"),
				"%q takes another call for it: %s", args[:2], got.out)
		}
		testkit.Check(t, strings.Contains(got.out+got.errs, want) && got.code == code,
			"%q ends with exit code %d and says %.600s %.300s", args[:len(args)-1], got.code, got.out, got.errs)
	}
}
