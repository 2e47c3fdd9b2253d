// SPDX-License-Identifier: Apache-2.0

package cupti

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Kind is CUpti_ActivityKind: the first four bytes of every record.
type Kind uint32

// Kinds that Parse knows. KindKernel (kernels one at a time) and KindConcurrentKernel have the same records.
const (
	KindMemcpy           Kind = 1
	KindMemset           Kind = 2
	KindKernel           Kind = 3
	KindDriver           Kind = 4
	KindRuntime          Kind = 5
	KindConcurrentKernel Kind = 10
	KindMemcpy2          Kind = 22 // between devices
	KindSynchronization  Kind = 38
	KindExternal         Kind = 39
	KindMemory2          Kind = 49
	KindMemoryPool       Kind = 50
	KindGraphTrace       Kind = 51
)

// None is a stream or event id that does not apply.
const None = 1<<32 - 1

// Kernel is the run of a kernel on a device. Times are CUPTI's; both are 0 where none could be taken.
type Kernel struct {
	Start, End              uint64
	Device, Context, Stream uint32
	Correlation             uint32 // of the API call: the launch, or that of the whole graph
	Registers               uint16 // per thread
	Grid, Block             [3]uint32
	StaticShared            uint32 // bytes
	DynamicShared           uint32 // bytes
	Graph                   uint32 // executable graph; 0: not from a graph
	GraphNode               uint64
	SourceGraphNode         uint64 // node it was captured as; since 13.4, else 0
}

// Copy is a memory copy on a device, or between devices.
type Copy struct {
	Kind                    Kind
	Start, End              uint64
	Device, Context, Stream uint32
	Correlation             uint32
	Bytes                   uint64
	CopyKind                CopyKind
	SrcMemory, DstMemory    uint8
	Graph                   uint32
	GraphNode               uint64
}

// CopyKind is CUpti_ActivityMemcpyKind.
type CopyKind uint8

