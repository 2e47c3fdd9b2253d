// SPDX-License-Identifier: Apache-2.0

package cupti

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

const second = 1_000_000_000

func TestClockIsLinearBetweenReadings(t *testing.T) {
	var c Clock
	_, _, err := c.Map(5)
	testkit.Require(t, errors.Is(err, errUncovered), "%v", err)
	// 100 ppm fast, read within 200 ns.
	base := uint64(1_700_000_000 * second)
	for i := range uint64(5) {
		c.Add(base+i*second+i*100_000, i*second+7, 200)
	}
	for _, at := range []uint64{0, 1, second / 2, 3*second + 123_456_789, 4 * second} {
		line, off, err := c.Map(base + at + at/10_000)
		testkit.Check(t, err == nil && line-7 <= at+2 && line+2 >= at+7 && off <= 310,
			"at %d: %d ± %d, %v", at, line, off, err)
	}
	// Beside the readings it is less certain, and soon nothing is.
	for _, tc := range []struct{ at, want, off uint64 }{
		{base + 1000, 1007, 310}, {base + 5*second, 4*second + 999_600_047, 1_000_000},
		{base + 4*second + 1_000_000, 4*second + 600_007, 2000},
	} {
		line, off, err := c.Map(tc.at)
		testkit.Check(t, err == nil && max(line, tc.want)-min(line, tc.want) <= off && off <= tc.off,
			"at %d: %d ± %d, %v; want %d ± %d", tc.at, line, off, err, tc.want, tc.off)
	}
	for _, at := range []uint64{base - second - 1000, base + 5*second + second/100, 0, 1<<64 - 1} {
		line, _, err := c.Map(at)
		testkit.Check(t, errors.Is(err, errUncovered), "at %d: %d, %v", at, line, err)
	}
}

// TestClockJumps: another base for CUPTI's clock, and steps forth and back. Times close to the jump are mapped only
// from the side that they can only belong to.
func TestClockJumps(t *testing.T) {
	const base = 1_700_000_000 * second
	for _, tc := range []struct {
		name string
		jump int64
		want map[int64]int64 // CUPTI's time after base less what it should be; −1: one of two; −2: none
	}{
		{"another base", 1e14, map[int64]int64{
			3 * second: 3 * second, 3.4 * second: 3.4 * second, 1e14 + 3.6*second: 3.6 * second,
			1e14 + 5*second: 5 * second,
			4.5 * second:    -2, 1e14 + 2.5*second: -2,
		}},
		{"forth", 0.3 * second, map[int64]int64{
			3 * second: 3 * second, 3.2 * second: 3.2 * second, 3.5 * second: -1, 4.2 * second: 3.9 * second,
			4.3 * second: 4 * second, 5 * second: 4.7 * second,
		}},
		{"back", -0.3 * second, map[int64]int64{
			2.6 * second: 2.6 * second, 2.9 * second: -1, 3.6 * second: -1, 3.8 * second: -1,
			4.1 * second: 4.4 * second, 5 * second: 5.3 * second,
		}},
	} {
		var c Clock
		for i := range int64(8) {
			at := i * second
			reading := base + at
			if i > 3 {
				reading += tc.jump
			}
			c.Add(uint64(reading), uint64(at), 2)
			if i == 4 {
				// The first reading after a jump does not say yet how the clock goes.
				_, _, err := c.Map(uint64(reading - 100))
				testkit.Check(t, err != nil, "%s: a time is mapped by one reading", tc.name)
			}
		}
		testkit.Check(t, c.Segments() == 2, "%s: %d segments", tc.name, c.Segments())
		for at, want := range tc.want {
			line, off, err := c.Map(uint64(base + at))
			switch {
			case want == -1 && !errors.Is(err, ErrUnsure), want == -2 && !errors.Is(err, errUncovered),
				want >= 0 && err != nil:
				t.Errorf("%s: at %d: %d, %v; want %d", tc.name, at, line, err, want)
			case want >= 0 && (int64(line)-want > int64(off) || want-int64(line) > int64(off)):
				t.Errorf("%s: at %d: %d ± %d, want %d", tc.name, at, line, off, want)
			}
		}
	}
}

// TestClockRefusesOtherUnits: a client's callback may give ticks.
func TestClockRefusesOtherUnits(t *testing.T) {
	var c Clock
	for i := range uint64(10) {
		c.Add(i*2_400_000_000, i*second, 2)
	}
	for i := range uint64(20) {
		line, _, err := c.Map(i*1_200_000_000 + 17)
		testkit.Check(t, err != nil, "%d is %d", i, line)
	}
}

func TestClockIsBounded(t *testing.T) {
	var c Clock
	for i := range uint64(100_000) {
		c.Add(i*second, i*second, 2)
	}
	n := len(c.segments[0])
	testkit.Check(t, n <= mostKnots, "%d readings are kept", n)
	_, _, err := c.Map(99_998 * second)
	testkit.Check(t, err == nil, "%v", err)
	_, _, err = c.Map(5 * second)
	testkit.Check(t, errors.Is(err, errUncovered), "%v", err)
	for i := range uint64(2 * mostKnots) {
		c.Add(i%2*1e15, 200_000*second+i*second, 2)
	}
	n = c.Segments()
	testkit.Check(t, n <= mostKnots, "%d segments are kept", n)
}

