// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/live"
	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
)

// A view as people and programs see it: two hosts, losses, a rank that ended, a name that would clear the screen.
func TestLiveInAllFormats(t *testing.T) {
	j := jobtest.NewLiveJob(t, 4, 2)
	for i := range 100 {
		j.AllReduce(float64(i)*10+2, float64(i)*10+8, 0, 0, 3, 0)
	}
	for r, p := range j.Processes {
		p.Shard.Comms[j.Comms[r]].Name = "tp\x1b[2J"
		p.Send(j.Comms[r], (r+1)%4, jobtest.LiveAt(1010), jobtest.LiveAt(1012), 4096)
		p.Recv(j.Comms[r], (r+3)%4, jobtest.LiveAt(1013), jobtest.LiveAt(1014), 4096)
	}
	j.Processes[1].Shard.Counts.Lost = map[string]map[string]uint64{"ring full": {"ProxyStep": 3}}
	for _, p := range j.Processes[:3] {
		p.Flush()
	}
	j.Processes[3].Finish()
	v := testkit.Value(live.New(j.Dir, time.Second).Look(time.Unix(0, int64(jobtest.LiveAt(3000)))))(t)
	v.Directory, v.Time = "exp", v.Time.UTC()
	var all, short strings.Builder
	testkit.Must(t, Live(v, 0, 0).WriteText(&all))
	testkit.Must(t, Live(v, 1, 2).WriteText(&short))
	golden.Text(t, "testdata/live.txt", all.String()+"\nin short:\n\n"+short.String())
	b := testkit.Value(json.MarshalIndent(v, "", "  "))(t)
	golden.Text(t, "testdata/live.json", string(b)+"\n")
	waiting := live.View{Directory: "exp", State: live.LiveWaiting}
	var text strings.Builder
	testkit.Must(t, Live(&waiting, 0, 0).WriteText(&text))
	testkit.Equal(t, text.String(), "exp: waiting for a job to be recorded here\n", "text.String()")
}
