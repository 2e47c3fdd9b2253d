// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nccl-otf2/nccl-otf2/cube"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/selfreport"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobfolder"
	"github.com/nccl-otf2/nccl-otf2/internal/printable"
	"github.com/nccl-otf2/nccl-otf2/internal/profile/cubex"
)

func profileCommand() *cobra.Command {
	var f choice
	var output, summary string
	var compress, singleRoot bool
	cmd := &cobra.Command{
		Use:   "profile ARCHIVE|DIR",
		Short: "Make a CUBE profile: times, bytes and waiting by call path and rank",
		Long: `Sums up an archive in one pass and writes a profile (*.cubex) for the CUBE browser and the cube_* tools:
calls of NCCL by phase of the program, operations by algorithm, protocol and size class, and network traffic by phase.
Each has its visits, time, bytes, wait states and bandwidths, for every thread and every rank of a communicator.
docs/cube.md lists trees and metrics.

A job in profile mode (NCCL_OTF2_MODE=profile) leaves no events. For such a job, the profile and the summary are made
from the sums of its processes, both while it runs and after its end.`,
		Example: `  nccl-otf2 profile exp1
  nccl-otf2 profile exp1 -o exp1.cubex --summary exp1.json
  cube_stat -p -t 20 exp1.cubex
  nccl-otf2 print --cube exp1.cubex`,
		Args: exactArgs("an experiment directory or archive"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if output != "" && !strings.HasSuffix(output, cube.Suffix) {
				return usagef("profile %q: tools take names that end in %s only", output, cube.Suffix)
			}
			in, err := readProfile(args[0])
			if err != nil {
				return err
			}
			out := output
			if out == "" {
				out = filepath.Join(in.dir, cubex.FileName)
			}
			sum := in.Summary()
			if singleRoot {
				in.SingleRoot()
			}
			if err := unwritable(in.Write(out, compress), out, "-o"); err != nil {
				if len(in.problems) > 0 {
					err = fmt.Errorf("%w (%s)", err, strings.Join(in.problems, "; "))
				}
				return err
			}
			if summary != "" {
				if err := unwritable(cubex.WriteSummary(summary, sum), summary, "--summary"); err != nil {
					return err
				}
			}
			return writeResult(cmd.OutOrStdout(), f, sum, func(w io.Writer) {
				printProfile(w, out, in.Profile, append(in.remarks, in.problems...))
			}, in.damaged)
		},
	}
	fl := cmd.Flags()
	fl.StringVarP(&output, "output", "o", "",
		"file to write, with a name that ends in .cubex (default: profile.cubex beside the archive)")
	fl.StringVar(
		&summary, "summary", "", "JSON file to write with figures by operation (median, 99th percentile, bandwidths)")
	fl.BoolVar(&compress, "compress", false, "compress the values; not all builds of the CUBE tools can read that")
	fl.BoolVar(&singleRoot, "single-root", false,
		"put one root above all trees, for tools that expect only one (pycubexr, Extra-P)")
	addFormat(cmd, &f)
	return cmd
}

// profiledInput is the profile of a path argument.
type profiledInput struct {
	*cubex.Profile
	dir      string   // folder of the profile
	remarks  []string // what the profile lacks
	problems []string // input that could not be used
	damaged  bool     // some recorded data cannot be read
}

// readProfile computes the profile of a path argument.
func readProfile(arg string) (*profiledInput, error) {
	if isDir(arg) && inProfileMode(arg) {
		jobs, left, err := cubex.FromShards(arg)
		if err != nil {
			return nil, err
		}
		newest := jobs[len(jobs)-1]
		if len(jobs) > 1 {
			var others []string
			for _, j := range slices.Backward(jobs[:len(jobs)-1]) {
				others = append(others, j.Dir)
			}
			printable.Fprintln(os.Stderr, "nccl-otf2:", jobfolder.DescribeOthers(arg, newest.Dir, others))
		}
		newest.Creator = creator()
		return &profiledInput{newest.Profile, newest.Dir, (&madeProfile{Job: newest}).remarks(), left.Problems,
			len(left.Damaged) > 0}, nil
	}
	a, err := openArchive(arg)
	if a == nil {
		return nil, err
	}
	defer a.Close()
	in := &profiledInput{dir: filepath.Dir(a.Path()), remarks: selfreport.Differing(a.Anchor)}
	if err != nil { // damaged definitions: use the readable part
		in.problems = append(in.problems, oneLine(err.Error()))
	}
	progress := newProgress()
	defer progress.showWorking("reading " + a.Path())()
	p, report, err := cubex.FromArchive(a)
	if err != nil {
		return nil, err
	}
	if p.Count().Locations == 0 {
		if len(in.problems) > 0 { // the reason
			return nil, errors.New(in.problems[0])
		}
		return nil, fmt.Errorf("%s has no locations: there is nothing to make a profile of", a.Path())
	}
	p.Creator = creator()
	in.Profile, in.problems = p, append(in.problems, report.Problems...)
	in.damaged = len(in.problems) > 0
	return in, nil
}

func creator() string { return "nccl-otf2 " + toolVersion }

// madeProfile is the profile of a job in profile mode.
type madeProfile struct {
	*cubex.Job `json:"-"`
	Path       string `json:"profile"`
	Summary    string `json:"summary"`
	Running    int    `json:"running"`
	Crashed    int    `json:"crashed"`
	Missing    int    `json:"missing"`

	Problems []string `json:"problems,omitempty"`
	damaged  bool     // some of them report recorded data that cannot be read
}

// makeProfiles writes the profiles of the jobs in profile mode.
func makeProfiles(dir string) ([]madeProfile, error) {
	jobs, left, err := cubex.MakeFiles(dir, creator())
	if err != nil {
		return nil, err
	}
	all := make([]madeProfile, len(jobs))
	for i, j := range jobs {
		all[i] = madeProfile{Job: j, Path: filepath.Join(j.Dir, cubex.FileName),
			Summary: filepath.Join(j.Dir, cubex.SummaryName),
			Running: j.Running, Crashed: j.Crashed, Missing: j.Missing}
	}
	if len(all) > 0 {
		all[0].Problems, all[0].damaged = left.Problems, len(left.Damaged) > 0
	}
	return all, nil
}

// remarks states what the profile lacks.
func (m *madeProfile) remarks() (list []string) {
	for _, r := range []struct {
		n    int
		text string
	}{
		{m.Job.Running, "still running: what they have done up to some seconds ago is in the profile"},
		{m.Job.Crashed, "ended without completing: the profile has what they had done some seconds before"},
		{m.Job.Missing, "of the job left nothing here"},
	} {
		if r.n > 0 {
			list = append(list, count(r.n, "process", "processes")+" "+r.text)
		}
	}
	return append(list, m.Problems...)
}

func (m *madeProfile) print(w io.Writer) {
	printProfile(w, m.Path, m.Profile, m.remarks())
	printable.Fprintf(w, "  figures by operation: %s\n", relativePath(m.Summary))
}

// printProfile summarizes the profile.
func printProfile(w io.Writer, path string, p *cubex.Profile, problems []string) {
	c := p.Count()
	printable.Fprintln(w, paint(w, bold, relativePath(path)))
	printable.Fprintf(w, "  %s, %s, %s, %s\n", count(c.Processes, "process", "processes"),
		count(c.Locations, "location", "locations"),
		count(c.CallPaths, "call path", "call paths"), count(c.Visits, "visit", "visits"))
	for _, problem := range append(problems, profileLosses(p).formatLines(false)...) {
		printable.Fprintf(w, "  %s %s\n", paint(w, yellow, "!"), oneLine(problem))
	}
}
