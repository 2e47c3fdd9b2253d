// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"ncclotf2/gpu"
	"ncclotf2/otf2"
	"ncclotf2/regions"
	"ncclotf2/shard"
)

const (
	// gpuPatience is how long the end of a job waits for a driver that has not answered yet.
	gpuPatience = 500 * time.Millisecond
	// slowPeriod is the least time between readings of sensors that take 20 ms each.
	slowPeriod = time.Second
	// maxSamples bounds what waits to be written: 12 quantities of 8 GPUs every 10 ms, for 6 s.
	maxSamples = 65536
	// maxGPUs bounds the questions that wait for the driver.
	maxGPUs = 256
)

// gpuWatch finds out about the GPUs that communicators use, and reads their sensors, in goroutines of its own: a call of
// the driver may take long. What it has found the collector takes when it gets round to it.
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
	notes    []string // of use to somebody who looks for a GPU
}

// gpuQuestion is a GPU of the process, by its index in shard.Process.GPUs.
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

// watchGPUs begins; nil if there is nothing to look for. A collector that takes over from a dead one leaves the driver
// alone: that may be what the other died of.
func (c *live) watchGPUs(open func() (gpu.Library, error)) *gpuWatch {
	if c.script != nil || c.again || regions.PlatformOf(c.process.Library) != regions.CUDA {
		return nil
	}
	anchor := c.line.anchor
	w := &gpuWatch{
		open: open, period: c.settings.NVML, pid: c.process.PID,
		line:  func() uint64 { return anchor.Real + (monotonicRaw() - anchor.Raw) },
		asked: make(chan gpuQuestion, maxGPUs), quit: make(chan struct{}), ended: make(chan struct{}),
	}
	if c.line.host || c.chosen.event == 0 {
		w.period = 0 // sensors have no times on a program's own clock; or this process is not to be recorded
	}
	go w.run()
	return w
}

// say is taken up by the collector, see takeGPUs.
func (w *gpuWatch) say(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notes = append(w.notes, fmt.Sprintf(format, args...))
}

func monotonicRaw() uint64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC_RAW, &t); err != nil {
		return 0
	}
	return uint64(t.Nano())
}

// stop ends the goroutines and waits for them so long at most: what they ask the driver cannot be interrupted.
func (w *gpuWatch) stop(patience time.Duration) {
	if w == nil {
		return
	}
	if !w.stopped {
		w.stopped = true
		close(w.asked)
	}
	if patience > 0 {
		select {
		case <-w.ended:
		case <-time.After(patience):
		}
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
				if library, err = w.open(); err != nil {
					w.say("GPUs are not looked at: %v", err)
					library, dead = nil, true
				}
			}
			if dead {
				continue
			}
			d, err := w.identify(library, q)
			if err != nil {
				w.say("GPU %d is not looked at: %v", q.index, err)
				continue
			}
			if w.period == 0 {
				continue
			}
			dev := watched{index: q.index}
			for _, s := range d.Sensors() {
				if s.Slow {
					dev.slow = append(dev.slow, s)
				} else {
					dev.fast = append(dev.fast, s)
				}
			}
			devices = append(devices, dev)
			if len(dev.slow) > 0 {
				readers.Go(func() { w.readSlowly(dev) })
			}
		case <-tick:
			for i := range devices {
				devices[i].fast = w.read(devices[i].index, devices[i].fast)
			}
		}
	}
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
			w.say("GPU %d: %s is not read any more: %v", index, gpu.Quantities[s.Quantity].Name, err)
			continue
		}
		kept = append(kept, s)
	}
	return kept
}

// gpuNews is what a gpuWatch has found since it was asked last, and its counts.
type gpuNews struct {
	found            []gpuAnswer
	samples          []gpuSample
	notes            []string
	failures, losses uint64
}

func (w *gpuWatch) take() gpuNews {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := gpuNews{w.found, w.samples, w.notes, w.failures, w.losses}
	w.found, w.samples, w.notes = nil, nil, nil
	return n
}

// takeGPUs asks about GPUs that are new, and hands on what was found about others.
func (c *live) takeGPUs() {
	w := c.gpus
	if w == nil {
		return
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
	for _, note := range news.notes {
		c.say("%s", note)
	}
	for _, a := range news.found {
		c.model.Identify(a.index, a.identity.UUID, a.identity.PCI, factsOf(&a.identity))
	}
	for i := range news.samples {
		s := &news.samples[i]
		if c.failed != nil || c.capped != "" {
			return
		}
		c.sampled++
		c.fail(c.model.Sample(s.gpu, &gpuQuantities[s.quantity], s.time, s.value))
		if c.failed == nil && c.definitions() != c.defined {
			c.fail(c.describe())
		}
	}
}

// factsOf is what goes into a shard of an identity.
func factsOf(id *gpu.Identity) *shard.GPUFacts {
	f := &shard.GPUFacts{
		Index: id.Index, Name: id.Name, Memory: id.Memory, Driver: id.Driver,
		PCIeGeneration: id.PCIeGeneration, PCIeWidth: id.PCIeWidth, MIGMode: id.MIGMode, Guess: id.Guess,
	}
	for _, l := range id.NVLinks {
		f.NVLinks = append(f.NVLinks, shard.NVLink(l))
	}
	if id.MIG != nil {
		m := shard.MIG(*id.MIG)
		f.MIG = &m
	}
	return f
}

// gpuQuantities are package gpu's as members of metrics.
var gpuQuantities = func() (members [len(gpu.Quantities)]shard.MetricMember) {
	for i, q := range gpu.Quantities {
		m := shard.MetricMember{
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
