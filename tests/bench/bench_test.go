// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/need"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// TestMain lets the test binary run single cases, as the program does.
func TestMain(m *testing.M) {
	beChild()
	os.Exit(m.Run())
}

// TestCompare runs the cases small. Both sides do the same work, or it fails; times are not looked at.
func TestCompare(t *testing.T) {
	self := testkit.Value(os.Executable())(t)
	t.Chdir(t.TempDir()) // wherever the program is started
	b := &bench{self: self, dir: t.TempDir(), rounds: 1, scale: 0.001,
		match: regexp.MustCompile(`^(write|read|print|1000 .* 256 KiB)`)}
	r, err := b.run()
	if errors.Is(err, errNoLibotf2) {
		need.NoError(t, "libotf2", err)
	}
	testkit.Must(t, err)
	if want := 3*3 + 6 + 4 + 3; len(r.Rows) != want {
		t.Errorf("%d rows, want %d", len(r.Rows), want)
	}
	if r.Libotf2 == "" {
		t.Error("libotf2's version is missing")
	}
	for _, f := range r.Rows {
		if f.Ours.Min <= 0 || f.Libotf2 == nil || f.Libotf2.Min <= 0 || f.Ratio == nil || *f.Ratio <= 0 {
			t.Errorf("%s: not measured: %+v", f.Case, f)
		}
	}
}

func TestSame(t *testing.T) {
	for _, test := range []struct {
		name    string
		o, l    outcome
		differs bool
	}{
		{"same", outcome{Events: 2, Sum: 7, RSS: 1}, outcome{Events: 2, Sum: 7}, false},
		{"an event less", outcome{Events: 1, Sum: 7}, outcome{Events: 2, Sum: 7}, true},
		{"another value", outcome{Events: 2, Sum: 7}, outcome{Events: 2, Sum: 8}, true},
	} {
		if err := same(&test.o, &test.l); (err != nil) != test.differs {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

func TestRows(t *testing.T) {
	took := func(events uint64, wall, cpu int64) *outcome {
		return &outcome{Events: events, OpenFiles: int(wall), Phases: map[string]span{"all": {wall, cpu}}}
	}
	time := row{title: "time", unit: perEvent, of: phase("all"), aim: 0.5}
	open := row{title: "open", unit: fileCount, count: mostFiles, limit: 256}
	for _, test := range []struct {
		name    string
		row     row
		samples []sample
		want    []string // cells from the third on
	}{
		{"met", time, []sample{{took(10, 200, 150), took(10, 400, 400)}, {took(10, 100, 100), took(10, 600, 500)}},
			[]string{"10.0 (15.0)", "40.0 (50.0)", "0.250", "0.250", "≤ 0.5×", "met"}},
		{"the processor's time counts too", time, []sample{{took(10, 200, 400), took(10, 500, 500)}},
			[]string{"20.0 (20.0)", "50.0 (50.0)", "0.400", "0.800", "≤ 0.5×", "missed by 60 %"}},
		{"libotf2 failed", time, []sample{{took(10, 200, 400), nil}},
			[]string{"20.0 (20.0)", "–", "–", "–", "≤ 0.5×", "not measured"}},
		{"limit met", open, []sample{{took(1, 256, 0), took(1, 1000, 0)}},
			[]string{"256", "1000", "0.256", "–", "≤ 256 files", "met"}},
		{"one round above the limit", open, []sample{{took(1, 257, 0), nil}, {took(1, 100, 0), nil}},
			[]string{"257", "–", "–", "–", "≤ 256 files", "missed"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var r result
			r.add(&test.row, test.samples)
			if got := strings.Join(r.Rows[0].cells()[2:], "|"); got != strings.Join(test.want, "|") {
				t.Errorf("got %s, want %s", got, strings.Join(test.want, "|"))
			}
		})
	}
}
