// SPDX-License-Identifier: Apache-2.0

package rawfile

import (
	"reflect"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/replay/descriptor"
	"github.com/nccl-otf2/nccl-otf2/plugin/api"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// copied is a member of a descriptor, with its place in package replay and in records.
type copied struct {
	member *api.Member
	from   int             // field of the descriptor
	to     int             // field of shm.Record; −1: a flag
	flag   shm.RecordFlags // set if the member is not 0
}

// members has the copied members of each event type, derived from the tables of the three packages.
var members = func() (all [shm.TypeCount][]copied) {
	record := reflect.TypeFor[shm.Record]()
	for t := range all {
		descr := reflect.TypeOf(descriptor.New(descriptor.Type(t)))
		for i := range api.Events[t].Members {
			m := &api.Events[t].Members[i]
			from, known := fieldNamed(descr, m.Name)
			flag := shm.FlagsByName[m.Flag]
			to, recorded := record.FieldByName(m.Go)
			switch {
			case !known || m.Kind == api.Handle: // handles are assigned anew
			case flag != 0:
				all[t] = append(all[t], copied{m, from, -1, flag})
			case recorded:
				all[t] = append(all[t], copied{m, from, to.Index[0], 0})
			}
		}
	}
	return all
}()

// fieldNamed returns the index of the descriptor's field for a member of that name.
func fieldNamed(descr reflect.Type, name string) (int, bool) {
	for i := range descr.NumField() {
		if json, _, _ := strings.Cut(descr.Field(i).Tag.Get("json"), ","); name != "" && json == name {
			return i, true
		}
	}
	return 0, false
}

// converter makes records from the calls of one process.
type converter struct {
	*numbering
	p       *replay.Process
	version int // of the plugin interface
}

// record returns the record that the plugin writes for a call. ok is false for calls that are not recorded: stops and
// states of NULL, of another process's events, and of types unknown to the plugin.
func (c *converter) record(call *replay.Call) (r shm.Record, ok bool) {
	r.Ticks = call.T
	switch call.Kind {
	case replay.CallInit, replay.CallFinalize:
		if call.Context == nil {
			return r, false
		}
		r.Kind, r.Aux = shm.RecordInit, uint32(c.entry(call.Context))
		if call.Kind == replay.CallFinalize {
			r.Kind = shm.RecordFinalize
		}
		return r, true
	}
	e := call.Event
	if e == nil || int(e.Type) >= shm.TypeCount {
		return r, false
	}
	r.Handle, r.Type = c.event(c.p, e), shm.EventType(e.Type)
	switch call.Kind {
	case replay.CallStop:
		r.Kind = shm.RecordStop
	case replay.CallState:
		c.state(&r, call)
	default:
		c.start(&r, e)
	}
	return r, true
}

// state fills in a state and its argument.
func (c *converter) state(r *shm.Record, call *replay.Call) {
	r.Kind, r.Aux = shm.RecordState, uint32(call.State)
	a := call.Args
	if a == nil {
		return
	}
	setArg := func(v uint64) { r.Arg, r.Flags = v, shm.FlagHasArg }
	switch argument := api.StateArgument(r.Aux); {
	case argument == api.GPUTimer && a.PTimer != nil:
		setArg(*a.PTimer)
	case argument == api.NetArg && a.Data != nil:
		setArg(uint64(*a.Data))
	case argument == api.AppendedOps && a.AppendedProxyOps != nil:
		setArg(uint64(uint32(*a.AppendedProxyOps)))
	case argument == api.OpProgress && a.TransSize != nil:
		setArg(*a.TransSize)
		if a.Steps != nil {
			r.Steps = int32(*a.Steps)
		}
	case argument == api.TransSize && a.TransSize != nil:
		setArg(*a.TransSize)
	}
}

// start fills in a start and its descriptor.
func (c *converter) start(r *shm.Record, e *replay.Event) {
	r.Kind, r.Aux, r.Rank = shm.RecordStart, shm.None, int32(e.Rank)
	r.Context = c.from(e.ForeignContext, e.ContextPointer)
	if e.Context != nil {
		r.Aux, r.Context = uint32(c.entry(e.Context)), c.context(c.p, e.Context)
	}
	r.Arg = c.from(e.ForeignParent, e.ParentObj)
	if e.Parent != nil {
		r.Arg = c.event(c.p, e.Parent)
	}
	r.Root = -1 // for descriptors without one
	from, to := reflect.ValueOf(e.Descr).Elem(), reflect.ValueOf(r).Elem()
	for _, m := range members[e.Type] {
		v := from.Field(m.from)
		switch {
		case m.to < 0:
			if !v.IsZero() {
				r.Flags |= m.flag
			}
		case m.member.Trusted <= c.version:
			assign(to.Field(m.to), v)
		}
	}
	if api.Events[e.Type].Unsure >= c.version {
		r.Flags |= shm.FlagUnknownChannels
	}
	switch d := e.Descr.(type) {
	case *descriptor.Coll, *descriptor.P2p:
		r.ParentGroup = c.event(c.p, e.Group)
		if c.version < 5 {
			r.ParentGroup = r.Arg
		}
	case *descriptor.NetPlugin:
		network(r, d)
	}
}

// assign copies a member. Its number types may differ between both sides.
func assign(to, from reflect.Value) {
	switch {
	case from.Kind() == reflect.String:
		to.SetString(from.String())
	case to.CanUint() && from.CanUint():
		to.SetUint(from.Uint())
	case to.CanUint():
		to.SetUint(uint64(from.Int()))
	case from.CanUint():
		to.SetInt(int64(from.Uint()))
	default:
		to.SetInt(from.Int())
	}
}

// socketSend is the op of a socket that sends.
const socketSend = 0

// network fills in the contents of the network plugin's own descriptor, if its kind is known.
func network(r *shm.Record, d *descriptor.NetPlugin) {
	switch {
	case d.Sock != nil && d.Sock.Type == 1:
		r.Length, r.DeviceOrFD, r.Opcode = d.Sock.Length, int32(d.Sock.FD), int32(d.Sock.Op)
		r.Flags |= shm.FlagKnownNet
		if d.Sock.Op == socketSend {
			r.Flags |= shm.FlagSend
		}
	case d.IB != nil && d.IB.Type == 1:
		r.Length, r.WrID, r.DeviceOrFD = d.IB.Length, d.IB.WrID, int32(d.IB.Device)
		r.Opcode, r.QP = int32(d.IB.Opcode), int32(d.IB.QPNum)
		r.Flags |= shm.FlagKnownNet
	}
}
