// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// rocpdJob makes up databases of rocprofv3, of the same job as nsightJob.
type rocpdJob struct {
	ranks, steps int
	late         func(rank, step int) int // ms by which a rank calls later
	noCalls      bool                     // without --rccl-trace
	noHIP        bool                     // without --hip-trace: no launches
	noArguments  bool
	comms        int   // further communicators that each process makes
	hosts        bool  // each rank has its own
	booted       int64 // ns by which a host has run longer than the one before
	merged       bool  // one file has all databases
	schema       int   // 4: kernels have no times
}

// files are the tables of each file.
func (j *rocpdJob) files() (all [][]*madeTable) {
	for rank := range j.ranks {
		id := fmt.Sprintf("%08x_5ba1", 0xabc0+rank)
		table := func(name string, columns ...string) *madeTable {
			return &madeTable{name: name + "_" + id, columns: columns}
		}
		texts := table("rocpd_string", "id", "guid", "string")
		for i, name := range []string{"hipLaunchKernel", "ncclCommInitRank", "ncclAllReduce", "hipMalloc"} {
			texts.add(i+1, id, name)
		}
		node := table("rocpd_info_node", "id", "hostname")
		host := 0
		if j.hosts {
			host = rank
		}
		node.add(1, fmt.Sprintf("node%d", host))
		process := table("rocpd_info_process", "id", "nid", "pid")
		process.add(4000+rank, 1, 4000+rank)
		agent := table("rocpd_info_agent", "id", "type_index")
		agent.add(2, 0)
		agent.add(4+rank, rank)
		symbols := table("rocpd_info_kernel_symbol", "id", "kernel_name", "display_name")
		symbols.add(7, "gemm.kd", "gemm")
		symbols.add(8, "_Z24ncclDevKernel_Generic_1.kd", "ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)")
		kernels := table("rocpd_kernel_dispatch", "start", "end", "pid", "agent_id", "kernel_id", "stream_id", "event_id")
		if j.schema == 4 {
			kernels.columns[0], kernels.columns[1] = "start_id", "end_id"
		}
		regions := table("rocpd_region", "start", "end", "pid", "tid", "name_id", "event_id")
		events := table("rocpd_event", "id", "stack_id")
		arguments := table("rocpd_arg", "event_id", "position", "name", "value")
		pid, event, stack := 4000+rank, 0, 100
		add := func(begin, end int64, name int, values ...any) (own int) {
			event, stack = event+1, stack+1
			events.add(event, stack)
			regions.add(begin, end, pid, 5, name, event)
			for i := 0; i < len(values); i += 2 {
				arguments.add(event, i/2, values[i], fmt.Sprint(values[i+1]))
			}
			return stack
		}
		boot := 5_000_000_000_000 + int64(host)*j.booted
		for range 1 + j.comms {
			add(boot+1000, boot+90_000_000, 2, "comm", "0x7ffe10", "nranks", j.ranks, "rank", rank)
		}
		for step := range j.steps {
			last, late := int64(0), int64(0)
			for r := range j.ranks {
				behind := 10_000 * int64(r)
				if j.late != nil {
					behind += int64(j.late(r, step)) * 1_000_000
				}
				if last = max(last, behind); r == rank {
					late = behind
				}
			}
			begin := boot + 100_000_000 + 30_000_000*int64(step)
			ran, by := begin+late, stack
			if !j.noCalls {
				by = add(ran-25_000, ran-2000, 3, "count", 1<<20, "datatype", 7, "op", 0, "comm",
					fmt.Sprintf("0x%x", 0x55500000+rank), "stream", "0x1")
			}
			if !j.noHIP {
				by = add(ran-12_000, ran-3000, 1)
			}
			event++
			events.add(event, by)
			kernels.add(ran, begin+last+2_000_000, pid, 4+rank, 8, 3, event)
			kernels.add(begin-21_000_000, ran-1_000_000, pid, 4+rank, 7, 1, nil)
		}
		if j.noArguments {
			arguments.rows = nil
		}
		file := []*madeTable{texts, node, process, agent, symbols, kernels, regions, events, arguments}
		if j.merged && rank > 0 {
			all[0] = append(all[0], file...)
		} else {
			all = append(all, file)
		}
	}
	return all
}

