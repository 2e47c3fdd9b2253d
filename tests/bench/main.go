// SPDX-License-Identifier: Apache-2.0

// Command bench compares package otf2 with libotf2's C API and prints ratios.
//
//	go run ./tests/bench                                  a table
//	go run ./tests/bench --json                           the same as JSON
//	go run ./tests/bench --update docs/performance.md     puts it into that page
//
// Every case runs in processes of their own, ours and libotf2's in turn, several times. That both did the same is
// checked: number of events, and the sum of all times, fields and attribute values, of archives that either wrote.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"regexp"

	"github.com/nccl-otf2/nccl-otf2/tests/bench/measure"
)

func main() {
	beChild()
	var (
		rounds = flag.Int("rounds", 7, "`number` of times that each case runs")
		scale  = flag.Float64("scale", 1, "`factor` on the numbers of events")
		match  = regexp.MustCompile("")
		quiet  = flag.Bool("quiet", false, "do not say what is being run")
	)
	flag.TextVar(match, "case", match, "only cases whose names match this `regexp`")
	command := measure.NewCommand("bench", "the archives, about 400 MB")
	command.Run(func() bool { return *rounds >= 1 && *scale > 0 },
		func(_ context.Context, dir string) (measure.Findings, error) {
			self, err := os.Executable()
			if err != nil {
				return nil, err
			}
			b := &bench{self: self, dir: dir, rounds: *rounds, scale: *scale, match: match}
			if !*quiet {
				b.log = os.Stderr
			}
			return b.run()
		})
}

// beChild runs one case of ours and exits if this process was started for that.
func beChild() {
	if len(os.Args) < 2 || os.Args[1] != childArgument {
		return
	}
	o, err := ourCase(os.Args[2:])
	measure.ExitOn(err)
	measure.ExitOn(json.NewEncoder(os.Stdout).Encode(o))
	os.Exit(0)
}
