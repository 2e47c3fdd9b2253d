// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/internal/stats"
)

// variants are what is measured in turn; the others are compared with the first.
var variants = []testCase{
	{mode: "cost", plugin: "none", ranks: 2},
	{mode: "cost", plugin: "empty", ranks: 2},
	{mode: "cost", events: "light", ranks: 2},
	{mode: "cost", events: "gpu", ranks: 2},
	{mode: "cost", events: "net", ranks: 2},
	{mode: "cost", events: "all", ranks: 2},
	{mode: "cost", events: "gpu", ranks: 2, cupti: true},
}

func variantName(c *testCase) string {
	switch {
	case c.plugin == "none":
		return "no plugin"
	case c.cupti:
		return c.events + " + CUPTI"
	}
	return cmp.Or(c.plugin, c.events)
}

// costs are what calls took, in ns, by row, variant and round.
type costs map[costKey]map[string][][]float64

type costKey struct {
	op    string
	bytes uint64
	gpu   bool // between CUDA events; else on the host until the calls have returned
}

func (all costs) add(variant string, logs []*jobLog) {
	round := make(map[costKey][]float64)
	for _, l := range logs {
		for _, c := range l.costs {
			host, gpu := costKey{c.Op, c.Bytes, false}, costKey{c.Op, c.Bytes, true}
			round[host] = append(round[host], c.HostNs...)
			round[gpu] = append(round[gpu], c.GPUNs...)
		}
	}
	for k, values := range round {
		if all[k] == nil {
			all[k] = make(map[string][][]float64)
		}
		all[k][variant] = append(all[k][variant], values)
	}
}

// overhead measures every variant in turn, round by round, as long as there is time.
func (h *harness) overhead(ctx context.Context, rounds int, until time.Time) (all costs, v *verdict) {
	all, v = make(costs), new(verdict)
	longest := 30 * time.Second
	for round := range rounds {
		for i := range variants {
			c := &variants[i]
			name := variantName(c)
			if time.Now().Add(longest).After(until) {
				v.note("time was up in round %d of %d, before %q", round+1, rounds, name)
				return all, v
			}
			began := time.Now()
			dir := filepath.Join(h.work, fmt.Sprintf("cost-%d-%d", round, i))
			experiment := filepath.Join(dir, "experiment")
			if err := os.Mkdir(dir, 0o777); err != nil {
				v.fail("%v", err)
				return all, v
			}
			logs, said, err := h.run(ctx, &job{mode: c.mode, ranks: c.ranks,
				settings: append(h.settings(c, experiment), "NCCL_DEBUG=WARN")}, dir)
			if err != nil {
				v.fail("%s: %s", name, strings.ReplaceAll(err.Error(), "\n", "; "))
				return all, v
			}
			if c.plugin == "" {
				v.warnings(said, nil)
				if err := h.collect(ctx, v, experiment, true); err != nil {
					v.fail("%s: %v", name, err)
				} else if a, err := readArchive(experiment); err != nil {
					v.fail("%s: %v", name, err)
				} else if lost := a.properties.Text(property.Lost); lost != "0" {
					v.fail("%s: %s events were lost", name, lost)
				}
				_ = os.RemoveAll(experiment) // it is the work folder's end anyway
			}
			all.add(name, logs)
			longest = max(longest, 2*time.Since(began))
		}
	}
	return all, v
}

func median(values []float64) float64 {
	return stats.Median(slices.Clone(values))
}

// table is a markdown table of medians in µs per call, with the ratio to the first variant; noise is how far that one's
// medians of rounds lie apart.
func (all costs) table(gpu bool) string {
	var b strings.Builder
	var names []string
	for i := range variants {
		name := variantName(&variants[i])
		for _, by := range all {
			if len(by[name]) > 0 {
				names = append(names, name)
				break
			}
		}
	}
	fmt.Fprintf(&b, "| operation | bytes | rounds | noise | %s |\n|---|---|---|---|%s\n", strings.Join(names, " | "),
		strings.Repeat("---|", len(names)))
	var keys []costKey
	for k := range all {
		if k.gpu == gpu {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(x, y costKey) int {
		return cmp.Or(cmp.Compare(x.op, y.op), cmp.Compare(x.bytes, y.bytes))
	})
	for _, k := range keys {
		var base float64
		fmt.Fprintf(&b, "| %s | %d ", k.op, k.bytes)
		for i, name := range names {
			rounds := all[k][name]
			m := median(slices.Concat(rounds...))
			if i == 0 {
				var each []float64
				for _, r := range rounds {
					each = append(each, median(r))
				}
				base = m
				fmt.Fprintf(&b, "| %d | %.1f %% | %.1f ", len(rounds),
					100*(slices.Max(append(each, 0))-slices.Min(append(each, base)))/max(base, 1), m/1000)
				continue
			}
			if len(rounds) == 0 || base == 0 {
				b.WriteString("| – ")
				continue
			}
			fmt.Fprintf(&b, "| %.1f (%.3f) ", m/1000, m/base)
		}
		b.WriteString("|\n")
	}
	return b.String()
}
