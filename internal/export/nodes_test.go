// SPDX-License-Identifier: Apache-2.0

package export

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

// The number of nodes is what NCCL tells: hosts that left data may be fewer, and NCCL's nodes need not be hosts.
// Where NCCL did not tell it (its profiler interface before version 4), it is not known.
func TestNodesAreNCCLs(t *testing.T) {
	for _, c := range []struct {
		name          string
		stated, ranks int
		prometheus    string
		jsonl         string // "": not written
	}{
		{"stated", 4, 8, `n_nodes="4"`, `"nnodes":4`},
		{"not stated, ranks without data", 0, 8, `n_nodes="unknown"`, ""},
		{"more than hosts, all left data", 4, 2, `n_nodes="4"`, `"nnodes":4`},
		{"not stated, all left data", 0, 2, `n_nodes="unknown"`, ""},
	} {
		dir := t.TempDir()
		for rank := range 2 {
			p := shardtest.New(t, dir, string(rune('a'+rank))).Launched("slurm", rank, c.ranks)
			comm := p.Comm(description.Comm{ID: 1, Name: "world", NRanks: c.ranks, Rank: rank, NNodes: c.stated,
				InitTime: shardtest.Epoch})
			p.AllReduce(comm, shardtest.Epoch+1000, shardtest.Epoch+2000, 1000) // start-up, which is in no metric
			p.AllReduce(comm, shardtest.Epoch+3000, shardtest.Epoch+4000, 1000)
			p.Finish()
		}
		a := jobtest.Open(t, jobtest.Unify(t, dir))
		out := filepath.Join(dir, "m.prom")
		testkit.Value(Prometheus(a, out, nil, nil))(t)
		testkit.Value(JSONL(a, filepath.Join(dir, "jsonl"), nil))(t)
		text := testkit.Read(t, out)
		testkit.Contains(t, string(text), c.prometheus)
		files, _ := filepath.Glob(filepath.Join(dir, "jsonl", "*"))
		lines := ""
		for _, f := range files {
			text := testkit.Read(t, f)
			lines += string(text)
		}
		testkit.Check(t, lines != "" && strings.Contains(lines, "nnodes") == (c.jsonl != "") &&
			strings.Contains(lines, c.jsonl), "%s: want %q in\n%s", c.name, c.jsonl, lines)
	}
}
