// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
)

// Entries come out in the order of their keys, those with equal ones as they came, however few are kept in memory; and
// again when they are read once more.
func TestSorter(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	rapid.Check(t, func(t *rapid.T) {
		type entry struct{ a, b, number uint64 }
		var temp temp
		s := newSorter(&temp, rapid.SampledFrom([]int{1, 300, 1 << 20}).Draw(t, "kept"))
		defer s.close()
		key := rapid.OneOf(rapid.Uint64Range(0, 3), rapid.Uint64())
		var want []entry
		f := sorterBuffer{to: s}
		for i := range rapid.IntRange(0, 300).Draw(t, "entries") {
			e := entry{key.Draw(t, "a"), key.Draw(t, "b"), uint64(i)}
			want = append(want, e)
			f.add(e.a, e.b, append([]uint64{e.number}, make([]uint64, e.a%4)...)...)
			if rapid.IntRange(0, 20).Draw(t, "flush") == 0 {
				f.flush()
			}
		}
		f.flush()
		s.finish()
		slices.SortStableFunc(want, func(x, y entry) int {
			return cmp.Or(cmp.Compare(x.a, y.a), cmp.Compare(x.b, y.b))
		})
		for range 2 {
			m := s.sorted()
			for _, e := range want {
				testkit.Require(t, m.skipTo(e.a) && m.b == e.b, "%d %d, want %+v", m.a, m.b, e)
				if number := m.entry.readNumber(); number != e.number || len(m.entry.unreadBytes()) != int(e.a%4) {
					t.Fatalf("entry %d with %d bytes, want %+v", number, len(m.entry.unreadBytes()), e)
				}
				m.next()
			}
			testkit.Require(t, !m.more, "there is one more: %d %d", m.a, m.b)
		}
		testkit.Must(t, temp.failed())
	})
}

// Records of a stream come back as they were written, also attributes, wherever its pieces end.
func TestStream(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	rapid.Check(t, func(t *rapid.T) {
		var temp temp
		sp := spool{temp: &temp}
		defer sp.close()
		s := stream{to: &sp, piece: rapid.SampledFrom([]int{1, 40, 1 << 20}).Draw(t, "piece")}
		lists := rapid.SliceOf(rapid.SliceOfN(rapid.Custom(func(t *rapid.T) otf2.AttributeValue {
			return otf2.AttributeValue{ID: otf2.AttributeRef(rapid.Uint32().Draw(t, "id")),
				Bits: rapid.Uint64().Draw(t, "bits")}
		}), 0, 5)).Draw(t, "lists")
		for i, l := range lists {
			s.writeNumber(uint64(i))
			var n notes
			n.add(l[:len(l)/2]) // of the begin, and of the end
			n.add(l[len(l)/2:])
			s.buf = n.record(s.buf)
			s.endRecord()
		}
		c := s.open()
		var list []note
		for i, l := range lists {
			testkit.Require(t, c.hasNext() && c.readNumber() == uint64(i), "record %d is not there", i)
			list = c.notes(list)
			var want []note
			for _, a := range l {
				want = append(want, note{uint32(a.ID), a.Bits})
			}
			testkit.Require(t, slices.Equal(list, want), "%v, want %v", list, want)
		}
		if c.hasNext() || temp.failed() != nil {
			t.Fatalf("there is more, or %v", temp.failed())
		}
	})
}

// Who has no room for temporary files is told what to do, in one line.
func TestNoRoomForTemporaryFiles(t *testing.T) {
	anchor := makeJob(t)
	advice := func(t *testing.T, err error, cause error) {
		t.Helper()
		testkit.Check(t, errors.Is(err, cause) && strings.Contains(err.Error(), "set TMPDIR to a folder with") &&
			!strings.Contains(err.Error(), "\n"), "%v", err)
	}
	a := jobtest.Open(t, anchor)
	d := read(t, anchor)
	room := t.TempDir()
	t.Setenv("TMPDIR", filepath.Join(room, "nowhere"))
	t.Run("no folder", func(t *testing.T) {
		_, err := readKeeping(a, nil, 1, nil)
		advice(t, err, os.ErrNotExist)
		s := testkit.Value(NewServer(""))(t)
		err = s.Fill(d, Options{})
		advice(t, err, os.ErrNotExist)
	})
	t.Run("disk full", func(t *testing.T) {
		full := testkit.Value(os.OpenFile("/dev/full", os.O_RDWR, 0))(t)
		t.Setenv("TMPDIR", room)
		d := &Data{defs: a.Defs, origin: otf2.Timestamp(a.Defs.Clock.Offset), rows: makeRows(a.Defs),
			store: newStore(1)}
		defer d.Close()
		d.operations.spool.file = full
		advice(t, d.read(a), syscall.ENOSPC)
	})
	t.Run("a page needs none if it is small", func(t *testing.T) {
		var page strings.Builder
		err := d.WritePage(&page, Options{})
		testkit.Check(t, err == nil, "%v", err)
	})
}
