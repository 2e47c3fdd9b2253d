// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

// What a collector is about to write is not damaged: with nothing else there, the job is said to be recorded yet.
func TestUnfinishedDescriptionsAreEarly(t *testing.T) {
	dir := t.TempDir()
	p := shardtest.New(t, dir, "p")
	p.Comm(description.Comm{ID: 1, NRanks: 1, InitTime: shardtest.Epoch})
	p.Shard.Comms[0].Location = 17
	p.Flush()
	_, left, err := Read(dir, 1, time.Now())
	testkit.Check(t, err != nil && strings.Contains(err.Error(), "is being recorded") && len(left.Problems) == 1 &&
		len(left.Damaged) == 0, "%v; problems %q, damaged %q", err, left.Problems, left.Damaged)
	p.Crash(-1, nil)
	if _, left, err = Read(dir, 1, time.Now().Add(2*experiment.YoungFor)); err == nil ||
		!strings.Contains(err.Error(), "no usable shard") || len(left.Damaged) != 1 {
		t.Errorf("after its collector's death: %v; damaged %q", err, left.Damaged)
	}
}

func TestUnfinishedShardsOfOtherHosts(t *testing.T) {
	dir := t.TempDir()
	p := shardtest.New(t, dir, "p").On("elsewhere", 1)
	p.Comm(description.Comm{ID: 1, NRanks: 1, InitTime: shardtest.Epoch})
	p.Flush()
	p.Crash(-1, nil) // the lock is not held as far as this host can see
	for _, c := range []struct {
		after time.Duration
		want  State
	}{{time.Second, Running}, {2 * experiment.YoungFor, Crashed}} {
		got, err := readShard(p.Dir, time.Now().Add(c.after))
		testkit.Check(t, err == nil && got.State == c.want, "after %v: %v, %v", c.after, got.State, err)
	}
	host := testkit.Value(os.Hostname())(t)
	p.On(host, 1).Flush()
	got, err := readShard(p.Dir, time.Now())
	testkit.Check(t, err == nil && got.State == Crashed, "on the host itself: %v, %v", got.State, err)
}
