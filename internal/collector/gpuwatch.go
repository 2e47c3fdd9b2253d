// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/config"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/provenance"
	"github.com/nccl-otf2/nccl-otf2/internal/gpu"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

const (
	// gpuPatience is how long the end of a job waits for a driver that has not answered yet.
	gpuPatience = 500 * time.Millisecond
	// slowPeriod is the minimum interval between readings of sensors that take 20 ms each.
	slowPeriod = time.Second
	// maxSamples limits the samples that wait to be written: 12 quantities of 8 GPUs every 10 ms, for 6 s.
	maxSamples = 65536
	// gpuSilence is how long a call of the driver may take before it is reported.
	gpuSilence = 10 * time.Second
	// maxGPUs limits the questions that wait for the driver.
	maxGPUs = 256
)

// gpuWatch identifies the GPUs that communicators use, and reads their sensors, in separate goroutines, because calls
// of the driver may take long. The collector takes the results in each round.
type gpuWatch struct {
	gpuFindings
	period time.Duration  // between readings; 0: none
	anchor shm.ClockTuple // of the process's time line
	pid    int

	asked chan gpuQuestion
	quit  chan struct{}
	ended chan struct{} // closed when the goroutines have ended

	// The following are used only by the collector's goroutine.
	stopped bool
	next    int // index of the first GPU not asked about yet
}

// gpuFindings holds results that the collector has not taken yet.
type gpuFindings struct {
	mu sync.Mutex
	gpuNews
	lost     map[int]bool // GPUs that are gone
	since    time.Time    // start of the driver call in progress; zero: none
	reported bool         // a long call has been reported
}

// gpuNews holds results since they were last taken, and counts since the start.
type gpuNews struct {
	found    []gpuAnswer
	samples  []gpuSample
	problems []string // what is not known or measured, and why

	failures uint64 // readings that failed
	losses   uint64 // values dropped for lack of room
}

// sensorCounts counts readings of GPU sensors.
type sensorCounts struct {
	failures, losses uint64 // see gpuNews
	values           uint64 // values passed to the model
}

// gpuQuestion is a GPU of the process, by its index in description.Process.GPUs.
type gpuQuestion struct {
	index  int
	wanted gpu.Wanted
}

type gpuAnswer struct {
	index    int
	identity gpu.Identity
}

type gpuSample struct {
	gpu, quantity int
	time, value   uint64
}

// watched is a device whose sensors are read.
type watched struct {
	index      int
	fast, slow []gpu.Sensor
}

// newGPUWatch starts a gpuWatch; nil if there is nothing to do. open connects to the driver; a goroutine calls it.
func newGPUWatch(c *live, open func() (gpu.Library, error)) *gpuWatch {
	recorded, cuda := c.plugin.chosen.event != 0, regions.PlatformOf(c.shard.process.Library) == regions.CUDA
	if why := unmeasurable(c, cuda); why != "" && c.settings.NVML > 0 && recorded {
		c.reportSensors(why)
	}
	if c.settings.Record || c.life.another || !cuda {
		return nil
	}
	w := &gpuWatch{
		period: c.settings.NVML, pid: c.shard.process.PID, anchor: c.drain.line.anchor,
		asked: make(chan gpuQuestion, maxGPUs), quit: make(chan struct{}), ended: make(chan struct{}),
		gpuFindings: gpuFindings{lost: make(map[int]bool)},
	}
	if c.drain.line.host || !recorded || c.settings.Profile {
		w.period = 0
	}
	go w.run(open)
	return w
}

// unmeasurable returns the reason why no GPU sensors are read in this process; "" if they are.
func unmeasurable(c *live, cuda bool) string {
	switch {
	case c.settings.Record:
		return "with " + config.Prefix + "MODE=record only callbacks are recorded"
	case c.settings.Profile:
		return "with " + config.Prefix + "MODE=profile they are not summed up"
	case !cuda:
		return "it is for GPUs of NVIDIA only"
	case c.drain.line.host:
		return "the times of this recording are a program's own, which readings do not have"
	case c.life.another:
		return "another collector of this process has died, and the driver may have been the cause"
	}
	return ""
}

// reportSensors reports, in NCCL's log and in the archive, why some or all of the sensors that the user asked for are
// not read.
func (c *live) reportSensors(why string) {
	text := config.Prefix + "NVML: " + why
	c.memory.Post(text)
	c.shard.markHigh(max(c.feed.latest, c.drain.line.anchor.Real), "NCCL GPU sensors", text)
}

