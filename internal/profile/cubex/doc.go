// SPDX-License-Identifier: Apache-2.0

// Package cubex makes CUBE profiles and summaries of what package profile has summed up: of an archive's events
// ([FromArchive]), or of what the processes of a job in profile mode left ([FromShards]).
//
// Ids are the same for the same things in all runs: regions, call paths and locations are sorted, and their names hold
// no ids of processes, communicators or memory, so that profiles of one program can be compared (cube_diff).
package cubex
