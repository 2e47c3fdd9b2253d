// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

// Jobs in profile mode are described as their archives would be; they get none, and do not get into those of others.
func TestDescribe(t *testing.T) {
	dir := t.TempDir()
	job := func(name string, id uint64, profile bool) {
		for r := range 2 {
			p := shardtest.New(t, dir, fmt.Sprint(name, r)).On("node0", int(id)+r).Launched(name, r, 2)
			if profile {
				p.Shard.Settings = map[string]string{"MODE": "profile"}
			}
			p.Comm(description.Comm{ID: id, Name: name, NRanks: 2, Rank: r, InitTime: shardtest.Epoch + 1000*id})
			p.Finish()
		}
	}
	job("one", 100, true)
	_, err := Unify(dir, nil)
	testkit.Check(t, errors.Is(err, fs.ErrNotExist), "unify: %v", err)
	jobs, left, err := Describe(dir)
	testkit.Require(t, err == nil && len(left.Problems) == 0 && len(jobs) == 1 && jobs[0].Dir == dir,
		"%d jobs, %v, %v", len(jobs), left, err)
	d := jobs[0]
	testkit.Check(t, len(d.Shards) == 2 && d.Hosts == 1 && d.Crashed+d.Running+d.Missing == 0 && len(d.Defs.Comms) == 1,
		"description %+v", d)
	for i, s := range d.Shards {
		ref, ok := s.Location(1)
		l := d.Defs.Location(ref)
		testkit.Check(t, ok && l != nil &&
			d.Defs.String(l.Name) == fmt.Sprintf("one rank %d", s.Process.Launcher.Rank) &&
			l.Type == otf2.LocationTypeAcceleratorStream, "shard %d: location %v, %+v", i, ref, l)
		_, ok = s.Location(7)
		testkit.Check(t, !ok, "a location that there is not has an id")
	}

	job("two", 200, true)
	job("traced", 300, false)
	if jobs, _, err = Describe(dir); err != nil || len(jobs) != 2 || jobs[1].Dir != filepath.Join(dir, "run-2") {
		t.Fatalf("%d jobs, %v", len(jobs), err)
	}
	if _, err := os.Stat(jobs[1].Dir); err == nil {
		t.Error("describing made a folder")
	}
	if err := jobs[1].MakeDir(); err != nil {
		t.Error(err)
	}
	res, err := Unify(dir, nil)
	testkit.Check(t, err == nil && len(res.Runs) == 1 && res.Runs[0].Processes() == 2, "unify: %+v, %v", res, err)
}
