// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/provenance"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/internal/hidden"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
)

// evidence lists the properties that describe how each process was recorded. value returns "" if the value is unknown.
var evidence = []struct {
	name  property.Name
	value func(p *description.Process) string
	usual string // if all processes have this value, the property is omitted
}{
	{property.Library, func(p *description.Process) string { return p.Library }, ""},
	{property.LibraryVersion, func(p *description.Process) string { return libraryVersion(p.LibraryVersion) }, ""},
	{property.LibraryPath, func(p *description.Process) string { return p.LibraryPath }, ""},
	{property.APIVersion, func(p *description.Process) string { return strconv.Itoa(p.APIVersion) }, ""},
	{property.EventMask, func(p *description.Process) string { return fmt.Sprintf("%#x", p.Masks.Event) }, ""},
	{property.Withheld, withheld, nothingWithheld},
	{property.RecordMask, func(p *description.Process) string { return fmt.Sprintf("%#x", p.Masks.Record) }, ""},
	{property.NetSteps, netSteps, eachStep},
	{property.ClockSource, func(p *description.Process) string { return p.Clock.Source }, ""},
	{property.MemoryKind, func(p *description.Process) string { return p.Memory.Kind }, ""},
	{property.CUPTIState, cuptiState, cuptiOff},
	{property.CUPTIVersion, cuptiVersion, unknownValue},
	{property.ScorepState, scorepState, scorepOff},
	{property.ImportedFrom, func(p *description.Process) string { return importOf(p).From }, notImported},
	{property.ImportMissing, func(p *description.Process) string { return strings.Join(importOf(p).Missing, "; ") },
		notImported},
}

// nothingWithheld is the value for processes that got all event types that they wanted.
const nothingWithheld = "nothing"

// withheld names the event types that a process wanted but could not safely request from NCCL, and the reason. At
// present these can only be GPU times.
func withheld(p *description.Process) string {
	if p.Masks.Withheld == 0 {
		return nothingWithheld
	}
	const what = "GPU times (KernelCh): "
	switch p.Masks.WithheldWhy {
	case provenance.WithheldRoom:
		return what + hidden.NoRoom
	case provenance.WithheldLate:
		return what + "the collector was ready late, and NCCL cannot begin with them later"
	}
	return what + hidden.Danger + "; " + hidden.AllGatherV + "=0 in all processes makes them safe"
}

// eachStep is the value for processes whose network steps were recorded one by one, or not at all.
const eachStep = "one by one"

func netSteps(p *description.Process) string {
	if p.Masks.NetSums {
		return property.NetStepsSummed
	}
	return eachStep
}

// unknownValue replaces an empty value.
const unknownValue = "unknown"

// cuptiOff is the value for processes that were not asked to use CUPTI.
const cuptiOff = "off"

// cuptiState returns the state of CUPTI in a process, as package shm names it, with the reason or error if there is
// one.
func cuptiState(p *description.Process) string {
	switch c := p.Cupti; {
	case c == nil:
		return cuptiOff
	case c.Why != "":
		return c.State + ": " + c.Why
	case c.Error != 0:
		return fmt.Sprintf("%s: error %d", c.State, c.Error)
	default:
		return c.State
	}
}

// scorepOff is the value for processes without Score-P, or in which it was not to be used.
const scorepOff = "off"

// scorepState returns the state of forwarding to Score-P, with the reason if it is off, else the thread model.
func scorepState(p *description.Process) string {
	switch s := p.Scorep; {
	case s == nil:
		return scorepOff
	case s.Why != "":
		return s.State + ": " + s.Why
	default:
		return s.State + " (" + s.Model + ")"
	}
}

// notImported is the value for processes that our own plugin recorded.
const notImported = "nothing"

func importOf(p *description.Process) *description.Import {
	if p.Import == nil {
		return &description.Import{From: notImported, Missing: []string{notImported}}
	}
	return p.Import
}

func cuptiVersion(p *description.Process) string {
	if p.Cupti == nil || p.Cupti.Version == 0 {
		return ""
	}
	return strconv.FormatUint(uint64(p.Cupti.Version), 10)
}

// libraryVersion formats the number of ncclGetVersion: major·10000 + minor·100 + patch since NCCL 2.9, major·1000 +
// minor·100 + patch before. It returns "" if the version is unknown.
func libraryVersion(code int) string {
	switch {
	case code <= 0:
		return ""
	case code >= 10000:
		return fmt.Sprintf("%d.%d.%d", code/10000, code/100%100, code%100)
	}
	return fmt.Sprintf("%d.%d.%d", code/1000, code/100%10, code%100)
}

// describeEvidence adds properties for how each process was recorded, and for the cost of recording.
func (r *roster) describeEvidence(ps *properties) {
	for _, e := range evidence {
		by := make(map[string][]int)
		var values []string
		for _, p := range r.ordered() {
			v := cmp.Or(e.value(p.Shard), unknownValue)
			if by[v] == nil {
				values = append(values, v)
			}
			by[v] = append(by[v], p.Index)
		}
		if len(values) == 1 && values[0] == e.usual {
			continue
		}
		if len(values) == 1 {
			ps.add(e.name, values[0])
			continue
		}
		for i, v := range values[:min(len(values), maxDifferences)] {
			ps.add(e.name.Nth(i), v+": "+processWords(by[v]))
		}
	}
	r.describeCosts(ps)
}

// processWords lists processes by their location groups: "process 3", "processes 0-3,7".
func processWords(indices []int) string {
	if len(indices) == 1 {
		return fmt.Sprintf("process %d", indices[0])
	}
	return "processes " + units.Ranks(indices)
}

// describeCosts adds the duration of the plugin's callbacks over all processes, by callback and event type: samples,
// mean and maximum in ns.
func (r *roster) describeCosts(ps *properties) {
	type key struct{ callback, typ string }
	type cost struct {
		samples   uint64
		sum, most float64
	}
	all := make(map[key]*cost)
	var keys []key
	for _, p := range r.run.Processes {
		for _, c := range p.Shard.Costs {
			if c.Samples == 0 {
				continue
			}
			k := key{component(c.Callback), component(c.Type)}
			if all[k] == nil {
				all[k] = new(cost)
				keys = append(keys, k)
			}
			all[k].samples += c.Samples
			all[k].sum += float64(c.Samples) * c.MeanNs
			all[k].most = max(all[k].most, c.MostNs)
		}
	}
	slices.SortFunc(keys, func(x, y key) int {
		return cmp.Or(cmp.Compare(x.callback, y.callback), cmp.Compare(x.typ, y.typ))
	})
	for _, k := range keys {
		name, c := property.Cost.Below(k.callback).Below(k.typ), all[k]
		ps.addNumber(name.Below(string(property.CostSamples)), c.samples)
		ps.add(name.Below(string(property.CostMean)), strconv.FormatFloat(c.sum/float64(c.samples), 'f', 1, 64))
		ps.add(name.Below(string(property.CostMost)), strconv.FormatFloat(c.most, 'f', 1, 64))
	}
}
