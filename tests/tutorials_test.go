// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/need"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/replay"
	"github.com/nccl-otf2/nccl-otf2/tests/walk"
)

// tutorials are the pages, with the recording that the job of each plays. That of Slurm is walked on a Slurm (tests/slurm).
var tutorials = map[string]string{
	"first-answer":  "09-straggler-4p",
	"hang":          "c10-missing-4p",
	"compare":       "c05-balanced-4p",
	"scorep-vampir": "09-straggler-4p",
	"weeks":         "09-straggler-4p",
}

// launcher is what starts the job on the pages: it starts four processes of a job, each of which plays its part of a recording at the recorded times.
const launcher = `#!/bin/bash
case "${0##*/} $*" in
  "torchrun --nproc-per-node "[48]" train.py" | "mpirun -np 4 ./all_reduce_perf -b 8 -e 128M" | "program ") ;;
  *) echo "started as $0 $*" >&2; exit 2 ;;
esac
export NCCL_OTF2_CLOCK=host WORLD_SIZE=4
for rank in 0 1 2 3; do RANK=$rank LOCAL_RANK=$rank %[1]s --clock recorded %[2]s/p$rank.program >/dev/null & jobs="$jobs $!"; done
for job in $jobs; do wait "$job" || exit 1; done
`

// A reader who does what a tutorial says, with an installed tool in an empty directory, sees what it shows.
func TestTutorials(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../docs/tutorials/*.md")
	testkit.Must(t, err)
	known := map[string]bool{"README": true, "slurm": true}
	for name := range tutorials {
		known[name] = true
	}
	for _, page := range pages {
		if name := filepath.Base(page[:len(page)-len(".md")]); !known[name] {
			t.Errorf("nobody walks %s", page)
		}
	}
	root := t.TempDir()
	makeInstall(t, "install", root, "lib")
	host, err := os.Hostname()
	testkit.Must(t, err)
	for name, recording := range tutorials {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			need.Reference(t, "otf2-print")
			walk.Page(t, "../docs/tutorials/"+name+".md", visitor(t, filepath.Join(root, prefix), recording), " "+host+" ", " node1 ")
		})
	}
	t.Run("README", func(t *testing.T) {
		t.Parallel()
		walk.Through(t, "../README.md", visitor(t, filepath.Join(root, prefix), "09-straggler-4p"))
	})
}

// visitor does what a page says, in an empty directory, with what is installed in a prefix and stand-ins that play a recording.
func visitor(t *testing.T, installation, recording string) func(script string) (string, error) {
	t.Helper()
	stand := standIns(t, installation, recording)
	return func(script string) (string, error) {
		c := exec.Command("bash", "-euo", "pipefail", "-c", script)
		c.Dir = t.TempDir()
		testkit.Must(t, os.Symlink(filepath.Join(stand, "program"), filepath.Join(c.Dir, "program")))
		c.Env = append(os.Environ(), "PATH="+stand+":"+filepath.Join(installation, "bin")+":"+os.Getenv("PATH"), "PYTHONPATH="+filepath.Join(installation, "share/nccl-otf2/python"))
		out, err := c.CombinedOutput()
		return string(out), err
	}
}

// standIns is a folder with programs that are not to be had here: launchers, and a program that is one process of a job.
func standIns(t *testing.T, installation, recording string) string {
	t.Helper()
	folder := t.TempDir()
	found, err := replay.Find(recording)
	testkit.Must(t, err)
	rec, err := replay.Load(found)
	testkit.Must(t, err)
	for k := range rec.Processes {
		program, err := replay.Compile(rec, k)
		testkit.Must(t, err)
		testkit.Write(t, filepath.Join(folder, fmt.Sprintf("p%d.program", k)), program)
	}
	for _, name := range []string{"torchrun", "mpirun", "program"} {
		testkit.Script(t, filepath.Join(folder, name), fmt.Sprintf(launcher, filepath.Join(installation, replay.HostFile), folder))
	}
	return folder
}
