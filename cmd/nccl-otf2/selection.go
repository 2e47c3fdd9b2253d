// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/nccl-otf2/nccl-otf2/analysis/selection"
)

// addSelection gives a command the flags that choose a part of an archive.
func addSelection(cmd *cobra.Command, spec *selection.Spec) {
	cmd.Flags().StringVar(&spec.From, "from", "", "what begins from then on: 1.5s since the begin of the run, 10:38:05.5 or '2026-11-20 10:38:05.5' (UTC), @12.5s on the archive's clock")
	cmd.Flags().StringVar(&spec.To, "to", "", "what begins before then, as --from")
	cmd.Flags().StringVar(&spec.Ranks, "rank", "", "operations and rows of these ranks of the job: 3,5-7")
	cmd.Flags().StringVar(&spec.Comm, "comm", "", "operations of a communicator: its name, a pattern ('tp*'), or its id")
	cmd.Flags().StringVar(&spec.Phase, "phase", "", "what begins in a phase of the application: its name, a pattern, or NAME:N for each rank's N-th")
}
