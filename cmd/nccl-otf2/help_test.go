// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// Each command's help fits a line of helpWidth characters, but for examples, which are there to be copied.
func TestHelpFits(t *testing.T) {
	checked := 0
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		var help bytes.Buffer
		cmd.SetOut(&help)
		testkit.Must(t, cmd.Help())
		for line := range strings.Lines(help.String()) {
			line = strings.TrimRight(line, "\n")
			if n := utf8.RuneCountInString(line); n > helpWidth && !strings.Contains(cmd.Example, line) {
				t.Errorf("%s: %d characters: %s", cmd.CommandPath(), n, line)
			}
		}
		checked++
		for _, c := range cmd.Commands() {
			walk(c)
		}
	}
	walk(rootCommand())
	testkit.Check(t, checked >= 20, "%d commands", checked)
}
