// SPDX-License-Identifier: Apache-2.0

package schema

// Enums lists the enumerations of the format. Bits is the width of a value, Prefix begins the Go names of the
// constants (OTF2's own prefix where that differs from the type's name). Names are OTF2's without their prefix;
// "@3.1" marks the version that added a value, none the first version of the enumeration.
var Enums = enums(func() []Enum {
	return []Enum{
		{Name: "Compression", Bits: 8, Flags: false, Prefix: "Compression", Text: "UNDEFINED=0 NONE=1 ZLIB=2"},
		{Name: "FileSubstrate", Bits: 8, Flags: false, Prefix: "Substrate", Text: "UNDEFINED=0 POSIX=1 SION=2 NONE=3"},
		{Name: "MappingType", Bits: 8, Flags: false, Prefix: "Mapping",
			Text: "STRING=0 ATTRIBUTE=1 LOCATION=2 REGION=3 GROUP=4 METRIC=5 COMM=6 PARAMETER=7 RMA_WIN=8@1.2 " +
				"SOURCE_CODE_LOCATION=9@1.5 CALLING_CONTEXT=10@1.5 INTERRUPT_GENERATOR=11@1.5 IO_FILE=12@2.1 " +
				"IO_HANDLE=13@2.1 LOCATION_GROUP=14@3.0"},
		{Name: "Type", Bits: 8, Flags: false, Prefix: "Type",
			Text: "NONE=0 UINT8=1 UINT16=2 UINT32=3 UINT64=4 INT8=5 INT16=6 INT32=7 INT64=8 FLOAT=9 DOUBLE=10 " +
				"STRING=11 ATTRIBUTE=12 LOCATION=13 REGION=14 GROUP=15 METRIC=16 COMM=17 PARAMETER=18 RMA_WIN=19@1.2 " +
				"SOURCE_CODE_LOCATION=20@1.5 CALLING_CONTEXT=21@1.5 INTERRUPT_GENERATOR=22@1.5 IO_FILE=23@2.1 " +
				"IO_HANDLE=24@2.1 LOCATION_GROUP=25@3.0"},
		{Name: "Paradigm", Bits: 8, Flags: false, Prefix: "Paradigm",
			Text: "UNKNOWN=0 USER=1 COMPILER=2 OPENMP=3 MPI=4 CUDA=5 MEASUREMENT_SYSTEM=6@1.2 PTHREAD=7@1.3 " +
				"HMPP=8@1.3 OMPSS=9@1.3 HARDWARE=10@1.3 GASPI=11@1.4 UPC=12@1.4 SHMEM=13@1.4 WINTHREAD=14@1.5 " +
				"QTTHREAD=15@1.5 ACETHREAD=16@1.5 TBBTHREAD=17@1.5 OPENACC=18@1.5 OPENCL=19@1.5 MTAPI=20@1.5 " +
				"SAMPLING=21@1.5 NONE=22@2.0 HIP=23@2.3 KOKKOS=24@2.3 OPENMP_TARGET=25@3.1"},
		{Name: "ParadigmClass", Bits: 8, Flags: false, Prefix: "ParadigmClass",
			Text: "PROCESS=0 THREAD_FORK_JOIN=1 THREAD_CREATE_WAIT=2 ACCELERATOR=3"},
		{Name: "ParadigmProperty", Bits: 8, Flags: false, Prefix: "ParadigmProperty",
			Text: "COMM_NAME_TEMPLATE=0 RMA_WIN_NAME_TEMPLATE=1 RMA_ONLY=2"},
		{Name: "ThumbnailType", Bits: 8, Flags: false, Prefix: "ThumbnailType",
			Text: "REGION=0 METRIC=1 ATTRIBUTES=2 COMM=3@3.1 RMA_WIN=4@3.1 IO_HANDLE=5@3.1"},
		{Name: "SystemTreeDomain", Bits: 8, Flags: false, Prefix: "SystemTreeDomain",
			Text: "MACHINE=0 SHARED_MEMORY=1 NUMA=2 SOCKET=3 CACHE=4 CORE=5 PU=6 ACCELERATOR_DEVICE=7@3.0 " +
				"NETWORKING_DEVICE=8@3.0"},
		{Name: "LocationGroupType", Bits: 8, Flags: false, Prefix: "LocationGroupType",
			Text: "UNKNOWN=0 PROCESS=1 ACCELERATOR=2@3.0"},
		{Name: "LocationType", Bits: 8, Flags: false, Prefix: "LocationType",
			Text: "UNKNOWN=0 CPU_THREAD=1 ACCELERATOR_STREAM=2 METRIC=3"},
		{Name: "RegionRole", Bits: 8, Flags: false, Prefix: "RegionRole",
			Text: "UNKNOWN=0 FUNCTION=1 WRAPPER=2 LOOP=3 CODE=4 PARALLEL=5 SECTIONS=6 SECTION=7 WORKSHARE=8 SINGLE=9 " +
				"SINGLE_SBLOCK=10 MASTER=11 CRITICAL=12 CRITICAL_SBLOCK=13 ATOMIC=14 BARRIER=15 IMPLICIT_BARRIER=16 " +
				"FLUSH=17 ORDERED=18 ORDERED_SBLOCK=19 TASK=20 TASK_CREATE=21 TASK_WAIT=22 COLL_ONE2ALL=23 " +
				"COLL_ALL2ONE=24 COLL_ALL2ALL=25 COLL_OTHER=26 FILE_IO=27 POINT2POINT=28 RMA=29 DATA_TRANSFER=30 " +
				"ARTIFICIAL=31@1.2 THREAD_CREATE=32@1.3 THREAD_WAIT=33@1.3 TASK_UNTIED=34@1.5 ALLOCATE=35@2.0 " +
				"DEALLOCATE=36@2.0 REALLOCATE=37@2.0 FILE_IO_METADATA=38@2.1 CANCEL=39@3.1 KERNEL=40@3.1"},
		{Name: "RegionFlag", Bits: 32, Flags: true, Prefix: "RegionFlag", Text: "NONE=0 DYNAMIC=1 PHASE=2"},
		{Name: "GroupType", Bits: 8, Flags: false, Prefix: "GroupType",
			Text: "UNKNOWN=0 LOCATIONS=1 REGIONS=2 METRIC=3 COMM_LOCATIONS=4 COMM_GROUP=5 COMM_SELF=6 " +
				"COMM_LOCATION_GROUPS=7@3.2"},
		{Name: "GroupFlag", Bits: 32, Flags: true, Prefix: "GroupFlag", Text: "NONE=0 GLOBAL_MEMBERS=1"},
		{Name: "Base", Bits: 8, Flags: false, Prefix: "Base", Text: "BINARY=0 DECIMAL=1"},
		{Name: "MetricOccurrence", Bits: 8, Flags: false, Prefix: "Metric",
			Text: "SYNCHRONOUS_STRICT=0 SYNCHRONOUS=1 ASYNCHRONOUS=2"},
		{Name: "MetricType", Bits: 8, Flags: false, Prefix: "MetricType", Text: "OTHER=0 PAPI=1 RUSAGE=2 USER=3"},
		{Name: "MetricMode", Bits: 8, Flags: false, Prefix: "Metric",
			Text: "ACCUMULATED_START=0 ACCUMULATED_POINT=16 ACCUMULATED_LAST=32 ACCUMULATED_NEXT=48 " +
				"ABSOLUTE_POINT=17 ABSOLUTE_LAST=33 ABSOLUTE_NEXT=49 RELATIVE_POINT=18 RELATIVE_LAST=34 " +
				"RELATIVE_NEXT=50"},
		{Name: "MetricScope", Bits: 8, Flags: false, Prefix: "MetricScope",
			Text: "LOCATION=0 LOCATION_GROUP=1 SYSTEM_TREE_NODE=2 GROUP=3"},
		{Name: "RecorderKind", Bits: 8, Flags: false, Prefix: "RecorderKind", Text: "UNKNOWN=0 ABSTRACT=1 CPU=2 GPU=3"},
		{Name: "ParameterType", Bits: 8, Flags: false, Prefix: "ParameterType", Text: "STRING=0 INT64=1 UINT64=2"},
		{Name: "CartPeriodicity", Bits: 8, Flags: false, Prefix: "CartPeriodic", Text: "FALSE=0 TRUE=1"},
		{Name: "InterruptGeneratorMode", Bits: 8, Flags: false, Prefix: "InterruptGeneratorMode",
			Text: "TIME=0 COUNT=1"},
		{Name: "IoParadigmClass", Bits: 8, Flags: false, Prefix: "IoParadigmClass", Text: "SERIAL=0 PARALLEL=1"},
		{Name: "IoParadigmFlag", Bits: 32, Flags: true, Prefix: "IoParadigmFlag", Text: "NONE=0 OS=1"},
		{Name: "IoParadigmProperty", Bits: 8, Flags: false, Prefix: "IoParadigmProperty", Text: "VERSION=0"},
		{Name: "IoHandleFlag", Bits: 32, Flags: true, Prefix: "IoHandleFlag", Text: "NONE=0 PRE_CREATED=1 ALL_PROXY=2"},
		{Name: "IoAccessMode", Bits: 8, Flags: false, Prefix: "IoAccessMode",
			Text: "READ_ONLY=0 WRITE_ONLY=1 READ_WRITE=2 EXECUTE_ONLY=3 SEARCH_ONLY=4"},
		{Name: "IoStatusFlag", Bits: 32, Flags: true, Prefix: "IoStatusFlag",
			Text: "NONE=0 CLOSE_ON_EXEC=1 APPEND=2 NON_BLOCKING=4 ASYNC=8 SYNC=16 DATA_SYNC=32 AVOID_CACHING=64 " +
				"NO_ACCESS_TIME=128 DELETE_ON_CLOSE=256"},
		{Name: "CommFlag", Bits: 32, Flags: true, Prefix: "CommFlag", Text: "NONE=0 CREATE_DESTROY_EVENTS=1"},
		{Name: "RmaWinFlag", Bits: 32, Flags: true, Prefix: "RmaWinFlag", Text: "NONE=0 CREATE_DESTROY_EVENTS=1"},
		{Name: "MeasurementMode", Bits: 8, Flags: false, Prefix: "Measurement", Text: "ON=1 OFF=2"},
		{Name: "CollectiveOp", Bits: 8, Flags: false, Prefix: "CollectiveOp",
			Text: "BARRIER=0 BCAST=1 GATHER=2 GATHERV=3 SCATTER=4 SCATTERV=5 ALLGATHER=6 ALLGATHERV=7 ALLTOALL=8 " +
				"ALLTOALLV=9 ALLTOALLW=10 ALLREDUCE=11 REDUCE=12 REDUCE_SCATTER=13 SCAN=14 EXSCAN=15 " +
				"REDUCE_SCATTER_BLOCK=16 CREATE_HANDLE=17 DESTROY_HANDLE=18 ALLOCATE=19 DEALLOCATE=20 " +
				"CREATE_HANDLE_AND_ALLOCATE=21 DESTROY_HANDLE_AND_DEALLOCATE=22"},
		{Name: "RmaSyncType", Bits: 8, Flags: false, Prefix: "RmaSyncType", Text: "MEMORY=0 NOTIFY_IN=1 NOTIFY_OUT=2"},
		{Name: "RmaSyncLevel", Bits: 32, Flags: true, Prefix: "RmaSyncLevel", Text: "NONE=0 PROCESS=1 MEMORY=2"},
		{Name: "LockType", Bits: 8, Flags: false, Prefix: "Lock", Text: "EXCLUSIVE=0 SHARED=1"},
		{Name: "RmaAtomicType", Bits: 8, Flags: false, Prefix: "RmaAtomicType",
			Text: "ACCUMULATE=0 INCREMENT=1 TEST_AND_SET=2 COMPARE_AND_SWAP=3 SWAP=4@1.4 FETCH_AND_ADD=5@1.4 " +
				"FETCH_AND_INCREMENT=6@1.4 FETCH_AND_ACCUMULATE=7@2.1"},
		{Name: "IoCreationFlag", Bits: 32, Flags: true, Prefix: "IoCreationFlag",
			Text: "NONE=0 CREATE=1 TRUNCATE=2 DIRECTORY=4 EXCLUSIVE=8 NO_CONTROLLING_TERMINAL=16 NO_FOLLOW=32 " +
				"PATH=64 TEMPORARY_FILE=128 LARGEFILE=256 NO_SEEK=512 UNIQUE=0x400"},
		{Name: "IoSeekOption", Bits: 8, Flags: false, Prefix: "IoSeek",
			Text: "FROM_START=0 FROM_CURRENT=1 FROM_END=2 DATA=3 HOLE=4"},
		{Name: "IoOperationMode", Bits: 8, Flags: false, Prefix: "IoOperationMode", Text: "READ=0 WRITE=1 FLUSH=2"},
		{Name: "IoOperationFlag", Bits: 32, Flags: true, Prefix: "IoOperationFlag",
			Text: "NONE=0 NON_BLOCKING=1 COLLECTIVE=2"},
		{Name: "CollectiveRoot", Bits: 32, Flags: false, Prefix: "CollectiveRoot",
			Text: "NONE=0xffffffff SELF=0xfffffffe THIS_GROUP=0xfffffffd"},
		{Name: "MarkerSeverity", Bits: 8, Flags: false, Prefix: "MarkerSeverity", Text: "NONE=0 LOW=1 MEDIUM=2 HIGH=3"},
		{Name: "MarkerScope", Bits: 8, Flags: false, Prefix: "MarkerScope",
			Text: "GLOBAL=0 LOCATION=1 LOCATION_GROUP=2 SYSTEM_TREE_NODE=3 GROUP=4 COMM=5"},
	}
})
