// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"encoding/json"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/scorep/shardtest"
)

// liveJob is a job of some ranks that is being recorded.
type liveJob struct {
	t         testing.TB
	dir       string
	processes []*shardtest.Process
	comms     []int
}

func newLiveJob(t testing.TB, ranks, hosts int) *liveJob {
	j := &liveJob{t: t, dir: t.TempDir()}
	for r := range ranks {
		p := shardtest.New(t, j.dir, fmt.Sprint("p", r)).On(fmt.Sprint("node", r*hosts/ranks), 100+r).Launched("slurm", r, ranks)
		p.GPU(0, fmt.Sprint("GPU-", r), "")
		j.comms = append(j.comms, p.World())
		j.processes = append(j.processes, p)
	}
	return j
}

// liveAt is a time of the job, ms after its begin.
func liveAt(ms float64) uint64 { return t0 + uint64(ms*1e6) }

// allReduce: rank r comes late[r] ms after begin, all end at end.
func (j *liveJob) allReduce(begin, end float64, late ...float64) {
	for r, p := range j.processes {
		b := begin
		if r < len(late) {
			b += late[r]
		}
		p.AllReduce(j.comms[r], liveAt(b), liveAt(end), 1<<20)
	}
}

func (j *liveJob) flush() {
	for _, p := range j.processes {
		p.Flush()
	}
}

func look(t testing.TB, l *Live, ms float64) *LiveView {
	t.Helper()
	v, err := l.Look(time.Unix(0, int64(liveAt(ms))))
	try(t, err)
	return v
}

func near(a, b float64) bool { return math.Abs(a-b) <= 0.02*math.Abs(b)+1e-9 }

// A job from before its begin to its end: 100 operations a second of 5 ms, for the first of which rank 0 waits 2 ms for
// rank 1, later rank 1 for rank 0.
func TestLiveFollowsAJob(t *testing.T) {
	j := newLiveJob(t, 2, 1)
	l := NewLive(j.dir, 2*time.Second)
	waiting := NewLive(j.dir+"/nowhere", time.Second)
	if v := look(t, waiting, 0); v.State != LiveWaiting || v.Processes != 0 {
		t.Errorf("%+v", v)
	}
	if v := look(t, l, 0); v.State != LiveWaiting {
		t.Errorf("without descriptions: %+v", v)
	}
	j.flush()
	if v := look(t, l, 1); v.State != LiveRunning || v.Running != 2 || v.Window != 0 || len(v.Ranks) != 2 || v.Rate != 0 {
		t.Errorf("without operations: %+v", v)
	}
	written := 0
	to := func(ms float64, late ...float64) {
		for ; float64(written)*10 < ms; written++ {
			j.allReduce(float64(written)*10+4, float64(written)*10+9, late...)
		}
		j.flush()
	}
	to(4000, 0, 2)
	v := look(t, l, 4100)
	// 1 Mi float32: 4 MiB in 4 ms on average.
	want := LiveOperation{Communicator: "world", Ranks: 2, Operation: "AllReduce", Rate: 100, Size: 4 << 20, Avg: 4e6, BusBW: 4.194304e6 / 4e6, Waiting: 2.0 / 8, Compared: 190}
	if len(v.Operations) != 1 || !near(v.Operations[0].Rate, 100) || !near(v.Operations[0].BusBW, want.BusBW) || !near(v.Operations[0].Waiting, want.Waiting) ||
		v.Operations[0].Size != want.Size || !near(v.Operations[0].Avg, want.Avg) || v.Operations[0].Compared < want.Compared {
		t.Errorf("got %+v, want %+v", v.Operations, want)
	}
	if !near(v.Rate, 100) || !near(v.Bytes, 100*4<<20) || v.Done != 400 || v.Age != 101_000_000 {
		t.Errorf("%+v", v)
	}
	rank := func(v *LiveView, r int, inside, waiting, caused float64) {
		t.Helper()
		if x := v.Ranks[r]; !near(x.Inside, inside) || !near(x.Waiting, waiting) || !near(x.Caused, caused) || !near(x.Rate, 100) || x.State != "running" {
			t.Errorf("rank %d: %+v", r, x)
		}
	}
	rank(v, 0, 0.5, 0.2, 0)
	rank(v, 1, 0.3, 0, 1)
	// Looked at again without anything new, nothing has changed; what is new counts once.
	again := look(t, l, 4200)
	again.Time, again.Age = v.Time, v.Age
	if diff := cmp.Diff(v, again, cmp.AllowUnexported(LiveOperation{})); diff != "" {
		t.Error(diff)
	}
	for ms := 4500.0; ms <= 7000; ms += 500 {
		to(ms, 2, 0)
		v = look(t, l, ms+50)
		if !near(v.Rate, 100) {
			t.Errorf("at %v ms: %v operations a second", ms, v.Rate)
		}
	}
	rank(v, 0, 0.3, 0, 1)
	rank(v, 1, 0.5, 0.2, 0)
	if n := len(l.buckets); n > liveBuckets+2 {
		t.Errorf("%d parts of the window are kept", n)
	}
	// One rank is ahead: its operations are not complete.
	j.processes[0].AllReduce(j.comms[0], liveAt(8004), liveAt(8009), 1<<20)
	j.processes[0].Flush()
	if v := look(t, l, 8100); !near(v.Rate, 100) || v.Done != 701 || l.assembly.parts != 1 {
		t.Errorf("%+v, %d parts", v, l.assembly.parts)
	}
	// The job hangs: what was done in the last seconds becomes less.
	if v := look(t, l, 7050+5000+1000); math.Abs(v.Rate-50) > 5 {
		t.Errorf("a second after the lag: %v operations a second", v.Rate)
	}
	if v := look(t, l, 30_000); v.Rate != 0 || v.Window < 1.9e9 || len(v.Operations) != 0 {
		t.Errorf("hanging: %+v", v)
	}
	j.processes[0].Shard.Counts.Lost = map[string]map[string]uint64{"ring": {"ProxyStep": 3, "KernelCh": 4}}
	for _, p := range j.processes {
		p.Finish()
	}
	v = look(t, l, 31_000)
	if v.State != LiveEnded || v.Over || v.Ended != 2 || v.Lost != 7 || v.LostBy["ring"] != 7 || v.Ranks[0].Lost != 7 {
		t.Errorf("ended: %+v", v)
	}
	if v := look(t, l, 33_000); !v.Over {
		t.Errorf("over: %+v", v)
	}
}

