// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

// halfFlushed makes a job of two processes. What the first had after half of its operations is its checkpoint; after
// the other half, which has definitions of its own, it is finished.
func halfFlushed(t *testing.T, dir string) (checkpoint []byte, bytes int64) {
	t.Helper()
	host, err := os.Hostname() // of others nobody knows whether their processes still run
	testkit.Must(t, err)
	for r := range 2 {
		p := shardtest.New(t, dir, fmt.Sprint("p", r)).On(host, 100+r).Launched("slurm", r, 2)
		world := p.Comm(description.Comm{ID: 7, Name: "world", NRanks: 2, Rank: r, InitTime: shardtest.Epoch + 1000})
		p.AllReduce(world, shardtest.Epoch+2000, shardtest.Epoch+3000, 8)
		p.Flush()
		if r == 0 {
			checkpoint = testkit.Value(os.ReadFile(filepath.Join(p.Dir, "shard.json")))(t)
			bytes = p.Shard.Locations[1].Bytes
		}
		other := p.Comm(description.Comm{ID: 8, Name: "other", NRanks: 2, Rank: r, InitTime: shardtest.Epoch + 4000})
		p.AllReduce(other, shardtest.Epoch+5000, shardtest.Epoch+6000, 8)
		p.AllReduce(world, shardtest.Epoch+7000, shardtest.Epoch+8000, 8)
		p.Call("ncclBroadcast", shardtest.Epoch+7000, shardtest.Epoch+7500)
		p.Finish()
	}
	return checkpoint, bytes
}

// serial gives a description another place in the order in which descriptions were written.
func serial(t *testing.T, text []byte, n int) []byte {
	t.Helper()
	var p map[string]any
	testkit.Must(t, json.Unmarshal(text, &p))
	p["serial"] = n
	text = testkit.Value(json.Marshal(p))(t)
	return text
}

// What is missing or damaged in a directory is named, what can be used is used, and what is missing for it is counted.
func TestDamagedShards(t *testing.T) {
	var said strings.Builder
	must := func(err error) {
		t.Helper()
		testkit.Must(t, err)
	}
	write := func(path string, text []byte) { t.Helper(); must(os.WriteFile(path, text, 0o600)) }
	sound, host := t.TempDir(), testkit.Value(os.Hostname())(t)
	halfFlushed(t, sound)
	whole := unify(t, sound, nil).Runs[0].Events
	for _, c := range []struct {
		name  string
		spoil func(dir string, checkpoint []byte, bytes int64) // of the first process's shard

	}{
		{name: "an event file is gone",
			spoil: func(dir string, _ []byte, _ int64) { must(os.Remove(filepath.Join(dir, "1.evt"))) }},
		{name: "an event file is short",
			spoil: func(dir string, _ []byte, bytes int64) { must(os.Truncate(filepath.Join(dir, "1.evt"), bytes)) }},
		{name: "an event file is empty",
			spoil: func(dir string, _ []byte, _ int64) { must(os.Truncate(filepath.Join(dir, "1.evt"), 0)) }},
		{name: "an event file is longer",
			spoil: func(dir string, _ []byte, _ int64) {
				f, err := os.OpenFile(filepath.Join(dir, "1.evt"), os.O_WRONLY|os.O_APPEND, 0)
				must(err)
				_, err = f.Write(make([]byte, 100))
				must(err)
				must(f.Close())
			}},
		{name: "zeros in an unfinished file",
			spoil: func(dir string, _ []byte, bytes int64) {
				must(os.Remove(filepath.Join(dir, "done")))
				file := filepath.Join(dir, "1.evt")
				info, err := os.Stat(file)
				must(err)
				must(os.Truncate(file, bytes-2))
				must(os.Truncate(file, info.Size()))
			}},
		{name: "an empty description",
			spoil: func(dir string, checkpoint []byte, _ int64) {
				write(filepath.Join(dir, "checkpoint.json"), checkpoint)
				write(filepath.Join(dir, "shard.json"), nil)
			}},
		{name: "a description of rubbish, and a later checkpoint that is damaged",
			spoil: func(dir string, checkpoint []byte, _ int64) {
				write(filepath.Join(dir, "durable.json"), checkpoint)
				write(filepath.Join(dir, "checkpoint.json"), checkpoint[:len(checkpoint)/2])
				write(filepath.Join(dir, "shard.json"), []byte("\x00\x00\x00"))
			}},
		{name: "no description",
			spoil: func(dir string, checkpoint []byte, _ int64) {
				write(filepath.Join(dir, "checkpoint.json"), checkpoint)
				must(os.Remove(filepath.Join(dir, "shard.json")))
			}},
		{name: "the same description twice",
			spoil: func(dir string, checkpoint []byte, _ int64) {
				write(filepath.Join(dir, "checkpoint.json"), checkpoint)
				text, err := os.ReadFile(filepath.Join(dir, "shard.json"))
				must(err)
				write(filepath.Join(dir, "durable.json"), serial(t, text, 9))
				write(filepath.Join(dir, "shard.json"), text[:len(text)-10])
			}},
		{name: "an older description",
			spoil: func(dir string, checkpoint []byte, _ int64) {
				must(os.Remove(filepath.Join(dir, "done")))
				write(filepath.Join(dir, "durable.json"), serial(t, checkpoint, 2))
				write(filepath.Join(dir, "shard.json"), serial(t, checkpoint, 1))
			}},
		{name: "events whose definitions are missing",
			spoil: func(dir string, checkpoint []byte, _ int64) {
				must(os.Remove(filepath.Join(dir, "done")))
				write(filepath.Join(dir, "shard.json"), checkpoint)
			}},
		{name: "no description that can be read",
			spoil: func(dir string, _ []byte, _ int64) { write(filepath.Join(dir, "shard.json"), []byte("{")) }},
	} {
		dir := t.TempDir()
		hide := strings.NewReplacer(dir, "DIR", host+":", "HOST:")
		checkpoint, bytes := halfFlushed(t, dir)
		c.spoil(filepath.Join(dir, "shards", "p0"), checkpoint, bytes)
		res := testkit.Value(Unify(dir, nil))(t)
		run := &res.Runs[0]
		a := open(t, run.Archive)
		fmt.Fprintf(&said, "%s: %d damaged, %d processes, %d of %d events, %d lost, %d from the disk, complete: %q\n", c.name,
			res.Damaged, run.Processes(), run.Events, whole, run.Lost, run.LostFromDisk,
			propertyText(a, "OTF2::MPI_COMMUNICATION_COMPLETE"))
		for _, problem := range append(append(res.Problems, run.Problems...), propertyText(a, "NCCL_OTF2::DAMAGED::0")) {
			fmt.Fprintf(&said, "  %s\n", hide.Replace(problem))
		}
	}
	golden.Text(t, "testdata/damaged.txt", said.String())
}

