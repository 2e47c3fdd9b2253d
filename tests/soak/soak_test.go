// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"errors"
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/need"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/bench/caller"
)

var (
	long = flag.Duration("time", 5*time.Second, "how `long` the job runs")
	rate = flag.Float64("rate", 100, "collectives per `second` and rank")
	mode = flag.String("mode", "trace", "NCCL_OTF2_MODE of the job: trace or profile")
)

// Nothing may be lost and the archive must be whole; how things grow is judged in runs of some minutes only.
func TestSoak(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	o := options{time: *long, rate: *rate, dir: t.TempDir(), mode: *mode}
	r, err := func() (*report, error) {
		host, err := caller.Build("../..", "../../build", t.TempDir())
		if err != nil {
			return nil, err
		}
		return soak(t.Context(), host, o)
	}()
	if errors.Is(err, caller.ErrUnavailable) {
		need.NoError(t, "plugin and compiler", err)
	}
	testkit.Must(t, err)
	t.Log(r.text())
	for _, f := range r.faults {
		t.Error(f)
	}
	testkit.Check(t, r.job.Communicators >= 10 && r.job.Threads >= 100 && r.recorded.Events != 0,
		"%d communicators, %d threads, %d events: the job did not do much", r.job.Communicators, r.job.Threads,
		r.recorded.Events)
}

// planted makes the samples of a run of ten minutes, in which the collector's memory grows by so much a minute.
func planted(growth float64) *report {
	r := &report{time: 10 * time.Minute, recorded: new(caller.Recorded)}
	for at := time.Duration(0); at < r.time; at += time.Second {
		warm := min(at.Minutes(), 2) * 10 // of the first two minutes
		u := caller.Usage{Own: int64((warm + growth*at.Minutes()) * (1 << 20)), Files: 10 + int(at/time.Second)%2,
			Threads: 8}
		r.samples = append(r.samples, sample{at: at, job: caller.Usage{Own: 1 << 20, Files: 5, Threads: 3},
			collector: u})
	}
	return r
}

func TestJudge(t *testing.T) {
	for _, test := range []struct {
		growth float64
		fault  string
	}{{0, ""}, {0.1, ""}, {0.5, "collector: memory without rings grows by 0.500 MiB a minute"}} {
		r := planted(test.growth)
		r.judge()
		got := strings.Join(r.faults, "; ")
		testkit.Check(t, (got == "") == (test.fault == "") && strings.Contains(got, test.fault),
			"growth of %v: faults %q, want %q", test.growth, got, test.fault)
	}
	r := planted(100)
	r.time = judgedFrom - 1
	if r.judge(); len(r.faults) > 0 {
		t.Errorf("a short run is judged: %q", r.faults)
	}
	r.samples = r.samples[:3]
	if r.judge(); len(r.faults) != 1 {
		t.Errorf("three samples: faults %q", r.faults)
	}
}
