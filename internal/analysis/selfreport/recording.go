// SPDX-License-Identifier: Apache-2.0

package selfreport

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Report describes how an archive was recorded: with what, at what cost, and what it lacks. It is derived only from the
// archive's properties (listed in package scorep), so it is available at once, however many events there are.
type Report struct {
	Archive   string `json:"archive"`
	Creator   string `json:"creator"`
	Processes uint64 `json:"processes"` // processes with data
	// Complete reports that the archive does not report missing communication.
	Complete  bool    `json:"complete"`
	Recording []Value `json:"recording"`
	Costs     []Cost  `json:"costs"`
	Counts    []Count `json:"counts"`
	Remarks   []Text  `json:"remarks"`
}

// Value is a value that each process has: the NCCL library, its version, the clock, …
type Value struct {
	Name  string `json:"name"` // of the property: "API_VERSION"
	Value string `json:"value"`
	// Processes are the location groups of the processes with this value: "0-3,7"; "all" if there is only one value.
	Processes string `json:"processes"`
}

// Cost is the time of a plugin callback for events of one type, over all processes, from a sample that the plugin
// measured. Names are those of the properties: "START", "PROXY_STEP".
type Cost struct {
	Callback string  `json:"callback"`
	Type     string  `json:"type"`
	Samples  uint64  `json:"samples"`
	MeanNs   float64 `json:"mean_ns"`
	MostNs   float64 `json:"most_ns"`
}

// Count is a number of callbacks, losses, oddities, …, over all processes unless Kind says otherwise. Name is ""
// for a kind without names: NULL_HANDLES.
type Count struct {
	Kind  string `json:"kind"` // "STARTS", "LOST", …
	Name  string `json:"name"` // "COLL", "RING::PROXY_STEP", …
	Count uint64 `json:"count"`
}

// Text is a remark in words, such as a difference between members or a pause.
type Text struct {
	Kind string `json:"kind"`
	Text string `json:"text"`
}

// The properties in a Self, in the order of reports.
var (
	selfValues = []property.Name{property.Library, property.LibraryVersion, property.LibraryPath,
		property.APIVersion, property.EventMask, property.Withheld, property.RecordMask, property.NetSteps,
		property.ClockSource, property.MemoryKind,
		property.CUPTIState, property.CUPTIVersion, property.ScorepState, property.ImportedFrom,
		property.ImportMissing}
	selfCounts = []property.Name{
		property.ProcessesFinished, property.ProcessesRunning, property.ProcessesCrashed,
		property.ProcessesContinued, property.ProcessesDied, property.ProcessesMissing, property.Communicators,
		property.RanksMissing, property.RanksUnsized,
		property.Starts, property.Stops, property.States, property.Filtered, property.Paused, property.Lost,
		property.LostByProcess, property.NullHandles, property.Oddities, property.Timing, property.CUPTI,
		property.Scorep, property.Import,
		property.PXN, property.PXNUnresolved, property.TagCollisions,
	}
	selfRemarks = []property.Name{property.Died, property.Uncounted, property.Gaps, property.GapsDiffer,
		property.Differ}
)

// Read collects what an archive's properties say about its recording. An archive of another tool has none.
func Read(a *otf2.Archive) *Report {
	ps := PropertiesOf(a.Anchor)
	s := &Report{
		Archive: a.Path(), Creator: a.Anchor.Creator, Complete: !ps.Incomplete(),
		Recording: []Value{}, Costs: ps.costs(), Counts: []Count{}, Remarks: []Text{},
	}
	s.Processes, _ = ps.Number(property.Processes)
	for _, name := range selfValues {
		s.Recording = append(s.Recording, ps.Values(name)...)
	}
	for _, kind := range selfCounts {
		below := ps.Below(kind)
		if n, ok := ps.Number(kind); ok && len(below) == 0 {
			s.Counts = append(s.Counts, Count{string(kind), "", n})
		}
		at := len(s.Counts)
		for name, n := range below {
			s.Counts = append(s.Counts, Count{string(kind), name, n})
		}
		slices.SortFunc(s.Counts[at:], func(a, b Count) int {
			x, xErr := strconv.Atoi(a.Name)
			y, yErr := strconv.Atoi(b.Name)
			if xErr == nil && yErr == nil {
				return cmp.Compare(x, y) // processes
			}
			return cmp.Compare(a.Name, b.Name)
		})
	}
	for _, kind := range selfRemarks {
		for _, text := range ps.Numbered(kind) {
			s.Remarks = append(s.Remarks, Text{string(kind), text})
		}
	}
	return s
}

// Values lists the values of a property, and which processes have each.
func (ps Properties) Values(name property.Name) (all []Value) {
	if ps.Has(name) {
		all = append(all, Value{string(name), ps.Text(name), "all"})
	}
	for _, v := range ps.Numbered(name) {
		value, who := v, ""
		if i := strings.LastIndex(v, ": process"); i >= 0 {
			value, who = v[:i], strings.TrimPrefix(strings.TrimPrefix(v[i+2:], "processes "), "process ")
		}
		all = append(all, Value{string(name), value, who})
	}
	return all
}

func (ps Properties) costs() []Cost {
	all := []Cost{}
	for name := range ps.Properties {
		words := strings.Split(strings.TrimPrefix(name, property.Prefix), "::")
		if len(words) != 4 || words[0] != string(property.Cost) || words[3] != string(property.CostSamples) {
			continue
		}
		c := Cost{Callback: words[1], Type: words[2]}
		of := property.Cost.Below(c.Callback).Below(c.Type)
		c.Samples, _ = ps.Number(of.Below(string(property.CostSamples)))
		c.MeanNs, _ = strconv.ParseFloat(ps.Text(of.Below(string(property.CostMean))), 64)
		c.MostNs, _ = strconv.ParseFloat(ps.Text(of.Below(string(property.CostMost))), 64)
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b Cost) int {
		return cmp.Or(cmp.Compare(a.Callback, b.Callback), cmp.Compare(a.Type, b.Type))
	})
	return all
}
