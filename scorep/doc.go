// SPDX-License-Identifier: Apache-2.0

// Package scorep writes OTF2 archives, as Score-P's tools and Vampir expect them, from what the processes of a job left
// in an experiment directory (packages experiment and jobs).
//
//	<experiment>/shards/<uuid>/…    one directory per job process
//	<experiment>/shards/unify.lock  held while Unify works
//	<experiment>/traces.otf2        the archive's anchor, written last
//	<experiment>/traces.def         global definitions
//	<experiment>/traces.marker      losses and other remarks for readers, if there are any
//	<experiment>/traces/<id>.evt    event files, hard links to those of the shards
//	<experiment>/traces/<id>.def    mapping tables and clock offsets
//
// Unify usually reads definitions only: each location gets tables that map its process's ids to the archive's. So the
// cost grows with processes, locations and definitions, not with events. Event files are copied or rewritten only if
// they are unfinished or damaged, have another chunk size, were written by several collectors, or have ends to move.
// Unify may be called while the job runs, after crashes, and repeatedly: from the same shards it makes the same
// archive.
//
// If several jobs shared the directory, each gets its own archive in run-1/, run-2/, ….
//
// The model behind the definitions:
//
//   - Location groups 0…P−1 are the processes in world order. The GPUs of each process follow.
//   - A location's id is its number in the process << 32 | the process's index.
//   - A communicator is defined once per instance: the same commId, number of ranks, and overlapping lifetimes.
//     A location without events takes the place of a rank without data.
//   - The transfers of a communicator's proxies are in a separate RMA window, see network. Work that a process's
//     proxy did for another process's rank (PXN) is in the same window if its originator is certain, see origins.
//   - If a collector died and another one took over, their shards become one process with one set of rows.
//   - Processes of one boot of one machine share a clock, so their offsets are exact. The clocks of different machines
//     are fitted by package clocks if UnifyOptions.Sync is set.
//
// Missing events are not invented. Losses, pauses, missing processes, and sequences that differ between the members of
// a communicator become markers and archive properties (see properties.go for the list).
//
// Merge writes one archive from a Score-P trace and an experiment directory in the same way: Score-P's definitions and
// files unchanged, ours after them, on Score-P's clock. Its base is a merger, which places our processes among
// Score-P's and converts their times (package measurement).
//
// Only the owner can write archives, and names that others have planted in the experiment directory are neither
// followed nor overwritten (see package files).
package scorep
