// SPDX-License-Identifier: Apache-2.0

package rawfile

import (
	"fmt"

	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/replay/descriptor"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// numbering assigns tags to the processes of a recording, and the plugin's handles and contexts to their events and
// communicators.
type numbering struct {
	own       bool // the recording is the plugin's own, and has all of them
	tags      []uint64
	published map[int]uint64 // by the numbers under which processes publish handles and contexts
}

// mostTags excludes the last tag, which package export uses for ids; 0 is excluded because addresses have it.
const mostTags = 0xfffe

func newNumbering(rec *replay.Recording) (*numbering, error) {
	n := &numbering{own: true, published: make(map[int]uint64)}
	for _, p := range rec.Processes {
		tag, own := ownTag(p)
		n.own = n.own && own
		n.tags = append(n.tags, tag)
	}
	if !n.own {
		if len(rec.Processes) > mostTags {
			return nil, fmt.Errorf("recording %s: %d processes of at most %d", rec.Name, len(rec.Processes), mostTags)
		}
		for k := range n.tags {
			n.tags[k] = uint64(k) + 1
		}
	}
	for _, p := range rec.Processes {
		for _, x := range p.Contexts {
			if x.Publish != nil {
				n.published[*x.Publish] = n.context(p, x)
			}
		}
		for _, e := range p.Events {
			if e.Publish != nil {
				n.published[*e.Publish] = n.event(p, e)
			}
		}
	}
	return n, nil
}

// ownTag returns the tag in the plugin's contexts and handles; own is false unless all of a process's have the same
// one.
func ownTag(p *replay.Process) (tag uint64, own bool) {
	if len(p.Contexts) == 0 || len(p.Opens) != 1 {
		return 0, false
	}
	tag = uint64(p.Contexts[0].Pointer) >> shm.TagShift
	for _, x := range p.Contexts {
		if x.ID < 1 || x.ID > shm.CommMax || uint64(x.Pointer) != contextValue(tag, x.ID-1) {
			return 0, false
		}
	}
	for _, e := range p.Events {
		if uint64(e.Handle)>>shm.TagShift != tag || shm.TypeOf(uint64(e.Handle)) != shm.EventType(e.Type) {
			return 0, false
		}
	}
	return tag, tag != 0
}

func contextValue(tag uint64, entry int) uint64 {
	return tag<<shm.TagShift | shm.TypeMask<<shm.TypeShift | shm.ContextBit | uint64(entry)
}

// entry returns the number of a communicator's entry.
func (n *numbering) entry(x *replay.Context) int {
	if n.own {
		return x.ID - 1
	}
	return x.Index - 1
}

func (n *numbering) context(p *replay.Process, x *replay.Context) uint64 {
	return contextValue(n.tags[p.Index], n.entry(x))
}

// event returns the handle of an event, 0 for nil.
func (n *numbering) event(p *replay.Process, e *replay.Event) uint64 {
	switch {
	case e == nil:
		return 0
	case n.own:
		return uint64(e.Handle)
	}
	handle := n.tags[p.Index]<<shm.TagShift | uint64(e.Type)<<shm.TypeShift | uint64(e.Index)
	if captured(e) {
		handle |= shm.CapturedBit
	}
	return handle
}

// captured reports whether the event is a call that a graph captured.
func captured(e *replay.Event) bool {
	switch d := e.Descr.(type) {
	case *descriptor.GroupApi:
		return bool(d.GraphCaptured)
	case *descriptor.CollApi:
		return bool(d.GraphCaptured)
	case *descriptor.P2pApi:
		return bool(d.GraphCaptured)
	}
	return false
}

// from returns what another process published under a number, or the recorded value if number is nil.
func (n *numbering) from(number *int, recorded descriptor.Pointer) uint64 {
	if number == nil {
		return uint64(recorded)
	}
	return n.published[*number]
}
