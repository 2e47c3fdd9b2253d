// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/provenance"
	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Pretended hosts whose time services are good to a microsecond are brought together to within 5 µs, which is also what
// is stated, where operations alone leave some hundred.
func TestTimeServicesOfPretendedHosts(t *testing.T) {
	const most, bound = 5e3, 1_000
	for _, name := range []string{"01-allreduce-2p", "09-straggler-4p"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rec := testkit.Value(replay.Load("../testdata/nccl-callbacks/" + name))(t)
			dir, _ := play(t, rec)
			truth := readArchive(t, filepath.Join(dir, "traces.otf2"))
			from, to := uint64(math.MaxUint64), uint64(0)
			for _, events := range truth.events {
				from, to = min(from, events[0].Time), max(to, events[len(events)-1].Time)
			}
			random := rand.New(rand.NewPCG(1, 11))
			clocks := make([]hostClock, len(rec.Processes))
			for p := range clocks {
				clocks[p] = hostClock{float64(truth.clockOffset), (2*random.Float64() - 1) * 50e6,
					(2*random.Float64() - 1) * 50e-6}
			}
			clocks[0].offset, clocks[0].drift = 0, 0
			pretendHosts(t, dir, clocks)
			files, err := filepath.Glob(filepath.Join(dir, experiment.Folder, "*", "shard.json"))
			testkit.Require(t, err == nil && len(files) == len(clocks), "%d shards: %v", len(files), err)
			for _, file := range files {
				p := testkit.Value(experiment.Read(filepath.Dir(file)))(t)
				host := testkit.Value(strconv.Atoi(strings.TrimPrefix(p.Host, "host")))(t)
				const readings = 5
				for n := range uint64(readings) {
					at := from + (to-from)/(readings-1)*n
					p.Clock.Readings = append(p.Clock.Readings, provenance.ClockReading{
						Source: "chrony", Time: clocks[host].shows(at),
						Reference: at + 7_000_000 + random.Uint64N(2*bound+1) - bound, Bound: bound,
					})
				}
				text := testkit.Value(json.Marshal(p))(t)
				testkit.Must(t, os.WriteFile(file, text, experiment.FileMode))
			}
			run := unifyWithTool(t, dir)
			testkit.Require(t, run.ClockSync != nil && run.ClockSync.Readings == 5*len(clocks) &&
				run.ClockSync.Broken == 0, "clocks: %+v", run.ClockSync)
			anchor := filepath.Join(dir, "traces.otf2")
			got := readArchive(t, anchor)
			a := testkit.Value(otf2.Open(anchor, nil))(t)
			if !slices.ContainsFunc(a.Anchor.Properties,
				func(p otf2.Property) bool { return p.Name == "NCCL_OTF2::CLOCK_SYNC::READINGS" }) {
				t.Error("the archive does not say that there were readings")
			}
			worst, uncertain := 0.0, 0.0
			for l, events := range truth.events {
				_, knots, err := a.LocalDefs(otf2.LocationRef(l))
				testkit.Must(t, err)
				sameTimes(t, a, otf2.LocationRef(l), got.events[l])
				for i, e := range events {
					off, u := math.Abs(float64(int64(got.events[l][i].Time-e.Time))), 0.0
					if p := int(uint32(l)); p > 0 {
						u = stated(knots, clocks[p].shows(e.Time))
					}
					worst, uncertain = max(worst, off), max(uncertain, u)
					testkit.Require(t, off <= u+1,
						"an event of location %d is %.0f ns off, and %.0f ns are stated", l, off, u)
				}
			}
			t.Logf("off by %.0f ns at most, %.0f ns are stated at most", worst, uncertain)
			testkit.Check(t, worst <= most && uncertain <= most,
				"off by %.0f ns, %.0f ns are stated, want %.0f at most", worst, uncertain, most)
		})
	}
}
