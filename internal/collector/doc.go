// SPDX-License-Identifier: Apache-2.0

// Package collector brings what the plugin records in one job process into a shard: it drains shared
// memory while the process runs (Run), or a spool file afterwards (Convert).
//
//	rings ─► merge by time ─► timeline (ticks → ns) ─► regions.Model ─► event files, shard.json
//	  ▲                                                                      │
//	  └───────────── chunks, once what came of them is on disk ◄─────────────┘
//
// One round of Run:
//  1. read all clocks; the counter's value is `now`
//  2. take the records of all rings up to now − window, oldest first. A record is published some 10 ns
//     after its writer has read the clock, so those have all been seen, unless a writer was held up for longer
//     than the window. Such a late record is still taken, and counted
//  3. advance the model to that time
//  4. flush if it is time to: shard.json, then the event files, then the checkpoint, then give chunks back
//  5. sleep, less the more there was to do
//
// When the process is gone, all that is left in its memory is taken, and the shard gets its done
// marker. A collector that takes over from one that was killed brings the dead one's shard back to its checkpoint and
// goes on from there in a shard of its own; Salvage does the same for memory that both left behind.
//
// In record mode a transcript takes the model's place (package record). A running job is given orders through the
// control file of the experiment directory, which each collector looks at (package control, orders.go).
//
// Where the disk is at fault, records wait in memory and writing is tried again; when that takes long, or the disk is
// as full as it may get, the plugin is told to refuse what is new, which costs it no more than counting (disk.go). The
// collector stays until the process ends.
package collector
