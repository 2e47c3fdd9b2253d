// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/nccl-otf2/nccl-otf2/internal/regular"
)

// jobSteps lists the variables of job launchers for the job, its step, and the attempt. The first row whose job
// variable is set applies; the parts are joined by dots. The plugin uses the same table for spool files
// (plugin/settings_table.h).
var jobSteps = []struct{ job, step, attempt string }{
	{"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT"},
	{"PMIX_NAMESPACE", "", ""},
	{"LSB_JOBID", "", ""},
	{"PBS_JOBID", "", ""},
	{"FLUX_JOB_ID", "", ""},
	{"TORCHELASTIC_RUN_ID", "", "TORCHELASTIC_RESTART_COUNT"},
}

// noJob is torchelastic's value for a job without an id.
const noJob = "none"

// StepID identifies the job step and attempt that the environment belongs to, the same in all its
// processes; "" if nothing does.
func StepID(lookup Lookup) string {
	for _, s := range jobSteps {
		id := lookup.lookupValue(s.job)
		if id == "" || id == noJob {
			continue
		}
		if v := lookup.lookupValue(s.step); v != "" && !slices.Contains(noSteps, v) {
			id += "." + v
		}
		if v := lookup.lookupValue(s.attempt); v != "" {
			id += "." + v
		}
		return regular.FileName(id)
	}
	return ""
}

// noSteps are the numbers of Slurm steps that srun did not start: the shell of salloc, and a batch script (slurm.h:
// SLURM_INTERACTIVE_STEP, SLURM_BATCH_SCRIPT).
var noSteps = []string{"4294967290", "4294967291"}

// outsideOfSteps reports whether a process belongs to a Slurm job but to none of its steps: it is in a batch script, or
// in a shell of salloc. Slurm says that these are task 0 of as many as the job has, and what they start inherits that.
func outsideOfSteps(lookup Lookup) bool {
	step := lookup.lookupValue("SLURM_STEP_ID")
	return lookup.lookupValue("SLURM_JOB_ID") != "" && (step == "" || slices.Contains(noSteps, step))
}

// Directory returns the experiment directory: the setting DIR, else nccl-otf2-<id> in the working
// directory, where id is the job step's, else the commId of the process's first communicator.
func (s *Settings) Directory(lookup Lookup, firstCommID uint64) string {
	if s.Dir != "" {
		return s.Dir
	}
	if id := StepID(lookup); id != "" {
		return "nccl-otf2-" + id
	}
	return fmt.Sprintf("nccl-otf2-%016x", firstCommID)
}

// Launcher describes the place of a process in its job, as its launcher reports it.
type Launcher struct {
	Name string // "slurm", "openmpi", …; "" if nothing was found
	Rank int    // world rank, −1 if unknown
	Size int    // number of processes, −1 if unknown
}

// launchers lists the variables by which launchers number their processes. Open MPI stands before PMIx and PMI,
// which it sets too; torchrun is last, because its workers may run under any of the others and then have
// those variables of their agent. It is found by its own variables first.
var launchers = []struct{ name, mark, rank, size string }{
	{"torchrun", "TORCHELASTIC_RUN_ID", "RANK", "WORLD_SIZE"},
	{"openmpi", "", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
	{"mvapich2", "", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"},
	{"flux", "", "FLUX_TASK_RANK", "FLUX_JOB_SIZE"},
	{"slurm", "", "SLURM_PROCID", "SLURM_NTASKS"},
	{"pmix", "", "PMIX_RANK", "PMIX_SIZE"},
	{"pmi", "", "PMI_RANK", "PMI_SIZE"},
	{"torchrun", "", "RANK", "WORLD_SIZE"},
}

// NumberingVariables are those by which launchers number processes, their places on a node included: a process of a job
// that is started inside another one must not have those of the outer job.
func NumberingVariables() []string {
	names := slices.Clone(localVariables)
	for _, l := range launchers {
		names = append(names, l.mark, l.rank, l.size)
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" })
}

// localVariables number processes otherwise: on their node, in their group, or by names of which only the presence is
// looked at.
var localVariables = []string{
	"LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "ROLE_RANK", "SLURM_LOCALID", "SLURM_NPROCS", "PMIX_NAMESPACE",
	"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "JSM_NAMESPACE_RANK", "PALS_RANKID",
}

// FindLauncher reads a process's world rank from its environment.
func FindLauncher(lookup Lookup) Launcher {
	for _, l := range launchers {
		if l.mark != "" && lookup.lookupValue(l.mark) == "" || l.name == "slurm" && outsideOfSteps(lookup) {
			continue
		}
		rank, err := strconv.Atoi(lookup.lookupValue(l.rank))
		if err != nil || rank < 0 {
			continue
		}
		size, err := strconv.Atoi(lookup.lookupValue(l.size))
		if err != nil || size <= rank {
			size = -1
		}
		return Launcher{Name: l.name, Rank: rank, Size: size}
	}
	return Launcher{Rank: -1, Size: -1}
}
