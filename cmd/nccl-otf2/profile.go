// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"ncclotf2/cube"
	"ncclotf2/profile/cubex"
)

func profileCommand() *cobra.Command {
	var f format
	var output, summary string
	var compress bool
	cmd := &cobra.Command{
		Use:   "profile ARCHIVE|DIR",
		Short: "Make a CUBE profile: times, bytes and waiting by call path and rank",
		Long: `Sums up an archive in one pass and writes a profile (*.cubex) for the CUBE browser and the cube_* tools:
calls of NCCL by phase of the program, operations by algorithm, protocol and class of sizes, network
traffic by phase; for each its visits, time, bytes, wait states and bandwidths, for every thread and every
rank of a communicator. docs/cube.md lists trees and metrics.

Of a job in profile mode (NCCL_OTF2_MODE=profile), which leaves no events, it makes profile and summary
from what the processes summed up, while the job runs as well as after its end.`,
		Example: `  nccl-otf2 profile exp1
  nccl-otf2 profile exp1 -o exp1.cubex --summary exp1.json
  cube_stat -p -t 20 exp1.cubex
  nccl-otf2 print --cube exp1.cubex`,
		Args: exactly("an experiment directory or archive"),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, problems, err := profileOf(args[0])
			if err != nil {
				return err
			}
			out := output
			if out == "" {
				if out, err = profileFile(args[0]); err != nil {
					return err
				}
			}
			if err := p.Write(out, compress); err != nil {
				if errors.Is(err, cube.ErrInvalid) {
					return usageError{err}
				}
				return err
			}
			sum := p.Summary()
			if summary != "" {
				if err := writeSummary(summary, sum); err != nil {
					return err
				}
			}
			w := cmd.OutOrStdout()
			if f == formatJSON {
				err = writeJSON(w, sum)
			} else {
				err = printProfile(w, out, p, problems)
			}
			if err != nil {
				return readerGone(err)
			}
			if len(problems) > 0 {
				return exitCode(exitInput)
			}
			return nil
		},
	}
	fl := cmd.Flags()
	fl.StringVarP(&output, "output", "o", "", "the profile, a name that ends in .cubex (default: profile.cubex beside the archive)")
	fl.StringVar(&summary, "summary", "", "a file for figures by operation (median, 99th percentile, bandwidths) in JSON")
	fl.BoolVar(&compress, "compress", false, "compress the values: not all builds of the CUBE tools read that")
	addFormat(cmd, &f)
	return cmd
}

// profileName is the file of a profile in an experiment directory.
const profileName = "profile" + cube.Suffix

func profileFile(arg string) (string, error) {
	anchor, err := anchorPath(arg)
	if err != nil {
		return "", err
	}
	return filepath.Join(filepath.Dir(anchor), profileName), nil
}

// profileOf sums up what a path argument means.
func profileOf(arg string) (*cubex.Profile, []string, error) {
	a, err := openArchive(arg)
	if a == nil {
		return nil, nil, err
	}
	defer a.Close()
	var problems []string
	if err != nil { // definitions are damaged; what is there counts
		problems = append(problems, oneLine(err.Error()))
	}
	progress := newProgress()
	defer progress.working("reading " + a.Path())()
	p, report, err := cubex.FromArchive(a)
	if err != nil {
		return nil, nil, err
	}
	p.Creator = "nccl-otf2 " + toolVersion
	return p, append(problems, report.Problems...), nil
}

func writeSummary(path string, s *cubex.Summary) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(writeJSON(file, s), file.Close())
}

// printProfile says what is in the profile.
func printProfile(w io.Writer, path string, p *cubex.Profile, problems []string) error {
	c := p.Count()
	fmt.Fprintln(w, paint(w, bold, relative(path)))
	_, err := fmt.Fprintf(w, "  %s, %s, %s, %s\n", count(c.Processes, "process", "processes"), count(c.Locations, "location", "locations"),
		count(c.CallPaths, "call path", "call paths"), count(c.Visits, "visit", "visits"))
	for _, problem := range problems {
		fmt.Fprintf(w, "  %s %s\n", paint(w, yellow, "!"), oneLine(problem))
	}
	return err
}
