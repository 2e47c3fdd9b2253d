// SPDX-License-Identifier: Apache-2.0

// Package record is record mode: the callbacks of a process as lines of JSON, one for each, in the schema of the
// recordings that package replay plays (testdata/nccl-callbacks/README.md). A file is a row of gzip members, each
// written as a whole, so that it is always whole as of its last member.
//
// A collector writes its process's callbacks to a Transcript, in the model's place; Assemble makes a recording of the
// transcripts of a job.
package record
