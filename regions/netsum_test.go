// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"fmt"
	"maps"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// carriedKey is what is compared: what one row shows of an operation's transfers with one peer.
type carriedKey struct {
	row    uint32
	parent uint64
	peer   int64
}

// carriedSum is what a row shows of them, in one form or the other.
type carriedSum struct {
	Times, Stretches [numNetPhases]uint64
	Open             [numNetPhases]bool
	OpenTime         uint64
	Transfers, Bytes uint64
}

// netWatch adds up what a model writes onto its networks' rows, of both forms.
type netWatch struct {
	p    *description.Process
	sums map[carriedKey]carriedSum
	busy map[carriedKey]uint64 // by row and peer
	// further figures of records
	steps, proxyOps, records uint64
}

func newNetWatch() *netWatch {
	return &netWatch{p: &description.Process{}, sums: make(map[carriedKey]carriedSum), busy: make(map[carriedKey]uint64)}
}

func (w *netWatch) Finished(uint32) {}

func (w *netWatch) EventWriter(l description.Location) (EventWriter, error) {
	events := otf2.NewMemoryEventWriter(&otf2.EventWriterOptions{CheckNesting: true})
	if l.Kind != description.KindNetSend && l.Kind != description.KindNetRecv {
		return events, nil
	}
	return &netRow{EventWriter: events, watch: w, row: l.Number, send: l.Kind == description.KindNetSend,
		links: make(map[int64]*netRowLink), puts: make(map[uint64]int64)}, nil
}

// netRow is a network's row.
type netRow struct {
	*otf2.EventWriter
	watch *netWatch
	row   uint32
	send  bool
	open  []netRowPhase
	links map[int64]*netRowLink
	puts  map[uint64]int64 // the peers of those that are under way
}

type netRowPhase struct {
	at    otf2.Timestamp
	key   carriedKey
	phase netPhase
}

type netRowLink struct {
	open  int
	since otf2.Timestamp
}

// values are the attributes of an event.
func values(a *otf2.AttributeList) map[otf2.AttributeRef]uint64 {
	of := make(map[otf2.AttributeRef]uint64)
	if a != nil {
		for _, v := range a.Values() {
			of[v.ID] = v.Bits
		}
	}
	return of
}

func (r *netRow) key(of map[otf2.AttributeRef]uint64) carriedKey {
	if peer, ok := of[AttrPeer]; ok {
		return carriedKey{r.row, of[AttrParentID], int64(peer)}
	}
	return carriedKey{r.row, 0, -1} // rows have no operation without a peer
}

func (r *netRow) change(k carriedKey, f func(*carriedSum)) {
	s := r.watch.sums[k]
	f(&s)
	r.watch.sums[k] = s
}

// phaseNamed is the phase of a name, numNetPhases if there is none.
func phaseNamed(name string) netPhase {
	phase := netNone + 1
	for phase < numNetPhases && netPhases[phase].name != name {
		phase++
	}
	return phase
}

func (r *netRow) Enter(t otf2.Timestamp, a *otf2.AttributeList, region otf2.RegionRef) error {
	name, of := r.watch.p.Regions[region].Name, values(a)
	phase := phaseNamed(name)
	switch {
	case name == NameSendSums || name == NameRecvSums:
		r.record(of)
	case phase < numNetPhases:
		r.open = append(r.open, netRowPhase{t, r.key(of), phase})
	}
	return r.EventWriter.Enter(t, a, region)
}

// record adds up the figures of a record of sums.
func (r *netRow) record(of map[otf2.AttributeRef]uint64) {
	k := r.key(of)
	r.watch.records++
	if steps, ok := of[AttrSteps]; ok {
		r.watch.steps += steps
	} else {
		r.watch.steps += of[AttrTransfers]
	}
	r.watch.proxyOps += of[AttrProxyOps]
	r.change(k, func(s *carriedSum) {
		if name, ok := of[AttrOpenPhase]; ok {
			s.Open[phaseNamed(r.watch.p.Strings[name])] = true
			s.OpenTime += of[AttrOpenTime]
		}
		for phase := netSendGPU; phase < numNetPhases; phase++ {
			if netPhases[phase].send == r.send {
				s.Times[phase] += of[sumAttributes[phase].time]
				s.Stretches[phase] += of[sumAttributes[phase].times]
			}
		}
		if r.send {
			s.Transfers += of[AttrTransfers]
			s.Bytes += of[AttrBytes]
		}
	})
	if busy := of[AttrBusy]; busy > 0 {
		r.watch.busy[carriedKey{r.row, 0, k.peer}] += busy
	}
}

