// SPDX-License-Identifier: Apache-2.0

// Package shardtest makes experiment directories for tests: shards as a collector leaves them, with
// event files of the timeline model, without a collector.
//
// Times are nanoseconds of the process's own line. Helpers fail the test instead of returning errors.
package shardtest

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/flock"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/provenance"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/sequence"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// Epoch is the time at which test jobs begin unless they say otherwise, ns since 1970.
const Epoch = 1_760_000_000_000_000_000

// Process is one shard in the making.
type Process struct {
	t       testing.TB
	Dir     string              // of the shard
	Shard   description.Process // as it will be written; tests may change it
	writers []*otf2.EventWriter
	strings map[string]otf2.StringRef
	regions map[string]otf2.RegionRef
	threads map[int]*otf2.EventWriter
	request uint64
	lock    *os.File
	attrs   otf2.AttributeList
	network map[int]*network // by communicator; −1 − i: of foreign communicator rank i
}

// tag makes a tag of a uuid; the uuids in use here have different ones.
func tag(uuid string) uint16 {
	h := fnv.New32a()
	h.Write([]byte(uuid))
	return uint16(h.Sum32()%0xfffe) + 1
}

// New begins a shard in the experiment directory: a process of host "node0" that no launcher
// numbered, with an application thread as location 0.
func New(t testing.TB, directory, uuid string) *Process {
	t.Helper()
	p := &Process{
		t:   t,
		Dir: filepath.Join(directory, "shards", uuid),
		Shard: description.Process{
			Version: description.Version, UUID: uuid, Host: "node0", BootID: "boot0", PID: 1000, PIDStart: 1,
			Tag:        tag(uuid),
			Executable: "/usr/bin/python3", APIVersion: 6,
			Launcher: provenance.Launcher{Rank: -1, Size: -1},
			Clock:    provenance.Clock{Source: "tsc", AnchorRaw: 5_000_000_000, AnchorReal: Epoch},
			Library:  "NCCL", LibraryVersion: 22907, LibraryPath: "/usr/lib/libnccl.so.2",
			Masks:          provenance.Masks{Event: 0x7fff, Record: 0x7fff},
			Memory:         provenance.Memory{Kind: "memfd"},
			EventChunkSize: 256 << 10,
		},
		strings: make(map[string]otf2.StringRef),
		regions: make(map[string]otf2.RegionRef),
		threads: make(map[int]*otf2.EventWriter),
		network: make(map[int]*network),
	}
	p.Shard.Counts.Timing = make(map[string]uint64)
	p.check(os.MkdirAll(p.Dir, experiment.FolderMode))
	lock, err := os.OpenFile(filepath.Join(p.Dir, "lock"), os.O_CREATE|os.O_RDWR, experiment.FileMode)
	p.check(err)
	p.check(unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB))
	p.lock = lock
	t.Cleanup(func() { _ = flock.Unlock(lock) })
	p.Location(description.KindThread, otf2.LocationTypeCPUThread, "Thread 0", -1)
	return p
}

func (p *Process) check(err error) {
	if err != nil {
		p.t.Helper()
		p.t.Fatal(err)
	}
}

// NewRank begins the shard of a rank that the launcher has numbered, with a GPU of its own; perHost of them run on each
// of the hosts "node0", "node1", ….
func NewRank(t testing.TB, directory string, rank, ranks, perHost int) *Process {
	t.Helper()
	p := New(t, directory, fmt.Sprint("p", rank)).On(fmt.Sprint("node", rank/perHost), 100+rank).Launched("slurm", rank,
		ranks)
	p.GPU(rank%perHost, fmt.Sprint("GPU-", rank), "")
	return p
}

// Launched sets what the launcher says of the process.
func (p *Process) Launched(name string, rank, size int) *Process {
	p.Shard.Launcher = provenance.Launcher{Name: name, Rank: rank, Size: size}
	return p
}

// On sets where the process ran; hosts of one name share a boot.
func (p *Process) On(host string, pid int) *Process {
	p.Shard.Host, p.Shard.BootID, p.Shard.PID = host, "boot of "+host, pid
	return p
}

