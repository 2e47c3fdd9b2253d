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
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"syscall"

	"ncclotf2/tests/bench/measure"
)

// pageMarker names the place of the table in a page.
const pageMarker = "bench"

func main() {
	beChild()
	var (
		rounds   = flag.Int("rounds", 7, "`number` of times that each case runs")
		scale    = flag.Float64("scale", 1, "`factor` on the numbers of events")
		only     = flag.String("case", "", "only cases whose names match this `regexp`")
		dir      = flag.String("dir", "", "`folder` for the archives, about 400 MB (default /dev/shm if it has room, else the temporary folder)")
		asJSON   = flag.Bool("json", false, "print JSON")
		markdown = flag.Bool("markdown", false, "print the table in Markdown")
		update   = flag.String("update", "", "put the table into this Markdown `file`, between its bench markers")
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
	self, err := os.Executable()
	exitOn(err)
	work, err := measure.WorkFolder(*dir)
	exitOn(err)
	b := &bench{self: self, dir: work, rounds: *rounds, scale: *scale, match: match}
	if !*quiet {
		b.log = os.Stderr
	}
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-interrupted
		_ = os.RemoveAll(work)
		os.Exit(130)
	}()
	r, err := b.run()
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

// beChild runs one case of ours and exits if this process was started for that.
func beChild() {
	if len(os.Args) < 2 || os.Args[1] != childArgument {
		return
	}
	o, err := ourCase(os.Args[2:])
	exitOn(err)
	exit(json.NewEncoder(os.Stdout).Encode(o))
}

func exitOn(err error) {
	if err != nil {
		exit(err)
	}
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}
