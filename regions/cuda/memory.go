// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"cmp"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/cupti"
)

// Classes of memory that buffers can be in.
const (
	ClassDevice  = "device"
	ClassManaged = "managed"
	ClassPinned  = "pinned"
	ClassHost    = "host"
	ClassUnknown = "unknown" // allocated before CUPTI was on, or in a way that it does not record
)

var memoryClasses = map[cupti.MemoryKind]string{
	cupti.MemoryPageable: ClassHost, cupti.MemoryPinned: ClassPinned, cupti.MemoryDevice: ClassDevice,
	cupti.MemoryArray: ClassDevice, cupti.MemoryManaged: ClassManaged, cupti.MemoryDeviceStatic: ClassDevice,
	cupti.MemoryManagedStatic: ClassManaged,
}

// memory records when memory was allocated. Operations ask when they are written, after the records of the memory that
// they used; so releases are kept for a while.
type memory struct {
	seen    bool         // CUPTI records memory
	blocks  []*block     // by address
	largest uint64       // size in bytes of the largest block so far
	gone    []releasedAt // in the order in which their releases came
}

// block is the history of the memory that begins at one address: allocations and releases by time.
type block struct {
	address uint64
	changes []change
}

type change struct {
	time  uint64 // on the process's line
	bytes uint64 // 0: released
	class string
	pool  uint64
}

// releasedAt is a release that can be forgotten later.
type releasedAt struct {
	arrived uint64
	block   *block
}

const (
	// maxBlocks bounds the known addresses.
	maxBlocks = 65536
	// releasedHold (ns) is how long a release is kept: normally longer than operations wait to be written.
	releasedHold = 120e9
	// lookBack is how many blocks that begin before an address are searched: old ones may lie there, within a larger
	// new one.
	lookBack = 1024
)

// takeMemory takes an allocation or a release.
func (g *Recorder) takeMemory(t uint64, rec *cupti.Memory) {
	g.memory.seen = true
	c := change{bytes: max(rec.Bytes, 1), class: memoryClasses[rec.MemoryKind], pool: rec.Pool}
	c.class = cmp.Or(c.class, ClassUnknown)
	switch rec.Operation {
	case cupti.MemoryAllocate:
	case cupti.MemoryRelease:
		c.bytes = 0
	default:
		g.counts[countUnknown]++
		return
	}
	if rec.Address == 0 {
		return // an allocation that failed
	}
	g.waitForClock(untimed{t, rec.Time, func() error {
		at, _, err := g.times.clock.Map(rec.Time)
		if err != nil {
			return err
		}
		c.time = at
		g.counts[countForgotten] += g.memory.addChange(rec.Address, c, t)
		return nil
	}, func() { g.counts[countForgotten]++ }})
}

// takePool takes the end of a pool, which releases all that is allocated from it.
func (g *Recorder) takePool(t uint64, rec *cupti.MemoryPool) {
	if rec.Operation != cupti.MemoryPoolDestroyed {
		return
	}
	g.waitForClock(untimed{t, rec.Time, func() error {
		at, _, err := g.times.clock.Map(rec.Time)
		if err != nil {
			return err
		}
		for _, b := range g.memory.blocks {
			if last := b.changes[len(b.changes)-1]; last.bytes > 0 && last.pool == rec.Address && last.time <= at {
				g.counts[countForgotten] += g.memory.addChange(b.address, change{time: at}, t)
			}
		}
		return nil
	}, func() { g.counts[countForgotten]++ }})
}

// findBlock returns the index of an address among the blocks.
func (s *memory) findBlock(address uint64) (int, bool) {
	return slices.BinarySearchFunc(s.blocks, address, func(b *block, a uint64) int { return cmp.Compare(b.address, a) })
}

// addChange adds a change at an address, and returns how many changes had to be forgotten for it.
func (s *memory) addChange(address uint64, c change, arrived uint64) (forgotten uint64) {
	for len(s.gone) > 0 && (s.gone[0].arrived+releasedHold < arrived || len(s.blocks) >= maxBlocks) {
		s.forgetOldest()
	}
	i, ok := s.findBlock(address)
	if !ok {
		if len(s.blocks) >= maxBlocks { // all of them are in use
			return 1
		}
		s.blocks = slices.Insert(s.blocks, i, &block{address: address})
	}
	b := s.blocks[i]
	at := len(b.changes)
	for at > 0 && b.changes[at-1].time > c.time {
		at--
	}
	b.changes = slices.Insert(b.changes, at, c)
	s.largest = max(s.largest, c.bytes)
	if c.bytes == 0 {
		s.gone = append(s.gone, releasedAt{arrived, b})
	}
	return 0
}

// forgetOldest forgets the oldest release, with all earlier changes at its address, so that nothing it released becomes
// valid again.
func (s *memory) forgetOldest() {
	b := s.gone[0].block
	s.gone = s.gone[1:]
	for i, c := range b.changes {
		if c.bytes == 0 {
			b.changes = slices.Delete(b.changes, 0, i+1)
			break
		}
	}
	if len(b.changes) > 0 {
		return
	}
	if i, ok := s.findBlock(b.address); ok && s.blocks[i] == b {
		s.blocks = slices.Delete(s.blocks, i, i+1)
	}
}

// classAt returns the class of the memory at an address at a time: that of the latest allocation that covers it.
func (s *memory) classAt(address, t uint64) string {
	i, ok := s.findBlock(address)
	if ok {
		i++
	}
	class, latest := ClassUnknown, uint64(0)
	for n := 0; i > 0 && n < lookBack; n++ {
		i--
		b := s.blocks[i]
		if b.address+s.largest <= address {
			break
		}
		// The last change up to then decides.
		for j := len(b.changes) - 1; j >= 0; j-- {
			if c := b.changes[j]; c.time <= t {
				if c.bytes > 0 && address-b.address < c.bytes && c.time >= latest {
					class, latest = c.class, c.time
				}
				break
			}
		}
	}
	return class
}

// SeesMemory reports whether CUPTI records memory.
func (g *Recorder) SeesMemory() bool { return g.memory.seen }

// MemoryClass returns the class of the memory at an address at a time: that of the latest allocation that covers it.
func (g *Recorder) MemoryClass(address, t uint64) string { return g.memory.classAt(address, t) }
