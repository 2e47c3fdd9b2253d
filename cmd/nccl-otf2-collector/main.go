// SPDX-License-Identifier: Apache-2.0

// nccl-otf2-collector is the collector alone, which the plugin starts beside each process of a job. It is a program of
// its own because a job waits for its start, and it lives as often as the job has ranks: the whole tool takes three
// times as long to load, and more memory (docs/performance.md). What the job's last collector has to make, the tool
// makes.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"github.com/nccl-otf2/nccl-otf2/internal/collector"
	"github.com/nccl-otf2/nccl-otf2/internal/installed"
	"github.com/nccl-otf2/nccl-otf2/internal/printable"
)

func main() {
	fd := -1
	if len(os.Args) == 4 && os.Args[1] == "collect" &&
		os.Args[2] == "--fd" { // as the plugin starts the tool where this program is missing
		fd, _ = strconv.Atoi(os.Args[3])
	}
	if fd < 3 {
		fmt.Fprintln(os.Stderr,
			"nccl-otf2-collector: the plugin starts it, with the shared memory as --fd; see nccl-otf2 --help")
		os.Exit(2)
	}
	path := make(chan string, 1)
	go func() { path <- tool() }()
	if err := collector.RecordProcess(context.Background(), fd, path); err != nil {
		printable.Fprintln(os.Stderr, "nccl-otf2 collect:", err)
		os.Exit(1)
	}
}

// tool is the path of the tool of this installation; where it is not found, the one that PATH has.
func tool() string {
	self, err := os.Executable()
	if err != nil { // no /proc
		self = os.Args[0]
	}
	path, err := installed.ToolOf(self)
	if err != nil {
		return "nccl-otf2"
	}
	return path
}
