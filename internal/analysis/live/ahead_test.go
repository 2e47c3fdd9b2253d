// SPDX-License-Identifier: Apache-2.0

package live

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/archivetest"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
)

// What a collector writes ahead of time is seen at once, counted once whichever file has it first, and in the end all
// is as if there had been nothing ahead.
func TestLiveAheadOfTime(t *testing.T) {
	j, sooner := archivetest.NewLiveJob(t, 2, 1), archivetest.NewLiveJob(t, 2, 1)
	written, ahead := 0, 0
	write := func(to int) {
		for ; written < to; written++ {
			j.AllReduce(float64(written)*10+4, float64(written)*10+9, 0, 2)
		}
		j.Flush()
	}
	// The rows of a job that is further are what the first one has ahead of time.
	generation := 1
	writeAhead := func(to int) {
		for ; ahead < to; ahead++ {
			sooner.AllReduce(float64(ahead)*10+4, float64(ahead)*10+9, 0, 2)
		}
		sooner.Flush()
		for i, p := range j.Processes {
			number := uint32(p.Shard.Comms[j.Comms[i]].Location)
			text, err := os.ReadFile(experiment.EventFile(sooner.Processes[i].Dir, number))
			archivetest.Try(t, err)
			archivetest.Try(t, os.WriteFile(filepath.Join(p.Dir, fmt.Sprintf("%d.%d.ahead", generation, number)), text,
				0o600))
		}
	}
	l := New(j.Dir, 2*time.Second)
	seen := []int{} // operations that were seen ahead of time
	at := func(ms float64, age time.Duration) *View {
		t.Helper()
		v := look(t, l, ms)
		provisional := uint64(0)
		for _, i := range seen {
			if end := archivetest.LiveAt(float64(i)*10 + 9); end >= archivetest.LiveAt(ms)-v.Age-v.Window {
				provisional += 2 // members
			}
		}
		if v.Age != uint64(age) || v.Provisional != provisional || !near(v.Rate, 100) || !near(v.Ranks[0].Rate, 100) ||
			!near(v.Ranks[0].Waiting, 0.2) ||
			!near(v.Ranks[1].Inside, 0.3) {
			t.Errorf("at %v ms: %v operations a second until %v ago, %d provisional, want %v and %d: %+v", ms, v.Rate,
				time.Duration(v.Age), v.Provisional, age, provisional, v.Ranks)
		}
		return v
	}
	see := func(from, to int) {
		for ; from < to; from++ {
			seen = append(seen, from)
		}
	}
	write(400)
	at(4100, 101*time.Millisecond)
	writeAhead(450)
	see(400, 450)
	at(4600, 101*time.Millisecond)
	write(440) // what is known already
	at(4600, 101*time.Millisecond)
	writeAhead(500)
	write(520) // further than what is ahead
	at(5300, 101*time.Millisecond)
	generation = 2
	writeAhead(600)
	see(520, 600)
	at(6050, 51*time.Millisecond)
	for i, p := range j.Processes {
		for _, f := range experiment.AheadFiles(p.Dir) {
			if f.Number != uint32(p.Shard.Comms[j.Comms[i]].Location) {
				t.Errorf("%+v", f)
			}
			archivetest.Try(t, os.Remove(f.Path))
		}
	}
	write(700)
	v := at(7100, 101*time.Millisecond)
	alone := look(t, New(j.Dir, 2*time.Second), 7100)
	v.Provisional, v.Compared, alone.Compared = 0, 0, 0
	for i := range v.Operations {
		v.Operations[i].Compared, alone.Operations[i].Compared = 0, 0
		v.Operations[i].busy, alone.Operations[i].busy = 0, 0
	}
	if diff := cmp.Diff(alone, v, cmp.AllowUnexported(Operation{})); diff != "" {
		t.Error(diff)
	}
}
