// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/replay/record"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shmtest"
)

// smallDisk makes a file system with room for so many KiB, and returns what gives it more.
func smallDisk(t *testing.T, dir string, kib int) (grow func()) {
	t.Helper()
	testkit.Must(t, os.Mkdir(dir, 0o700))
	needMount(t, unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dk", kib)))
	t.Cleanup(func() { testkit.Must(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	return func() { testkit.Must(t, unix.Mount("tmpfs", dir, "tmpfs", unix.MS_REMOUNT, "size=64m")) }
}

// A disk that cannot be written for a while, and then can: what was recorded is all there. If it takes long, nothing
// new is recorded meanwhile; that is counted, marked and told once, and the operations that follow keep their places.
func TestDiskComesBack(t *testing.T) {
	impatient(t)
	for _, tc := range []struct {
		name string
		// disk prepares the experiment directory, and returns what makes its disk fail and what mends it.
		disk func(t *testing.T, dir string) (fail, mend func())
	}{
		{"full", func(t *testing.T, dir string) (fail, mend func()) { return func() {}, smallDisk(t, dir, 192) }},
		{"renamed", func(t *testing.T, dir string) (fail, mend func()) {
			return func() { testkit.Must(t, os.Rename(dir, dir+".old")) },
				func() { testkit.Must(t, os.Rename(dir+".old", dir)) }
		}},
		{"read-only", func(t *testing.T, dir string) (fail, mend func()) {
			mutable := func() {}
			return func() { mutable = makeImmutable(t, onlyShard(t, dir).Path) }, func() { mutable() }
		}},
		{"something in the way", func(t *testing.T, dir string) (fail, mend func()) {
			way := ""
			return func() {
				way = filepath.Join(onlyShard(t, dir).Path, "shard.json")
				testkit.Must(t, os.Remove(way))
				testkit.Must(t, os.Mkdir(way, 0o700))
			}, func() { testkit.Must(t, os.Remove(way)) }
		}},
	} {
		for _, mode := range []string{"trace", "record", "profile"} {
			for _, short := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s %s short=%v", tc.name, mode, short), func(t *testing.T) {
					if tc.name == "full" && (short || mode == "profile") {
						return // how short it is full is not for us to say; profiles hardly grow
					}
					if short {
						diskPatience = time.Hour
						defer func() { diskPatience = 100 * time.Millisecond }()
					}
					diskComesBack(t, tc.disk, mode, short)
				})
			}
		}
	}
}

func diskComesBack(t *testing.T, disk func(t *testing.T, dir string) (fail, mend func()), mode string, short bool) {
	dir := filepath.Join(t.TempDir(), "experiment")
	fail, mend := disk(t, dir)
	job, process, a := newCaller(t, shmtest.Options{Clock: shm.ClockMonotonic, Chunks: 64})
	settings := []string{"NCCL_OTF2_DIR=" + dir, "NCCL_OTF2_EVENTS=light"}
	if mode != "trace" {
		settings = append(settings, "NCCL_OTF2_MODE="+mode)
	}
	wait := startRun(t, job, Options{Lookup: environment(settings...)})
	memory := mapped(t, job)
	refuses := func() bool { _, record := job.Masks(); return record&shm.RecordFull != 0 }
	called, recorded := uint64(0), uint64(0)
	call := func(n int) {
		for range n {
			if !refuses() {
				a.allReduce(called)
				recorded++
			} else {
				setRefused(job, memory, 0, called)
				for range perCall { // of which types is all the same here
					lost := &job.Header().Lost[shm.LossDisk][shm.EventColl]
					*lost++
				}
			}
			called++
			setCalled(job, 0, called)
		}
	}
	call(50)
	flushAll(t, job)
	fail()
	if short {
		call(30)
		flushAll(t, job)
		call(30)
	} else {
		for i := 0; i < 400 && !refuses(); i++ {
			call(100)
			flushAll(t, job)
			time.Sleep(time.Millisecond)
		}
		testkit.Require(t, shmtest.Await(refuses), "the plugin goes on recording")
		call(70)
	}
	mend()
	testkit.Require(t, shmtest.Await(func() bool { return !refuses() }), "recording does not go on")
	call(50)
	flushAll(t, job)
	_, n := memory.Message()
	testkit.Check(t, n <= 1, "%d messages", n)
	process.end()
	testkit.Must(t, wait())
	e := onlyShard(t, dir)
	p := e.Process
	if e.State != experiment.Done || !p.Finished || starts(p) != recorded*perCall ||
		p.Counts.Oddities[oddDiskErrors] == 0 {
		t.Errorf("state %v, finished %v, %d starts of %d, oddities %v", e.State, p.Finished, starts(p),
			recorded*perCall, p.Counts.Oddities)
	}
	for i := range p.Locations {
		l := &p.Locations[i]
		s, err := otf2.ScanEventFile(filepath.Join(e.Path, fmt.Sprintf("%d.evt", l.Number)), p.EventChunkSize)
		testkit.Check(t, mode == "profile" || err == nil && s.Complete && s.Events == l.Events,
			"location %d: %d events are announced, the file has %+v, %v", l.Number, l.Events, s, err)
	}
	lost := uint64(0)
	for _, n := range p.Counts.Lost["disk"] {
		lost += n
	}
	testkit.Check(t, recorded*perCall+lost == called*perCall && (lost > 0) != short,
		"%d calls, %d recorded, %d events lost", called, recorded, lost)
	if mode == "record" {
		lines := 0
		testkit.Must(t, record.EachLine(record.Path(dir, p.UUID), func(line []byte) error {
			if strings.Contains(string(line), `"f":"start"`) {
				lines++
			}
			return nil
		}))
		testkit.Check(t, uint64(lines) == recorded*perCall,
			"%d starts in the recording, want %d", lines, recorded*perCall)
		return
	}
	c := &p.Comms[0]
	testkit.Equal(t, c.Sequences["AllReduce"].Count, recorded, "operations")
	stopped := 0
	for _, m := range p.Markers {
		if m.Category == "NCCL recording stopped" {
			stopped++
		}
	}
	if short {
		testkit.Check(t, len(c.Gaps) == 0 && stopped <= 0, "gaps %+v, markers %+v", c.Gaps, p.Markers)
		return
	}
	testkit.Check(t, len(c.Gaps) == stopped && stopped != 0 && c.Gaps[stopped-1].To == called-50,
		"%d stretches marked, gaps %+v of %d calls", stopped, c.Gaps, called)
	missing := uint64(0)
	for _, g := range c.Gaps {
		missing += g.To - g.From
	}
	testkit.Check(t, missing == called-recorded, "%d operations in gaps %+v, want %d", missing, c.Gaps, called-recorded)
}

// What a disk that fails to the end of the process has of it is what it had at the last flush: files and counts agree
// with each other, and all else is counted as lost.
func TestDiskStaysBroken(t *testing.T) {
	impatient(t)
	for _, flushed := range []bool{true, false} {
		t.Run(fmt.Sprintf("flushed=%v", flushed), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "experiment")
			job, process, a := newCaller(t, shmtest.Options{Clock: shm.ClockMonotonic, Chunks: 64})
			wait := startRun(t, job, Options{Lookup: environment("NCCL_OTF2_DIR="+dir, "NCCL_OTF2_EVENTS=light")})
			calls := uint64(0)
			call := func(n int) {
				for range n {
					a.allReduce(calls)
					calls++
				}
				flushAll(t, job)
			}
			if flushed {
				call(100)
			}
			// Whatever is written after the events has something in its way: so some of them come to the disk.
			flushAll(t, job) // now it is there
			entries := testkit.Value(experiment.List(dir))(t)
			way := filepath.Join(entries[0].Path, experiment.CheckpointFile)
			testkit.Must(t, os.RemoveAll(way))
			testkit.Must(t, os.MkdirAll(filepath.Join(way, "full"), 0o700))
			call(100)
			call(100)
			process.end()
			testkit.Check(t, wait() != nil, "the collector tells of no error")
			e := onlyShard(t, dir)
			p := e.Process
			lost := uint64(0)
			for _, n := range p.Counts.Lost["disk"] {
				lost += n
			}
			if p.Finished || starts(p)+lost != calls*perCall || (starts(p) > 0) != flushed || lost < 200*perCall {
				t.Errorf("finished %v, %d starts and %d lost, want %d", p.Finished, starts(p), lost, calls*perCall)
			}
			for i := range p.Locations {
				l := &p.Locations[i]
				path := filepath.Join(e.Path, fmt.Sprintf("%d.evt", l.Number))
				s, err := otf2.ScanEventFile(path, p.EventChunkSize)
				info, failed := os.Stat(path)
				if err != nil || failed != nil || !s.Complete || s.Events != l.Events || info.Size() != l.Bytes {
					t.Errorf("location %d: %d events in %d bytes are announced, the file has %+v, %v", l.Number,
						l.Events, l.Bytes, s, err)
					continue
				}
				b, _ := os.ReadFile(path)
				testkit.Equal(t, binary.LittleEndian.Uint64(b[lastEventAt:]), l.Events,
					"location %d: events in the header", l.Number)
			}
			if files, _ := filepath.Glob(filepath.Join(e.Path, "*.evt")); len(files) != len(p.Locations) {
				t.Errorf("%d event files of %d locations", len(files), len(p.Locations))
			}
			_, err := os.Stat(filepath.Join(e.Path, "done"))
			testkit.Check(t, (err == nil || os.IsNotExist(err)) && os.IsNotExist(err) == (e.State != experiment.Done),
				"%v", err)
		})
	}
}
