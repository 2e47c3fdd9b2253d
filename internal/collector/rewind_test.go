// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// threadEvents counts the events of application threads in event files.
func threadEvents(t *testing.T, e experiment.Entry) (n uint64) {
	t.Helper()
	for _, l := range e.Process.Locations {
		if l.Kind != description.KindThread {
			continue
		}
		s, err := otf2.ScanEventFile(filepath.Join(e.Path, itoa(int(l.Number))+".evt"), chunkSize)
		testkit.Check(t, err == nil && s.Complete && s.Events == l.Events,
			"%s: %+v, %v; the description says %d events", e.Path, s, err, l.Events)
		n += s.Events
	}
	return n
}

// A collector is killed at any moment, again and again: whatever had reached the disk, each call is in the shards
// once in the end. The two calls that a kill falls into may be incomplete.
func TestKillsAtAnyMoment(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const kills = 6
	n := killedAgain(t, kills, 800, 1024, "NCCL_OTF2_DIR="+dir, "NCCL_OTF2_EVENTS=light")
	total, events, done := uint64(0), uint64(0), 0
	for _, e := range shards(t, dir) {
		total += starts(e.Process)
		events += threadEvents(t, e)
		if e.State == experiment.Done {
			done++
		}
	}
	testkit.Check(t, total == n*perCall && done == 1, "%d starts, want %d; %d shards are done", total, n*perCall, done)
	const perThreadCall = 4 // the call and the launch in it
	want := n * perThreadCall
	testkit.Check(t, events <= want && events >= want-kills*perThreadCall, "%d events of calls, want %d", events, want)
}

func TestCutEvents(t *testing.T) {
	for _, chunk := range []int64{chunkSize, scorepChunkSize} {
		path := filepath.Join(t.TempDir(), "0.evt")
		w := testkit.Value(otf2.CreateEventWriter(path, &otf2.EventWriterOptions{ChunkSize: uint64(chunk)}))(t)
		type state struct {
			bytes  int64
			events uint64
		}
		var states []state
		for i := range 200 {
			for range int64(i*20) * chunk / chunkSize {
				testkit.Must(t, w.Enter(otf2.Timestamp(i), nil, 0))
			}
			testkit.Must(t, w.Flush())
			states = append(states, state{w.Size(), w.Events()})
		}
		testkit.Must(t, w.Close())
		whole := testkit.Value(os.ReadFile(path))(t)
		testkit.Require(t, int64(len(whole)) >= 3*chunk, "%d bytes are too few chunks", len(whole))
		for i := len(states) - 1; i >= 0; i -= int(chunk/chunkSize) * fewUnderRace(1, 9) {
			s := states[i]
			testkit.Must(t, cutEvents(path, chunk, s.bytes, s.events))
			got, err := otf2.ScanEventFile(path, uint64(chunk))
			testkit.Require(t, err == nil && got.Complete && got.Events == s.events, "cut to %+v: %+v, %v", s, got, err)
		}
		testkit.Check(t, cutEvents(path, chunk, 1<<20, 5) != nil, "a file is cut to more than it has")
	}
}
