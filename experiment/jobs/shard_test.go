// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"os"
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/experiment"
	"github.com/nccl-otf2/nccl-otf2/scorep/shardtest"
)

func TestUnfinishedShardsOfOtherHosts(t *testing.T) {
	dir := t.TempDir()
	p := shardtest.New(t, dir, "p").On("elsewhere", 1)
	p.Comm(experiment.Comm{ID: 1, NRanks: 1, InitTime: shardtest.Epoch})
	p.Flush()
	p.Crash(-1, nil) // the lock is not held as far as this host can see
	for _, c := range []struct {
		after time.Duration
		want  State
	}{{time.Second, Running}, {2 * experiment.YoungFor, Crashed}} {
		got, err := readShard(p.Dir, time.Now().Add(c.after))
		if err != nil || got.State != c.want {
			t.Errorf("after %v: %v, %v", c.after, got.State, err)
		}
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	p.On(host, 1).Flush()
	got, err := readShard(p.Dir, time.Now())
	if err != nil || got.State != Crashed {
		t.Errorf("on the host itself: %v, %v", got.State, err)
	}
}
