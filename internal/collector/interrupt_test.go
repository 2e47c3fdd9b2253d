// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shmtest"
)

// muchWork is a collector whose process has ended and left more than is decoded in some steps, in a backlog or in its
// memory.
func muchWork(t *testing.T, when string) (c *live, dir string, calls uint64) {
	t.Helper()
	lazily(t, time.Hour, mostBacklog)
	was := graceOfRest
	graceOfRest = 0
	t.Cleanup(func() { graceOfRest = was })
	dir = t.TempDir()
	job, process, a := newCaller(t, shmtest.Options{Clock: shm.ClockMonotonic, Chunks: 512})
	r := collect(t, job, dir)
	c = newPatient(r, when)
	for calls*2*perCall < 5*catchUp {
		a.allReduce(calls)
		calls++
	}
	n := testkit.Value(c.round())(t)
	testkit.Check(t, n <= catchUp, "%d records in one round", n)
	process.end()
	c.life.ended = true
	return c, dir, calls
}

// A collector that is told to end while it decodes what is left does so after the step at hand. What it has not come to
// is in the backlog, from which everything is made later.
func TestSignalWhileDecoding(t *testing.T) {
	for _, when := range []string{"on", "off"} {
		t.Run(when, func(t *testing.T) {
			c, dir, calls := muchWork(t, when)
			term := make(chan os.Signal, 1)
			term <- unix.SIGTERM
			c.life.term = term
			before := c.drain.records
			c.drainEnded()
			taken := c.drain.records - before
			testkit.Check(t, taken <= 3*catchUp, "%d records were decoded after the signal", taken)
			err := c.finish(true)
			testkit.Check(t, errors.Is(err, errUnread), "%v", err)
			got := allStarts(t, dir)
			testkit.Check(t, got < calls*perCall, "%d starts of %d are in the shard", got, calls*perCall)
			saved := testkit.Value(Salvage(dir))(t)
			got = allStarts(t, dir)
			testkit.Check(t, saved == 1 && got == calls*perCall && backlogs(t, dir) == nil,
				"%d starts of %d, of %d processes; backlogs of %v bytes", got, calls*perCall, saved, backlogs(t, dir))
		})
	}
}

// What is left is not decoded when there is no folder any more to which it could be written.
func TestDecodingEndsWithTheDirectory(t *testing.T) {
	c, dir, _ := muchWork(t, "off")
	testkit.Must(t, os.RemoveAll(filepath.Join(dir, experiment.Folder)))
	before := c.drain.records
	c.drainEnded()
	taken := c.drain.records - before
	testkit.Check(t, taken <= 3*catchUp, "%d records were decoded", taken)
	testkit.Check(t, c.finish(true) != nil, "nothing was wrong")
}

// What a job's last collector makes when it was told to end is given up after a while.
func TestSignalWhileAnArchiveIsMade(t *testing.T) {
	was := graceAfterTerm
	graceAfterTerm = time.Millisecond
	t.Cleanup(func() { graceAfterTerm = was })
	tool := filepath.Join(t.TempDir(), "tool")
	testkit.Must(t, os.WriteFile(tool, []byte("#!/bin/sh\nexec sleep 3600\n"), 0o700))
	term := make(chan os.Signal, 1)
	term <- unix.SIGTERM
	for range 2 {
		err := finish(tool, &Outcome{Experiment: t.TempDir()}, term)
		testkit.Check(t, errors.Is(err, errGivenUp), "%v", err)
	}
}