func (r *netRow) Leave(t otf2.Timestamp, a *otf2.AttributeList, region otf2.RegionRef) error {
	if n := len(r.open); n > 0 && netPhases[r.open[n-1].phase].name == r.watch.p.Regions[region].Name {
		p := r.open[n-1]
		r.open = r.open[:n-1]
		r.change(p.key, func(s *carriedSum) {
			if values(a)[AttrUnfinished] != 0 {
				s.Open[p.phase] = true
				s.OpenTime += uint64(t - p.at)
				return
			}
			s.Stretches[p.phase]++
			s.Times[p.phase] += uint64(t - p.at)
		})
	}
	return r.EventWriter.Leave(t, a, region)
}

func (r *netRow) RmaPut(t otf2.Timestamp, a *otf2.AttributeList, win otf2.RmaWinRef, remote uint32, bytes,
	matching uint64) error {
	r.change(carriedKey{r.row, values(a)[AttrParentID], int64(remote)}, func(s *carriedSum) {
		s.Transfers++
		s.Bytes += bytes
	})
	l := r.links[int64(remote)]
	if l == nil {
		l = &netRowLink{}
		r.links[int64(remote)] = l
	}
	if l.open == 0 {
		l.since = t
	}
	l.open++
	r.puts[matching] = int64(remote)
	return r.EventWriter.RmaPut(t, a, win, remote, bytes, matching)
}

func (r *netRow) RmaOpCompleteNonBlocking(t otf2.Timestamp, a *otf2.AttributeList, win otf2.RmaWinRef,
	matching uint64) error {
	peer := r.puts[matching]
	delete(r.puts, matching)
	if l := r.links[peer]; l.open == 1 {
		if t > l.since {
			r.watch.busy[carriedKey{r.row, 0, peer}] += uint64(t - l.since)
		}
		l.open--
	} else {
		l.open--
	}
	return r.EventWriter.RmaOpCompleteNonBlocking(t, a, win, matching)
}

// twice is what two models made of the same records, one with the network's steps summed up.
type twice struct {
	rows, sums           *netWatch
	rowsModel, sumsModel *Model
}

func modelsOf(opts Options) *twice {
	w := &twice{rows: newNetWatch(), sums: newNetWatch()}
	w.rowsModel = New(w.rows, w.rows.p, &opts)
	summed := opts
	summed.NetSums = true
	w.sumsModel = New(w.sums, w.sums.p, &summed)
	return w
}

// reporter is a test that reports differences.
type reporter interface{ Errorf(string, ...any) }

// same says where the two forms differ.
func (w *twice) same(t reporter) {
	without := func(all map[carriedKey]carriedSum) map[carriedKey]carriedSum {
		maps.DeleteFunc(all, func(_ carriedKey, s carriedSum) bool { return s == carriedSum{} })
		return all
	}
	if diff := cmp.Diff(without(w.rows.sums), without(w.sums.sums)); diff != "" {
		t.Errorf("sums of the rows (−), sums that were recorded (+):\n%s", diff)
	}
	if diff := cmp.Diff(w.rows.busy, w.sums.busy); diff != "" {
		t.Errorf("busy links of the rows (−), those that were recorded (+):\n%s", diff)
	}
	if diff := cmp.Diff(w.rowsModel.Network(), w.sumsModel.Network()); diff != "" {
		t.Errorf("counts with rows (−), with sums (+):\n%s", diff)
	}
	w.rowsModel.Snapshot()
	w.sumsModel.Snapshot()
	if diff := cmp.Diff(w.rows.p.Counts, w.sums.p.Counts); diff != "" {
		t.Errorf("counts with rows (−), with sums (+):\n%s", diff)
	}
	if diff := cmp.Diff(w.rows.p.Wins, w.sums.p.Wins); diff != "" {
		t.Errorf("windows with rows (−), with sums (+):\n%s", diff)
	}
	for _, n := range w.networks() {
		if len(n.sums) > 0 {
			t.Errorf("%s: %d sums are kept at the end", n.label, len(n.sums))
		}
	}
}

func (w *twice) networks() (all []*netRank) {
	for _, c := range w.sumsModel.ranks.all {
		if c != nil && c.net != nil {
			all = append(all, c.net)
		}
	}
	return append(all, w.sumsModel.net.foreignNets...)
}