var copyKinds = [...]string{"", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP"}

// String is the direction, such as "HtoD"; "" if it is not known.
func (k CopyKind) String() string {
	if int(k) < len(copyKinds) {
		return copyKinds[k]
	}
	return ""
}

// Set is the filling of memory on a device.
type Set struct {
	Start, End              uint64
	Device, Context, Stream uint32
	Correlation             uint32
	Bytes                   uint64
	Graph                   uint32
	GraphNode               uint64
}

// API is a call of the driver or the runtime.
type API struct {
	Kind        Kind
	Callback    uint32 // CUpti_CallbackId
	Start, End  uint64
	Process     uint32
	Thread      uint32 // the system's thread id, if CUPTI was asked for it
	Correlation uint32
	Result      uint32
}

// External is the id on top of the calling thread's stack when an API call was made.
type External struct {
	ExternalKind ExternalKind
	ID           uint64
	Correlation  uint32 // of the call
}

// ExternalKind is CUpti_ExternalCorrelationKind: every client of CUPTI takes one for its ids.
type ExternalKind uint32

// ExternalCustom2 is the kind that no known client uses (Kineto takes CUSTOM0 and CUSTOM1).
const ExternalCustom2 ExternalKind = 5

// Synchronization is a wait of the host, or of a stream, for something.
type Synchronization struct {
	Type        SynchronizationType
	Start, End  uint64
	Correlation uint32
	Context     uint32
	Stream      uint32 // None if it was not for a stream
	Event       uint32
}

// SynchronizationType is CUpti_ActivitySynchronizationType.
type SynchronizationType uint32

var synchronizationTypes = [...]string{"", "Event synchronize", "Stream wait event", "Stream synchronize",
	"Context synchronize"}

// String is what waited for what; "Synchronize" if it is not known.
func (t SynchronizationType) String() string {
	if t > 0 && int(t) < len(synchronizationTypes) {
		return synchronizationTypes[t]
	}
	return "Synchronize"
}

// Memory is one allocation or release of memory (MEMORY2 records).
type Memory struct {
	Operation   MemoryOperation
	MemoryKind  MemoryKind
	Correlation uint32
	Address     uint64
	Bytes       uint64
	Time        uint64
	Process     uint32
	Device      uint32
	Context     uint32
	Stream      uint32 // None if it was not ordered by a stream
	Async       uint32 // 1: ordered by a stream
	Pool        uint64 // address of the pool it comes from; 0 if none
}

// MemoryOperation is CUpti_ActivityMemoryOperationType.
type MemoryOperation uint32

// Memory operations.
const (
	MemoryAllocate MemoryOperation = 1
	MemoryRelease  MemoryOperation = 2
)

// MemoryKind is CUpti_ActivityMemoryKind.
type MemoryKind uint32

// Memory kinds.
const (
	MemoryPageable      MemoryKind = 1
	MemoryPinned        MemoryKind = 2
	MemoryDevice        MemoryKind = 3
	MemoryArray         MemoryKind = 4
	MemoryManaged       MemoryKind = 5
	MemoryDeviceStatic  MemoryKind = 6
	MemoryManagedStatic MemoryKind = 7
)

// MemoryPool is something that was done to a pool of memory.
type MemoryPool struct {
	Operation MemoryPoolOperation
	PoolType  uint32
	Process   uint32
	Device    uint32
	Address   uint64
	Size      uint64
	Time      uint64
}

// MemoryPoolOperation is CUpti_ActivityMemoryPoolOperationType.
type MemoryPoolOperation uint32

// MemoryPoolDestroyed is the end of a pool.
const MemoryPoolDestroyed MemoryPoolOperation = 2

// GraphTrace is the run of a whole graph, where that is recorded in place of its nodes.
type GraphTrace struct {
	Start, End              uint64
	Device, Context, Stream uint32
	Correlation             uint32
	Graph                   uint32
}

// Record is one of *Kernel, *Copy, *Set, *API, *External, *Synchronization, *Memory, *MemoryPool and *GraphTrace.
type Record interface{ activity() }

func (*Kernel) activity()          {}
func (*Copy) activity()            {}
func (*Set) activity()             {}
func (*API) activity()             {}
func (*External) activity()        {}
func (*Synchronization) activity() {}
func (*Memory) activity()          {}
func (*MemoryPool) activity()      {}
func (*GraphTrace) activity()      {}

// Version134 is the value of cuptiGetVersion since CUDA 13.4. Values of all releases compare as integers, though those
// before 13.0 count from 18 (11.8).
const Version134 = 130400

// field is one field of a record: where it lies, from which version of CUPTI on, and where it goes.
type field[T any] struct {
	name         string // in CUPTI's header
	offset, size int
	since        uint32 // cuptiGetVersion; 0: in all
	set          func(*T, uint64)
}

// layout describes a kind for Parse. Releases only append to a record, so that the record of CUDA 11.8 is the begin of
// every later one; later fields are read only if the version has them.
type layout struct {
	least int // size in CUDA 11.8
	parse func(b []byte, version uint32) Record
}

var layouts = map[Kind]layout{
	KindKernel:           layoutOf(200, kernelFields),
	KindConcurrentKernel: layoutOf(200, kernelFields),
	KindMemcpy:           layoutOf(88, copyFields),
	KindMemcpy2:          layoutOf(96, copy2Fields),
	KindMemset:           layoutOf(88, setFields),
	KindDriver:           layoutOf(40, apiFields),
	KindRuntime:          layoutOf(40, apiFields),
	KindExternal:         layoutOf(24, externalFields),
	KindSynchronization:  layoutOf(40, synchronizationFields),
	KindMemory2:          layoutOf(120, memoryFields),
	KindMemoryPool:       layoutOf(72, poolFields),
	KindGraphTrace:       layoutOf(48, graphFields),
}

func layoutOf[T any, P interface {
	*T
	Record
}](least int, fields []field[T]) layout {
	return layout{least, func(b []byte, version uint32) Record {
		rec := new(T)
		for i := range fields {
			f := &fields[i]
			if version >= f.since && f.offset+f.size <= len(b) {
				f.set(rec, value(b[f.offset:f.offset+f.size]))
			}
		}
		return P(rec)
	}}
}

func value(b []byte) uint64 {
	switch len(b) {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.NativeEndian.Uint16(b))
	case 4:
		return uint64(binary.NativeEndian.Uint32(b))
	}
	return binary.NativeEndian.Uint64(b)
}

