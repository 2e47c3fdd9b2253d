// SPDX-License-Identifier: Apache-2.0

// Package experiment writes and reads shards: what each job process leaves in an experiment directory, before the
// shards of all processes are unified to one archive.
//
//	<experiment>/shards/<uuid>/
//	    lock          held (flock) by the collector while it writes
//	    shard.json    a description.Process: definitions, communicators, clock, counts; replaced as a whole
//	    <n>.evt       OTF2 event file of local location n, in local ids
//	    profile.json  profile mode, instead of event files: sums of its events (package profile)
//	    done          empty; renamed into place when the collector has finished
//
// Files are readable by their owner only. Event files hold ids of their process: a region is an index into
// Process.Regions, a string (in attribute values) into Process.Strings, a communicator into Process.Comms (one entry
// per communicator rank), an RMA window into Process.Wins. Attribute ids are global (package regions lists them).
// Unifying gives each location a mapping table instead of rewriting its events.
//
// Invariants: shard.json is written before the events that use its new definitions, so that everything in an event file
// is defined. Sizes and counts of locations are those of the previous flush. A shard is locked while it is written.
//
// The package depends neither on NCCL's callbacks (package regions) nor on the layout of archives (package scorep).
package experiment