// The late rank of a job is named from what rocprofv3 recorded of its ranks, and nobody is accused of what it does not
// tell.
func TestDatabasesOfRocprofv3(t *testing.T) {
	const late = "Rank 1 on node0 made the others wait: 100 % of 120 ms waited, summed over 2 ranks. It called " +
		"ncclAllReduce 15.0 ms after the others, 8 of 23 times, every third call."
	const rests = "(From rocprofv3: times of kernels and of calls, while it recorded.)"
	const guessed = "the only one of each of 2 processes is taken to be the same"
	for _, c := range []struct {
		name  string
		job   rocpdJob
		says  []string
		named bool
	}{
		{"one for each rank", rocpdJob{}, []string{late, rests}, true},
		{"merged", rocpdJob{merged: true}, []string{late}, true},
		{"without calls of HIP", rocpdJob{noHIP: true}, []string{late}, true},
		{"of hosts that were booted on other days", rocpdJob{hosts: true, booted: 5 * 86_400_000_000_000},
			[]string{"Rank 1 on node1 made the others wait", "8 of 23 times"}, true},
		{"in which nobody is late", rocpdJob{late: func(int, int) int { return 0 }}, []string{"Nobody stands out"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.job.ranks, c.job.steps = 2, 24
			if c.job.late == nil {
				c.job.late = lateOne
			}
			in, tables := writeMade(t, c.job.files())
			res, report := importTorch(t, in, &Options{Tables: tables})
			testkit.Check(t, res.Malformed == 0 && res.Processes == 2 && len(res.NotUsed) == 0, "%+v", res)
			testkit.Contains(t, report.Verdict.Text, c.says...)
			testkit.Contains(t, strings.Join(res.Problems, "\n"), guessed)
			testkit.Check(t, report.Verdict.StandsOut == c.named, "%s", report.Verdict.Text)
		})
	}
}

// What cannot be imported is said in one line, with the next step.
func TestDatabasesOfRocprofv3ThatCannotBeImported(t *testing.T) {
	const unknown = "it is not known which communicators of processes belong together"
	for _, c := range []struct {
		name string
		job  rocpdJob
		part int // of the files
		says string
	}{
		{"without calls of RCCL", rocpdJob{noCalls: true, comms: -1, steps: 3}, 2, "no calls of RCCL, so it is not known"},
		{"without arguments", rocpdJob{noArguments: true, steps: 3}, 2, unknown},
		{"of two communicators", rocpdJob{comms: 1, steps: 3}, 2, unknown},
		{"of one rank", rocpdJob{steps: 3}, 1, "give the databases of all ranks"},
		{"without kernels of RCCL", rocpdJob{}, 2, "no kernels"},
		{"of a newer schema", rocpdJob{schema: 4, steps: 3}, 2, "is of another schema of rocpd than 3"},
	} {
		c.job.ranks = 2
		in, tables := writeMade(t, c.job.files()[:c.part])
		_, err := Import([]string{in}, filepath.Join(t.TempDir(), "out"), &Options{Tables: tables})
		testkit.Check(t, err != nil && strings.Contains(err.Error(), c.says) && !strings.Contains(err.Error(), "\n"),
			"%s: %v", c.name, err)
	}
}

// The program that reads SQLite has the same rows in its tests.
func TestRowsOfRocprofv3InTestdata(t *testing.T) {
	request := testkit.Value(json.Marshal(slices.Concat(nsightTables, rocpdTables)))(t)
	file := (&rocpdJob{ranks: 2, steps: 12, merged: true, late: lateAlways}).files()[0]
	golden.Text(t, "../../cmd/nccl-otf2-query/testdata/rocpd.sql", sqlOf(file))
	golden.Text(t, "../../cmd/nccl-otf2-query/testdata/rocpd.rows", testkit.Value(rowsOf(file, request))(t))
}
