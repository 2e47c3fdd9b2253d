// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/config"
	"github.com/nccl-otf2/nccl-otf2/internal/hidden"
)

// ensureGPUTimes sets the variable that the plugin needs to request GPU times from NCCL 2.29 and newer (docs/gpu.md):
// it keeps NCCL from running Broadcasts as AllGatherV. All processes of a job must agree on it, so ensureGPUTimes does
// not change it where it may not reach all processes, or where the user has set it. It returns a message if some
// processes of the job may not be children of this one, else "".
func ensureGPUTimes(s *config.Settings, env *environment, args []string) string {
	stamps, _ := config.ParseEvents("KernelCh")
	if !s.Enable || !s.Record && s.Events&stamps == 0 || env.get(hidden.AllGatherV) != "" {
		return ""
	}
	if sign := otherHosts(env, args); sign != "" {
		return "no GPU times with " + hidden.Unsafe + ": for them set " + hidden.AllGatherV +
			"=0 in all processes of the job (" +
			sign + ": it may not reach all of them from here)"
	}
	env.set(hidden.AllGatherV, "0")
	return ""
}

// Options of launchers that name other hosts, or the number of hosts.
var (
	hostOptions  = []string{"H", "host", "hosts", "hostfile", "machinefile", "hostlist"}
	countOptions = []string{"nnodes", "num_nodes", "num-nodes", "num_machines", "num-machines"}
)

// Variables of batch systems: the number of a job's hosts, and the file that lists them.
var (
	countVariables = []string{"SLURM_JOB_NUM_NODES", "SLURM_NNODES", "NNODES", "PET_NNODES"}
	listVariables  = []string{"PBS_NODEFILE", "LSB_DJOB_HOSTFILE", "PE_HOSTFILE", "OMPI_MCA_orte_default_hostfile"}
)

// otherHosts returns the option or variable that shows that a command runs on several hosts, to which not all launchers
// pass the environment; "" if there is none. A launcher that starts `run` once per rank runs the same command on all
// hosts, and srun passes the environment on.
func otherHosts(env *environment, args []string) string {
	for i, arg := range args[1:] {
		name, value, joined := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		switch {
		case !strings.HasPrefix(arg, "-"):
		case slices.Contains(hostOptions, name):
			return arg
		case slices.Contains(countOptions, name):
			if !joined && i+2 < len(args) {
				value = args[i+2]
			}
			if value != "1" {
				return arg
			}
		}
	}
	if startedPerRank(env) || filepath.Base(args[0]) == "srun" {
		return ""
	}
	for _, name := range countVariables {
		if n, err := strconv.Atoi(env.get(name)); err == nil && n > 1 {
			return name + "=" + env.get(name)
		}
	}
	for _, name := range listVariables {
		if env.get(name) != "" {
			return name
		}
	}
	return ""
}
