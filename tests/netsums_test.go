// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/matrix"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/tally"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/verdict"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/waits"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// ofNetwork is what reports say of the network.
type ofNetwork struct {
	waits    *waits.States
	verdict  *verdict.Verdict
	matrix   *matrix.Report
	tally    []tally.Row
	summed   bool
	oddities map[string]uint64
	events   uint64
}

func networkOf(t *testing.T, dir string) (n ofNetwork) {
	t.Helper()
	a := openArchive(t, filepath.Join(dir, "traces.otf2"))
	report := testkit.Value(operations.Observe(a, new(operations.Observer)))(t)
	n.waits, n.verdict, n.matrix = report.WaitStates, report.Verdict, matrix.Read(a, nil)
	for _, g := range tally.Read(a, nil).Groups {
		if g.Group == regions.GroupNetwork {
			n.tally = g.Rows
		}
	}
	ps := property.Read(a.Anchor)
	n.summed, n.oddities = ps.NetStepsSummed(), ps.Below(property.Oddities)
	for _, l := range a.Defs.Locations {
		n.events += l.Events
	}
	return n
}

// What reports say of the network is the same whether its steps were recorded one by one or summed up; what sums do not
// tell, they leave out.
func TestNetSumsSayWhatSingleStepsSay(t *testing.T) {
	t.Parallel()
	for _, rec := range recordings(t, "02-allcoll-4p-net", "05-p2p-3p", "06-twohosts-2x2", "13-gpu-few-2p-v7") {
		t.Run(rec.Name, func(t *testing.T) {
			t.Parallel()
			for _, way := range []struct {
				name   string
				change change
			}{
				{"collector", func(*replay.Options) {}},
				{"spool", spool},
			} {
				each, _ := play(t, rec, env("NCCL_OTF2_EVENTS=net"), way.change)
				single := networkOf(t, each)
				testkit.Require(t, !single.summed && len(single.waits.Network) != 0 && len(single.tally) != 0,
					"summed %v, %d ranks, %d phases", single.summed, len(single.waits.Network), len(single.tally))
				dir, _ := play(t, rec, env("NCCL_OTF2_EVENTS=net-sums"), way.change)
				summed := networkOf(t, dir)
				testkit.Check(t, summed.summed, "%s: the archive does not say that steps are summed up", way.name)
				sameNetwork(t, way.name, &single, &summed)
				checkSound(t, filepath.Join(dir, "traces.otf2"))
			}
		})
	}
}

func sameNetwork(t *testing.T, way string, single, summed *ofNetwork) {
	t.Helper()
	for what, diff := range map[string]string{
		"phases":   cmp.Diff(single.waits.Network, summed.waits.Network),
		"waits":    cmp.Diff(single.waits.Total, summed.waits.Total),
		"slow":     cmp.Diff(single.waits.Slow, summed.waits.Slow),
		"verdict":  cmp.Diff(single.verdict, summed.verdict),
		"oddities": cmp.Diff(single.oddities, summed.oddities),
		"networks": cmp.Diff(single.matrix.Networks, summed.matrix.Networks),
		"tally":    cmp.Diff(single.tally, summed.tally, cmpopts.IgnoreFields(tally.Row{}, "Min", "Max", "Summed")),
		// Several communicators of two ranks may have been busy at the same time.
		"flows": cmp.Diff(single.matrix.Ranks, knownTimes(single.matrix.Ranks, summed.matrix.Ranks)),
		"hosts": cmp.Diff(single.matrix.Hosts, knownTimes(single.matrix.Hosts, summed.matrix.Hosts)),
	} {
		testkit.Equal(t, diff, "", "%s: %s of single steps (−), of sums (+)", way, what)
	}
	timed := slices.IndexFunc(summed.matrix.Ranks, func(f matrix.Flow) bool { return f.Busy > 0 })
	testkit.Check(t, timed >= 0, "%s: no busy time is known from rank to rank", way)
	if !slices.ContainsFunc(summed.matrix.Remarks,
		func(r string) bool { return strings.Contains(r, "NCCL_OTF2_EVENTS=net ") }) {
		t.Errorf("%s: nothing says what to record for the rest: %q", way, summed.matrix.Remarks)
	}
	testkit.Check(t, summed.events < single.events,
		"%s: %d events, of single steps %d", way, summed.events, single.events)
	for _, row := range summed.tally {
		testkit.Check(t, row.Calls <= 0 || row.Summed && row.Min == 0 && row.Max == 0,
			"%s: the shortest and longest %s are stated: %+v", way, row.Name, row)
	}
}

// All products show the same numbers of an archive with sums as of any other. Single transfers are in none: those that
// show nothing else of the network say how many they leave out.
func TestProductsAgreeOnNetSums(t *testing.T) {
	t.Parallel()
	for _, rec := range recordings(t, "02-allcoll-4p-net", "13-gpu-few-2p-v7") {
		t.Run(rec.Name, func(t *testing.T) {
			t.Parallel()
			dir, _ := play(t, rec, env("NCCL_OTF2_EVENTS=net-sums"))
			f := testkit.Value(figuresOf(outputs(t, dir)))(t)
			for _, what := range []string{"transfers", "bytes of transfers"} {
				for _, product := range []string{"export --jsonl", "export --perfetto", "export --parquet"} {
					v, shown := f[what][product]
					testkit.Check(t, !shown || v.value == 0, "%s has %v %s", product, v.value, what)
					delete(f[what], product)
				}
				testkit.Check(t, len(f[what]) >= 3, "%s are shown by %d products", what, len(f[what]))
			}
			f.compareStampedEnds(t, endsAreMoved(openArchive(t, filepath.Join(dir, "traces.otf2"))))
			for _, what := range f.disagreements() {
				t.Error(what)
			}
			out, err := exec.Command(builtFile(t, "nccl-otf2"), "export", "--perfetto", "-o",
				filepath.Join(t.TempDir(), "run.pftrace"), dir).CombinedOutput()
			testkit.Check(t, err == nil && strings.Contains(string(out), "transfers that were recorded in sums"),
				"export: %v, %s", err, out)
		})
	}
}

// knownTimes gives flows the times that others have for the same pair, where their own are not known.
func knownTimes(from, flows []matrix.Flow) []matrix.Flow {
	out := slices.Clone(flows)
	for i := range out {
		if out[i].Busy == 0 && i < len(from) {
			out[i].Busy, out[i].Bandwidth = from[i].Busy, from[i].Bandwidth
		}
	}
	return out
}