var kernelFields = []field[Kernel]{
	{"registersPerThread", 6, 2, 0, func(k *Kernel, v uint64) { k.Registers = uint16(v) }},
	{"start", 16, 8, 0, func(k *Kernel, v uint64) { k.Start = v }},
	{"end", 24, 8, 0, func(k *Kernel, v uint64) { k.End = v }},
	{"deviceId", 40, 4, 0, func(k *Kernel, v uint64) { k.Device = uint32(v) }},
	{"contextId", 44, 4, 0, func(k *Kernel, v uint64) { k.Context = uint32(v) }},
	{"streamId", 48, 4, 0, func(k *Kernel, v uint64) { k.Stream = uint32(v) }},
	{"gridX", 52, 4, 0, func(k *Kernel, v uint64) { k.Grid[0] = uint32(v) }},
	{"gridY", 56, 4, 0, func(k *Kernel, v uint64) { k.Grid[1] = uint32(v) }},
	{"gridZ", 60, 4, 0, func(k *Kernel, v uint64) { k.Grid[2] = uint32(v) }},
	{"blockX", 64, 4, 0, func(k *Kernel, v uint64) { k.Block[0] = uint32(v) }},
	{"blockY", 68, 4, 0, func(k *Kernel, v uint64) { k.Block[1] = uint32(v) }},
	{"blockZ", 72, 4, 0, func(k *Kernel, v uint64) { k.Block[2] = uint32(v) }},
	{"staticSharedMemory", 76, 4, 0, func(k *Kernel, v uint64) { k.StaticShared = uint32(v) }},
	{"dynamicSharedMemory", 80, 4, 0, func(k *Kernel, v uint64) { k.DynamicShared = uint32(v) }},
	{"correlationId", 92, 4, 0, func(k *Kernel, v uint64) { k.Correlation = uint32(v) }},
	{"graphNodeId", 144, 8, 0, func(k *Kernel, v uint64) { k.GraphNode = v }},
	{"graphId", 156, 4, 0, func(k *Kernel, v uint64) { k.Graph = uint32(v) }},
	{"sourceGraphNodeId", 240, 8, Version134, func(k *Kernel, v uint64) { k.SourceGraphNode = v }},
}

var copyFields = []field[Copy]{
	{"kind", 0, 4, 0, func(c *Copy, v uint64) { c.Kind = Kind(v) }},
	{"copyKind", 4, 1, 0, func(c *Copy, v uint64) { c.CopyKind = CopyKind(v) }},
	{"srcKind", 5, 1, 0, func(c *Copy, v uint64) { c.SrcMemory = uint8(v) }},
	{"dstKind", 6, 1, 0, func(c *Copy, v uint64) { c.DstMemory = uint8(v) }},
	{"bytes", 8, 8, 0, func(c *Copy, v uint64) { c.Bytes = v }},
	{"start", 16, 8, 0, func(c *Copy, v uint64) { c.Start = v }},
	{"end", 24, 8, 0, func(c *Copy, v uint64) { c.End = v }},
	{"deviceId", 32, 4, 0, func(c *Copy, v uint64) { c.Device = uint32(v) }},
	{"contextId", 36, 4, 0, func(c *Copy, v uint64) { c.Context = uint32(v) }},
	{"streamId", 40, 4, 0, func(c *Copy, v uint64) { c.Stream = uint32(v) }},
	{"correlationId", 44, 4, 0, func(c *Copy, v uint64) { c.Correlation = uint32(v) }},
	{"graphNodeId", 64, 8, 0, func(c *Copy, v uint64) { c.GraphNode = v }},
	{"graphId", 72, 4, 0, func(c *Copy, v uint64) { c.Graph = uint32(v) }},
}

