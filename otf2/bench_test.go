// SPDX-License-Identifier: Apache-2.0

package otf2

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// benchFile writes n rounds of events with write and returns the file.
func benchFile(b testing.TB, n int, write func(w *EventWriter, at Timestamp)) []byte {
	w := NewMemoryEventWriter(nil)
	for i := range n {
		write(w, Timestamp(10*i+1))
	}
	testkit.Must(b, w.Close())
	return w.Bytes()
}

func writeEnterLeave(w *EventWriter, at Timestamp) {
	_ = w.Enter(at, nil, 3)
	_ = w.Leave(at+5, nil, 3)
}

func writeCollective(w *EventWriter, at Timestamp) {
	_ = w.MpiCollectiveBegin(at, nil)
	_ = w.MpiCollectiveEnd(at+5, nil, CollectiveOpAllreduce, 3, CollectiveRootNone, 4<<20, 4<<20)
}

var benchAttributes AttributeList

func writeAttributes(w *EventWriter, at Timestamp) {
	a := &benchAttributes
	a.Reset()
	a.Uint64(0, uint64(at))
	a.Uint32(1, 77)
	a.Int64(2, -int64(at))
	a.String(3, 5)
	a.Uint8(4, 2)
	_ = w.Enter(at, a, 3)
}

var benchCases = []struct {
	name   string
	events int // per call
	write  func(w *EventWriter, at Timestamp)
}{{"EnterLeave", 2, writeEnterLeave}, {"Collective", 2, writeCollective}, {"Enter5Attributes", 1, writeAttributes}}

func BenchmarkWrite(b *testing.B) {
	for _, c := range benchCases {
		b.Run(c.name, func(b *testing.B) {
			w, err := CreateEventWriter(filepath.Join(b.TempDir(), "0.evt"), &EventWriterOptions{ChunkSize: 1 << 20})
			testkit.Must(b, err)
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				c.write(w, Timestamp(10*i+1))
				i++
			}
			testkit.Must(b, w.Close())
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(c.events*b.N), "ns/event")
		})
	}
}

func BenchmarkRead(b *testing.B) {
	for _, c := range benchCases {
		b.Run(c.name, func(b *testing.B) {
			const rounds = 100_000
			dir := b.TempDir()
			testkit.Must(b, os.WriteFile(filepath.Join(dir, "0.evt"), benchFile(b, rounds, c.write), 0o644))
			n := 0
			b.ReportAllocs()
			for b.Loop() {
				r := newEventReader(&fileSource{path: filepath.Join(dir, "0.evt"), budget: newOpenFiles(1), size: -1},
					DefaultEventChunkSize, maxWindow)
				for {
					ok := testkit.Value(r.next())(b)
					if !ok {
						break
					}
					n++
				}
				r.close()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/event")
		})
	}
}

// benchmarkReading reads all events of an archive.
func benchmarkReading(b *testing.B, path string) {
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		a, err := Open(path, nil)
		testkit.Must(b, err)
		for _, err := range a.Events(nil) {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/event")
}

func BenchmarkReadGlobal(b *testing.B) {
	for _, locations := range []int{1, 10, 1000} {
		b.Run(strconv.Itoa(locations), func(b *testing.B) {
			files := map[LocationRef][]byte{}
			file := benchFile(b, 1000, writeEnterLeave)
			for i := range locations {
				files[LocationRef(i)] = file
			}
			benchmarkReading(b, archiveOf(b, files, nil))
		})
	}
}

// One location as users read it.
func BenchmarkReadArchive(b *testing.B) {
	for _, c := range benchCases {
		b.Run(c.name, func(b *testing.B) {
			benchmarkReading(b, archiveOf(b, map[LocationRef][]byte{0: benchFile(b, 200_000, c.write)}, nil))
		})
	}
}
