// SPDX-License-Identifier: Apache-2.0

// Package ingest imports the data of other profilers into archives: the JSONL of the minimal profiler (which package
// export writes as well), NVIDIA Inspector's JSON, accl-profiler's JSONL, traces of NCCL's example plugin, dumps of
// PyTorch's Flight Recorder, traces of PyTorch's profiler, SQLite exports of Nsight Systems, and databases of
// rocprofv3.
//
// Each record becomes the NCCL callbacks that it stands for. These pass through the timeline model of package regions
// into shards, one per process, of which unify makes the archive. So an imported archive is like any other: information
// that a format lacks is missing as if it had not been recorded, and the archive's properties say so (IMPORTED_FROM,
// IMPORT_MISSING, IMPORT::…). The formats provide:
//
//	minimal profiler  times of NCCL's callbacks and raw stamps of GPUs; operations are derived anew
//	our own export    times of operations (timingSource), which are kept
//	Inspector         durations of operations; with event traces also when they were reported. Without, operations
//	                  are laid one after the other, and their times are marked "duration"
//	accl-profiler     durations of operations
//	example plugin    times of callbacks, like the minimal profiler
//	Flight Recorder   when operations were called, and how far they had come when each process was dumped
//	PyTorch profiler  times of calls and of kernels, in the steps that were profiled
//	Nsight Systems    the same, while it recorded
//	rocprofv3         the same
//
// Ordinals in records are kept, so a missing operation does not shift the later ones. Missing operations count as lost.
// Where records have losses, or a format cannot state them, no rank is reported as not having called an operation.
//
// Damaged lines are skipped and counted, and the first one is named; unusable records are counted by kind. Input is
// read process by process; the records of one process are held in memory while they are sorted by time. Of PyTorch's
// traces, what is kept of all processes is, as the orders of their calls are compared.
package ingest
