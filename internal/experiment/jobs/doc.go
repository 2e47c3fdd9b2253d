// SPDX-License-Identifier: Apache-2.0

// Package jobs finds the jobs in an experiment directory, from what processes left there (package experiment) and
// without reading events: what is a process, though several collectors may have written of it (lives.go); how far each
// has come (shard.go) and how those ended that died (death.go); which processes are one job (run.go); their
// communicators (comm.go) and where their members' sequences of operations differ (sequences.go, pause.go); the
// processes' order in the world (world.go); and their clocks, as far as one boot's are the same clock (clock.go).
//
// Package scorep makes archives of that, job.go tells it to whoever shows a job without an archive.
package jobs
