// SPDX-License-Identifier: Apache-2.0

package otf2_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"ncclotf2/otf2"
)

// The smallest archive that all tools read: one process with one thread, which enters and leaves a region.
func Example_write() {
	dir, err := os.MkdirTemp("", "otf2")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	must := func(err error) {
		if err != nil {
			log.Fatal(err)
		}
	}

	must(os.Mkdir(filepath.Join(dir, "traces"), 0o755))
	events, err := otf2.CreateEventWriter(filepath.Join(dir, "traces", "0.evt"), nil)
	must(err)
	var attributes otf2.AttributeList
	attributes.Uint64(0, 42)
	must(events.Enter(1000, &attributes, 0))
	must(events.Flush()) // from here on a reader sees it, whatever happens to this process
	must(events.Leave(2000, nil, 0))
	must(events.Close())

	defs, err := otf2.CreateGlobalDefWriter(filepath.Join(dir, "traces.def"), 0)
	must(err)
	must(defs.ClockProperties(1_000_000_000, 1000, 1000, 1_700_000_000_000_000_000))
	for id, text := range []string{"", "host", "Process 0", "Thread 0", "main", "ANSWER"} {
		must(defs.String(otf2.StringRef(id), text))
	}
	must(defs.Attribute(0, 5, otf2.TypeUint64, 0))
	must(defs.SystemTreeNode(0, 1, 1, otf2.UndefinedSystemTreeNode))
	must(defs.LocationGroup(0, 2, otf2.LocationGroupTypeProcess, 0, otf2.UndefinedLocationGroup))
	must(defs.Location(0, 3, otf2.LocationTypeCPUThread, events.Events(), 0))
	must(defs.Region(0, 4, 4, 0, otf2.RegionRoleFunction, otf2.ParadigmUser, 0, otf2.UndefinedString, 0, 0))
	must(defs.Close())

	anchor := filepath.Join(dir, "traces.otf2")
	must(otf2.WriteAnchor(anchor, &otf2.Anchor{Locations: 1, GlobalDefs: defs.Count(), TraceID: 1}))

	archive, err := otf2.Open(anchor, nil)
	must(err)
	fmt.Println(archive.Anchor.GlobalDefs, "definitions,", events.Events(), "events,", events.Size(), "bytes")
	// Output: 12 definitions, 2 events, 50 bytes
}

// Reading an archive: events of all locations in the order of time, with their definitions.
func Example_read() {
	archive, err := otf2.Open("testdata/collectives/nccl.otf2", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer archive.Close()
	defs := archive.Defs

	bytes := map[string]uint64{}
	for event, err := range archive.Events(nil) {
		if err != nil {
			log.Fatal(err) // a damaged file; without this the other locations' events go on
		}
		switch event.Kind {
		case otf2.EventMpiCollectiveEnd, otf2.EventNonBlockingCollectiveComplete:
			comm := defs.Comm(otf2.CommRef(event.Args[1]))
			bytes[defs.String(comm.Name)] += event.Args[3]
		}
	}
	fmt.Println(len(defs.Locations), "locations, bytes sent by communicator:", bytes)
	// Output: 8 locations, bytes sent by communicator: map[world:29360128]
}
