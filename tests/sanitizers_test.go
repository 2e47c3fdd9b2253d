// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/need"
	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/replay/replaytest"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// checker is a way to run host and plugin such that faults in them come to light.
type checker struct {
	name    string
	build   string // folder below build/
	flags   string // SANITIZE of the makefiles; "": as they are
	wrapper string // command that the host is run under
	env     []string
	slow    bool // plays one way each, and few recordings: the others see to the rest
}

var checkers = []checker{
	{name: "address", build: "asan", flags: "address,undefined",
		env: []string{"ASAN_OPTIONS=halt_on_error=1", "UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1"}},
	{name: "thread", build: "tsan", flags: "thread",
		env: []string{"TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1"}},
	{name: "valgrind",
		wrapper: "valgrind --quiet --error-exitcode=99 --leak-check=full --show-leak-kinds=definite " +
			"--errors-for-leak-kinds=definite", slow: true},
}

// signs are what the checkers write when they found something.
var signs = []string{"Sanitizer", "runtime error:", "==ERROR"}

// everyVersion are the hazards that are played as each version of the API shows them; of the others the newest will do.
var everyVersion = []string{"tasks-overlap", "aborted-communicator", "stale-handles"}

// fewRecordings have all kinds of events and states that recordings have, of three versions of the API, several threads
// and graphs: what a slow checker plays.
var fewRecordings = []string{"02-allcoll-4p-net", "04-threads-4r", "08-v5-nccl228-3p", "10-graph-3p",
	"13-gpu-few-2p-v7"}

// fewHazards, with these recordings, execute every line of plugin and host, and every branch in both directions, that
// any hazard does, as gcov counts: memcheck, which takes four seconds of a processor for each, plays no others.
var fewHazards = []string{"aborted-communicator", "all-to-all-as-messages", "copy-engine", "hang-broadcasts",
	"lives-in-turn", "mask-changed-by-ras", "network-plugins", "no-calls", "no-room-for-proxies", "no-stamps", "pxn",
	"rccl-extended-v6", "stale-handles", "symmetric-kernels", "tasks-overlap", "unknown-network-plugin", "unknown-types"}

// Plugin and host, playing all recordings and all hazards (under memcheck some) with threads that run freely, are clean
// under the sanitizers and memcheck, with a collector and (but for memcheck) with spool files.
func TestHostAndPluginAreCleanUnderCheckers(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED, NOT TESTED: -short leaves out the checkers, which need two more builds of host and plugin")
	}
	t.Parallel()
	for _, c := range checkers {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			host, plugin := c.prepare(t)
			var played []string // all
			if c.slow {
				played = fewRecordings
			}
			for _, rec := range recordings(t, played...) {
				for _, spool := range []bool{false, true} {
					if spool && c.slow {
						continue
					}
					t.Run(fmt.Sprintf("%s/spool=%v", rec.Name, spool), func(t *testing.T) {
						t.Parallel()
						for _, p := range c.play(t, rec, replay.Options{Host: host, Plugin: plugin, Spool: spool}) {
							testkit.Check(t, p.Report.Warnings == 0,
								"process %d: nothing was tested: %+v\n%s", p.Rank, p.Report, p.Stderr)
						}
					})
				}
			}
			for _, h := range hazards {
				if c.slow && !slices.Contains(fewHazards, h.name) {
					continue
				}
				releases := h.releases
				if c.slow || !slices.Contains(everyVersion, h.name) {
					releases = releases[len(releases)-1:]
				}
				for _, release := range releases {
					t.Run(fmt.Sprintf("%s/%s", h.name, release), func(t *testing.T) {
						t.Parallel()
						c.play(t, h.load(t, release), replay.Options{Host: host, Plugin: plugin, Env: h.env})
					})
				}
			}
		})
	}
}

// The names that are chosen above are hazards.
func TestHazardsUnderCheckers(t *testing.T) {
	for _, name := range slices.Concat(everyVersion, fewHazards) {
		i := slices.IndexFunc(hazards, func(h hazard) bool { return h.name == name })
		testkit.Check(t, i >= 0 && (slices.Equal(hazards[i].releases, every) || !slices.Contains(everyVersion, name)),
			"no hazard %s, or not one of every version", name)
	}
}

func (c *checker) prepare(t *testing.T) (host, plugin string) {
	if c.wrapper == "" {
		dir := filepath.Join("build", c.build)
		testkit.Value(replaytest.Make(c.flags, dir+"/"+replay.HostFile, dir+"/libnccl-profiler-otf2.so"))(t)
		return builtFile(t, c.build+"/"+replay.HostFile), builtFile(t, c.build+"/libnccl-profiler-otf2.so")
	}
	name := strings.Fields(c.wrapper)[0]
	need.Program(t, name, "to look at host and plugin")
	host = filepath.Join(t.TempDir(), "host")
	script := fmt.Sprintf("#!/bin/sh\nexec %s '%s' \"$@\"\n", c.wrapper, builtFile(t, replay.HostFile))
	testkit.Script(t, host, script)
	return host, builtFile(t, "libnccl-profiler-otf2.so")
}

// play plays a recording; what the checkers find fault with is an error.
func (c *checker) play(t *testing.T, rec *replay.Recording, opt replay.Options) []replay.ProcessResult {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "experiment")
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	var stderr bytes.Buffer
	opt.Stderr = &stderr
	keeper := "NCCL_OTF2_COLLECTOR=" + map[bool]string{false: builtFile(t, "nccl-otf2"), true: "spool"}[opt.Spool]
	opt.Env = slices.Concat(settings(dir), []string{"NCCL_OTF2_MEMORY=64M", keeper}, c.env, opt.Env)
	res := testkit.Value(replay.Run(ctx, rec, opt))(t)
	err := res.Err()
	testkit.Check(t, err == nil, "%v\n%s", err, stderr.String())
	for _, sign := range signs {
		testkit.Check(t, !strings.Contains(stderr.String(), sign), "%s", stderr.String())
	}
	for _, p := range res.Processes {
		testkit.Require(t, p.Report != nil && p.Report.Plugin != "none", "process %d: nothing was tested: %+v\n%s",
			p.Rank, p.Report, stderr.String())
	}
	if !opt.Spool {
		waitDone(t, dir, len(rec.Processes))
	}
	return res.Processes
}
