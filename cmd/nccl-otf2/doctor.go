// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/nccl-otf2/nccl-otf2/cmd/nccl-otf2/internal/doctor"
	"github.com/nccl-otf2/nccl-otf2/internal/gpu"
	"github.com/nccl-otf2/nccl-otf2/internal/installed"
	"github.com/nccl-otf2/nccl-otf2/internal/printable"
)

func doctorCommand() *cobra.Command {
	var f choice
	var libraries []string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check whether a job started here would be recorded, and if not, why",
		Long: `Checks the installed files, the NCCL libraries of this machine, the environment, the experiment directory, limits,
clock and settings. Nothing is loaded or started: libraries are read as files, so you have to name a library with
--lib if a program brings its own from somewhere else.

The exit code is 1 if a check failed, which means that a job would not be recorded.`,
		Example: `  nccl-otf2 doctor
  nccl-otf2 doctor --lib /opt/nccl/lib/libnccl.so.2
  srun -n 1 nccl-otf2 doctor --format json`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			tool, err := installed.Tool()
			if err != nil {
				return err
			}
			r := doctor.Examine(&doctor.Options{
				Getenv: os.Getenv, Tool: tool, Libraries: libraries, CheckSettings: settingsForDoctor, NVML: gpu.Built,
			})
			return writeResult(cmd.OutOrStdout(), f, r, func(w io.Writer) { printDoctor(w, r) },
				r.Status == doctor.Fail)
		},
	}
	cmd.Flags().StringArrayVar(&libraries, "lib", nil,
		"NCCL library, or folder that contains one, to look at first (repeatable)")
	addFormat(cmd, &f)
	return cmd
}

var statusColors = map[doctor.Status]color{doctor.OK: green, doctor.Info: plain, doctor.Warn: yellow, doctor.Fail: red}

func printDoctor(w io.Writer, r *doctor.Report) {
	group := ""
	for _, c := range r.Checks {
		if c.Group != group {
			group = c.Group
			printable.Fprintln(w, paint(w, bold, group))
		}
		printable.Fprintf(w, "  %s  %s: %s\n", paint(w, statusColors[c.Status], fmt.Sprintf("%-4s", c.Status)), c.Name,
			c.Found)
		if c.Advice != "" {
			printable.Fprintf(w, "        %s\n", c.Advice)
		}
	}
	printable.Fprintln(w, map[doctor.Status]string{
		doctor.OK:   "Nothing here keeps a job from being recorded.",
		doctor.Warn: "Nothing here keeps a job from being recorded; see the warnings.",
		doctor.Fail: "A job started here would NOT be recorded: see the failed checks.",
	}[r.Status])
}
