// SPDX-License-Identifier: Apache-2.0

package live

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/hang"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/verdict"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

func look(t testing.TB, l *Follower, ms float64) *View {
	t.Helper()
	v := testkit.Value(l.Look(time.Unix(0, int64(jobtest.LiveAt(ms)))))(t)
	return v
}

func near(a, b float64) bool { return math.Abs(a-b) <= 0.02*math.Abs(b)+1e-9 }

// A job is followed from before its begin to its end. It has 100 operations a second of 5 ms. At first rank 0 waits 2
// ms for rank 1, later rank 1 waits for rank 0.
func TestLiveFollowsAJob(t *testing.T) {
	j := jobtest.NewLiveJob(t, 2, 1)
	l := New(j.Dir, 2*time.Second)
	waiting := New(j.Dir+"/nowhere", time.Second)
	if v := look(t, waiting, 0); v.State != LiveWaiting || v.Processes != 0 {
		t.Errorf("%+v", v)
	}
	if v := look(t, l, 0); v.State != LiveWaiting {
		t.Errorf("without descriptions: %+v", v)
	}
	j.Flush()
	if v := look(t, l, 1); v.State != LiveRunning || v.Running != 2 || v.Window != 0 || len(v.Ranks) != 2 ||
		v.Rate != 0 {
		t.Errorf("without operations: %+v", v)
	}
	written := 0
	to := func(ms float64, late ...float64) {
		for ; float64(written)*10 < ms; written++ {
			j.AllReduce(float64(written)*10+4, float64(written)*10+9, late...)
		}
		j.Flush()
	}
	to(4000, 0, 2)
	v := look(t, l, 4100)
	// 1 Mi float32: 4 MiB in 4 ms on average.
	want := Operation{Communicator: "world", Ranks: 2, Operation: "AllReduce", Rate: 100, Size: 4 << 20, Avg: 4e6,
		BusBW: 4.194304e6 / 4e6, Waiting: 2.0 / 8, Compared: 190}
	testkit.Check(t, len(v.Operations) == 1 && near(v.Operations[0].Rate, 100) &&
		near(v.Operations[0].BusBW, want.BusBW) && near(v.Operations[0].Waiting, want.Waiting) &&
		v.Operations[0].Size == want.Size && near(v.Operations[0].Avg, want.Avg) &&
		v.Operations[0].Compared >= want.Compared, "got %+v, want %+v", v.Operations, want)
	testkit.Check(t, near(v.Rate, 100) && near(v.Bytes, 100*4<<20) && v.Done == 400 && v.Age == 101_000_000, "%+v", v)
	rank := func(v *View, r int, inside, waiting, caused float64) {
		t.Helper()
		x := v.Ranks[r]
		testkit.Check(t, near(x.Inside, inside) && near(x.Waiting, waiting) && near(x.Caused, caused) &&
			near(x.Rate, 100) && x.State == "running", "rank %d: %+v", r, x)
	}
	rank(v, 0, 0.5, 0.2, 0)
	rank(v, 1, 0.3, 0, 1)
	// A second look without new data changes nothing, and new operations count once.
	again := look(t, l, 4200)
	again.Time, again.Age = v.Time, v.Age
	testkit.Same(t, v, again, cmp.AllowUnexported(Operation{}))
	for ms := 4500.0; ms <= 7000; ms += 500 {
		to(ms, 2, 0)
		v = look(t, l, ms+50)
		testkit.Check(t, near(v.Rate, 100), "at %v ms: %v operations a second", ms, v.Rate)
	}
	rank(v, 0, 0.3, 0, 1)
	rank(v, 1, 0.5, 0.2, 0)
	n := len(l.buckets)
	testkit.Check(t, n <= liveBuckets+2, "%d parts of the window are kept", n)
	// One rank is ahead, so its operations are not complete.
	j.Processes[0].AllReduce(j.Comms[0], jobtest.LiveAt(8004), jobtest.LiveAt(8009), 1<<20)
	j.Processes[0].Flush()
	if v := look(t, l, 8100); !near(v.Rate, 100) || v.Done != 701 || l.assembly.Parts != 1 {
		t.Errorf("%+v, %d parts", v, l.assembly.Parts)
	}
	// The job hangs, so the operations of the last seconds become fewer.
	if v := look(t, l, 7050+5000+1000); math.Abs(v.Rate-50) > 5 {
		t.Errorf("a second after the lag: %v operations a second", v.Rate)
	}
	if v := look(t, l, 30_000); v.Rate != 0 || v.Window < 1.9e9 || len(v.Operations) != 0 {
		t.Errorf("hanging: %+v", v)
	}
	j.Processes[0].Shard.Counts.Lost = map[string]map[string]uint64{"ring": {"ProxyStep": 3, "KernelCh": 4}}
	for _, p := range j.Processes {
		p.Finish()
	}
	v = look(t, l, 31_000)
	testkit.Check(t, v.State == LiveEnded && !v.Over && v.Ended == 2 && v.Lost == 7 && v.LostBy["ring"] == 7 &&
		v.Ranks[0].Lost == 7, "ended: %+v", v)
	v = look(t, l, 33_000)
	testkit.Check(t, v.Over, "over: %+v", v)
}

