// SPDX-License-Identifier: Apache-2.0

package jobtest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"sync"

	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// Large is a large archive to measure with, as the collector writes them: processes with one application thread, one row of operations and
// one of the network each, which do AllReduces together and send their data around a ring.
type Large struct {
	Processes  int
	Operations uint64 // of each rank
	// Jitter makes calls and transfers begin and end at odd times, as they do: regular ones compress too well.
	Jitter bool
}

// What each rank has of one operation.
const (
	eventsOnThread = 4 // the call, and the launch in it
	eventsOnRow    = 4
	putsEach       = 2
	eventsEach     = eventsOnThread + eventsOnRow + 4*putsEach
	regionsEach    = 2 + 1 + putsEach
)

// NewLarge plans an archive of about so many events of so many ranks.
func NewLarge(events uint64, processes int) *Large {
	s := &Large{Processes: processes}
	s.Operations = max(2, events/uint64(s.Processes*eventsEach))
	return s
}

func (s *Large) each(n uint64) uint64 { return uint64(s.Processes) * s.Operations * n }

// Events is how many the archive has; so are Regions and Transfers of theirs.
func (s *Large) Events() uint64    { return s.each(eventsEach) }
func (s *Large) Regions() uint64   { return s.each(regionsEach) }
func (s *Large) Transfers() uint64 { return s.each(putsEach) }

// texts of the archive; a text's reference is its place.
var texts = []string{
	"", "node", "host0", regions.GroupAPI, regions.GroupCollectives, regions.GroupNetwork, regions.GroupEnqueue,
	"world", "world network", "ncclAllReduce", "AllReduce", regions.NameKernelLaunch,
	regions.NameSendNetwork, regions.TimingGPU, "RING", "SIMPLE", "ncclFloat32", property.Rank.Key(),
}

func text(s string) otf2.StringRef {
	for i, t := range texts {
		if t == s {
			return otf2.StringRef(i)
		}
	}
	panic("no such text: " + s)
}

// Regions, and the place of rows among a process's locations.
const (
	regionCall otf2.RegionRef = iota
	regionOperation
	regionLaunch
	regionSend
)

func location(row uint64, process int) otf2.LocationRef {
	return otf2.LocationRef(row<<32 | uint64(process))
}

// Write makes the archive and returns the path of its anchor.
func (s *Large) Write(dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return "", err
	}
	a, err := otf2.Create(dir, "traces", &otf2.ArchiveOptions{Creator: "bench"})
	if err != nil {
		return "", err
	}
	defer a.Abort()
	const begin, step = uint64(1_700_000_000_000_000_000), uint64(100_000) // ns
	if err := s.define(a.Definitions(), begin, step); err != nil {
		return "", err
	}
	var all sync.WaitGroup
	errs := make([]error, s.Processes)
	for p := range s.Processes {
		var rows [3]*otf2.EventWriter
		for row := range rows {
			if rows[row], err = a.Events(location(uint64(row), p)); err != nil {
				return "", err
			}
		}
		all.Go(func() { errs[p] = s.process(p, rows, begin, step) })
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return "", err
		}
	}
	return a.Path(), a.Close()
}

func (s *Large) define(d *otf2.GlobalDefWriter, begin, step uint64) error {
	var failed error
	must := func(err error) {
		if failed == nil {
			failed = err
		}
	}
	must(d.ClockProperties(1_000_000_000, begin, (s.Operations+2)*step, begin))
	for i, t := range texts {
		must(d.String(otf2.StringRef(i), t))
	}
	next := otf2.StringRef(len(texts))
	name := func(format string, args ...any) otf2.StringRef {
		must(d.String(next, fmt.Sprintf(format, args...)))
		next++
		return next - 1
	}
	for _, at := range regions.Attributes {
		must(d.Attribute(at.Ref, name("%s", at.Name), at.Type, 0))
	}
	must(d.SystemTreeNode(0, text("host0"), text("node"), otf2.UndefinedSystemTreeNode))
	n := uint64(s.Processes)
	for p := range s.Processes {
		must(d.LocationGroup(otf2.LocationGroupRef(p), name("Rank %d", p), otf2.LocationGroupTypeProcess, 0,
			otf2.UndefinedLocationGroup))
	}
	var members, network []uint64
	for p := range s.Processes {
		g := otf2.LocationGroupRef(n) + otf2.LocationGroupRef(p)
		must(d.LocationGroup(g, name("GPU %d", p), otf2.LocationGroupTypeAccelerator, 0, otf2.LocationGroupRef(p)))
		must(d.Location(location(0, p), name("Thread 0"), otf2.LocationTypeCPUThread, 0, otf2.LocationGroupRef(p)))
		must(d.Location(location(1, p), name("world rank %d", p), otf2.LocationTypeAcceleratorStream, 0, g))
		must(d.Location(location(2, p), name("world net send"), otf2.LocationTypeCPUThread, 0,
			otf2.LocationGroupRef(p)))
		must(d.LocationProperty(location(2, p), text(property.Rank.Key()), otf2.TypeUint32, otf2.Value(p)))
		members, network = append(members, uint64(location(1, p))), append(network, uint64(location(2, p)))
	}
	region := func(r otf2.RegionRef, of string, role otf2.RegionRole) {
		must(d.Region(r, text(of), text(of), 0, role, otf2.ParadigmCUDA, 0, otf2.UndefinedString, 0, 0))
	}
	region(regionCall, "ncclAllReduce", otf2.RegionRoleFunction)
	region(regionOperation, "AllReduce", otf2.RegionRoleCollAll2All)
	region(regionLaunch, regions.NameKernelLaunch, otf2.RegionRoleFunction)
	region(regionSend, regions.NameSendNetwork, otf2.RegionRoleDataTransfer)
	groups := otf2.GroupRef(0)
	group := func(of otf2.StringRef, typ otf2.GroupType, paradigm otf2.Paradigm, members []uint64) otf2.GroupRef {
		must(d.Group(groups, of, typ, paradigm, 0, members))
		groups++
		return groups - 1
	}
	for region, of := range map[otf2.RegionRef]string{regionCall: regions.GroupAPI,
		regionOperation: regions.GroupCollectives, regionLaunch: regions.GroupEnqueue,
		regionSend: regions.GroupNetwork} {
		group(text(of), otf2.GroupTypeRegions, otf2.ParadigmUnknown, []uint64{uint64(region)})
	}
	group(0, otf2.GroupTypeCommLocations, otf2.ParadigmMPI, append(members, network...))
	ranks, others := make([]uint64, n), make([]uint64, n)
	for i := range n {
		ranks[i], others[i] = i, n+i
	}
	must(d.Comm(0, text("world"), group(0, otf2.GroupTypeCommGroup, otf2.ParadigmMPI, ranks), otf2.UndefinedComm, 0))
	must(d.Comm(1, text("world network"), group(0, otf2.GroupTypeCommGroup, otf2.ParadigmMPI, others), 0, 0))
	must(d.RmaWin(0, text("world network"), 1, 0))
	return failed
}

