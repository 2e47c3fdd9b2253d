// SPDX-License-Identifier: Apache-2.0

package export

import (
	"cmp"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/matrix"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

type flowPoint struct {
	row  *row
	time otf2.Timestamp
}

// flow draws a line through slices, in the order of their times.
func (c *chromeWriter) flow(name, category string, points []flowPoint) {
	c.flows++
	for i, p := range points {
		phase := "t"
		switch i {
		case 0:
			phase = "s"
		case len(points) - 1:
			phase = "f"
		}
		c.event(phase, name, category, p.row, p.time)
		c.id(c.flows)
		if phase != "s" {
			c.out.text("bp", "e")
		}
		c.close()
	}
	c.count(category + " lines")
}

// matches draws waits, and lines through the parts of each collective, in the order in which they began, and from the
// sender to the receiver of each message.
func (c *chromeWriter) matches() {
	var points []flowPoint
	c.problems(operations.EachMatch(c.archive, &operations.Matches{
		Selection: c.opts.Selection,
		Wait:      c.wait,
		Collective: func(parts []operations.Part) {
			points = points[:0]
			for i := range parts {
				if !c.opts.Selection.At(parts[i].Location, parts[i].Begin) {
					continue
				}
				points = append(points, flowPoint{c.rows.of[parts[i].Location], parts[i].Begin})
			}
			if len(points) < 2 {
				return
			}
			slices.SortFunc(points, func(a, b flowPoint) int {
				return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.row.location, b.row.location))
			})
			c.flow(parts[0].Function, "collective", points)
		},
		Message: func(send, recv *operations.End) {
			if !c.opts.Selection.At(send.Location, send.Begin) || !c.opts.Selection.At(recv.Location, recv.Begin) {
				return
			}
			if recv.End < send.Begin {
				c.leaveOut("lines of messages that arrived before they were sent")
				return
			}
			c.flow("message", "message", []flowPoint{{c.rows.of[send.Location], send.Begin},
				{c.rows.of[recv.Location], max(send.Begin, recv.Begin)}})
		},
	}))
}

// transfers draws lines from where a transfer was handed to the network to the receiver's row when it was known to be
// sent. A line needs a region at both ends.
func (c *chromeWriter) transfers() {
	lines := matrix.NewTransferReader(c.archive)
	selection := &otf2.Selection{Locations: lines.Locations(), Kinds: facts.NetworkKinds}
	if len(selection.Locations) == 0 {
		return
	}
	for ev, err := range c.archive.Events(selection) {
		if err != nil {
			c.problems([]string{err.Error()})
			continue
		}
		t := lines.Event(ev)
		if t == nil || !t.Ended || !c.opts.Selection.At(t.Location, t.Begin) {
			continue
		}
		if t.Target == otf2.UndefinedLocation || !lines.Inside(t.Target) || !t.Inside {
			c.leaveOut("lines of transfers to rows that show nothing at the time")
			continue
		}
		c.flow("transfer", "transfer", []flowPoint{{c.rows.of[t.Location], t.Begin}, {c.rows.of[t.Target], t.End}})
	}
}

// origin is where an event that may be a parent stands.
type origin struct {
	row  *row
	time otf2.Timestamp
}

// recent remembers the latest origins by event, at least maxOrigins of them.
type recent struct{ young, old map[uint64]origin }

const maxOrigins = 1 << 18

func (r *recent) put(id uint64, o origin) {
	if r.young == nil || len(r.young) >= maxOrigins {
		r.young, r.old = make(map[uint64]origin), r.young
	}
	if _, again := r.young[id]; !again { // a region that tells more of an event later stays where it began
		r.young[id] = o
	}
}

func (r *recent) get(id uint64) (origin, bool) {
	if o, ok := r.young[id]; ok {
		return o, true
	}
	o, ok := r.old[id]
	return o, ok
}
