// SPDX-License-Identifier: Apache-2.0

// Command gputest runs PyTorch jobs on a GPU with the plugin, and compares the archives with what the jobs called. It
// also measures what the plugin costs them. docs/gpu-runs.md says what is checked.
//
// It needs a GPU, PyTorch with NCCL, and what `make gpu-test-build` makes; no Go, no network. The ranks of a job share
// the GPU.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

type options struct {
	cases          string
	time           time.Duration
	out, build     string
	keep           string
	python, script string
	nccl           string
	rounds         int
	list           bool
}

// commit is the revision that this was built from; the Makefile sets it.
var commit = "of unknown revision"

// overheadName is what --cases matches to have the cost measured.
const overheadName = "overhead"

func main() {
	var o options
	flag.StringVar(&o.cases, "cases", "", "run only cases whose name matches `REGEXP`; \""+overheadName+"\" is one")
	flag.DurationVar(&o.time, "time", 9*time.Minute, "begin nothing that might not end within this `time`")
	flag.StringVar(
		&o.out, "out", "",
		"write the report and what is worth keeping to `folder` (default: the report to standard output)")
	flag.StringVar(&o.keep, "keep", "", "leave all logs and archives in `folder`, which must not exist")
	flag.StringVar(&o.build, "build", "build", "`folder` with what make gpu-test-build makes")
	flag.StringVar(&o.python, "python", "python3", "`interpreter` that has PyTorch")
	flag.StringVar(&o.nccl, "nccl", "", "have jobs use this NCCL `library` in the place of PyTorch's own")
	flag.StringVar(&o.script, "job", "tests/gpu/job.py", "the job's `program`")
	flag.IntVar(&o.rounds, "rounds", 5, "how often the cost is measured in turn")
	flag.BoolVar(&o.list, "list", false, "list the cases and end")
	flag.Parse()
	if flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	bad, err := o.run(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "gputest:", err)
		os.Exit(2)
	}
	if bad > 0 {
		os.Exit(1)
	}
}

// run does everything. bad is how many of the wanted cases failed or were not run.
func (o *options) run(ctx context.Context) (bad int, err error) {
	wanted, err := regexp.Compile(o.cases)
	if err != nil {
		return 0, err
	}
	if o.list {
		for i := range cases {
			fmt.Println(cases[i].name())
		}
		fmt.Println(overheadName)
		return 0, nil
	}
	h, err := o.harness()
	if err != nil {
		return 0, err
	}
	if o.keep == "" {
		defer os.RemoveAll(h.work)
	}
	r := &run{began: time.Now(), commit: commit}
	if r.machine, err = h.probe(ctx); err != nil {
		return 0, err
	}
	fmt.Println(r.machine)
	until := r.began.Add(o.time)
	if err := h.cases(ctx, r, wanted, until); err != nil {
		return 0, err
	}
	switch {
	case !wanted.MatchString(overheadName):
	case ctx.Err() != nil || len(r.results) == 0 || !r.results[0].passed():
		r.notRun = append(r.notRun, overheadName+": interrupted, or the job fails without the plugin")
	default:
		fmt.Println(overheadName)
		r.costs, r.overhead = h.overhead(ctx, o.rounds, until)
	}
	for _, n := range r.notRun {
		fmt.Println("NOT RUN:", n)
	}
	if o.out == "" {
		fmt.Print("\n", r.markdown())
	} else if err = r.pack(o.out); err == nil {
		fmt.Println("written to", o.out)
	}
	return r.failed() + len(r.notRun), err
}

func (o *options) harness() (*harness, error) {
	h := &harness{python: o.python}
	var err error
	for _, f := range []struct {
		to         *string
		path, hint string
	}{
		{&h.plugin, filepath.Join(o.build, "libnccl-profiler-otf2.so"), "run `make gpu-test-build` where there is Go"},
		{&h.tool, filepath.Join(o.build, "nccl-otf2"), "run `make gpu-test-build` where there is Go"},
		{&h.empty, filepath.Join(o.build, "gpu", "libnccl-profiler-empty.so"),
			"run `make gpu-test-build` where there is Go"},
		{&h.job, o.script, "run this in the repository's root, or name it with --job"},
		{&h.nccl, o.nccl, "name a file with --nccl"},
	} {
		if f.path == "" {
			continue
		}
		if *f.to, err = filepath.Abs(f.path); err != nil {
			return nil, err
		}
		if _, err := os.Stat(*f.to); err != nil {
			return nil, fmt.Errorf("%w: %s", err, f.hint)
		}
	}
	if o.keep != "" {
		if h.work, err = filepath.Abs(o.keep); err == nil {
			err = os.Mkdir(h.work, 0o777)
		}
		return h, err
	}
	h.work, err = os.MkdirTemp("", "nccl-otf2-gputest-")
	return h, err
}

// cases runs the cases that are wanted and for which there is time.
func (h *harness) cases(ctx context.Context, r *run, wanted *regexp.Regexp, until time.Time) error {
	longest := 30 * time.Second
	why := ""
	for i := range cases {
		c := &cases[i]
		// Without the baseline a failure says nothing.
		if c.name() != baseline.name() && !wanted.MatchString(c.name()) {
			continue
		}
		switch {
		case ctx.Err() != nil:
			why = "interrupted"
		case why == "" && time.Now().Add(longest).After(until):
			why = "no time was left"
		}
		if why != "" {
			r.notRun = append(r.notRun, c.name()+": "+why)
			continue
		}
		res := &result{testCase: c, dir: filepath.Join(h.work, strings.ReplaceAll(c.name(), "/", "-"))}
		if err := os.Mkdir(res.dir, 0o777); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
		began := time.Now()
		h.play(ctx, c, res.dir, &res.verdict)
		res.seconds = time.Since(began).Seconds()
		longest = max(longest, time.Since(began)+20*time.Second)
		r.results = append(r.results, res)
		fmt.Printf("%s: %s (%.1f s)\n", c.name(), strings.Trim(res.word(), "*"), res.seconds)
		for _, f := range res.failures {
			fmt.Println("  " + f)
		}
		if c.plugin == "none" && !res.passed() {
			why = "the job fails without the plugin"
		}
	}
	return nil
}
