// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/config"
	"github.com/nccl-otf2/nccl-otf2/internal/hidden"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

func TestGPUTimesAreEnsuredWhereAllProcessesGetThem(t *testing.T) {
	for _, c := range []struct {
		command, environment string
		value, says          string
	}{
		{"python train.py", "", "0", ""},
		{"torchrun --nproc-per-node 8 --nnodes 1 train.py", "", "0", ""},
		{"torchrun --nnodes=1 train.py", "", "0", ""},
		{"mpirun -np 4 ./all_reduce_perf", "", "0", ""},
		{"srun -N 2 train", "SLURM_JOB_NUM_NODES=2", "0", ""},
		{"./train", "SLURM_JOB_NUM_NODES=2 SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_NTASKS=4", "0", ""},
		{"./train", "SLURM_JOB_NUM_NODES=2 SLURM_STEP_ID=0 SLURM_PROCID=3 SLURM_NTASKS=4", "0", ""},
		{"mpirun -np 4 ./all_reduce_perf", "SLURM_JOB_NUM_NODES=2", "", "SLURM_JOB_NUM_NODES=2"},
		{"mpirun -np 4 ./all_reduce_perf", "PBS_NODEFILE=/var/spool/nodes", "", "PBS_NODEFILE"},
		{"mpirun -H a,b ./all_reduce_perf", "", "", "(-H:"},
		{"torchrun --nnodes 2 train.py", "", "", "(--nnodes:"},
		{"torchrun --nnodes=1:4 train.py", "", "", "(--nnodes=1:4:"},
		{"python train.py", "NCCL_ALLGATHERV_ENABLE=1", "1", ""},
		{"python train.py", "NCCL_ALLGATHERV_ENABLE=0", "0", ""},
		{"python train.py", "NCCL_OTF2_EVENTS=light", "", ""},
		{"python train.py", "NCCL_OTF2_EVENTS=light NCCL_OTF2_MODE=record", "0", ""},
		{"python train.py", "NCCL_OTF2_ENABLE=off", "", ""},
	} {
		env := newEnvironment(strings.Fields(c.environment))
		settings := testkit.Value(config.Load(env.lookup))(t)
		said := ensureGPUTimes(settings, env, strings.Fields(c.command))
		testkit.Equal(t, env.get(hidden.AllGatherV), c.value, "%q with %q: %s", c.command, c.environment,
			hidden.AllGatherV)
		testkit.Check(t, strings.Contains(said, c.says) && (said == "") == (c.says == ""),
			"%q with %q: says %q, want %q", c.command, c.environment, said, c.says)
	}
}