// A look that starts later shows the last seconds of the job, and reads little more than these.
func TestLiveBeginsInTheMiddle(t *testing.T) {
	j := jobtest.NewLiveJob(t, 2, 1)
	for i := range 20_000 {
		j.AllReduce(float64(i)*10+4, float64(i)*10+9, 0, 2)
	}
	j.Flush()
	l := New(j.Dir, 5*time.Second)
	v := look(t, l, 200_100)
	testkit.Check(t, v.State == LiveRunning && near(v.Rate, 100) && !v.Skipped && v.Window <= 5e9 &&
		v.Window >= 4.7e9 && near(v.Ranks[0].Waiting, 0.2) && v.Done == 20_000, "%+v", v)
	testkit.Check(t, l.begin >= otf2.Timestamp(jobtest.LiveAt(100_000)), "read from %d ms on", (l.begin-t0)/1e6)
}

// Hosts' clocks differ: they are corrected by the ends of operations, and rooted operations are not compared.
func TestLiveOnSeveralHosts(t *testing.T) {
	j := jobtest.NewLiveJob(t, 4, 2)
	const off = 300 // ms that the second host's clock is ahead
	for i := range 200 {
		for r, p := range j.Processes {
			late, by := []float64{0, 1, 3, 2}[r], float64(r/2*off)
			begin, end := jobtest.LiveAt(float64(i)*10+2+late+by), jobtest.LiveAt(float64(i)*10+8+by)
			if i%2 == 0 {
				p.AllReduce(j.Comms[r], begin, end, 1000)
				continue
			}
			p.Collective(j.Comms[r], shardtest.Op{Function: "Broadcast", Begin: begin, End: end, Root: 1, Count: 100})
		}
	}
	j.Flush()
	v := look(t, New(j.Dir, time.Second), 2500)
	testkit.Check(t, v.Hosts == 2 && v.NotCompared >= 30 && v.Compared >= 30, "%+v", v)
	// Waits of 3, 2, 0 and 1 ms in every 20 ms.
	for r, want := range []float64{3, 2, 0, 1} {
		got := v.Ranks[r].Waiting
		testkit.Check(t, math.Abs(got-want/20) <= 0.02, "rank %d waits %v of the time, want %v", r, got, want/20)
	}
	testkit.Check(t, v.Ranks[2].Caused == 1, "%+v", v.Ranks)
}

// Data that is too much to follow is skipped, on all ranks alike, and the view reports that.
func TestLiveSkipsWhatIsTooMuch(t *testing.T) {
	j := jobtest.NewLiveJob(t, 2, 1)
	write := func(from, to int) {
		for i := from; i < to; i++ {
			j.AllReduce(float64(i)*10+4, float64(i)*10+9, 0, 2)
		}
		j.Flush()
	}
	write(0, 200)
	l := New(j.Dir, time.Second)
	l.bytes = 1 << 20
	if v := look(t, l, 2000); v.Skipped || !near(v.Rate, 100) {
		t.Errorf("%+v", v)
	}
	write(200, 15_000)
	v := look(t, l, 150_100)
	testkit.Check(t, v.Skipped && math.Abs(v.Rate-100) <= 10 && near(v.Ranks[0].Waiting, 0.2), "%+v", v)
	write(15_000, 15_100)
	v = look(t, l, 151_100)
	testkit.Check(t, !v.Skipped && near(v.Rate, 100), "%+v", v)
}

// Messages count at their sender; messages launched together have one time.
func TestLiveMessages(t *testing.T) {
	j := jobtest.NewLiveJob(t, 2, 1)
	for i := range 100 {
		j.Processes[0].Send(j.Comms[0], 1, jobtest.LiveAt(float64(i)*10), jobtest.LiveAt(float64(i)*10+4), 1000)
		j.Processes[1].Recv(j.Comms[1], 0, jobtest.LiveAt(float64(i)*10+2), jobtest.LiveAt(float64(i)*10+4), 1000)
	}
	j.Flush()
	v := look(t, New(j.Dir, time.Second), 1100)
	testkit.Check(t, len(v.Operations) == 1 && v.Operations[0].Operation == analysis.SendRecv && near(v.Rate, 100) &&
		v.Done == 100 && near(v.Operations[0].Avg, 4e6) && near(v.Ranks[0].Inside, 0.4) && near(v.Ranks[1].Inside, 0.2),
		"%+v", v)
}

