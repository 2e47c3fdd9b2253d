// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/provenance"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

func newMetricScene(t *testing.T, nranks int) *scene {
	return newSceneWith(t, nranks, 0, &Options{RecordMask: 1<<shm.EventKernelCh | 1<<shm.EventProxyOp, Metrics: true})
}

// only keeps the lines of one metric.
func only(lines []string, name string) (out []string) {
	for _, l := range lines {
		if strings.Contains(l, " Metric "+name+"=") {
			out = append(out, l)
		}
	}
	return out
}

// Sizes and factors are those of nccl-tests (doc/PERFORMANCE.md there): 256 float32 per rank of 4, in 32 µs.
func TestBandwidths(t *testing.T) {
	for function, want := range map[string]string{
		"AllReduce": "NCCL algbw=3.2e+07 NCCL busbw=4.8e+07", "AllGather": "NCCL algbw=1.28e+08 NCCL busbw=9.6e+07",
		"ReduceScatter": "NCCL algbw=1.28e+08 NCCL busbw=9.6e+07", "AlltoAll": "NCCL algbw=1.28e+08 NCCL busbw=9.6e+07",
		"Broadcast": "NCCL algbw=3.2e+07 NCCL busbw=3.2e+07", "Reduce": "NCCL algbw=3.2e+07 NCCL busbw=3.2e+07",
		"Gather": "NCCL algbw=1.28e+08 NCCL busbw=9.6e+07", "Scatter": "NCCL algbw=1.28e+08 NCCL busbw=9.6e+07",
		"Send": "NCCL algbw=3.2e+07 NCCL busbw=3.2e+07", "Recv": "NCCL algbw=3.2e+07 NCCL busbw=3.2e+07",
		"SomethingNew": "",
	} {
		t.Run(function, func(t *testing.T) {
			s := newMetricScene(t, 4)
			s.start(0, 100, shm.EventGroupApi, "g", "", shm.Record{GroupDepth: 1})
			s.api(101, "api of a", "g", function, 0)
			s.plan(0, 106, "p", function, "a")
			s.stop(0, 110, shm.EventGroupApi, "g")
			s.kernel(120, 152, "a")
			got := only(s.lines(description.KindRank), "NCCL algbw")
			if want == "" {
				testkit.Check(t, len(got) == 0, "got %q", got)
				return
			}
			s.expect(got, "120 Metric "+want+"\n152 Metric NCCL algbw=0 NCCL busbw=0")
		})
	}
}

// Where the times are not those of the work, there is no bandwidth; nor in a communicator of one.
func TestBandwidthsThatAreNotKnown(t *testing.T) {
	s := newMetricScene(t, 4)
	s.allReduce(100, "a") // no stamps
	got := only(s.lines(description.KindRank), "NCCL algbw")
	testkit.Check(t, len(got) == 0, "of an enqueue: %q", got)
	s = newMetricScene(t, 1)
	s.allReduce(100, "a")
	s.kernel(120, 152, "a")
	got = s.lines(description.KindRank)
	testkit.Check(t, !strings.Contains(strings.Join(got, "\n"), "Metric"), "of one rank: %q", got)
}

// Kernels that overlap are drawn one after the other; how long they took stays what it was.
func TestBandwidthIsOfTheWholeTime(t *testing.T) {
	s := newMetricScene(t, 4)
	s.allReduce(100, "a")
	s.allReduce(112, "b")
	s.kernel(130, 162, "a")
	s.kernelOn(1, 146, 178, "b")
	s.golden()
}

// Of messages in one kernel the larger direction counts; what a rank sends itself moves over no bus.
func TestBandwidthOfMessages(t *testing.T) {
	s := newMetricScene(t, 4) // rank 1
	s.start(0, 100, shm.EventGroupApi, "g", "", shm.Record{GroupDepth: 2})
	messages := []struct {
		function string
		peer     int32
	}{{"Send", 0}, {"Send", 1}, {"Recv", 1}}
	for i, m := range messages {
		s.api(uint64(101+2*i), fmt.Sprint("api of ", i), "g", m.function, 0)
	}
	s.start(0, 120, shm.EventGroup, "p", "", shm.Record{})
	for i, m := range messages {
		name := fmt.Sprint(i)
		s.start(0, 121, shm.EventP2p, name, "api of "+name, shm.Record{
			ParentGroup: s.id("p"), Func: m.function, Count: 256, Datatype: "ncclFloat32", Peer: m.peer, NChannels: 1,
		})
		s.stop(0, 122, shm.EventP2p, name)
	}
	s.stop(0, 123, shm.EventGroup, "p")
	s.stop(0, 125, shm.EventGroupApi, "g")
	s.kernel(130, 140, "0")
	s.golden()
}

