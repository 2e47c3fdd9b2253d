// SPDX-License-Identifier: Apache-2.0

// Package replay plays recordings of NCCL's profiler callbacks to a plugin again.
//
// A recording is a folder: run.json says what was run, pK.rec.jsonl.gz holds every callback that
// process K made (schema: README.md of testdata/nccl-callbacks), and pK.issue.jsonl.gz and
// pK.kernel.jsonl.gz say, as a reference, what the application asked for and what the GPU ran.
//
//	rec, err := replay.Load("testdata/nccl-callbacks/09-straggler-4p")
//	res, err := replay.Run(ctx, rec, replay.Options{
//		Host:   "build/libexec/nccl-otf2/replay-host",
//		Plugin: "build/libnccl-profiler-otf2.so",
//		Clock:  replay.ClockRecorded,
//	})
//
// What hand-made recordings say beyond that schema is described in package tests/jobtest/scenario, which makes
// them.
//
// Load gives the callbacks as typed Go values, which tests use as the ground truth. Compile turns one
// process of a recording into a program for the host (folder host), a C program that loads a
// plugin as NCCL does. Run starts one host per process, with the environment that a launcher would
// set, and collects what each delivered.
//
// What is played is what NCCL would do with the plugin at hand, not blindly what was recorded: the
// plugin's own contexts and handles take the places of the recorded ones, events that its activation
// mask leaves out are not started, and events it declines (NULL handle) are not stopped. The NCCL release of
// the recording decides which versions of the plugin interface are looked up and what a plugin for an
// older one loses; Options.API and Options.Library change who seems to call whom.
//
// A Recording is read-only after Load and may be used by several goroutines.
package replay
