// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/need"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// fewDescriptors runs a command with as few descriptors as a careful administrator allows.
var fewDescriptors = []string{"sh", "-c", `ulimit -n 256 && exec "$@"`, "sh"}

var inProfile = keeper{"profile", []string{"NCCL_OTF2_MODE=profile"}}

// crowd is a rank of a job, of which many parts come and go: what becomes of it in an archive.
type crowd struct {
	t       *testing.T
	dir     string
	keeper  keeper
	way     string
	further int
	beyond  int // calls that are not recorded
}

// crowdBegins is how many calls there are before those of the way.
const crowdBegins = 10

// run runs the rank to its end, and says what it wrote.
func (c *crowd) run() (said string) {
	c.t.Helper()
	j := beginUnder(c.t, fewDescriptors, c.dir, c.keeper, crowdBegins, c.way, c.further, "LIFE_RANKS=2")
	j.goOn()
	tooLong := time.AfterFunc(5*time.Minute, func() { _ = j.cmd.Process.Kill() })
	defer tooLong.Stop()
	if err := j.cmd.Wait(); err != nil {
		c.t.Fatalf("%v\n%s", err, j.stderr.String())
	}
	if c.keeper.name != bySpool.name {
		gone(c.t, j.collector)
	}
	return j.stderr.String()
}

// tool runs the tool with few descriptors.
func (c *crowd) tool(args ...string) string {
	c.t.Helper()
	cmd := exec.Command(fewDescriptors[0], append(
		slices.Clone(fewDescriptors[1:]), append([]string{builtFile(c.t, "nccl-otf2")}, args...)...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		c.t.Errorf("nccl-otf2 %s: %v\n%s%s", strings.Join(args, " "), err, tail(string(out)), tail(stderr.String()))
	}
	return string(out)
}

// recorded checks what the shards counted: everything once, and nothing lost.
func (c *crowd) recorded(calls int) {
	c.t.Helper()
	for _, p := range shards(c.t, c.dir) {
		for _, name := range []string{"LATE_RECORDS", "UNANSWERED"} { // on a busy machine
			delete(p.Counts.Oddities, name)
		}
		n := p.Counts.Starts["CollApi"]
		testkit.Check(c.t, n == uint64(calls), "%d calls are in the shard, want %d", n, calls)
		if n := p.Counts.Lost["comm"]["CollApi"]; n != uint64(c.beyond) || len(p.Counts.Lost) > min(c.beyond, 1) ||
			len(p.Counts.Oddities) > 0 {
			c.t.Errorf("losses %v, want %d; oddities %v", p.Counts.Lost, c.beyond, p.Counts.Oddities)
		}
	}
}

// archive checks that every call is in the archive, once, and so is its operation, on few rows.
func (c *crowd) archive(calls, rows int) *otf2.Archive {
	c.t.Helper()
	c.tool("unify", c.dir)
	anchor := filepath.Join(c.dir, "traces.otf2")
	a := testkit.Value(otf2.Open(anchor, nil))(c.t)
	c.t.Cleanup(func() { a.Close() })
	count := otf2.UndefinedAttribute
	for _, d := range a.Defs.Attributes {
		if a.Defs.String(d.Name) == "COUNT" {
			count = d.Self
		}
	}
	var called []int64
	operations := 0
	for ev, err := range a.Events(nil) {
		if err != nil {
			c.t.Fatal(err)
		}
		switch ev.Kind {
		case otf2.EventEnter:
			if a.Defs.String(a.Defs.Region(ev.Enter().Region).Name) != "ncclAllReduce" {
				continue
			}
			for _, v := range ev.Attributes {
				if v.ID == count {
					called = append(called, int64(v.Bits))
				}
			}
		case otf2.EventMpiCollectiveEnd:
			operations++
		}
	}
	slices.Sort(called)
	holds(c.t, "the process", called, calls)
	testkit.Equal(c.t, operations, calls, "operations are in the archive")
	n := len(a.Defs.Locations)
	testkit.Check(c.t, n <= rows, "%d rows, want at most %d", n, rows)
	need.Reference(c.t, "otf2-print")
	if out, err := exec.Command("otf2-print", "-Werror", "--silent", anchor).CombinedOutput(); err != nil ||
		bytes.Contains(out, []byte("INVALID")) {
		c.t.Errorf("otf2-print: %v\n%s", err, tail(string(out)))
	}
	wanted := "no findings"
	if c.beyond > 0 {
		wanted = fmt.Sprintf("note: loss: missing: %d comm coll, %[1]d comm coll api", c.beyond)
	}
	testkit.Contains(c.t, c.tool("check", anchor), wanted)
	if out := c.tool("report", anchor); strings.Contains(out, "losses         none") != (c.beyond == 0) {
		c.t.Errorf("report: %s", out[:min(len(out), 1000)])
	}
	return a
}

// Ten thousand threads, each of which makes one call: no row each, no descriptor each, and nothing lost.
func TestManyShortThreads(t *testing.T) {
	t.Parallel()
	const threads, together = 10_000, 4
	for _, k := range []keeper{byCollector, inShm, bySpool, inProfile} {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			c := &crowd{t: t, dir: filepath.Join(t.TempDir(), "experiment"), keeper: k, way: "short-threads",
				further: threads}
			said := c.run()
			testkit.Check(t, !strings.Contains(said, "NCCL_OTF2"), "the plugin said %q", said)
			const rows = regions.OwnRows + together + 2
			if k.name == inProfile.name {
				c.recorded(crowdBegins + threads)
				for _, p := range shards(t, c.dir) {
					testkit.Check(t, len(p.Locations) <= rows, "%d rows, want at most %d", len(p.Locations), rows)
				}
				c.tool("profile", c.dir)
				return
			}
			a := c.archive(crowdBegins+threads, rows)
			c.recorded(crowdBegins + threads)
			owners, ids := uint64(0), 0
			for _, p := range a.Defs.LocationProperties {
				switch a.Defs.String(p.Name) {
				case "NCCL_OTF2::OWNERS":
					owners += uint64(p.Value)
				case "NCCL_OTF2::TID":
					ids++
				}
			}
			testkit.Equal(t, owners+uint64(ids), threads+1, "%d threads had rows of others, and %d rows of their own",
				owners, ids)
		})
	}
}

