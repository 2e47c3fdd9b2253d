// SPDX-License-Identifier: Apache-2.0

package schema

// Events lists the records of an event file (<location>.evt), one line each: id, name, the OTF2 version that
// introduced it, and its fields in the order they have on disk. Ten records carry no length field; that set is
// closed, newer records never join it.
//
// Notation of a field: name:encoding[:Go type][@mapping space][!legacy][+version that appended it]. A star in
// front marks a member of the repeated part, which occurs as often as the last field without a star says.
var Events = records(func() []Record {
	return []Record{
		{ID: 10, Name: "BufferFlush", Since: "1.0", Text: "stopTime:f64:Timestamp"},
		{ID: 11, Name: "MeasurementOnOff", Since: "1.0", Text: "measurementMode:u8:MeasurementMode"},
		{ID: 12, Name: "Enter", Since: "1.0", NoLength: true, Text: "region:c32:RegionRef@REGION"},
		{ID: 13, Name: "Leave", Since: "1.0", NoLength: true, Text: "region:c32:RegionRef@REGION"},
		{ID: 14, Name: "MpiSend", Since: "1.0",
			Text: "receiver:c32 communicator:c32:CommRef@COMM msgTag:c32 msgLength:c64"},
		{ID: 15, Name: "MpiIsend", Since: "1.0",
			Text: "receiver:c32 communicator:c32:CommRef@COMM msgTag:c32 msgLength:c64 requestID:c64"},
		{ID: 16, Name: "MpiIsendComplete", Since: "1.0", NoLength: true, Text: "requestID:c64"},
		{ID: 17, Name: "MpiIrecvRequest", Since: "1.0", NoLength: true, Text: "requestID:c64"},
		{ID: 18, Name: "MpiRecv", Since: "1.0",
			Text: "sender:c32 communicator:c32:CommRef@COMM msgTag:c32 msgLength:c64"},
		{ID: 19, Name: "MpiIrecv", Since: "1.0",
			Text: "sender:c32 communicator:c32:CommRef@COMM msgTag:c32 msgLength:c64 requestID:c64"},
		{ID: 20, Name: "MpiRequestTest", Since: "1.0", NoLength: true, Text: "requestID:c64"},
		{ID: 21, Name: "MpiRequestCancelled", Since: "1.0", NoLength: true, Text: "requestID:c64"},
		{ID: 22, Name: "MpiCollectiveBegin", Since: "1.0", Text: ""},
		{ID: 23, Name: "MpiCollectiveEnd", Since: "1.0",
			Text: "collectiveOp:u8:CollectiveOp communicator:c32:CommRef@COMM root:c32:CollectiveRoot sizeSent:c64 " +
				"sizeReceived:c64"},
		{ID: 24, Name: "OmpFork", Since: "1.0", NoLength: true, Text: "numberOfRequestedThreads:c32"},
		{ID: 25, Name: "OmpJoin", Since: "1.0", Text: ""},
		{ID: 26, Name: "OmpAcquireLock", Since: "1.0", Text: "lockID:c32 acquisitionOrder:c32"},
		{ID: 27, Name: "OmpReleaseLock", Since: "1.0", Text: "lockID:c32 acquisitionOrder:c32"},
		{ID: 28, Name: "OmpTaskCreate", Since: "1.0", NoLength: true, Text: "taskID:c64"},
		{ID: 29, Name: "OmpTaskSwitch", Since: "1.0", NoLength: true, Text: "taskID:c64"},
		{ID: 30, Name: "OmpTaskComplete", Since: "1.0", NoLength: true, Text: "taskID:c64"},
		{ID: 31, Name: "Metric", Since: "1.0",
			Text: "metric:c32:MetricRef@METRIC numberOfMetrics:u8 *typeIDs:u8:Type *metricValues:c64"},
		{ID: 32, Name: "ParameterString", Since: "1.0",
			Text: "parameter:c32:ParameterRef@PARAMETER string:c32:StringRef@STRING"},
		{ID: 33, Name: "ParameterInt", Since: "1.0", Text: "parameter:c32:ParameterRef@PARAMETER value:s64"},
		{ID: 34, Name: "ParameterUnsignedInt", Since: "1.0", Text: "parameter:c32:ParameterRef@PARAMETER value:c64"},
		{ID: 35, Name: "RmaWinCreate", Since: "1.2", Text: "win:c32:RmaWinRef@RMA_WIN"},
		{ID: 36, Name: "RmaWinDestroy", Since: "1.2", Text: "win:c32:RmaWinRef@RMA_WIN"},
		{ID: 37, Name: "RmaCollectiveBegin", Since: "1.2", Text: ""},
		{ID: 38, Name: "RmaCollectiveEnd", Since: "1.2",
			Text: "collectiveOp:u8:CollectiveOp syncLevel:c32:RmaSyncLevel win:c32:RmaWinRef@RMA_WIN " +
				"root:c32:CollectiveRoot bytesSent:c64 bytesReceived:c64"},
		{ID: 39, Name: "RmaGroupSync", Since: "1.2",
			Text: "syncLevel:c32:RmaSyncLevel win:c32:RmaWinRef@RMA_WIN group:c32:GroupRef@GROUP"},
		{ID: 40, Name: "RmaRequestLock", Since: "1.2",
			Text: "win:c32:RmaWinRef@RMA_WIN remote:c32 lockId:c64 lockType:u8:LockType"},
		{ID: 41, Name: "RmaAcquireLock", Since: "1.2",
			Text: "win:c32:RmaWinRef@RMA_WIN remote:c32 lockId:c64 lockType:u8:LockType"},
		{ID: 42, Name: "RmaTryLock", Since: "1.2",
			Text: "win:c32:RmaWinRef@RMA_WIN remote:c32 lockId:c64 lockType:u8:LockType"},
		{ID: 43, Name: "RmaReleaseLock", Since: "1.2", Text: "win:c32:RmaWinRef@RMA_WIN remote:c32 lockId:c64"},
		{ID: 44, Name: "RmaSync", Since: "1.2", Text: "win:c32:RmaWinRef@RMA_WIN remote:c32 syncType:u8:RmaSyncType"},
		{ID: 45, Name: "RmaWaitChange", Since: "1.2", Text: "win:c32:RmaWinRef@RMA_WIN"},
		{ID: 46, Name: "RmaPut", Since: "1.2", Text: "win:c32:RmaWinRef@RMA_WIN remote:c32 bytes:c64 matchingId:c64"},
		{ID: 47, Name: "RmaGet", Since: "1.2", Text: "win:c32:RmaWinRef@RMA_WIN remote:c32 bytes:c64 matchingId:c64"},
		{ID: 48, Name: "RmaAtomic", Since: "1.2",
			Text: "win:c32:RmaWinRef@RMA_WIN remote:c32 type:u8:RmaAtomicType bytesSent:c64 bytesReceived:c64 " +
				"matchingId:c64"},
		{ID: 49, Name: "RmaOpCompleteBlocking", Since: "1.2", Text: "win:c32:RmaWinRef@RMA_WIN matchingId:c64"},
		{ID: 50, Name: "RmaOpCompleteNonBlocking", Since: "1.2", Text: "win:c32:RmaWinRef@RMA_WIN matchingId:c64"},
		{ID: 51, Name: "RmaOpTest", Since: "1.2", Text: "win:c32:RmaWinRef@RMA_WIN matchingId:c64"},
		{ID: 52, Name: "RmaOpCompleteRemote", Since: "1.2", Text: "win:c32:RmaWinRef@RMA_WIN matchingId:c64"},
		{ID: 53, Name: "ThreadFork", Since: "1.2", Text: "model:u8:Paradigm numberOfRequestedThreads:c32"},
		{ID: 54, Name: "ThreadJoin", Since: "1.2", Text: "model:u8:Paradigm"},
		{ID: 55, Name: "ThreadTeamBegin", Since: "1.2", Text: "threadTeam:c32:CommRef@COMM"},
		{ID: 56, Name: "ThreadTeamEnd", Since: "1.2", Text: "threadTeam:c32:CommRef@COMM"},
		{ID: 57, Name: "ThreadAcquireLock", Since: "1.2", Text: "model:u8:Paradigm lockID:c32 acquisitionOrder:c32"},
		{ID: 58, Name: "ThreadReleaseLock", Since: "1.2", Text: "model:u8:Paradigm lockID:c32 acquisitionOrder:c32"},
		{ID: 59, Name: "ThreadTaskCreate", Since: "1.2",
			Text: "threadTeam:c32:CommRef@COMM creatingThread:c32 generationNumber:c32"},
		{ID: 60, Name: "ThreadTaskSwitch", Since: "1.2",
			Text: "threadTeam:c32:CommRef@COMM creatingThread:c32 generationNumber:c32"},
		{ID: 61, Name: "ThreadTaskComplete", Since: "1.2",
			Text: "threadTeam:c32:CommRef@COMM creatingThread:c32 generationNumber:c32"},
		{ID: 62, Name: "ThreadCreate", Since: "1.3", Text: "threadContingent:c32:CommRef@COMM sequenceCount:c64"},
		{ID: 63, Name: "ThreadBegin", Since: "1.3", Text: "threadContingent:c32:CommRef@COMM sequenceCount:c64"},
		{ID: 64, Name: "ThreadWait", Since: "1.3", Text: "threadContingent:c32:CommRef@COMM sequenceCount:c64"},
		{ID: 65, Name: "ThreadEnd", Since: "1.3", Text: "threadContingent:c32:CommRef@COMM sequenceCount:c64"},
		{ID: 66, Name: "CallingContextEnter", Since: "2.0",
			Text: "callingContext:c32:CallingContextRef@CALLING_CONTEXT unwindDistance:c32"},
		{ID: 67, Name: "CallingContextLeave", Since: "2.0",
			Text: "callingContext:c32:CallingContextRef@CALLING_CONTEXT"},
		{ID: 68, Name: "CallingContextSample", Since: "1.5",
			Text: "callingContext:c32:CallingContextRef@CALLING_CONTEXT unwindDistance:c32 " +
				"interruptGenerator:c32:InterruptGeneratorRef@INTERRUPT_GENERATOR"},
		{ID: 69, Name: "IoCreateHandle", Since: "2.1",
			Text: "handle:c32:IoHandleRef@IO_HANDLE mode:u8:IoAccessMode creationFlags:c32:IoCreationFlag " +
				"statusFlags:c32:IoStatusFlag"},
		{ID: 70, Name: "IoDestroyHandle", Since: "2.1", Text: "handle:c32:IoHandleRef@IO_HANDLE"},
		{ID: 71, Name: "IoDuplicateHandle", Since: "2.1",
			Text: "oldHandle:c32:IoHandleRef@IO_HANDLE newHandle:c32:IoHandleRef@IO_HANDLE " +
				"statusFlags:c32:IoStatusFlag"},
		{ID: 72, Name: "IoSeek", Since: "2.1",
			Text: "handle:c32:IoHandleRef@IO_HANDLE offsetRequest:s64 whence:u8:IoSeekOption offsetResult:c64"},
		{ID: 73, Name: "IoChangeStatusFlags", Since: "2.1",
			Text: "handle:c32:IoHandleRef@IO_HANDLE statusFlags:c32:IoStatusFlag"},
		{ID: 74, Name: "IoDeleteFile", Since: "2.1", Text: "ioParadigm:u8:IoParadigmRef file:c32:IoFileRef@IO_FILE"},
		{ID: 75, Name: "IoOperationBegin", Since: "2.1",
			Text: "handle:c32:IoHandleRef@IO_HANDLE mode:u8:IoOperationMode operationFlags:c32:IoOperationFlag " +
				"bytesRequest:c64 matchingId:c64"},
		{ID: 76, Name: "IoOperationTest", Since: "2.1", Text: "handle:c32:IoHandleRef@IO_HANDLE matchingId:c64"},
		{ID: 77, Name: "IoOperationIssued", Since: "2.1", Text: "handle:c32:IoHandleRef@IO_HANDLE matchingId:c64"},
		{ID: 78, Name: "IoOperationComplete", Since: "2.1",
			Text: "handle:c32:IoHandleRef@IO_HANDLE bytesResult:c64 matchingId:c64"},
		{ID: 79, Name: "IoOperationCancelled", Since: "2.1", Text: "handle:c32:IoHandleRef@IO_HANDLE matchingId:c64"},
		{ID: 80, Name: "IoAcquireLock", Since: "2.1", Text: "handle:c32:IoHandleRef@IO_HANDLE lockType:u8:LockType"},
		{ID: 81, Name: "IoReleaseLock", Since: "2.1", Text: "handle:c32:IoHandleRef@IO_HANDLE lockType:u8:LockType"},
		{ID: 82, Name: "IoTryLock", Since: "2.1", Text: "handle:c32:IoHandleRef@IO_HANDLE lockType:u8:LockType"},
		{ID: 83, Name: "ProgramBegin", Since: "2.1",
			Text: "programName:c32:StringRef@STRING numberOfArguments:c32 *programArguments:c32:StringRef@STRING"},
		{ID: 84, Name: "ProgramEnd", Since: "2.1", Text: "exitStatus:s64"},
		{ID: 85, Name: "NonBlockingCollectiveRequest", Since: "3.0", Text: "requestID:c64"},
		{ID: 86, Name: "NonBlockingCollectiveComplete", Since: "3.0",
			Text: "collectiveOp:u8:CollectiveOp communicator:c32:CommRef@COMM root:c32:CollectiveRoot sizeSent:c64 " +
				"sizeReceived:c64 requestID:c64"},
		{ID: 87, Name: "CommCreate", Since: "3.0", Text: "communicator:c32:CommRef@COMM"},
		{ID: 88, Name: "CommDestroy", Since: "3.0", Text: "communicator:c32:CommRef@COMM"},
		{ID: 89, Name: "MpiProbe", Since: "3.2",
			Text: "sender:c32 communicator:c32:CommRef@COMM tag:c32 messageId:c64"},
		{ID: 90, Name: "MpiMrecv", Since: "3.2", Text: "messageId:c64 msgLength:c64"},
		{ID: 91, Name: "MpiImrecvRequest", Since: "3.2", Text: "messageId:c64 requestId:c64"},
		{ID: 92, Name: "MpiImrecv", Since: "3.2", Text: "requestId:c64 msgLength:c64"},
	}
})

