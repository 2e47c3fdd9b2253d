// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/nccl-otf2/nccl-otf2/config"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/check"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/loss"
	"github.com/nccl-otf2/nccl-otf2/internal/replay/record"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/scorep"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shmtest"
)

// exchange is one of two processes that send each other messages, each of another size. All records of its life lie in
// its memory, one a microsecond, so that they can be taken up to any of them.
type exchange struct {
	*shmtest.Job
	rank    int
	clock   shm.ClockTuple // at its beginning
	threads [2]*shmtest.Thread
	ticks   uint64
	handles uint64
	ends    []uint64 // ticks at which the exchanges were over
}

// exchanges is how many there are, with a message in each direction.
const exchanges = 3

// pause (ns) is the time between two records.
const pause = 1000

func newExchange(t *testing.T, rank int, clock shm.ClockTuple) *exchange {
	t.Helper()
	job := testkit.Value(shmtest.New(shmtest.Options{Clock: shm.ClockMonotonic,
		Tag: uint16(0x100 + rank), Created: clock}))(t)
	t.Cleanup(func() { job.Close() })
	e := &exchange{Job: job, rank: rank, clock: clock, ticks: clock.Ticks}
	for i := range e.threads {
		e.threads[i] = job.Thread(e.tick(), 10+i, "")
	}
	job.Comm(shm.Comm{APIVersion: 6, ID: 0xc0ffee, NRanks: 2, Rank: rank, NNodes: 1, Device: rank, InitTicks: e.tick(),
		Name: "pair"}, nil)
	e.threads[0].Write(&shm.Record{Kind: shm.RecordInit, Ticks: e.ticks})
	for i := range uint64(exchanges) {
		e.exchange(i)
		e.ends = append(e.ends, e.ticks)
	}
	job.FinishComm(0, e.tick())
	e.threads[0].Write(&shm.Record{Kind: shm.RecordFinalize, Ticks: e.ticks})
	return e
}

func (e *exchange) tick() uint64 { e.ticks += pause; return e.ticks }

func (e *exchange) start(thread int, typ shm.EventType, r shm.Record) uint64 {
	e.handles++
	r.Kind, r.Type, r.Handle, r.Ticks = shm.RecordStart, typ, e.Handle(typ, e.handles), e.tick()
	e.threads[thread].Write(&r)
	return r.Handle
}

func (e *exchange) stop(thread int, handle uint64) {
	e.threads[thread].Write(&shm.Record{Kind: shm.RecordStop, Type: shm.TypeOf(handle), Handle: handle,
		Ticks: e.tick()})
}

// exchange is one group of a send and a receive, and the kernel that carries them out.
func (e *exchange) exchange(i uint64) {
	bytes := 1000 + i
	functions := [2]string{"Send", "Recv"}
	var calls, tasks [2]uint64
	group := e.start(0, shm.EventGroupApi, shm.Record{GroupDepth: 2})
	for k, f := range functions {
		calls[k] = e.start(0, shm.EventP2pApi, shm.Record{Arg: group, Count: bytes, Func: f, Datatype: "ncclInt8",
			Stream: 7})
		e.stop(0, calls[k])
	}
	plan := e.start(0, shm.EventGroup, shm.Record{Arg: group})
	for k, f := range functions {
		tasks[k] = e.start(0, shm.EventP2p, shm.Record{Arg: calls[k], ParentGroup: plan, Count: bytes, Func: f,
			Datatype: "ncclInt8", Peer: int32(1 - e.rank), NChannels: 1})
		e.stop(0, tasks[k])
	}
	e.stop(0, plan)
	e.stop(0, group)
	for _, task := range tasks {
		gpu := e.clock.Real + e.ticks - e.clock.Ticks
		kernel := e.start(1, shm.EventKernelCh, shm.Record{Arg: task, PTimer: gpu})
		e.threads[1].Write(&shm.Record{Kind: shm.RecordState, Type: shm.EventKernelCh, Handle: kernel, Aux: 22,
			Flags: shm.FlagHasArg, Arg: gpu + 500, Ticks: e.tick()})
		e.stop(1, kernel)
	}
}

// collect begins a collector.
func collect(t testing.TB, job *shmtest.Job, dir string) *recording {
	t.Helper()
	return collectBy(t, config.RecordedSettings(map[string]string{"EVENTS": "all"}), job, dir)
}

