// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"cmp"
	"net"
	"sync"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/collector/timeservice"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
)

const (
	// servicePeriod is the time between readings, at first: where there are many, every second one is dropped, and it
	// is twice as long.
	servicePeriod      = time.Second
	maxServiceReadings = 256
	// servicePatience is how long a time service may take for its answer: it is on the same machine.
	servicePatience = 200 * time.Millisecond
	// serviceFailures in a row end it: there is no service, or none that knows.
	serviceFailures = 3
)

// timeWatch asks the machine's time service now and then, in a goroutine of its own, for the clocks of hosts to be
// brought together by.
type timeWatch struct {
	dial func() (net.Conn, error)
	// the process's line and the real time at one time, and what they may be apart by, ns
	line     func() (time, real, took uint64)
	patience time.Duration
	quit     chan struct{}
	ended    chan struct{}

	mu       sync.Mutex
	readings []experiment.ClockReading
}

// dialChrony is how chronyd is asked where nothing else is said.
func dialChrony() (net.Conn, error) { return net.Dial("udp", timeservice.Chrony) }

// watchTime begins; nil if readings would be of no use.
func (c *live) watchTime(dial func() (net.Conn, error), patience time.Duration) *timeWatch {
	if !c.settings.TimeService || c.script != nil || c.profile != nil || c.line.host {
		return nil
	}
	if dial == nil {
		dial = dialChrony
	}
	anchor := c.line.anchor
	w := &timeWatch{dial: dial, patience: cmp.Or(patience, servicePatience), quit: make(chan struct{}),
		ended: make(chan struct{}), line: func() (uint64, uint64, uint64) {
			before := monotonicRaw()
			real := uint64(time.Now().UnixNano())
			after := monotonicRaw()
			return anchor.Real + (before + (after-before)/2 - anchor.Raw), real, (after - before + 1) / 2
		}}
	go w.run()
	return w
}

// run reads until it is told to end, and then once more.
func (w *timeWatch) run() {
	defer close(w.ended)
	conn, err := w.dial()
	if err != nil {
		return
	}
	defer conn.Close()
	period, failures := servicePeriod, 0
	for sequence := uint32(1); ; sequence++ {
		if w.read(conn, sequence) {
			failures = 0
		} else if failures++; failures == serviceFailures || sequence == 1 {
			return
		}
		if w.thin() {
			period *= 2
		}
		select {
		case <-w.quit:
			w.read(conn, sequence+1)
			return
		case <-time.After(period):
		}
	}
}

// read takes one reading, if there is one to be had.
func (w *timeWatch) read(conn net.Conn, sequence uint32) bool {
	answer, err := timeservice.Ask(conn, sequence, w.patience)
	if err != nil {
		return false
	}
	at, real, took := w.line()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.readings = append(w.readings, experiment.ClockReading{
		Source: "chrony", Time: at, Reference: real - uint64(answer.Ahead), Bound: uint64(answer.Bound) + took,
	})
	return true
}

// thin drops every second reading if there are too many.
func (w *timeWatch) thin() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.readings) < maxServiceReadings {
		return false
	}
	for i := range w.readings[:maxServiceReadings/2] {
		w.readings[i] = w.readings[2*i]
	}
	w.readings = w.readings[:maxServiceReadings/2]
	return true
}

// taken are the readings so far.
func (w *timeWatch) taken() []experiment.ClockReading {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]experiment.ClockReading(nil), w.readings...)
}

// stop takes the last reading and ends it.
func (w *timeWatch) stop() {
	if w == nil {
		return
	}
	select {
	case <-w.quit:
	default:
		close(w.quit)
	}
	<-w.ended
}