// As many communicators as the plugin records, and some more, made and destroyed one after the other.
func TestManyCommunicators(t *testing.T) {
	t.Parallel()
	const most, beyond = 65536, 3
	t.Run("collector", func(t *testing.T) {
		t.Parallel()
		c := &crowd{t: t, dir: filepath.Join(t.TempDir(), "experiment"), keeper: byCollector, way: "communicators",
			further: most - 1 + beyond, beyond: beyond}
		said := c.run()
		testkit.Check(t, strings.Count(said, "NCCL_OTF2") == 1 &&
			strings.Count(said, "more than 65536 communicators") == 1, "the plugin said %q", said)
		c.recorded(crowdBegins + most - 1)
		a := c.archive(crowdBegins+most-1, regions.OwnRows+3)
		testkit.Equal(t, len(a.Defs.Comms), most, "communicators are defined")
	})
	t.Run("alone", func(t *testing.T) { // the end of each is the last one for now, and waited for
		t.Parallel()
		const some = 2000
		c := &crowd{t: t, dir: filepath.Join(t.TempDir(), "experiment"), keeper: byCollector,
			way: "communicators-alone", further: some}
		said := c.run()
		testkit.Check(t, !strings.Contains(said, "NCCL_OTF2"), "the plugin said %q", said)
		c.recorded(crowdBegins + some)
		c.archive(crowdBegins+some, regions.OwnRows+3)
	})
	t.Run("profile", func(t *testing.T) {
		t.Parallel()
		const some = 2000
		c := &crowd{t: t, dir: filepath.Join(t.TempDir(), "experiment"), keeper: inProfile, way: "communicators",
			further: some}
		said := c.run()
		testkit.Check(t, !strings.Contains(said, "NCCL_OTF2"), "the plugin said %q", said)
		c.recorded(crowdBegins + some)
		c.tool("profile", c.dir)
	})
}

// Communicators that are alive together have a row each, whatever the limit on descriptors.
func TestManyCommunicatorsAtOneTime(t *testing.T) {
	t.Parallel()
	const comms = 700 // with more rows the reference reader needs more descriptors than it usually has
	c := &crowd{t: t, dir: filepath.Join(t.TempDir(), "experiment"), keeper: byCollector, way: "communicators-together",
		further: comms}
	said := c.run()
	testkit.Check(t, !strings.Contains(said, "NCCL_OTF2"), "the plugin said %q", said)
	c.recorded(crowdBegins + 2*comms)
	c.archive(crowdBegins+2*comms, comms+3)
	for _, p := range shards(t, c.dir) {
		testkit.Check(t, !slices.ContainsFunc(p.Locations, func(l description.Location) bool { return l.Shared() }),
			"communicators that were alive at one time share a row")
	}
}

// A call without a group, of which the model waits for an operation: thousands of them are given up waiting for, while
// some are under way.
func TestManySingleCalls(t *testing.T) {
	t.Parallel()
	const calls = 300_000
	c := &crowd{t: t, dir: filepath.Join(t.TempDir(), "experiment"), keeper: byCollector, way: "single-calls",
		further: calls}
	said := c.run()
	testkit.Check(t, !strings.Contains(said, "NCCL_OTF2"), "the plugin said %q", said)
	c.archive(crowdBegins+calls, 8)
}
