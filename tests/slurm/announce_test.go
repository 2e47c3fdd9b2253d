// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// srun runs a step by a shell and gives what its tasks said on standard error.
func (j *job) srun(script string) string {
	j.t.Helper()
	j.must("bash", "-c", script+" 2>said")
	return string(j.read("said"))
}

// Where the archive is, and that a task has recorded nothing, is said once for a job, and not by each rank.
func TestWhatBecameOfARecordingIsSaidOnce(t *testing.T) {
	for _, c := range []struct {
		name, script, want string
		archive            bool // there is one at the end
	}{
		{"all record", "srun -N 2 --ntasks-per-node 2 nccl-otf2 run -- ./train", "nccl-otf2 report DIR", true},
		{"one does not",
			`srun -N 2 --ntasks-per-node 2 sh -c 'if [ "$SLURM_PROCID" = 2 ]; then exec nccl-otf2 run -- true; fi; exec nccl-otf2 run -- ./train'`,
			"rank 2 has recorded nothing: true did not load the plugin", false},
		{"none does", "srun -N 2 --ntasks-per-node 2 nccl-otf2 run -- true",
			" has recorded nothing: true did not load the plugin", false},
		{"no archive is wanted", "srun -N 2 --ntasks-per-node 2 nccl-otf2 run --unify=false -- ./train",
			"recorded in DIR; when all ranks have ended make the archive with `nccl-otf2 unify DIR`", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := newJob(t)
			said := j.srun(c.script)
			dir := "nccl-otf2-" + strconv.Itoa(j.first) + ".0"
			if want := strings.ReplaceAll(c.want, "DIR", dir); strings.Count(said, want) != 1 ||
				strings.Count(said, "unify "+dir)+strings.Count(said, "report "+dir) != 1 {
				t.Errorf("not once: %s\n%s", want, said)
			}
			_, err := os.Stat(filepath.Join(j.dir, dir, "traces.otf2"))
			testkit.Check(t, c.archive == (err == nil), "%v", err)
			if c.name == "one does not" {
				testkit.Contains(t, j.must("nccl-otf2", "unify", dir), "1 process of the job left nothing here")
			}
		})
	}
}