// Whatever was recorded, the sums are those of what would have been drawn.
func TestSumsAreThoseOfTheRows(t *testing.T) {
	dirs, _ := filepath.Glob("../testdata/nccl-callbacks/*/run.json")
	summed := 0
	for _, d := range dirs {
		rec := testkit.Value(replay.Load(filepath.Dir(d)))(t)
		t.Run(rec.Name, func(t *testing.T) {
			for _, p := range rec.Processes {
				w := modelsOf(Options{RecordMask: 0xffff, Metrics: true})
				for _, m := range []*Model{w.rowsModel, w.sumsModel} {
					feed(m, p)
					err := m.Finish()
					testkit.Check(t, err == nil, "%v", err)
				}
				w.same(t)
				transfers := w.sums.p.Counts.Starts["PROXY_STEP"]
				if transfers > 0 && (w.sums.steps == 0 || w.sums.steps > transfers || w.sums.records > transfers) {
					t.Errorf("%d transfers began, %d are in %d records", transfers, w.sums.steps, w.sums.records)
				}
				summed += int(w.sums.records)
			}
		})
	}
	testkit.Check(t, summed != 0, "no recording has transfers")
}

func TestSumsOfAnyStreamAreThoseOfTheRows(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := modelsOf(Options{RecordMask: uint32(rapid.SampledFrom([]int{0, 0xffff}).Draw(rt, "mask")), Metrics: true})
		version := rapid.SampledFrom([]int{0, 3, 4, 7}).Draw(rt, "api")
		each := func(f func(m *Model) error) {
			for _, m := range []*Model{w.rowsModel, w.sumsModel} {
				testkit.Must(rt, f(m))
			}
		}
		w.rows.p.APIVersion, w.sums.p.APIVersion = version, version
		w.rows.p.Tag, w.sums.p.Tag = 0x1111, 0x1111
		each(func(m *Model) error {
			m.Comm(0, description.Comm{ID: 0xabcd, Name: "world", NRanks: 4, Rank: 1}, description.GPU{Device: 0})
			return m.Record(0, micros(0), &shm.Record{Kind: shm.RecordInit})
		})
		in := stream{t: rt, us: 1}
		for i := range rapid.IntRange(1, 300).Draw(rt, "records") {
			in.us += uint64(rapid.SampledFrom([]int{0, 1, 1, 1, 1, 5, 5, 3_000_000}).Draw(rt, "pause"))
			r, ring := in.next(), rapid.IntRange(0, 2).Draw(rt, "ring")
			each(func(m *Model) error {
				if i == 40 {
					m.Comm(2, description.Comm{ID: 7, NRanks: 2, Rank: 1}, description.GPU{Device: -1})
				}
				of := r
				if err := m.Record(ring, micros(in.us), &of); err != nil {
					return err
				}
				if i%50 == 49 {
					if err := m.Settle(micros(in.us)); err != nil {
						return err
					}
					m.Snapshot()
				}
				return m.Advance(micros(in.us))
			})
		}
		each((*Model).Finish)
		w.same(rt)
	})
}

func newSummedScene(t *testing.T) *scene {
	return newSceneWith(t, 4, 0, &Options{RecordMask: 1<<shm.EventKernelCh | 1<<shm.EventProxyOp, NetSums: true,
		Metrics: true})
}

// The scene is that of TestPhasesFollowTheOldestStep.
func TestOneRecordForAnOperationPeerAndDirection(t *testing.T) {
	s := newSummedScene(t)
	s.transfers()
	s.golden()
}

// ProxyOps that are never stopped, and transfers after their operation has been written: the first record has what came
// until then, the second one the rest, and both name the operation.
func TestWhatOutlivesItsOperationIsSummedUpToo(t *testing.T) {
	s := newSummedScene(t)
	s.allReduce(100, "a")
	s.proxyOp(120, "op", "a", true, 2)
	s.step(121, "s0", "op", 0)
	s.stepState(122, "s0", sendGPUWait)
	s.stepState(130, "s0", sendWait, 1000)
	s.kernel(120, 180, "a")
	s.passTo(3_000_000)
	s.stop(1, 3_000_010, shm.EventProxyStep, "s0")
	s.step(3_000_020, "s1", "op", 1)
	s.stepState(3_000_020, "s1", sendGPUWait)
	s.stepState(3_000_030, "s1", sendWait, 500)
	s.give(0, 3_000_100, shm.Record{Kind: shm.RecordFinalize})
	s.golden()
}

// Operations that never end do not add up: of each what has ended is written when the queue is full.
func TestSumsAreBounded(t *testing.T) {
	s := newSceneWith(t, 4, 0, &Options{RecordMask: 1 << shm.EventProxyOp, NetSums: true})
	for i := range uint64(3 * maxProxyOps) {
		op := fmt.Sprint("op ", i)
		s.proxyOp(100, op, fmt.Sprint("operation ", i), true, 2)
		s.step(100, "s of "+op, op, 0)
		s.stepState(101, "s of "+op, sendWait, 1)
	}
	n := len(s.m.ranks.all[0].net.sums)
	testkit.Check(t, n <= maxProxyOps, "%d sums are kept", n)
}
