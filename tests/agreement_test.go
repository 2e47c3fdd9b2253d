// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/analysis"
	"github.com/nccl-otf2/nccl-otf2/export"
	"github.com/nccl-otf2/nccl-otf2/facts"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/profile/cubex"
	"github.com/nccl-otf2/nccl-otf2/regions"
	"github.com/nccl-otf2/nccl-otf2/replay"
)

// figures are numbers that products show of one recording, by what they are and by product.
type figures map[string]map[string]float64

func (f figures) add(product, what string, v float64) {
	if f[what] == nil {
		f[what] = make(map[string]float64)
	}
	f[what][product] += v
}

// disagreements lists the numbers that products do not show alike. Times are sums of nanoseconds that may be added up in floats.
func (f figures) disagreements() (all []string) {
	for _, what := range slices.Sorted(maps.Keys(f)) {
		products := slices.Sorted(maps.Keys(f[what]))
		for _, p := range products[1:] {
			if a, b := f[what][products[0]], f[what][p]; math.Abs(a-b) > 1e-9*max(math.Abs(a), math.Abs(b)) {
				all = append(all, fmt.Sprintf("%s: %s has %v, %s %v", what, products[0], a, p, b))
			}
		}
	}
	return all
}

// shared is how many numbers two products or more show.
func (f figures) shared() (n int) {
	for _, by := range f {
		if len(by) > 1 {
			n++
		}
	}
	return n
}

// waitMetrics are the causes of waiting in collectives, in the words of reports and of profiles.
var waitMetrics = map[string]string{"collective": "mpi_wait_nxn", "late broadcast": "mpi_latebroadcast", "early reduce": "mpi_earlyreduce"}

// addReport takes the report's figures: counts are of all ranks' calls, and times of operations that were launched alone.
func (f figures) addReport(r *analysis.Report) {
	for i := range r.Operations {
		o := &r.Operations[i]
		f.add("report", o.Operation+" calls", float64(o.Calls))
		if !o.Grouped {
			f.add("report", o.Operation+" alone, calls", float64(o.Calls))
			f.add("report", o.Operation+" alone, member time", o.Time.Avg*float64(o.Calls)) // all members have ended
		}
	}
	for _, k := range r.WaitStates.Kinds {
		if metric := waitMetrics[k.Name]; metric != "" {
			f.add("report --waits", metric, float64(k.Waited))
		}
	}
	f.add("report", "waited in collectives", float64(r.Waits.Total))
	for i := range r.WaitStates.Kinds {
		if k := &r.WaitStates.Kinds[i]; waitMetrics[k.Name] != "" {
			f.add("report --waits", "waited in collectives", float64(k.Waited))
		}
	}
}

func (f figures) addTally(t *analysis.TallyReport) {
	for _, g := range t.Groups {
		if g.Group != regions.GroupCollectives && g.Group != regions.GroupPointToPoint {
			continue
		}
		for _, row := range g.Rows {
			if regions.CollectiveNamed(row.Name) != nil || facts.IsMessage(row.Name) { // launches of one
				f.add("report --tally", row.Name+" alone, calls", float64(row.Calls))
				f.add("report --tally", row.Name+" alone, member time", float64(row.Time))
			}
		}
	}
}

// addSummary takes a profile's figures. Its waits are added up over ranks; those of profile mode may be estimated.
func (f figures) addSummary(product string, s *cubex.Summary, waits bool) {
	for i := range s.Operations {
		o := &s.Operations[i]
		if o.Operation == "Group" {
			continue
		}
		f.add(product, o.Operation+" calls", float64(o.Calls))
		if !o.Grouped {
			f.add(product, o.Operation+" alone, calls", float64(o.Calls))
			f.add(product, o.Operation+" alone, member time", float64(o.Time.Sum))
		}
	}
	for _, metric := range waitMetrics {
		if waits {
			f.add(product, metric, float64(s.Waits[metric]))
		}
	}
}

