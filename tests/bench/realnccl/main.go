// SPDX-License-Identifier: Apache-2.0

// Command realnccl measures what the plugin costs a job on the real NCCL library, whose GPUs are emulated, against no
// plugin and an empty one that asks for the same events.
//
//	go run ./tests/bench/realnccl --bed DIR                                tables
//	go run ./tests/bench/realnccl --bed DIR --update docs/performance.md   puts them into that page
//
// DIR is a folder as `make real-nccl-bed` makes it: NCCL, and the CUDA runtime's stand-in. It needs what `make build`
// makes, and a C compiler.
package main

import (
	"context"
	"errors"
	"flag"
	"os"

	"github.com/nccl-otf2/nccl-otf2/tests/bench/measure"
	"github.com/nccl-otf2/nccl-otf2/tests/bench/peer"
)

func main() {
	b := new(bench)
	root := flag.String("root", ".", "`folder` of the repository")
	build := flag.String("build", "build", "`folder` with what make build makes")
	quiet := flag.Bool("quiet", false, "do not say what is being run")
	flag.StringVar(
		&b.bed, "bed", "",
		"`folder` with libnccl.so.2 and the stand-in of the CUDA runtime (default the first in build/realnccl/beds)")
	flag.IntVar(&b.rounds, "rounds", 5, "`number` of times that each case runs")
	flag.IntVar(&b.ranks, "ranks", 2, "`number` of ranks, each a process")
	flag.IntVar(&b.operations, "operations", 4000, "`number` of operations in the loop")
	flag.IntVar(&b.communicators, "communicators", 16, "`number` of communicators whose first operations are measured")
	flag.Var(&b.peers, "plugin", peer.Usage+"; then the default preset alone is run beside")
	command := measure.NewCommand("real-nccl", "what is recorded, some 100 MB")
	valid := func() bool {
		return b.rounds >= 1 && b.ranks >= 2 && b.operations >= 1 && b.communicators >= 1
	}
	command.Run(valid, func(ctx context.Context, dir string) (measure.Findings, error) {
		if !*quiet {
			b.log = os.Stderr
		}
		if err := b.prepare(*root, *build, dir); err != nil {
			return nil, err
		}
		return b.run(ctx)
	})
}

var errNoBed = errors.New("no NCCL to measure with: make real-nccl-bed, or --bed")
