// SPDX-License-Identifier: Apache-2.0

// Command soak lets a job run for a long time with the plugin, at a moderate rate, and watches that nothing grows:
// memory, open files and threads of the job and of its collector. Communicators and threads come and go all the while.
// Then it checks that nothing was lost, and that the archive is whole.
//
//	go run ./tests/soak --time 10m
//
// It needs what `make build` makes, a C compiler, and otf2-print.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/nccl-otf2/nccl-otf2/tests/bench/caller"
)

func main() {
	var o options
	flag.DurationVar(&o.time, "time", 10*time.Minute, "how `long` the job runs")
	flag.Float64Var(&o.rate, "rate", 100, "collectives per `second` and rank")
	flag.StringVar(&o.mode, "mode", "trace", "NCCL_OTF2_MODE of the job: trace or profile")
	root := flag.String("root", ".", "`folder` of the repository")
	build := flag.String("build", "build", "`folder` with what make build makes")
	keep := flag.String("keep", "", "leave the archive in this `folder`, which must be empty or absent")
	flag.Parse()
	if flag.NArg() > 0 || o.time <= 0 || o.rate <= 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	work, err := os.MkdirTemp("", "nccl-otf2-soak-")
	exitOn(err)
	o.log = os.Stderr
	o.dir = work
	if *keep != "" {
		o.dir = *keep
	}
	r, err := func() (*report, error) {
		host, err := caller.Build(*root, *build, work)
		if err != nil {
			return nil, err
		}
		return soak(ctx, host, o)
	}()
	if removed := os.RemoveAll(work); err == nil {
		err = removed
	}
	exitOn(err)
	fmt.Print(r.text())
	if len(r.faults) > 0 {
		os.Exit(1)
	}
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}
