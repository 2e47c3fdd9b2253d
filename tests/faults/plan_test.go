// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"
)

// plan is a case: all of it follows from seed and number.
type plan struct {
	seed   uint64
	number int
	random *rand.Rand

	job       uint64 // seed of the job that is played
	release   string
	processes int
	calls     int
	hazards   bool
	lasts     time.Duration // 0: as fast as it goes

	ring    string // NCCL_OTF2_RING
	spool   bool   // NCCL_OTF2_COLLECTOR=spool
	profile bool   // NCCL_OTF2_MODE=profile
	backlog bool   // NCCL_OTF2_BACKLOG=on
	memory  string // NCCL_OTF2_MEMORY
	beside  int    // so often unify runs beside the job …
	besideN int    // … and is killed at this call; 0: it is not

	fault *fault
}

func planned(seed uint64, number int) *plan {
	p := &plan{seed: seed, number: number, random: rand.New(rand.NewPCG(seed, uint64(number)))}
	p.job = p.random.Uint64()
	p.release = pick(p, "2.27.7", "2.28.9", "2.29.7", "2.30.7",
		"2.31.2") // before 2.27 sizes of communicators are not told, so operations have no events
	p.processes = 1 + p.random.IntN(3)
	p.calls = 300 + p.random.IntN(1500)
	p.hazards = p.random.IntN(4) == 0
	p.lasts = pick(p, 0, 100*time.Millisecond, 300*time.Millisecond, 700*time.Millisecond)
	p.ring = pick(p, "memfd", "memfd", "shm")
	p.memory = pick(p, "4M", "16M", "64M")
	if p.random.IntN(4) == 0 {
		p.beside = 1 + p.random.IntN(3)
		p.besideN = pick(p, 0, p.few())
	}
	var all []*fault
	for i := range faults {
		for range faults[i].weight {
			all = append(all, &faults[i])
		}
	}
	p.fault = pick(p, all...)
	p.spool = p.fault.spool && p.random.IntN(3) == 0
	p.profile = !p.spool && p.random.IntN(5) == 0
	p.backlog = !p.spool && !p.profile && number%2 == 1 // cases are otherwise what they are without
	return p
}

func pick[T any](p *plan, from ...T) T { return from[p.random.IntN(len(from))] }

// few is a number of a call: small ones are as likely as large ones, as most of what matters is at the beginning and at
// the end.
func (p *plan) few() int { return 1 + int(math.Exp(p.random.Float64()*math.Log(150))) }

// upTo is some time, mostly a short one.
func (p *plan) upTo(most time.Duration) time.Duration {
	return time.Duration(p.random.Float64() * p.random.Float64() * float64(most))
}

func (p *plan) String() string {
	words := []string{p.fault.name, fmt.Sprintf(
		"job %d of NCCL %s, %d processes, %d calls", p.job, p.release, p.processes, p.calls), p.ring,
		"memory " + p.memory}
	for word, on := range map[string]bool{"spool": p.spool, "profile": p.profile, "backlog": p.backlog,
		"hazards": p.hazards} {
		if on {
			words = append(words, word)
		}
	}
	if p.lasts > 0 {
		words = append(words, fmt.Sprintf("in %v", p.lasts))
	}
	if p.beside > 0 {
		words = append(words, fmt.Sprintf("%d × unify beside it, killed at call %d", p.beside, p.besideN))
	}
	return strings.Join(words, ", ")
}

// again is the command that runs the case again.
func (p *plan) again() string {
	return fmt.Sprintf("go test ./tests/faults -run TestFaults -v -seed %d -case %d", p.seed, p.number)
}
