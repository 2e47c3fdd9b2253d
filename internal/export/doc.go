// SPDX-License-Identifier: Apache-2.0

// Package export writes what is in an archive in the forms that other tools read:
//
//	JSONL       the schema of the minimal profiler: one file per process, event and state records
//	Perfetto    the timeline in Perfetto's own format
//	Parquet     tables of operations, transfers and waits for SQL engines and data frames
//	Prometheus  a file for the node exporter's textfile collector, with NCCL Inspector's names and the report's answers
//
// The schemas stand in docs/export.md; they are stable. Which operations belong together and who waited for whom comes
// from package analysis, so that an export says what the report says.
//
// Everything is written as the archive is read: memory does not grow with the number of events. The same archive
// gives the same bytes. A file appears under its name when it is complete; what is left of a failed export is removed.
//
// What an archive does not hold is left out or null, never made up, and counted in [Result.LeftOut] where somebody
// could miss it.
package export
