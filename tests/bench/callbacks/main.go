// SPDX-License-Identifier: Apache-2.0

// Command callbacks measures what the plugin costs the job that loads it, against an empty plugin in the same run.
//
//	go run ./tests/bench/callbacks                                  tables
//	go run ./tests/bench/callbacks --json                           the same as JSON
//	go run ./tests/bench/callbacks --update docs/performance.md     puts them into that page
//
// It needs what `make build` makes, and a C compiler.
package main

import (
	"context"
	"flag"
	"os"
	"regexp"

	"github.com/nccl-otf2/nccl-otf2/tests/bench/caller"
	"github.com/nccl-otf2/nccl-otf2/tests/bench/measure"
)

func main() {
	var (
		rounds = flag.Int("rounds", 3, "`number` of times that each case runs")
		scale  = flag.Float64("scale", 1, "`factor` on how long everything takes")
		match  = regexp.MustCompile("")
		mode   = flag.String("mode", "trace", "NCCL_OTF2_MODE of the job: trace or profile")
		root   = flag.String("root", ".", "`folder` of the repository")
		build  = flag.String("build", "build", "`folder` with what make build makes")
		quiet  = flag.Bool("quiet", false, "do not say what is being run")
	)
	flag.TextVar(
		match, "case", match,
		"only cases whose names match this `regexp`; \"start\", \"memory\" and \"sustained\" are names too")
	command := measure.NewCommand("callbacks", "what is recorded, about 1 GB")
	command.Run(func() bool { return *rounds >= 1 && *scale > 0 },
		func(ctx context.Context, dir string) (measure.Findings, error) {
			host, err := caller.Build(*root, *build, dir)
			if err != nil {
				return nil, err
			}
			b := &bench{host: host, dir: dir, rounds: *rounds, scale: *scale, match: match, mode: *mode}
			if !*quiet {
				b.log = os.Stderr
			}
			return b.run(ctx)
		})
}
