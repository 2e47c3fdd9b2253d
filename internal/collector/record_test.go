// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/internal/replay/record"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shmtest"
)

// transcriptOf is the text of the only transcript in an experiment directory, assembled or not.
func transcriptOf(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, record.Folder, "*.rec.jsonl.gz"))
	testkit.Require(t, err == nil && len(files) == 1, "%v, %v", files, err)
	var out bytes.Buffer
	testkit.Must(t, record.EachLine(files[0], func(line []byte) error {
		testkit.Check(t, json.Valid(line), "no JSON: %s", line)
		out.Write(line)
		return nil
	}))
	return out.String()
}

// Every kind of event, what a stop or state can have for a handle, and how events refer to each other.
func TestTranscript(t *testing.T) {
	dir := t.TempDir()
	job, process := newJob(t, shmtest.Options{APIVersion: 7, Tag: 0x1234,
		Created: shm.ClockTuple{Ticks: 1000, Raw: 5000, Mono: 6000, Real: 7000}})
	ticks := uint64(1000)
	a := &application{job: job, now: func() uint64 { ticks += 10; return ticks }}
	a.comm = uint32(job.Comm(shm.Comm{APIVersion: 7, ID: 0xabc, NRanks: 2, Rank: 1, NNodes: 1, InitTicks: 1000,
		Name: `a "name"`}, nil))
	a.thread = job.Thread(a.now(), 77, "main")
	wait := startRun(t, job, Options{Lookup: environment("NCCL_OTF2_DIR="+dir, "NCCL_OTF2_MODE=record")})
	state := func(h uint64, s uint32, r shm.Record) {
		r.Kind, r.Type, r.Handle, r.Aux = shm.RecordState, shm.TypeOf(h), h, s
		a.write(r)
	}
	a.write(shm.Record{Kind: shm.RecordInit, Aux: a.comm})
	group := a.start(shm.EventGroupApi, shm.Record{GroupDepth: 1})
	state(group, 23, shm.Record{})
	a.write(shm.Record{Kind: shm.RecordBefore, Handle: 1, Arg: group})
	call := a.start(shm.EventCollApi, shm.Record{Arg: group, Count: 5, Func: "AllReduce", Datatype: "ncclFloat32",
		Stream: 0x77, UserTag: 9, Flags: shm.FlagGraph})
	a.stop(call)
	plan := a.start(shm.EventGroup, shm.Record{})
	coll := a.start(shm.EventColl, shm.Record{Arg: call, ParentGroup: plan, Seq: 3, Count: 5, Func: "AllReduce",
		Datatype: "ncclFloat32", Algo: "AGxLL_R",
		KernelVariant: "AllReduce_AGxLL_R", Flags: shm.FlagSym, NChannels: 2, NWarps: 4, Rank: 1})
	a.stop(coll)
	a.stop(coll)
	p2p := a.start(shm.EventP2p, shm.Record{Arg: 0xdead, Func: "Send", Datatype: "ncclInt8", Count: 1 << 40, Peer: 1,
		SendBuff: 0xbeef})
	op := a.start(shm.EventProxyOp, shm.Record{Arg: p2p, PID: 4, Peer: 1, NSteps: 2, ChunkSize: 512, Channel: 3,
		Flags: shm.FlagSend})
	state(op, 19, shm.Record{})
	state(op, 3, shm.Record{Flags: shm.FlagHasArg, Arg: 4096, Steps: 2})
	foreign := shm.Record{Kind: shm.RecordStart, Type: shm.EventProxyOp, Aux: shm.None,
		Handle: job.Handle(shm.EventProxyOp, 900), Context: 0x9999f80000000000}
	a.write(foreign)
	step := a.start(shm.EventProxyStep, shm.Record{Arg: op, Step: 1})
	state(step, 9, shm.Record{Flags: shm.FlagHasArg, Arg: 512})
	a.start(shm.EventNetPlugin, shm.Record{Arg: step, NetID: 2<<16 | 1, Data: 0x10, DeviceOrFD: 5, Length: 512,
		Flags: shm.FlagKnownNet | shm.FlagSend})
	net := a.start(shm.EventNetPlugin, shm.Record{Arg: step, NetID: 1<<16 | 1, Data: 0x20, DeviceOrFD: 1, Opcode: 2,
		QP: 3, WrID: 4, Length: 512, Flags: shm.FlagKnownNet})
	state(net, 21, shm.Record{Flags: shm.FlagHasArg, Arg: 0x20})
	a.start(shm.EventNetPlugin, shm.Record{Arg: step, NetID: 7 << 16, Data: 0x30})
	kernel := a.start(shm.EventKernelCh, shm.Record{Arg: coll, Channel: 1, PTimer: 1 << 60})
	phase := a.start(shm.EventKernelPhase, shm.Record{Arg: kernel, Channel: 1, Phase: 2, PhaseName: "final_sync",
		PTimer: 1<<60 + 1})
	state(phase, 31, shm.Record{Flags: shm.FlagHasArg, Arg: 1<<60 + 2})
	state(kernel, 22, shm.Record{Flags: shm.FlagHasArg, Arg: 1<<60 + 3})
	control := a.start(shm.EventProxyCtrl, shm.Record{})
	state(control, 18, shm.Record{Flags: shm.FlagHasArg, Arg: 3})
	a.start(shm.EventKernelLaunch, shm.Record{Arg: group, Stream: 0x77})
	a.start(shm.EventP2pApi, shm.Record{Arg: group, Func: "Recv", Datatype: "ncclInt8", Count: 7})
	ce := a.start(shm.EventCeColl, shm.Record{Arg: call, Seq: 1, Func: "AllGather", Datatype: "ncclInt8", Count: 8,
		SyncStrategy: "mc", BatchSize: 2, NumBatches: 3, CeSeq: 4})
	a.start(shm.EventCeSync, shm.Record{Arg: ce, NRanks: 2, Flags: shm.FlagComplete})
	a.start(shm.EventCeBatch, shm.Record{Arg: ce, NumOps: 2, Bytes: 99})
	// Handles that are none: NULL, a stranger's, one of ours that never was.
	a.write(shm.Record{Kind: shm.RecordStop})
	a.write(shm.Record{Kind: shm.RecordStop, Handle: 0x7fff12345678})
	state(job.Handle(shm.EventColl, 12345), 22, shm.Record{})
	a.write(shm.Record{Kind: shm.RecordFinalize, Aux: a.comm})
	job.Tick(ticks)
	process.end()
	testkit.Must(t, wait())

	e := onlyShard(t, dir)
	p := e.Process
	testkit.Check(t, e.State == experiment.Done && record.IsRecording(p) && len(p.Locations) == 0 &&
		p.Counts.Starts["NetPlugin"] == 3 && p.Counts.Stops["Coll"] == 2 && p.Counts.States["KernelPhaseStop"] == 1 &&
		p.Counts.Oddities["UNKNOWN_EVENTS"] == 1, "state %v, %+v", e.State, p)
	got := strings.NewReplacer("\"pid\":"+itoa(process.cmd.Process.Pid), `"pid":PID`).Replace(transcriptOf(t, dir))
	golden.Text(t, "testdata/transcript.jsonl", got)
}