// TestReadingsInARow: two readings that were made one after the other say nothing of the rate beside them, which each
// of them is off by too much for.
func TestReadingsInARow(t *testing.T) {
	for name, readings := range map[string][]uint64{
		"at the end":           {0, second / 2, second/2 + 58_000},
		"at the beginning":     {0, 58_000, second / 2},
		"on both sides":        {0, 58_000, second / 2, second/2 + 58_000},
		"with others beyond":   {0, second / 2, second/2 + 58_000, second/2 + 90_000, second},
		"the one before's own": {0, second / 2, second, second + 58_000},
	} {
		var c Clock
		for _, at := range readings {
			c.Add(at, at, 150)
		}
		for _, at := range []uint64{second / 3, second/2 - 1} {
			if line, off, err := c.Map(at); err != nil || line != at || off > 20_000 {
				t.Errorf("%s: at %d: %d ± %d, %v", name, at, line, off, err)
			}
		}
	}
}

// TestReadingsThatDoNotAdvance: of two readings in a row, the later one may have the earlier time of CUPTI, as both are
// off by as much: that is no jump.
func TestReadingsThatDoNotAdvance(t *testing.T) {
	var c Clock
	for _, r := range [][2]uint64{{0, 0}, {second/2 + 192, second / 2}, {second/2 + 192, second/2 + 1002},
		{second/2 - 100, second/2 + 1100}, {second, second}} {
		c.Add(r[0], r[1], 2000)
	}
	testkit.Check(t, c.Segments() == 1, "%d segments", c.Segments())
	for _, at := range []uint64{0, second / 3, second / 2, second/2 + 1000, second} {
		line, off, err := c.Map(at)
		testkit.Check(t, err == nil && max(line, at)-min(line, at) <= off, "at %d: %d ± %d, %v", at, line, off, err)
	}
}

// TestClockIsOffByNoMoreThanItSays reads a clock that is slewed and jumps, and asks about all sorts of moments.
func TestClockIsOffByNoMoreThanItSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type piece struct{ line, cupti, ppm int64 } // from there on
		const base = int64(1_700_000_000 * second)
		pieces := []piece{{0, base, int64(rapid.IntRange(-500, 500).Draw(t, "ppm"))}}
		last := func() *piece { return &pieces[len(pieces)-1] }
		read := func(p *piece, line int64) int64 { return p.cupti + (line - p.line) + (line-p.line)*p.ppm/1_000_000 }
		var c Clock
		add := func(line int64) {
			width := int64(rapid.IntRange(0, 2000).Draw(t, "width"))
			off := int64(rapid.IntRange(int(-width/2), int(width/2)).Draw(t, "off"))
			c.Add(uint64(read(last(), line)+off), uint64(line), uint64(width))
		}
		line := int64(0)
		add(line)
		quiet := 0
		for range rapid.IntRange(2, 20).Draw(t, "readings") {
			quiet++
			before := line
			line += int64(rapid.IntRange(100_000_000, 1_500_000_000).Draw(t, "interval"))
			change := before + int64(rapid.IntRange(1, int(line-before)).Draw(t, "change at"))
			p := piece{change, read(last(), change), last().ppm}
			what := rapid.IntRange(0, 4).Draw(t, "change")
			if quiet <= 2 { // two changes close together can look like none
				what = -1
			}
			switch what {
			case 0:
				quiet = 0
				p.ppm = int64(rapid.IntRange(-500, 500).Draw(t, "ppm"))
				pieces = append(pieces, p)
			case 1:
				quiet = 0
				p.cupti += rapid.SampledFrom([]int64{1e14, -1e14, 500_000_000, -500_000_000, 5_000_000,
					-5_000_000}).Draw(t, "jump")
				pieces = append(pieces, p)
			}
			add(line)
			if rapid.Bool().Draw(t, "again") { // a thread that was kept waiting reads twice in a row
				line += int64(rapid.IntRange(1000, 200_000).Draw(t, "soon"))
				add(line)
			}
		}
		mapped := 0
		for range 100 {
			at := int64(rapid.IntRange(0, int(line)).Draw(t, "at"))
			i := len(pieces) - 1
			for pieces[i].line > at {
				i--
			}
			got, off, err := c.Map(uint64(read(&pieces[i], at)))
			if err != nil {
				continue
			}
			mapped++
			d := int64(got) - at
			testkit.Require(t, d <= int64(off)+2 && -d <= int64(off)+2, "at %d: %d ± %d", at, got, off)
		}
		testkit.Check(t, len(pieces) != 1 || mapped == 100, "%d of 100 were mapped", mapped)
	})
}
