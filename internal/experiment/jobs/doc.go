// SPDX-License-Identifier: Apache-2.0

// Package jobs finds the jobs in an experiment directory from the shards of its processes (package experiment), without
// reading events. It joins the shards that several collectors wrote of one process (lives.go), determines the state of
// each process (shard.go) and how dead ones ended (death.go), groups processes to jobs (run.go), finds communicators
// (comm.go) and differences between their members' sequences of operations (sequences.go, pause.go), orders processes
// in the world (world.go), and aligns the clocks of one boot (clock.go). Package scorep makes archives of the result;
// job.go returns it to products that show a job without an archive.
package jobs
