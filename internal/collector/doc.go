// SPDX-License-Identifier: Apache-2.0

// Package collector brings what the plugin records in one job process into a shard. It drains shared memory while the
// process runs (Run), or reads a raw file afterwards (ConvertAll).
//
//	rings ─► drain ─► modelFeed ─► regions.Model ─► destination: traceWriter, profileWriter
//	  ▲        └──────────────────────────────────► destination: transcriptWriter
//	  └── chunks of memory, once their records are on disk
//
// A recording (recording.go) consists of parts with one job each:
//
//	drain         takes records out of the rings, oldest first, and knows which have been taken
//	modelFeed     tells the model of communicators and advances its time
//	destination   is what the records become: a trace, a profile or a transcript
//	shard         is the folder and its description, shard.json
//	disk          is whether the disk can be written; diskCap is how much may be
//	diskSyncer    brings checkpoints to the disk beside everything else
//	predecessors  are collectors of the process that died, and what they left
//	losses        are the events that are missing
//
// The collector of a live process (live.go) has further ones: pluginMasks tells the plugin what to record, backlog puts
// records off, flushSchedule says when to flush, listener obeys orders to a running job (package control), gpuWatch and
// timeWatch ask the GPU driver and the time service, scarcity says how long to sleep.
//
// One round of a live collector:
//  1. It reads all clocks, and the counter's value is `now`.
//  2. It takes the records of all rings up to now − window, oldest first. A record is published some 10 ns after its
//     writer has read the clock, so all of those have been seen unless a writer was held up for longer than the window.
//     Such a late record is still taken, and counted.
//  3. It advances the model to that time.
//  4. If a flush is due, it writes shard.json, then the events, then the checkpoint. Then it gives the chunks back.
//  5. It sleeps, for a shorter time the more there was to do.
//
// When the process has ended, everything that is left in its memory is taken, and the shard gets its done marker. A
// collector that takes over from one that was killed brings the dead one's shard back to its checkpoint and continues
// in a shard of its own. Salvage does the same for memory that the process and its collector both left behind.
//
// If the disk is at fault, records wait in memory and writing is tried again. If that takes long, or the disk is as
// full as the settings allow, the plugin is told to refuse new records, which costs it no more than counting them
// (disk.go, outage.go). The collector stays until the process ends.
package collector