// The reason why a job does not continue is given as by `report --hang`, once it is older than operations usually are
// and until the job continues.
func TestLiveSaysWhatStopsAJob(t *testing.T) {
	j := jobtest.NewLiveJob(t, 3, 1)
	j.AllReduce(10, 20)
	for _, p := range j.Processes[:2] {
		p.Shard.Pending = []description.Pending{{Function: "AllReduce", Ordinal: 1, Since: jobtest.LiveAt(30),
			State: "running"}}
	}
	j.Flush()
	l := New(j.Dir, 10*time.Second)
	if v := look(t, l, 100); len(v.Stops) != 0 {
		t.Errorf("while it may just take its time: %+v", v.Stops)
	}
	v := look(t, l, 7030)
	r := testkit.Value(hang.Find(j.Dir, v.Time, nil))(t)
	testkit.Check(t, len(v.Stops) == 1 && v.Stops[0].Kind == verdict.Missing &&
		slices.Equal(v.Stops[0].Culprits, []int{2}) && v.Stops[0].Sentence() == r.Jobs[0].Stops[0].Sentence(),
		"got %+v, report --hang has %+v", v.Stops, r.Jobs[0].Stops)
	for _, p := range j.Processes {
		p.Shard.Pending = nil
	}
	j.AllReduce(30, 7100)
	j.Flush()
	v = look(t, l, 14_000)
	testkit.Check(t, len(v.Stops) == 0, "when it goes on: %+v", v.Stops)
}

// A job whose operations all lie within one part of the window is shown, too.
func TestLiveOfAShortJob(t *testing.T) {
	j := jobtest.NewLiveJob(t, 2, 1)
	for i := range 10 {
		j.AllReduce(float64(i)*10+1, float64(i)*10+9)
	}
	j.Flush()
	v := look(t, New(j.Dir, 10*time.Second), 300)
	testkit.Check(t, len(v.Operations) == 1 && v.Operations[0].Size == 4<<20 && v.Window != 0 &&
		v.Window <= uint64(time.Second/2) && math.Abs(v.Rate*float64(v.Window)/1e9-10) <= 1e-6, "%+v", v)
}

// The cost of a look each second at a job with 16 000 parts of operations a second: the table in docs/top.md.
func BenchmarkLiveLook(b *testing.B) {
	for _, ranks := range []int{8, 64} {
		b.Run(fmt.Sprintf("%d ranks", ranks), func(b *testing.B) {
			j := jobtest.NewLiveJob(b, ranks, 1)
			l := New(j.Dir, 10*time.Second)
			rate := 16_000 / ranks
			n, second := 0, 0
			work := func() {
				for ; n < second*rate; n++ {
					at := float64(n) * 1000 / float64(rate)
					j.AllReduce(at+0.01, at+0.4)
				}
				j.Flush()
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

// Times in the test jobs.
const (
	t0 = jobtest.T0
)

// The mean time is the one in the report: without the first operation of a communicator, in which NCCL makes its
// connections, and without operations for which only the launch is known.
func TestLiveTimesAreThoseOfTheReport(t *testing.T) {
	j := jobtest.NewLiveJob(t, 2, 1)
	l := New(j.Dir, 2*time.Second)
	j.AllReduce(4, 904) // start-up
	for i := range 50 {
		j.AllReduce(1004+10*float64(i), 1009+10*float64(i))
	}
	j.Flush()
	v := look(t, l, 1600)
	if o := v.Operations[0]; o.Timed != 50 || !near(o.Avg, 5e6) || o.TimingSource != "gpu" {
		t.Errorf("of %d operations the mean time is %v ns (%s)", o.Timed, o.Avg, o.TimingSource)
	}
	launched := jobtest.NewLiveJob(t, 2, 1)
	for i := range uint64(50) {
		for _, p := range launched.Processes {
			at := jobtest.LiveAt(10 * float64(i))
			p.Collective(0, shardtest.Op{Function: "AllReduce", Begin: at, End: at + 5000, Sent: 40, Received: 40,
				Count: 10, Source: "enqueue"})
		}
	}
	launched.Flush()
	v = look(t, New(launched.Dir, 2*time.Second), 600)
	if o := v.Operations[0]; o.Timed != 0 || o.Avg != 0 || o.BusBW != 0 || o.TimingSource != "enqueue" {
		t.Errorf("of launches the mean time is %v ns, %v GB/s (%s, %d)", o.Avg, o.BusBW, o.TimingSource, o.Timed)
	}
}