func collectBy(t testing.TB, settings *config.Settings, job *shmtest.Job, dir string) *recording {
	t.Helper()
	memory := testkit.Value(shm.Map(job.FD()))(t)
	t.Cleanup(func() { memory.Close() })
	memory.SetMasks(1<<shm.TypeCount-1, 1<<shm.TypeCount-1)
	r := testkit.Value(newRecording(memory, settings, config.Launcher{Rank: -1, Size: -1}, dir, uuid.NewString()))(t)
	testkit.Value(memory.Refresh())(t)
	memory.SetState(shm.CollectorReady)
	return r
}

// newLive is the collector of a process that is collected already.
func newLive(r *recording) *live {
	return &live{recording: r, memory: r.drain.source.(*shm.Memory), settings: &config.Settings{}}
}

// newPatient is one that tries a disk at fault again, and puts records off as the setting BACKLOG says.
func newPatient(r *recording, backlog string) *live {
	c := newLive(r)
	c.disk.patient, c.backlog.when = true, backlog
	return c
}

// die leaves a shard as a collector does that is killed behind a flush.
func die(t *testing.T, r *recording) {
	t.Helper()
	testkit.Must(t, r.flush())
	bury(t, r)
}

// bury lets go of what a dead collector held. The goroutine that brings its checkpoint to the disk dies with a process;
// here it has to be over before anybody else looks at the files, or removes them.
func bury(t testing.TB, r *recording) {
	t.Helper()

	if r.syncer.busy != nil {
		<-r.syncer.busy
	}
	testkit.Must(t, r.shard.store.Close())
}

// collect begins a collector of the process. Readings of the clocks scatter, by off nanoseconds here.
func (e *exchange) collect(t *testing.T, dir string, off uint64) *recording {
	t.Helper()
	r := collect(t, e.Job, dir)
	ran := e.ticks + pause - e.clock.Ticks
	r.drain.line.add(shm.ClockTuple{Ticks: e.clock.Ticks + ran, Raw: e.clock.Raw + ran + off, Mono: e.clock.Mono + ran,
		Real: e.clock.Real + ran})
	return r
}

// takenOver records a process with a collector that dies behind a flush when it has taken the records up to the given
// ticks, and another that goes on. With settled, what was complete then had been written.
func (e *exchange) takenOver(t *testing.T, dir string, at uint64, settled bool) {
	t.Helper()
	first := e.collect(t, dir, 0)
	first.drainRings(at)
	if settled {
		first.settleModel()
	}
	die(t, first)
	second := e.collect(t, dir, 40)
	second.drainAll()
	testkit.Must(t, second.finish(true))
}

// Whatever two collectors had taken of two processes when they died: the messages that the archive pairs belong
// together, those that are missing are counted, and where both went on with the same operation the rest is paired.
func TestTakeoverAtEveryRecord(t *testing.T) {
	t.Parallel()
	step := fewUnderRace(1, 7)
	clock := shm.ReadClock(shm.ClockMonotonic)
	probe := newExchange(t, 0, clock)
	records := int((probe.ticks - clock.Ticks) / pause)
	between := func(at uint64) bool { // two exchanges
		for _, end := range probe.ends {
			if at == end {
				return true
			}
		}
		return false
	}
	paired, lost := 0, uint64(0)
	for a := 0; a < records; a += step {
		others := []int{a, (a + 3) % records}
		if a%4 == 0 {
			others = append(others, (a+records/exchanges)%records)
		}
		for k, b := range others {
			settled := (a+k)%2 == 1
			dir := t.TempDir()
			cuts := [2]uint64{clock.Ticks + uint64(a)*pause, clock.Ticks + uint64(b)*pause}
			for rank, at := range cuts {
				newExchange(t, rank, clock).takenOver(t, dir, at, settled)
			}
			archive := unify(t, dir)
			findings := testkit.Value(check.Archive(archive, nil))(t)
			single := 0
			for _, f := range findings.Findings {
				testkit.Check(t, f.Severity != check.Error,
					"takeover at records %d and %d, settled %v: %v", a, b, settled, f)
				if f.Rule == check.RuleMessage {
					single++
				}
			}
			written, died := messages(t, dir, archive)
			if total := uint64(2 * 2 * exchanges); written+died != total {
				t.Errorf(
					"takeover at records %d and %d, settled %v: %d ends of messages, and %d died with collectors; "+
						"want %d", a, b, settled, written, died, total)
			}
			if single > 0 && died == 0 {
				t.Errorf(
					"takeover at records %d and %d, settled %v: %d pairs have messages without counterpart, and none "+
						"died", a, b, settled, single)
			}
			if a == b && settled && between(cuts[0]) {
				paired++
				testkit.Check(t, single <= 0,
					"takeover behind record %d, between two exchanges: %d pairs have messages without counterpart", a,
					single)
			}
			lost += died
		}
	}
	testkit.Check(t, (paired != 0 || step != 1) && lost != 0,
		"%d takeovers between exchanges, %d messages lost: nothing was tested", paired, lost)
}

