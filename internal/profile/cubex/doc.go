// SPDX-License-Identifier: Apache-2.0

// Package cubex makes CUBE profiles and summaries of the sums of package profile, from an archive's events
// ([FromArchive]) or from the files that the processes of a job in profile mode leave ([FromShards]).
//
// Profiles of one program can be compared (cube_diff): regions, call paths and locations are sorted, and no name
// contains an id of a process, a communicator or memory, so equal things have equal ids in all runs.
package cubex
