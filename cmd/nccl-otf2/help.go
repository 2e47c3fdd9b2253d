// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nccl-otf2/nccl-otf2/internal/folding"
)

// helpWidth is the maximum width of help texts, and the width if the output is not a terminal.
const helpWidth = 100

// writeHelp writes the help text of a command in lines that fit the terminal.
func writeHelp(cmd *cobra.Command, w io.Writer) error {
	width := helpWidth
	if n := terminalWidth(w); n > 0 {
		width = min(n, helpWidth)
	}
	text := cmp.Or(cmd.Long, cmd.Short)
	usage, flags, found := strings.Cut(cmd.UsageString(), "\nFlags:\n")
	if _, err := io.WriteString(w, folding.Prose(text, width)+"\n"+usage); err != nil ||
		!found { // examples are not wrapped, so that they can be copied
		return err
	}
	lines := folding.NewWriter(w, width)
	if _, err := io.WriteString(lines, "\nFlags:\n"+flags); err != nil {
		return err
	}
	return lines.Flush()
}
