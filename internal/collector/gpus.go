// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/config"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/gpu"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

const (
	// gpuPatience is how long the end of a job waits for a driver that has not answered yet.
	gpuPatience = 500 * time.Millisecond
	// slowPeriod is the least time between readings of sensors that take 20 ms each.
	slowPeriod = time.Second
	// maxSamples bounds what waits to be written: 12 quantities of 8 GPUs every 10 ms, for 6 s.
	maxSamples = 65536
	// gpuSilence is how long a call of the driver may take before the user is told.
	gpuSilence = 10 * time.Second
	// maxGPUs bounds the questions that wait for the driver.
	maxGPUs = 256
)

// gpuWatch finds out about the GPUs that communicators use, and reads their sensors, in goroutines of its own: a call
// of the driver may take long. What it has found the collector takes when it gets round to it.
type gpuWatch struct {
	open   func() (gpu.Library, error)
	period time.Duration // between readings; 0: none
	line   func() uint64 // the time on the process's line
	pid    int

	asked   chan gpuQuestion
	quit    chan struct{}
	ended   chan struct{} // the goroutines have
	stopped bool          // of use to the collector only

	mu       sync.Mutex
	found    []gpuAnswer
	samples  []gpuSample
	failures uint64
	losses   uint64
	problems []string     // since they were taken: what is not known or measured, and why
	lost     map[int]bool // GPUs that are gone
	since    time.Time    // when the call of the driver began that is under way; zero if none is
	reported bool         // that it takes long
}

// gpuQuestion is a GPU of the process, by its index in experiment.Process.GPUs.
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

// watchGPUs begins; nil if there is nothing to look for.
func (c *live) watchGPUs(open func() (gpu.Library, error)) *gpuWatch {
	recorded := c.chosen.event != 0
	if why := c.unmeasurable(); why != "" && c.settings.NVML > 0 && recorded {
		c.sensorProblem(why)
	}
	if c.script != nil || c.again || regions.PlatformOf(c.process.Library) != regions.CUDA {
		return nil
	}
	anchor := c.line.anchor
	w := &gpuWatch{
		open: open, period: c.settings.NVML, pid: c.process.PID,
		line:  func() uint64 { return anchor.Real + (monotonicRaw() - anchor.Raw) },
		asked: make(chan gpuQuestion, maxGPUs), quit: make(chan struct{}), ended: make(chan struct{}),
		lost: make(map[int]bool),
	}
	if c.line.host || !recorded || c.profile != nil {
		w.period = 0
	}
	go w.run()
	return w
}

// unmeasurable says why no sensors of GPUs are read in this process; "" if they are.
func (c *live) unmeasurable() string {
	switch {
	case c.script != nil:
		return "with " + config.Prefix + "MODE=record only callbacks are recorded"
	case c.profile != nil:
		return "with " + config.Prefix + "MODE=profile they are not summed up"
	case regions.PlatformOf(c.process.Library) != regions.CUDA:
		return "it is for GPUs of NVIDIA only"
	case c.line.host:
		return "the times of this recording are a program's own, which readings do not have"
	case c.again:
		return "another collector of this process has died, and the driver may have been the cause"
	}
	return ""
}

// sensorProblem tells the user, who asked for sensors, that he gets none or not all: in NCCL's log and in the archive.
func (c *live) sensorProblem(why string) {
	text := config.Prefix + "NVML: " + why
	c.memory.Post(text)
	c.markers = append(c.markers, experiment.Marker{
		Time: max(c.given, c.line.anchor.Real), Severity: regions.SeverityHigh, Category: "NCCL GPU sensors",
		Location: -1, Text: text,
	})
}

// problem is taken up by the collector, see takeGPUs.
func (w *gpuWatch) problem(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.problems = append(w.problems, fmt.Sprintf(format, args...))
}

// calls notes that the driver is called, and returns what ends that.
func (w *gpuWatch) calls() func() {
	w.set(time.Now())
	return func() { w.set(time.Time{}) }
}

func (w *gpuWatch) set(since time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.since = since
}

func monotonicRaw() uint64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC_RAW, &t); err != nil {
		return 0
	}
	return uint64(t.Nano())
}

// stop ends the goroutines and waits for them so long at most: what they ask the driver cannot be interrupted. It tells
// whether they have ended.
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

// ask wants a GPU to be identified.
func (w *gpuWatch) ask(q gpuQuestion) bool {
	if w.stopped {
		return false
	}
	select {
	case w.asked <- q:
		return true
	default:
		return false // there are not so many GPUs
	}
}

