// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// However few descriptors a job may have (ulimit -n), all of it is recorded, or a line says that nothing is, and why.
// What a collector needs more than raw files do is said, too.
func TestFewDescriptors(t *testing.T) {
	t.Parallel()
	const (
		forRawFiles  = 6  // with a program that has no other files open
		forCollector = 64 // FILES in plugin/collector.c
	)
	limits := []int{forCollector - 1, forCollector, forCollector + 1}
	for n := 4; n <= 40; n++ {
		limits = append(limits, n)
	}
	rec := recording(t, "01-allreduce-2p")
	for name, changes := range map[string][]change{"collector": nil, "raw files": {spool}} {
		for _, n := range limits {
			t.Run(fmt.Sprintf("%s/%d", name, n), func(t *testing.T) {
				t.Parallel()
				dir := filepath.Join(t.TempDir(), "experiment")
				res := run(t, rec, usual(t, dir, append(changes, limited(fmt.Sprint("-n ", n)))...))
				collectors := name == "collector" && n >= forCollector
				if collectors {
					waitDone(t, dir, len(rec.Processes))
				}
				recorded := n >= forRawFiles
				if recorded {
					unified(t, dir)
				}
				shards := shardsByProcess(t, dir)
				for i := range res.Processes {
					p := &res.Processes[i]
					said := strings.ToLower(p.Stderr)
					switch s := shards[p.PID]; {
					case recorded && (s == nil || !maps.Equal(s.Counts.Starts, numbers(p.Report.Delivered.Starts))):
						t.Errorf("not all was recorded:\n%s", p.Stderr)
					case !recorded && !(strings.Contains(said, "nothing is recorded") &&
						(strings.Contains(said, "too many open files") || strings.Contains(said, "-n)"))):
						t.Errorf("nothing says why nothing is recorded:\n%s", p.Stderr)
					case !recorded && len(p.Report.Delivered.Starts) != 0:
						t.Errorf("events were taken that are nowhere: %v", p.Report.Delivered.Starts)
					}
					testkit.Equal(t, name == "collector" && !collectors, strings.Contains(
						said, "a collector needs 64 descriptors"), "of the collector it is said:\n%s", p.Stderr)
				}
			})
		}
	}
}

func numbers(of map[string]int) map[string]uint64 {
	out := make(map[string]uint64, len(of))
	for name, n := range of {
		out[name] = uint64(n)
	}
	return out
}
