// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bytes"
	"strconv"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/provenance"
)

// scarcity determines whether processors are scarce, so that another thread has to wait while the collector runs. If
// so, the collector reads records less often, and puts off what it can (setting BACKLOG).
//
// Processors are scarce if threads wait for them. The system reports how long some thread has waited (pressure stall
// information, /proc/pressure/cpu), also because of a control group's quota. If it does not, the collector uses its own
// sleeps: if they end late, it had to wait itself. Processors are also scarce if no thread waits yet, but none of those
// that the collector may use is free (processorWatch). Until that has been measured, a host with as many ranks as
// processors counts as having none free.
type scarcity struct {
	scarce     bool
	processors processorUse
	busy       bool // records have arrived since the last measurement

	waiting bool // threads wait
	crowded bool // no processor is left
	calm    int  // consecutive measurements to the contrary

	asked  time.Time // time of the last measurement
	waited time.Duration
	share  float64 // share of recent sleeps that ended late

	late, long durations
}

// processorUse measures the use of processors.
type processorUse interface {
	pressure() (waited time.Duration, ok bool) // so far
	usable() (processors float64, ok bool)
	spare(now time.Time) (processors float64, ok bool)
}

const (
	scarceFrom   = 1.0 / 4 // share of the time during which some thread waits
	scarceUntil  = 1.0 / 10
	scarcePeriod = time.Second // between measurements

	crowdedBelow = 1.0 / 2 // of a processor
	roomyFrom    = 3.0 / 4 //
	// roomyTimes is the number of consecutive measurements that must find a free processor, because other collectors
	// change their load, too.
	roomyTimes = 3

	lateBy     = 2 * time.Millisecond // a timer is off by far less where a processor is free
	lateWeight = 1.0 / 16             // weight of the last sleep

	// scarceSleep is the sleep while processors are scarce. It is short compared to the seconds by which a view of the
	// running job lags behind. calmSleep is the sleep otherwise.
	scarceSleep = 100 * time.Millisecond
	calmSleep   = 50 * time.Millisecond
	// A round that read less than hotPart's amount divided by coolPart is followed by such a long sleep.
	coolPart = 16
)

// expectRanks sets the initial state that the number of ranks on this host makes likely; 0: unknown.
func (s *scarcity) expectRanks(ranks int) {
	if usable, ok := s.processors.usable(); ok && ranks > 0 && float64(ranks) >= usable {
		s.crowded, s.scarce = true, true
	}
}

// sleepTime returns how long the collector may sleep, considering processors only.
func (s *scarcity) sleepTime() time.Duration {
	if s.scarce {
		return scarceSleep
	}
	return calmSleep
}

// noteSleep evaluates a sleep that has ended: its planned (asked) and actual duration (took). A sleep that a request
// ended early is no evidence.
func (s *scarcity) noteSleep(asked, took time.Duration, now time.Time) {
	if asked == scarceSleep {
		s.long.add(took)
	}
	if took >= asked {
		late := 0.0
		if took-asked >= lateBy {
			late = 1
			s.late.add(took - asked)
		}
		s.share += lateWeight * (late - s.share)
	}
	if now.Sub(s.asked) < scarcePeriod {
		return
	}
	share := s.share
	if waited, ok := s.processors.pressure(); ok {
		if s.asked.IsZero() {
			share = 0
		} else {
			share = float64(waited-s.waited) / float64(now.Sub(s.asked))
		}
		s.waited = waited
	}
	s.asked = now
	switch {
	case share >= scarceFrom:
		s.waiting = true
	case share < scarceUntil:
		s.waiting = false
	}
	if s.busy { // an idle collector disturbs nobody, and should not measure at a cost
		s.lookForSpare(now)
	}
	s.busy = false
	s.scarce = s.waiting || s.crowded
}

// lookForSpare measures how many processors are free.
func (s *scarcity) lookForSpare(now time.Time) {
	spare, ok := s.processors.spare(now)
	switch {
	case !ok || spare >= crowdedBelow && spare < roomyFrom:
	case spare < crowdedBelow:
		s.crowded, s.calm = true, 0
	default:
		if s.calm++; s.calm >= roomyTimes {
			s.crowded = false
		}
	}
}

// durations sums up durations.
type durations struct {
	times     uint64
	sum, most time.Duration
}

func (l *durations) add(d time.Duration) {
	l.times++
	l.sum += d
	l.most = max(l.most, d)
}

// cost returns the durations as a cost of the recording; nil if there are none.
func (l *durations) cost(what string) []provenance.Cost {
	if l.times == 0 {
		return nil
	}
	return []provenance.Cost{{
		Callback: "collector", Type: what, Samples: l.times, MeanNs: float64(l.sum) / float64(l.times),
		MostNs: float64(l.most),
	}}
}

// costs returns how often the collector waited for a processor after a sleep, and how often it slept longer because
// processors were scarce.
func (s *scarcity) costs() []provenance.Cost {
	return append(s.late.cost("KeptWaiting"), s.long.cost("SleptLong")...)
}

// pressure returns how long some thread has waited for a processor since the machine started. It returns false if the
// system does not report it.
func (w *processorWatch) pressure() (time.Duration, bool) {
	text, _ := w.read("proc/pressure/cpu")
	return someTotal(text)
}

// someTotal parses the line "some avg10=0.00 avg60=0.00 avg300=0.00 total=0"; the total is in microseconds.
func someTotal(text []byte) (time.Duration, bool) {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	_, total, ok := bytes.Cut(line, []byte("total="))
	us, err := strconv.ParseInt(string(total), 10, 64)
	return time.Duration(us) * time.Microsecond, ok && err == nil && bytes.HasPrefix(line, []byte("some "))
}
