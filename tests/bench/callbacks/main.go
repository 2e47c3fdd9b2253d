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
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"syscall"

	"ncclotf2/tests/bench/caller"
	"ncclotf2/tests/bench/measure"
)

// pageMarker names the place of the tables in a page.
const pageMarker = "callbacks"

func main() {
	var (
		rounds   = flag.Int("rounds", 3, "`number` of times that each case runs")
		scale    = flag.Float64("scale", 1, "`factor` on how long everything takes")
		only     = flag.String("case", "", "only cases whose names match this `regexp`; \"start\", \"memory\" and \"sustained\" are names too")
		dir      = flag.String("dir", "", "`folder` for what is recorded, about 1 GB (default /dev/shm if it has room, else the temporary folder)")
		mode     = flag.String("mode", "trace", "NCCL_OTF2_MODE of the job: trace or profile")
		root     = flag.String("root", ".", "`folder` of the repository")
		build    = flag.String("build", "build", "`folder` with what make build makes")
		asJSON   = flag.Bool("json", false, "print JSON")
		markdown = flag.Bool("markdown", false, "print the tables in Markdown")
		update   = flag.String("update", "", "put the tables into this Markdown `file`, between its markers")
		quiet    = flag.Bool("quiet", false, "do not say what is being run")
	)
	flag.Parse()
	if flag.NArg() > 0 || *rounds < 1 || *scale <= 0 {
		flag.Usage()
		os.Exit(2)
	}
	match, err := regexp.Compile(*only)
	exitOn(err)
	if *update != "" {
		_, err := measure.Splice(*update, pageMarker, "") // before the minutes, not after them
		exitOn(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	work, err := measure.WorkFolder(*dir)
	exitOn(err)
	r, err := func() (*result, error) {
		host, err := caller.Build(*root, *build, work)
		if err != nil {
			return nil, err
		}
		b := &bench{host: host, dir: work, rounds: *rounds, scale: *scale, match: match, mode: *mode}
		if !*quiet {
			b.log = os.Stderr
		}
		return b.run(ctx)
	}()
	if removed := os.RemoveAll(work); err == nil {
		err = removed
	}
	exitOn(err)
	switch {
	case *update != "":
		text, err := measure.Splice(*update, pageMarker, r.markdown())
		exitOn(err)
		exitOn(os.WriteFile(*update, []byte(text), 0o644))
	case *asJSON:
		e := json.NewEncoder(os.Stdout)
		e.SetIndent("", "  ")
		exitOn(e.Encode(r))
	case *markdown:
		fmt.Print(r.markdown())
	default:
		fmt.Print(r.text())
	}
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}
