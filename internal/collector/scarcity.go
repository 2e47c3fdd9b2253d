// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bytes"
	"strconv"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
)

// scarcity reports whether processors are scarce, so that some other thread has to wait while the collector runs. Then
// the collector looks for records less often, and puts off what it can (setting BACKLOG).
//
// Processors are scarce if threads wait for them. The system says for how long some thread has waited (pressure stall
// information, /proc/pressure/cpu), also because of a control group's quota. If it does not, the collector goes by its
// own sleeps: if they end late, it had to wait itself. Processors are also scarce if no thread waits yet, but none of
// those that the collector may use is left to it (processorWatch). Until that has been measured, a host with as many
// ranks as processors counts as having none left.
type scarcity struct {
	scarce     bool
	processors processorUse
	busy       bool // something has been recorded since the system was asked last

	waiting bool // threads wait
	crowded bool // no processor is left
	calm    int  // measurements in a row that say otherwise

	asked  time.Time // when the system was asked last
	waited time.Duration
	share  float64 // of the last sleeps, those that ended late

	late, long durations
}

// processorUse is what the system and a processorWatch say of the processors.
type processorUse interface {
	pressure() (waited time.Duration, ok bool) // so far
	usable() (processors float64, ok bool)
	spare(now time.Time) (processors float64, ok bool)
}

const (
	scarceFrom   = 1.0 / 4 // of the time, some thread waits
	scarceUntil  = 1.0 / 10
	scarcePeriod = time.Second // between questions

	crowdedBelow = 1.0 / 2 // of a processor
	roomyFrom    = 3.0 / 4 //
	// roomyTimes is how many measurements in a row must find a processor left, as other collectors change their load,
	// too.
	roomyTimes = 3

	lateBy     = 2 * time.Millisecond // a timer is off by far less where a processor is free
	lateWeight = 1.0 / 16             // of the last sleep

	// scarceSleep is how long the collector sleeps while processors are scarce. It is short beside the seconds by which
	// a view of the running job lags behind. calmSleep is how long it sleeps otherwise.
	scarceSleep = 100 * time.Millisecond
	calmSleep   = 50 * time.Millisecond
	// coolPart is the part of what makes rounds follow at once (hotPart) that must not have come for such a long sleep.
	coolPart = 16
)

// expectRanks begins with what the number of ranks on this host makes likely; 0 means that it is unknown.
func (s *scarcity) expectRanks(ranks int) {
	if usable, ok := s.processors.usable(); ok && ranks > 0 && float64(ranks) >= usable {
		s.crowded, s.scarce = true, true
	}
}

// sleepTime is how long the collector may sleep, as far as it has to do with processors.
func (s *scarcity) sleepTime() time.Duration {
	if s.scarce {
		return scarceSleep
	}
	return calmSleep
}

// noteSleep goes by a sleep that is over: how long it was to be (asked), and how long it was (took). A sleep that a
// request ended says nothing about processors.
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
	if s.busy { // an idle collector takes nothing from anybody, and may ask for nothing that costs
		s.lookForSpare(now)
	}
	s.busy = false
	s.scarce = s.waiting || s.crowded
}

// lookForSpare measures how many processors are left.
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

// durations sums up times.
type durations struct {
	times     uint64
	sum, most time.Duration
}

func (l *durations) add(d time.Duration) {
	l.times++
	l.sum += d
	l.most = max(l.most, d)
}

// cost is what is said of them; nothing where there were none.
func (l *durations) cost(what string) []experiment.Cost {
	if l.times == 0 {
		return nil
	}
	return []experiment.Cost{{
		Callback: "collector", Type: what, Samples: l.times, MeanNs: float64(l.sum) / float64(l.times),
		MostNs: float64(l.most),
	}}
}

// costs says how often the collector was kept waiting for a processor when a sleep was over, and how often it slept
// long because processors were scarce.
func (s *scarcity) costs() []experiment.Cost {
	return append(s.late.cost("KeptWaiting"), s.long.cost("SleptLong")...)
}

// pressure is for how long, since the machine began, some thread has waited for a processor. False where the system
// does not tell.
func (w *processorWatch) pressure() (time.Duration, bool) {
	text, _ := w.read("proc/pressure/cpu")
	return someTotal(text)
}

// someTotal reads the line "some avg10=0.00 avg60=0.00 avg300=0.00 total=0", in microseconds.
func someTotal(text []byte) (time.Duration, bool) {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	_, total, ok := bytes.Cut(line, []byte("total="))
	us, err := strconv.ParseInt(string(total), 10, 64)
	return time.Duration(us) * time.Microsecond, ok && err == nil && bytes.HasPrefix(line, []byte("some "))
}
