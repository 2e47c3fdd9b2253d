// SPDX-License-Identifier: Apache-2.0

// Command nccl-otf2 records what NCCL does in a job as an OTF2 archive, and reads such archives.
//
// Results go to standard output, messages and progress to standard error. Exit codes: 0 success, 1 invalid or
// incomplete input, 2 usage error, 3 the limit of `diff --fail-above` is exceeded; `run` exits with the code of its
// command.
package main

import (
	"errors"
	"os"

	"github.com/nccl-otf2/nccl-otf2/internal/printable"
)

// Exit codes of the tool.
const (
	exitDone  = 0
	exitInput = 1
	exitUsage = 2
	// The input is valid, but the tested condition does not hold.
	exitExceeded = 3
)

func main() { os.Exit(Main(os.Args[1:])) }

// Main runs the tool with the arguments after its name, and returns its exit code.
func Main(args []string) int {
	defer removeScratch()
	root := rootCommand()
	root.SetArgs(args)
	out := output{file: os.Stdout}
	if !isTerminal(os.Stdout) {
		root.SetOut(&out)
	}
	err := root.Execute()
	if err == nil {
		err = ignoreClosedPipe(out.err)
	}
	if err == nil {
		return exitDone
	}
	if exit, is := errors.AsType[exitCode](err); is {
		return int(exit)
	}
	printable.Fprintln(os.Stderr, "nccl-otf2:", oneLine(err.Error()))
	if _, is := errors.AsType[usageError](err); is {
		return exitUsage
	}
	return exitInput
}
