// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"path/filepath"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/check"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/waits"
	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/internal/view"
	"github.com/nccl-otf2/nccl-otf2/tests/scoutrules"
)

// The view of every recording holds all waiting that the report has, to the nanosecond, but for what scout has no eye
// for: in rooted collectives others than the root wait for the last member, too; a send that has ended before its
// receiver comes waited all its time; and sends waited longer than a receive of their launch, which hides them. scout
// has nothing to say against the view: all times in it can be compared, and do not contradict each other.
func TestTheViewHasTheWaitsOfTheReport(t *testing.T) {
	var folders []string
	for _, set := range []string{"nccl-callbacks", "nccl-causes"} {
		found, err := filepath.Glob(filepath.Join("../testdata", set, "*", "run.json"))
		testkit.Require(t, err == nil && len(found) != 0, "%v %v", set, err)
		folders = append(folders, found...)
	}
	for _, f := range folders {
		rec := testkit.Value(replay.Load(filepath.Dir(f)))(t)
		presets := []string{"all"}
		switch rec.Name {
		case "02-allcoll-4p-net", "05-p2p-3p", "10-graph-3p", "c13-selfsend-4p": // times of GPUs, networks, and none
			presets = []string{"all", "gpu", "light"}
		}
		for _, preset := range presets {
			t.Run(rec.Name+"/"+preset, func(t *testing.T) {
				t.Parallel()
				dir, _ := play(t, rec, env("NCCL_OTF2_EVENTS="+preset))
				anchor := filepath.Join(dir, "traces.otf2")
				a := openArchive(t, anchor)
				var all, rooted, outlasted uint64
				testkit.Value(operations.Observe(a, &operations.Observer{Waited: func(w *waits.Wait) {
					all += w.Waited
					switch {
					case w.Kind == "early reduce" || w.Kind == "late broadcast":
						rooted += w.Waited
					case w.Kind == "late receiver" && w.Waited == w.Time:
						outlasted += w.Waited
					}
				}}))(t)
				res := testkit.Value(view.Scalasca(anchor, filepath.Join(dir, "scalasca"), nil))(t)
				testkit.Check(t, res.Waits.Shown == res.Waits.Recorded && res.Waits.Shown <= all &&
					all-res.Waits.Shown <= rooted+outlasted+res.Waits.Masked,
					"report: %d ns, %d of them in rooted collectives, %d of sends that ended before; view: %+v", all,
					rooted, outlasted, res.Waits)
				for name, check := range map[string]func(string, *check.Options) (
					*check.Result, error){"check": check.Archive, "scout": scoutrules.Check} {
					found := testkit.Value(check(res.Archive, nil))(t)
					for _, f := range found.Findings {
						t.Errorf("%s: %v", name, f)
					}
				}
			})
		}
	}
}