// Location adds a location and returns the writer of its event file.
func (p *Process) Location(kind description.LocationKind, typ otf2.LocationType, name string,
	comm int) *otf2.EventWriter {
	n := uint32(len(p.Shard.Locations))
	w, err := otf2.CreateEventWriter(experiment.EventFile(p.Dir, n),
		&otf2.EventWriterOptions{ChunkSize: p.Shard.EventChunkSize})
	p.check(err)
	p.writers = append(p.writers, w)
	p.Shard.Locations = append(p.Shard.Locations,
		description.Location{Number: n, Kind: kind, Name: name, Type: typ, Comm: comm, Foreign: -1})
	p.check(os.Chmod(experiment.EventFile(p.Dir, n), experiment.FileMode))
	return w
}

// Writer returns the writer of a location.
func (p *Process) Writer(location int) *otf2.EventWriter { return p.writers[location] }

// String returns the process's id of a string.
func (p *Process) String(s string) otf2.StringRef {
	ref, ok := p.strings[s]
	if !ok {
		ref = otf2.StringRef(len(p.Shard.Strings))
		p.strings[s] = ref
		p.Shard.Strings = append(p.Shard.Strings, s)
	}
	return ref
}

// Region returns the process's id of a region.
func (p *Process) Region(name, group string, role otf2.RegionRole) otf2.RegionRef {
	ref, ok := p.regions[name]
	if !ok {
		ref = otf2.RegionRef(len(p.Shard.Regions))
		p.regions[name] = ref
		p.Shard.Regions = append(p.Shard.Regions, description.Region{
			Name: name, Canonical: name, Role: role, Paradigm: otf2.ParadigmCUDA, Group: group,
		})
	}
	return ref
}

// GPU adds a device.
func (p *Process) GPU(device int, uuid, pci string) int {
	p.Shard.GPUs = append(p.Shard.GPUs, description.GPU{Device: device, UUID: uuid, PCI: pci})
	return len(p.Shard.GPUs) - 1
}

// Comm adds a communicator rank with its location, created at c.InitTime. It returns its local id.
func (p *Process) Comm(c description.Comm) int {
	i := len(p.Shard.Comms)
	label := c.Name
	if label == "" {
		label = fmt.Sprintf("comm %x", c.ID)
	}
	w := p.Location(description.KindRank, otf2.LocationTypeAcceleratorStream, fmt.Sprintf("%s rank %d", label, c.Rank),
		i)
	c.Location = len(p.writers) - 1
	if c.Sequences == nil { // else the process goes on with those of an earlier shard
		c.Sequences = make(map[string]sequence.Sequence)
	}
	p.Shard.Comms = append(p.Shard.Comms, c)
	if c.NRanks > 1 {
		p.check(w.CommCreate(otf2.Timestamp(c.InitTime), nil, otf2.CommRef(i)))
	}
	return i
}

// World adds the communicator of all ranks that the launcher numbered, created 1 ms after the epoch.
func (p *Process) World() int {
	return p.Comm(description.Comm{ID: 1, Name: "world", NRanks: p.Shard.Launcher.Size, Rank: p.Shard.Launcher.Rank,
		InitTime: Epoch + 1_000_000})
}

// Destroy ends a communicator rank.
func (p *Process) Destroy(comm int, t uint64) {
	c := &p.Shard.Comms[comm]
	c.FinalTime = t
	if c.NRanks > 1 {
		p.check(p.writers[c.Location].CommDestroy(otf2.Timestamp(t), nil, otf2.CommRef(comm)))
	}
}

// Call draws an API call on the application thread.
func (p *Process) Call(name string, begin, end uint64) {
	r := p.Region(name, regions.GroupAPI, otf2.RegionRoleFunction)
	p.check(p.writers[0].Enter(otf2.Timestamp(begin), nil, r))
	p.check(p.writers[0].Leave(otf2.Timestamp(end), nil, r))
}

// CallFor draws an API call that asks for an operation, whose Parent is event.
func (p *Process) CallFor(name string, event, begin, end uint64) {
	r := p.Region(name, regions.GroupAPI, otf2.RegionRoleFunction)
	a := &p.attrs
	a.Reset()
	a.Uint64(regions.AttrCount, 1)
	a.Uint64(regions.AttrEventID, event)
	p.check(p.writers[0].Enter(otf2.Timestamp(begin), a, r))
	p.check(p.writers[0].Leave(otf2.Timestamp(end), nil, r))
}

