// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/replay/replaytest"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// TestTheHostIsCleanUnderSanitizers plays what recordings do not have: every version, hazards, RCCL.
func TestTheHostIsCleanUnderSanitizers(t *testing.T) {
	replaytest.Sanitizers(t, func(t *testing.T, dir string, env []string) {
		clean := func(what string, s *Scenario, opt replay.Options) {
			t.Run(what, func(t *testing.T) {
				t.Parallel()
				opt.Host, opt.Clock = filepath.Join(dir, replay.HostFile), replay.ClockLive
				opt.Env = append(opt.Env, env...)
				for _, p := range play(t, s, opt).Processes {
					testkit.Equal(t, p.Stderr, "", "process %d says", p.Rank)
				}
			})
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
		clean("RCCL", Random(1, RandomOptions{Release: "2.29.7", Hazards: true}),
			replay.Options{Library: "rccl", Env: []string{"RECORDER_RCCL=1"}})
	})
}
