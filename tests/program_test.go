// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"bytes"
	"context"
	"fmt"
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
func TestProgramsAreReproducers(t *testing.T) {
	if *realBeds == "" {
		t.Skip("NOT CHECKED here: `make real-nccl` plays an exported program inside the real NCCL")
	}
	bed := testkit.Value(suite.Open(strings.Split(*realBeds, ":")[0]))(t)
	for _, name := range []string{"05-p2p-3p", "07-twocomms-streams", "09-straggler-4p"} {
		dir, _ := play(t, recording(t, name))
		anchor := filepath.Join(dir, "traces.otf2")
		program := programOf(t, anchor)
		file := filepath.Join(t.TempDir(), "program.txt")
		testkit.Write(t, file, []byte(program))
		options, _, _ := strings.Cut(program, " @FILE")
		_, options, _ = strings.Cut(options, "ncclrun ")
		again := filepath.Join(t.TempDir(), "experiment")
		p := &suite.Program{Group: "exported", Name: name, Args: strings.Fields(options), Text: "@" + file, Seconds: 60}
		res := testkit.Value(bed.Run(context.Background(), p, filepath.Join(t.TempDir(), "logs"),
			append(settings(again), "NCCL_PROFILER_PLUGIN="+builtFile(t, "libnccl-profiler-otf2.so"),
				"NCCL_ALLGATHERV_ENABLE=0")...))(t)
		testkit.Require(t, res.Says() == "ok", "%s: %s\n%s", name, res.Says(), res.Output)
		waitDone(t, again, len(recording(t, name).Processes))
		played := unified(t, again)
		testkit.Equal(t, calledBy(programOf(t, played)), calledBy(program), "%s: calls", name)
		if name == "09-straggler-4p" {
			testkit.Equal(t, namedBy(t, played), namedBy(t, anchor), "who made the others wait")
		}
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
