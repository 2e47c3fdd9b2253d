// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/provenance"
	"github.com/nccl-otf2/nccl-otf2/internal/gpu"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shmtest"
)

// driver is a library whose GPUs are numbered like CUDA's, with sensors that count how often they were read.
type driver struct {
	// read is asked for each reading; it may change the value, fail, or not return.
	read func(g, quantity int, n uint64) (value uint64, known bool, err error)
	find error // of all devices

	mu     sync.Mutex
	wanted []gpu.Wanted
	reads  [2][len(gpu.Quantities)]atomic.Uint64
	closed atomic.Bool
	late   atomic.Uint64 // calls after the library was closed
}

func (d *driver) open() (gpu.Library, error) { return d, nil }

func (d *driver) Find(w gpu.Wanted) (gpu.Device, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wanted = append(d.wanted, w)
	if d.find != nil {
		return nil, d.find
	}
	return &driven{d, w.Ordinal}, nil
}

func (d *driver) Close() { d.closed.Store(true) }

func (d *driver) count(g, quantity int) uint64 { return d.reads[g][quantity].Load() }

type driven struct {
	*driver
	number int
}

func (d *driven) Identity() gpu.Identity {
	return gpu.Identity{
		Index: d.number + 4, UUID: fmt.Sprintf("GPU-%d", d.number), PCI: fmt.Sprintf("0000:0%d:00.0", d.number),
		Name: "Test GPU", Memory: 1 << 30, Driver: "1.2",
		PCIeGeneration: 5, PCIeWidth: 16, NVLinks: []gpu.NVLink{{Link: 1, Speed: 26562, Peer: "0000:09:00.0",
			Switch: true}},
		MIG: &gpu.MIG{Parent: "GPU-p", GPUInstance: 3}, Guess: "ordinal",
	}
}

func (d *driven) Sensors() (list []gpu.Sensor) {
	for _, q := range []int{gpu.Power, gpu.Temperature, gpu.NVLinkSent, gpu.PCIeSent} {
		list = append(list, gpu.Sensor{Quantity: q, Slow: q == gpu.PCIeSent, Read: func() (uint64, bool, error) {
			if d.closed.Load() {
				d.late.Add(1)
			}
			n := d.reads[d.number][q].Add(1)
			if d.read != nil {
				return d.read(d.number, q, n)
			}
			if q == gpu.NVLinkSent || q == gpu.PCIeSent {
				return math.Float64bits(float64(n)), true, nil
			}
			return n, true, nil
		}})
	}
	return list
}

// measured runs a job of two GPUs until done says so, and returns its shard and the last line for NCCL's log.
func measured(t *testing.T, d *driver, done func() bool, vars ...string) (
	p *description.Process, e experiment.Entry, message string) {
	t.Helper()
	return measuredWith(t, d.open, done, vars...)
}

func measuredWith(t *testing.T, open func() (gpu.Library, error), done func() bool, vars ...string) (
	p *description.Process, e experiment.Entry, message string) {
	t.Helper()
	dir := t.TempDir()
	job, process := newJob(t, shmtest.Options{Clock: shm.ClockMonotonic})
	apps := []*application{newApplication(job, 0, monotonic), newApplication(job, 1, monotonic)}
	wait := startRun(t, job, Options{Lookup: environment(append(vars, "NCCL_OTF2_DIR="+dir)...), GPUs: open})
	calls := uint64(0)
	work := func() {
		for _, a := range apps {
			a.allReduce(calls)
		}
		calls++
	}
	work()
	testkit.Require(t, shmtest.Await(done), "it does not happen")
	// Whatever the driver does, records are taken and requests answered.
	work()
	request := job.Request()
	testkit.Require(t, shmtest.Await(func() bool { return job.Answered(request) }), "the request is not answered")
	process.end()
	testkit.Must(t, wait())
	e = onlyShard(t, dir)
	if got := starts(e.Process); got != 2*calls*perCall || !e.Process.Finished {
		t.Errorf("%d starts of %d, finished %v", got, 2*calls*perCall, e.Process.Finished)
	}
	memory := testkit.Value(shm.Map(job.FD()))(t)
	defer memory.Close()
	message, _ = memory.Message()
	return e.Process, e, message
}

// samples are the values of one quantity of a GPU in a shard, and their times.
func samples(t *testing.T, e experiment.Entry, g, quantity int) (values []uint64, times []otf2.Timestamp) {
	t.Helper()
	a := bareArchive(t, e)
	for id, m := range e.Process.Metrics {
		if m.GPU != g || m.Location < 0 || m.Members[0].Name != gpu.Quantities[quantity].Name {
			continue
		}
		for ev, err := range a.EventsOf(otf2.LocationRef(m.Location)) {
			testkit.Must(t, err)
			if ev.Kind == otf2.EventMetric && ev.Args[0] == uint64(id) {
				values, times = append(values, ev.Args[3]), append(times, ev.Time)
			}
		}
	}
	return values, times
}