// process writes the events of one. Of eight ranks each begins an operation a little after the one before it.
func (s *Large) process(rank int, rows [3]*otf2.EventWriter, begin, step uint64) (failed error) {
	must := func(err error) {
		if failed == nil {
			failed = err
		}
	}
	thread, row, net := rows[0], rows[1], rows[2]
	var called, attributes, put otf2.AttributeList
	random := rand.New(rand.NewPCG(1, uint64(rank)))
	odd := func(most uint64) uint64 {
		if !s.Jitter {
			return 0
		}
		return random.Uint64N(most)
	}
	for i := range s.Operations {
		t := begin + (i+1)*step
		late := t + 1000*uint64(rank%8) + i%7*100
		at := func(t uint64) otf2.Timestamp { return otf2.Timestamp(t) }
		id := i<<8 | uint64(rank)
		count := uint64(1000) << (i % 8)
		bytes := 4 * count * uint64(s.Processes)
		called.Reset()
		called.Uint64(regions.AttrEventID, id)
		called.Uint64(regions.AttrCount, count)
		called.String(regions.AttrDatatype, text("ncclFloat32"))
		must(thread.Enter(at(t), &called, regionCall))
		must(thread.Enter(at(t+2000+odd(1500)), nil, regionLaunch))
		launched := t + 4000 + odd(3000)
		must(thread.Leave(at(launched), nil, regionLaunch))
		must(thread.Leave(at(launched+1000+odd(500)), nil, regionCall))

		attributes.Reset()
		attributes.Uint64(regions.AttrOrdinal, i)
		attributes.Uint64(regions.AttrSeq, i)
		attributes.String(regions.AttrAlgo, text("RING"))
		attributes.String(regions.AttrProto, text("SIMPLE"))
		attributes.Uint32(regions.AttrChannels, 2)
		attributes.String(regions.AttrDatatype, text("ncclFloat32"))
		attributes.Uint64(regions.AttrCount, count)
		attributes.Uint64(regions.AttrEventID, id+1<<40)
		attributes.Uint64(regions.AttrParentID, id)
		attributes.String(regions.AttrTimingSource, text("gpu"))
		must(row.Enter(at(late+6000), &attributes, regionOperation))
		must(row.MpiCollectiveBegin(at(late+6000), nil))
		end := t + 60_000 + odd(9000)
		must(row.MpiCollectiveEnd(at(end), nil, otf2.CollectiveOpAllreduce, 0, otf2.CollectiveRootNone, bytes, bytes))
		must(row.Leave(at(end), nil, regionOperation))

		for k := range uint64(putsEach) {
			from := late + 20_000 + 10_000*k + odd(1000)
			done := from + 7000 + odd(2000)
			if !s.Jitter {
				done = from + 9000
			}
			put.Reset()
			put.Uint32(regions.AttrChannel, uint32(k))
			put.Uint32(regions.AttrStep, uint32(i))
			must(net.Enter(at(from), nil, regionSend))
			must(net.RmaPut(at(from), &put, 0, uint32((rank+1)%s.Processes), bytes/2, putsEach*i+k))
			must(net.RmaOpCompleteNonBlocking(at(done), nil, 0, putsEach*i+k))
			must(net.Leave(at(done), nil, regionSend))
		}
	}
	return failed
}
