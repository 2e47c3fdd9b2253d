// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// Processors are scarce while threads wait for them most of the time, as the system tells, and until they hardly do.
func TestScarcityByPressure(t *testing.T) {
	now, use := time.Now(), &givenUse{waited: 17 * time.Hour}
	s := scarcity{processors: use}
	for i, step := range []struct {
		part   float64 // of the time, some thread waits
		scarce bool
	}{{0.9, false} /* since when is not known */, {0, false}, {0.2, false}, {0.3, true}, {0.2, true}, {0.05, false}, {1, true}} {
		now = now.Add(scarcePeriod)
		use.waited += time.Duration(step.part * float64(scarcePeriod))
		s.noteSleep(shortSleep, shortSleep+lateBy, now) // says nothing where the system does
		testkit.Equal(t, s.scarce, step.scarce, "step %d: scarce", i)
	}
}

// Where the system does not tell, sleeps that end late do; what ended one early says nothing.
func TestScarcityBySleeps(t *testing.T) {
	now := time.Now()
	s := scarcity{processors: &givenUse{waited: -1}}
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
			s.noteSleep(step.asked, step.took, now)
		}
		testkit.Equal(t, s.scarce, step.scarce,
			"after %d sleeps of %v, which took %v: scarce", step.times, step.asked, step.took)
	}
	c := s.costs()
	testkit.Check(t, len(c) == 2 && c[0].Type == "KeptWaiting" && c[0].Samples == 53 &&
		c[0].MeanNs == float64(lateBy) && c[1].Type == "SleptLong" && c[1].Samples == 1100 &&
		c[1].MostNs == float64(scarceSleep), "it says %+v", c)
	c = new(scarcity).costs()
	testkit.Check(t, len(c) == 0, "of nothing it says %+v", c)
}

// givenUse is the use of processors that it is given. What is below 0 is not known.
type givenUse struct {
	processors, left float64
	waited           time.Duration
}

func (u *givenUse) pressure() (time.Duration, bool) { return u.waited, u.waited >= 0 }
func (u *givenUse) usable() (float64, bool)         { return u.processors, u.processors > 0 }
func (u *givenUse) spare(time.Time) (float64, bool) { return u.left, u.left >= 0 }

// Processors are scarce where the collector has none to itself, although nobody waits, until there has been one for a
// while.
func TestScarcityByRoom(t *testing.T) {
	now, use := time.Now(), &givenUse{}
	s := scarcity{processors: use}
	for i, step := range []struct {
		left         float64
		idle, scarce bool
	}{
		{left: 1.9}, {left: 0.6}, {left: 0.4, scarce: true}, {left: 0.6, scarce: true}, {left: -1, scarce: true},
		{left: 0.8, scarce: true},
		{left: 2, scarce: true}, {left: 0.1, scarce: true}, {left: 2, scarce: true}, {left: 2, scarce: true}, {left: 2},
		{left: 0, idle: true},
	} {
		now = now.Add(scarcePeriod)
		use.left, s.busy = step.left, !step.idle
		s.noteSleep(shortSleep, shortSleep, now)
		testkit.Equal(t, s.scarce, step.scarce, "step %d: scarce", i)
	}
}

// Where there are as many ranks as processors, these are taken to be scarce until it is seen how much of them is used.
func TestScarcityIsExpected(t *testing.T) {
	for _, c := range []struct {
		ranks      int
		processors float64
		scarce     bool
	}{{2, 2, true}, {3, 2, true}, {1, 2, false}, {2, 2.5, false}, {1, 0.5, true}, {0, 2, false}, {8, 0, false}} {
		s := scarcity{processors: &givenUse{processors: c.processors}}
		if s.expectRanks(c.ranks); s.scarce != c.scarce {
			t.Errorf("%d ranks on %v processors: scarce %v", c.ranks, c.processors, s.scarce)
		}
	}
	now, use := time.Now(), &givenUse{processors: 1, left: 1}
	s := scarcity{processors: use}
	s.expectRanks(1)
	for range roomyTimes {
		testkit.Require(t, s.scarce, "it is no longer so before that has been looked at")
		now = now.Add(scarcePeriod)
		s.busy = true
		s.noteSleep(shortSleep, shortSleep, now)
	}
	testkit.Check(t, !s.scarce, "it is so for ever")
}

func TestPressureIsRead(t *testing.T) {
	const lines = "some avg10=97.66 avg60=98.14 avg300=97.99 total=3185572663\nfull avg10=0.00 avg60=0.00 " +
		"avg300=0.00 total=0\n"
	total, ok := someTotal([]byte(lines))
	testkit.Check(t, ok && total == 3185572663*time.Microsecond, "%v, %v", total, ok)
	for _, text := range []string{"", "some", "some total=", "some total=x\n", "full avg10=0.00 total=5\n",
		"some avg10=1.00\ntotal=5\n"} {
		total, ok := someTotal([]byte(text))
		testkit.Check(t, !ok, "%q: %v", text, total)
	}
}

// The collector sleeps long, longer where processors are scarce, but not while much comes, nor where it prepares the
// job's memory itself.
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
		testkit.Equal(t, nextSleep(c.before, c.n, c.read, hot, c.seldom), c.want, "%s", c.what)
	}
}
