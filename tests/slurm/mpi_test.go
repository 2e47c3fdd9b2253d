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
	host, err := os.Hostname()
	testkit.Must(t, err)
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
				if err != nil || len(found) != 1 {
					t.Fatalf("archives: %v, %v", found, err)
				}
				dir := filepath.Base(filepath.Dir(found[0]))
				if hosts := j.hosts(dir); !slices.Equal(hosts, []string{host, host, host, host}) {
					t.Errorf("ranks on %v", hosts)
				}
				if said := j.must("nccl-otf2", "check", dir); said != all(t) {
					t.Errorf("%swant %s", said, all(t))
				}
			})
		}
	}
}
