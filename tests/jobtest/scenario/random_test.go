// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/replay/descriptor"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

func TestRandomJobsAreTheSameForOneSeed(t *testing.T) {
	for seed := range uint64(20) {
		var files [2][]byte
		for i := range files {
			dir := t.TempDir()
			err := Random(seed, RandomOptions{Hazards: true}).Write(dir)
			testkit.Require(t, err == nil, "seed %d: %v", seed, err)
			text := testkit.Read(t, filepath.Join(dir, "p0.rec.jsonl.gz"))
			files[i] = text
		}
		testkit.Check(t, bytes.Equal(files[0], files[1]), "seed %d makes two different jobs", seed)
	}
}

// TestRandomJobs: what is made stays within its bounds and can be played; without hazards every event
// has one stop and no handle is misused.
func TestRandomJobs(t *testing.T) {
	types, releases := map[descriptor.Type]bool{}, map[string]bool{}
	for seed := range uint64(100) {
		for _, hazards := range []bool{false, true} {
			rec, err := Random(seed, RandomOptions{Hazards: hazards}).Load(t.TempDir())
			testkit.Require(t, err == nil, "seed %d: %v", seed, err)
			releases[rec.Run.NCCL] = true
			calls := 0
			for k, p := range rec.Processes {
				calls += len(p.Calls)
				_, err := replay.Compile(rec, k)
				testkit.Require(t, err == nil, "seed %d: %v", seed, err)
				for _, e := range p.Events {
					types[e.Type] = true
					if !hazards && (e.Stop == nil || e.Context == nil && e.ForeignContext == nil) {
						t.Errorf("seed %d: %+v", seed, e)
					}
				}
				for _, c := range p.Calls {
					if !hazards && (c.Again != 0 || c.Kind == replay.CallStop && c.Event == nil) {
						t.Errorf("seed %d: %+v", seed, c)
					}
				}
			}
			testkit.Check(t, calls >= 1000 && calls <= 2000, "seed %d: %d callbacks", seed, calls)
		}
	}
	for _, typ := range []descriptor.Type{descriptor.TypeGroup, descriptor.TypeColl, descriptor.TypeP2p, descriptor.TypeProxyOp,
		descriptor.TypeProxyStep,
		descriptor.TypeProxyCtrl, descriptor.TypeKernelCh, descriptor.TypeNetPlugin, descriptor.TypeGroupApi, descriptor.TypeCollApi,
		descriptor.TypeP2pApi,
		descriptor.TypeKernelLaunch, descriptor.TypeCeColl, descriptor.TypeCeSync, descriptor.TypeCeBatch, descriptor.TypeKernelPhase,
		descriptor.TypeOther} {
		testkit.Check(t, types[typ], "no seed makes %s", typ)
	}
	testkit.Check(t, len(releases) == 9, "only the releases %v", releases)
}

func TestRandomJobsArePlayed(t *testing.T) {
	for seed := range uint64(12) {
		for _, clock := range clocks {
			play(t, Random(seed, RandomOptions{Hazards: true}), replay.Options{Clock: clock, API: int(seed % 8)})
		}
	}
}
