// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/replay/descriptor"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/fakegpu"
)

// memoryClassOf is what each of CUPTI's kinds of memory is called, as its header has them.
var memoryClassOf = map[int]string{1: "host", 2: "pinned", 3: "device", 5: "managed", 6: "device", 7: "managed"}

// classAt is the class of the memory that truly lay at an address at a time of CUPTI's clock.
func classAt(memory []fakegpu.Memory, address descriptor.Pointer, time uint64) string {
	class := "unknown"
	for _, m := range memory { // in order
		if m.Time > time || address < m.Address || uint64(address-m.Address) >= m.Bytes {
			continue
		}
		if class = memoryClassOf[m.Kind]; m.Operation == 2 {
			class = "unknown"
		}
	}
	return class
}

// Each operation says in what memory its buffers lie: of all recordings, and with the records of all versions.
func TestClassesOfBuffers(t *testing.T) {
	t.Parallel()
	versions := slices.Sorted(maps.Keys(kernelSizes))
	var all classesSeen
	t.Run("recordings", func(t *testing.T) {
		for i, rec := range kernelRecordings(t) {
			for k, version := range versions {
				if k != i%len(versions) && rec.Name != "02-allcoll-4p-net" {
					continue
				}
				t.Run(fmt.Sprint(rec.Name, "/", version), func(t *testing.T) {
					t.Parallel()
					_, res, got := playKernelsUnified(t, rec, env("NCCL_OTF2_CUPTI=memory",
						fmt.Sprint("FAKECUPTI_VERSION=", version), "FAKECUPTI_CLOCK=host"))
					all.add(checkClasses(t, rec, res, got))
				})
			}
		}
	})
	want := []string{"device", "host", "managed", "pinned", "unknown"}
	testkit.Check(t, slices.Equal(slices.Sorted(maps.Keys(all.classes)), want),
		"there were the classes %v, want %v", slices.Sorted(maps.Keys(all.classes)), want)
	testkit.Check(t, all.changed != 0, "no operation came when its memory had been another kind before")
}

// classesSeen is what buffers there were: of one play, or of all.
type classesSeen struct {
	sync.Mutex
	classes map[string]bool
	changed int // operations that came when there had been memory of another class at their buffer
}

func (all *classesSeen) add(one *classesSeen) {
	all.Lock()
	defer all.Unlock()
	if all.classes == nil {
		all.classes = make(map[string]bool)
	}
	maps.Copy(all.classes, one.classes)
	all.changed += one.changed
}

func checkClasses(t *testing.T, rec *replay.Recording, res *replay.Result, got *archive) *classesSeen {
	t.Helper()
	seen := &classesSeen{classes: make(map[string]bool)}
	want := expect(rec)
	comms := communicatorsByKey(t, want, got)
	for i, p := range rec.Processes {
		memory, anchor := fakegpu.Ran(t, &res.Processes[i]).Memory, p.Opens[0]
		for _, ctx := range p.Contexts {
			c := comms[commKey(ctx)]
			if c == nil {
				continue
			}
			operations := testkit.Value(got.operations(c.Members[ctx.Rank]))(t)
			for key, list := range want.operations[member{commKey(ctx), ctx.Rank}] {
				for n, w := range list {
					if n >= len(operations[key]) {
						t.Fatalf("%s rank %d: %s %d is missing", c.Name, ctx.Rank, key, n)
					}
					var send, recv descriptor.Pointer
					switch d := w.event.Descr.(type) {
					case *descriptor.Coll:
						send, recv = d.SendBuff, d.RecvBuff
					case *descriptor.P2p:
						send = d.Buff
						if d.Func == "Recv" {
							send, recv = 0, d.Buff
						}
					default:
						continue // NCCL reports nothing but the call
					}
					// No allocation is released while an operation that uses it is under way.
					time := w.event.Group.Start.T - anchor.T + anchor.Real
					for _, b := range []struct {
						what, got string
						address   descriptor.Pointer
					}{{"send", operations[key][n].send, send}, {"receive", operations[key][n].recv, recv}} {
						class := ""
						if b.address != 0 {
							class = classAt(memory, b.address, time)
							seen.classes[class] = true
							if len(memory) > 0 && classAt(memory, b.address, memory[0].Time) != class {
								seen.changed++
							}
						}
						if b.got != class {
							t.Errorf("%s rank %d: %s %d: the %s buffer %#x is in %q memory, want %q", c.Name, ctx.Rank,
								key, n, b.what, uint64(b.address), b.got, class)
						}
					}
				}
			}
		}
	}
	return seen
}