func unify(t *testing.T, dir string) (archive string) {
	t.Helper()
	hold := testkit.Value(experiment.Lock(dir))(t)
	defer hold.Release()
	result, err := scorep.Unify(dir, &scorep.UnifyOptions{Hold: hold, Raw: ConvertAll(hold)})
	testkit.Require(t, err == nil && len(result.Runs) == 1, "%+v, %v", result, err)
	return result.Runs[0].Archive
}

// messages counts the ends of messages in an archive, and those that died with collectors. There is one row of each
// kind, one communicator, and the ordinals of a pair have no gaps but those. The marker tells the same.
func messages(t *testing.T, dir, archive string) (written, died uint64) {
	t.Helper()
	for _, e := range shards(t, dir) {
		p := e.Process
		n := uint64(0)
		for _, m := range p.Counts.Lost[loss.WithCollector] {
			n += m
		}
		died += n
		if p.Settings[description.SettingContinues] == "" {
			continue
		}
		want := fmt.Sprintf("operations that it had in memory are missing: %d", n)
		testkit.Check(t, len(p.Markers) != 0 && strings.HasSuffix(p.Markers[0].Text, want),
			"markers %v, want %q", p.Markers, want)
	}
	a := testkit.Value(otf2.Open(archive, nil))(t)
	defer a.Close()
	if comms, rows := len(a.Defs.Comms), len(a.Defs.Locations); comms != 1 || rows != 4 {
		var names []string
		for _, l := range a.Defs.Locations {
			names = append(names, a.Defs.String(l.Name))
		}
		t.Errorf("%s: %d communicators and %d rows %q, want one, and one row for each rank and its application",
			archive, comms, rows, names)
	}
	for _, l := range a.Defs.Locations {
		for e, err := range a.EventsOf(l.Self) {
			testkit.Must(t, err)
			if e.Kind == otf2.EventMpiIsend || e.Kind == otf2.EventMpiIrecv {
				written++
			}
		}
	}
	return written, died
}

// A thread that is held up between reading the clock and publishing leaves a record that is older than what the dead
// collector had taken of other threads: it is taken all the same, once, and so is what came after.
func TestTakeoverWithALateRecord(t *testing.T) {
	for _, deaths := range []int{1, 2, 3} {
		dir := t.TempDir()
		job := testkit.Value(shmtest.New(shmtest.Options{}))(t)
		t.Cleanup(func() { job.Close() })
		ticks := uint64(1e9)
		now := func() uint64 { ticks += 1000; return ticks }
		a, b := newApplication(job, 0, now), newApplication(job, 1, now)
		calls := uint64(0)
		for range deaths {
			a.allReduce(calls)
			heldUp := now()
			a.allReduce(calls + 1)
			r := collect(t, job, dir)
			r.drainAll()
			die(t, r)
			present := ticks
			ticks = heldUp - 500 // b's records all have times before a's last ones
			b.now = func() uint64 { ticks++; return ticks }
			b.allReduce(calls + 2)
			ticks = present
			calls += 3
		}
		last := collect(t, job, dir)
		last.drainAll()
		testkit.Must(t, last.finish(true))
		total, late := uint64(0), uint64(0)
		for _, e := range shards(t, dir) {
			total += starts(e.Process)
			late += e.Process.Counts.Oddities["LATE_RECORDS"]
		}
		testkit.Check(t, total == calls*perCall && late != 0,
			"%d deaths: %d starts in the shards, want %d; %d records were late", deaths, total, calls*perCall, late)
	}
}

