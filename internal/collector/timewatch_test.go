// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"encoding/binary"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/provenance"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shmtest"
)

// pretendedChrony answers that the machine's clock is as it should be, give or take a µs (2⁻²⁰ s).
func pretendedChrony(t *testing.T) (dial func() (net.Conn, error), asked *atomic.Int64) {
	t.Helper()
	server := testkit.Value(net.ListenPacket("udp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { server.Close() })
	asked = new(atomic.Int64)
	go func() {
		question := make([]byte, 1024)
		for {
			_, from, err := server.ReadFrom(question)
			if err != nil {
				return
			}
			asked.Add(1)
			answer := make([]byte, 104)
			answer[0], answer[1], answer[5], answer[7], answer[31] = 6, 2, 33, 5, 1
			copy(answer[16:20], question[8:12])
			binary.BigEndian.PutUint32(answer[96:], (128-18)<<25|1<<23) // 2²³ · 2⁻¹⁸⁻²⁵
			_, _ = server.WriteTo(answer, from)
		}
	}()
	return func() (net.Conn, error) { return net.Dial("udp", server.LocalAddr().String()) }, asked
}

// A shard has what the time service said, at the beginning and at the end at least.
func TestTimeServiceIsAsked(t *testing.T) {
	for name, c := range map[string]struct {
		settings    string
		least, most int
	}{
		"answers":  {"", 2, 1 << 20},
		"is off":   {"NCCL_OTF2_TIME_SERVICE=off", 0, 0},
		"no trace": {"NCCL_OTF2_MODE=profile", 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dial, asked := pretendedChrony(t)
			dir := t.TempDir()
			job, process, a := newCaller(t, shmtest.Options{Clock: shm.ClockMonotonic})
			wait := startRun(t, job, Options{Lookup: environment("NCCL_OTF2_DIR="+dir, c.settings), TimeService: dial,
				TimePatience: time.Minute})
			a.allReduce(0)
			testkit.Require(t, c.least <= 0 || shmtest.Await(func() bool { return asked.Load() > 0 }),
				"it is not asked")
			process.end()
			testkit.Must(t, wait())
			readings := onlyShard(t, dir).Process.Clock.Readings
			testkit.Require(t, len(readings) >= c.least && len(readings) <= c.most, "%d readings", len(readings))
			for _, r := range readings {
				off := time.Duration(r.Reference - r.Time).Abs()
				testkit.Check(t, r.Source == "chrony" && r.Bound >= 954 && off <= time.Minute, "%+v: off by %v", r, off)
			}
		})
	}
}

// A shard of a long run has not more readings than it can hold, over the whole run.
func TestReadingsAreThinned(t *testing.T) {
	w := &timeWatch{}
	for n := range uint64(10 * maxServiceReadings) {
		w.readings = append(w.readings, provenance.ClockReading{Time: n})
		w.thinReadings()
	}
	got := w.taken()
	testkit.Check(t, len(got) < maxServiceReadings && got[0].Time == 0, "%d readings, the first at %d", len(got),
		got[0].Time)
	for i := range got[1:] {
		testkit.Require(t, got[i+1].Time > got[i].Time, "reading %d is not behind the one before", i+1)
	}
}
