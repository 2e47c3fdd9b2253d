// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/collector/control"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shmtest"
)

// onGPU is an allReduce whose kernel is reported: it began and ended at stamps of a clock that runs as the host's does.
func (a *application) onGPU(seq uint64) {
	tasks := a.start(shm.EventGroup, shm.Record{})
	coll := a.start(shm.EventColl, shm.Record{ParentGroup: tasks, Seq: seq, Count: 1024, Func: "AllReduce",
		Datatype: "ncclFloat32",
		Algo:     "RING", Proto: "LL", NChannels: 1, NWarps: 16})
	a.stop(coll)
	a.stop(tasks)
	kernel := a.start(shm.EventKernelCh, shm.Record{Arg: coll, PTimer: a.now()})
	a.write(shm.Record{Kind: shm.RecordState, Type: shm.EventKernelCh, Handle: kernel, Aux: 22, Flags: shm.FlagHasArg,
		Arg: a.now()})
	a.stop(kernel)
}

// writtenOperations is how many are in event files, as of the last flush.
func writtenOperations(t *testing.T, dir string) (n uint64) {
	t.Helper()
	entries := testkit.Value(experiment.List(dir))(t)
	for _, e := range entries {
		if p, err := experiment.ReadCheckpoint(e.Path); err == nil {
			for _, c := range p.Comms {
				n += c.Sequences["AllReduce"].Count
			}
		}
	}
	return n
}

// What is complete waits for later reports, which make the GPU's clock better known. Where no record comes any more,
// time alone has it written and brought to disk, so that nothing of it is missing when everything is killed: whether
// records are put off or not, and of all modes.
func TestOperationsReachTheDiskOfAnIdleProcess(t *testing.T) {
	for name, vars := range map[string][]string{
		"put off":    {"NCCL_OTF2_BACKLOG=on"},
		"as it goes": {"NCCL_OTF2_BACKLOG=off"},
		"profile":    {"NCCL_OTF2_MODE=profile"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			job, process, a := newCaller(t, shmtest.Options{Clock: shm.ClockMonotonic, Chunks: 64})
			wait := startRun(t, job, Options{Lookup: environment(append(vars, "NCCL_OTF2_DIR="+dir)...)})
			const operations = 50
			for i := range uint64(operations) {
				a.onGPU(i)
			}
			testkit.Check(t, shmtest.Await(func() bool { return writtenOperations(t, dir) == operations }),
				"%d operations of %d are on the disk", writtenOperations(t, dir), operations)
			process.end()
			testkit.Must(t, wait())
		})
	}
}

// Who looks at a running job sees all operations that are complete, however short ago they ended and whatever is put
// off.
func TestWhoLooksSeesAllThatIsComplete(t *testing.T) {
	for _, backlog := range []string{"on", "auto", "off"} {
		t.Run(backlog, func(t *testing.T) {
			dir := t.TempDir()
			job, process, a := newCaller(t, shmtest.Options{Clock: shm.ClockMonotonic, Chunks: 64})
			wait := startRun(t, job, Options{Lookup: environment("NCCL_OTF2_BACKLOG="+backlog, "NCCL_OTF2_DIR="+dir)})
			for i := range uint64(50) {
				a.onGPU(i)
			}
			behind, err := (&control.Controller{Dir: dir, Timeout: time.Minute}).Watch(
				context.Background(), time.Minute)
			if n := writtenOperations(t, dir); n != 50 || behind != 0 || err != nil {
				t.Errorf("%d operations of 50 are on the disk, %d bytes behind, %v", n, behind, err)
			}
			process.end()
			testkit.Must(t, wait())
		})
	}
}
