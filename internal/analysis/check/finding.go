// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/printable"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Severity of a finding.
type Severity string

const (
	Error Severity = "error" // the archive is wrong
	Note  Severity = "note"  // not as in a complete archive, but explained by what the archive says of itself
)

// Rule names what a finding is about.
type Rule string

// The rules that Check knows.
const (
	RuleFile           Rule = "file"             // a file is damaged or not there
	RuleAnchor         Rule = "anchor"           // the anchor contradicts the definitions
	RuleClock          Rule = "clock"            // clock properties are not usable
	RuleIDs            Rule = "ids"              // ids of a kind are not 0, 1, 2, …, or one is defined twice
	RuleReference      Rule = "reference"        // something that is not defined is referred to
	RuleMembers        Rule = "members"          // members of a group are out of range
	RuleLocationGroup  Rule = "location-group"   // location group and its locations or creator do not fit
	RuleTimeOrder      Rule = "time-order"       // time goes back
	RuleTimeRange      Rule = "time-range"       // an event outside the clock properties
	RuleNesting        Rule = "nesting"          // regions are not left in the order in which they were entered
	RuleAttribute      Rule = "attribute"        // an attribute has another type than its definition, or comes twice
	RuleEventCount     Rule = "event-count"      // number of events ≠ definition or chunk header
	RuleCollective     Rule = "collective"       // begin and end of a collective are not a pair within one region
	RuleRequest        Rule = "request"          // a request is used twice, unknown, or never completed
	RuleCommunicator   Rule = "communicator"     // used before its creation, after its end, or by no member
	RuleRank           Rule = "rank"             // a root or peer is not in the communicator
	RuleCollectiveMate Rule = "collective-match" // members do not have the same collectives
	RuleRoot           Rule = "collective-root"  // they name different roots
	RuleSize           Rule = "collective-size"  // their sizes do not fit each other
	RuleMessage        Rule = "message-match"    // a send without receive, or the reverse
	RuleLength         Rule = "message-length"   // their lengths differ
	RuleMeasurement    Rule = "measurement"      // recording goes on or off twice
	RuleProcess        Rule = "process"          // a process did not end in order
	RuleLoss           Rule = "loss"             // events were lost: no memory or disk, or the collector died
	RuleCounter        Rule = "counter"          // a counter of the archive is not what the events give
)

// Finding is one thing that Check found.
type Finding struct {
	Severity    Severity         `json:"severity"`
	Rule        Rule             `json:"rule"`
	HasLocation bool             `json:"has_location"`
	Location    otf2.LocationRef `json:"location"` // if HasLocation
	Event       uint64           `json:"event"`    // number of the event in its location, from 1; 0: none
	Time        otf2.Timestamp   `json:"time"`     // of that event
	Text        string           `json:"text"`
}

// String is the finding in one line: severity, rule, location, event, time, text.
func (f Finding) String() string {
	var b strings.Builder
	printable.Fprintf(&b, "%s: %s: ", f.Severity, f.Rule)
	if f.HasLocation {
		printable.Fprintf(&b, "location %d", f.Location)
		if f.Event > 0 {
			printable.Fprintf(&b, ", event %d, time %d", f.Event, f.Time)
		}
		b.WriteString(": ")
	}
	b.WriteString(printable.Name(f.Text))
	return b.String()
}

// Result is what Check found.
type Result struct {
	Findings []Finding       `json:"findings"`
	Dropped  map[Rule]uint64 `json:"dropped,omitempty"` // findings beyond the limit, by rule
	Events   uint64          `json:"events"`            // that were looked at
	errors   int
}

// Errors is the number of findings that are errors, those beyond the limit included.
func (r *Result) Errors() int { return r.errors }

// Findings collects at most limit findings of each rule and severity.
type Findings struct {
	all     []Finding
	count   map[kind]uint64
	limit   uint64
	said    analysis.Properties // by the archive itself
	apart   []facts.Stretch     // operations that members do not have alike
	lenient bool                // it says that it is incomplete
}

type kind struct {
	rule     Rule
	severity Severity
}

// room counts a finding and reports whether it is to be kept.
func (fs *Findings) room(severity Severity, rule Rule) bool {
	k := kind{rule, severity}
	fs.count[k]++
	return fs.count[k] <= fs.limit
}

// Add adds a finding; those of a rule beyond the limit are counted only.
func (fs *Findings) Add(f Finding) {
	if fs.room(f.Severity, f.Rule) {
		fs.all = append(fs.all, f)
	}
}

// Result sums up what was collected, errors first.
func (fs *Findings) Result(events uint64) *Result {
	r := &Result{Findings: fs.all, Dropped: make(map[Rule]uint64), Events: events}
	for k, n := range fs.count {
		if n > fs.limit {
			r.Dropped[k.rule] += n - fs.limit
		}
		if k.severity == Error {
			r.errors += int(n)
		}
	}
	slices.SortStableFunc(r.Findings, func(a, b Finding) int {
		return cmp.Compare(analysis.BoolCount(a.Severity != Error), analysis.BoolCount(b.Severity != Error))
	})
	return r
}

// General reports what belongs to no event.
func (fs *Findings) General(rule Rule, format string, args ...any) {
	fs.Add(Finding{Severity: Error, Rule: rule, Text: fmt.Sprintf(format, args...)})
}

// pairing is the severity of missing counterparts.
func (fs *Findings) pairing() Severity {
	if fs.lenient {
		return Note
	}
	return Error
}
