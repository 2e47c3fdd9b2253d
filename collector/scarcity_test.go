// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"testing"
	"time"
)

// Processors are scarce while threads wait for them most of the time, as the system tells, and until they hardly do.
func TestScarcityByPressure(t *testing.T) {
	now, waited := time.Now(), 17*time.Hour
	s := scarcity{pressure: func() (time.Duration, bool) { return waited, true }}
	for i, step := range []struct {
		part   float64 // of the time, some thread waits
		scarce bool
	}{{0.9, false} /* since when is not known */, {0, false}, {0.2, false}, {0.3, true}, {0.2, true}, {0.05, false}, {1, true}} {
		now = now.Add(scarcePeriod)
		waited += time.Duration(step.part * float64(scarcePeriod))
		s.slept(shortSleep, shortSleep+lateBy, now) // says nothing where the system does
		if s.scarce != step.scarce {
			t.Errorf("step %d: scarce %v", i, s.scarce)
		}
	}
}

// Where the system does not tell, sleeps that end late do; what ended one early says nothing.
func TestScarcityBySleeps(t *testing.T) {
	now := time.Now()
	s := scarcity{pressure: func() (time.Duration, bool) { return 0, false }}
	for _, step := range []struct {
		times       int
		asked, took time.Duration
		scarce      bool
	}{
		{1000, shortSleep, shortSleep + lateBy/2, false},
		{3, shortSleep, shortSleep + lateBy, false},
		{1000, shortSleep, shortSleep, false},
		{50, shortSleep, shortSleep + lateBy, true},
		{1000, scarceSleep, scarceSleep / 2, true},
		{100, scarceSleep, scarceSleep, false},
	} {
		for range step.times {
			now = now.Add(scarcePeriod)
			s.slept(step.asked, step.took, now)
		}
		if s.scarce != step.scarce {
			t.Errorf("after %d sleeps of %v, which took %v: scarce %v", step.times, step.asked, step.took, s.scarce)
		}
	}
	c := s.costs()
	if len(c) != 2 || c[0].Type != "KeptWaiting" || c[0].Samples != 53 || c[0].MeanNs != float64(lateBy) ||
		c[1].Type != "SleptLong" || c[1].Samples != 1100 || c[1].MostNs != float64(scarceSleep) {
		t.Errorf("it says %+v", c)
	}
	if c := new(scarcity).costs(); len(c) != 0 {
		t.Errorf("of nothing it says %+v", c)
	}
}

func TestPressureIsRead(t *testing.T) {
	const lines = "some avg10=97.66 avg60=98.14 avg300=97.99 total=3185572663\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
	if total, ok := someTotal([]byte(lines)); !ok || total != 3185572663*time.Microsecond {
		t.Errorf("%v, %v", total, ok)
	}
	for _, text := range []string{"", "some", "some total=", "some total=x\n", "full avg10=0.00 total=5\n", "some avg10=1.00\ntotal=5\n"} {
		if total, ok := someTotal([]byte(text)); ok {
			t.Errorf("%q: %v", text, total)
		}
	}
}

// The collector sleeps long, longer where processors are scarce, but not while much comes, nor where it prepares the job's memory itself.
func TestSleeps(t *testing.T) {
	const hot = 1 << 20
	for _, c := range []struct {
		what         string
		seldom       time.Duration
		read         uint64
		n            int
		before, want time.Duration
	}{
		{"it prepares, something came", 0, 1, 1, longSleep, shortSleep},
		{"it prepares, nothing came", 0, 0, 0, shortSleep, longSleep},
		{"it prepares, nothing came for long", 0, 0, 0, longSleep, longSleep},
		{"it prepares now, and is idle", 0, 0, 0, scarceSleep, longSleep},
		{"something came", calmSleep, 1, 1, shortSleep, calmSleep},
		{"idle", calmSleep, 0, 0, calmSleep, calmSleep},
		{"no longer scarce", calmSleep, 0, 0, scarceSleep, calmSleep},
		{"scarce", scarceSleep, 1, 1, shortSleep, scarceSleep},
		{"scarce and idle", scarceSleep, 0, 0, shortSleep, scarceSleep},
		{"much comes", calmSleep, hot / coolPart, 1000, calmSleep, shortSleep},
		{"scarce, and much comes", scarceSleep, hot / coolPart, 1000, scarceSleep, shortSleep},
	} {
		if got := nextSleep(c.before, c.n, c.read, hot, c.seldom); got != c.want {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
}
