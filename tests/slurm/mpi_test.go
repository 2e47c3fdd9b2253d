// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/need"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// MPI's own launchers, without Slurm: one archive that is there when the launcher has ended, whether it starts run or
// run starts it.
func TestMPILaunchers(t *testing.T) {
	host := testkit.Value(os.Hostname())(t)
	for _, launcher := range []struct{ program, debian string }{{"mpirun.openmpi", "openmpi-bin"},
		{"mpirun.mpich", "mpich"}} {
		for name, line := range map[string][]string{
			"for each rank": {launcher.program, "-np", "4", "nccl-otf2", "run", "--", "./train"},
			"for the job":   {"nccl-otf2", "run", "--", launcher.program, "-np", "4", "./train"},
		} {
			t.Run(launcher.program+" "+name, func(t *testing.T) {
				j := newJob(t)
				need.Program(t, launcher.program, "Debian: "+launcher.debian)
				// Open MPI starts neither as root nor more processes than processors unless it is told to.
				j.must("env", append([]string{"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
					"OMPI_MCA_rmaps_base_oversubscribe=1"}, line...)...)
				found, err := filepath.Glob(filepath.Join(j.dir, "nccl-otf2-*", "traces.otf2"))
				testkit.Require(t, err == nil && len(found) == 1, "archives: %v, %v", found, err)
				dir := filepath.Base(filepath.Dir(found[0]))
				hosts := j.hosts(dir)
				testkit.Check(t, slices.Equal(hosts, []string{host, host, host, host}), "ranks on %v", hosts)
				said := j.must("nccl-otf2", "check", dir)
				testkit.Check(t, said == all(t), "%swant %s", said, all(t))
			})
		}
	}
}