// Op is a collective operation on one communicator rank. What it is in OTF2 follows from its function.
type Op struct {
	Function       string // "AllReduce"
	Begin, End     uint64
	Root           uint32 // of a Broadcast or Reduce
	Sent, Received uint64 // both 0: what follows from function, root and count, of elements of four bytes
	Count          uint64
	Datatype       string // default ncclFloat32
	Source         string // default "gpu"
	Algo, Proto    string
	Channels       uint32
	Memory         string // class of both buffers, such as regions.ClassDevice; "" if not known
	Parent         uint64 // event of the call that asked for it, see CallFor; 0: not known
	Uncertainty    uint64 // of its times; 0: not stated
	EndsEarly      bool   // its end is that of a part
	GPULast        uint64 // ns after Begin at which its GPU was last given data; 0: not stated
}

// kinds of functions in OTF2.
var kinds = map[string]otf2.CollectiveOp{
	"AllReduce": otf2.CollectiveOpAllreduce, "AllGather": otf2.CollectiveOpAllgather,
	"ReduceScatter": otf2.CollectiveOpReduceScatterBlock, "Broadcast": otf2.CollectiveOpBcast,
	"Reduce": otf2.CollectiveOpReduce,
}

// bytes are what OTF2 counts as sent and received by a member: of what all exchange, and of a root, those of all.
func (op *Op) bytes(c *description.Comm) (sent, received uint64) {
	if op.Sent != 0 || op.Received != 0 {
		return op.Sent, op.Received
	}
	one, all := 4*op.Count, 4*op.Count*uint64(c.NRanks)
	switch root := int(op.Root) == c.Rank; {
	case op.Function == "Broadcast" && root:
		return all, one
	case op.Function == "Broadcast":
		return 0, one
	case op.Function == "Reduce" && root:
		return one, all
	case op.Function == "Reduce":
		return one, 0
	}
	return all, all
}

// Collective draws an operation as a plan of its own.
func (p *Process) Collective(comm int, op Op) {
	p.Plan(comm, []Op{op})
}

// Plan draws operations that were launched together. All have the times of the first.
func (p *Process) Plan(comm int, ops []Op) {
	c := &p.Shard.Comms[comm]
	w := p.writers[c.Location]
	single := len(ops) == 1
	name, role := ops[0].Function, otf2.RegionRoleCollAll2All
	if !single {
		name, role = regions.LaunchName, otf2.RegionRoleCollOther
	}
	region := p.Region(name, regions.GroupCollectives, role)
	begin, end := otf2.Timestamp(ops[0].Begin), otf2.Timestamp(ops[0].End)
	a := &p.attrs
	a.Reset()
	if single {
		p.describe(a, c, ops[0])
	}
	source := ops[0].Source
	if source == "" {
		source = "gpu"
	}
	a.String(regions.AttrTimingSource, p.String(source))
	if !single {
		a.Uint32(regions.AttrOperations, uint32(len(ops)))
	}
	if u := ops[0].Uncertainty; u > 0 {
		a.Uint64(regions.AttrUncertainty, u)
	}
	if ops[0].EndsEarly {
		p.endsEarly(a, len(ops))
	}
	if last := ops[0].GPULast; last > 0 {
		a.Uint64(regions.AttrGPULast, last)
	}
	p.check(w.Enter(begin, a, region))
	root := func(op Op) uint32 {
		if op.Function == "Broadcast" || op.Function == "Reduce" {
			return op.Root
		}
		return otf2.CollectiveRootNone
	}
	requests := make([]uint64, len(ops))
	for i, op := range ops {
		p.Shard.Counts.Timing[source]++
		switch {
		case c.NRanks < 2:
		case single:
			p.check(w.MpiCollectiveBegin(begin, nil))
		default:
			a.Reset()
			p.describe(a, c, op)
			p.request++
			requests[i] = p.request
			p.check(w.NonBlockingCollectiveRequest(begin, a, requests[i]))
		}
	}
	for i, op := range ops {
		kind, of := kinds[op.Function], otf2.CommRef(comm)
		sent, received := op.bytes(c)
		switch {
		case c.NRanks < 2:
		case single:
			p.check(w.MpiCollectiveEnd(end, nil, kind, of, root(op), sent, received))
		default:
			p.check(w.NonBlockingCollectiveComplete(end, nil, kind, of, root(op), sent, received, requests[i]))
		}
	}
	p.check(w.Leave(end, nil, region))
}

