// SPDX-License-Identifier: Apache-2.0

// Package ingest makes archives of what other profilers wrote, as far as its content goes: the JSONL of the minimal
// profiler, which package export writes as well, NVIDIA Inspector's JSON, accl-profiler's JSONL, and traces of NCCL's
// example plugin.
//
// Records become the callbacks that they stand for and go through the timeline model of package regions into shards,
// one per process; unify makes the archive. So an imported archive is like any other: what a format does not tell is
// missing as if it had not been recorded, and the archive's properties say so (IMPORTED_FROM, IMPORT_MISSING,
// IMPORT::…).
//
//	records of the minimal profiler   have the times of NCCL's callbacks, and of GPUs the raw stamps: everything
//	                                  is worked out anew
//	records of our own export         have the times of operations (timingSource), which are taken over
//	Inspector's                       have the length of operations; with event traces also when they were reported.
//	                                  Without, operations are laid one behind the other, and their times are marked "duration"
//	accl-profiler's                   have the length of operations
//	the example plugin's              have the times of callbacks, like the minimal profiler's
//
// Ordinals that records give are those of the archive: what is missing before an operation does not move it. Missing
// operations are counted as lost, and of nobody whose record has losses, or is of a format that cannot tell, is it said
// that it did not call an operation.
//
// Each line counts: what is damaged is skipped and counted, the first one named; what cannot be used is counted by
// kind. Input is read process by process; one process's records are held in memory while they are put in order of time.
package ingest
