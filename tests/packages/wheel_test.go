// SPDX-License-Identifier: Apache-2.0

package packages

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// phases is what the README shows, and says whether it is in a recorded process.
const phases = `
import nccl_otf2
with nccl_otf2.phase("step 1"):
    pass
nccl_otf2.mark("learning rate 1e-4")
print("done")
`

// A new virtual environment gets tool, plugin and module from the wheel alone; one variable records a job; nothing is
// left afterwards.
func TestWheel(t *testing.T) {
	file := packages(t, "*_"+nativeMachine(t)+".whl", 1)[0]
	venv := filepath.Join(t.TempDir(), "venv")
	testkit.Output(t, exec.Command("python3", "-m", "venv", venv))
	before := files(t, venv)
	p := place{dir: t.TempDir()}
	python := filepath.Join(venv, "bin/python")
	pip := []string{"-m", "pip", "--quiet", "--disable-pip-version-check"}
	p.run(t, python, append(pip, "install", "--no-index", "--no-compile", file)...)
	tool := filepath.Join(venv, "bin/nccl-otf2")
	p.records(t, tool)
	testkit.Equal(t, p.run(t, python, "-B", "-c", phases), "done\n", "phases")
	plugin := strings.TrimSpace(p.run(t, python, "-B", "-m", "nccl_otf2", "plugin"))
	one := place{dir: t.TempDir(), env: []string{"NCCL_PROFILER_PLUGIN=" + plugin, "NCCL_ALLGATHERV_ENABLE=0",
		"NCCL_RUNTIME_CONNECT=0", "NCCL_OTF2_CLOCK=host"}}
	one.plays(t, "09-straggler-4p", filepath.Join(venv, replay.HostFile))
	answers(t, one.run(t, tool, "report", one.made(t)))
	p.run(t, python, append(pip, "uninstall", "--yes", "nccl-otf2")...)
	for name := range files(t, venv) {
		info, err := os.Stat(filepath.Join(venv, name))
		testkit.Check(t, before[name] || err == nil && info.IsDir(), "left: %s", name)
	}
}

// made waits for the archive that the job's last collector makes, and gives the experiment directory.
func (p place) made(t *testing.T) string {
	t.Helper()
	for {
		archives := testkit.Value(filepath.Glob(filepath.Join(p.dir, "nccl-otf2-*/traces.otf2")))(t)
		if len(archives) == 1 {
			return filepath.Dir(archives[0])
		}
		select {
		case <-t.Context().Done():
			t.Fatalf("archives: %q, want one", archives)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// plays runs the four processes of a recorded job with a host, a command; what records them is in their environment
// alone.
func (p place) plays(t *testing.T, recording, host string) {
	t.Helper()
	rec := testkit.Value(replay.Load(filepath.Join("../../testdata/nccl-callbacks", recording)))(t)
	programs := t.TempDir()
	script := "export WORLD_SIZE=4\n"
	for k := range rec.Processes {
		program := testkit.Value(replay.Compile(rec, k))(t)
		name := filepath.Join(programs, string(rune('0'+k)))
		testkit.Write(t, name, program)
		script += "RANK=" + string(rune('0'+k)) + " " + host + " --clock recorded " + name +
			" >/dev/null &\njobs=\"$jobs $!\"\n"
	}
	p.run(t, "/bin/sh", "-ec", script+"for job in $jobs; do wait $job; done")
}
