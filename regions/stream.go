// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"fmt"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/cupti"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions/cuda"
)

// CUDA streams on the timeline: names and attributes of what package cuda provides.

// streams are the rows of CUDA streams.
type streams struct {
	*board
	ranks   *ranks
	kernels map[string]otf2.RegionRef // by mangled name
}

// streamRow is the row of one stream.
type streamRow struct {
	streams *streams
	loc     *location
}

func (s *streams) GPUOfDevice(ordinal int) int { return s.ranks.deviceNumber(ordinal) }

func (s *streams) NewRow(id cuda.Stream, n, gpu int, further bool) cuda.Row {
	loc, err := s.newLocation(description.KindStream, otf2.LocationTypeAcceleratorStream, s.rowName(id, n, further), -1,
		-1)
	if s.keepError(err) {
		return nil
	}
	loc.GPU = gpu
	return &streamRow{s, loc}
}

// rowName returns "CUDA[0:7]" for stream 7 of device 0, "CUDA[0:7] +1" for overlapping activities, "CUDA[0:7] sync" for
// waits, "CUDA[0] sync" for waits of a whole context. Streams of further contexts of a device have the context's id
// before theirs.
func (s *streams) rowName(id cuda.Stream, n int, further bool) string {
	of := fmt.Sprintf(":%d", id.Stream)
	if id.Stream == cupti.None {
		of = ""
	}
	if further {
		of = fmt.Sprintf(":%d", id.Context) + of
	}
	name := fmt.Sprintf("%s[%d%s]", PlatformOf(s.process.Library).Name, id.Device, of)
	if id.Waits {
		name += " sync"
	}
	if n > 0 {
		name += fmt.Sprintf(" +%d", n)
	}
	return name
}

func (s *streamRow) DrawActivity(a *cuda.Activity, begin uint64) uint64 {
	s.streams.changes++
	enter := s.loc.raiseTime(begin)
	leave := max(enter, otf2.Timestamp(a.End()))
	region := s.streams.activityRegion(a)
	list := s.streams.emptyAttributes()
	activityAttributes(list, a)
	s.streams.keepError(s.loc.w.Enter(enter, list, region))
	s.streams.keepError(s.loc.w.Leave(leave, nil, region))
	return uint64(leave)
}

const (
	maxKernelNames   = 8192
	otherKernelName  = "(further kernels)"
	unnamedKernel    = "(unnamed kernel)"
	maxKernelNameLen = 200
)

// activityRegion returns the region of an activity.
func (s *streams) activityRegion(a *cuda.Activity) otf2.RegionRef {
	switch rec := a.Record.(type) {
	case *cupti.Kernel:
		return s.kernelRegion(a.Name)
	case *cupti.Copy:
		name := "memcpy"
		if kind := rec.CopyKind.String(); kind != "" {
			name += " " + kind
		}
		return s.defs.regionRef(name, GroupCUDAMemory, otf2.RegionRoleDataTransfer)
	case *cupti.Set:
		return s.defs.regionRef("memset", GroupCUDAMemory, otf2.RegionRoleFunction)
	case *cupti.Synchronization:
		return s.defs.regionRef(rec.Type.String(), GroupCUDAWaits, otf2.RegionRoleFunction)
	}
	return s.defs.regionRef(NameCUDAGraph, GroupCUDAKernels, otf2.RegionRoleFunction)
}

// kernelRegion names a kernel's region readably; the mangled name is its canonical one.
func (s *streams) kernelRegion(mangled string) otf2.RegionRef {
	ref, ok := s.kernels[mangled]
	if ok {
		return ref
	}
	switch {
	case mangled == "":
		return s.defs.regionRef(unnamedKernel, GroupCUDAKernels, otf2.RegionRoleFunction)
	case len(s.kernels) >= maxKernelNames:
		return s.defs.regionRef(otherKernelName, GroupCUDAKernels, otf2.RegionRoleFunction)
	}
	// Compilers may produce or truncate names arbitrarily; strings of archives are UTF-8.
	valid := func(s string) string { return strings.ToValidUTF8(s, "?") }
	name := cupti.FunctionName(mangled)
	name = valid(name[:min(len(name), maxKernelNameLen)])
	ref = otf2.RegionRef(len(s.process.Regions))
	s.process.Regions = append(s.process.Regions, description.Region{
		Name: name, Canonical: valid(mangled), Role: otf2.RegionRoleFunction, Paradigm: s.defs.paradigm,
		Group: GroupCUDAKernels,
	})
	s.kernels[mangled] = ref
	return ref
}

// activityAttributes add the description of an activity.
func activityAttributes(l *otf2.AttributeList, a *cuda.Activity) {
	correlation, graph, node := uint32(0), uint32(0), uint64(0)
	switch rec := a.Record.(type) {
	case *cupti.Kernel:
		correlation, graph, node = rec.Correlation, rec.Graph, rec.GraphNode
		extentAttributes(l, attrGridX, rec.Grid)
		extentAttributes(l, attrBlockX, rec.Block)
		l.Uint16(attrRegisters, rec.Registers)
		l.Uint32(attrStaticShared, rec.StaticShared)
		l.Uint32(attrDynamicShared, rec.DynamicShared)
	case *cupti.Copy:
		correlation, graph, node = rec.Correlation, rec.Graph, rec.GraphNode
		l.Uint64(AttrBytes, rec.Bytes)
	case *cupti.Set:
		correlation, graph, node = rec.Correlation, rec.Graph, rec.GraphNode
		l.Uint64(AttrBytes, rec.Bytes)
	case *cupti.Synchronization:
		correlation = rec.Correlation
	case *cupti.GraphTrace:
		correlation, graph = rec.Correlation, rec.Graph
	}
	l.Uint32(attrCorrelationID, correlation)
	if !a.Stream.Waits {
		l.Uint32(AttrDevice, a.Stream.Device)
	}
	l.Uint32(attrContext, a.Stream.Context)
	if a.Stream.Stream != cupti.None {
		l.Uint32(attrStreamID, a.Stream.Stream)
	}
	if graph != 0 {
		l.Uint32(attrGraphID, graph)
	}
	if node != 0 {
		l.Uint64(attrGraphNodeID, node)
	}
	launch, plan, operation := a.LinkedTo()
	for _, id := range []struct {
		ref    otf2.AttributeRef
		handle uint64
	}{{AttrExternalID, launch}, {AttrPlanID, plan}, {AttrParentID, operation}} {
		if id.handle != 0 {
			l.Uint64(id.ref, id.handle)
		}
	}
}

// extentAttributes adds sizes in x, y and z; y and z only if they are not 1.
func extentAttributes(l *otf2.AttributeList, x otf2.AttributeRef, size [3]uint32) {
	l.Uint32(x, size[0])
	for i := otf2.AttributeRef(1); i < 3; i++ {
		if size[i] != 1 {
			l.Uint32(x+i, size[i])
		}
	}
}