func itoa(n int) string {
	b, _ := json.Marshal(n)
	return string(b)
}

// The collector that takes over from one that was killed goes on with its file: each callback once, ids
// running on.
func TestTranscriptGoesOnAfterAKill(t *testing.T) {
	dir := t.TempDir()
	job, process, a := newCaller(t, shmtest.Options{Clock: shm.ClockMonotonic, Chunks: 128})
	vars := []string{"NCCL_OTF2_DIR=" + dir, "NCCL_OTF2_MODE=record"}
	first := startCollector(t, job, "collector", vars...)
	const calls = 400
	for i := range uint64(calls) {
		a.allReduce(i)
	}
	group := a.start(shm.EventGroupApi, shm.Record{GroupDepth: 1})
	flushAll(t, job)
	for i := range uint64(10) {
		a.allReduce(calls + i) // perhaps taken, perhaps not
	}
	first.Process.Kill()
	first.Wait()
	second := startCollector(t, job, "collector", vars...)
	a.stop(group)
	for i := range uint64(calls) {
		a.allReduce(calls + 10 + i)
	}
	process.end()
	err := second.Wait()
	testkit.Require(t, err == nil, "%v: %s", err, second.Stderr)
	folders, err := record.Assemble(dir)
	testkit.Require(t, err == nil && len(folders) == 1, "%v, %v", folders, err)
	seq, ids := 0, 0
	for line := range strings.Lines(transcriptOf(t, dir)) {
		var l struct {
			Seq, TID, Type int
			F              string
			H              string
			ID             *int
		}
		testkit.Must(t, json.Unmarshal([]byte(line), &l))
		testkit.Require(t, l.Seq == seq, "line %d: %s", seq, line)
		seq++
		if l.F == "start" {
			if ids++; *l.ID != ids || l.TID != 1000 {
				t.Fatalf("start %d: %s", ids, line)
			}
		}
		testkit.Require(t, l.F != "stop" || l.ID != nil, "a stop of nothing: %s", line)
	}
	want := (2*calls+10)*perCall + 1
	testkit.Check(t, ids == want, "%d starts, want %d", ids, want)
}