// Operations are outstanding from their launch to their end.
func TestOutstandingOperations(t *testing.T) {
	s := newMetricScene(t, 4)
	s.allReduce(100, "a")
	s.allReduce(112, "b")
	s.allReduce(150, "c")
	s.kernel(120, 140, "a")
	s.kernel(145, 170, "b")
	s.kernel(200, 210, "c")
	s.golden()
}

// A transfer is in flight from its handing over to its end, an arrived one until the GPU has it.
// An operation that was enqueued, and turns out to have been captured only, is not outstanding any more.
func TestOutstandingUntilItIsCapturedOnly(t *testing.T) {
	s := newSceneWith(t, 4, 7, &Options{RecordMask: 1 << shm.EventKernelCh, Metrics: true})
	s.handle["captured"] = 77 | shm.CapturedBit
	s.allReduce(100, "a")
	s.start(0, 125, shm.EventGroupApi, "g", "", shm.Record{GroupDepth: 1})
	s.event(0, 126, 127, shm.EventKernelLaunch, "l", "g", shm.Record{Stream: 7})
	s.start(0, 130, shm.EventGroup, "p", "", shm.Record{})
	s.start(0, 131, shm.EventColl, "b", "", shm.Record{ParentGroup: s.id("p"), Func: "AllReduce", Count: 256,
		Datatype: "ncclFloat32"})
	s.kernel(140, 160, "a")
	s.stop(0, 5_000_000, shm.EventGroupApi, "g") // a is drawn
	s.start(0, 5_000_001, shm.EventColl, "c", "captured",
		shm.Record{ParentGroup: s.id("p"), Func: "AllReduce", Count: 256, Datatype: "ncclFloat32"})
	s.golden()
}

func TestBytesInFlight(t *testing.T) {
	s := newMetricScene(t, 4)
	s.transfers()
	s.golden()
}

// Without the setting there is no trace of them.
func TestWithoutMetrics(t *testing.T) {
	s := newScene(t, 4)
	s.allReduce(100, "a")
	s.kernel(120, 150, "a")
	got := s.lines(description.KindRank)
	testkit.Check(t, len(got) == 5 && len(s.p.Metrics) == 0, "%q, %v", got, s.p.Metrics)
}

func TestSamplesOfGPUs(t *testing.T) {
	s := newScene(t, 4)
	s.m.Comm(1, description.Comm{ID: 2, NRanks: 2}, description.GPU{Device: 1, UUID: "GPU-told", PCI: "0000:02:00.0"})
	s.m.Comm(2, description.Comm{ID: 3, NRanks: 2}, description.GPU{Device: 0}) // the first again
	n := s.m.GPUs()
	testkit.Require(t, n == 2, "%d GPUs", n)
	facts := &provenance.GPUFacts{Name: "Test"}
	part := &provenance.GPUFacts{Name: "Test", MIG: &provenance.MIG{Parent: "GPU-told"}}
	s.m.Identify(0, "GPU-found", "0000:01:00.0", facts)
	s.m.Identify(1, "MIG-told", "0000:09:00.0", part)
	// What has been found out does not make another GPU of one that is known.
	s.m.Comm(3, description.Comm{ID: 4, NRanks: 2}, description.GPU{Device: 0})
	want := []description.GPU{
		{Device: 0, UUID: "GPU-found", PCI: "0000:01:00.0", Facts: facts},
		{Device: 1, UUID: "MIG-told", PCI: "0000:02:00.0", Facts: part},
	}
	testkit.Same(t, want, s.p.GPUs)
	power := description.MetricMember{Name: "power", Type: otf2.TypeUint64, Unit: "W", Exponent: -3,
		Mode: otf2.MetricAbsolutePoint}
	rate := description.MetricMember{Name: "rate", Type: otf2.TypeDouble, Unit: "B/s", Mode: otf2.MetricAbsoluteLast}
	for _, v := range []struct {
		gpu       int
		q         *description.MetricMember
		us, value uint64
	}{
		{1, &power, 50, 7}, {0, &power, 51, 8}, {1, &rate, 52, math.Float64bits(1.5)}, {1, &power, 60, 9},
		{1, &power, 59, 10},
	} {
		testkit.Must(t, s.m.Sample(v.gpu, v.q, micros(v.us), v.value))
	}
	s.golden()
}
