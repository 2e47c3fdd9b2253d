// SPDX-License-Identifier: Apache-2.0

package otf2_test

import (
	"context"
	"fmt"
	"iter"
	"log"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// exampleDir is a folder for an example's archive.
func exampleDir() string {
	dir, err := os.MkdirTemp("", "otf2")
	if err != nil {
		log.Fatal(err)
	}
	return dir
}

func try(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// The smallest archive that all tools read: one process with one thread, which enters and leaves a region.
func ExampleCreate() {
	dir := exampleDir()
	defer os.RemoveAll(dir)

	archive, err := otf2.Create(dir, "traces", &otf2.ArchiveOptions{Creator: "example"})
	try(err)
	defs := archive.Definitions()
	try(defs.ClockProperties(1_000_000_000, 1000, 1000, 1_700_000_000_000_000_000))
	for id, text := range []string{"", "host", "Process 0", "Thread 0", "main", "ANSWER"} {
		try(defs.String(otf2.StringRef(id), text))
	}
	try(defs.Attribute(0, 5, otf2.TypeUint64, 0))
	try(defs.SystemTreeNode(0, 1, 1, otf2.UndefinedSystemTreeNode))
	try(defs.LocationGroup(0, 2, otf2.LocationGroupTypeProcess, 0, otf2.UndefinedLocationGroup))
	try(defs.Location(0, 3, otf2.LocationTypeCPUThread, 0, 0)) // Close fills in the number of events
	try(defs.Region(0, 4, 4, 0, otf2.RegionRoleFunction, otf2.ParadigmUser, 0, otf2.UndefinedString, 0, 0))

	events, err := archive.Events(0)
	try(err)
	var attributes otf2.AttributeList
	attributes.Uint64(0, 42)
	try(events.Enter(1000, &attributes, 0))
	try(events.Flush()) // from here on the event file holds it, whatever happens to this process
	try(events.Leave(2000, nil, 0))
	fmt.Println(events.Enter(1500, nil, 0)) // refused, and not written
	try(archive.Close())

	written, err := otf2.Open(archive.Path(), nil)
	try(err)
	fmt.Println(written.Anchor.GlobalDefs, "definitions,", written.Defs.Location(0).Events, "events,", events.Size(),
		"bytes")
	// Output:
	// otf2: time 1500 after 2000: events of a location must not go back in time
	// 12 definitions, 2 events, 50 bytes
}

// Reading an archive: events of all locations in the order of time, with their definitions.
func ExampleArchive_Events() {
	archive, err := otf2.Open("testdata/collectives/nccl.otf2", nil)
	try(err)
	defs := archive.Defs

	bytes := map[string]uint64{}
	wanted := &otf2.Selection{Kinds: otf2.Kinds(otf2.EventMpiCollectiveEnd, otf2.EventNonBlockingCollectiveComplete)}
	for event, err := range archive.Events(wanted) {
		try(err) // a damaged file; without this the other locations' events go on
		switch event.Kind {
		case otf2.EventMpiCollectiveEnd:
			end := event.MpiCollectiveEnd()
			bytes[defs.String(defs.Comm(end.Communicator).Name)] += end.SizeSent
		case otf2.EventNonBlockingCollectiveComplete:
			complete := event.NonBlockingCollectiveComplete()
			bytes[defs.String(defs.Comm(complete.Communicator).Name)] += complete.SizeSent
		}
	}
	fmt.Println(len(defs.Locations), "locations, bytes sent by communicator:", bytes)
	// Output: 8 locations, bytes sent by communicator: map[world:29360128]
}

// Reading the locations side by side, where the order between them does not matter.
func ExampleArchive_EachLocation() {
	archive, err := otf2.Open("testdata/many-locations/many.otf2", nil)
	try(err)
	var enters atomic.Int64
	err = archive.EachLocation(context.Background(), 4, nil,
		func(loc otf2.LocationRef, events iter.Seq2[*otf2.Event, error]) error {
			for event, err := range events {
				if err != nil {
					return err
				}
				if event.Kind == otf2.EventEnter {
					enters.Add(1)
				}
			}
			return nil
		})
	try(err)
	fmt.Println(len(archive.Defs.Locations), "locations,", enters.Load(), "regions entered")
	// Output: 50 locations, 73 regions entered
}

// An archive of several processes that do not talk to each other while they run. Each writes its events with ids of
// its own and keeps the texts that they stand for; afterwards one program gives every text a global id and writes
// tables that map the processes' ids to the global ones. The event files stay as they are.
func Example_shards() {
	dir := exampleDir()
	defer os.RemoveAll(dir)
	base := filepath.Join(dir, "traces")
	try(os.Mkdir(base, 0o755))
	file := func(loc otf2.LocationRef, ext string) string { return filepath.Join(base, fmt.Sprint(uint64(loc))+ext) }

	// What a process does: regions are numbered as they come along.
	type shard struct {
		location otf2.LocationRef
		regions  []string // by local id
		events   uint64
	}
	process := func(rank int, calls ...string) shard {
		s := shard{location: otf2.LocationRef(rank) << 32} // unique without talking
		w, err := otf2.CreateEventWriter(file(s.location, ".evt"), nil)
		try(err)
		local := map[string]otf2.RegionRef{}
		for i, call := range calls {
			id, ok := local[call]
			if !ok {
				id = otf2.RegionRef(len(s.regions))
				local[call] = id
				s.regions = append(s.regions, call)
			}
			try(w.Enter(otf2.Timestamp(100*i+rank), nil, id))
			try(w.Leave(otf2.Timestamp(100*i+50+rank), nil, id))
		}
		try(w.Close())
		s.events = w.Events()
		return s
	}
	shards := []shard{process(0, "AllReduce", "Broadcast"), process(1, "Broadcast", "Broadcast", "AllReduce")}

	// Unifying them.
	defs, err := otf2.CreateGlobalDefWriter(base+".def", 0)
	try(err)
	try(defs.ClockProperties(1_000_000_000, 0, 300, 1_700_000_000_000_000_000))
	try(defs.String(0, ""))
	try(defs.String(1, "host"))
	try(defs.SystemTreeNode(0, 1, 1, otf2.UndefinedSystemTreeNode))
	regions := map[string]otf2.RegionRef{}
	strings := otf2.StringRef(2)
	for rank, s := range shards {
		var global []uint64 // by local id
		for _, name := range s.regions {
			id, ok := regions[name]
			if !ok {
				id = otf2.RegionRef(len(regions))
				regions[name] = id
				try(defs.String(strings, name))
				try(defs.Region(id, strings, strings, 0, otf2.RegionRoleFunction, otf2.ParadigmUser, 0,
					otf2.UndefinedString, 0, 0))
				strings++
			}
			global = append(global, uint64(id))
		}
		table := otf2.OptimalMapping(otf2.MappingRegion, global) // nil if the ids are the same
		try(otf2.WriteLocalDefs(file(s.location, ".def"), []*otf2.MappingTable{table}, nil, 0))
		try(defs.String(strings, fmt.Sprint("rank ", rank)))
		try(defs.LocationGroup(otf2.LocationGroupRef(rank), strings, otf2.LocationGroupTypeProcess, 0,
			otf2.UndefinedLocationGroup))
		try(defs.Location(s.location, strings, otf2.LocationTypeCPUThread, s.events, otf2.LocationGroupRef(rank)))
		strings++
	}
	try(defs.Close())
	try(otf2.WriteAnchor(base+".otf2", &otf2.Anchor{Locations: uint64(len(shards)), GlobalDefs: defs.Count(),
		TraceID: 1}))

	archive, err := otf2.Open(base+".otf2", nil)
	try(err)
	for event, err := range archive.Events(&otf2.Selection{Kinds: otf2.Kinds(otf2.EventEnter)}) {
		try(err)
		region := archive.Defs.Region(event.Enter().Region)
		fmt.Println(event.Time, archive.Defs.String(archive.Defs.Location(event.Location).Name),
			archive.Defs.String(region.Name))
	}
	// Output:
	// 0 rank 0 AllReduce
	// 1 rank 1 Broadcast
	// 100 rank 0 Broadcast
	// 101 rank 1 Broadcast
	// 201 rank 1 AllReduce
}
