// SPDX-License-Identifier: Apache-2.0

// Package export writes archives in the formats that other tools read:
//
//	JSONL       the schema of the minimal profiler: one file per process, event and state records
//	Perfetto    the timeline in Perfetto's own format
//	Parquet     tables of operations, transfers and waits for SQL engines and data frames
//	Prometheus  a file for the node exporter's textfile collector, with NCCL Inspector's names and the report's answers
//	Chakra      execution traces of MLCommons Chakra, which simulators play: one file per rank
//	Program     the calls of NCCL, to be made again
//
// The schemas are described in docs/export.md and are stable. Package analysis matches operations and computes waits,
// so that exports agree with the report.
//
// Exports are written while the archive is read, so that memory does not grow with the number of events; Chakra keeps
// the operations of one process, and Program its whole text. Equal archives result in equal bytes. A file appears under
// its name when it is complete; a failed export leaves no files.
//
// Data that an archive lacks is omitted or null, never invented. [Result.LeftOut] counts omissions that users could
// miss.
package export