func TestTakenText(t *testing.T) {
	for text, want := range map[string]positions{
		"0":         {},
		"17":        {last: 17},
		"17 17":     {last: 17, rings: []uint64{17}},
		"17 0,17,9": {last: 17, rings: []uint64{0, 17, 9}},
	} {
		got, err := parsePositions(text)
		testkit.Check(t, err == nil && got.String() == text && got.last == want.last &&
			slices.Equal(got.rings, want.rings), "%q: %+v, %v", text, got, err)
	}
	for _, text := range []string{"", "x", "1 ", "1 2,", "-1", "1 2 3"} {
		got, err := parsePositions(text)
		testkit.Check(t, err != nil, "%q is %+v", text, got)
	}
}

// Clocks can be coarser than what they time: many records of a ring have equal ticks, and the record that says whose
// the ring is has those of the next one always. Whatever a collector had taken of them when it was killed, and wherever
// between taking and giving memory back that was, all are taken once, by collectors that follow and by the conversion
// of a spool file.
func TestTakeoverBetweenEqualTicks(t *testing.T) {
	deaths := map[string]func(t *testing.T, l *live){
		"after taking": func(*testing.T, *live) {},
		// shard.json is newer than a profile or transcript then
		"behind the description": func(t *testing.T, l *live) { testkit.Must(t, l.describe()) },
		"behind the events":      func(t *testing.T, l *live) { testkit.Must(t, l.output.writeAll()) },
		"behind the checkpoint":  func(t *testing.T, l *live) { testkit.Must(t, l.recording.flush()) },
		"behind giving back": func(t *testing.T, l *live) {
			l.memory.Mark()
			testkit.Must(t, l.recording.flush())
			l.memory.Release()
		},
	}
	const padding = 250 // calls: more than a chunk
	times := fewUnderRace(6, 1)
	for _, mode := range []string{"trace", "record", "profile"} {
		for name, death := range deaths {
			for _, spool := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, %s, spool %v", mode, name, spool), func(t *testing.T) {
					t.Parallel()
					random := rand.New(rand.NewPCG(1, 2))
					for range times {
						dir := t.TempDir()
						job := testkit.Value(shmtest.New(shmtest.Options{Clock: shm.ClockMonotonic, Chunks: 256}))(t)
						t.Cleanup(func() { job.Close() })
						settings := config.RecordedSettings(map[string]string{"EVENTS": "all", "MODE": mode})
						begin := func() *live { return newLive(collectBy(t, settings, job, dir)) }
						ticks, n, written := monotonic(), uint64(0), 0
						var now *live
						cuts := make(map[int]bool) // numbers of records before which collectors die
						a := newApplication(job, 0, func() uint64 {
							if now != nil {
								now.drainAll() // up to between two records of equal ticks
								if written++; cuts[written] {
									death(t, now)
									bury(t, now.recording)
									now = begin()
								}
							}
							return ticks
						})
						call := func(calls int) {
							for range calls {
								a.allReduce(n)
								n++
							}
						}
						now = begin()
						for range 1 + random.IntN(4) {
							cuts[1+random.IntN(padding*2*perCall)] = true
						}
						call(padding)
						cuts[written+1+random.IntN(20)] = true
						call(3)
						if spool {
							death(t, now)
							bury(t, now.recording)
							now = nil
							call(padding * random.IntN(2))
							var out bytes.Buffer
							testkit.Must(t, job.SpoolRest(&out, shm.ReadClock(shm.ClockMonotonic)))
							testkit.Must(t, shmtest.SpoolEnd(&out))
							testkit.Must(t, convert(writeSpoolIn(t, dir, out.Bytes()), dir))
						} else {
							now.drainAll()
							testkit.Must(t, now.finish(true))
						}
						got, transcript := uint64(0), uint64(0)
						for _, e := range shards(t, dir) {
							// the last one counts what is in the file that it goes on with
							if record.IsRecording(e.Process) {
								transcript = max(transcript, starts(e.Process))
							} else {
								got += starts(e.Process)
							}
						}
						if got += transcript; got != n*perCall {
							t.Errorf("%d starts, there were %d; deaths before records %v", got, n*perCall,
								slices.Sorted(maps.Keys(cuts)))
						}
					}
				})
			}
		}
	}
}