// addParts takes the parts of operations that exports and the timeline are made of.
func (f figures) addParts(t *testing.T, a *otf2.Archive) {
	if _, err := analysis.EachPart(a, func(p *analysis.Part) error {
		f.add("parts", p.Function+" calls", 1)
		if !p.Grouped {
			f.add("parts", p.Function+" alone, calls", 1)
			f.add("parts", p.Function+" alone, member time", float64(p.End-p.Begin))
		}
		f.add("parts", "calls", 1)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// Whatever products show of the same recording is the same number: with the presets, with channels shown and not, from the archive's
// events and from profile mode.
func TestProductsAgree(t *testing.T) {
	t.Parallel()
	for _, rec := range recordings(t, "02-allcoll-4p-net", "03-onethread-4r-groups", "05-p2p-3p", "09-straggler-4p") {
		for _, events := range []string{"gpu", "all"} {
			t.Run(rec.Name+"/"+events, func(t *testing.T) {
				f := make(figures)
				for _, channels := range []string{"off", "on"} {
					dir, _ := play(t, rec, env("NCCL_OTF2_EVENTS="+events, "NCCL_OTF2_CHANNELS="+channels))
					a, err := otf2.Open(filepath.Join(dir, "traces.otf2"), nil)
					if err != nil {
						t.Fatal(err)
					}
					defer a.Close()
					one := make(figures)
					p, report, err := cubex.FromArchive(a)
					if err != nil {
						t.Fatal(err)
					}
					one.addReport(report)
					one.addTally(analysis.Tally(a))
					one.addSummary("profile", p.Summary(), true)
					one.addParts(t, a)
					exported, err := export.Parquet(a, filepath.Join(dir, "parquet"), "none", nil)
					if err != nil {
						t.Fatal(err)
					}
					one.add("export --parquet", "calls", float64(exported.Records["operations"]))
					if c := analysis.Compare(a, a, analysis.CompareOptions{}); c.Slower+c.Faster > 0 {
						t.Errorf("compared with itself %d are slower, %d faster", c.Slower, c.Faster)
					}
					if n := one.shared(); n < 5 {
						t.Errorf("channels %s: %d numbers are compared", channels, n)
					}
					for _, what := range one.disagreements() {
						t.Errorf("channels %s: %s", channels, what)
					}
					for what, by := range one { // channels change no number of operations
						if what == "calls" || by["report"] == 0 {
							continue
						}
						if strings.HasSuffix(what, " calls") {
							f.add("channels "+channels, what, by["report"])
						}
					}
				}
				dir := profiled(t, rec, events)
				jobs, problems, err := cubex.FromShards(dir)
				if err != nil || len(jobs) != 1 || len(problems) > 0 {
					t.Fatal(len(jobs), problems, err)
				}
				mode := make(figures)
				mode.addSummary("profile mode", jobs[0].Summary(), false)
				for what, by := range mode {
					if strings.HasSuffix(what, " calls") {
						f.add("profile mode", what, by["profile mode"])
					}
				}
				for _, what := range f.disagreements() {
					t.Error(what)
				}
			})
		}
	}
}

// profiled plays a recording in profile mode.
func profiled(t *testing.T, rec *replay.Recording, events string) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "experiment")
	runQuietly(t, rec, usual(t, dir, env("NCCL_OTF2_EVENTS="+events, "NCCL_OTF2_MODE=profile")))
	waitDone(t, dir, len(rec.Processes))
	return dir
}

// A number that one product shows otherwise is found.
func TestDisagreementsAreFound(t *testing.T) {
	f := make(figures)
	for _, product := range []string{"report", "profile", "report --tally"} {
		f.add(product, "AllReduce calls", 96)
		f.add(product, "AllReduce time", 1e9)
	}
	f.add("export", "transfers", 7)
	if all := f.disagreements(); len(all) > 0 || f.shared() != 2 {
		t.Errorf("%q, %d shared", all, f.shared())
	}
	f.add("report --tally", "AllReduce calls", 24)
	f.add("profile", "AllReduce time", 10)
	if all := f.disagreements(); len(all) < 2 {
		t.Errorf("found %q only", all)
	}
}
