// SPDX-License-Identifier: Apache-2.0

// Package scorep turns what the processes of a job left in an experiment directory (packages experiment and jobs)
// into OTF2 archives as Score-P's tools and Vampir expect them.
//
//	<experiment>/shards/<uuid>/…    one directory per job process
//	<experiment>/shards/unify.lock  held while Unify works
//	<experiment>/traces.otf2        the archive's anchor: written last
//	<experiment>/traces.def         global definitions
//	<experiment>/traces.marker      losses and whatever else a reader should see, if there is any
//	<experiment>/traces/<id>.evt    event files, hard links to those of the shards
//	<experiment>/traces/<id>.def    mapping tables and clock offsets
//
// Unify reads definitions only; it rewrites no event file, because every location gets tables
// that map the ids of its process to those of the archive. (Except where processes of one job wrote chunks of different
// sizes: then the files of several chunks of the rarer size.) So its cost grows with processes,
// locations and definitions, not with events. It may be called while the job runs, after crashes,
// and again: it makes the same archive from the same shards.
//
// If jobs have shared the directory, each gets an archive of its own in run-1/, run-2/, ….
//
// The model behind the definitions:
//
//   - Location groups 0…P−1 are the processes in world order, then come the GPUs of each process.
//   - A location's id is its number in the process << 32 | the process's index.
//   - A communicator is one per instance: the same commId, number of ranks, and lifetimes that
//     overlap. Ranks without data keep their place by a location without events.
//   - The transfers of a communicator's proxies are in an RMA window of its own, see network. Work that a
//     process's proxy did for another process's rank (PXN) is in the same window, if it is certain whose
//     it was, see origins.
//   - If a collector died and another took over, their shards are one process in several location groups,
//     and what follows is on communicators of its own, see continued.
//   - Processes on one boot of one machine share a clock, so their offsets are exact; between
//     machines they are fitted by package clocks, which Unify asks (UnifyOptions.Sync).
//
// What has no events, and was never written, is not invented: losses, pauses, missing processes and
// sequences that differ between the members of a communicator become markers and archive
// properties (see properties.go for the list).
//
// Merge makes one archive of a Score-P trace and of an experiment directory, in the same manner: Score-P's definitions
// and files as they are, ours behind them, on Score-P's clock. The archive under construction then knows a merger,
// which gives our processes their places among Score-P's, and their times its clock (package measurement).
//
// Archives are their owner's only (files 0600, folders 0700), and names that others have planted in the
// experiment directory are neither followed nor overwritten (see files.go).
package scorep
