// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"path/filepath"
	"testing"

	"ncclotf2/replay"
)

// TestTheHostIsCleanUnderSanitizers plays what recordings do not have: every version, hazards, RCCL.
func TestTheHostIsCleanUnderSanitizers(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED, NOT TESTED: -short leaves out the sanitizers, which need two more builds of the host")
	}
	for sanitizer, settings := range map[string]string{
		"thread":            "TSAN_OPTIONS=halt_on_error=1:exitcode=66",
		"address,undefined": "ASAN_OPTIONS=detect_leaks=1:exitcode=66",
	} {
		t.Run(sanitizer, func(t *testing.T) {
			host := filepath.Join(build(t, sanitizer), "fakenccl")
			clean := func(what string, s *Scenario, opt replay.Options) {
				t.Helper()
				opt.Host, opt.Clock = host, replay.ClockLive
				opt.Env = append(opt.Env, settings, "UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1")
				for _, p := range play(t, s, opt).Processes {
					if p.Stderr != "" {
						t.Errorf("%s: process %d says %s", what, p.Rank, p.Stderr)
					}
				}
			}
			for _, rel := range releases {
				for version := 1; version <= rel.native; version++ {
					clean(fmt.Sprintf("%s, version %d", rel.name, version), mixed(rel.name), replay.Options{API: version})
				}
			}
			for seed := range uint64(10) {
				clean(fmt.Sprintf("seed %d", seed), Random(seed, RandomOptions{Hazards: true}),
					replay.Options{Library: []string{"self", "nccl", "rccl"}[seed%3]})
			}
			clean("RCCL", Random(1, RandomOptions{Release: "2.29.7", Hazards: true}), replay.Options{Library: "rccl", Env: []string{"RECORDER_RCCL=1"}})
		})
	}
}
