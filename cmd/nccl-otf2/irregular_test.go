// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

// wholeJob leaves a small finished job with an archive and a profile.
func wholeJob(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for r := range 2 {
		p := shardtest.New(t, dir, fmt.Sprint("p", r)).On("node", 100+r).Launched("slurm", r, 2)
		world := p.Comm(description.Comm{ID: 7, Name: "world", NRanks: 2, Rank: r, InitTime: shardtest.Epoch + 1000})
		p.AllReduce(world, shardtest.Epoch+2000, shardtest.Epoch+3000, 8)
		p.Finish()
	}
	tool(t, "unify", dir)
	tool(t, "profile", dir)
	return dir
}

// A pipe, a device or a file of a terabyte of nothing in the place of any file of a job: each command ends, soon and
// without much memory.
func TestIrregularFiles(t *testing.T) {
	kinds := map[string]func(path string) error{
		"pipe":   func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"device": func(path string) error { return os.Symlink("/dev/zero", path) },
		"sparse": func(path string) error {
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				return err
			}
			return os.Truncate(path, 1<<40)
		},
	}
	var files []string
	whole := wholeJob(t)
	testkit.Must(t, filepath.WalkDir(whole, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			path, err = filepath.Rel(whole, path)
			files = append(files, path)
		}
		return err
	}))
	files = append(files, filepath.Join("shards", "x.spool"), filepath.Join("shards", "p0", "checkpoint.json"),
		filepath.Join("shards", "p0", "status.json"), "control.json")
	files = slices.DeleteFunc(files, func(f string) bool { // one of each sort is enough
		return strings.HasPrefix(f, "shards/p1") || strings.HasSuffix(f, ".evt") && !strings.HasSuffix(f, "1.evt")
	})
	for kind, place := range kinds {
		for _, file := range files {
			if kind == "sparse" && (strings.HasSuffix(file, ".evt") || strings.HasSuffix(file, ".def")) {
				continue // may be as large as the disk
			}
			dir := t.TempDir()
			testkit.Must(t, os.CopyFS(dir, os.DirFS(whole)))
			path := filepath.Join(dir, file)
			os.Remove(path)
			testkit.Must(t, place(path))
			out := filepath.Join(t.TempDir(), "out")
			for _, args := range [][]string{
				{"print", "-A", dir}, {"print", "--cube", dir}, {"report", dir}, {"report", "--hang", dir},
				{"check", dir},
				{"top", "--once", dir}, {"ctl", "status", dir}, {"unify", dir},
				{"timeline", dir, "--output", out + ".html"}, {"profile", dir},
				{"recover", dir}, {"view", "--simple", dir, "--output", out + "-simple"},
				{"export", "--jsonl", dir, "--output", out + "-jsonl"}, {"diff", dir, whole},
			} {
				limit := time.AfterFunc(5*time.Minute,
					func() { panic(fmt.Sprintf("%s as %s: %v does not end", file, kind, args)) })
				tool(t, args...)
				limit.Stop()
			}
		}
	}
}
