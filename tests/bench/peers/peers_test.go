// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/need"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/bench/caller"
	"github.com/nccl-otf2/nccl-otf2/tests/bench/peer"
)

// A small storm through the empty plugin, ours and one of the command line. Times are not looked at.
func TestPeers(t *testing.T) {
	host, err := caller.Build("../../..", "../../../build", t.TempDir())
	if errors.Is(err, caller.ErrUnavailable) {
		need.NoError(t, "plugin and compiler", err)
	}
	testkit.Must(t, err)
	var further peer.List
	testkit.Must(t, further.Set("another="+host.Empty+",ANY={dir},kept=x"))
	b := &bench{host: host, dir: t.TempDir(), rounds: 1, ranks: numbers{2, 1}, operations: 100, seconds: 0.1,
		events: "gpu"}
	r := testkit.Value(b.run(t.Context(), further))(t)
	if len(r.Rows) != 12 {
		t.Fatalf("%+v", r.Rows)
	}
	of := []struct {
		plugin string
		kept   float64
	}{{"empty", -1}, {"ours, gpu", 1}, {"another", 0}}
	for i := range r.Rows {
		want, ours := of[i%3], i%3 == 1
		if w := r.Rows[i]; w.Plugin != want.plugin || w.Kept != want.kept || w.Loop <= 0 || (w.Bytes > 0) != ours ||
			(w.Collecting > 0) != ours {
			t.Errorf("row %d: %+v", i, w)
		}
	}
	if text := r.Page().Text(); !strings.Contains(text, "100.0 %") || !strings.Contains(text, "burst") {
		t.Error(text)
	}
}

// Ratios are of runs of the same round.
func TestRatiosAreOfOneRound(t *testing.T) {
	w := rowOf("storm", "plugin", []run{{loop: 3, finalize: 5}, {loop: 6, finalize: 4}, {loop: 30, finalize: 9}},
		[]run{{loop: 2}, {loop: 4}, {loop: 20}})
	if w.Ratio != 1.5 || w.Loop != 6 || w.Finalize != 5 || w.Least != 4 {
		t.Errorf("%+v", w)
	}
}

// A process and its collector are seen with their memory, and the collector is waited for.
func TestCollectorIsWatched(t *testing.T) {
	host, err := caller.Build("../../..", "../../../build", t.TempDir())
	if errors.Is(err, caller.ErrUnavailable) {
		need.NoError(t, "plugin and compiler", err)
	}
	testkit.Must(t, err)
	testkit.Must(t, adopt())
	r, release, err := host.Idle(t.Context(), host.Plugin,
		[]string{"NCCL_OTF2_DIR=" + t.TempDir(), "NCCL_OTF2_UNIFY=off"})
	testkit.Must(t, err)
	seen := watch(r.PID())
	var m memory
	if !m.look(r.PID()) || m.job <= 0 || m.collector <= 0 {
		t.Errorf("%+v", m)
	}
	testkit.Must(t, release())
	if m := <-seen; m.job <= 0 {
		t.Errorf("while it ran: %+v", m)
	}
	if spent, err := reap(); err != nil || spent <= 0 {
		t.Error(spent, err)
	}
}