// endsEarly marks a launch whose end is that of a part.
func (p *Process) endsEarly(a *otf2.AttributeList, operations int) {
	a.Uint8(regions.AttrEndsEarly, 1)
	if p.Shard.Counts.Ends == nil {
		p.Shard.Counts.Ends = make(map[string]uint64)
	}
	p.Shard.Counts.Ends[description.EarlyEnds] += uint64(operations)
}

// Lose leaves the places of n equal collectives that died with the collector before.
func (p *Process) Lose(comm int, n uint64, op Op) {
	c := &p.Shard.Comms[comm]
	hole := sequence.Hole{From: c.Sequences[op.Function].Count}
	hole.To = hole.From + n
	for range n {
		count(c, op.Function, 0, op.Count, uint64(op.Root))
	}
	s := c.Sequences[op.Function]
	s.Holes = append(slices.Clone(s.Holes), hole)
	c.Sequences[op.Function] = s
}

func (p *Process) describe(a *otf2.AttributeList, c *description.Comm, op Op) {
	datatype := op.Datatype
	if datatype == "" {
		datatype = "ncclFloat32"
	}
	arguments := []uint64{op.Count, uint64(op.Root)}
	if op.Datatype != "" {
		h := fnv.New64a()
		h.Write([]byte(datatype))
		arguments = append(arguments, h.Sum64())
	}
	a.Uint64(regions.AttrOrdinal, count(c, op.Function, 0, arguments...))
	if op.Algo != "" {
		a.String(regions.AttrAlgo, p.String(op.Algo))
	}
	if op.Proto != "" {
		a.String(regions.AttrProto, p.String(op.Proto))
	}
	if op.Channels > 0 {
		a.Uint32(regions.AttrChannels, op.Channels)
	}
	a.String(regions.AttrDatatype, p.String(datatype))
	a.Uint64(regions.AttrCount, op.Count)
	if op.Parent != 0 {
		a.Uint64(regions.AttrParentID, op.Parent)
	}
	if op.Memory != "" {
		a.String(regions.AttrSendBuffClass, p.String(op.Memory))
		a.String(regions.AttrRecvBuffClass, p.String(op.Memory))
	}
}

// AllReduce draws an AllReduce of float32 elements on the ring.
func (p *Process) AllReduce(comm int, begin, end, elements uint64) {
	p.Collective(comm, Op{Function: "AllReduce", Begin: begin, End: end, Count: elements, Algo: "RING", Proto: "SIMPLE",
		Channels: 4})
}

// Broadcast draws a Broadcast of float32 elements.
func (p *Process) Broadcast(comm, root int, begin, end, elements uint64, source string) {
	p.Collective(comm, Op{Function: "Broadcast", Begin: begin, End: end, Root: uint32(root), Count: elements,
		Source: source})
}

// GatherAndScatter draws an AllGather of float32 elements and a ReduceScatter of twice as many, launched together.
func (p *Process) GatherAndScatter(comm int, begin, end, elements uint64) {
	p.Plan(comm, []Op{
		{Function: "AllGather", Begin: begin, End: end, Count: elements},
		{Function: "ReduceScatter", Begin: begin, End: end, Count: 2 * elements},
	})
}

// Send and Recv draw one end of a message of length bytes.
func (p *Process) Send(comm, peer int, begin, end, length uint64) {
	p.message(comm, peer, begin, end, length, true, false)
}

// Recv is the other end of Send.
func (p *Process) Recv(comm, peer int, begin, end, length uint64) {
	p.message(comm, peer, begin, end, length, false, false)
}

// RecvInPart is a Recv whose end is that of a part of its kernel.
func (p *Process) RecvInPart(comm, peer int, begin, end, length uint64) {
	p.message(comm, peer, begin, end, length, false, true)
}

