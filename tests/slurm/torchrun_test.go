// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// agent stands for torchrun, of which there is no build without GPUs to install: it starts the workers of its node with
// the variables that torchrun's agent gives them, beside those of Slurm, which are the agent's own. What rendezvous
// would agree on, which node is which, it takes from REVERSE: 1, the second node has the first ranks.
const agent = `#!/bin/sh
[ "$1 $2 $3 $4" = "--nnodes 2 --nproc-per-node 2" ] || exit 2
group=$((REVERSE ? 1 - SLURM_NODEID : SLURM_NODEID))
for local in 0 1; do
  LOCAL_RANK=$local RANK=$((2 * group + local)) GROUP_RANK=$group ROLE_RANK=$((2 * group + local)) ROLE_NAME=default \
    LOCAL_WORLD_SIZE=2 WORLD_SIZE=4 GROUP_WORLD_SIZE=2 ROLE_WORLD_SIZE=4 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 \
    TORCHELASTIC_RESTART_COUNT=0 TORCHELASTIC_MAX_RESTARTS=0 TORCHELASTIC_RUN_ID=$RUN_ID TORCHELASTIC_USE_AGENT_STORE=True ./train &
done
wait
`

// Two agents of torchrun's, one on each node, each under its own run: one archive, whose ranks are torchrun's and not
// Slurm's, whichever node rendezvous has made the first, and whether or not the run has an id.
func TestTorchrunOnTwoNodes(t *testing.T) {
	for _, id := range []string{"none", "run-9"} {
		for _, reverse := range []string{"0", "1"} {
			t.Run(id+" "+reverse, func(t *testing.T) {
				j := newJob(t)
				testkit.Script(t, filepath.Join(j.dir, "torchrun"), agent)
				j.must("env", "RUN_ID="+id, "REVERSE="+reverse, "NCCL_ALLGATHERV_ENABLE=0", "srun", "-N", "2",
					"--ntasks-per-node", "1",
					"nccl-otf2", "run", "--", "./torchrun", "--nnodes", "2", "--nproc-per-node", "2")
				dir := "nccl-otf2-" + strconv.Itoa(j.first) + ".0"
				want := []string{"node1", "node1", "node2", "node2"}
				if reverse == "1" {
					slices.Reverse(want)
				}
				hosts := j.hosts(dir)
				testkit.Check(t, slices.Equal(hosts, want), "ranks on %v, want %v", hosts, want)
				said := j.must("nccl-otf2", "check", dir)
				testkit.Check(t, said == all(t), "%swant %s", said, all(t))
			})
		}
	}
}
