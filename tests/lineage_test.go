// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Of every communicator of the labeled recordings that came from another one, archive and report say of which, and how;
// of the others they say nothing.
func TestParentsOfRecordedCommunicators(t *testing.T) {
	for _, name := range []string{"c01-host-late-4p", "c02-mesh-row-late-6p", "c12-lineage-6p"} {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join("../testdata/nccl-causes", name)
			rec := testkit.Value(replay.Load(folder))(t)
			want := truthOfChildren(t, folder)
			dir, _ := play(t, rec)
			a := openArchive(t, filepath.Join(dir, "traces.otf2"))
			ids := make(map[otf2.LocationRef]uint64)
			for _, p := range a.Defs.LocationProperties {
				if a.Defs.String(p.Name) == facts.PropCommID.Key() {
					ids[p.Location] = uint64(p.Value)
				}
			}
			births, comms := facts.Births(a.Anchor), facts.Communicators(a.Defs)
			id := func(ref otf2.CommRef) uint64 {
				if c := comms[ref]; c != nil {
					return ids[c.Members[0]]
				}
				return 0
			}
			rows := make(map[otf2.CommRef]operations.CommunicatorRow)
			var report operations.Report
			testkit.Must(t, json.Unmarshal([]byte(runTool(t, builtFile(t, "nccl-otf2"), "report", dir, "--format",
				"json")),
				&report))
			for _, row := range report.Communicators {
				rows[row.Comm] = row
			}
			found := 0
			for ref, c := range comms {
				w, child := want[id(ref)]
				if !child {
					if c.Parent != otf2.UndefinedComm || rows[ref].Parent != nil {
						t.Errorf("%s has parent %d; the report says %v", c.Name, c.Parent, rows[ref].Parent)
					}
					continue
				}
				found++
				b := births[ref]
				if got := (childOf{id(c.Parent), b.Split, b.Color}); got != w || b.Parent != c.Parent {
					t.Errorf("%s (%#x): %+v, want %+v", c.Name, id(ref), got, w)
				}
				text := fmt.Sprintf("%s, split %d, color %d", comms[c.Parent].Name, w.split, w.color)
				if w.split == 0 {
					text = comms[c.Parent].Name + ", shrink"
				}
				if row := rows[ref]; row.Parent.String() != text {
					t.Errorf("the report says that %s is made of %q, want %q", c.Name, row.Parent, text)
				}
			}
			if found != len(want) {
				t.Errorf("%d of %d children are in the archive", found, len(want))
			}
		})
	}
}

// childOf is how a communicator came from the one with an id.
type childOf struct {
	parent       uint64
	split, color uint32
}

// truthOfChildren is what a labeled recording says of communicators that came from others, by id.
func truthOfChildren(t *testing.T, folder string) map[uint64]childOf {
	t.Helper()
	b := testkit.Value(os.ReadFile(filepath.Join(folder, "run.json")))(t)
	var run struct {
		Truth struct {
			Communicators []struct {
				CommID, ParentCommID string
				Color                uint32 `json:"colour"`
				ChildCount           uint32
			}
		}
	}
	testkit.Must(t, json.Unmarshal(b, &run))
	all := make(map[uint64]childOf)
	for _, c := range run.Truth.Communicators {
		id := testkit.Value(strconv.ParseUint(c.CommID, 0, 64))(t)
		if parent, err := strconv.ParseUint(c.ParentCommID, 0, 64); err == nil {
			all[id] = childOf{parent, c.ChildCount, c.Color}
		}
	}
	return all
}
