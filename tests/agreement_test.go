// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/tally"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/internal/profile/cubex/cubextest"
	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// figure is a number as a product shows it, and by how much the shown one may differ, relatively, from what it is of.
type figure struct{ value, error float64 }

// figures are numbers that products show of one recording, by what they are and by product.
type figures map[string]map[string]figure

// add adds to a number, that of a sum.
func (f figures) add(product, what string, v float64) {
	// sums may be added up in floats
	f.near(product, what, f[what][product].value+v, max(1e-12, f[what][product].error))
}

// near notes a number that is rounded.
func (f figures) near(product, what string, v, relative float64) {
	if f[what] == nil {
		f[what] = make(map[string]figure)
	}
	f[what][product] = figure{v, relative}
}

// extreme notes the least or the most of several numbers.
func (f figures) extreme(product, what string, v float64, of func(a, b float64) float64) {
	if old, known := f[what][product]; known {
		v = of(old.value, v)
	}
	f.near(product, what, v, 0)
}

// disagreements lists the numbers that products do not show alike.
func (f figures) disagreements() (all []string) {
	for _, what := range slices.Sorted(maps.Keys(f)) {
		products := slices.Sorted(maps.Keys(f[what]))
		for _, p := range products[1:] {
			a, b := f[what][products[0]], f[what][p]
			if math.IsNaN(a.value+b.value) || math.Abs(a.value-b.value) > (a.error+b.error)*max(
				math.Abs(a.value), math.Abs(b.value)) {
				all = append(all, fmt.Sprintf("%s: %s has %v, %s %v", what, products[0], a.value, p, b.value))
			}
		}
	}
	return all
}

// shared is how many numbers of a product others show, too.
func (f figures) shared(product string) (n int) {
	for _, by := range f {
		if _, has := by[product]; has && len(by) > 1 {
			n++
		}
	}
	return n
}

var allAgreements = flag.Bool("agreements", false,
	"compare the products of all recordings, presets and channels; without, some recordings, each with one preset "+
		"and the channels on or off, so that all pairs come")

// labeled are the recordings of which it is known what made ranks wait.
func labeled(t *testing.T) (all []*replay.Recording) {
	t.Helper()
	files, err := filepath.Glob("../testdata/nccl-causes/*/run.json")
	testkit.Require(t, err == nil && len(files) >= 15, "%d labeled recordings: %v", len(files), err)
	for _, file := range files {
		rec := testkit.Value(replay.Load(filepath.Dir(file)))(t)
		all = append(all, rec)
	}
	return all
}

// presets are the events that are recorded; with light there are no operations' times but of enqueueing.
var presets = []string{"light", "net", "gpu", "all"}

// Whatever products show of the same recording is the same number: with the presets, with channels shown and not, from
// the archive's events and from profile mode. Where two products mean different things by a word their outputs say so,
// and the readers of products_test.go bring them together as they say.
func TestProductsAgree(t *testing.T) {
	t.Parallel()
	const few = 4 // of how many labeled recordings the short form takes one
	var mu sync.Mutex
	shared := make(map[string]int) // by product
	t.Run("recordings", func(t *testing.T) {
		for i, rec := range append(recordings(t), labeled(t)...) {
			if !*allAgreements && strings.HasPrefix(rec.Name, "c") && i%few != 0 {
				continue
			}
			for j, events := range presets {
				for k, channels := range []string{"off", "on"} {
					if !*allAgreements && (i/few%len(presets) != j || i%2 != k) {
						continue
					}
					t.Run(rec.Name+"/"+events+"/channels="+channels, func(t *testing.T) {
						t.Parallel()
						f := productsAgree(t, rec, events, channels)
						mu.Lock()
						defer mu.Unlock()
						for _, p := range products {
							shared[p.name] += f.shared(p.name)
						}
					})
				}
			}
		}
	})
	for _, p := range products {
		testkit.Check(t, shared[p.name] >= 20, "%d numbers of %s are compared", shared[p.name], p.name)
	}
}

func endsAreMoved(a *otf2.Archive) bool {
	return slices.ContainsFunc(a.Anchor.Properties, func(p otf2.Property) bool {
		return p.Name == property.EndsMoved.Key()
	})
}

// productsAgree compares what products show of one recording, and gives it.
func productsAgree(t *testing.T, rec *replay.Recording, events, channels string) figures {
	dir, _ := play(t, rec, env("NCCL_OTF2_EVENTS="+events, "NCCL_OTF2_CHANNELS="+channels))
	f := testkit.Value(figuresOf(outputs(t, dir)))(t)
	for _, p := range []string{"report", "report, CSV", "export --jsonl", "export --perfetto",
		"export --parquet", "timeline", "report --tally", "profile --summary"} {
		n := f.shared(p)
		testkit.Check(t, n >= 2, "%d numbers of %s are compared", n, p)
	}
	summed := filepath.Join(t.TempDir(), "experiment")
	runQuietly(t, rec, usual(t, summed, env("NCCL_OTF2_EVENTS="+events, "NCCL_OTF2_CHANNELS="+channels,
		"NCCL_OTF2_MODE=profile")))
	waitDone(t, summed, len(rec.Processes))
	file := filepath.Join(t.TempDir(), "summary.json")
	out, err := exec.Command(builtFile(t, "nccl-otf2"), "profile", summed, "--summary", file).CombinedOutput()
	testkit.Require(t, err == nil, "%v: %s", err, out)
	text, err := os.ReadFile(file)
	if err == nil {
		err = readSummary(f, "profile mode", map[string][]byte{"": text})
	}
	testkit.Must(t, err)
	a := openArchive(t, filepath.Join(dir, "traces.otf2"))
	f.compareStampedEnds(t, endsAreMoved(a))
	for _, what := range f.disagreements() {
		t.Error(what)
	}
	report := testkit.Value(operations.Observe(a, new(operations.Observer)))(t)
	made := cubextest.Load(t, filepath.Join(dir, "profile.cubex"))
	made.Sound(t)
	made.Agrees(t, report, tally.Read(a, nil))
	return f
}