// bareArchive makes a shard's event files readable, without any definition.
func bareArchive(t *testing.T, e experiment.Entry) *otf2.Archive {
	t.Helper()
	dir := t.TempDir()
	testkit.Must(t, os.Symlink(e.Path, filepath.Join(dir, "traces")))
	path := filepath.Join(t.TempDir(), "traces.def")
	defs := testkit.Value(otf2.CreateGlobalDefWriter(path, 1<<20))(t)
	testkit.Must(t, defs.ClockProperties(1e9, 0, 1, 0))
	for _, l := range e.Process.Locations {
		testkit.Must(t, defs.Location(otf2.LocationRef(l.Number), otf2.UndefinedString, otf2.LocationTypeCPUThread,
			l.Events, otf2.UndefinedLocationGroup))
	}
	testkit.Must(t, defs.Close())
	testkit.Must(t, os.Rename(path, filepath.Join(dir, "traces.def")))
	anchor := filepath.Join(dir, "traces.otf2")
	testkit.Must(t, otf2.WriteAnchor(anchor, &otf2.Anchor{EventChunkSize: chunkSize, DefChunkSize: 1 << 20,
		Locations: uint64(len(e.Process.Locations)), GlobalDefs: defs.Count()}))
	a := testkit.Value(otf2.Open(anchor, nil))(t)
	t.Cleanup(func() { a.Close() })
	return a
}

func TestGPUsAreIdentifiedAndMeasured(t *testing.T) {
	d := &driver{}
	begin := shm.ReadClock(shm.ClockMonotonic).Real
	p, e, message := measured(t, d, func() bool { return d.count(0, gpu.Power) > 5 && d.count(1, gpu.PCIeSent) > 0 },
		"NCCL_OTF2_NVML=on:10ms")
	end := shm.ReadClock(shm.ClockMonotonic).Real
	testkit.Check(t, message == "" && len(p.Markers) == 0 && len(p.Counts.Lost) == 0 &&
		p.Counts.Oddities["SENSOR_FAILURES"]+p.Counts.Oddities["SENSOR_LOSSES"] <= 0,
		"message %q, markers %v, counts %+v", message, p.Markers, p.Counts)
	testkit.Require(t, len(d.wanted) == 2 && d.wanted[0].Ordinal == 0 && d.wanted[1].Ordinal == 1 &&
		d.wanted[0].Variable != nil, "asked for %+v", d.wanted)
	role, set := d.wanted[0].Variable(roleVariable)
	testkit.Check(t, role == "job" && set, "the environment is not that of the job's process: %q, %v", role, set)
	for g := range 2 {
		want := description.GPU{
			Device: g, UUID: fmt.Sprintf("GPU-%d", g), PCI: fmt.Sprintf("0000:0%d:00.0", g),
			Facts: &provenance.GPUFacts{
				Index: g + 4, Name: "Test GPU", Memory: 1 << 30, Driver: "1.2", PCIeGeneration: 5, PCIeWidth: 16,
				NVLinks: []provenance.NVLink{{Link: 1, Speed: 26562, Peer: "0000:09:00.0", Switch: true}},
				MIG:     &provenance.MIG{Parent: "GPU-p", GPUInstance: 3}, Guess: "ordinal",
			},
		}
		testkit.Same(t, want, p.GPUs[g])
		for _, q := range []int{gpu.Power, gpu.Temperature, gpu.NVLinkSent, gpu.PCIeSent} {
			values, times := samples(t, e, g, q)
			// All that was read is there, in order.
			if n := d.count(g, q); uint64(len(values)) != n {
				t.Errorf("GPU %d, %s: %d values of %d readings", g, gpu.Quantities[q].Name, len(values), n)
			}
			for i, v := range values {
				want := uint64(i + 1)
				if gpu.Quantities[q].Float {
					want = math.Float64bits(float64(i + 1))
				}
				if v != want || uint64(times[i]) < begin || uint64(times[i]) > end || i > 0 && times[i] < times[i-1] {
					t.Errorf("GPU %d, %s, value %d: %#x at %d, between %d and %d", g, gpu.Quantities[q].Name, i, v,
						times[i], begin, end)
				}
			}
		}
	}
	if !d.closed.Load() || d.late.Load() > 0 {
		t.Errorf("closed %v, %d readings after that", d.closed.Load(), d.late.Load())
	}
	rows := 0
	for _, l := range p.Locations {
		if l.Kind == description.KindGPUMetrics {
			rows++
		}
	}
	testkit.Check(t, rows == 2, "%d rows of measurements", rows)
}

