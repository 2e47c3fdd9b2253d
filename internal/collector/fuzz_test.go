// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/config"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/scorep"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shmtest"
)

// spoolHead is where the frames behind a spool file's first one, its header, begin.
const (
	frameHead = 32
	spoolHead = frameHead + shm.HeaderSize
)

// FuzzSpool: whatever stands behind the header of a spool file, its conversion gives a whole shard, or an error that
// says why not.
func FuzzSpool(f *testing.F) {
	heads := make(map[bool][]byte)
	for _, host := range []bool{true, false} {
		clock := shm.ClockMonotonic
		if host {
			clock = shm.ClockHost
		}
		file, _ := spoolOf(f, clock, 1)
		heads[host] = file[:spoolHead:spoolHead]
		f.Add(file[spoolHead:], host)
		f.Add(file[spoolHead:len(file)-frameHead], host) // without its end
		for _, stop := range []int{1, 2} {               // of a type that there is not
			damaged := bytes.Clone(file)
			damaged[len(damaged)-frameHead-stop*shm.Unit+9] = 200
			f.Add(damaged[spoolHead:], host)
		}
	}
	f.Fuzz(func(t *testing.T, frames []byte, host bool) {
		name, dir := writeSpool(t, append(heads[host], frames...))
		err := convert(name, dir)
		if err != nil {
			testkit.Require(t, !errors.Is(err, os.ErrNotExist), "%v", err)
			list := shards(t, dir)
			testkit.Check(t, len(list) == 0, "%v, and %d shards", err, len(list))
			return
		}
		e := onlyShard(t, dir)
		testkit.Require(t, e.State == experiment.Done && e.Err == nil, "state %v: %v", e.State, e.Err)
		announced := uint64(0)
		for _, l := range e.Process.Locations {
			announced += l.Events
		}
		n := eventsOf(t, e)
		testkit.Check(t, n == announced, "%d events, announced are %d", n, announced)
		left, _ := filepath.Glob(filepath.Join(dir, experiment.Folder, "*"+experiment.SpoolSuffix))
		whole := e.Process.Settings[settingWhole] == "true"
		testkit.Check(t, len(left) > 0 != whole, "whole: %v, left: %v", whole, left)
	})
}

// FuzzCheckpoint: whatever a dead collector's checkpoint and description say, one that takes over records what comes,
// and what both have left makes an archive or an error.
func FuzzCheckpoint(f *testing.F) {
	job := testkit.Value(shmtest.New(shmtest.Options{Clock: shm.ClockMonotonic, Chunks: 16}))(f)
	f.Cleanup(func() { job.Close() })
	a := newApplication(job, 0, monotonic)
	for i := range uint64(5) {
		a.allReduce(i)
	}
	base := f.TempDir()
	first := collect(f, job, base)
	first.drainAll()
	testkit.Must(f, first.flush())
	bury(f, first)
	text := testkit.Value(os.ReadFile(filepath.Join(first.shard.store.Path(), experiment.CheckpointFile)))(f)
	f.Add(text, true)
	f.Add(text, false)
	for _, word := range []string{`"bytes":`, `"events":`, `"number":`, `"TAKEN":"`, `"nranks":`, `"eventChunkSize":`} {
		f.Add(bytes.Replace(text, []byte(word), []byte(word+"7"), 1), false)
		f.Add(bytes.ReplaceAll(text, []byte(word), []byte(word+"99")), true)
	}
	f.Add(text[:len(text)/2], false)
	f.Fuzz(func(t *testing.T, text []byte, both bool) {
		dir := t.TempDir()
		testkit.Must(t, os.CopyFS(dir, os.DirFS(base)))
		dead := filepath.Join(dir, experiment.Folder, filepath.Base(first.shard.store.Path()))
		names := []string{experiment.CheckpointFile}
		if both {
			names = append(names, "shard.json")
		}
		for _, name := range names {
			testkit.Must(t, os.WriteFile(filepath.Join(dead, name), text, 0o600))
		}
		r := collect(t, job, dir)
		r.drainAll()
		testkit.Must(t, r.finish(true))
		_, _ = scorep.Unify(dir, nil)
	})
}

// FuzzMemory: whatever stands in the memory that a process left, taking what is whole of it gives a shard, or an error.
func FuzzMemory(f *testing.F) {
	job := testkit.Value(shmtest.New(shmtest.Options{Clock: shm.ClockMonotonic, Chunks: 8}))(f)
	f.Cleanup(func() { job.Close() })
	a := newApplication(job, 0, monotonic)
	for i := range uint64(3) {
		a.allReduce(i)
	}
	whole := job.Bytes()
	var used []uint32 // what is worth changing: memory is large, and mostly empty
	for i, b := range whole {
		if b != 0 {
			used = append(used, uint32(i))
		}
	}
	places := fewUnderRace(64, 8)
	for i := range places {
		f.Add(uint32(i*len(used)/places), []byte{0xff}, uint32(0), []byte{})
		f.Add(uint32(i*len(used)/places), []byte{0xff, 0xff, 0xff, 0x7f}, uint32(i), []byte{1})
	}
	f.Fuzz(func(t *testing.T, at uint32, patch []byte, at2 uint32, patch2 []byte) {
		fd := testkit.Value(unix.MemfdCreate("fuzz", unix.MFD_CLOEXEC))(t)
		b := bytes.Clone(whole)
		copy(b[used[int(at)%len(used)]:], patch)
		copy(b[used[int(at2)%len(used)]:], patch2)
		testkit.Value(unix.Write(fd, b))(t)
		memory, err := shm.Map(fd)
		if err != nil {
			return
		}
		defer memory.Close()
		dir := t.TempDir()
		r, err := newRecording(memory, config.RecordedSettings(map[string]string{"EVENTS": "all"}),
			config.Launcher{Rank: -1, Size: -1}, dir, "one")
		if err != nil {
			return
		}
		testkit.Value(memory.Refresh())(t)
		r.drainAll()
		testkit.Must(t, r.finish(true))
		e := onlyShard(t, dir)
		testkit.Require(t, e.State == experiment.Done && e.Err == nil, "state %v: %v", e.State, e.Err)
		res := testkit.Value(scorep.Unify(dir, nil))(t)
		testkit.Check(t, res.Damaged <= 0 || len(res.Problems) != 0, "%+v", res)
	})
}