// Who looks at a job later sees its last seconds, and reads little more than these.
func TestLiveBeginsInTheMiddle(t *testing.T) {
	j := newLiveJob(t, 2, 1)
	for i := range 20_000 {
		j.allReduce(float64(i)*10+4, float64(i)*10+9, 0, 2)
	}
	j.flush()
	l := NewLive(j.dir, 5*time.Second)
	v := look(t, l, 200_100)
	if v.State != LiveRunning || !near(v.Rate, 100) || v.Skipped || v.Window > 5e9 || v.Window < 4.7e9 || !near(v.Ranks[0].Waiting, 0.2) || v.Done != 20_000 {
		t.Errorf("%+v", v)
	}
	if l.begin < otf2.Timestamp(liveAt(100_000)) {
		t.Errorf("read from %d ms on", (l.begin-t0)/1e6)
	}
}

// The clocks of hosts differ: they are compared by the ends of operations, and rooted operations are not compared.
func TestLiveOnSeveralHosts(t *testing.T) {
	j := newLiveJob(t, 4, 2)
	const off = 300 // ms that the second host's clock is ahead
	for i := range 200 {
		for r, p := range j.processes {
			late, by := []float64{0, 1, 3, 2}[r], float64(r/2*off)
			begin, end := liveAt(float64(i)*10+2+late+by), liveAt(float64(i)*10+8+by)
			if i%2 == 0 {
				p.AllReduce(j.comms[r], begin, end, 1000)
				continue
			}
			received, sent := uint64(400), uint64(0)
			if r == 1 {
				sent = 1600
			}
			p.Collective(j.comms[r], shardtest.Op{Function: "Broadcast", Kind: otf2.CollectiveOpBcast, Begin: begin, End: end, Rooted: true, Root: 1, Sent: sent, Received: received, Count: 100})
		}
	}
	j.flush()
	v := look(t, NewLive(j.dir, time.Second), 2500)
	if v.Hosts != 2 || v.NotCompared < 30 || v.Compared < 30 {
		t.Errorf("%+v", v)
	}
	// Waits of 3, 2, 0 and 1 ms, once in 20 ms.
	for r, want := range []float64{3, 2, 0, 1} {
		if got := v.Ranks[r].Waiting; math.Abs(got-want/20) > 0.02 {
			t.Errorf("rank %d waits %v of the time, want %v", r, got, want/20)
		}
	}
	if v.Ranks[2].Caused != 1 {
		t.Errorf("%+v", v.Ranks)
	}
}