// copy2Fields are copyFields up to streamId; the devices at both ends follow.
var copy2Fields = append(append([]field[Copy]{}, copyFields[:10]...), []field[Copy]{
	{"correlationId", 60, 4, 0, func(c *Copy, v uint64) { c.Correlation = uint32(v) }},
	{"graphNodeId", 72, 8, 0, func(c *Copy, v uint64) { c.GraphNode = v }},
	{"graphId", 80, 4, 0, func(c *Copy, v uint64) { c.Graph = uint32(v) }},
}...)

var setFields = []field[Set]{
	{"bytes", 8, 8, 0, func(s *Set, v uint64) { s.Bytes = v }},
	{"start", 16, 8, 0, func(s *Set, v uint64) { s.Start = v }},
	{"end", 24, 8, 0, func(s *Set, v uint64) { s.End = v }},
	{"deviceId", 32, 4, 0, func(s *Set, v uint64) { s.Device = uint32(v) }},
	{"contextId", 36, 4, 0, func(s *Set, v uint64) { s.Context = uint32(v) }},
	{"streamId", 40, 4, 0, func(s *Set, v uint64) { s.Stream = uint32(v) }},
	{"correlationId", 44, 4, 0, func(s *Set, v uint64) { s.Correlation = uint32(v) }},
	{"graphNodeId", 64, 8, 0, func(s *Set, v uint64) { s.GraphNode = v }},
	{"graphId", 72, 4, 0, func(s *Set, v uint64) { s.Graph = uint32(v) }},
}

var apiFields = []field[API]{
	{"kind", 0, 4, 0, func(a *API, v uint64) { a.Kind = Kind(v) }},
	{"cbid", 4, 4, 0, func(a *API, v uint64) { a.Callback = uint32(v) }},
	{"start", 8, 8, 0, func(a *API, v uint64) { a.Start = v }},
	{"end", 16, 8, 0, func(a *API, v uint64) { a.End = v }},
	{"processId", 24, 4, 0, func(a *API, v uint64) { a.Process = uint32(v) }},
	{"threadId", 28, 4, 0, func(a *API, v uint64) { a.Thread = uint32(v) }},
	{"correlationId", 32, 4, 0, func(a *API, v uint64) { a.Correlation = uint32(v) }},
	{"returnValue", 36, 4, 0, func(a *API, v uint64) { a.Result = uint32(v) }},
}

var externalFields = []field[External]{
	{"externalKind", 4, 4, 0, func(e *External, v uint64) { e.ExternalKind = ExternalKind(v) }},
	{"externalId", 8, 8, 0, func(e *External, v uint64) { e.ID = v }},
	{"correlationId", 16, 4, 0, func(e *External, v uint64) { e.Correlation = uint32(v) }},
}

var synchronizationFields = []field[Synchronization]{
	{"type", 4, 4, 0, func(s *Synchronization, v uint64) { s.Type = SynchronizationType(v) }},
	{"start", 8, 8, 0, func(s *Synchronization, v uint64) { s.Start = v }},
	{"end", 16, 8, 0, func(s *Synchronization, v uint64) { s.End = v }},
	{"correlationId", 24, 4, 0, func(s *Synchronization, v uint64) { s.Correlation = uint32(v) }},
	{"contextId", 28, 4, 0, func(s *Synchronization, v uint64) { s.Context = uint32(v) }},
	{"streamId", 32, 4, 0, func(s *Synchronization, v uint64) { s.Stream = uint32(v) }},
	{"cudaEventId", 36, 4, 0, func(s *Synchronization, v uint64) { s.Event = uint32(v) }},
}