// noteProblem records what could not be identified or measured, and why.
func (f *gpuFindings) noteProblem(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.problems = append(f.problems, fmt.Sprintf(format, args...))
}

// beginCall records the start of a driver call, and returns the function that ends it.
func (f *gpuFindings) beginCall() (end func()) {
	f.setCall(time.Now())
	return func() { f.setCall(time.Time{}) }
}

func (f *gpuFindings) setCall(since time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.since = since
}

func monotonicRaw() uint64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC_RAW, &t); err != nil {
		return 0
	}
	return uint64(t.Nano())
}

// stop ends the goroutines. It waits for them, but at most patience, because calls of the driver cannot be interrupted.
// It reports whether they have ended.
func (w *gpuWatch) stop(patience time.Duration) bool {
	if w == nil {
		return true
	}
	if !w.stopped {
		w.stopped = true
		close(w.asked)
	}
	select {
	case <-w.ended:
		return true
	case <-time.After(patience):
		return false
	}
}

// ask requests that a GPU be identified. It returns false if that is impossible now.
func (w *gpuWatch) ask(q gpuQuestion) bool {
	if w.stopped {
		return false
	}
	select {
	case w.asked <- q:
		return true
	default:
		return false // no job has this many GPUs
	}
}

// run answers questions and reads sensors until the channel of questions is closed.
func (w *gpuWatch) run(open func() (gpu.Library, error)) {
	defer close(w.ended)
	var library gpu.Library
	var devices []watched
	var readers sync.WaitGroup
	defer func() {
		close(w.quit)
		readers.Wait()
		if library != nil {
			library.Close()
		}
	}()
	var tick <-chan time.Time
	if w.period > 0 {
		ticker := time.NewTicker(w.period)
		defer ticker.Stop()
		tick = ticker.C
	}
	dead := false
	for {
		select {
		case q, more := <-w.asked:
			if !more {
				return
			}
			if library == nil && !dead {
				var err error
				done := w.beginCall()
				library, err = open()
				done()
				if err != nil {
					w.noteProblem("GPUs are not looked at: %v", err)
					library, dead = nil, true
				}
			}
			if dead {
				continue
			}
			if d, ok := w.watch(library, q); ok {
				devices = append(devices, d)
				if len(d.slow) > 0 {
					readers.Go(func() { w.readSlowly(d) })
				}
			}
		case <-tick:
			done := w.beginCall()
			for i := range devices {
				devices[i].fast = w.read(devices[i].index, devices[i].fast)
			}
			done()
		}
	}
}

// watch identifies a GPU; ok is false if it has no sensors to read.
func (w *gpuWatch) watch(library gpu.Library, q gpuQuestion) (dev watched, ok bool) {
	defer w.beginCall()()
	d, err := w.identify(library, q)
	if err != nil {
		w.noteProblem("GPU %d is not looked at: %v", q.index, err)
		return dev, false
	}
	if w.period == 0 {
		return dev, false
	}
	dev.index = q.index
	for _, s := range d.Sensors() {
		if s.Slow {
			dev.slow = append(dev.slow, s)
		} else {
			dev.fast = append(dev.fast, s)
		}
	}
	if len(dev.slow)+len(dev.fast) == 0 {
		w.noteProblem("GPU %d has no sensor that can be read", q.index)
		return dev, false
	}
	return dev, true
}

// readSlowly reads a device's slow sensors, in a separate goroutine.
func (w *gpuWatch) readSlowly(d watched) {
	ticker := time.NewTicker(max(w.period, slowPeriod))
	defer ticker.Stop()
	for {
		select {
		case <-w.quit:
			return
		case <-ticker.C:
			d.slow = w.read(d.index, d.slow)
		}
	}
}

func (w *gpuWatch) identify(library gpu.Library, q gpuQuestion) (gpu.Device, error) {
	if q.wanted.UUID == "" && q.wanted.PCI == "" {
		var err error
		if q.wanted.Variable, err = gpu.Environment(w.pid); err != nil {
			return nil, err
		}
	}
	d, err := library.Find(q.wanted)
	if err != nil {
		return nil, err
	}
	id := d.Identity()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.found = append(w.found, gpuAnswer{q.index, id})
	return d, nil
}

