// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/nccl-otf2/nccl-otf2/config"
	"github.com/nccl-otf2/nccl-otf2/internal/atomicfile"
)

// usageError is an error in the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// exitCode ends the tool with a code and without a further message.
type exitCode int

func (c exitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}

const rootLong = `nccl-otf2 records what NCCL and RCCL do in a job as an OTF2 archive (for Vampir, Scalasca and other
tools), and says what made ranks wait.`

// firstSteps is the output of the tool without arguments.
const firstSteps = `nccl-otf2 records what NCCL and RCCL do in a job, and says what made ranks wait.

  nccl-otf2 doctor                                   would a job started here be recorded?
  nccl-otf2 run --dir exp -- torchrun … train.py     record a job
  nccl-otf2 report exp                               who made the others wait, and the bandwidths
  nccl-otf2 timeline exp                             a page that shows the run

To try it without a GPU, play a job that was recorded: nccl-otf2 replay 09-straggler-4p --clock recorded --dir exp
All commands: nccl-otf2 help. More on one: nccl-otf2 help COMMAND
`

const rootExample = `  nccl-otf2 run -- torchrun --nproc-per-node 8 train.py
  nccl-otf2 report nccl-otf2-20260131-101500-4711
  nccl-otf2 doctor`

// ownSignals are the commands that handle signals themselves.
var ownSignals = []string{"run", "replay", "collect", "top"}

// handlesSignals reports whether a command does, with its flags. One that keeps metrics removes its file on a signal,
// and must not end before that because it is just writing.
func handlesSignals(cmd *cobra.Command) bool {
	return slices.Contains(ownSignals, cmd.Name()) || cmd.Flags().Changed("every")
}

// extraCommands are the commands that only some builds have.
var extraCommands []*cobra.Command

const careGroup = "Care"

// commandGroups lists the commands in the order in which users need them.
var commandGroups = []struct {
	title    string
	commands []func() *cobra.Command
}{
	{"Record", []func() *cobra.Command{runCommand, ctlCommand, replayCommand, unifyCommand}},
	{"Ask", []func() *cobra.Command{reportCommand, queryCommand, topCommand, diffCommand, profileCommand}},
	{"Look", []func() *cobra.Command{timelineCommand, printCommand}},
	{"Exchange", []func() *cobra.Command{exportCommand, importCommand, mergeCommand, viewCommand}},
	{careGroup, []func() *cobra.Command{doctorCommand, checkCommand, recoverCommand, versionCommand}},
}

func rootCommand() *cobra.Command {
	cobra.EnableCommandSorting = false
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
				_, err := fmt.Fprint(cmd.OutOrStdout(), firstSteps)
				return err
			}
			return unknownCommandError(cmd, args[0])
		},
	}
	root.PersistentPreRun = func(cmd *cobra.Command, args []string) {
		atomicfile.ProtectInputs(inputPaths(cmd, args))
		if !handlesSignals(cmd) {
			atomicfile.RemoveOnSignals()
		}
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usagef("%w: see %s --help", err, cmd.CommandPath())
	})
	for _, g := range commandGroups {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title + ":"})
		for _, command := range g.commands {
			c := command()
			c.GroupID = g.title
			root.AddCommand(c)
		}
	}
	root.AddCommand(collectCommand())
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		if err := writeHelp(cmd, cmd.OutOrStdout()); err != nil {
			cmd.PrintErrln(err)
		}
	})
	root.SetHelpCommand(helpCommand())
	root.SetHelpCommandGroupID(careGroup)
	root.SetCompletionCommandGroupID(careGroup)
	root.AddCommand(extraCommands...)
	root.Version = toolVersion
	root.SetVersionTemplate(versionLine() + "\n")
	return root
}

// outputFlags are the flags that name outputs, which may exist from an earlier run.
var outputFlags = []string{"output", "summary", "svg", "dir"}

// inputPaths returns the files and folders that a command may read: its arguments, and the values of flags that are not
// outputs.
func inputPaths(cmd *cobra.Command, args []string) []string {
	paths := slices.Clone(args)
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if list, ok := f.Value.(pflag.SliceValue); ok {
			for _, text := range list.GetSlice() {
				file, _, _ := cutLast(text, "@") // --with FILE@HOST
				paths = append(paths, text, file)
			}
		} else if !slices.Contains(outputFlags, f.Name) {
			paths = append(paths, f.Value.String())
		}
	})
	return slices.DeleteFunc(paths, func(path string) bool { return path == "" })
}

// unknownCommandError returns the error for an unknown command.
func unknownCommandError(root *cobra.Command, name string) error {
	hint := "see nccl-otf2 --help"
	var names []string
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	if near := config.NearestName(name, names); near != "" {
		hint = "did you mean " + near + "?"
	}
	return usagef("there is no command %q: %s", name, hint)
}

// helpCommand prints the output of --help. Unlike cobra's own command, it fails for unknown commands.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Explain the tool, or a command",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, left, err := cmd.Root().Find(args)
			if err != nil || len(left) > 0 {
				return unknownCommandError(cmd.Root(), args[0])
			}
			return c.Help()
		},
	}
}

// exactArgs requires the named positional arguments.
func exactArgs(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > len(names) {
			return usagef("%s takes no argument %q: see %s --help", cmd.Name(), args[len(names)], cmd.CommandPath())
		}
		return minimumArgs(names...)(cmd, args)
	}
}

// minimumArgs requires the named positional arguments, and permits more.
func minimumArgs(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < len(names) {
			return usagef("%s needs %s: see %s --help", cmd.Name(), strings.Join(names[len(args):], " and "),
				cmd.CommandPath())
		}
		return nil
	}
}

// writeResult writes the result of a command, as JSON or as text. The exit code says if it is incomplete. That the
// reader of the output has ended is no error.
func writeResult(out io.Writer, form choice, result any, text func(io.Writer), incomplete bool) (err error) {
	if form.isJSON() {
		err = writeJSON(out, result)
	} else {
		text(out)
	}
	if o, keeps := out.(*output); keeps {
		err = cmp.Or(err, o.err)
	}
	if err = ignoreClosedPipe(err); err == nil && incomplete {
		return exitCode(exitInput)
	}
	return err
}

// addFormat gives a command the flag --format.
func addFormat(cmd *cobra.Command, form *choice) {
	*form = choice{"table", []string{"table", "json"}}
	addChoice(cmd, form, "format", "output: table or json")
}

// choice is the value of a flag that takes one of several words.
type choice struct {
	value string
	of    []string
}

// addChoice gives a command a flag that takes one of several words, and completes them.
func addChoice(cmd *cobra.Command, c *choice, name, usage string) {
	cmd.Flags().Var(c, name, usage)
	_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(c.of, cobra.ShellCompDirectiveNoFileComp))
}

func (c *choice) isJSON() bool   { return c.value == "json" }
func (c *choice) String() string { return c.value }
func (c *choice) Type() string   { return strings.Join(c.of, "|") }
func (c *choice) Set(s string) error {
	if !slices.Contains(c.of, s) {
		return fmt.Errorf("%q %s", s, config.UnknownText(c.of))
	}
	c.value = s
	return nil
}
