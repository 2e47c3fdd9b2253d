// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// The kinds of events that the cases write and read. The times of locations interleave, so that a reader of all of
// them goes to another location with every event.
const (
	enterLeave  = "enter-leave"
	collectives = "collectives" // MpiCollectiveBegin, MpiCollectiveEnd
	attributes  = "attributes"  // Enter with three integers, a string reference and a one-byte number
)

// What the archives contain; libotf2_bench.c has the same.
const (
	regions           = 8
	firstRegionString = 10
	tick              = 10 // ns between two events
)

var stringsOfArchive = [firstRegionString]string{"", "number", "small", "signed", "text", "choice", "world", "node",
	"process", "thread"}

// ourCase runs one case with package otf2. Its arguments are those of libotf2_bench:
//
//	FILES write KIND LOCATIONS EVENTS DIR
//	FILES local|global KIND LOCATIONS ANCHOR
func ourCase(args []string) (*outcome, error) {
	var n [3]uint64
	for i, at := range []int{0, 3, 4} {
		if at >= len(args) || args[1] != "write" && at == 4 {
			continue
		}
		var err error
		if n[i], err = strconv.ParseUint(args[at], 10, 64); err != nil {
			return nil, err
		}
	}
	files, locations, events := n[0], n[1], n[2]
	if files > 0 {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: files, Max: files}); err != nil {
			return nil, err
		}
	}
	var o *outcome
	var err error
	switch {
	case len(args) == 6 && args[1] == "write":
		o, err = writeArchive(args[2], locations, events, 0, args[5])
		if err == nil {
			o.Phases["plain"], err = plainWrite(args[5], locations)
		}
	case len(args) == 5 && args[1] == "local":
		o, err = readArchive(args[4], locations, func(a *otf2.Archive, r *tally) error {
			for _, l := range a.Defs.Locations {
				if err := r.take(a.EventsOf(l.Self)); err != nil {
					return err
				}
			}
			return nil
		})
	case len(args) == 5 && args[1] == "global":
		o, err = readArchive(args[4], locations, func(a *otf2.Archive, r *tally) error { return r.take(a.Events(nil)) })
	default:
		return nil, fmt.Errorf("malformed case %q", args)
	}
	if err != nil {
		return nil, err
	}
	o.RSS, err = peakRSS()
	return o, err
}

// writeArchive makes the archive DIR/traces.otf2, every location with that many events, and empty local definitions as
// libotf2's programs leave them. chunk is the size of the event files' chunks, 0 the default.
func writeArchive(kind string, locations, events, chunk uint64, dir string) (*outcome, error) {
	begin := now()
	files := filepath.Join(dir, "traces")
	if err := os.MkdirAll(files, 0o755); err != nil {
		return nil, err
	}
	var calls span
	for l := range locations {
		w, err := otf2.CreateEventWriter(filepath.Join(files, fmt.Sprintf("%d.evt", l)),
			&otf2.EventWriterOptions{ChunkSize: chunk})
		if err != nil {
			return nil, err
		}
		from := now()
		if err := writeEvents(w, kind, events, otf2.Timestamp(1+l*tick), otf2.Timestamp(locations*tick)); err != nil {
			return nil, err
		}
		calls = calls.plus(now().since(from))
		if err := w.Close(); err != nil {
			return nil, err
		}
	}
	for l := range locations {
		if err := otf2.WriteLocalDefs(filepath.Join(files, fmt.Sprintf("%d.def", l)), nil, nil, 0); err != nil {
			return nil, err
		}
	}
	count, err := writeDefinitions(filepath.Join(dir, "traces.def"), locations, events)
	if err != nil {
		return nil, err
	}
	err = otf2.WriteAnchor(filepath.Join(dir, "traces.otf2"), &otf2.Anchor{
		EventChunkSize: chunk, Locations: locations, GlobalDefs: count, Creator: "bench", TraceID: 1,
	})
	if err != nil {
		return nil, err
	}
	return &outcome{Events: locations * events, Phases: map[string]span{"calls": calls, "archive": now().since(begin)}},
		nil
}

