// SPDX-License-Identifier: Apache-2.0

// Package experiment describes what one job process leaves in an experiment directory before the parts
// of all processes are unified into one archive.
//
//	<experiment>/shards/<uuid>/
//	    lock          held (flock) by the collector while it writes
//	    shard.json    a Process: definitions, communicators, clock, counts; replaced as a whole
//	    <n>.evt       OTF2 event file of local location n, in local ids
//	    profile.json  profile mode, instead of event files: what they came to (package profile)
//	    done          empty; renamed into place when the collector has finished
//
// Files are their owner's only. Event files hold ids of this process: a region is an index into Process.Regions, a
// string (in attribute values) an index into Process.Strings, a communicator an index into Process.Comms (one entry per
// communicator rank), an RMA window an index into Process.Wins. Attribute ids are global already (package regions lists
// them). Unifying gives each location a mapping table instead of rewriting its events.
//
// shard.json is written before the events that use its new definitions, so whatever is found in an
// event file is defined. Sizes and counts of locations are those of the flush before.
//
// The package does not know NCCL's callbacks (package regions) nor how archives are put together
// (package scorep).
package experiment