// read reads a device's sensors, and returns those that are worth reading again.
func (w *gpuWatch) read(index int, sensors []gpu.Sensor) []gpu.Sensor {
	kept := sensors[:0]
	for _, s := range sensors {
		value, known, err := s.Read()
		t := w.anchor.Real + (monotonicRaw() - w.anchor.Raw)
		w.mu.Lock()
		switch {
		case err != nil:
			w.failures++
		case known && len(w.samples) >= maxSamples:
			w.losses++
		case known:
			w.samples = append(w.samples, gpuSample{index, s.Quantity, t, value})
		}
		w.mu.Unlock()
		if errors.Is(err, gpu.ErrLost) {
			w.lose(index, err)
			return nil
		}
		kept = append(kept, s)
	}
	return kept
}

// lose records, once, that a GPU is gone.
func (w *gpuWatch) lose(index int, err error) {
	w.mu.Lock()
	known := w.lost[index]
	w.lost[index] = true
	w.mu.Unlock()
	if !known {
		w.noteProblem("GPU %d is not read any more: %v", index, err)
	}
}

// takeNews returns the results since the last call, and the counts.
func (f *gpuFindings) takeNews() gpuNews {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.reported && !f.since.IsZero() && time.Since(f.since) > gpuSilence {
		f.reported = true
		f.problems = append(f.problems, fmt.Sprintf("the driver has not answered for %v", gpuSilence))
	}
	news := f.gpuNews
	f.found, f.samples, f.problems = nil, nil, nil
	return news
}

// handOver requests the identification of new GPUs, and passes results to the model.
func (w *gpuWatch) handOver(c *live) {
	if w == nil || c.disk.failed == nil && !c.writes() {
		return // later
	}
	for ; w.next < c.feed.model.GPUs(); w.next++ {
		g := c.shard.process.GPUs[w.next]
		if g.UUID == "" && g.PCI == "" && g.Device < 0 {
			continue // nothing to look for
		}
		if !w.ask(gpuQuestion{w.next, gpu.Wanted{UUID: g.UUID, PCI: g.PCI, Ordinal: g.Device}}) {
			break
		}
	}
	news := w.takeNews()
	c.sensors.failures, c.sensors.losses = news.failures, news.losses
	for _, p := range news.problems {
		c.logLine("%s", p)
		if w.period > 0 {
			c.reportSensors(p)
		}
	}
	for _, a := range news.found {
		c.feed.model.Identify(a.index, a.identity.UUID, a.identity.PCI, factsOf(&a.identity))
	}
	for i := range news.samples {
		s := &news.samples[i]
		if !c.writes() || c.diskCap.reached != "" {
			return
		}
		c.sensors.values++
		c.failForGood(c.feed.model.Sample(s.gpu, &gpuQuantities[s.quantity], s.time, s.value))
	}
}

// endWatches stops the watches, and takes their last results.
func (c *live) endWatches() {
	c.service.stop()
	c.gpus.handOver(c)
	ended := c.gpus.stop(gpuPatience)
	c.gpus.handOver(c)
	if !ended && c.gpus.period > 0 {
		c.reportSensors("the driver had not answered when the process ended")
	}
}

// factsOf returns the part of an identity that a shard contains.
func factsOf(id *gpu.Identity) *provenance.GPUFacts {
	f := &provenance.GPUFacts{
		Index: id.Index, Name: id.Name, Memory: id.Memory, Driver: id.Driver,
		PCIeGeneration: id.PCIeGeneration, PCIeWidth: id.PCIeWidth, MIGMode: id.MIGMode, Guess: id.Guess,
	}
	for _, l := range id.NVLinks {
		f.NVLinks = append(f.NVLinks, provenance.NVLink(l))
	}
	if id.MIG != nil {
		m := provenance.MIG(*id.MIG)
		f.MIG = &m
	}
	return f
}

// gpuQuantities lists package gpu's quantities as metric members.
var gpuQuantities = func() (members [len(gpu.Quantities)]description.MetricMember) {
	for i, q := range gpu.Quantities {
		m := description.MetricMember{
			Name: q.Name, Description: q.Description, Unit: q.Unit, Exponent: int64(q.Exponent),
			Type: otf2.TypeUint64, Mode: otf2.MetricAbsolutePoint,
		}
		if q.Float {
			m.Type = otf2.TypeDouble
		}
		if q.Period {
			m.Mode = otf2.MetricAbsoluteLast
		}
		members[i] = m
	}
	return members
}()
