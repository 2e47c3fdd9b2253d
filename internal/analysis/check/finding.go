// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/selfreport"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/internal/printable"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Severity of a finding.
type Severity string

const (
	Error Severity = "error" // the archive is wrong
	Note  Severity = "note"  // unlike a complete archive, but explained by what the archive says about itself
)

// Rule identifies what a finding is about.
type Rule string

// The rules.
const (
	RuleFile           Rule = "file"             // a file is damaged or missing
	RuleAnchor         Rule = "anchor"           // the anchor contradicts the definitions
	RuleClock          Rule = "clock"            // clock properties cannot be used
	RuleIDs            Rule = "ids"              // ids of a kind are not 0, 1, 2, …, or one is defined twice
	RuleReference      Rule = "reference"        // a reference to something that is not defined
	RuleMembers        Rule = "members"          // members of a group are out of range
	RuleLocationGroup  Rule = "location-group"   // location group does not match its locations or creator
	RuleTimeOrder      Rule = "time-order"       // time goes back
	RuleTimeRange      Rule = "time-range"       // an event outside the clock properties
	RuleNesting        Rule = "nesting"          // regions are not left in the order in which they were entered
	RuleAttribute      Rule = "attribute"        // an attribute has another type than its definition, or comes twice
	RuleEventCount     Rule = "event-count"      // number of events ≠ definition or chunk header
	RuleCollective     Rule = "collective"       // begin and end of a collective are not a pair within one region
	RuleRequest        Rule = "request"          // a request is used twice, unknown, or never completed
	RuleCommunicator   Rule = "communicator"     // used before its creation, after its end, or by no member
	RuleRank           Rule = "rank"             // a root or peer is not in the communicator
	RuleCollectiveMate Rule = "collective-match" // members have different collectives
	RuleRoot           Rule = "collective-root"  // members name different roots
	RuleSize           Rule = "collective-size"  // members' sizes do not match
	RuleMessage        Rule = "message-match"    // a send without a receive, or the reverse
	RuleLength         Rule = "message-length"   // lengths of a send and its receive differ
	RuleMeasurement    Rule = "measurement"      // recording is switched on or off twice
	RuleProcess        Rule = "process"          // a process ended abnormally
	RuleLoss           Rule = "loss"             // events were lost: no memory or disk, or the collector died
	RuleCounter        Rule = "counter"          // a counter of the archive differs from the events
)

// Finding is one result of a check.
type Finding struct {
	Severity    Severity         `json:"severity"`
	Rule        Rule             `json:"rule"`
	HasLocation bool             `json:"has_location"`
	Location    otf2.LocationRef `json:"location"` // valid if HasLocation is set
	Event       uint64           `json:"event"`    // number of the event in its location, from 1; 0: none
	Time        otf2.Timestamp   `json:"time"`     // of the event
	Text        string           `json:"text"`
}

// String returns the finding in one line: severity, rule, location, event, time, text.
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

// Result is the result of a check.
type Result struct {
	Findings []Finding       `json:"findings"`
	Dropped  map[Rule]uint64 `json:"dropped,omitempty"` // findings beyond the limit, by rule
	Events   uint64          `json:"events"`            // that were checked
	errors   int
}

// Errors returns the number of findings that are errors, including those beyond the limit.
func (r *Result) Errors() int { return r.errors }

// Findings collects a limited number of findings for each rule and severity.
type Findings struct {
	all     []Finding
	count   map[kind]uint64
	limit   uint64
	said    selfreport.Properties // what the archive says about itself
	apart   []property.Stretch    // operations that members recorded differently
	lenient bool                  // the archive states that it is incomplete
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

// Add adds a finding. Beyond the limit of its rule it is only counted.
func (fs *Findings) Add(f Finding) {
	if fs.room(f.Severity, f.Rule) {
		fs.all = append(fs.all, f)
	}
}

// Result returns the findings, errors first.
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

// General adds a finding that belongs to no event.
func (fs *Findings) General(rule Rule, format string, args ...any) {
	fs.Add(Finding{Severity: Error, Rule: rule, Text: fmt.Sprintf(format, args...)})
}

// pairing returns the severity of missing counterparts.
func (fs *Findings) pairing() Severity {
	if fs.lenient {
		return Note
	}
	return Error
}