// Identities are looked for in any case; sensors only on request.
func TestWithoutNVMLNothingIsRead(t *testing.T) {
	d := &driver{}
	p, _, message := measured(t, d, func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return len(d.wanted) == 2
	})
	testkit.Check(t, message == "" && len(p.Markers) == 0 && d.count(0, gpu.Power) == 0 && p.GPUs[1].Facts != nil,
		"message %q, markers %v, %d readings, %+v", message, p.Markers, d.count(0, gpu.Power), p.GPUs[1])
	for _, l := range p.Locations {
		testkit.Check(t, l.Kind != description.KindGPUMetrics, "%+v", l)
	}
}

// What went wrong is told in NCCL's log and marked in the shard, if sensors were asked for; the job is recorded as
// ever.
func TestProblemsOfSensorsAreReported(t *testing.T) {
	lost := func(g, quantity int, n uint64) (uint64, bool, error) {
		switch {
		case g == 0 && quantity == gpu.Power && n == 3:
			return 0, false, fmt.Errorf("%w: it fell off the bus", gpu.ErrLost)
		case g == 1 && quantity == gpu.Temperature && n == 2:
			return 0, false, errors.New("NVML error 999")
		}
		return n, n > 1, nil
	}
	asked := func(d *driver) bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return len(d.wanted) == 2
	}
	for _, c := range []struct {
		name     string
		read     func(g, quantity int, n uint64) (uint64, bool, error)
		find     error
		open     error
		done     func(d *driver) bool
		reported []string // with NVML=on
		failures uint64
	}{
		{
			name: "no library", open: fmt.Errorf("%w: libnvidia-ml.so.1 cannot be loaded", gpu.ErrNoLibrary),
			done:     func(*driver) bool { return true },
			reported: []string{"GPUs are not looked at: NVML is not available: libnvidia-ml.so.1 cannot be loaded"},
		},
		{
			name: "no such GPU", find: gpu.ErrNoDevice, done: asked,
			reported: []string{"GPU 0 is not looked at: no such GPU", "GPU 1 is not looked at: no such GPU"},
		},
		{
			name: "lost", read: lost, done: func(d *driver) bool {
				return d.count(1, gpu.Temperature) > 5 && d.count(0, gpu.Power) > 2
			},
			reported: []string{"GPU 0 is not read any more: the GPU is lost: it fell off the bus"}, failures: 2,
		},
	} {
		for _, on := range []bool{true, false} {
			if !on && c.read != nil {
				continue
			}
			t.Run(fmt.Sprint(c.name, ", on ", on), func(t *testing.T) {
				d := &driver{read: c.read, find: c.find}
				var vars []string
				if on {
					vars = append(vars, "NCCL_OTF2_NVML=on:10ms")
				}
				p, e, message := measuredWith(t, func() (gpu.Library, error) { return d, c.open },
					func() bool { return c.done(d) }, vars...)
				var reported []string
				for _, m := range p.Markers {
					testkit.Check(t, m.Category == "NCCL GPU sensors" && m.Time != 0, "marker %+v", m)
					reported = append(reported, strings.TrimPrefix(m.Text, "NCCL_OTF2_NVML: "))
				}
				want := c.reported
				if !on {
					want = nil
				}
				testkit.Same(t, want, reported, cmpopts.EquateEmpty())
				testkit.Check(t, on == strings.HasPrefix(message, "NCCL_OTF2_NVML: "), "message %q", message)
				testkit.Equal(t, p.Counts.Oddities["SENSOR_FAILURES"], c.failures, "failures")
				if c.failures == 0 {
					return
				}
				n := d.count(0, gpu.Power)
				testkit.Check(t, n == 3, "the sensor that was lost has been read %d times", n)
				// The failed reading, and the one that had nothing to say, are missing; the others are there.
				values, _ := samples(t, e, 1, gpu.Temperature)
				testkit.Check(t, uint64(len(values)) == d.count(1, gpu.Temperature)-2 && values[0] == 3,
					"values %v of %d readings", values, d.count(1, gpu.Temperature))
			})
		}
	}
}

