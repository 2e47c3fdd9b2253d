// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/otf2/otf2test"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

// FuzzShardDescription: whatever stands in a shard's description, unifying gives an archive whose
// definitions can be read, or an error.
func FuzzShardDescription(f *testing.F) {
	dir := f.TempDir()
	for _, p := range job(f, dir, 2, 2, func(rank int, p *shardtest.Process) {
		p.Shard.Markers = []description.Marker{{Time: t0, Category: "Loss", Text: "some", Location: 1}}
		p.Shard.Counts.Lost = map[string]map[string]uint64{"ring": {"Coll": 1}}
	}) {
		p.Finish()
		text := testkit.Read(f, filepath.Join(p.Dir, "shard.json"))
		f.Add(text)
	}
	f.Add([]byte(`{"version":2,"eventChunkSize":262144,"comms":[{"nranks":2,"rank":1,"location":-1,"gpu":7}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		dir := t.TempDir()
		one := filepath.Join(dir, "shards", "one")
		testkit.Must(t, os.MkdirAll(one, 0o777))
		for _, name := range []string{"shard.json", "done"} {
			testkit.Write(t, filepath.Join(one, name), text)
		}
		res, err := Unify(dir, nil)
		if err != nil {
			return
		}
		for _, r := range res.Runs {
			a := testkit.Value(otf2.Open(r.Archive, nil))(t)
			testkit.Check(t, uint64(len(a.Defs.Order)) == a.Anchor.GlobalDefs,
				"%d definitions, the anchor says %d", len(a.Defs.Order), a.Anchor.GlobalDefs)
			a.Close()
		}
	})
}

// FuzzMerge: whatever stands in a Score-P trace, merging is an error in one line, or makes an archive that opens.
func FuzzMerge(f *testing.F) {
	dir := mpiTSC.job(f, nil)
	otf2test.Fuzz(f, []string{filepath.Join(mpiTSC.dir, "traces.otf2")}, func(t *testing.T, anchor string) {
		res, err := Merge(filepath.Dir(anchor), dir, filepath.Join(t.TempDir(), "merged"), nil)
		if err != nil {
			testkit.Check(t, !strings.Contains(err.Error(), "\n"), "more than a line: %v", err)
			return
		}
		a := testkit.Value(otf2.Open(res.Archive, nil))(t)
		a.Close()
	})
}