// run answers questions and reads sensors until there are no more questions to come.
func (w *gpuWatch) run() {
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
				done := w.calls()
				library, err = w.open()
				done()
				if err != nil {
					w.problem("GPUs are not looked at: %v", err)
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
			done := w.calls()
			for i := range devices {
				devices[i].fast = w.read(devices[i].index, devices[i].fast)
			}
			done()
		}
	}
}

// watch identifies a GPU; ok is false if there is nothing to read of it.
func (w *gpuWatch) watch(library gpu.Library, q gpuQuestion) (dev watched, ok bool) {
	defer w.calls()()
	d, err := w.identify(library, q)
	if err != nil {
		w.problem("GPU %d is not looked at: %v", q.index, err)
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
		w.problem("GPU %d has no sensor that can be read", q.index)
		return dev, false
	}
	return dev, true
}

// readSlowly reads the sensors of a device that take long, beside the others.
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

// read reads the sensors of a device and returns those that are worth reading again.
func (w *gpuWatch) read(index int, sensors []gpu.Sensor) []gpu.Sensor {
	kept := sensors[:0]
	for _, s := range sensors {
		value, known, err := s.Read()
		t := w.line()
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

// lose notes, once, that a GPU is gone.
func (w *gpuWatch) lose(index int, err error) {
	w.mu.Lock()
	known := w.lost[index]
	w.lost[index] = true
	w.mu.Unlock()
	if !known {
		w.problem("GPU %d is not read any more: %v", index, err)
	}
}

// gpuNews is what a gpuWatch has found since it was asked last, and its counts.
type gpuNews struct {
	found            []gpuAnswer
	samples          []gpuSample
	problems         []string
	failures, losses uint64
}

func (w *gpuWatch) take() gpuNews {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.reported && !w.since.IsZero() && time.Since(w.since) > gpuSilence {
		w.reported = true
		w.problems = append(w.problems, fmt.Sprintf("the driver has not answered for %v", gpuSilence))
	}
	n := gpuNews{w.found, w.samples, w.problems, w.failures, w.losses}
	w.found, w.samples, w.problems = nil, nil, nil
	return n
}

// takeGPUs asks about GPUs that are new, and hands on what was found about others.
func (c *live) takeGPUs() {
	w := c.gpus
	if w == nil || c.failed == nil && !c.writes() {
		return // later
	}
	for ; c.gpusAsked < c.model.GPUs(); c.gpusAsked++ {
		g := c.process.GPUs[c.gpusAsked]
		if g.UUID == "" && g.PCI == "" && g.Device < 0 {
			continue // nothing to look for
		}
		if !w.ask(gpuQuestion{c.gpusAsked, gpu.Wanted{UUID: g.UUID, PCI: g.PCI, Ordinal: g.Device}}) {
			break
		}
	}
	news := w.take()
	c.sensorFailures, c.sensorLosses = news.failures, news.losses
	for _, p := range news.problems {
		c.say("%s", p)
		if w.period > 0 {
			c.sensorProblem(p)
		}
	}
	for _, a := range news.found {
		c.model.Identify(a.index, a.identity.UUID, a.identity.PCI, factsOf(&a.identity))
	}
	for i := range news.samples {
		s := &news.samples[i]
		if !c.writes() || c.capped != "" {
			return
		}
		c.sampled++
		c.fail(c.model.Sample(s.gpu, &gpuQuantities[s.quantity], s.time, s.value))
	}
}

// endWatches takes what has been found until the end.
func (c *live) endWatches() {
	c.service.stop()
	c.takeGPUs()
	ended := c.gpus.stop(gpuPatience)
	c.takeGPUs()
	if !ended && c.gpus.period > 0 {
		c.sensorProblem("the driver had not answered when the process ended")
	}
}

// factsOf is what goes into a shard of an identity.
func factsOf(id *gpu.Identity) *experiment.GPUFacts {
	f := &experiment.GPUFacts{
		Index: id.Index, Name: id.Name, Memory: id.Memory, Driver: id.Driver,
		PCIeGeneration: id.PCIeGeneration, PCIeWidth: id.PCIeWidth, MIGMode: id.MIGMode, Guess: id.Guess,
	}
	for _, l := range id.NVLinks {
		f.NVLinks = append(f.NVLinks, experiment.NVLink(l))
	}
	if id.MIG != nil {
		m := experiment.MIG(*id.MIG)
		f.MIG = &m
	}
	return f
}

// gpuQuantities are package gpu's as members of metrics.
var gpuQuantities = func() (members [len(gpu.Quantities)]experiment.MetricMember) {
	for i, q := range gpu.Quantities {
		m := experiment.MetricMember{
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