// GlobalOnly lists the definitions that exist only in the global definition file (<archive>.def).
var GlobalOnly = records(func() []Record {
	return []Record{
		{ID: 5, Name: "ClockProperties", Since: "1.0",
			Text: "timerResolution:c64 globalOffset:c64 traceLength:c64 realtimeTimestamp:c64+3.0"},
		{ID: 6, Name: "Paradigm", Since: "1.5",
			Text: "paradigm:u8:Paradigm name:c32:StringRef paradigmClass:u8:ParadigmClass"},
		{ID: 7, Name: "ParadigmProperty", Since: "1.5",
			Text: "paradigm:u8:Paradigm property:u8:ParadigmProperty type:u8:Type value:val:Value"},
		{ID: 8, Name: "IoParadigm", Since: "2.1",
			Text: "self:u8:IoParadigmRef identification:c32:StringRef name:c32:StringRef " +
				"ioParadigmClass:u8:IoParadigmClass ioParadigmFlags:c32:IoParadigmFlag numberOfProperties:u8 " +
				"*properties:u8:IoParadigmProperty *types:u8:Type *values:val:Value"},
	}
})

// LocalOnly lists the definitions that exist only in a location's definition file (<location>.def).
var LocalOnly = records(func() []Record {
	return []Record{
		{ID: 5, Name: "MappingTable", Since: "1.0", Text: "mappingType:u8:MappingType idMap:idmap"},
		{ID: 6, Name: "ClockOffset", Since: "1.0", Text: "time:f64:Timestamp offset:s64 standardDeviation:dbl"},
	}
})

