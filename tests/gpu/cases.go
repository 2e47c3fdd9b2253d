// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"

	diagnosis "github.com/nccl-otf2/nccl-otf2/internal/analysis/verdict"
)

// Whom the others wait for in job.py, where somebody is to be waited for.
const (
	lateRank = 1
	nobody   = -1
)

// testCase is one job with one way of recording it.
type testCase struct {
	mode   string // of job.py
	events string // NCCL_OTF2_EVENTS, or
	plugin string // "none": without any; "record": in record mode
	ranks  int
	cupti  bool
	keep   bool           // the process groups are not destroyed
	also   string         // one more setting, "NAME=VALUE" without NCCL_OTF2_
	says   *regexp.Regexp // what the plugin must say in NCCL's log; nil: no warning
	more   func(v *verdict, logs []*jobLog, a *archive)
	// What report must answer. nil: what it says is only noted.
	answer *answer
	hangs  bool // the job does not end by itself
}

func (c *testCase) name() string {
	name := fmt.Sprintf("%s/%s%s/%dp", c.mode, c.plugin, c.events, c.ranks)
	if c.cupti {
		name += "/cupti"
	}
	if c.keep {
		name += "/kept"
	}
	if c.also != "" {
		name += "/" + c.also
	}
	return name
}

func (c *testCase) gpu() bool { return c.events != "light" && c.plugin == "" }

// baseline is the job by itself: if that fails nothing can be said of ours.
var baseline = testCase{mode: "collectives", plugin: "none", ranks: 2}

// cases is the table, what says most first: time may run out.
var cases = []testCase{
	baseline,
	{mode: "collectives", events: "gpu", ranks: 2},
	{mode: "collectives", events: "all", ranks: 2},
	{mode: "few", plugin: "record", ranks: 2},
	{mode: "training", events: "gpu", ranks: 2},
	{mode: "graphs", events: "gpu", ranks: 2},
	{mode: "exchange", events: "gpu", ranks: 2},
	{mode: "late-host", events: "gpu", ranks: 3, answer: &answer{rank: lateRank, kind: diagnosis.HostLate}},
	{mode: "late-gpu", events: "gpu", ranks: 3, answer: &answer{rank: lateRank, kind: diagnosis.GPULate}},
	{mode: "trees", events: "gpu", ranks: 3, answer: &answer{rank: lateRank, kind: diagnosis.HostLate, first: true}},
	{mode: "trees", events: "gpu", ranks: 4, cupti: true, more: linked,
		answer: &answer{rank: lateRank, kind: diagnosis.HostLate, first: true}},
	{mode: "hang", events: "gpu", ranks: 3, hangs: true, answer: &answer{rank: lateRank, kind: diagnosis.Missing}},
	{mode: "training", events: "gpu", ranks: 2, also: "NVML=on:20ms", more: sensorsRead},
	{mode: "collectives", events: "gpu", ranks: 2, cupti: true, more: linked},
	{mode: "graphs", events: "gpu", ranks: 2, cupti: true, more: linked},
	{mode: "profiled", events: "gpu", ranks: 2, cupti: true, says: regexp.MustCompile(`(?i)cupti`),
		more: profilerSeesKernels},
	{mode: "profiled-later", events: "gpu", ranks: 2, cupti: true, more: linked},
	{mode: "profiled-later", events: "gpu", ranks: 2, more: profilerSeesKernels},
	{mode: "profiled", events: "gpu", ranks: 2, more: profilerSeesKernels},
	{mode: "late-never", events: "gpu", ranks: 3, answer: &answer{rank: nobody}},
	{mode: "collectives", events: "gpu", ranks: 2, also: "CUPTI=all", more: memoryKnown},
	{mode: "training", events: "all", ranks: 2, also: "BACKLOG=on"},
	{mode: "exchange", events: "gpu", ranks: 3, cupti: true, more: linked},
	{mode: "groups", events: "gpu", ranks: 3},
	{mode: "loader", events: "gpu", ranks: 2},
	{mode: "collectives", events: "gpu", ranks: 2, keep: true},
	{mode: "collectives", events: "light", ranks: 2},
	{mode: "collectives", events: "net", ranks: 2},
	{mode: "collectives", events: "gpu", ranks: 4},
	{mode: "training", events: "all", ranks: 2, cupti: true, more: linked},
	{mode: "exchange", events: "all", ranks: 3},
	{mode: "graphs", events: "all", ranks: 2},
	{mode: "graphs", events: "light", ranks: 2},
	{mode: "groups", events: "all", ranks: 4},
	{mode: "loader", events: "all", ranks: 2, cupti: true, more: linked},
	{mode: "training", events: "net", ranks: 2, keep: true},
	{mode: "trees", plugin: "record", ranks: 4},
	{mode: "late-gpu", plugin: "record", ranks: 3},
	{mode: "late-never", plugin: "record", ranks: 3},
}

func linked(v *verdict, logs []*jobLog, a *archive) {
	v.kernelsLinked(a)
	for rank, l := range logs {
		if l.profiled >= 0 {
			v.note("rank %d: torch.profiler, which came second, saw %d kernels of NCCL's", rank, l.profiled)
		}
	}
}

func profilerSeesKernels(v *verdict, logs []*jobLog, a *archive) {
	for rank, l := range logs {
		if l.profiled <= 0 {
			v.fail("rank %d: torch.profiler saw no kernel of NCCL's: the plugin disturbs it", rank)
		}
	}
	if len(a.kernels) > 0 {
		v.fail("the archive has %d kernels, although CUPTI was not to be used", len(a.kernels))
	}
}
