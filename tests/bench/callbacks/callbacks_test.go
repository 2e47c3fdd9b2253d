// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/need"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/bench/caller"
)

// TestCallbacks runs everything small, with our plugin and the empty one. Times are not looked at.
func TestCallbacks(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	host, err := caller.Build("../../..", "../../../build", t.TempDir())
	if errors.Is(err, caller.ErrUnavailable) {
		need.NoError(t, "plugin and compiler", err)
	}
	testkit.Must(t, err)
	b := &bench{mode: "trace", host: host, dir: t.TempDir(), rounds: 1, scale: 0.005,
		match: regexp.MustCompile(`thread`)}
	r := testkit.Value(b.run(t.Context()))(t)
	testkit.Equal(t, len(r.Costs), len(costCases), "rows")
	for _, c := range r.Costs {
		for _, f := range []costFigures{c.Ours, c.Empty} {
			if f.Median <= 0 || f.Mean <= 0 || f.P999 < f.P99 || f.Max < f.P999 || f.Rate <= 0 ||
				len(f.Callbacks) == 0 {
				t.Errorf("%s: not measured: %+v", c.Case, f)
			}
		}
		testkit.Equal(t, c.Empty.Lost, 0, "%s: the empty plugin refused events", c.Case)
		testkit.Equal(t, strings.Contains(c.Case, "paced") ||
			strings.Contains(c.Case, "the first"), (c.Verdict != ""), "%s: verdict %q", c.Case, c.Verdict)
	}
	if r.Clock == "" || r.Timer <= 0 || r.TimerStep <= 0 {
		t.Errorf("clock %q, timer %v in steps of %v", r.Clock, r.Timer, r.TimerStep)
	}

	b.match = regexp.MustCompile(`^(start|memory)$`)
	if r, err = b.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, o := range r.Others {
		if o.Ours <= 0 || math.IsNaN(o.Ours) {
			t.Errorf("%s: not measured: %+v", o.Title, o)
		}
	}
	for _, want := range []string{"first init, median", "job idle, without rings", "collector idle, without rings"} {
		if !strings.Contains(r.Page().Text(), want) || !strings.Contains(r.Page().Markdown(), want) {
			t.Errorf("%q is missing in the tables:\n%s", want, r.Page().Text())
		}
	}

	got := testkit.Value(b.try(t.Context(), 100_000, 0.5))(t)
	if got.Calls == 0 || got.Calls%callsPerOperation != 0 || got.Events == 0 || got.Bytes == 0 || got.Lost != 0 {
		t.Errorf("100 000 callbacks a second: %+v", got)
	}
}

func TestSearch(t *testing.T) {
	for _, holdsUpTo := range []float64{3e4, 7.7e5, 1e6, 2.9e6, 5e7} {
		tries := 0
		best, err := search(1e6, func(rate float64) (bool, error) {
			tries++
			return rate <= holdsUpTo, nil
		})
		if err != nil || best > holdsUpTo || best < holdsUpTo*0.9 || tries > 12 {
			t.Errorf("%v holds: found %v, %v with %d tries", holdsUpTo, best, err, tries)
		}
	}
	if best, err := search(1e6, func(float64) (bool, error) { return false, nil }); best != 0 || err != nil {
		t.Errorf("nothing holds: found %v, %v", best, err)
	}
	broken := errors.New("broken")
	if _, err := search(1e6, func(float64) (bool, error) { return true, broken }); !errors.Is(err, broken) {
		t.Errorf("the error is %v", err)
	}
}

func TestVerdicts(t *testing.T) {
	figures := func(mean, median, p99 float64) costFigures {
		return costFigures{Mean: mean, Median: median, P99: p99}
	}
	application, proxy := &costCase{piece: &pieces[0], threads: 1, paced: true},
		&costCase{piece: &pieces[1], threads: 1, paced: true}
	for _, test := range []struct {
		name        string
		c           *costCase
		ours, empty costFigures
		want        string
	}{
		{"a median at the aim", application, figures(1000, 22, 150), figures(2, 2, 8), "met, met"},
		{"the median decides for applications", application, figures(12, 32, 100), figures(2, 2, 8),
			"missed by 50 %, met"},
		{"the mean for proxy threads", proxy, figures(42, 12, 300), figures(2, 2, 8),
			"missed by 100 %, missed by 100 %"},
		{"no aim at full speed", &costCase{piece: &pieces[1], threads: 8, paced: false}, figures(42, 12, 300),
			figures(2, 2, 8), ""},
	} {
		r := costRow{Ours: test.ours, Empty: test.empty}
		if r.judge(test.c); r.Verdict != test.want {
			t.Errorf("%s: %q, want %q", test.name, r.Verdict, test.want)
		}
	}
	var r result
	r.add(otherRow{Ours: 5, Empty: value(2), Aim: 4})
	r.add(otherRow{Ours: 5, Aim: 4})
	r.add(otherRow{Ours: 3, Aim: 4, AtLeast: true})
	r.add(otherRow{Ours: 4, Aim: 4, AtLeast: true})
	r.add(otherRow{Ours: 5})
	var got []string
	for _, o := range r.Others {
		got = append(got, o.Verdict)
	}
	if text := strings.Join(got, "|"); text != "met|missed by 25 %|missed by 25 %|met|" {
		t.Errorf("got %s", text)
	}
}