// Definitions lists the definitions that global and local definition files have in common, field for field.
var Definitions = records(func() []Record {
	return []Record{
		{ID: 10, Name: "String", Since: "1.0", Text: "self:c32:StringRef string:str"},
		{ID: 11, Name: "Attribute", Since: "1.0",
			Text: "self:c32:AttributeRef name:c32:StringRef type:u8:Type description:c32:StringRef+1.4"},
		{ID: 12, Name: "SystemTreeNode", Since: "1.0",
			Text: "self:c32:SystemTreeNodeRef name:c32:StringRef className:c32:StringRef parent:c32:SystemTreeNodeRef"},
		{ID: 13, Name: "LocationGroup", Since: "1.0",
			Text: "self:c32:LocationGroupRef name:c32:StringRef locationGroupType:u8:LocationGroupType " +
				"systemTreeParent:c32:SystemTreeNodeRef creatingLocationGroup:c32:LocationGroupRef+3.0"},
		{ID: 14, Name: "Location", Since: "1.0",
			Text: "self:c64:LocationRef name:c32:StringRef locationType:u8:LocationType numberOfEvents:c64 " +
				"locationGroup:c32:LocationGroupRef"},
		{ID: 15, Name: "Region", Since: "1.0",
			Text: "self:c32:RegionRef name:c32:StringRef description:c32:StringRef regionType:u8!legacy " +
				"sourceFile:c32:StringRef beginLineNumber:c32 endLineNumber:c32 canonicalName:c32:StringRef+1.1 " +
				"regionRole:u8:RegionRole+1.1 paradigm:u8:Paradigm+1.1 regionFlags:c32:RegionFlag+1.1"},
		{ID: 16, Name: "Callsite", Since: "1.0",
			Text: "self:c32:CallsiteRef sourceFile:c32:StringRef lineNumber:c32 enteredRegion:c32:RegionRef " +
				"leftRegion:c32:RegionRef"},
		{ID: 17, Name: "Callpath", Since: "1.0",
			Text: "self:c32:CallpathRef parent:c32:CallpathRef region:c32:RegionRef"},
		{ID: 18, Name: "Group", Since: "1.0",
			Text: "self:c32:GroupRef name:c32:StringRef groupTypePre12:u8!legacy numberOfMembers:c32 *members:c64 " +
				"groupType:u8:GroupType+1.2 paradigm:u8:Paradigm+1.2 groupFlags:c32:GroupFlag+1.2"},
		{ID: 19, Name: "MetricMember", Since: "1.0",
			Text: "self:c32:MetricMemberRef name:c32:StringRef description:c32:StringRef metricType:u8:MetricType " +
				"metricMode:u8:MetricMode valueType:u8:Type base:u8:Base exponent:s64 unit:c32:StringRef"},
		{ID: 20, Name: "MetricClass", Since: "1.0",
			Text: "self:c32:MetricRef numberOfMetrics:u8 *metricMembers:c32:MetricMemberRef " +
				"metricOccurrence:u8:MetricOccurrence recorderKind:u8:RecorderKind+1.2"},
		{ID: 21, Name: "MetricInstance", Since: "1.0",
			Text: "self:c32:MetricRef metricClass:c32:MetricRef recorder:c64:LocationRef metricScope:u8:MetricScope " +
				"scope:c64"},
		{ID: 22, Name: "Comm", Since: "1.0",
			Text: "self:c32:CommRef name:c32:StringRef group:c32:GroupRef parent:c32:CommRef flags:c32:CommFlag+3.0"},
		{ID: 23, Name: "Parameter", Since: "1.0",
			Text: "self:c32:ParameterRef name:c32:StringRef parameterType:u8:ParameterType"},
		{ID: 24, Name: "RmaWin", Since: "1.2",
			Text: "self:c32:RmaWinRef name:c32:StringRef comm:c32:CommRef flags:c32:RmaWinFlag+3.0"},
		{ID: 25, Name: "MetricClassRecorder", Since: "1.2", Text: "metric:c32:MetricRef recorder:c64:LocationRef"},
		{ID: 26, Name: "SystemTreeNodeProperty", Since: "1.2",
			Text: "systemTreeNode:c32:SystemTreeNodeRef name:c32:StringRef stringValue:c32:StringRef!legacy " +
				"type:u8:Type+2.0 value:val:Value+2.0"},
		{ID: 27, Name: "SystemTreeNodeDomain", Since: "1.2",
			Text: "systemTreeNode:c32:SystemTreeNodeRef systemTreeDomain:u8:SystemTreeDomain"},
		{ID: 28, Name: "LocationGroupProperty", Since: "1.3",
			Text: "locationGroup:c32:LocationGroupRef name:c32:StringRef stringValue:c32:StringRef!legacy " +
				"type:u8:Type+2.0 value:val:Value+2.0"},
		{ID: 29, Name: "LocationProperty", Since: "1.3",
			Text: "location:c64:LocationRef name:c32:StringRef stringValue:c32:StringRef!legacy type:u8:Type+2.0 " +
				"value:val:Value+2.0"},
		{ID: 30, Name: "CartDimension", Since: "1.3",
			Text: "self:c32:CartDimensionRef name:c32:StringRef size:c32 cartPeriodicity:u8:CartPeriodicity"},
		{ID: 31, Name: "CartTopology", Since: "1.3",
			Text: "self:c32:CartTopologyRef name:c32:StringRef communicator:c32:CommRef numberOfDimensions:u8 " +
				"*cartDimensions:c32:CartDimensionRef"},
		{ID: 32, Name: "CartCoordinate", Since: "1.3",
			Text: "cartTopology:c32:CartTopologyRef rank:c32 numberOfDimensions:u8 *coordinates:c32"},
		{ID: 33, Name: "SourceCodeLocation", Since: "1.5",
			Text: "self:c32:SourceCodeLocationRef file:c32:StringRef lineNumber:c32"},
		{ID: 34, Name: "CallingContext", Since: "1.5",
			Text: "self:c32:CallingContextRef region:c32:RegionRef sourceCodeLocation:c32:SourceCodeLocationRef " +
				"parent:c32:CallingContextRef"},
		{ID: 35, Name: "CallingContextProperty", Since: "2.0",
			Text: "callingContext:c32:CallingContextRef name:c32:StringRef type:u8:Type value:val:Value"},
		{ID: 36, Name: "InterruptGenerator", Since: "1.5",
			Text: "self:c32:InterruptGeneratorRef name:c32:StringRef " +
				"interruptGeneratorMode:u8:InterruptGeneratorMode base:u8:Base exponent:s64 period:c64"},
		{ID: 37, Name: "IoFileProperty", Since: "2.1",
			Text: "ioFile:c32:IoFileRef name:c32:StringRef type:u8:Type value:val:Value"},
		{ID: 38, Name: "IoRegularFile", Since: "2.1",
			Text: "self:c32:IoFileRef name:c32:StringRef scope:c32:SystemTreeNodeRef"},
		{ID: 39, Name: "IoDirectory", Since: "2.1",
			Text: "self:c32:IoFileRef name:c32:StringRef scope:c32:SystemTreeNodeRef"},
		{ID: 40, Name: "IoHandle", Since: "2.1",
			Text: "self:c32:IoHandleRef name:c32:StringRef file:c32:IoFileRef ioParadigm:u8:IoParadigmRef " +
				"ioHandleFlags:c32:IoHandleFlag comm:c32:CommRef parent:c32:IoHandleRef"},
		{ID: 41, Name: "IoPreCreatedHandleState", Since: "2.1",
			Text: "ioHandle:c32:IoHandleRef mode:u8:IoAccessMode statusFlags:c32:IoStatusFlag"},
		{ID: 42, Name: "CallpathParameter", Since: "2.2",
			Text: "callpath:c32:CallpathRef parameter:c32:ParameterRef type:u8:Type value:val:Value"},
		{ID: 43, Name: "InterComm", Since: "3.0",
			Text: "self:c32:CommRef name:c32:StringRef groupA:c32:GroupRef groupB:c32:GroupRef " +
				"commonCommunicator:c32:CommRef flags:c32:CommFlag"},
	}
})

