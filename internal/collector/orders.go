// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/nccl-otf2/nccl-otf2/config"
	"github.com/nccl-otf2/nccl-otf2/internal/collector/control"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// listener is what a collector has made of the control file.
type listener struct {
	control.Listener
	order    uint64 // the last one obeyed
	ask      uint64 // the last one answered
	late     int    // communicators whose window came after an operation that it is about, in the last order
	reported bool   // that the file was refused
}

// listen begins to follow the control file. If the process joins a job that has been given orders, those about
// communicators to come are obeyed.
func (c *live) listen() {
	c.listener = listener{Listener: control.Listen(c.experiment)}
	if !c.listener.Changed() {
		return
	}
	o, err := control.Read(c.experiment)
	if err != nil {
		c.refuseControl(err)
		return
	}
	c.listener.ask = o.Ask
	if o.Order > 0 && c.joins(o.Job) {
		c.obey(&control.File{Order: o.Order, New: o.New, Events: o.Events})
		if o.New != nil {
			// Those that were made while this collector started.
			for i := range c.memory.Comms() {
				c.memory.SetWindow(i, *o.New)
			}
		}
	}
	c.listener.order = o.Order
}

// joins reports whether one of the shards is still being written: the job that they are of goes on.
func (c *live) joins(job []string) bool {
	entries, err := experiment.List(c.experiment)
	return err == nil && slices.ContainsFunc(entries, func(e experiment.Entry) bool {
		return e.State == experiment.Writing && e.Path != c.store.Path() && slices.Contains(job, filepath.Base(e.Path))
	})
}

// heed looks for an order or a question and answers it.
func (c *live) heed() {
	if !c.listener.Changed() {
		return
	}
	o, err := control.Read(c.experiment)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		c.refuseControl(err)
		return
	}
	if o.Order != c.listener.order {
		c.obey(o)
	}
	if o.Ask != c.listener.ask {
		c.backlog.asked = time.Now()
		if o.Settle {
			c.showAll()
		}
	}
	c.listener.ask = o.Ask
	if err := c.publish(); err != nil {
		c.say("status: %v", err)
	}
}

// showAll brings what is complete by now into the shard, for somebody who looks. Of what has been put off the answer
// says that there is more: who asks does so again.
func (c *live) showAll() {
	if c.ended || c.memory.Stored() || !c.writes() {
		return
	}
	c.memory.TakeLive()
	if !c.line.host {
		if err := c.awaitWindow(shm.ReadClock(shm.ClockMonotonic).Raw); err != nil {
			c.say("%v", err)
			return
		}
	}
	c.settle()
	c.flush()
}

func (c *live) refuseControl(err error) {
	if !c.listener.reported {
		c.listener.reported = true
		c.memory.Post("orders are ignored: " + err.Error())
	}
	c.say("control: %v", err)
}

// obey does what an order says.
func (c *live) obey(o *control.File) {
	c.listener.order, c.listener.late = o.Order, 0
	if o.New != nil || len(o.Windows) > 0 {
		if o.New != nil {
			c.memory.SetFirstWindow(*o.New)
			c.chosen.window = *o.New
		}
		for i := range c.memory.Comms() {
			comm, ok := c.memory.Comm(i)
			if !ok || comm.FinalTicks != 0 {
				continue
			}
			for _, w := range o.Windows {
				if !w.Means(c.process.UUID, i, &comm) {
					continue
				}
				to := shm.Window{First: w.First, Last: w.Last}
				from := control.Everything
				if c.chosen.record&shm.RecordInWindow != 0 {
					from = comm.Window
				}
				c.memory.SetWindow(i, to)
				if at, differ := control.FirstDifference(from, to); differ && at < c.called(i) {
					c.listener.late++
				}
			}
		}
		c.chosen.record |= shm.RecordInWindow
	}
	if o.Events != nil {
		types := *o.Events & c.chosen.event
		if was := c.chosen.record & allTypes; types != was {
			c.chosen.record = c.chosen.record&^allTypes | types
			c.markers = append(c.markers, experiment.Marker{
				Time: c.line.time(c.now.Ticks), Category: categoryChanged, Location: -1, Severity: regions.SeverityLow,
				Text: fmt.Sprintf("from here on %s are recorded, before %s", orNothing(c.eventList(types)),
					orNothing(c.eventList(was))),
			})
		}
	}
	c.memory.SetMasks(c.chosen.event, c.chosen.record)
	c.say("order %d obeyed, %d communicators late", o.Order, c.listener.late)
}

// eventList names types that are recorded, as EVENTS would have them.
func (c *live) eventList(types uint32) string {
	if types == 0 {
		return ""
	}
	return config.EventList(types | c.chosen.record&shm.RecordNetSums)
}

func orNothing(events string) string {
	if events == "" {
		return "no events"
	}
	return events
}

// called is the ordinal of the next operation of a communicator rank.
func (c *live) called(i int) uint64 {
	comm, ok := c.memory.Comm(i)
	if !ok {
		return 0
	}
	return control.Ordinal(comm.Collectives, comm.Messages, comm.Replayed)
}

// status describes the recording as of now.
func (c *live) status() *control.Status {
	h := c.memory.Header()
	free, total := c.memory.FreeChunks()
	s := &control.Status{
		Shard: c.process.UUID, Host: c.process.Host, PID: c.process.PID, Rank: c.process.Launcher.Rank,
		Time: time.Now(), Ask: c.listener.ask, Order: c.listener.order, Late: c.listener.late,
		Poll: c.listener.Interval,
		Mode: "trace", Asked: control.EventNames(c.chosen.event), Recorded: control.EventNames(c.chosen.record),
		Records: c.records, Lost: make(map[string]uint64),
		MemoryUsed: uint64(total-free) * shm.ChunkSize, MemoryTotal: uint64(total) * shm.ChunkSize,
		Backlog: c.left(), DiskUsed: c.onDisk(), DiskLimit: c.cap, Comms: []control.CommStatus{},
	}
	if c.script != nil {
		s.Mode = "record"
	}
	s.Stopped = c.stopped()
	for t := range shm.TypeCount {
		s.Paused += h.Paused[t]
		for reason := range h.Lost {
			if n := h.Lost[reason][t]; n > 0 {
				s.Lost[shm.LossReason(reason).String()] += n
			}
		}
		if n := c.lost[t]; n > 0 {
			s.Lost[shm.LossDisk.String()] += n
		}
	}
	for i := range c.memory.Comms() {
		comm, ok := c.memory.Comm(i)
		if !ok || comm.FinalTicks != 0 {
			continue
		}
		if c.chosen.record&shm.RecordInWindow == 0 {
			comm.Window = control.Everything
		}
		s.Comms = append(s.Comms, control.CommStatus{
			Index: i, ID: comm.ID, Name: comm.Name, NRanks: comm.NRanks, Rank: comm.Rank,
			Collectives: comm.Collectives, Messages: comm.Messages, Replayed: comm.Replayed,
			First: comm.Window.First, Last: comm.Window.Last,
		})
	}
	return s
}

// publish writes the status where `ctl` finds it.
func (c *live) publish() error { return c.status().Write(c.store.Path()) }
