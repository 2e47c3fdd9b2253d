// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/scenario"
)

// hazard is something that NCCL does and that a profiler plugin must live with.
type hazard struct {
	name     string   // of the scenario
	what     string   // what NCCL does, for the page
	outcome  string   // what the user gets, for the page
	releases []string // of NCCL: the first of each API version that can show it
	env      []string
	limits   string // of the processes, as the shell's ulimit takes them
	script   func(s *scenario.Scenario)
	check    func(o *outcome)
}

// load gives the recording of a release's job.
func (h *hazard) load(t *testing.T, release string) *replay.Recording {
	t.Helper()
	s := scenario.New(h.name, release)
	h.script(s)
	return testkit.Value(s.Load(filepath.Join(t.TempDir(), h.name)))(t)
}

// One release of each version of the profiler API.
var (
	v1, v2, v3, v4 = "2.23.4", "2.24.3", "2.26.2", "2.27.7"
	v5, v6, v7     = "2.28.9", "2.30.7", "2.31.2"

	every    = []string{v1, v2, v3, v4, v5, v6, v7}
	withAPI  = []string{v5, v6, v7}         // calls are events
	withGPU  = []string{v4, v5, v6, v7}     // GPU stamps
	withKern = []string{v3, v4, v5, v6, v7} // KernelCh
	withSize = []string{v4, v5, v6, v7}     // communicators tell their size
)

// hazards is the table behind hazards.md.
var hazards = slices.Concat(handleHazards, graphHazards, groupHazards, communicatorHazards, proxyHazards, gpuHazards,
	callerHazards)

// Every hazard, played as each version of the API shows it, ends in a sound archive that says what happened.
func TestHazards(t *testing.T) {
	t.Parallel()
	for _, h := range hazards {
		for _, release := range h.releases {
			native := testkit.Value(scenario.NativeAPI(release))(t)
			t.Run(fmt.Sprintf("%s/v%d", h.name, native), func(t *testing.T) {
				t.Parallel()
				s := scenario.New(h.name, release)
				h.script(s)
				h.check(playScenario(t, s, env(h.env...), limited(h.limits)))
			})
		}
	}
}

func TestHazardNamesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, h := range hazards {
		testkit.Check(t, !seen[h.name] && h.what != "" && h.outcome != "" && len(h.releases) != 0,
			"hazard %q: named twice, or not described", h.name)
		seen[h.name] = true
	}
}

// The page lists what the tests play (go test ./tests -run TestHazardsPage -update).
func TestHazardsPage(t *testing.T) {
	var table strings.Builder
	table.WriteString("| scenario | what NCCL does | how it is handled | API |\n|---|---|---|---|\n")
	for _, h := range hazards {
		var versions []string
		for _, r := range h.releases {
			n, _ := scenario.NativeAPI(r)
			versions = append(versions, fmt.Sprintf("v%d", n))
		}
		api := versions[0]
		if len(versions) > 1 {
			api += " … " + versions[len(versions)-1]
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", h.name, h.what, h.outcome, api)
	}
	golden.SectionMadeBy(t, "hazards.md", "scenarios", "go test ./tests -run TestHazardsPage -update",
		table.String())
}
