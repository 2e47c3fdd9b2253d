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
//  4. flush if it is time to: shard.json, then the event files, then give chunks back
//  5. sleep, less the more there was to do
//
// When the process is gone, all that is left in its memory is taken, and the shard gets its done
// marker.
package collector
