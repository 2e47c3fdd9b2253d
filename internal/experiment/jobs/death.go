// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
)

// Death is the end of a process that did not end in order.
type Death struct {
	name string // of the process: "Rank 3"
	how  string
	boot string
	time uint64 // on the job's clock, 0 if unknown
	// leads is set if the machine's clock leads others' by an approximately known time only.
	leads bool
}

// Minimum time by which a death must precede others to be reported as the first: as seen by the collectors of one
// machine, and by clocks of several machines.
const (
	leadHere      = time.Millisecond
	leadElsewhere = 100 * time.Millisecond
)

// Deaths lists the processes that died, the first one first, those with unknown times last.
func Deaths(parts []*Process) (all []Death) {
	for _, p := range parts {
		if e := p.Shard.End; e.Died() {
			all = append(all, Death{p.Name, e.String(), p.Shard.BootID, p.Ended(), p.lead != 0})
		}
	}
	// 0 becomes the greatest number
	slices.SortStableFunc(all, func(a, b Death) int { return cmp.Compare(a.time-1, b.time-1) })
	return all
}

// Ended returns when the process ended, on the job's clock; 0 if that was not observed.
func (p *Process) Ended() uint64 {
	if p.Shard.End == nil || p.Shard.End.Time == 0 {
		return 0
	}
	return p.At(p.Shard.End.Time)
}

// HowEnded describes the end of a process that is not recorded any more, if it was not in order: "killed by SIGKILL".
// Otherwise it is "".
func HowEnded(p *description.Process) string {
	if !p.End.Died() {
		return ""
	}
	return p.End.String()
}

// DeathWords describes deaths, one line for each kind in the order of time. It states which was first if that is
// certain.
func DeathWords(all []Death) (lines []string) {
	var order []string
	who := make(map[string][]string)
	for _, d := range all {
		if who[d.how] == nil {
			order = append(order, d.how)
		}
		who[d.how] = append(who[d.how], d.name)
	}
	lead := leadOf(all)
	for i, how := range order {
		names := who[how]
		if i == 0 && lead > 0 {
			lines = append(lines, fmt.Sprintf("%s was the first to end, %s before the next: %s", names[0],
				units.Time(float64(lead)), how))
			if names = names[1:]; len(names) == 0 {
				continue
			}
		}
		lines = append(lines, units.NameList(names)+" "+how)
	}
	return lines
}

// leadOf returns by how much the first death preceded the next one; 0 if that is not certain.
func leadOf(all []Death) time.Duration {
	if len(all) < 2 || slices.ContainsFunc(all, func(d Death) bool { return d.time == 0 }) {
		return 0
	}
	least := time.Duration(1<<63 - 1)
	for _, d := range all[1:] {
		lead, needed := time.Duration(d.time-all[0].time), leadHere
		if d.boot != all[0].boot {
			if d.leads || all[0].leads {
				return 0
			}
			needed = leadElsewhere
		}
		if lead < needed {
			return 0
		}
		least = min(least, lead)
	}
	return least
}
