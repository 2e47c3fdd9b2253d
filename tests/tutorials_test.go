// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/need"
	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/walk"
)

// visit is how a page is walked: all of it, or its commands alone, with the recording that its job plays.
type visit struct {
	recording string
	whole     bool
	before    string   // commands that make what the page speaks of
	needs     string   // a program of the installation that may not have been built
	engines   []string // Python's packages that scripts/engines.sh installs
}

const tutorials = "docs/tutorials/"

// visits are the pages that a reader walks with an installed tool. Those of Slurm are walked on a Slurm (tests/slurm).
var visits = map[string]visit{
	tutorials + "first-answer.md":  {recording: "09-straggler-4p", whole: true},
	tutorials + "hang.md":          {recording: "c10-missing-4p", whole: true},
	tutorials + "compare.md":       {recording: "c05-balanced-4p", whole: true},
	tutorials + "scorep-vampir.md": {recording: "09-straggler-4p", whole: true},
	tutorials + "weeks.md":         {recording: "09-straggler-4p", whole: true},
	"README.md":                    {recording: "09-straggler-4p"},
	"docs/raw.md":                  {recording: "09-straggler-4p"},
	"docs/tables.md": {recording: "09-straggler-4p",
		before: played + "mkdir runs && ln -s ../exp1 runs/1\n", needs: "nccl-otf2-query",
		engines: []string{"duckdb", "python"}},
	"docs/timeline.md": {recording: "09-straggler-4p",
		before: played + "ln -s exp1 before && ln -s exp1 after\n"},
}

// played makes the experiment of pages that begin behind a job.
const played = "nccl-otf2 replay 09-straggler-4p --clock recorded --dir exp1 >/dev/null\n"

// launcher is what starts the job on the pages: it starts four processes of a job, each of which plays its part of a
// recording at the recorded times.
const launcher = `#!/bin/bash
case "${0##*/} $*" in
  "torchrun --nproc-per-node "[48]" train.py" | "mpirun -np 4 ./all_reduce_perf -b 8 -e 128M" | "program ") ;;
  *) echo "started as $0 $*" >&2; exit 2 ;;
esac
export NCCL_OTF2_CLOCK=host WORLD_SIZE=4
for rank in 0 1 2 3; do RANK=$rank LOCAL_RANK=$rank %[1]s --clock recorded %[2]s/p$rank.program >/dev/null & jobs="$jobs $!"; done
for job in $jobs; do wait "$job" || exit 1; done
`

// walkers are the tests elsewhere that run the blocks of a page.
var walkers = map[string]string{
	"docs/slurm.md":           "tests/slurm.TestPage",
	"docs/tutorials/slurm.md": "tests/slurm.TestTutorial",
}

// A reader who does what a page says, with an installed tool in an empty directory, sees what it shows.
func TestTutorials(t *testing.T) {
	t.Parallel()
	pages := testkit.Value(filepath.Glob("../" + tutorials + "*.md"))(t)
	for _, page := range pages {
		name := strings.TrimPrefix(page, "../")
		_, known := visits[name]
		testkit.Check(t, known || walkers[name] != "" || filepath.Base(page) == "README.md", "nobody walks %s", page)
	}
	root := t.TempDir()
	makeInstall(t, "install", root, "lib")
	host := testkit.Value(os.Hostname())(t)
	for page, v := range visits {
		t.Run(strings.TrimSuffix(filepath.Base(page), ".md"), func(t *testing.T) {
			t.Parallel()
			_, err := os.Stat(filepath.Join(root, prefix, "bin", v.needs))
			need.NoError(t, v.needs+" (make query)", err)
			run := visitor(t, filepath.Join(root, prefix), v)
			if !v.whole {
				walk.Through(t, "../"+page, run)
				return
			}
			need.Reference(t, "otf2-print")
			walk.Page(t, "../"+page, run, " "+host+" ", " node1 ")
		})
	}
}

// visitor does what a page says, in an empty directory, with what is installed in a prefix and stand-ins that play a
// recording.
func visitor(t *testing.T, installation string, v visit) func(script string) (string, error) {
	t.Helper()
	stand := standIns(t, installation, v.recording)
	checkout := testkit.Value(filepath.Abs("../testdata"))(t)
	modules := filepath.Join(installation, "share/nccl-otf2/python")
	for _, engine := range v.engines {
		folder, err := filepath.Abs(filepath.Join("../build/engines", engine))
		if err == nil {
			_, err = os.Stat(filepath.Join(folder, "complete"))
		}
		need.NoError(t, engine+" for Python (scripts/engines.sh "+engine+")", err)
		modules += ":" + folder
	}
	return func(script string) (string, error) {
		c := exec.Command("bash", "-euo", "pipefail", "-c", v.before+script)
		c.Dir = t.TempDir()
		testkit.Must(t, os.Symlink(filepath.Join(stand, "program"), filepath.Join(c.Dir, "program")))
		testkit.Must(t, os.Symlink(checkout, filepath.Join(c.Dir, "testdata"))) // as in a checkout
		c.Env = append(os.Environ(), "PATH="+stand+":"+filepath.Join(installation, "bin")+":"+os.Getenv("PATH"),
			"PYTHONPATH="+modules, "MPLCONFIGDIR="+c.Dir)
		out, err := c.CombinedOutput()
		return string(out), err
	}
}

// standIns is a folder with programs that are not to be had here: launchers, and a program that is one process of a
// job.
func standIns(t *testing.T, installation, recording string) string {
	t.Helper()
	folder := t.TempDir()
	found := testkit.Value(replay.Find(recording))(t)
	rec := testkit.Value(replay.Load(found))(t)
	for k := range rec.Processes {
		program := testkit.Value(replay.Compile(rec, k))(t)
		testkit.Write(t, filepath.Join(folder, fmt.Sprintf("p%d.program", k)), program)
	}
	for _, name := range []string{"torchrun", "mpirun", "program"} {
		testkit.Script(t, filepath.Join(folder, name),
			fmt.Sprintf(launcher, filepath.Join(installation, replay.HostFile), folder))
	}
	return folder
}
