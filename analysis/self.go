// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Self is what an archive says of its own making: with what it was recorded, what that cost, and what
// is not in it. It comes from the archive's properties alone (package scorep lists them), so it is
// there at once, however many events there are.
type Self struct {
	Archive   string `json:"archive"`
	Creator   string `json:"creator"`
	Processes uint64 `json:"processes"` // with data
	// Complete tells that the archive does not say of itself that communication is missing.
	Complete  bool        `json:"complete"`
	Recording []SelfValue `json:"recording"`
	Costs     []SelfCost  `json:"costs"`
	Counts    []SelfCount `json:"counts"`
	Remarks   []SelfText  `json:"remarks"`
}

// SelfValue is something that each process has: the NCCL library, its version, the clock, ….
type SelfValue struct {
	Name  string `json:"name"` // of the property, "API_VERSION"
	Value string `json:"value"`
	// Processes are the location groups of the processes with this value, "0-3,7"; "all" if there is one
	// value only.
	Processes string `json:"processes"`
}

// SelfCost is what a callback of the plugin took for events of one type, in all processes, as the
// plugin measured it on a sample. Names are those of the properties: "START", "PROXY_STEP".
type SelfCost struct {
	Callback string  `json:"callback"`
	Type     string  `json:"type"`
	Samples  uint64  `json:"samples"`
	MeanNs   float64 `json:"mean_ns"`
	MostNs   float64 `json:"most_ns"`
}

// SelfCount is a number of callbacks, losses, oddities, …, over all processes unless Kind says
// otherwise. Name is "" where the kind is all: NULL_HANDLES.
type SelfCount struct {
	Kind  string `json:"kind"` // "STARTS", "LOST", …
	Name  string `json:"name"` // "COLL", "RING::PROXY_STEP", …
	Count uint64 `json:"count"`
}

// SelfText is a remark in words: a difference between members, a pause.
type SelfText struct {
	Kind string `json:"kind"`
	Text string `json:"text"`
}

// The kinds of what archives say of themselves, in the order of reports.
var (
	selfValues = []string{"LIBRARY", "LIBRARY_VERSION", "LIBRARY_PATH", "API_VERSION", "EVENT_MASK", "WITHHELD", "RECORD_MASK", "CLOCK_SOURCE", "MEMORY_KIND",
		"CUPTI_STATE", "CUPTI_VERSION", "SCOREP_STATE", "IMPORTED_FROM", "IMPORT_MISSING"}
	selfCounts = []string{
		"PROCESSES_FINISHED", "PROCESSES_RUNNING", "PROCESSES_CRASHED", "PROCESSES_CONTINUED", "PROCESSES_DIED", "PROCESSES_MISSING", "COMMUNICATORS", "RANKS_MISSING", "RANKS_OF_UNKNOWN_SIZE",
		"STARTS", "STOPS", "STATES", "FILTERED", "PAUSED", "LOST", "LOST_BY_PROCESS", "NULL_HANDLES", "ODDITIES", "TIMING", "CUPTI", "SCOREP", "IMPORT",
		"PXN", "PXN_UNRESOLVED", "TAG_COLLISIONS",
	}
	selfRemarks = []string{"DIED", "GAPS", "GAPS_DIFFER", "SEQUENCES_DIFFER"}
)

// SelfReport collects what an archive says of its own making. An archive of another tool says nothing.
func SelfReport(a *otf2.Archive) *Self {
	ps := propertiesOf(a.Anchor)
	s := &Self{
		Archive: a.Path(), Creator: a.Anchor.Creator, Complete: !ps.incomplete(),
		Recording: []SelfValue{}, Costs: ps.costs(), Counts: []SelfCount{}, Remarks: []SelfText{},
	}
	s.Processes, _ = ps.number("PROCESSES")
	for _, name := range selfValues {
		s.Recording = append(s.Recording, ps.values(name)...)
	}
	for _, kind := range selfCounts {
		below := ps.below(kind)
		if n, ok := ps.number(kind); ok && len(below) == 0 {
			s.Counts = append(s.Counts, SelfCount{kind, "", n})
		}
		at := len(s.Counts)
		for name, n := range below {
			s.Counts = append(s.Counts, SelfCount{kind, name, n})
		}
		slices.SortFunc(s.Counts[at:], func(a, b SelfCount) int {
			x, xErr := strconv.Atoi(a.Name)
			y, yErr := strconv.Atoi(b.Name)
			if xErr == nil && yErr == nil {
				return cmp.Compare(x, y) // processes
			}
			return cmp.Compare(a.Name, b.Name)
		})
	}
	for _, kind := range selfRemarks {
		for _, text := range ps.numbered(kind) {
			s.Remarks = append(s.Remarks, SelfText{kind, text})
		}
	}
	return s
}

// values lists what processes have of something, and which.
func (ps properties) values(name string) (all []SelfValue) {
	if v, ok := ps[prefix+name]; ok {
		all = append(all, SelfValue{name, v, "all"})
	}
	for _, v := range ps.numbered(name) {
		value, who := v, ""
		if i := strings.LastIndex(v, ": process"); i >= 0 {
			value, who = v[:i], strings.TrimPrefix(strings.TrimPrefix(v[i+2:], "processes "), "process ")
		}
		all = append(all, SelfValue{name, value, who})
	}
	return all
}

// numbered lists the values of NAME::0, NAME::1, ….
func (ps properties) numbered(name string) (all []string) {
	for i := 0; ; i++ {
		v, ok := ps[prefix+name+"::"+strconv.Itoa(i)]
		if !ok {
			return all
		}
		all = append(all, v)
	}
}

func (ps properties) costs() []SelfCost {
	all := []SelfCost{}
	for name := range ps {
		words := strings.Split(strings.TrimPrefix(name, prefix), "::")
		if len(words) != 4 || words[0] != "COST" || words[3] != "SAMPLES" {
			continue
		}
		c := SelfCost{Callback: words[1], Type: words[2]}
		c.Samples, _ = ps.number("COST::" + c.Callback + "::" + c.Type + "::SAMPLES")
		c.MeanNs, _ = strconv.ParseFloat(ps[prefix+"COST::"+c.Callback+"::"+c.Type+"::MEAN_NS"], 64)
		c.MostNs, _ = strconv.ParseFloat(ps[prefix+"COST::"+c.Callback+"::"+c.Type+"::MOST_NS"], 64)
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b SelfCost) int {
		return cmp.Or(cmp.Compare(a.Callback, b.Callback), cmp.Compare(a.Type, b.Type))
	})
	return all
}