// plainWrite takes the time of writing as many bytes as the archive's event files have with nothing but write(2), in
// pieces of a chunk: what the system asks for a trace of that size.
func plainWrite(dir string, locations uint64) (span, error) {
	var size int64
	for l := range locations {
		info, err := os.Stat(filepath.Join(dir, "traces", fmt.Sprintf("%d.evt", l)))
		if err != nil {
			return span{}, err
		}
		size += info.Size()
	}
	piece := make([]byte, otf2.DefaultEventChunkSize)
	for i := range piece {
		piece[i] = byte(i)
	}
	path := filepath.Join(dir, "plain")
	begin := now()
	f, err := os.Create(path)
	if err != nil {
		return span{}, err
	}
	for ; size > 0 && err == nil; size -= int64(len(piece)) {
		_, err = f.Write(piece[:min(size, int64(len(piece)))])
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	took := now().since(begin)
	if err != nil {
		return span{}, err
	}
	return took, os.Remove(path)
}

// writeEvents writes the events of a location; it has one loop per kind so that choosing costs nothing.
func writeEvents(w *otf2.EventWriter, kind string, events uint64, at, step otf2.Timestamp) error {
	switch kind {
	case enterLeave:
		for i := uint64(0); i < events; i += 2 {
			region := otf2.RegionRef(i / 2 % regions)
			if err := w.Enter(at, nil, region); err != nil {
				return err
			}
			if err := w.Leave(at+step, nil, region); err != nil {
				return err
			}
			at += 2 * step
		}
	case collectives:
		for i := uint64(0); i < events; i += 2 {
			if err := w.MpiCollectiveBegin(at, nil); err != nil {
				return err
			}
			if err := w.MpiCollectiveEnd(at+step, nil, otf2.CollectiveOpAllreduce, 0, otf2.CollectiveRootNone, 4<<20,
				4<<20); err != nil {
				return err
			}
			at += 2 * step
		}
	case attributes:
		var list otf2.AttributeList
		for i := range events {
			list.Reset()
			list.Uint64(0, i<<12)
			list.Uint32(1, uint32(i&0xffff))
			list.Int64(2, -int64(i))
			list.String(3, otf2.StringRef(i%(firstRegionString+regions)))
			list.Uint8(4, uint8(i%7))
			if err := w.Enter(at, &list, otf2.RegionRef(i%regions)); err != nil {
				return err
			}
			at += step
		}
	default:
		return fmt.Errorf("unknown kind of events %q", kind)
	}
	return nil
}

// writeDefinitions writes the global definitions and returns their number.
func writeDefinitions(path string, locations, events uint64) (uint64, error) {
	w, err := otf2.CreateGlobalDefWriter(path, 0)
	if err != nil {
		return 0, err
	}
	// The writer keeps the first error until Close.
	_ = w.ClockProperties(1e9, 0, locations*events*tick+1, uint64(otf2.UndefinedTimestamp))
	for i, text := range stringsOfArchive {
		_ = w.String(otf2.StringRef(i), text)
	}
	for i := range otf2.StringRef(regions) {
		_ = w.String(firstRegionString+i, fmt.Sprintf("region %d", i))
	}
	for i, t := range []otf2.Type{otf2.TypeUint64, otf2.TypeUint32, otf2.TypeInt64, otf2.TypeString, otf2.TypeUint8} {
		_ = w.Attribute(otf2.AttributeRef(i), otf2.StringRef(1+i), t, 0)
	}
	_ = w.SystemTreeNode(0, 7, 7, otf2.UndefinedSystemTreeNode)
	_ = w.LocationGroup(0, 8, otf2.LocationGroupTypeProcess, 0, otf2.UndefinedLocationGroup)
	members := make([]uint64, locations)
	for l := range members {
		members[l] = uint64(l)
		_ = w.Location(otf2.LocationRef(l), 9, otf2.LocationTypeCPUThread, events, 0)
	}
	for i := range uint32(regions) {
		name := firstRegionString + otf2.StringRef(i)
		_ = w.Region(otf2.RegionRef(i), name, name, 0, otf2.RegionRoleFunction, otf2.ParadigmUser, otf2.RegionFlagNone,
			0, 0, 0)
	}
	_ = w.Group(0, 6, otf2.GroupTypeCommLocations, otf2.ParadigmMPI, otf2.GroupFlagNone, members)
	_ = w.Group(1, 6, otf2.GroupTypeCommGroup, otf2.ParadigmMPI, otf2.GroupFlagNone, members)
	_ = w.Comm(0, 6, 1, otf2.UndefinedComm, otf2.CommFlagNone)
	return w.Count(), w.Close()
}

// tally adds up what is read.
type tally struct {
	events, sum uint64
	files       int // most open files seen
	first       span
}

// look is the number of events after which open files are counted, at the first event for the first time. Counting
// them takes some microseconds.
const look = 1 << 15

func (r *tally) take(events func(yield func(*otf2.Event, error) bool)) error {
	for e, err := range events {
		if err != nil {
			return err
		}
		if r.events == 0 {
			r.first = now()
		}
		if r.events%look == 0 {
			n, err := openFiles()
			if err != nil {
				return err
			}
			r.files = max(r.files, n)
		}
		r.events++
		r.sum += uint64(e.Time)
		for _, v := range e.Args {
			r.sum += v
		}
		for _, v := range e.Attributes {
			r.sum += v.Bits
		}
	}
	return nil
}

// readArchive reads all events of an archive.
func readArchive(anchor string, locations uint64, read func(*otf2.Archive, *tally) error) (*outcome, error) {
	begin := now()
	a, err := otf2.Open(anchor, nil)
	if err != nil {
		return nil, err
	}
	defer a.Close()
	if n := uint64(len(a.Defs.Locations)); n != locations {
		return nil, fmt.Errorf("%s has %d locations, want %d", anchor, n, locations)
	}
	var r tally
	if err := read(a, &r); err != nil {
		return nil, err
	}
	end := now()
	files, err := openFiles()
	if err != nil {
		return nil, err
	}
	return &outcome{
		Events: r.events, Sum: r.sum, OpenFiles: max(files, r.files),
		Phases: map[string]span{"open": r.first.since(begin), "events": end.since(r.first), "all": end.since(begin)},
	}, nil
}
