// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/compare"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

// steadyRun makes a run of two ranks: AllReduces that take so many nanoseconds, give or take some.
func steadyRun(t *testing.T, operations int, takes uint64) string {
	t.Helper()
	return filepath.Dir(jobtest.Make(t, 2, 2, func(r int, p *shardtest.Process) {
		now, world := uint64(shardtest.Epoch+1_000_000), p.World()
		for i := range operations {
			now += 50_000
			end := now + takes + uint64(i*i*7919%997) // some 500 ns on average
			p.AllReduce(world, now, end, 1<<20)
			now = end
		}
	}))
}

func TestDiffSaysWithItsExitCodeWhetherARunIsTooSlow(t *testing.T) {
	before, after, short := steadyRun(t, 40, 100_000), steadyRun(t, 40, 108_000), steadyRun(t, 5, 100_000)
	run := func(args ...string) error {
		cmd := rootCommand()
		cmd.SetOut(io.Discard)
		cmd.SetArgs(append([]string{"diff"}, args...))
		return cmd.Execute()
	}
	for _, tc := range []struct {
		args []string
		code int
		err  string
	}{
		{[]string{before, after}, exitDone, ""},
		{[]string{before, after, "--fail-above", "5%"}, exitExceeded, ""},
		{[]string{before, after, "--fail-above", "5%", "--format", "json"}, exitExceeded, ""},
		{[]string{before, after, "--fail-above", "10%"}, exitDone, ""},
		{[]string{after, before, "--fail-above", "0%"}, exitDone, ""},
		{[]string{before, after, "--min-change", "20%"}, exitDone, ""},
		{[]string{before, after, "--min-change", "20%", "--fail-above", "5%"}, exitExceeded, ""},
		{[]string{before, before, "--fail-above", "0%"}, exitDone, ""},
		{[]string{before, short}, exitDone, ""},
		{[]string{before, short, "--fail-above", "5%"}, exitInput, "nothing can be compared"},
		{[]string{before, filepath.Join(after, "nowhere")}, exitInput, "does not exist"},
		{[]string{before}, exitUsage, "needs two runs"},
		{[]string{before, after, "--fail-above", "5"}, exitExceeded, ""}, // percent, too
		{[]string{before, after, "--fail-above", "10"}, exitDone, ""},
		{[]string{before, after, "--fail-above", "x"}, exitUsage, "not a percentage"},
		{[]string{before, after, "--warm-up", "-1"}, exitUsage, "a number of operations"},
	} {
		err := run(tc.args...)
		code, text := exitDone, ""
		var exit exitCode
		var usage usageError
		switch {
		case errors.As(err, &exit):
			code = int(exit)
		case errors.As(err, &usage):
			code, text = exitUsage, err.Error()
		case err != nil:
			code, text = exitInput, err.Error()
		}
		if code != tc.code || !strings.Contains(text, tc.err) || text != "" && tc.err == "" {
			t.Errorf("%v: exit code %d, %q; want %d, %q", tc.args[1:], code, text, tc.code, tc.err)
		}
	}

	// A file that is damaged: what can be read is compared, and the exit code says so.
	damaged := steadyRun(t, 40, 100_000)
	files, err := filepath.Glob(filepath.Join(damaged, "traces", "*.evt"))
	testkit.Require(t, err == nil && len(files) != 0, "%v %v", files, err)
	testkit.Must(t, os.Truncate(files[len(files)-1], 900))
	out := new(strings.Builder)
	err = writeDiff(out, before, damaged, compare.Options{MinChange: 0.01}, -1, "json")
	testkit.Check(t, errors.Is(err, exitCode(exitInput)), "damaged: %v", err)
	var c struct {
		B struct {
			Problems []string `json:"problems"`
		} `json:"b"`
	}
	err = json.Unmarshal([]byte(out.String()), &c)
	testkit.Check(t, err == nil && len(c.B.Problems) == 1, "damaged: %v, %d problems", err, len(c.B.Problems))
}