// A driver that does not return holds up nobody, neither while the job runs nor at its end.
func TestADriverThatHangs(t *testing.T) {
	hung := make(chan struct{})
	t.Cleanup(func() { close(hung) })
	for _, c := range []struct{ name, where string }{{"opening", "open"}, {"reading", "read"}} {
		t.Run(c.name, func(t *testing.T) {
			var waits atomic.Bool
			d := &driver{}
			open := d.open
			stand := func() { waits.Store(true); <-hung }
			if c.where == "open" {
				open = func() (gpu.Library, error) { stand(); return nil, gpu.ErrNoLibrary }
			} else {
				d.read = func(g, quantity int, n uint64) (uint64, bool, error) {
					if g == 1 && n > 1 {
						stand()
					}
					return n, true, nil
				}
			}
			p, _, message := measuredWith(t, open, waits.Load, "NCCL_OTF2_NVML=on:10ms")
			const want = "NCCL_OTF2_NVML: the driver had not answered when the process ended"
			testkit.Check(t, len(p.Markers) == 1 && p.Markers[0].Text == want && message == want,
				"message %q, markers %+v", message, p.Markers)
		})
	}
}

func TestSilenceOfTheDriverIsReportedOnce(t *testing.T) {
	w := &gpuFindings{}
	done := w.beginCall()
	n := w.takeNews()
	testkit.Check(t, len(n.problems) == 0, "at once: %v", n.problems)
	w.setCall(time.Now().Add(-2 * gpuSilence))
	if n := w.takeNews(); len(n.problems) != 1 || n.problems[0] != "the driver has not answered for 10s" {
		t.Errorf("later: %v", n.problems)
	}
	n = w.takeNews()
	testkit.Check(t, len(n.problems) == 0, "again: %v", n.problems)
	done()
	testkit.Check(t, w.since.IsZero(), "a call that has ended is under way")
}

// What finds no room is counted, not kept.
func TestSamplesThatNobodyTakesAreCounted(t *testing.T) {
	w := &gpuWatch{}
	sensors := []gpu.Sensor{{Quantity: gpu.Power, Read: func() (uint64, bool, error) { return 1, true, nil }}}
	for range maxSamples + 3 {
		w.read(0, sensors)
	}
	n := w.takeNews()
	testkit.Check(t, len(n.samples) == maxSamples && n.losses == 3, "%d samples, %d lost", len(n.samples), n.losses)
}

// Asking for sensors where there can be none is answered, in one line; and the driver is left alone.
func TestNVMLWithoutEffectIsReported(t *testing.T) {
	for _, c := range []struct {
		name    string
		options shmtest.Options
		change  func(h *shm.Header)
		vars    string
		want    string
		opened  bool
	}{
		{name: "AMD", options: shmtest.Options{Clock: shm.ClockMonotonic},
			change: func(h *shm.Header) { h.Library = shm.LibraryRCCL }, want: "it is for GPUs of NVIDIA only"},
		{name: "record mode", options: shmtest.Options{Clock: shm.ClockMonotonic}, vars: "NCCL_OTF2_MODE=record",
			want: "with NCCL_OTF2_MODE=record only callbacks are recorded"},
		{name: "a program's clock", options: shmtest.Options{},
			want: "the times of this recording are a program's own, which readings do not have", opened: true},
		{name: "a collector that died", options: shmtest.Options{Clock: shm.ClockMonotonic},
			change: func(h *shm.Header) { h.CollectorPID = 1 << 30 },
			want:   "another collector of this process has died, and the driver may have been the cause"},
		{name: "a rank that is not recorded", options: shmtest.Options{Clock: shm.ClockMonotonic},
			vars: "NCCL_OTF2_RANKS=1", opened: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			job, process := newJob(t, c.options)
			if c.change != nil {
				c.change(job.Header())
			}
			now := monotonic
			if c.options.Clock == 0 {
				ticks := uint64(1e9)
				now = func() uint64 { ticks++; return ticks }
			}
			app := newApplication(job, 0, now)
			d := &driver{}
			wait := startRun(t, job, Options{
				Lookup: environment("NCCL_OTF2_DIR="+t.TempDir(), "NCCL_OTF2_NVML=on:10ms", "RANK=0", c.vars),
				GPUs:   d.open,
			})
			app.allReduce(0)
			if c.opened && !shmtest.Await(func() bool { d.mu.Lock(); defer d.mu.Unlock(); return len(d.wanted) == 1 }) {
				t.Fatal("the GPU is not looked for")
			}
			process.end()
			testkit.Must(t, wait())
			memory := testkit.Value(shm.Map(job.FD()))(t)
			defer memory.Close()
			message, _ := memory.Message()
			want := c.want
			testkit.Check(t, (want != "" || !strings.Contains(message, "NVML")) &&
				(want == "" || message == "NCCL_OTF2_NVML: "+want), "message %q, want %q", message, want)
			n := d.count(0, gpu.Power)
			testkit.Check(t, n <= 0 && (c.opened || len(d.wanted) == 0), "%d readings, looked for %v", n, d.wanted)
		})
	}
}