// Snapshots lists the records of a snapshot file (<location>.snap). Nothing in it is mapped or clock-corrected.
var Snapshots = records(func() []Record {
	return []Record{
		{ID: 10, Name: "SnapshotStart", Since: "1.2", Text: "numberOfRecords:c64"},
		{ID: 11, Name: "SnapshotEnd", Since: "1.2", Text: "contReadPos:c64"},
		{ID: 12, Name: "MeasurementOnOff", Since: "1.2",
			Text: "origEventTime:f64:Timestamp measurementMode:u8:MeasurementMode"},
		{ID: 13, Name: "Enter", Since: "1.2", Text: "origEventTime:f64:Timestamp region:c32:RegionRef"},
		{ID: 14, Name: "MpiSend", Since: "1.2",
			Text: "origEventTime:f64:Timestamp receiver:c32 communicator:c32:CommRef msgTag:c32 msgLength:c64"},
		{ID: 15, Name: "MpiIsend", Since: "1.2",
			Text: "origEventTime:f64:Timestamp receiver:c32 communicator:c32:CommRef msgTag:c32 msgLength:c64 " +
				"requestID:c64"},
		{ID: 16, Name: "MpiIsendComplete", Since: "1.2", Text: "origEventTime:f64:Timestamp requestID:c64"},
		{ID: 17, Name: "MpiRecv", Since: "1.2",
			Text: "origEventTime:f64:Timestamp sender:c32 communicator:c32:CommRef msgTag:c32 msgLength:c64"},
		{ID: 18, Name: "MpiIrecvRequest", Since: "1.2", Text: "origEventTime:f64:Timestamp requestID:c64"},
		{ID: 19, Name: "MpiIrecv", Since: "1.2",
			Text: "origEventTime:f64:Timestamp sender:c32 communicator:c32:CommRef msgTag:c32 msgLength:c64 " +
				"requestID:c64"},
		{ID: 20, Name: "MpiCollectiveBegin", Since: "1.2", Text: "origEventTime:f64:Timestamp"},
		{ID: 21, Name: "MpiCollectiveEnd", Since: "1.2",
			Text: "origEventTime:f64:Timestamp collectiveOp:u8:CollectiveOp communicator:c32:CommRef " +
				"root:c32:CollectiveRoot sizeSent:c64 sizeReceived:c64"},
		{ID: 22, Name: "OmpFork", Since: "1.2", Text: "origEventTime:f64:Timestamp numberOfRequestedThreads:c32"},
		{ID: 23, Name: "OmpAcquireLock", Since: "1.2",
			Text: "origEventTime:f64:Timestamp lockID:c32 acquisitionOrder:c32"},
		{ID: 24, Name: "OmpTaskCreate", Since: "1.2", Text: "origEventTime:f64:Timestamp taskID:c64"},
		{ID: 25, Name: "OmpTaskSwitch", Since: "1.2", Text: "origEventTime:f64:Timestamp taskID:c64"},
		{ID: 26, Name: "Metric", Since: "1.2",
			Text: "origEventTime:f64:Timestamp metric:c32:MetricRef numberOfMetrics:u8 *typeIDs:u8:Type " +
				"*metricValues:c64"},
		{ID: 27, Name: "ParameterString", Since: "1.2",
			Text: "origEventTime:f64:Timestamp parameter:c32:ParameterRef string:c32:StringRef"},
		{ID: 28, Name: "ParameterInt", Since: "1.2",
			Text: "origEventTime:f64:Timestamp parameter:c32:ParameterRef value:s64"},
		{ID: 29, Name: "ParameterUnsignedInt", Since: "1.2",
			Text: "origEventTime:f64:Timestamp parameter:c32:ParameterRef value:c64"},
	}
})

// Markers lists the records of the marker file (<archive>.marker).
var Markers = records(func() []Record {
	return []Record{
		{ID: 5, Name: "DefMarker", Since: "1.2",
			Text: "self:c32:MarkerRef group:str category:str severity:u8:MarkerSeverity"},
		{ID: 6, Name: "Marker", Since: "1.2",
			Text: "time:c64:Timestamp duration:c64 marker:c32:MarkerRef scopeType:u8:MarkerScope scope:c64 text:str"},
	}
})

// Thumbnails lists the records of a thumbnail file (<archive>.<i>.thumb).
var Thumbnails = records(func() []Record {
	return []Record{
		{ID: 10, Name: "Header", Since: "1.2",
			Text: "name:str description:str type:u8:ThumbnailType numberOfSamples:c32 numberOfMetrics:c32 " +
				"*refsToDefs:c64"},
		{ID: 11, Name: "Sample", Since: "1.2", Text: "baseline:c64 numberOfMetrics:c32 *metricSamples:c64"},
	}
})
