// SPDX-License-Identifier: Apache-2.0

package otf2

// References name definitions. Each kind of definition counts its own from 0; the ids in an event file may be
// local to the location and are then mapped to the archive's global ones when read.

// LocationRef names a location, one stream of events. It is also the name of the location's files.
type LocationRef uint64

// UndefinedLocation is no location; it cannot be used as a file name.
const UndefinedLocation LocationRef = 1<<64 - 1

// Timestamp is a time in ticks of the clock that the archive's ClockProperties describe, after correction when
// it was delivered by a reader with mapping, else as recorded.
type Timestamp uint64

// UndefinedTimestamp is no time.
const UndefinedTimestamp Timestamp = 1<<64 - 1

// UndefinedIoParadigm is no I/O paradigm.
const UndefinedIoParadigm IoParadigmRef = 255

// Kinds of references that are 32 bits wide.
type (
	StringRef             uint32 // names a text
	AttributeRef          uint32 // names a kind of event attribute
	SystemTreeNodeRef     uint32 // names a node of the system tree: machine, host, device
	LocationGroupRef      uint32 // names a group of locations: a process or a device context
	RegionRef             uint32 // names a region of code that events enter and leave
	GroupRef              uint32 // names a list of locations, regions, metrics or ranks
	MetricRef             uint32 // names a metric class or a metric instance, which share one id space
	MetricMemberRef       uint32 // names a single quantity of a metric class
	CommRef               uint32 // names a communicator or an inter-communicator, which share one id space
	ParameterRef          uint32 // names a named parameter of a region
	RmaWinRef             uint32 // names a window of remote memory
	SourceCodeLocationRef uint32 // names a line of source code
	CallingContextRef     uint32 // names a node of the calling context tree
	InterruptGeneratorRef uint32 // names a source of samples
	IoFileRef             uint32 // names a file or directory, which share one id space
	IoHandleRef           uint32 // names an open file
	CallsiteRef           uint32 // names a call site (deprecated since OTF2 1.5)
	CallpathRef           uint32 // names a call path
	CartDimensionRef      uint32 // names a dimension of a Cartesian topology
	CartTopologyRef       uint32 // names a Cartesian topology
	MarkerRef             uint32 // names a kind of marker

	// IoParadigmRef names an I/O paradigm; it is not mapped.
	IoParadigmRef uint8
)

// Undefined references of each kind.
const (
	UndefinedString             StringRef             = 1<<32 - 1
	UndefinedAttribute          AttributeRef          = 1<<32 - 1
	UndefinedSystemTreeNode     SystemTreeNodeRef     = 1<<32 - 1
	UndefinedLocationGroup      LocationGroupRef      = 1<<32 - 1
	UndefinedRegion             RegionRef             = 1<<32 - 1
	UndefinedGroup              GroupRef              = 1<<32 - 1
	UndefinedMetric             MetricRef             = 1<<32 - 1
	UndefinedMetricMember       MetricMemberRef       = 1<<32 - 1
	UndefinedComm               CommRef               = 1<<32 - 1
	UndefinedParameter          ParameterRef          = 1<<32 - 1
	UndefinedRmaWin             RmaWinRef             = 1<<32 - 1
	UndefinedSourceCodeLocation SourceCodeLocationRef = 1<<32 - 1
	UndefinedCallingContext     CallingContextRef     = 1<<32 - 1
	UndefinedInterruptGenerator InterruptGeneratorRef = 1<<32 - 1
	UndefinedIoFile             IoFileRef             = 1<<32 - 1
	UndefinedIoHandle           IoHandleRef           = 1<<32 - 1
	UndefinedCallsite           CallsiteRef           = 1<<32 - 1
	UndefinedCallpath           CallpathRef           = 1<<32 - 1
	UndefinedCartDimension      CartDimensionRef      = 1<<32 - 1
	UndefinedCartTopology       CartTopologyRef       = 1<<32 - 1
	UndefinedMarker             MarkerRef             = 1<<32 - 1
)