var memoryFields = []field[Memory]{
	{"memoryOperationType", 4, 4, 0, func(m *Memory, v uint64) { m.Operation = MemoryOperation(v) }},
	{"memoryKind", 8, 4, 0, func(m *Memory, v uint64) { m.MemoryKind = MemoryKind(v) }},
	{"correlationId", 12, 4, 0, func(m *Memory, v uint64) { m.Correlation = uint32(v) }},
	{"address", 16, 8, 0, func(m *Memory, v uint64) { m.Address = v }},
	{"bytes", 24, 8, 0, func(m *Memory, v uint64) { m.Bytes = v }},
	{"timestamp", 32, 8, 0, func(m *Memory, v uint64) { m.Time = v }},
	{"processId", 48, 4, 0, func(m *Memory, v uint64) { m.Process = uint32(v) }},
	{"deviceId", 52, 4, 0, func(m *Memory, v uint64) { m.Device = uint32(v) }},
	{"contextId", 56, 4, 0, func(m *Memory, v uint64) { m.Context = uint32(v) }},
	{"streamId", 60, 4, 0, func(m *Memory, v uint64) { m.Stream = uint32(v) }},
	{"isAsync", 72, 4, 0, func(m *Memory, v uint64) { m.Async = uint32(v) }},
	{"memoryPoolConfig.address", 88, 8, 0, func(m *Memory, v uint64) { m.Pool = v }},
}

var poolFields = []field[MemoryPool]{
	{"memoryPoolOperationType", 4, 4, 0, func(p *MemoryPool, v uint64) { p.Operation = MemoryPoolOperation(v) }},
	{"memoryPoolType", 8, 4, 0, func(p *MemoryPool, v uint64) { p.PoolType = uint32(v) }},
	{"processId", 16, 4, 0, func(p *MemoryPool, v uint64) { p.Process = uint32(v) }},
	{"deviceId", 20, 4, 0, func(p *MemoryPool, v uint64) { p.Device = uint32(v) }},
	{"address", 32, 8, 0, func(p *MemoryPool, v uint64) { p.Address = v }},
	{"size", 40, 8, 0, func(p *MemoryPool, v uint64) { p.Size = v }},
	{"timestamp", 56, 8, 0, func(p *MemoryPool, v uint64) { p.Time = v }},
}

var graphFields = []field[GraphTrace]{
	{"correlationId", 4, 4, 0, func(g *GraphTrace, v uint64) { g.Correlation = uint32(v) }},
	{"start", 8, 8, 0, func(g *GraphTrace, v uint64) { g.Start = v }},
	{"end", 16, 8, 0, func(g *GraphTrace, v uint64) { g.End = v }},
	{"deviceId", 24, 4, 0, func(g *GraphTrace, v uint64) { g.Device = uint32(v) }},
	{"graphId", 28, 4, 0, func(g *GraphTrace, v uint64) { g.Graph = uint32(v) }},
	{"contextId", 32, 4, 0, func(g *GraphTrace, v uint64) { g.Context = uint32(v) }},
	{"streamId", 36, 4, 0, func(g *GraphTrace, v uint64) { g.Stream = uint32(v) }},
}

// Errors of Parse.
var (
	ErrKind  = errors.New("activity of a kind not known")
	errShort = errors.New("activity record cut off")
)

// Parse reads one activity record, native byte order, as the CUPTI of a version (cuptiGetVersion) wrote it. Bytes
// behind those that the kind has are not looked at. Errors wrap ErrKind or errShort.
func Parse(b []byte, version uint32) (Record, error) {
	if len(b) < 4 {
		return nil, fmt.Errorf("%w: %d bytes", errShort, len(b))
	}
	kind := Kind(binary.NativeEndian.Uint32(b))
	l, ok := layouts[kind]
	if !ok {
		return nil, fmt.Errorf("%w: %d", ErrKind, kind)
	}
	if len(b) < l.least {
		return nil, fmt.Errorf("%w: %d bytes of kind %d, which has %d", errShort, len(b), kind, l.least)
	}
	return l.parse(b, version), nil
}
