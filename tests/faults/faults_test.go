// SPDX-License-Identifier: Apache-2.0

// Package faults plays jobs in which something is killed, stopped, or gets errors from the disk, and holds what is left
// against what the job's processes know to have recorded (docs/reliability.md).
package faults

import (
	"flag"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

var (
	seedFlag  = flag.Uint64("seed", 1, "which cases: the same seed and number make the same case")
	casesFlag = flag.Int("cases", 240, "how many")
	caseFlag  = flag.Int("case", -1, "only the one of this number")
	atOnce    = flag.Int("at-once", 6, "how many run at a time; they wait more than they work")
	keepFlag  = flag.String("keep", "", "folder in which what cases made stays")
	onlyFlag  = flag.String("faults", "", "only cases of the fault with this name")
)

// Whatever dies, stops or fails, and whenever: nothing that was recorded is missing without being counted, nothing is
// there twice, the archive is sound, the job ends as it would have, and nothing is left behind.
func TestFaults(t *testing.T) {
	needInjection(t)
	if *caseFlag >= 0 {
		one(t, planned(*seedFlag, *caseFlag))
		return
	}
	var next, hit, tried atomic.Int64
	var workers sync.WaitGroup
	for range max(1, *atOnce) {
		workers.Go(func() {
			for {
				p := planned(*seedFlag, int(next.Add(1))-1)
				if p.number >= *casesFlag {
					return
				}
				if *onlyFlag != "" && p.fault.name != *onlyFlag {
					continue
				}
				t.Run(fmt.Sprintf("%d-%s", p.number, p.fault.name), func(t *testing.T) {
					tried.Add(1)
					if one(t, p) {
						hit.Add(1)
					}
				})
			}
		})
	}
	workers.Wait()
	t.Logf("seed %d: %d cases, in %d the fault came to pass", *seedFlag, tried.Load(), hit.Load())
	// What is to happen at some n-th call does not if there are fewer.
	testkit.Check(t, hit.Load() >= tried.Load()/2,
		"in only %d of %d cases the fault came to pass", hit.Load(), tried.Load())
}
