// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nccl-otf2/nccl-otf2/internal/atomicfile"
)

// usageError is a fault of the command line itself.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// exitCode ends the tool with a code and no further message: everything has been said.
type exitCode int

func (c exitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}

const rootLong = `nccl-otf2 records what NCCL and RCCL do in a job as an OTF2 archive (for Vampir, Scalasca and other
tools) and says what is in such an archive.`

const rootExample = `  nccl-otf2 run -- torchrun --nproc-per-node 8 train.py
  nccl-otf2 report nccl-otf2-20260131-101500-4711
  nccl-otf2 doctor`

// ownSignals are the commands that go on, or end in their own way, when a signal asks them to end.
var ownSignals = []string{"run", "replay", "collect", "top"}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "nccl-otf2",
		Short:         "OTF2 archives of NCCL jobs",
		Long:          rootLong,
		Example:       rootExample,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			hint := "see nccl-otf2 --help"
			if s := cmd.SuggestionsFor(args[0]); len(s) > 0 {
				hint = "did you mean " + strings.Join(s, " or ") + "?"
			}
			return usagef("there is no command %q: %s", args[0], hint)
		},
	}
	root.PersistentPreRun = func(cmd *cobra.Command, _ []string) {
		if !slices.Contains(ownSignals, cmd.Name()) {
			atomicfile.RemoveOnSignals()
		}
	}
	root.SuggestionsMinimumDistance = 2
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usagef("%w: see %s --help", err, cmd.CommandPath())
	})
	root.AddCommand(
		runCommand(), ctlCommand(),
		replayCommand(), unifyCommand(),
		printCommand(), checkCommand(), reportCommand(), topCommand(),
		diffCommand(),
		profileCommand(),
		timelineCommand(),
		viewCommand(),
		mergeCommand(),
		exportCommand(), importCommand(),
		recoverCommand(), doctorCommand(), versionCommand(), collectCommand(),
	)
	root.SetHelpCommand(&cobra.Command{Use: "no-help", Hidden: true}) // --help says the same
	return root
}

// exactly requires n positional arguments, named in the message.
func exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return usagef("%s needs %s: see %s --help", cmd.Name(), strings.Join(names[len(args):], " and "), cmd.CommandPath())
		case len(args) > len(names):
			return usagef("%s takes no argument %q: see %s --help", cmd.Name(), args[len(names)], cmd.CommandPath())
		}
		return nil
	}
}

// format is the value of --format.
type format string

const (
	formatTable format = "table"
	formatJSON  format = "json"
)

// addFormat gives a command the flag --format.
func addFormat(cmd *cobra.Command, f *format) {
	*f = formatTable
	cmd.Flags().Var(f, "format", "output: table or json")
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"table", "json"}, cobra.ShellCompDirectiveNoFileComp))
}

func (f *format) String() string { return string(*f) }
func (f *format) Type() string   { return "format" }
func (f *format) Set(s string) error {
	switch format(s) {
	case formatTable, formatJSON:
		*f = format(s)
		return nil
	}
	return fmt.Errorf("%q is neither table nor json", s)
}