// A collector whose disk fails to the end may not even be able to cut its event files back to what it can vouch for,
// which it counts the rest as lost from. That is taken, to the event, and no file is called damaged.
func TestAFailedEndIsCutBack(t *testing.T) {
	dir, want := t.TempDir(), uint64(0)
	checkpoint, bytes := halfFlushed(t, dir)
	shard := filepath.Join(dir, "shards", "p0")
	testkit.Must(t, os.WriteFile(filepath.Join(shard, "shard.json"), checkpoint, 0o600))
	var p description.Process
	testkit.Must(t, json.Unmarshal(checkpoint, &p))
	if info, err := os.Stat(filepath.Join(shard, "1.evt")); err != nil || info.Size() <= bytes || p.Finished {
		t.Fatalf("the event file has %d bytes, of which %d are vouched for: %v", info.Size(), bytes, err)
	}
	for _, l := range p.Locations {
		want += l.Events
	}
	res := unify(t, dir, nil)
	run := &res.Runs[0]
	a := open(t, run.Archive)
	got := uint64(0)
	for _, l := range a.Defs.Locations {
		if strings.Contains(a.Defs.String(a.Defs.LocationGroups[l.Group].Name), "1") { // the other process
			continue
		}
		for _, err := range a.EventsOf(l.Self) {
			testkit.Check(t, err == nil, "%v", err)
			got++
		}
	}
	testkit.Check(t, len(res.Problems)+len(run.Problems) == 0 && res.Damaged == 0 && run.LostFromDisk <= 0 &&
		got == want, "%d of %d events, %d lost from the disk, %d damaged: %q %q", got, want, run.LostFromDisk,
		res.Damaged, res.Problems, run.Problems)
	accept(t, run.Archive)
}

// A file of such a shard that is as long as its description says, and has no end all the same, is given one.
func TestAFailedEndIsGivenOne(t *testing.T) {
	dir := t.TempDir()
	checkpoint, bytes := halfFlushed(t, dir)
	shard := filepath.Join(dir, "shards", "p0")
	testkit.Write(t, filepath.Join(shard, "shard.json"), checkpoint)
	file := filepath.Join(shard, "1.evt")
	testkit.Must(t, os.Truncate(file, bytes)) // where the end mark was are the first bytes of what came next
	tail := testkit.Read(t, file)[bytes-2:]
	testkit.Require(t, tail[0] != 2 || tail[1] != 1, "the file has an end")
	res := unify(t, dir, nil)
	accept(t, res.Runs[0].Archive)
}