// What cannot be followed is skipped, alike on all ranks, and said to be.
func TestLiveSkipsWhatIsTooMuch(t *testing.T) {
	j := newLiveJob(t, 2, 1)
	write := func(from, to int) {
		for i := from; i < to; i++ {
			j.allReduce(float64(i)*10+4, float64(i)*10+9, 0, 2)
		}
		j.flush()
	}
	write(0, 200)
	l := NewLive(j.dir, time.Second)
	l.bytes = 1 << 20
	if v := look(t, l, 2000); v.Skipped || !near(v.Rate, 100) {
		t.Errorf("%+v", v)
	}
	write(200, 15_000)
	v := look(t, l, 150_100)
	if !v.Skipped || math.Abs(v.Rate-100) > 10 || !near(v.Ranks[0].Waiting, 0.2) {
		t.Errorf("%+v", v)
	}
	write(15_000, 15_100)
	if v := look(t, l, 151_100); v.Skipped || !near(v.Rate, 100) {
		t.Errorf("%+v", v)
	}
}

// Messages count at their sender; those that were launched together have one time.
func TestLiveMessages(t *testing.T) {
	j := newLiveJob(t, 2, 1)
	for i := range 100 {
		j.processes[0].Send(j.comms[0], 1, liveAt(float64(i)*10), liveAt(float64(i)*10+4), 1000)
		j.processes[1].Recv(j.comms[1], 0, liveAt(float64(i)*10+2), liveAt(float64(i)*10+4), 1000)
	}
	j.flush()
	v := look(t, NewLive(j.dir, time.Second), 1100)
	if len(v.Operations) != 1 || v.Operations[0].Operation != sendRecv || !near(v.Rate, 100) || v.Done != 100 || !near(v.Operations[0].Avg, 4e6) ||
		!near(v.Ranks[0].Inside, 0.4) || !near(v.Ranks[1].Inside, 0.2) {
		t.Errorf("%+v", v)
	}
}

// A view as people and programs see it: two hosts, losses, a rank that ended, a name that would clear the screen.
func TestLiveInAllFormats(t *testing.T) {
	j := newLiveJob(t, 4, 2)
	for i := range 100 {
		j.allReduce(float64(i)*10+2, float64(i)*10+8, 0, 0, 3, 0)
	}
	for r, p := range j.processes {
		p.Shard.Comms[j.comms[r]].Name = "tp\x1b[2J"
		p.Send(j.comms[r], (r+1)%4, liveAt(1010), liveAt(1012), 4096)
		p.Recv(j.comms[r], (r+3)%4, liveAt(1013), liveAt(1014), 4096)
	}
	j.processes[1].Shard.Counts.Lost = map[string]map[string]uint64{"ring full": {"ProxyStep": 3}}
	for _, p := range j.processes[:3] {
		p.Flush()
	}
	j.processes[3].Finish()
	v := look(t, NewLive(j.dir, time.Second), 3000)
	v.Directory, v.Time = "exp", v.Time.UTC()
	var all, short strings.Builder
	try(t, v.Document(0, 0).WriteText(&all))
	try(t, v.Document(1, 2).WriteText(&short))
	golden.Text(t, "testdata/live.txt", all.String()+"\nin short:\n\n"+short.String())
	b, err := json.MarshalIndent(v, "", "  ")
	try(t, err)
	golden.Text(t, "testdata/live.json", string(b)+"\n")
	waiting := LiveView{Directory: "exp", State: LiveWaiting}
	var text strings.Builder
	try(t, waiting.Document(0, 0).WriteText(&text))
	if text.String() != "exp: waiting for a job to be recorded here\n" {
		t.Error(text.String())
	}
}

// What a look costs each second of a job with 16 000 parts of operations a second: the table in docs/top.md.
func BenchmarkLiveLook(b *testing.B) {
	for _, ranks := range []int{8, 64} {
		b.Run(fmt.Sprintf("%d ranks", ranks), func(b *testing.B) {
			j := newLiveJob(b, ranks, 1)
			l := NewLive(j.dir, 10*time.Second)
			rate := 16_000 / ranks
			n, second := 0, 0
			work := func() {
				for ; n < second*rate; n++ {
					at := float64(n) * 1000 / float64(rate)
					j.allReduce(at+0.01, at+0.4)
				}
				j.flush()
			}
			var idle time.Duration
			for b.Loop() {
				b.StopTimer()
				second++
				work()
				b.StartTimer()
				look(b, l, float64(second)*1000+50)
				b.StopTimer()
				began := time.Now()
				look(b, l, float64(second)*1000+60)
				idle += time.Since(began)
				b.StartTimer()
			}
			b.ReportMetric(idle.Seconds()*1e9/float64(second), "idle-ns/op")
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			b.ReportMetric(float64(m.HeapAlloc>>20), "MiB")
			runtime.KeepAlive(l)
		})
	}
}
