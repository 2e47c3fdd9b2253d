// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// TestCommandsPage keeps docs/commands.md equal to the commands. `make generate` writes it anew.
func TestCommandsPage(t *testing.T) {
	root := rootCommand()
	root.InitDefaultCompletionCmd()
	var commands, options strings.Builder
	rows := map[string][]string{} // options with the same meaning, and the commands that have them
	var order []string

	var visit func(parent *cobra.Command)
	visit = func(parent *cobra.Command) {
		for _, c := range parent.Commands() {
			if c.Hidden || c.Name() == "help" || parent.Name() == "completion" {
				continue
			}
			testkit.Check(t, c.Example != "" || c.HasParent() && parent.HasParent() || c.Name() == "completion",
				"%s has no example", c.CommandPath())
			name := strings.TrimPrefix(c.CommandPath(), root.Name()+" ")
			use := strings.TrimPrefix(strings.TrimSuffix(c.UseLine(), " [flags]"), root.Name()+" ")
			fmt.Fprintf(&commands, "| `%s` | %s |\n", strings.ReplaceAll(use, "|", `\|`), c.Short)
			c.LocalFlags().VisitAll(func(f *pflag.Flag) {
				if f.Hidden || f.Name == "help" {
					return
				}
				row := optionRow(f)
				if rows[row] == nil {
					order = append(order, row)
				}
				rows[row] = append(rows[row], "`"+name+"`")
			})
			visit(c)
		}
	}
	visit(root)

	for _, row := range order {
		fmt.Fprintf(&options, "| %s |\n", strings.Replace(row, "\n", strings.Join(rows[row], ", "), 1))
	}
	golden.Section(t, "../../docs/commands.md", "commands", "| command | what it does |\n|---|---|\n"+commands.String()+
		"\n| option | of | meaning |\n|---|---|---|\n"+options.String())
}

// optionRow is the row of an option, with a line break in the place of its commands.
func optionRow(f *pflag.Flag) string {
	value, usage := pflag.UnquoteUsage(f)
	name := "--" + f.Name
	if f.Shorthand != "" {
		name = "-" + f.Shorthand + ", " + name
	}
	if value != "" {
		name += " " + value
	}
	if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "[]" && f.DefValue != "0" &&
		f.DefValue != "0s" && !strings.Contains(usage, "(default") {
		usage += " (default " + f.DefValue + ")"
	}
	return fmt.Sprintf("`%s` | \n | %s", strings.ReplaceAll(name, "|", `\|`),
		strings.NewReplacer("|", `\|`, "<", `\<`).Replace(usage))
}
