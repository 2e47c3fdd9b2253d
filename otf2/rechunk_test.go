// SPDX-License-Identifier: Apache-2.0

package otf2

import (
	"path/filepath"
	"reflect"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// fill writes n events with what can precede and follow them.
func fill(t *testing.T, w *EventWriter, n int) {
	t.Helper()
	var a AttributeList
	for i := range n {
		a.Reset()
		if i%3 == 0 {
			a.Uint64(1, uint64(i))
			a.String(2, StringRef(i%7))
		}
		testkit.Must(t, w.Enter(Timestamp(1000+i/2), &a, RegionRef(i%100)))
		testkit.Must(t, w.MpiSend(Timestamp(1000+i/2), nil, 1, 2, 3, uint64(i)))
		testkit.Must(t, w.Leave(Timestamp(1000+i/2), nil, RegionRef(i%100)))
	}
}

func TestRewrittenEventsAreTheSame(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from.evt"), filepath.Join(dir, "to.evt")
	w := testkit.Value(CreateEventWriter(from, &EventWriterOptions{ChunkSize: MinChunkSize}))(t)
	fill(t, w, 40_000)
	testkit.Must(t, w.Close())
	testkit.Require(t, w.Size() >= 4*MinChunkSize, "only %d bytes", w.Size())
	want := testkit.Value(readEvents(from, MinChunkSize))(t)
	for _, chunk := range []uint64{1 << 20, MinChunkSize + 7} {
		n := testkit.Value(RewriteEvents(from, to, MinChunkSize, chunk))(t)
		got := testkit.Value(readEvents(to, chunk))(t)
		testkit.Check(t, n == w.Events() && reflect.DeepEqual(got, want),
			"chunks of %d: %d events of %d, or others", chunk, n, w.Events())
		to += "2"
	}
	_, err := RewriteEvents(from, from, MinChunkSize, 1<<20)
	testkit.Check(t, err != nil, "written over itself")
}

// A file that is widened in time has chunks of the new size only; later it cannot be.
func TestWiden(t *testing.T) {
	path := filepath.Join(t.TempDir(), "0.evt")
	const wide = 1 << 20
	w := testkit.Value(CreateEventWriter(path, &EventWriterOptions{ChunkSize: MinChunkSize}))(t)
	fill(t, w, 9_000)
	testkit.Must(t, w.Flush())
	size := w.Size()
	testkit.Require(t, size <= MinChunkSize && size >= MinChunkSize*3/4, "%d bytes", size)
	testkit.Check(t, !w.Widen(MinChunkSize-1) && !w.Widen(MinChunkSize/2), "made narrower")
	testkit.Check(t, w.Widen(wide), "not widened")
	for i := range 80_000 {
		testkit.Must(t, w.MpiSend(Timestamp(10_000+i), nil, 1, 2, 3, uint64(i)))
	}
	testkit.Check(t, !w.Widen(2*wide), "widened with several chunks")
	testkit.Must(t, w.Close())
	testkit.Require(t, w.Size() >= wide, "only %d bytes", w.Size())
	events := testkit.Value(readEvents(path, wide))(t)
	testkit.Equal(t, len(events), 107_000, "events")
}
