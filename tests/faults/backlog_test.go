// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"bytes"
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/scenario"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shmtest"
)

// spooled is what a raw file holds, put together: how it is cut into frames goes by the writer's rounds.
type spooled struct {
	header  []byte
	strings []byte
	comms   map[uint64][]byte
	chunks  map[uint64]map[uint64][]byte // by ring and number
	begins  map[uint64]map[uint64]uint64 // where what is there of a chunk begins
	clocks  int
}

// parse reads a raw file by the layout that plugin/shm.h describes, without package shm.
func parse(t *testing.T, file []byte) *spooled {
	t.Helper()
	s := &spooled{comms: make(map[uint64][]byte), chunks: make(map[uint64]map[uint64][]byte),
		begins: make(map[uint64]map[uint64]uint64)}
	word := binary.NativeEndian
	const head, magic = 32, shm.FrameMagic
	for len(file) > 0 {
		if len(file) < head || word.Uint32(file) != magic {
			t.Fatalf("%d bytes that are no frame", len(file))
		}
		kind, index, position, length := word.Uint32(file[4:]), word.Uint64(file[8:]), word.Uint64(file[16:]),
			word.Uint64(file[24:])
		body := file[head : head+length]
		file = file[head+(length+7)&^7:]
		switch kind {
		case 1:
			s.header = body
		case 2:
			s.comms[index] = body
		case 3:
			if index != uint64(len(s.strings)) {
				t.Fatalf("strings at %d behind %d bytes", index, len(s.strings))
			}
			s.strings = append(s.strings, body...)
		case 4:
			chunk, at := position>>32, position&(1<<32-1)
			if s.chunks[index] == nil {
				s.chunks[index], s.begins[index] = make(map[uint64][]byte), make(map[uint64]uint64)
			}
			before := s.chunks[index][chunk]
			if before == nil {
				s.begins[index][chunk] = at
			} else if at != s.begins[index][chunk]+uint64(len(before)) {
				t.Fatalf("ring %d, chunk %d: a frame at %d behind %d bytes", index, chunk, at, len(before))
			}
			s.chunks[index][chunk] = append(before, body...)
		case 5:
			s.clocks++
		default:
			t.Fatalf("a frame of kind %d", kind)
		}
	}
	return s
}

// putOffAll is the backlog that a collector makes of memory that nobody has read.
func putOffAll(t *testing.T, memory, folder string) []byte {
	t.Helper()
	copied := filepath.Join(folder, "memory")
	testkit.Write(t, copied, testkit.Read(t, memory)) // of the rings' chunks those that are given back are holes
	fd, err := syscall.Open(copied, syscall.O_RDWR, 0)
	testkit.Must(t, err)
	m, err := shm.Map(fd)
	testkit.Must(t, err)
	defer m.Close()
	path := filepath.Join(folder, "backlog")
	file, err := os.Create(path)
	testkit.Must(t, err)
	defer file.Close()
	round, err := m.Refresh()
	testkit.Must(t, err)
	_, err = m.PutOff(shm.NewBacklog(file, 1<<40), round.Clock)
	testkit.Must(t, err)
	return testkit.Read(t, path)
}

// compare wants what two files both have to be the same, byte for byte, and returns how many bytes of records that is.
// The plugin's may be some milliseconds behind.
func (s *spooled) compare(t *testing.T, plugin *spooled) (common int) {
	t.Helper()
	for ring, chunks := range s.chunks {
		for chunk, b := range chunks {
			other := plugin.chunks[ring][chunk]
			n := min(len(b), len(other))
			if n > 0 && (s.begins[ring][chunk] != plugin.begins[ring][chunk] || !bytes.Equal(b[:n], other[:n])) {
				t.Errorf("ring %d, chunk %d: other bytes from %d on, the plugin's begin at %d", ring, chunk,
					s.begins[ring][chunk], plugin.begins[ring][chunk])
			}
			common += n
		}
	}
	if len(plugin.strings) > len(s.strings) || !bytes.Equal(s.strings[:len(plugin.strings)], plugin.strings) {
		t.Errorf("%d bytes of strings are not the beginning of %d", len(plugin.strings), len(s.strings))
	}
	const finalTicks = 40 // of an entry
	for i, b := range plugin.comms {
		ours := slices.Clone(s.comms[i])
		if binary.NativeEndian.Uint64(b[finalTicks:]) == 0 && len(ours) == len(b) {
			clear(ours[finalTicks : finalTicks+8])
		}
		if !bytes.Equal(ours, b) {
			t.Errorf("communicator %d: %x, the plugin's %x", i, ours, b)
		}
	}
	// What changes while the process runs begins behind.
	const constant = shmtest.ConstantHeader
	if len(s.header) != len(plugin.header) || !bytes.Equal(s.header[:constant], plugin.header[:constant]) {
		t.Errorf("headers of %d and %d bytes differ", len(s.header), len(plugin.header))
	}
	return common
}

// Of the same memory a collector writes into its backlog what the plugin writes into its raw file.
func TestBacklogIsWhatThePluginWrites(t *testing.T) {
	common := 0
	// the plugin's thread may not have had its turn
	for attempt := 0; attempt < 20 && common == 0 && !t.Failed(); attempt++ {
		common = backlogBesideRawFile(t)
	}
	if common == 0 && !t.Failed() {
		t.Error("nothing was compared")
	}
}

// backlogBesideRawFile stops a process that writes a raw file, and returns how many bytes of records both files have.
func backlogBesideRawFile(t *testing.T) (common int) {
	dir, own := filepath.Join(t.TempDir(), "experiment"), t.TempDir()
	s := scenario.Random(5, scenario.RandomOptions{Release: "2.29.7", Processes: 1, Calls: 600})
	rec, err := s.Load(filepath.Join(own, "recording"))
	testkit.Must(t, err)
	stretch(rec, 300*time.Millisecond)
	calls := len(rec.Processes[0].Calls)
	opt := replay.Options{
		Host: builtFile(t, replay.HostFile), Plugin: builtFile(t, "libnccl-profiler-otf2.so"), Clock: replay.ClockLive,
		Pace: replay.PaceRecorded, Spool: true,
		Env: []string{"NCCL_OTF2_DIR=" + dir, "NCCL_OTF2_EVENTS=all", "NCCL_OTF2_RING=shm", "NCCL_OTF2_MEMORY=16M",
			"NCCL_OTF2_UNIFY=off"},
		StopAt: func(int) int { return calls * 3 / 4 },
		Stopped: func(_, pid int) {
			memory, _ := filepath.Glob(filepath.Join("/dev/shm", "nccl-otf2-*-"+strconv.Itoa(pid)+"-*"))
			files, _ := filepath.Glob(filepath.Join(dir, "shards", "*.spool"))
			if len(memory) != 1 || len(files) != 1 {
				t.Errorf("memory %v, raw files %v", memory, files)
				return
			}
			if plugin := parse(t, whole(testkit.Read(t, files[0]))); len(plugin.chunks) > 1 && len(plugin.comms) > 0 {
				common = parse(t, putOffAll(t, memory[0], own)).compare(t, plugin)
			}
		},
	}
	_, err = replay.Run(context.Background(), rec, opt)
	testkit.Must(t, err)
	return common
}

// whole is a raw file without what is being written at its end.
func whole(file []byte) []byte {
	at := 0
	for at+32 <= len(file) {
		next := at + 32 + int((binary.NativeEndian.Uint64(file[at+24:])+7)&^7)
		if next > len(file) {
			break
		}
		at = next
	}
	return file[:at]
}
