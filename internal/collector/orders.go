// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/collector/control"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// listener follows the control file, through which a running job is given orders and asked questions.
type listener struct {
	control.Listener
	order    uint64 // the last one obeyed
	ask      uint64 // the last one answered
	late     int    // communicators whose window came after an operation that it concerns, in the last order
	reported bool   // the user has been told that the file cannot be read
}

// begin begins to follow the control file. If the process joins a job that has been given orders, it obeys what they
// logLine of communicators to come.
func (l *listener) begin(c *live) {
	*l = listener{Listener: control.Listen(c.experiment)}
	if !l.Changed() {
		return
	}
	o, err := control.Read(c.experiment)
	if err != nil {
		l.reportUnreadable(c, err)
		return
	}
	l.ask = o.Ask
	if o.Order > 0 && l.joins(c, o.Job) {
		l.obey(c, &control.File{Order: o.Order, New: o.New, Events: o.Events})
		if o.New != nil {
			// Those that were made while this collector started.
			for i := range c.memory.Comms() {
				c.memory.SetWindow(i, *o.New)
			}
		}
	}
	l.order = o.Order
}

// joins reports whether one of a job's shards is still being written, so that the job goes on.
func (l *listener) joins(c *live, job []string) bool {
	entries, err := experiment.List(c.experiment)
	return err == nil && slices.ContainsFunc(entries, func(e experiment.Entry) bool {
		return e.State == experiment.Writing && e.Path != c.shard.store.Path() &&
			slices.Contains(job, filepath.Base(e.Path))
	})
}

// readControl obeys an order and answers a question if the control file has a new one.
func (l *listener) readControl(c *live) {
	if !l.Changed() {
		return
	}
	o, err := control.Read(c.experiment)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		l.reportUnreadable(c, err)
		return
	}
	if o.Order != l.order {
		l.obey(c, o)
	}
	if o.Ask != l.ask {
		c.backlog.asked = time.Now()
		if o.Settle {
			l.flushComplete(c)
		}
	}
	l.ask = o.Ask
	if err := l.publishStatus(c); err != nil {
		c.logLine("status: %v", err)
	}
}

// flushComplete brings what is complete by now into the shard, for somebody who looks. If records have been put off the
// answer says that there is more, and who asks does so again.
func (l *listener) flushComplete(c *live) {
	if c.life.ended || c.memory.Stored() || !c.writes() {
		return
	}
	c.memory.TakeLive()
	if !c.drain.line.host {
		if err := c.awaitWindow(shm.ReadClock(shm.ClockMonotonic).Raw); err != nil {
			c.logLine("%v", err)
			return
		}
	}
	c.settleModel()
	c.flush()
}

// reportUnreadable tells the user once that orders are ignored.
func (l *listener) reportUnreadable(c *live, err error) {
	if !l.reported {
		l.reported = true
		c.memory.Post("orders are ignored: " + err.Error())
	}
	c.logLine("control: %v", err)
}

// obey does what an order says.
func (l *listener) obey(c *live, o *control.File) {
	chosen := &c.plugin.chosen
	l.order, l.late = o.Order, 0
	if o.New != nil || len(o.Windows) > 0 {
		if o.New != nil {
			c.memory.SetFirstWindow(*o.New)
		}
		for i := range c.memory.Comms() {
			comm, ok := c.memory.Comm(i)
			if !ok || comm.FinalTicks != 0 {
				continue
			}
			for _, w := range o.Windows {
				if !w.Means(c.shard.process.UUID, i, &comm) {
					continue
				}
				to := shm.Window{First: w.First, Last: w.Last}
				from := control.Everything
				if chosen.record&shm.RecordInWindow != 0 {
					from = comm.Window
				}
				c.memory.SetWindow(i, to)
				at, differ := control.FirstDifference(from, to)
				now, _ := c.memory.Comm(i)
				if differ && at < control.Ordinal(now.Collectives, now.Messages, now.Replayed) {
					l.late++
				}
			}
		}
		chosen.record |= shm.RecordInWindow
	}
	if o.Events != nil {
		types := *o.Events & chosen.event
		if was := c.plugin.recorded(); types != was {
			chosen.record = chosen.record&^allTypes | types
			c.shard.markers = append(c.shard.markers, description.Marker{
				Time: c.drain.line.time(c.now.Ticks), Severity: regions.SeverityLow, Category: categoryChanged,
				Location: -1, Text: fmt.Sprintf("from here on %s are recorded, before %s",
					cmp.Or(c.plugin.eventList(types), "no events"), cmp.Or(c.plugin.eventList(was), "no events")),
			})
		}
	}
	c.plugin.set()
	c.logLine("order %d obeyed, %d communicators late", o.Order, l.late)
}

// publishStatus writes the state of the recording, as of now, where `ctl` finds it.
func (l *listener) publishStatus(c *live) error {
	h, p, chosen := c.memory.Header(), c.shard.process, &c.plugin.chosen
	free, total := c.memory.FreeChunks()
	waiting := c.backlog.bytesWaiting()
	if c.life.ended { // who waits then waits for what has not been taken
		waiting = c.memory.StoredBytes()
	}
	s := &control.Status{
		Shard: p.UUID, Host: p.Host, PID: p.PID, Rank: p.Launcher.Rank,
		Time: time.Now(), Ask: l.ask, Order: l.order, Late: l.late,
		Poll: l.Interval,
		Mode: "trace", Asked: control.EventNames(chosen.event), Recorded: control.EventNames(chosen.record),
		Records: c.drain.records, Lost: make(map[string]uint64),
		MemoryUsed: uint64(total-free) * shm.ChunkSize, MemoryTotal: uint64(total) * shm.ChunkSize,
		Backlog: waiting, DiskUsed: c.onDisk(), DiskLimit: c.diskCap.most, Comms: []control.CommStatus{},
	}
	if c.settings.Record {
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
		if n := c.losses.unwritten[t]; n > 0 {
			s.Lost[shm.LossDisk.String()] += n
		}
	}
	for i := range c.memory.Comms() {
		comm, ok := c.memory.Comm(i)
		if !ok || comm.FinalTicks != 0 {
			continue
		}
		if chosen.record&shm.RecordInWindow == 0 {
			comm.Window = control.Everything
		}
		s.Comms = append(s.Comms, control.CommStatus{
			Index: i, ID: comm.ID, Name: comm.Name, NRanks: comm.NRanks, Rank: comm.Rank,
			Collectives: comm.Collectives, Messages: comm.Messages, Replayed: comm.Replayed,
			First: comm.Window.First, Last: comm.Window.Last,
		})
	}
	return s.Write(c.shard.store.Path())
}
