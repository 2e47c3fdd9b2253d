// SPDX-License-Identifier: Apache-2.0

// Package cube writes and reads profiles of the CUBE4 format (files *.cubex), as Score-P and Scalasca make them and the
// CUBE tools and browser show them, without their libraries. It is independent of what is measured.
//
// A profile has three dimensions: metrics (a forest), call paths (a forest of cnodes, each a call of a region) and
// the system (nodes, location groups, locations). It holds one value for each metric, cnode and location.
//
// # Writing
//
// [Definitions] are plain tables in which the place of an entry is its id. [Create] checks them, and refuses what would
// make readers crash or misread: see [Definitions.Check]. [Writer.WriteMetric] asks for the values of a metric row by
// row, in the order of the file. One row is held at a time (with Options.Compress also the compressed values of one
// metric), beside the definitions and a few bytes per cnode. The same input gives the same bytes.
//
// # Reading
//
// [Open] reads the definitions and looks over all indices; [Profile.Row] reads the values of a metric at a cnode. Where
// the reference readers silently read zeros, an error says what is wrong. Package cubeprint makes text of a profile.
//
// # Files
//
// A profile is a tar file with the members
//
//	<id>.data <id>.index              values of the metric with that id, and which cnodes have some
//	ghost_<id>.data ghost_<id>.index  the same of a hidden metric
//	anchor.xml                        all definitions
//	others                            whatever programs add
//
// Readers of the format expect one block more than tar behind a member whose size is a multiple of 512 bytes. No member
// that is written here has such a size, so both read the same.
//
// The facts about the format and its readers come from CubeW 4.8 and CubeLib 4.8.2: the libraries' sources, and their
// tools on generated and damaged profiles.
package cube