func (p *Process) message(comm, peer int, begin, end, length uint64, send, early bool) {
	c := &p.Shard.Comms[comm]
	w := p.writers[c.Location]
	name, key := "Recv", sequence.Pair{From: peer}.RecvKey()
	if send {
		name, key = "Send", sequence.Pair{To: peer}.SendKey()
	}
	region := p.Region(name, regions.GroupPointToPoint, otf2.RegionRolePoint2Point)
	a := &p.attrs
	a.Reset()
	a.Uint64(regions.AttrOrdinal, count(c, key, length, length))
	a.String(regions.AttrDatatype, p.String("ncclInt8"))
	a.Uint64(regions.AttrCount, length)
	a.String(regions.AttrTimingSource, p.String("gpu"))
	if early {
		p.endsEarly(a, 1)
	}
	p.Shard.Counts.Timing["gpu"]++
	t0, t1 := otf2.Timestamp(begin), otf2.Timestamp(end)
	p.check(w.Enter(t0, a, region))
	p.request++
	if send {
		p.check(w.MpiIsend(t0, nil, uint32(peer), otf2.CommRef(comm), 0, length, p.request))
		p.check(w.MpiIsendComplete(t1, nil, p.request))
	} else {
		p.check(w.MpiIrecvRequest(t0, nil, p.request))
		p.check(w.MpiIrecv(t1, nil, uint32(peer), otf2.CommRef(comm), 0, length, p.request))
	}
	p.check(w.Leave(t1, nil, region))
}

// count adds the next operation to a sequence (FNV-1a over what must be equal for members) and returns its ordinal.
func count(c *description.Comm, key string, bytes uint64, values ...uint64) uint64 {
	s := c.Sequences[key]
	add(&s, values)
	s.Bytes += bytes
	c.Sequences[key] = s
	if sequence.FunctionOf(key) == key {
		if c.Order == nil {
			c.Order = new(sequence.Sequence)
		}
		h := fnv.New64a()
		h.Write([]byte(key))
		add(c.Order, append(values, h.Sum64()))
	}
	return s.Count - 1
}

func add(s *sequence.Sequence, values []uint64) {
	if s.Count == 0 {
		s.Last = 14695981039346656037
	}
	for _, v := range values {
		for range 8 {
			s.Last = (s.Last ^ v&0xff) * 1099511628211
			v >>= 8
		}
	}
	s.Count++
	s.Recent = append(s.Recent, byte(s.Last>>32), byte(s.Last>>40))
	if s.Count%sequence.DigestStep == 0 {
		s.Digests, s.Recent = append(s.Digests, s.Last), nil
	}
}

// Flush brings events and description to disk; the shard stays locked, as of a running process.
func (p *Process) Flush() {
	for _, w := range p.writers {
		p.check(w.Flush())
	}
	p.describeAll()
}

func (p *Process) describeAll() {
	for i, w := range p.writers {
		l := &p.Shard.Locations[i]
		l.Events, l.Bytes = w.Events(), w.Size()
		if w.Events() > 0 {
			p.Shard.LastTime = max(p.Shard.LastTime, uint64(w.LastTime()))
		}
	}
	if p.Shard.FirstTime == 0 {
		p.Shard.FirstTime = p.Shard.LastTime
		for _, c := range p.Shard.Comms {
			p.Shard.FirstTime = min(p.Shard.FirstTime, c.InitTime)
		}
	}
	text, err := json.MarshalIndent(&p.Shard, "", " ")
	p.check(err)
	path := filepath.Join(p.Dir, experiment.ProcessFile)
	p.check(os.WriteFile(path+".new", text, experiment.FileMode))
	p.check(os.Rename(path+".new", path))
}

// Finish ends the shard as a collector does.
func (p *Process) Finish() {
	p.Shard.Finished = true
	for _, w := range p.writers {
		p.check(w.Close())
	}
	p.describeAll()
	p.check(os.WriteFile(filepath.Join(p.Dir, "done"), nil, experiment.FileMode))
	p.check(flock.Unlock(p.lock))
}

// Crash ends the shard as a collector does that is killed: what was flushed stays, then rubbish
// follows in the event file of the given location (−1: in none).
func (p *Process) Crash(location int, rubbish []byte) {
	p.check(flock.Unlock(p.lock))
	if location < 0 {
		return
	}
	path := experiment.EventFile(p.Dir, uint32(location))
	info, err := os.Stat(path)
	p.check(err)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	p.check(err)
	_, err = f.WriteAt(rubbish, info.Size()-2)
	p.check(err)
	p.check(f.Close())
}
