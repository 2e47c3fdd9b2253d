// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"ncclotf2/plugin/shm"
	"ncclotf2/shard"
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
		for _, stop := range []int{1, 2} { // of a type that there is not
			damaged := bytes.Clone(file)
			damaged[len(damaged)-frameHead-stop*shm.Unit+9] = 200
			f.Add(damaged[spoolHead:], host)
		}
	}
	f.Fuzz(func(t *testing.T, frames []byte, host bool) {
		name, dir := writeSpool(t, append(heads[host], frames...))
		err := Convert(name, dir)
		if err != nil {
			if errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
			if list := shards(t, dir); len(list) > 0 {
				t.Errorf("%v, and %d shards", err, len(list))
			}
			return
		}
		e := onlyShard(t, dir)
		if e.State != shard.Done || e.Err != nil {
			t.Fatalf("state %v: %v", e.State, e.Err)
		}
		announced := uint64(0)
		for _, l := range e.Process.Locations {
			announced += l.Events
		}
		if n := eventsOf(t, e); n != announced {
			t.Errorf("%d events, announced are %d", n, announced)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, shard.Folder, "*"+shard.SpoolSuffix)); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	})
}
