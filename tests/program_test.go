// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/export"
	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/tests/realnccl/suite"
)

// programOf exports an archive as a program.
func programOf(t *testing.T, anchor string) string {
	t.Helper()
	a := testkit.Value(otf2.Open(anchor, nil))(t)
	defer a.Close()
	var out bytes.Buffer
	testkit.Value(export.Program(a, "-", &out, nil))(t)
	return out.String()
}

// ofTimes are the words of a program that depend on times.
var ofTimes = regexp.MustCompile(`^(work:.*|sync)$`)

// calledBy is a program without its comment, and without what depends on times.
func calledBy(program string) string {
	_, program, _ = strings.Cut(program, "\n")
	words := slices.DeleteFunc(strings.Fields(program), ofTimes.MatchString)
	return strings.ReplaceAll(strings.Join(words, " "), "?[", "?[\n") + "\n"
}

// A program has what the application called according to the recording, in this order, on its communicators.
func TestProgramsHaveWhatWasCalled(t *testing.T) {
	for _, name := range []string{"01-allreduce-2p", "02-allcoll-4p-net", "07-twocomms-streams", "09-straggler-4p"} {
		rec := recording(t, name)
		dir, _ := play(t, rec)
		program := programOf(t, filepath.Join(dir, "traces.otf2"))
		blocks := strings.Split(calledBy(program), "?[")[1:]
		for _, p := range rec.Processes {
			var want []string
			for _, call := range p.Issues {
				switch word := strings.TrimSuffix(call.Op, "i"); word {
				case "ar", "ag", "rs":
					want = append(want, fmt.Sprintf("%s:%d:", word, call.Count))
				case "bc", "rd":
					want = append(want, fmt.Sprintf("%s:%d:%s:", word, call.Count, call.Args[0]))
				}
			}
			got := regexp.MustCompile(`\b(ar|ag|rs|bc|rd):(\d+:)+`).FindAllString(blocks[p.Index], -1)
			testkit.Require(t, len(want) > 0, "%s: nothing was called", name)
			testkit.Same(t, got, want)
		}
	}
}

// Messages become single sends and receives in their groups, and each communicator keeps its stream.
func TestProgramsHaveGroups(t *testing.T) {
	var text strings.Builder
	for _, name := range []string{"03-onethread-4r-groups", "05-p2p-3p", "07-twocomms-streams"} {
		dir, _ := play(t, recording(t, name))
		fmt.Fprintf(&text, "# %s\n%s", name, calledBy(programOf(t, filepath.Join(dir, "traces.otf2"))))
	}
	golden.Text(t, "testdata/programs.txt", text.String())
}

// Played inside the real NCCL, a program calls what was recorded, in the same order, and the same rank is named.
func TestRealNCCLPlaysPrograms(t *testing.T) {
	if *realBeds == "" {
		t.Skip("NOT CHECKED here: `make real-nccl` plays exported programs inside the real NCCL")
	}
	bed := testkit.Value(suite.Open(strings.Split(*realBeds, ":")[0]))(t)
	for _, name := range []string{"05-p2p-3p", "07-twocomms-streams", "09-straggler-4p"} {
		rec := recording(t, name)
		dir, _ := play(t, rec)
		anchor := filepath.Join(dir, "traces.otf2")
		program, file := programOf(t, anchor), filepath.Join(t.TempDir(), "program.txt")
		testkit.Write(t, file, []byte(program))
		players := map[string]func(env []string){
			"ncclrun": func(env []string) {
				options, _, _ := strings.Cut(program, " @FILE")
				_, options, _ = strings.Cut(options, "ncclrun ")
				p := &suite.Program{Name: name, Args: strings.Fields(options), Text: "@" + file, Seconds: 60}
				res := testkit.Value(bed.Run(t.Context(), p, filepath.Join(t.TempDir(), "logs"), env...))(t)
				testkit.Require(t, res.Says() == "ok", "%s: %s\n%s", name, res.Says(), res.Output)
			},
			"ncclplay": func(env []string) { playAlone(t, bed, file, len(rec.Processes), env) },
		}
		for player, run := range players {
			again := filepath.Join(t.TempDir(), "experiment")
			run(append(settings(again), "NCCL_PROFILER_PLUGIN="+builtFile(t, "libnccl-profiler-otf2.so"),
				"NCCL_ALLGATHERV_ENABLE=0"))
			waitDone(t, again, len(rec.Processes))
			played := unified(t, again)
			testkit.Equal(t, blocksOf(programOf(t, played)), blocksOf(program), "%s, %s: calls", name, player)
			if name == "09-straggler-4p" {
				testkit.Equal(t, namedBy(t, played), namedBy(t, anchor), "%s: who made the others wait", player)
			}
		}
	}
}

// blocksOf is what ranks call, without the names of communicators, which ncclplay does not set.
func blocksOf(program string) string {
	_, blocks, _ := strings.Cut(calledBy(program), "?[")
	return blocks
}

// playAlone plays a program with the driver that needs only NCCL and CUDA, a process for each rank.
func playAlone(t *testing.T, bed *suite.Bed, program string, ranks int, env []string) {
	t.Helper()
	folder := t.TempDir()
	all := make([]*exec.Cmd, ranks)
	outputs := make([]bytes.Buffer, ranks)
	for r := range all {
		all[r] = exec.CommandContext(t.Context(), filepath.Join(bed.Dir, "ncclplay"), program, folder)
		all[r].Env = slices.Concat(os.Environ(), env, []string{fmt.Sprint("RANK=", r), fmt.Sprint("LOCAL_RANK=", r),
			fmt.Sprint("WORLD_SIZE=", ranks), "LD_LIBRARY_PATH=" + bed.Dir,
			"LD_PRELOAD=" + filepath.Join(bed.Dir, "libyield.so"), "NCCL_CUMEM_ENABLE=0", "NCCL_CUMEM_HOST_ENABLE=0",
			"NCCL_NVLS_ENABLE=0", "NCCL_SOCKET_IFNAME=lo", "NCCL_NET=Socket", "NCCL_IB_DISABLE=1", "NCCL_RAS_ENABLE=0",
			"NCCL_GRAPH_REGISTER=0", "NCCL_LOCAL_REGISTER=0", "NCCL_ALGO=Ring,Tree", "NCCL_PROTO=LL,Simple"})
		all[r].Stdout, all[r].Stderr = &outputs[r], &outputs[r]
		testkit.Must(t, all[r].Start())
	}
	for r, cmd := range all {
		err := cmd.Wait()
		testkit.Check(t, err == nil, "rank %d: %v\n%s", r, err, &outputs[r])
	}
}

// namedBy lists the ranks that the verdict names.
func namedBy(t *testing.T, anchor string) (names string) {
	t.Helper()
	a := testkit.Value(otf2.Open(anchor, nil))(t)
	defer a.Close()
	report := testkit.Value(operations.Observe(a, &operations.Observer{}))(t)
	for _, c := range report.Verdict.Culprits {
		names += fmt.Sprintln(c.Rank)
	}
	testkit.Require(t, names != "", "nobody is named")
	return names
}
