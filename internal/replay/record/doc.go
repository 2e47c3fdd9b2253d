// SPDX-License-Identifier: Apache-2.0

// Package record implements record mode: it writes a process's callbacks as one line of JSON each, in the schema of
// the recordings that package replay plays (testdata/nccl-callbacks/README.md). A file is a sequence of gzip members.
// Each member is written at once, so the file is always complete up to its last member.
//
// A collector writes its process's callbacks to a Transcript instead of the model; Assemble makes a recording from the
// transcripts of a job.
package record
