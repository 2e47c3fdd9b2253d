// SPDX-License-Identifier: Apache-2.0

package measurement

import (
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs"
	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Pairing links one of our processes to the same process in a measurement.
type Pairing struct {
	*Process
	Timer    Timer
	Transfer *Transfer // converts our process's times to the measurement's
}

// Pair maps each of our processes to the measurement's process with the same host and process id, if by its clock it
// lived during the measurement. Process ids recur and host names need not be unique, so an ambiguous match is no pair.
// reasons, one line each, describe processes that nearly match.
func Pair(parts []*jobs.Process, m *Trace) (pairs map[*jobs.Process]*Pairing, reasons []string) {
	pairs = make(map[*jobs.Process]*Pairing)
	unrelated := make(map[string][]string) // process names, by the reason why their times do not fit Score-P's
	lives := make(map[*Process]map[jobs.ProcessLife]bool)
	for _, p := range parts {
		var fits []*Pairing
		for _, q := range m.Candidates(p) {
			fit, err := m.relate(p, q)
			if err != nil {
				unrelated[err.Error()] = append(unrelated[err.Error()], p.ID())
				continue
			}
			fits = append(fits, fit)
		}
		switch {
		case len(fits) == 1:
			pairs[p] = fits[0]
			q := fits[0].Process
			keyed.Map(lives, q)[jobs.LifeOf(p.Shard)] = true
		case len(fits) > 1:
			reasons = append(reasons, fmt.Sprintf(
				"%s fits %d processes of Score-P, so it goes by itself", p.ID(), len(fits)))
		}
	}
	for p, fit := range pairs {
		if n := len(lives[fit.Process]); n > 1 {
			reasons = append(reasons, fmt.Sprintf("%s fits %d processes, so they go by themselves", fit.id(), n))
			delete(pairs, p)
		}
	}
	for why, ids := range unrelated {
		reasons = append(reasons, fmt.Sprintf("%s: %s", some(ids), why))
	}
	slices.Sort(reasons)
	return pairs, slices.Compact(reasons)
}

// Candidates returns the measurement's processes with the same host and process id as p.
func (m *Trace) Candidates(p *jobs.Process) (all []*Process) {
	for _, q := range m.byPID[p.Shard.PID] {
		if SameHost(p.Shard.Host, q.Host) {
			all = append(all, q)
		}
	}
	return all
}

// SameHost reports whether two host names are equal. One may have a domain that the other lacks.
func SameHost(a, b string) bool {
	if a == b {
		return true
	}
	x, xDomain, _ := strings.Cut(a, ".")
	y, yDomain, _ := strings.Cut(b, ".")
	return x == y && x != "" && (xDomain == "") != (yDomain == "")
}

// relate pairs p with q, by the first timer with which p's life overlaps the measurement. The error states why none
// does.
func (m *Trace) relate(p *jobs.Process, q *Process) (*Pairing, error) {
	c := m.Archive.Defs.Clock
	var why error
	for _, by := range m.timers() {
		t, err := newTransfer(p.Shard, by, q.clock)
		if err != nil {
			why = firstError(why, err)
			continue
		}
		// After Score-P's corrections, hosts' clocks differ by far less than a second.
		slack := c.Resolution
		begin, end := t.exact(p.Life.Begin), t.exact(max(p.Life.End, p.Life.Begin))
		if begin.Cmp(integer(c.Offset+c.Length+slack)) > 0 || end.Cmp(integer(c.Offset-min(c.Offset, slack))) < 0 {
			why = firstError(
				why, fmt.Errorf("alive from %s to %s s of the measurement, by its timer (%v); it took %.3f s",
					seconds(begin, c), seconds(end, c), by, float64(c.Length)/float64(max(1, c.Resolution))))
			continue
		}
		return &Pairing{Process: q, Timer: by, Transfer: t}, nil
	}
	return nil, why
}

func firstError(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// seconds formats a time of a measurement as seconds since its start.
func seconds(v *big.Rat, c otf2.ClockProperties) string {
	since := new(big.Rat).Sub(v, integer(c.Offset))
	return since.Quo(since, integer(max(1, c.Resolution))).FloatString(3)
}

// NoPair returns the error for a measurement and recordings without a common process.
func NoPair(m *Trace, parts []*jobs.Process, reasons []string) error {
	var theirs, ours []string
	for _, q := range m.Processes {
		theirs = append(theirs, q.id())
	}
	for _, p := range parts {
		ours = append(ours, p.ID())
	}
	text := fmt.Sprintf("nothing pairs: Score-P measured %s; NCCL was recorded in %s", some(theirs), some(ours))
	const most = 3
	for _, r := range reasons[:min(len(reasons), most)] {
		text += "; " + r
	}
	return fmt.Errorf("%s", text)
}

// some joins up to four elements of a list, and states how many more there are.
func some(list []string) string {
	const most = 4
	if len(list) == 0 {
		return "nothing"
	}
	slices.Sort(list)
	text := strings.Join(list[:min(len(list), most)], ", ")
	if more := len(list) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
