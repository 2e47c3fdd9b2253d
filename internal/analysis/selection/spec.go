// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Spec is a selection as given in flags; "" is no limit.
type Spec struct {
	// From and To are "1.5s" or "200ms" from the begin of the run; "2026-11-20 10:38:05.5" or "10:38:05.5" in UTC; or
	// "@12.5s" on the archive's clock.
	From, To string
	Ranks    string // of the world: "3,5-7"
	Comm     string // name, pattern with *, or id of communicators
	Phase    string // name, or name:n for the n-th on each rank, from 1
}

// Empty reports whether nothing is limited.
func (s *Spec) Empty() bool { return *s == Spec{} }

// String returns the flags for the selection.
func (s *Spec) String() string {
	var parts []string
	for _, f := range []struct{ name, value string }{{"--from", s.From}, {"--to", s.To}, {"--rank", s.Ranks},
		{"--comm", s.Comm}, {"--phase", s.Phase}} {
		if f.value == "" {
			continue
		}
		if strings.ContainsAny(f.value, " *'\"$") {
			f.value = "'" + f.value + "'"
		}
		parts = append(parts, f.name+" "+f.value)
	}
	return strings.Join(parts, " ")
}

// Check checks everything that does not require an archive.
func (s *Spec) Check() error {
	if _, err := parseRanks(s.Ranks); err != nil {
		return err
	}
	for _, f := range []struct{ name, value string }{{"--from", s.From}, {"--to", s.To}} {
		if f.value == "" {
			continue
		}
		if _, err := parsePoint(f.value); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return nil
}

// point is a point in time as written in a flag.
type point struct {
	since time.Duration // since the begin of the run, midnight, or the clock's zero
	clock clockKind
	date  time.Time
}

type clockKind uint8

const (
	sinceBegin clockKind = iota // of the run
	timeOfDay                   // of the run's first day, UTC
	dateAndTime
	archiveClock
)

// dates are the accepted forms of dates; --absolute prints the first one.
var dates = []string{"2006-01-02 15:04:05.999999999", "2006-01-02T15:04:05.999999999", "2006-01-02T15:04:05.999999999Z"}

func parsePoint(text string) (point, error) {
	text = strings.TrimSpace(text)
	rest, absolute := strings.CutPrefix(text, "@")
	if d, err := time.ParseDuration(strings.ReplaceAll(rest, " ", "")); err == nil {
		p := point{since: d}
		if absolute {
			p.clock = archiveClock
		}
		return p, nil
	}
	for _, form := range dates {
		if t, err := time.Parse(form, text); err == nil {
			return point{clock: dateAndTime, date: t}, nil
		}
	}
	if t, err := time.Parse("15:04:05.999999999", text); err == nil {
		return point{clock: timeOfDay, since: t.Sub(t.Truncate(24 * time.Hour))}, nil
	}
	return point{},
		fmt.Errorf(
			"%q is not a time: write 1.5s or 200ms after the beginning of the run, 10:38:05.5 or '2026-11-20 "+
				"10:38:05.5' (UTC) as --absolute prints it, or @12.5s on the archive's clock", text)
}

// on returns the point on the archive's clock in ns; begin is the begin of the run.
func (p point) on(begin uint64) uint64 {
	at := float64(p.since)
	switch p.clock {
	case sinceBegin:
		at += float64(begin)
		if at < float64(math.MaxInt64) && at >= 0 {
			return uint64(int64(begin) + int64(p.since))
		}
	case timeOfDay:
		day := time.Unix(0, int64(begin)).UTC().Truncate(24 * time.Hour)
		t := day.Add(p.since)
		if t.Before(time.Unix(0, int64(begin))) && time.Unix(0, int64(begin)).Sub(t) > 12*time.Hour {
			t = t.Add(24 * time.Hour) // after midnight
		}
		return uint64(max(t.UnixNano(), 0))
	case dateAndTime:
		return uint64(max(p.date.UnixNano(), 0))
	case archiveClock:
		return uint64(max(p.since, 0))
	}
	return 0
}

// stretch is a range of ranks from first to last.
type stretch struct{ first, last int }

// parseRanks reads "3,5-7"; "" gives none.
func parseRanks(text string) ([]stretch, error) {
	var all []stretch
	if text == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(strings.TrimSpace(part), "-")
		if !isRange {
			to = from
		}
		a, errA := strconv.ParseUint(from, 10, 31)
		b, errB := strconv.ParseUint(to, 10, 31)
		if cmp.Or(errA, errB) != nil || b < a {
			return nil, fmt.Errorf("--rank: %q is not a list of ranks: write 3,5-7", text)
		}
		all = append(all, stretch{int(a), int(b)})
	}
	slices.SortFunc(all, func(a, b stretch) int { return cmp.Compare(a.first, b.first) })
	return all, nil
}

// parsePhase splits "step:3" into name and number; 0: all phases of the name.
func parsePhase(text string) (name string, nth uint64) {
	if at := strings.LastIndexByte(text, ':'); at > 0 {
		if n, err := strconv.ParseUint(text[at+1:], 10, 32); err == nil && n > 0 {
			return text[:at], n
		}
	}
	return text, 0
}
