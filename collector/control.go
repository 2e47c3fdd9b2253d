// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/config"
	"github.com/nccl-otf2/nccl-otf2/experiment"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// Orders to running collectors are a file in the experiment directory, replaced as a whole; answers are
// files in the shards. So it works wherever the directory can be seen, and needs no sockets.
const (
	controlFile    = "control"
	statusFile     = "status.json"
	controlVersion = 1
	controlMost    = 16 << 20 // bytes
)

// control is the content of the control file.
type control struct {
	Version int      `json:"version"`
	Job     []string `json:"job"`   // the shards of the job that it is for
	Ask     uint64   `json:"ask"`   // raised with each request for a status
	Order   uint64   `json:"order"` // raised with each order; 0: there has been none

	// The last order.
	Windows []commWindow `json:"windows,omitempty"`
	New     *shm.Window  `json:"new,omitempty"`    // of communicators to come
	Events  *uint32      `json:"events,omitempty"` // types to be recorded, of those NCCL was asked for
}

// commWindow is the window of a communicator on all its members; where NCCL did not tell its identity, of one
// communicator rank.
type commWindow struct {
	ID     uint64 `json:"id,string"`
	NRanks int    `json:"nranks"`
	Shard  string `json:"shard,omitempty"` // with Index: only this one
	Index  int    `json:"index,omitempty"`
	First  uint64 `json:"first,string"`
	Last   uint64 `json:"last,string"`
}

// readControl reads the control file of an experiment directory. A file that others than this user could have
// written is refused.
func readControl(directory string) (*control, error) {
	path := filepath.Join(directory, controlFile)
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		if errors.Is(err, unix.ELOOP) {
			err = errors.New("it is a symbolic link")
		}
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	file := os.NewFile(uintptr(fd), path)
	defer file.Close()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return nil, fmt.Errorf("%s: it is no file", path)
	case int(st.Uid) != os.Geteuid():
		return nil, fmt.Errorf("%s: it belongs to user %d, the job to user %d", path, st.Uid, os.Geteuid())
	case st.Mode&0o022 != 0:
		return nil, fmt.Errorf("%s: others may write it (mode %#o)", path, st.Mode&0o777)
	case st.Size > controlMost:
		return nil, fmt.Errorf("%s: %d bytes", path, st.Size)
	}
	text, err := io.ReadAll(io.LimitReader(file, controlMost))
	if err != nil {
		return nil, err
	}
	c := new(control)
	if err := json.Unmarshal(text, c); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if c.Version != controlVersion {
		return nil, fmt.Errorf("%s has version %d, this program reads %d", path, c.Version, controlVersion)
	}
	return c, nil
}

// How often a collector looks for orders. Where looking is a message to a server, seldom: there may be thousands of
// collectors.
const (
	pollNear = 100 * time.Millisecond
	pollFar  = time.Second
)

// Types of file systems whose attributes are in memory (statfs(2)).
var nearFileSystems = []int64{
	0xef53,           // ext2, ext3, ext4
	unix.TMPFS_MAGIC, // tmpfs
	unix.OVERLAYFS_SUPER_MAGIC,
	unix.BTRFS_SUPER_MAGIC,
	unix.XFS_SUPER_MAGIC,
}

func pollInterval(dir string) time.Duration {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) == nil && slices.Contains(nearFileSystems, int64(st.Type)) {
		return pollNear
	}
	return pollFar
}

// listener follows the control file for one collector.
type listener struct {
	path     string
	interval time.Duration
	next     time.Time
	seen     unix.Stat_t // of the file looked at last
	order    uint64      // the last one obeyed
	ask      uint64      // the last one answered
	late     int         // communicators whose window came after an operation that it is about, in the last order
	told     bool        // that the file was refused
}

// changed tells that the control file is another than at the last look.
func (l *listener) changed() bool {
	now := time.Now()
	if now.Before(l.next) {
		return false
	}
	l.next = now.Add(l.interval)
	var st unix.Stat_t
	if unix.Lstat(l.path, &st) != nil {
		return false
	}
	if st.Ino == l.seen.Ino && st.Mtim == l.seen.Mtim && st.Size == l.seen.Size && st.Dev == l.seen.Dev {
		return false
	}
	l.seen = st
	return true
}

// listen begins to follow the control file. If the process joins a job that has been given orders, those about
// communicators to come are obeyed.
func (c *live) listen() {
	c.listener = listener{path: filepath.Join(c.experiment, controlFile), interval: pollInterval(c.experiment)}
	if !c.listener.changed() {
		return
	}
	o, err := readControl(c.experiment)
	if err != nil {
		c.refuseControl(err)
		return
	}
	c.listener.ask = o.Ask
	if o.Order > 0 && c.joins(o.Job) {
		c.obey(&control{Order: o.Order, New: o.New, Events: o.Events})
		if o.New != nil {
			// Those that were made while this collector started.
			for i := range c.memory.Comms() {
				c.memory.SetWindow(i, *o.New)
			}
		}
	}
	c.listener.order = o.Order
}

// joins tells that one of the shards is still being written: the job that they are of goes on.
func (c *live) joins(job []string) bool {
	entries, err := experiment.List(c.experiment)
	return err == nil && slices.ContainsFunc(entries, func(e experiment.Entry) bool {
		return e.State == experiment.Writing && e.Path != c.store.Path() && slices.Contains(job, filepath.Base(e.Path))
	})
}

// heed looks for an order or a question and answers it.
func (c *live) heed() {
	if !c.listener.changed() {
		return
	}
	o, err := readControl(c.experiment)
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
	c.listener.ask = o.Ask
	if err := c.publish(); err != nil {
		c.say("status: %v", err)
	}
}

func (c *live) refuseControl(err error) {
	if !c.listener.told {
		c.listener.told = true
		c.memory.Post("orders are ignored: " + err.Error())
	}
	c.say("control: %v", err)
}

// obey does what an order says.
func (c *live) obey(o *control) {
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
				if !w.means(c.process.UUID, i, &comm) {
					continue
				}
				to := shm.Window{First: w.First, Last: w.Last}
				from := everything
				if c.chosen.record&shm.RecordInWindow != 0 {
					from = comm.Window
				}
				c.memory.SetWindow(i, to)
				if at, differ := firstDifference(from, to); differ && at < c.called(i) {
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
				Time: c.line.time(c.now.Ticks), Category: "NCCL recording changed", Location: -1, Severity: regions.SeverityLow,
				Text: fmt.Sprintf("from here on %s are recorded, before %s", orNothing(config.EventList(types)), orNothing(config.EventList(was))),
			})
		}
	}
	c.memory.SetMasks(c.chosen.event, c.chosen.record)
	c.say("order %d obeyed, %d communicators late", o.Order, c.listener.late)
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
	return ordinal(comm.Collectives, comm.Messages, comm.Replayed)
}

// ordinal is how far a communicator has come in the count that its window goes by: collectives, or messages
// where there are no others; those of replayed graphs are counted apart, and the window is for both.
func ordinal(collectives, messages, replayed uint64) uint64 {
	if collectives == 0 && replayed == 0 {
		return messages
	}
	return max(collectives, replayed)
}

func (w *commWindow) means(shard string, i int, c *shm.Comm) bool {
	if w.Shard != "" {
		return w.Shard == shard && w.Index == i
	}
	return w.ID == c.ID && w.NRanks == c.NRanks
}
