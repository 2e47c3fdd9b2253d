// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"cmp"
	"net"
	"sync"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/collector/timeservice"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/provenance"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

const (
	// servicePeriod is the time between readings, at first. When there are many, every second one is dropped and the
	// period is doubled.
	servicePeriod      = time.Second
	maxServiceReadings = 256
	// servicePatience is how long a time service, which is on the same machine, may take for its answer.
	servicePatience = 200 * time.Millisecond
	// After serviceFailures in a row it is asked no more: there is no service, or none that knows.
	serviceFailures = 3
)

// timeWatch asks the machine's time service now and then, in a goroutine of its own. By its answers the clocks of hosts
// are brought together.
type timeWatch struct {
	anchor   shm.ClockTuple // of the process's time line
	patience time.Duration
	quit     chan struct{}
	ended    chan struct{}

	mu       sync.Mutex
	readings []provenance.ClockReading
}

// dialChrony is how chronyd is asked unless the options say something else.
func dialChrony() (net.Conn, error) { return net.Dial("udp", timeservice.Chrony) }

// newTimeWatch begins; nil if readings would be of no use.
func newTimeWatch(c *live, dial func() (net.Conn, error), patience time.Duration) *timeWatch {
	if !c.settings.TimeService || c.settings.Record || c.settings.Profile || c.drain.line.host {
		return nil
	}
	if dial == nil {
		dial = dialChrony
	}
	w := &timeWatch{anchor: c.drain.line.anchor, patience: cmp.Or(patience, servicePatience),
		quit: make(chan struct{}), ended: make(chan struct{})}
	go w.run(dial)
	return w
}

// readClocks is the time on the process's line and the real time at one moment. They may be off by bound, in ns.
func (w *timeWatch) readClocks() (line, real, bound uint64) {
	before := monotonicRaw()
	real = uint64(time.Now().UnixNano())
	after := monotonicRaw()
	return w.anchor.Real + (before + (after-before)/2 - w.anchor.Raw), real, (after - before + 1) / 2
}

// run reads until it is told to end, and then once more.
func (w *timeWatch) run(dial func() (net.Conn, error)) {
	defer close(w.ended)
	conn, err := dial()
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
		if w.thinReadings() {
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
	at, real, bound := w.readClocks()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.readings = append(w.readings, provenance.ClockReading{
		Source: "chrony", Time: at, Reference: real - uint64(answer.Ahead), Bound: uint64(answer.Bound) + bound,
	})
	return true
}

// thinReadings drops every second reading if there are too many.
func (w *timeWatch) thinReadings() bool {
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
func (w *timeWatch) taken() []provenance.ClockReading {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]provenance.ClockReading(nil), w.readings...)
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
