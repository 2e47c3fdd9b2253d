// SPDX-License-Identifier: Apache-2.0

// Command peers lets the same storm of small operations go through profiler plugins in turn: an empty one, ours, and
// those that the command line names.
//
//	go run ./tests/bench/peers --plugin 'NAME=FILE,VARIABLE={dir}/out,kept=REGEXP'
//
// It needs what `make build` makes, and a C compiler.
package main

import (
	"context"
	"flag"
	"os"

	"github.com/nccl-otf2/nccl-otf2/tests/bench/caller"
	"github.com/nccl-otf2/nccl-otf2/tests/bench/measure"
	"github.com/nccl-otf2/nccl-otf2/tests/bench/peer"
)

func main() {
	var plugins peer.List
	flag.Var(&plugins, "plugin", peer.Usage)
	b := &bench{seconds: 2, ranks: numbers{2}}
	rounds := flag.Int("rounds", 5, "`number` of times that each plugin runs")
	root := flag.String("root", ".", "`folder` of the repository")
	build := flag.String("build", "build", "`folder` with what make build makes")
	quiet := flag.Bool("quiet", false, "do not say what is being run")
	flag.IntVar(&b.operations, "operations", 10_000, "`number` of operations of each of two ranks in a burst")
	flag.Var(&b.ranks, "ranks", "`numbers` of ranks in the process, such as 2,1")
	flag.StringVar(&b.events, "events", "gpu", "`events` that ours records and the empty one asks for")
	command := measure.NewCommand("peers", "what is recorded, some 100 MB")
	command.Run(func() bool { return *rounds >= 1 && b.operations >= 1 },
		func(ctx context.Context, dir string) (measure.Findings, error) {
			host, err := caller.Build(*root, *build, dir)
			if err != nil {
				return nil, err
			}
			b.host, b.dir, b.rounds = host, dir, *rounds
			if !*quiet {
				b.log = os.Stderr
			}
			return b.run(ctx, plugins)
		})
}
