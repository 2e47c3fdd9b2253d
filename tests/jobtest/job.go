// SPDX-License-Identifier: Apache-2.0

// Package jobtest makes up jobs for tests and benchmarks, whose ranks, communicators, operations and times are known,
// and writes them down as what a job leaves. A folder for each: scenario writes the callbacks of NCCL, for the plugin;
// shmtest the plugin's shared memory and raw files, for the collector; shardtest the shards of a collector, for unify;
// this package archives: of shards, unified (WriteTraining: with one late rank); large ones; and real ones, altered.
package jobtest

import (
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/scorep"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

// Make lets draw draw each process of a job (shardtest.NewRank), ends and unifies them. It returns the archive's
// anchor.
func Make(t testing.TB, ranks, perHost int, draw func(rank int, p *shardtest.Process)) string {
	t.Helper()
	dir := t.TempDir()
	for r := range ranks {
		p := shardtest.NewRank(t, dir, r, ranks, perHost)
		draw(r, p)
		p.Finish()
	}
	return Unify(t, dir)
}

// Unify makes the archive of an experiment directory that has one run, and returns its anchor.
func Unify(t testing.TB, dir string) string {
	t.Helper()
	res := testkit.Value(scorep.Unify(dir, nil))(t)
	testkit.Require(t, len(res.Runs) == 1, "%d runs", len(res.Runs))
	return res.Runs[0].Archive
}

// Open opens an archive until the test ends.
func Open(t testing.TB, anchor string) *otf2.Archive {
	t.Helper()
	a := testkit.Value(otf2.Open(anchor, nil))(t)
	t.Cleanup(func() { a.Close() })
	return a
}
