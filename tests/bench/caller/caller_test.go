// SPDX-License-Identifier: Apache-2.0

package caller

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/need"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

func build(t *testing.T) *Host {
	t.Helper()
	h, err := Build("../../..", "../../../build", t.TempDir())
	if errors.Is(err, ErrUnavailable) {
		need.NoError(t, "plugin and compiler", err)
	}
	testkit.Must(t, err)
	return h
}

// TestJobIsCountedAlike compares what the program says it called with what the plugin recorded. The settings of whoever
// runs the test do not reach it.
func TestJobIsCountedTheSame(t *testing.T) {
	h := build(t)
	t.Setenv("NCCL_OTF2_EVENTS", "light")
	t.Setenv("NCCL_OTF2_ENABLE", "off")
	dir := filepath.Join(t.TempDir(), "experiment")
	run := testkit.Value(h.Start(t.Context(), h.Plugin, []string{"NCCL_OTF2_DIR=" + dir, "NCCL_OTF2_EVENTS=net"}, "job",
		2, 0, 2,
		100, 0.5, 4))(t)
	var j Job
	log, err := run.Wait(&j)
	testkit.Require(t, err == nil && log == "", "%v %v", log, err)
	// 50 operations of two ranks, and two more communicators with 20 of each rank.
	testkit.Check(t, j.Operations == 2*50+2*2*20 && j.Communicators == 3 && j.Refused == 0, "the program made %+v", j)
	// An AllReduce: 12 callbacks, four transfers of 43, two channels of 3.
	want := j.Operations * (12 + 4*43 + 2*3)
	testkit.Check(t, j.Calls() == want, "%d callbacks, want %d", j.Calls(), want)
	recorded := testkit.Value(Await(t.Context(), dir, 1))(t)
	testkit.Check(t, recorded.Calls == j.Calls() && recorded.Lost == 0,
		"recorded %+v of %d callbacks", recorded, j.Calls())
	anchor, err := awaitArchive(t.Context(), dir)
	testkit.Check(t, err == nil, "%v %v", anchor, err)
}
