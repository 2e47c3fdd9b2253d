// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

func TestEverythingIsMadeOfTheTable(t *testing.T) {
	for _, f := range files {
		old := testkit.Value(os.ReadFile(filepath.Join("../../..", f.path)))(t)
		text := testkit.Value(f.text("../../..", string(old)))(t)
		testkit.Equal(t, cmp.Diff(string(old), text), "",
			"%s is not what plugin/api/generate/table.go and plugin/shm.h say (make generate):\n", f.path)
	}
}

// The plugin reads descriptors of version 4 and later as the newest: what they share must lie at the same place.
func TestVersionsFrom4OnShareTheirPlaces(t *testing.T) {
	for _, e := range Events {
		for _, m := range e.Members {
			newest, ok := m.Place(Newest().Number)
			for v := 4; v <= Newest().Number; v++ {
				if p, has := m.Place(v); has && (!ok || p.Offset != newest.Offset || p.Name != newest.Name) {
					t.Errorf("%s.%s: version %d has it at %d, the newest at %d", e.Member, m.Name, v, p.Offset,
						newest.Offset)
				}
			}
		}
	}
}

func TestTheTableFitsItself(t *testing.T) {
	for i, e := range Events {
		_, units := e.Record()
		testkit.Check(t, units <= 8, "%s: a record of %d units", e.Name, units)
		testkit.Check(t, Number(e.Name) == i && e.Since >= 1 && e.Since <= Newest().Number && e.Doc != "" &&
			e.Depth != 0 && len(e.Start) != 0, "%s: %+v", e.Name, e)
		for _, n := range e.Start {
			testkit.Check(t, Number(n) >= 0, "%s is started by %s, which is none", e.Name, n)
		}
		testkit.Check(t, strings.Contains(strings.Join(Presets, " "), e.Preset), "%s is in no preset", e.Name)
		for _, m := range e.Members {
			for _, v := range Versions {
				p, ok := m.Place(v.Number)
				testkit.Check(t, !ok || p.Offset+m.Kind.Size() <= v.Descr || v.Number == 1 && m.Kind >= Func,
					"%s.%s ends behind version %d's descriptor", e.Member, m.Name, v.Number)
			}
		}
	}
	// Bits 28 and up of the record mask are the plugin's own, and a handle has five bits for the type.
	testkit.Check(t, len(Events) <= 28, "no room for so many event types")
}
